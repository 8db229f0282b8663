// SPDX-License-Identifier: MIT
#pragma once

#include <heed/core/config.hpp>
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
/// use columns. Their distances are those of the positions unless padding lies inside a text.
class Positions {
 public:
  Positions() = default;
  /// Column c of every row is position first + c. Throws InvalidArgument for positions so far from
  /// 0 that an Index might not hold their sums: 2^62.
  Positions(Index first);  // NOLINT(google-explicit-constructor)
  /// A position for every token, (batch, tokens), or (1, tokens) for all rows. Throws
  /// InvalidArgument for positions below 0.
  explicit Positions(Tensor<Index, 2> ids);

  /// Whether they are columns from a first position on, the same in every row.
  bool are_columns() const { return !ids_; }
  /// The position of column 0, where they are columns.
  Index first() const { return first_; }
  Index at(Index row, Index column) const {
    return ids_ ? (*ids_)(ids_->extent(0) == 1 ? 0 : row, column) : first_ + column;
  }

  /// Throws ShapeError, in the name of the caller, unless these are positions of (batch, tokens).
  void check(const char* caller, const Extents<2>& tokens) const;
  /// The positions of one row. Throws ShapeError for a row that has none.
  Positions row(Index row) const;
  /// The positions of some columns, for tokens that come a few at a time. Throws ShapeError for
  /// columns that have none, and InvalidArgument for positions too large to count.
  Positions columns(Index begin, Index count) const;

 private:
  Index first_ = 0;
  detail::Shared<Tensor<Index, 2>> ids_;
};

/// Positions in padded texts: the first real token of a row is at 0, and so is all padding.
/// `tokens`: (batch, tokens). Throws ShapeError where the mask does not fit them.
Positions positions_of(const masks::Padding& padding, const Extents<2>& tokens);
/// The same where padding may be anywhere: a token's position is the number of real ones before it.
Positions positions_of(const masks::ValidKeys& valid, const Extents<2>& tokens);
/// Positions in packed documents, the same in every row: each document begins at 0.
Positions positions_of(const masks::Segments& segments, const Extents<2>& tokens);
/// Positions in a text with a tree of drafts behind it, the same in every row: a node stands one
/// after its parent. `tokens` counts text and nodes.
Positions positions_of(const masks::Tree& tree, const Extents<2>& tokens);

}  // namespace heed

#if HEED_DEFINITIONS
#include <heed/layers/detail/positions.inl>
#endif
