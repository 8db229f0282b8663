// SPDX-License-Identifier: MIT
#pragma once

/// Pictures of matrices, in the terminal and as SVG. PNG is opt-in: <heed/plot/png.hpp>.
#include <heed/plot/color.hpp>
#include <heed/plot/heatmap.hpp>
#include <heed/plot/svg.hpp>
#include <heed/plot/terminal.hpp>
#include <heed/plot/terminal_options.hpp>
#include <heed/plot/terminal_paint.hpp>
#include <heed/plot/text.hpp>
