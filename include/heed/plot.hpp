// SPDX-License-Identifier: MIT
#pragma once

/// Pictures of matrices and lines, in the terminal, as SVG and as HTML. PNG is opt-in:
/// <heed/plot/png.hpp>.
#include <heed/plot/chart.hpp>
#include <heed/plot/color.hpp>
#include <heed/plot/heatmap.hpp>
#include <heed/plot/html.hpp>
#include <heed/plot/mask_heatmap.hpp>
#include <heed/plot/svg.hpp>
#include <heed/plot/terminal.hpp>
