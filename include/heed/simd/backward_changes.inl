// SPDX-License-Identifier: MIT
// Gradients of scores that a ScoreChange changes. Included by backward.inl.

/// P of changed scores, and in the place of dS the derivative of the scores with respect to their
/// products: 1 − tanh² of a softcap, times that of a user's function.
template <class S, int Rows, int Vectors>
HEED_SIMD void finish_changed_probabilities(const GradientTask<S, Vectors>& task, Index key,
                                            typename S::V (&scores)[Rows][Vectors]) {
  const auto& change = *task.block.change;
  const auto& queries = task.queries;
  const Index row = task.block.cut + key;
  const Index biased = task.lane / tile_stride<S> * change.bias_tile + row * change.bias_row +
                       task.lane % tile_stride<S>;
  const Index given = task.in_tiles(key_block) + row * tile_stride<S>;
  HEED_UNROLL for (int j = 0; j < Vectors; ++j) {
    const auto lse = S::load(queries.log_sum_exp + task.lane + j * S::width);
    HEED_UNROLL for (int r = 0; r < Rows; ++r) {
      const Index at = (key + r) * query_block + task.lane + j * S::width;
      const Index tiled = given + r * tile_stride<S> + j * S::width;
      auto score = scores[r][j];
      auto slope = S::broadcast(1);
      if (change.cap != 0) {
        const auto tanh = tanh_of_log2<S>(score);
        score = tanh * S::broadcast(change.cap);
        if (!queries.after_softcap) slope = slope - tanh * tanh;
      }
      if (change.bias) {
        score = score + S::load(change.bias + biased + r * change.bias_row + j * S::width);
      }
      if (change.given) {
        score = S::load(queries.scores + tiled);
        slope = slope * S::load(queries.slopes + tiled);
      }
      auto p = exp2<S>(score - lse);
      if (task.block.words) p = S::select(task.visible(key + r, j), p, S::broadcast(0));
      S::store(queries.probabilities + at, p);
      S::store(queries.grad_scores + at, slope);
    }
  }
}

/// dS = P · (dP − delta) · slope, with dP and the P that multiplies dO as dropout leaves them.
template <class S, int Rows, int Vectors>
HEED_SIMD void finish_changed_grad_scores(const GradientTask<S, Vectors>& task, Index key,
                                          typename S::V (&gradient)[Rows][Vectors]) {
  const auto& change = *task.block.change;
  const auto& queries = task.queries;
  const auto none = S::broadcast(0);
  const auto factor = S::broadcast(change.keep_factor);
  HEED_UNROLL for (int j = 0; j < Vectors; ++j) {
    const auto delta = S::load(queries.delta + task.lane + j * S::width);
    HEED_UNROLL for (int r = 0; r < Rows; ++r) {
      const Index at = (key + r) * query_block + task.lane + j * S::width;
      const auto p = S::load(queries.probabilities + at);
      auto grad_weight = gradient[r][j];
      if (change.keep) {
        const auto keep = task.lanes_of(change.keep[task.block.cut + key + r], j);
        grad_weight = S::select(keep, grad_weight * factor, none);
        S::store(queries.probabilities + at, S::select(keep, p * factor, none));
      }
      auto x = p * (grad_weight - delta) * S::load(queries.grad_scores + at);
      if (task.block.words) x = S::select(task.visible(key + r, j), x, none);
      S::store(queries.grad_scores + at, x);
    }
  }
}

/// grad_score_rows under a ScoreChange.
template <class S, int Rows, int Vectors>
HEED_KERNEL void changed_grad_score_rows(const GradientTask<S, Vectors>& task, Index key) {
  const auto& queries = task.queries;
  typename S::V sums[Rows][Vectors] = {};
  if (!task.block.change->given || task.block.change->cap != 0) {
    row_products(task, task.block.keys, key, queries.packed_queries, queries.head_dim, sums);
  }
  finish_changed_probabilities<S, Rows, Vectors>(task, key, sums);
  row_products(task, task.block.values, key, queries.packed_gradient, queries.value_dim, sums);
  finish_changed_grad_scores<S, Rows, Vectors>(task, key, sums);
}
