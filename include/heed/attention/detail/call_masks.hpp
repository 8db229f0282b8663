// SPDX-License-Identifier: MIT
#pragma once

#include <heed/attention/detail/problem.hpp>
#include <heed/masks/policy.hpp>

namespace heed::detail {

/// What masks are asked about in a call: `rows` queries of a head from `row` on, some of the keys.
template <class T>
Tile tile_of(const AttentionProblem<T>& problem, Index item, Index head, Index row, Index rows,
             Index first_key, Index last_key) {
  const Index call = problem.first_query_of(item), first = call + row;
  return {item + problem.item_offset, head, first, first + rows - 1, first_key, last_key, call};
}

/// One score of a call.
template <class T>
Position position_of(const AttentionProblem<T>& problem, Index item, Index head, Index query,
                     Index key) {
  const Index call = problem.first_query_of(item);
  return {item + problem.item_offset, head, call + query, key, call};
}

/// What a mask of a call has to fit.
template <class T>
MaskShape mask_shape_of(const AttentionProblem<T>& problem) {
  MaskShape shape{problem.batch(), problem.heads(), problem.query_count(), problem.key_count()};
  if (shape.batch == 0) return shape;
  Index last = shape.first_query = problem.first_query_of(0);
  for (Index item = 1; item < shape.batch; ++item) {
    shape.first_query = smaller(shape.first_query, problem.first_query_of(item));
    last = larger(last, problem.first_query_of(item));
  }
  shape.last_query = last + shape.queries - 1;
  return shape;
}

template <class T, MaskPolicy M>
void check_mask_fits(const M& mask, const AttentionProblem<T>& problem) {
  check_mask(mask, mask_shape_of(problem));
}

}  // namespace heed::detail
