// SPDX-License-Identifier: MIT
#pragma once

/// Layers: values with parameters, forward and backward.
#include <heed/layers/blocks.hpp>
#include <heed/layers/cached_attention.hpp>
#include <heed/layers/dropout.hpp>
#include <heed/layers/embedding.hpp>
#include <heed/layers/feed_forward.hpp>
#include <heed/layers/linear.hpp>
#include <heed/layers/multi_head_attention.hpp>
#include <heed/layers/norm.hpp>
#include <heed/layers/parameters.hpp>
#include <heed/layers/positions.hpp>
#include <heed/layers/projections.hpp>
#include <heed/layers/rotary.hpp>
