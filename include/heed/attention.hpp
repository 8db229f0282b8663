// SPDX-License-Identifier: MIT
#pragma once

/// Attention: the fused kernels and every mask. No Eigen, no streams.
/// The readable definition is its own header: <heed/attention/reference.hpp>.
#include <heed/attention/backward.hpp>
#include <heed/attention/backward_problem.hpp>
#include <heed/attention/backward_rows.hpp>
#include <heed/attention/backward_scratch.hpp>
#include <heed/attention/bias_gradient_view.hpp>
#include <heed/attention/bias_view.hpp>
#include <heed/attention/block_top_k.hpp>
#include <heed/attention/cache_pages.hpp>
#include <heed/attention/cache_shape.hpp>
#include <heed/attention/cached.hpp>
#include <heed/attention/copy_rows.hpp>
#include <heed/attention/decode_pass.hpp>
#include <heed/attention/decode_scratch.hpp>
#include <heed/attention/distance_gradients.hpp>
#include <heed/attention/forward.hpp>
#include <heed/attention/forward_scratch.hpp>
#include <heed/attention/gradient_options.hpp>
#include <heed/attention/key_blocks.hpp>
#include <heed/attention/key_chunk_pass.hpp>
#include <heed/attention/key_value_cache.hpp>
#include <heed/attention/merge.hpp>
#include <heed/attention/options.hpp>
#include <heed/attention/output_factors.hpp>
#include <heed/attention/packed.hpp>
#include <heed/attention/page_pool.hpp>
#include <heed/attention/per_query_input.hpp>
#include <heed/attention/plan.hpp>
#include <heed/attention/prepared_queries.hpp>
#include <heed/attention/problem.hpp>
#include <heed/attention/query_block_pass.hpp>
#include <heed/attention/relative_bias.hpp>
#include <heed/attention/row_changes.hpp>
#include <heed/attention/score_change_block.hpp>
#include <heed/attention/score_changes.hpp>
#include <heed/attention/score_function.hpp>
#include <heed/attention/score_gradients.hpp>
#include <heed/attention/seeing_queries.hpp>
#include <heed/attention/weight_dropout.hpp>
#include <heed/attention/weight_summary.hpp>
#include <heed/attention/weights.hpp>
#include <heed/masks.hpp>
