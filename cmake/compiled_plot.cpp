// SPDX-License-Identifier: MIT
// The definitions of pictures behind heed::compiled. Included by name, since HEED_COMPILED_SOURCE
// would define the drivers, which are in compiled.cpp, a second time.
#include <heed/plot.hpp>

#include <heed/plot/detail/axis.inl>
#include <heed/plot/detail/chart_layout.inl>
#include <heed/plot/detail/drawing.inl>
#include <heed/plot/detail/heatmap.inl>
#include <heed/plot/detail/html.inl>
#include <heed/plot/detail/svg.inl>
#include <heed/plot/detail/terminal_chart.inl>
#include <heed/plot/detail/terminal_heatmap.inl>
