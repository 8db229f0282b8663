// SPDX-License-Identifier: MIT
#pragma once

// Definitions of <heed/layers/positions.hpp>, which includes this file.

#include <utility>

namespace heed {

HEED_INLINE Positions::Positions(Index first) : first_(first) {
  constexpr Index most = Index{1} << 62;
  if (first >= -most && first <= most) return;
  throw_invalid_argument("Positions: the first is ", first, ", expected -2^62 to 2^62");
}

HEED_INLINE Positions::Positions(Tensor<Index, 2> ids) {
  for (const Index id : ids) {
    if (id < 0) throw_invalid_argument("Positions: ", id, ", expected 0 or more");
  }
  ids_ = detail::Shared<Tensor<Index, 2>>(new Tensor<Index, 2>(std::move(ids)));
}

HEED_INLINE void Positions::check(const char* caller, const Extents<2>& tokens) const {
  if (!ids_) return;
  const bool rows_fit = ids_->extent(0) == 1 || ids_->extent(0) == tokens[0];
  if (rows_fit && ids_->extent(1) == tokens[1]) return;
  throw_shape_error(caller, ": positions are ", ids_->extents(), ", tokens ", tokens);
}

HEED_INLINE Positions Positions::row(Index row) const {
  if (!ids_ || ids_->extent(0) == 1) return *this;
  if (row < 0 || row >= ids_->extent(0)) {
    throw_shape_error("Positions: row ", row, " of ", ids_->extents());
  }
  return Positions(Tensor<Index, 2>::copy_of(ids_->view().slice(0, row, row + 1)));
}

HEED_INLINE Positions Positions::columns(Index begin, Index count) const {
  if (!ids_) return Positions(detail::sum_or_most(first_, begin));  // which refuses the most
  if (begin < 0 || count < 0 || count > ids_->extent(1) - begin) {
    throw_shape_error("Positions: ", count, " columns from ", begin, " on of ", ids_->extents());
  }
  return Positions(Tensor<Index, 2>::copy_of(ids_->view().slice(1, begin, begin + count)));
}

namespace detail {

/// The results of position(row, column); callers give 0 for tokens outside all texts.
template <class Position>
Positions positions_by(const Extents<2>& tokens, const Position& position) {
  Tensor<Index, 2> ids(tokens);
  for (Index row = 0; row < tokens[0]; ++row) {
    for (Index column = 0; column < tokens[1]; ++column) ids(row, column) = position(row, column);
  }
  return Positions(std::move(ids));
}

}  // namespace detail

HEED_INLINE Positions positions_of(const masks::Padding& padding, const Extents<2>& tokens) {
  padding.check({tokens[0], 1, tokens[1], tokens[1]});
  return detail::positions_by(tokens, [&](Index row, Index column) {
    const bool real = padding.begin(row) <= column && column < padding.end(row);
    return real ? column - padding.begin(row) : Index{0};
  });
}

HEED_INLINE Positions positions_of(const masks::ValidKeys& valid, const Extents<2>& tokens) {
  valid.check({tokens[0], 1, tokens[1], tokens[1]});
  return detail::positions_by(tokens, [&](Index row, Index column) {
    const bool real = valid.allows({row, 0, column, column});
    return real ? valid.before(row, column) : Index{0};
  });
}

HEED_INLINE Positions positions_of(const masks::Segments& segments, const Extents<2>& tokens) {
  segments.check({tokens[0], 1, tokens[1], tokens[1]});
  return detail::positions_by({1, tokens[1]}, [&](Index, Index column) {
    const bool inside = segments.allows({0, 0, column, column});
    return inside ? column - segments.begin(column) : Index{0};
  });
}

HEED_INLINE Positions positions_of(const masks::Tree& tree, const Extents<2>& tokens) {
  tree.check({tokens[0], 1, tokens[1], tokens[1]});
  return detail::positions_by({1, tokens[1]},
                              [&](Index, Index column) { return tree.place(column); });
}

}  // namespace heed
