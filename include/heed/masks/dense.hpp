// SPDX-License-Identifier: MIT
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <type_traits>

#include <heed/core/error.hpp>
#include <heed/core/owned_array.hpp>
#include <heed/masks/detail/positions.hpp>
#include <heed/masks/policy.hpp>

namespace heed::detail {

template <class Values>
concept ListOfAnswers = requires(const Values& values, std::size_t i) {
  { values.size() } -> std::convertible_to<std::size_t>;
  { values[i] } -> std::convertible_to<float>;
};

/// A Tensor or a view, recognized by its members: masks do not include tensors.
template <class Matrix>
concept TensorOfAnswers = requires(const Matrix& matrix) {
  Matrix::rank();
  { matrix.extents()[0] } -> std::convertible_to<Index>;
};
template <class Matrix>
concept MatrixOfAnswers = TensorOfAnswers<Matrix> || requires(const Matrix& matrix, Index i) {
  { matrix.rows() } -> std::convertible_to<Index>;
  { matrix.cols() } -> std::convertible_to<Index>;
  matrix(i, i);
};

/// A std::vector, or a tensor or view of rank 1; no Eigen matrix.
template <class Values>
concept VectorOfAnswers = ListOfAnswers<Values> && !requires(const Values& values) {
  values.rows();
};

/// A list of lists, such as std::vector<std::vector<bool>>.
template <class Values>
concept ListOfLists = !MatrixOfAnswers<Values> && requires(const Values& values, std::size_t i) {
  { values[i].size() } -> std::convertible_to<std::size_t>;
};

template <MatrixOfAnswers Matrix>
MaskShape mask_shape_of(const Matrix& matrix) {
  if constexpr (TensorOfAnswers<Matrix>) {
    constexpr std::size_t rank = Matrix::rank();
    static_assert(rank >= 2 && rank <= 4,
                  "Dense takes (queries, keys), (heads, queries, keys) or "
                  "(batch, heads, queries, keys)");
    const auto extents = matrix.extents();
    return {rank < 4 ? 1 : extents[0], rank < 3 ? 1 : extents[rank - 3], extents[rank - 2],
            extents[rank - 1]};
  } else {
    return {1, 1, matrix.rows(), matrix.cols()};
  }
}

template <class Matrix>
auto answer_at(const Matrix& matrix, Index item, Index head, Index row, Index key) {
  if constexpr (TensorOfAnswers<Matrix>) {
    if constexpr (Matrix::rank() == 4) return matrix(item, head, row, key);
    if constexpr (Matrix::rank() == 3) return matrix(head, row, key);
    if constexpr (Matrix::rank() == 2) return matrix(row, key);
  } else {
    return matrix(row, key);
  }
}

/// Values up to this one hide a key: −inf, and PyTorch's `finfo.min` of float and bfloat16, which a
/// float bias treats as −inf too.
inline constexpr double largest_hiding = -2.4e38;

/// Whether a mask value shows its key: a bool itself, 0 yes and −inf no.
template <class T>
bool lets_through(const T& value, Index row, Index key) {
  if constexpr (std::is_same_v<T, bool>) {
    return value;
  } else {
    static_assert(!std::is_integral_v<T>,
                  "a mask holds bool (true: may look) or floating-point numbers (0 or -inf)");
    const auto number = static_cast<double>(value);
    if (number == 0) return true;
    if (!(number <= largest_hiding)) {
      throw_invalid_argument("Dense: ", number, " in row ", row, ", key ", key,
                             "; an additive mask holds 0 and -inf; other numbers are a bias, "
                             "AttentionOptions::bias");
    }
    return false;
  }
}

}  // namespace heed::detail

namespace heed::masks {

/// A matrix as a mask, stored as one bit per score. Its values are bools, true where a query may
/// look, or floating-point numbers in the additive form of other libraries: 0 where it may, and
/// −inf or a number of at most −2.4e38 (PyTorch's finfo.min of float) where it may not. Throws
/// InvalidArgument for any other number, which makes a bias, and for a first_query beyond 2⁶¹, and
/// ShapeError for extents that do not fit the values. Each of batch, heads, queries and keys has
/// the extent of the tensors, or 1 and is broadcast. Row r describes query r of the call, at
/// whatever position; outside a call, the last row belongs to the last key. With `first_query` the
/// rows are positions: row r describes the query at `first_query` + r, and the matrix may have more
/// rows and keys than the call. Queries outside the matrix see no key; keys outside it are seen by
/// no query.
class Dense {
 public:
  /// `allowed(batch, head, row, key)` for every element of `extents`.
  template <std::predicate<Index, Index, Index, Index> Allowed>
  Dense(MaskShape extents, Allowed allowed, std::optional<Index> first_query = {})
      : extents_(checked(extents)),
        first_query_(first_query ? checked(*first_query) : no_call),
        row_words_((extents.queries + 63) / 64),
        words_(written(extents, row_words_, allowed)) {}

  /// Row-major (batch, heads, queries, keys) values in a std::vector, std::array or std::span.
  template <detail::ListOfAnswers Values>
  Dense(const Values& values, MaskShape extents, std::optional<Index> first_query = {})
      : Dense(
            checked(values.size(), extents),
            [&](Index item, Index head, Index row, Index key) {
              return detail::lets_through(
                  values[static_cast<std::size_t>(
                      ((item * extents.heads + head) * extents.queries + row) * extents.keys +
                      key)],
                  row, key);
            },
            first_query) {}

  /// A tensor or view of (queries, keys), (heads, queries, keys) or (batch, heads, queries, keys),
  /// or an Eigen matrix or expression.
  template <detail::MatrixOfAnswers Matrix>
  explicit Dense(const Matrix& matrix, std::optional<Index> first_query = {})
      : Dense(
            detail::mask_shape_of(matrix),
            [&](Index item, Index head, Index row, Index key) {
              return detail::lets_through(detail::answer_at(matrix, item, head, row, key), row,
                                          key);
            },
            first_query) {}

  template <detail::ListOfLists Values>
  explicit Dense(const Values&, MaskShape = {}) {
    static_assert(detail::never<Values>,
                  "a vector of vectors is no matrix: flatten it, row behind row in one vector, and "
                  "pass heed::masks::Dense(flat, {batch, heads, queries, keys})");
  }

  template <detail::ListOfAnswers Values>
  requires(!detail::MatrixOfAnswers<Values>) explicit Dense(const Values&) {
    static_assert(
        detail::never<Values>,
        "a list is no matrix by itself: heed::masks::Dense(list, {1, 1, queries, keys}) says how "
        "long its rows are");
  }

  bool depends_on_head() const { return extents_.heads != 1; }
  MaskShape extents() const { return extents_; }

  bool allows(Position at) const {
    const Index row = extents_.queries == 1 ? 0 : at.query - first_row(at.call_first_query);
    if (row < 0 || row >= extents_.queries) return false;
    const std::uint64_t* bits = column(at.batch, at.head, at.key);
    return bits != nullptr && (bits[row / 64 * extents_.keys] >> (row % 64) & 1) != 0;
  }
  Coverage coverage(Tile tile) const {
    bool some = false, all = true;
    for (Tile part = tile; part.first_query <= tile.last_query; part.first_query += 64) {
      part.last_query = detail::smaller(part.first_query + 63, tile.last_query);
      const std::uint64_t everyone = lanes_between(0, part.queries() - 1);
      const std::uint64_t* stored = stored_words(part);
      for (Index key = tile.first_key; key <= tile.last_key; ++key) {
        const std::uint64_t word =
            (stored != nullptr ? stored[key - tile.first_key] : lanes(part, key)) & everyone;
        some = some || word != 0;
        all = all && word == everyone;
        if (some && !all) return Coverage::partial;
      }
    }
    return some ? Coverage::full : Coverage::none;
  }
  void lane_words(Tile tile, std::uint64_t* words) const {
    if (const std::uint64_t* stored = stored_words(tile)) {
      for (Index i = 0; i < tile.keys(); ++i) words[i] = stored[i];
      return;
    }
    for (Index key = tile.first_key; key <= tile.last_key; ++key) *words++ = lanes(tile, key);
  }
  void check(MaskShape shape) const {
    const bool of_positions = first_query_ != no_call || shape.partial;
    const auto fits = [](Index mine, Index theirs) { return mine == 1 || mine == theirs; };
    if (!(extents_.batch == 1 || shape.has_batch(extents_.batch)) ||
        !(extents_.heads == 1 || shape.has_heads(extents_.heads)) ||
        !(of_positions || fits(extents_.queries, shape.queries)) ||
        !(of_positions || fits(extents_.keys, shape.keys))) {
      throw_shape_error("Dense: mask of (batch, heads, queries, keys) ", extents_.extents(),
                        " for tensors of ", shape.extents(), "; each extent must be equal or 1");
    }
    if (first_query_ != no_call && !shape.partial) check_rows(first_query_, shape);
  }

 private:
  static MaskShape checked(const MaskShape& extents) {
    Index room = std::numeric_limits<Index>::max() / 2;
    for (const Index extent : extents.extents()) {
      if (extent < 0 || extent > room) {
        throw_shape_error("Dense: extents ", extents.extents(), " must be a sensible size");
      }
      if (extent > 0) room /= extent;
    }
    return extents;
  }
  static Index checked(Index first_query) {
    constexpr Index limit = std::numeric_limits<Index>::max() / 4;
    if (first_query > -limit && first_query < limit) return first_query;
    throw_invalid_argument("Dense: first_query ", first_query, " is out of range");
  }
  static MaskShape checked(std::size_t count, const MaskShape& extents) {
    checked(extents);
    const Index expected = extents.batch * extents.heads * extents.queries * extents.keys;
    if (static_cast<Index>(count) != expected) {
      throw_shape_error("Dense: ", count, " values for (batch, heads, queries, keys) ",
                        extents.extents(), ", expected ", expected);
    }
    return extents;
  }
  template <class Allowed>
  static detail::SharedArray<std::uint64_t> written(const MaskShape& extents, Index row_words,
                                                    Allowed& allowed) {
    const Index head_words = extents.keys * row_words;
    return detail::SharedArray<std::uint64_t>::filled(
        extents.batch * extents.heads * head_words, [&](std::uint64_t* words) {
          for (Index item = 0; item < extents.batch; ++item) {
            for (Index head = 0; head < extents.heads; ++head, words += head_words) {
              for (Index key = 0; key < extents.keys; ++key) {
                for (Index row = 0; row < extents.queries; ++row) {
                  const bool bit = allowed(item, head, row, key);
                  words[row / 64 * extents.keys + key] |= std::uint64_t{bit} << (row % 64);
                }
              }
            }
          }
        });
  }
  /// Checks that a matrix of positions contains those of the call; it may have more.
  void check_rows(Index first, const MaskShape& shape) const {
    const Index from = shape.first_query < 0 ? 0 : shape.first_query;
    if (extents_.queries != 1 && (first > from || shape.last_query - first >= extents_.queries)) {
      throw_shape_error("Dense: rows for the queries at positions ", first, " to ",
                        first + extents_.queries - 1, ", the call has ", from, " to ",
                        shape.last_query, "; partial(mask) where the others see nothing");
    }
    if (extents_.keys != 1) {
      detail::check_describes("Dense", "keys", extents_.keys, shape.keys, shape);
    }
  }
  /// The position that row 0 describes.
  Index first_row(Index call_first_query) const {
    if (first_query_ != no_call) return first_query_;
    return call_first_query == no_call ? extents_.keys - extents_.queries : call_first_query;
  }
  /// The word of a key's first 64 rows; the next 64 are `keys` words on. Null if key, head or item
  /// is outside the matrix.
  const std::uint64_t* column(Index item, Index head, Index key) const {
    if (extents_.batch == 1) item = 0;
    if (extents_.heads == 1) head = 0;
    if (extents_.keys == 1) key = 0;
    const bool inside = item >= 0 && item < extents_.batch && head >= 0 && head < extents_.heads &&
                        key < extents_.keys;
    const Index at = (item * extents_.heads + head) * extents_.keys * row_words_ + key;
    return inside ? words_.begin() + at : nullptr;
  }
  /// The lane words of a tile as they lie; null if its rows do not begin a word, or some of its
  /// keys are outside the matrix or broadcast.
  const std::uint64_t* stored_words(const Tile& tile) const {
    const Index row = tile.first_query - first_row(tile.call_first_query);
    const bool inside = row >= 0 && row < extents_.queries && tile.last_key < extents_.keys;
    if (!inside || row % 64 != 0 || extents_.queries == 1 || extents_.keys == 1) return nullptr;
    const std::uint64_t* bits = column(tile.batch, tile.head, tile.first_key);
    return bits != nullptr ? bits + row / 64 * extents_.keys : nullptr;
  }
  /// 64 rows of one column, from the tile's first query on.
  std::uint64_t lanes(const Tile& tile, Index key) const {
    const std::uint64_t* bits = column(tile.batch, tile.head, key);
    if (bits == nullptr) return 0;
    if (extents_.queries == 1) return (*bits & 1) != 0 ? ~std::uint64_t{0} : 0;
    const Index row = tile.first_query - first_row(tile.call_first_query);
    if (row <= -64 || row >= extents_.queries) return 0;
    return window_of_bits(bits, row_words_, row, extents_.keys);
  }

  MaskShape extents_;
  Index first_query_;  // no_call: row 0 is the first query of the call
  Index row_words_;
  detail::SharedArray<std::uint64_t> words_;  // [batch][head][row / 64][key], one bit per row
};

/// Any mask evaluated for tensors of `shape`, as bits. Row r has the answers for the query at
/// position shape.first_query + r, and stands for query r of the call. With `first_query`, row r
/// has and stands for the query at position `first_query` + r. Throws ShapeError for an unknown
/// batch or number of heads, and as the mask's check does.
template <MaskPolicy M>
Dense dense(const M& mask, MaskShape shape, std::optional<Index> first_query = {}) {
  const Index first = first_query.value_or(shape.first_query);
  shape.first_query = first;
  shape.last_query = first + shape.queries - 1;
  check_mask(mask, shape);
  return Dense(
      shape,
      [&](Index item, Index head, Index row, Index key) {
        return heed::allows(mask, {item, head, first + row, key, first});
      },
      first_query);
}

}  // namespace heed::masks
