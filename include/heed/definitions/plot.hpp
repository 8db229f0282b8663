// SPDX-License-Identifier: MIT
#pragma once

/// Definitions of what draws pictures, for programs that compile them. Public headers include this,
/// or a header that does; no .inl file may include such a header.
#include <heed/core/config.hpp>

#if HEED_DEFINITIONS
#include <heed/plot/detail/axis.inl>
#include <heed/plot/detail/chart_layout.inl>
#include <heed/plot/detail/drawing.inl>
#include <heed/plot/detail/heatmap.inl>
#include <heed/plot/detail/html.inl>
#include <heed/plot/detail/svg.inl>
#include <heed/plot/detail/terminal_chart.inl>
#include <heed/plot/detail/terminal_heatmap.inl>
#endif
