// SPDX-License-Identifier: MIT
#pragma once

#include <limits>

#include <heed/core/detail/math.hpp>
#include <heed/core/error.hpp>
#include <heed/core/index.hpp>
#include <heed/masks/policy.hpp>
#include <heed/tensor/tensor.hpp>
#include <heed/tensor/view_of.hpp>

// Numbers that are added to scores: by distance, and masks in the form of numbers.

namespace heed {

/// The slopes of ALiBi, for AttentionOptions::alibi_slopes: 2^(−8·(h + 1) / heads) for a power of
/// two. Other head counts take the slopes of the power of two below, then every second slope of the
/// next power of two. Press, Smith, Lewis 2022, "Train Short, Test Long".
template <class T = float>
Tensor<T, 1> alibi_slopes(Index heads) {
  if (heads < 0) throw_invalid_argument("alibi_slopes: ", heads, " heads, expected 0 or more");
  Index power = 1;
  while (2 * power <= heads) power *= 2;
  Tensor<T, 1> slopes({heads});
  for (Index head = 0; head < heads; ++head) {
    const bool beyond = head >= power;
    const auto step = static_cast<double>(beyond ? 2 * (head - power) + 1 : head + 1);
    const auto of = static_cast<double>(beyond ? 2 * power : power);
    slopes[head] = static_cast<T>(detail::exp(-8.0 * step / of * 0.69314718055994530942));
  }
  return slopes;
}

/// The distance buckets of T5: the nearer half of the buckets hold one distance each; the others
/// grow geometrically up to max_distance, and the last one holds everything beyond. Raffel et al.
/// 2020.
struct RelativeBuckets {
  Index count = 32;
  Index max_distance = 128;
  bool bidirectional = true;  // half of the buckets for keys after the query; else those get 0

  /// The bucket of `distance` = key − query.
  Index operator()(Index distance) const {
    const Index side = bidirectional ? count / 2 : count;
    const Index shift = bidirectional && distance > 0 ? side : 0;
    const Index away = distance < 0 ? -distance : bidirectional ? distance : 0;
    const Index exact = side / 2;
    if (away < exact) return shift + away;
    const double growth =
        detail::log(static_cast<double>(away) / static_cast<double>(exact)) /
        detail::log(static_cast<double>(max_distance) / static_cast<double>(exact));
    // The nudge keeps exact powers in the bucket they begin, whatever the last bit of the quotient.
    const auto step = static_cast<Index>(growth * static_cast<double>(side - exact) + 1e-9);
    return shift + (exact + step < side ? exact + step : side - 1);
  }
};

/// A learned bucket table, (buckets.count, heads), expanded by distance for
/// AttentionOptions::relative_bias: (heads, 2 · max_distance + 1). Throws ShapeError for a table
/// with another number of rows, and InvalidArgument for fewer than 4 buckets and for a
/// max_distance that is not above the distances with a bucket of their own.
template <Viewable Table>
Tensor<ValueOf<Table>, 2> relative_bias(const Table& table, const RelativeBuckets& buckets = {}) {
  const auto view = view_of(table);
  if (buckets.count < 4 ||
      buckets.max_distance <= buckets.count / (buckets.bidirectional ? 4 : 2)) {
    throw_invalid_argument("relative_bias: ", buckets.count, " buckets up to distance ",
                           buckets.max_distance);
  }
  if (view.extent(0) != buckets.count) {
    throw_shape_error("relative_bias: the table has ", view.extent(0), " rows, expected ",
                      buckets.count, " buckets");
  }
  const Index reach = buckets.max_distance;
  Tensor<ValueOf<Table>, 2> spread({view.extent(1), 2 * reach + 1});
  for (Index distance = -reach; distance <= reach; ++distance) {
    const Index bucket = buckets(distance);
    for (Index head = 0; head < view.extent(1); ++head) {
      spread(head, distance + reach) = view(bucket, head);
    }
  }
  return spread;
}

/// The mask in the additive form of other libraries: (queries, keys) of 0 where a query may look
/// and −inf where it may not, to be added to the scores. The last query lines up with the last key;
/// the mask is evaluated for batch item 0, head 0. masks::Dense reads the result back. Throws
/// ShapeError for a mask that does not fit.
template <class T, class M>
Tensor<T, 2> additive(const M& mask, Index queries, Index keys) {
  Tensor<T, 2> result(queries, keys);
  if constexpr (detail::expect_mask<M>()) {
    check_mask(mask, {MaskShape::unknown, MaskShape::unknown, queries, keys});
    const Index first = keys - queries;
    const auto hidden = static_cast<T>(-std::numeric_limits<float>::infinity());
    for (Index row = 0; row < queries; ++row) {
      for (Index key = 0; key < keys; ++key) {
        if (!allows(mask, {0, 0, first + row, key, first})) result(row, key) = hidden;
      }
    }
  }
  return result;
}

}  // namespace heed
