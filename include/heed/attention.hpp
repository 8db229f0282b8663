// SPDX-License-Identifier: MIT
#pragma once

/// Attention: the fused kernels and every mask. No Eigen, no streams.
/// The readable definition is its own header: <heed/attention/reference.hpp>.
#include <heed/attention/backward.hpp>
#include <heed/attention/block_top_k.hpp>
#include <heed/attention/cached.hpp>
#include <heed/attention/forward.hpp>
#include <heed/attention/key_value_cache.hpp>
#include <heed/attention/merge.hpp>
#include <heed/attention/options.hpp>
#include <heed/attention/packed.hpp>
#include <heed/attention/plan.hpp>
#include <heed/attention/relative_bias.hpp>
#include <heed/attention/score_function.hpp>
#include <heed/attention/weights.hpp>
#include <heed/masks.hpp>
