// SPDX-License-Identifier: MIT
#pragma once

#include <utility>

#include <heed/core/detail/shared.hpp>
#include <heed/core/error.hpp>
#include <heed/masks/intervals.hpp>
#include <heed/masks/tokens.hpp>
#include <heed/tensor/tensor.hpp>

namespace heed {

/// How a model learns where its tokens stand. Learned and sinusoidal positions are added to the
/// embeddings, before the first block. The others act inside attention and depend on distances
/// alone: rotary positions rotate queries and keys; relative ones (a learned bias for each
/// distance) and ALiBi (a fixed one) are added to the scores.
enum class PositionKind { none, learned, sinusoidal, rotary, relative, alibi };

/// The positions of tokens in their own texts, for learned, sinusoidal and rotary positions. The
/// default is a token's column, which is right for one text a row that begins at column 0. Padding
/// on the left and documents packed into one row need `positions_of(mask, tokens.extents())`: then
/// a text has the logits that it has alone. Masks and biases by distance (relative, ALiBi) always
/// use columns, whose distances inside a text are those of its positions.
class Positions {
 public:
  /// Column c of every row is position first + c.
  Positions(Index first = 0) : first_(first) {}  // NOLINT(google-explicit-constructor)
  /// A position for every token, (batch, tokens), or (1, tokens) for all rows. Throws
  /// InvalidArgument for positions below 0.
  explicit Positions(Tensor<Index, 2> ids) {
    for (const Index id : ids) {
      if (id < 0) throw_invalid_argument("Positions: ", id, ", expected 0 or more");
    }
    ids_ = detail::Shared<Tensor<Index, 2>>(new Tensor<Index, 2>(std::move(ids)));
  }

  /// Whether they are columns from a first position on, the same in every row.
  bool are_columns() const { return !ids_; }
  /// The position of column 0, where they are columns.
  Index first() const { return first_; }
  Index at(Index row, Index column) const {
    return ids_ ? (*ids_)(ids_->extent(0) == 1 ? 0 : row, column) : first_ + column;
  }

  /// Throws ShapeError, in the name of the caller, unless these are positions of (batch, tokens).
  void check(const char* caller, const Extents<2>& tokens) const {
    if (!ids_) return;
    const bool rows = ids_->extent(0) == 1 || ids_->extent(0) == tokens[0];
    if (rows && ids_->extent(1) == tokens[1]) return;
    throw_shape_error(caller, ": positions are ", ids_->extents(), ", tokens ", tokens);
  }
  /// The positions of one row. Throws ShapeError for a row that has none.
  Positions row(Index row) const {
    if (!ids_ || ids_->extent(0) == 1) return *this;
    if (row < 0 || row >= ids_->extent(0)) {
      throw_shape_error("Positions: row ", row, " of ", ids_->extents());
    }
    return Positions(Tensor<Index, 2>::copy_of(ids_->view().slice(0, row, row + 1)));
  }
  /// The positions of some columns, for tokens that come a few at a time. Throws ShapeError for
  /// columns that have none.
  Positions columns(Index begin, Index count) const {
    if (!ids_) return first_ + begin;
    if (begin < 0 || count < 0 || count > ids_->extent(1) - begin) {
      throw_shape_error("Positions: columns ", begin, " to ", begin + count, " of ",
                        ids_->extents());
    }
    return Positions(Tensor<Index, 2>::copy_of(ids_->view().slice(1, begin, begin + count)));
  }

 private:
  Index first_ = 0;
  detail::Shared<Tensor<Index, 2>> ids_;
};

namespace detail {

/// The results of position(row, column), which is 0 for tokens outside all texts.
template <class Position>
Positions positions_by(const Extents<2>& tokens, const Position& position) {
  Tensor<Index, 2> ids(tokens);
  for (Index row = 0; row < tokens[0]; ++row) {
    for (Index column = 0; column < tokens[1]; ++column) ids(row, column) = position(row, column);
  }
  return Positions(std::move(ids));
}

}  // namespace detail

/// Positions in padded texts: the first real token of a row is at 0, and so is all padding.
/// `tokens`: (batch, tokens). Throws ShapeError where the mask does not fit them.
inline Positions positions_of(const masks::Padding& padding, const Extents<2>& tokens) {
  padding.check({tokens[0], 1, tokens[1], tokens[1]});
  return detail::positions_by(tokens, [&](Index row, Index column) {
    const bool real = padding.begin(row) <= column && column < padding.end(row);
    return real ? column - padding.begin(row) : Index{0};
  });
}
/// The same where padding may be anywhere: a token's position is the number of real ones before it.
inline Positions positions_of(const masks::ValidKeys& valid, const Extents<2>& tokens) {
  valid.check({tokens[0], 1, tokens[1], tokens[1]});
  return detail::positions_by(tokens, [&](Index row, Index column) {
    const bool real = valid.allows({row, 0, column, column});
    return real ? valid.before(row, column) : Index{0};
  });
}
/// Positions in packed documents, the same in every row: each document begins at 0.
inline Positions positions_of(const masks::Segments& segments, const Extents<2>& tokens) {
  check_mask(segments, {tokens[0], 1, tokens[1], tokens[1]});
  return detail::positions_by({1, tokens[1]}, [&](Index, Index column) {
    const bool inside = segments.allows({0, 0, column, column});
    return inside ? column - segments.begin(column) : Index{0};
  });
}

}  // namespace heed
