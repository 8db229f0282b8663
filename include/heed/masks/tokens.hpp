// SPDX-License-Identifier: MIT
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <span>
#include <type_traits>
#include <utility>

#include <heed/core/error.hpp>
#include <heed/core/owned_array.hpp>
#include <heed/masks/combine.hpp>
#include <heed/masks/dense.hpp>
#include <heed/masks/detail/positions.hpp>
#include <heed/masks/intervals.hpp>
#include <heed/masks/policy.hpp>

namespace heed::masks {

/// Tokens see the tokens of their own group, at any position: speakers of a dialogue, turns,
/// documents in any order. `ids[i]` is the group of position i; positions outside see nothing. A
/// call throws ShapeError if it has tokens without an id.
class Groups {
 public:
  static constexpr bool depends_on_head = false;

  explicit Groups(detail::SharedArray<Index> ids) : ids_(std::move(ids)) {}
  explicit Groups(std::initializer_list<Index> ids) : ids_(ids) {}

  bool allows(Position at) const {
    return ids_.has(at.query) && ids_.has(at.key) && ids_[at.query] == ids_[at.key];
  }
  Coverage coverage(Tile tile) const {
    const Range queries = range(tile.first_query, tile.last_query);
    const Range keys = range(tile.first_key, tile.last_key);
    if (queries.empty || keys.empty || keys.highest < queries.lowest ||
        keys.lowest > queries.highest) {
      return Coverage::none;
    }
    const bool one_group = queries.lowest == queries.highest && keys.lowest == keys.highest;
    return one_group && !queries.clipped && !keys.clipped ? Coverage::full : Coverage::partial;
  }
  void lane_words(Tile tile, std::uint64_t* words) const {
    const Index first = detail::larger(-tile.first_query, 0);
    const Index past = detail::smaller(tile.queries(), ids_.size() - tile.first_query);
    for (Index key = tile.first_key; key <= tile.last_key; ++key) {
      std::uint64_t word = 0;
      for (Index lane = first; ids_.has(key) && lane < past; ++lane) {
        word |= std::uint64_t{ids_[tile.first_query + lane] == ids_[key]} << lane;
      }
      *words++ = word;
    }
  }
  void check(MaskShape shape) const { detail::check_describes("Groups", ids_.size(), shape); }

 private:
  struct Range {
    Index lowest = 0, highest = 0;
    bool empty = true, clipped = false;
  };
  Range range(Index first, Index last) const {
    Range range;
    for (Index position = first; position <= last; ++position) {
      if (!ids_.has(position)) {
        range.clipped = true;
        continue;
      }
      const Index group = ids_[position];
      if (range.empty || group < range.lowest) range.lowest = group;
      if (range.empty || group > range.highest) range.highest = group;
      range.empty = false;
    }
    return range;
  }

  detail::SharedArray<Index> ids_;
};

/// Consecutive groups of the given sizes: the turns of a dialogue of 5, 8, 6, 10 tokens. Throws
/// InvalidArgument for a size below 0 and for sizes whose sum cannot be counted.
inline Groups consecutive_groups(const detail::SharedArray<Index>& sizes) {
  Index total = 0;
  for (const Index size : sizes) {
    if (size < 0 || size > std::numeric_limits<Index>::max() - total) {
      throw_invalid_argument("consecutive_groups: size ", size,
                             ", expected 0 or more, and sums that can be counted");
    }
    total += size;
  }
  return Groups(detail::SharedArray<Index>::filled(total, [&](Index* ids) {
    for (Index group = 0; group < sizes.size(); ++group) {
      for (Index i = 0; i < sizes[group]; ++i) *ids++ = group;
    }
  }));
}

/// Tokens that do not see themselves, in any item; otherwise every token sees every token. BERT has
/// no such mask: its [MASK] takes the place of a token, and sees itself. `masked` lists the tokens'
/// positions. Throws InvalidArgument for a negative one; a call throws ShapeError for one that it
/// lacks.
class MaskedToken {
 public:
  static constexpr bool depends_on_head = false;

  explicit MaskedToken(std::initializer_list<Index> masked)
      : MaskedToken(detail::SharedArray<Index>(masked)) {}
  explicit MaskedToken(const detail::SharedArray<Index>& masked) : masked_(masked) {
    if (masked_.size() > 0 && masked_[0] < 0) {
      throw_invalid_argument("MaskedToken: position ", masked_[0], " must not be negative");
    }
  }

  bool allows(Position at) const { return at.key != at.query || !masked_.has(at.query); }
  Coverage coverage(Tile tile) const {
    const Index first = detail::larger(tile.first_query, tile.first_key);
    const Index last = detail::smaller(tile.last_query, tile.last_key);
    if (masked_.count(first, last) == 0) return Coverage::full;
    return tile.queries() == 1 && tile.keys() == 1 ? Coverage::none : Coverage::partial;
  }
  void lane_words(Tile tile, std::uint64_t* words) const {
    for (Index i = 0; i < tile.keys(); ++i) words[i] = ~std::uint64_t{0};
    const Index first = detail::larger(tile.first_query, tile.first_key);
    for (Index i = masked_.rank(first); i < masked_.size(); ++i) {
      if (masked_[i] > tile.last_query || masked_[i] > tile.last_key) return;
      words[masked_[i] - tile.first_key] ^= std::uint64_t{1} << (masked_[i] - tile.first_query);
    }
  }
  void check(MaskShape shape) const {
    if (masked_.size() > 0) detail::check_names("MaskedToken", masked_[masked_.size() - 1], shape);
  }

 private:
  detail::PositionSet masked_;
};

/// Keys that are valid or not, one by one, per batch item: padding anywhere (left, right, inside),
/// or the filled cells of an image grid. Keys that were not given are not valid. Coverage is exact,
/// by prefix sums. A call throws ShapeError for another batch or another number of keys.
class ValidKeys {
 public:
  static constexpr bool depends_on_head = false;

  /// `valid(item, key)` for every key of every item. Throws ShapeError for sizes below 0.
  template <std::predicate<Index, Index> Valid>
  ValidKeys(Index batch, Index keys, Valid valid)
      : batch_(batch), keys_(keys), counts_(counted(batch, keys, valid)) {}

  /// A matrix (batch, keys) of bools or numbers, a tensor or Eigen's: not 0 where a key is valid,
  /// as in the attention_mask of a tokenizer. Throws InvalidArgument for −∞, which masks have that
  /// are added to scores: Dense takes those.
  template <detail::MatrixOfAnswers Matrix>
  requires(!detail::VectorOfAnswers<Matrix>) explicit ValidKeys(const Matrix& valid)
      : ValidKeys(detail::mask_shape_of(valid).queries, detail::mask_shape_of(valid).keys,
                  [&](Index item, Index key) {
                    return says_valid(detail::answer_at(valid, 0, 0, item, key), item, key);
                  }) {
    if constexpr (detail::TensorOfAnswers<Matrix>) {
      static_assert(Matrix::rank() == 2, "ValidKeys takes a matrix of (batch, keys)");
    }
  }
  /// The same for one text, in a std::vector or a tensor of rank 1.
  template <detail::VectorOfAnswers Vector>
  explicit ValidKeys(const Vector& valid)
      : ValidKeys(1, static_cast<Index>(valid.size()), [&](Index item, Index key) {
          return says_valid(*(valid.begin() + key), item, key);
        }) {}
  /// The same from a list, `({true, true, false})`.
  template <std::size_t Keys>
  explicit ValidKeys(const bool (&valid)[Keys]) : ValidKeys(std::span(valid)) {}

  Index batch() const { return batch_; }
  Index keys() const { return keys_; }
  /// Number of valid keys of an item before this one.
  Index before(Index item, Index key) const { return key > 0 ? count(item, 0, key - 1) : 0; }

  bool allows(Position at) const { return count(at.batch, at.key, at.key) == 1; }
  Coverage coverage(Tile tile) const {
    const Index valid = count(tile.batch, tile.first_key, tile.last_key);
    if (valid == 0) return Coverage::none;
    return valid == tile.keys() ? Coverage::full : Coverage::partial;
  }
  void lane_words(Tile tile, std::uint64_t* words) const {
    for (Index key = tile.first_key; key <= tile.last_key; ++key) {
      *words++ = count(tile.batch, key, key) == 1 ? ~std::uint64_t{0} : 0;
    }
  }
  void check(MaskShape shape) const {
    if (!shape.has_batch(batch_)) {
      throw_shape_error("ValidKeys: made for a batch of ", batch_, ", used with ", shape.batch);
    }
    if (keys_ != shape.keys && !shape.partial) {
      throw_shape_error("ValidKeys: made for ", keys_, " keys, used with ", shape.keys,
                        "; partial(mask) for other keys on purpose");
    }
  }

 private:
  template <class Answer>
  static bool says_valid(Answer answer, Index item, Index key) {
    const auto number = static_cast<double>(answer);
    if (!(number >= 0)) {
      throw_invalid_argument("ValidKeys: ", number, " for key ", key, " of item ", item,
                             "; 1 is valid, 0 is not, and Dense takes 0 and −∞");
    }
    return number != 0;
  }
  template <class Valid>
  static detail::SharedArray<Index> counted(Index batch, Index keys, Valid& valid) {
    constexpr Index limit = std::numeric_limits<Index>::max() / 2;
    if (batch < 0 || keys < 0 || (batch > 0 && keys > limit / batch - 1)) {
      throw_shape_error("ValidKeys: ", batch, " items of ", keys,
                        " keys, expected 0 or more, and no more than can be counted");
    }
    return detail::SharedArray<Index>::filled(batch * (keys + 1), [&](Index* counts) {
      for (Index item = 0; item < batch; ++item) {
        Index count = 0;
        *counts++ = count;
        for (Index key = 0; key < keys; ++key) *counts++ = count += valid(item, key) ? 1 : 0;
      }
    });
  }
  /// Number of valid keys of an item in [first, last], first >= 0.
  Index count(Index item, Index first, Index last) const {
    if (item < 0 || item >= batch_ || first >= keys_) return 0;
    const Index row = item * (keys_ + 1);
    return counts_[row + (last < keys_ ? last + 1 : keys_)] - counts_[row + first];
  }

  Index batch_;
  Index keys_;
  detail::SharedArray<Index> counts_;  // [item][key]: number of valid keys before it
};

/// The filled cells of an image grid, `valid(item, row, column)`: position = row · columns +
/// column, as for GridNeighborhood. Throws InvalidArgument for rows or columns below 0, and for
/// more cells than can be counted.
template <std::predicate<Index, Index, Index> Valid>
ValidKeys valid_cells(Index batch, Index rows, Index columns, Valid valid) {
  Index cells = 0;
  if (rows < 0 || columns < 0 || __builtin_mul_overflow(rows, columns, &cells)) {
    throw_invalid_argument("valid_cells: ", rows, " × ", columns,
                           " cells, expected 0 or more, and no more than can be counted");
  }
  return ValidKeys(batch, cells, [&](Index item, Index cell) {
    return valid(item, cell / columns, cell % columns);
  });
}

/// A list of token ids: a vector, array or span of integers.
template <class Ids>
concept TokenIds = requires(const Ids& ids) {
  requires std::integral<typename decltype(std::span(ids))::value_type>;
};
template <TokenIds Ids>
using TokenOf = typename decltype(std::span(std::declval<const Ids&>()))::value_type;

/// Padding derived from token ids: `tokens` holds rows of `length` ids, one per batch item; every
/// id but `pad` is a real key. Throws ShapeError if `tokens` is not whole rows.
template <TokenIds Ids>
ValidKeys padding_of_tokens(const Ids& tokens, Index length, TokenOf<Ids> pad) {
  const std::span ids(tokens);
  const auto count = static_cast<Index>(ids.size());
  if (length < 0 || (length == 0 ? count != 0 : count % length != 0)) {
    throw_shape_error("padding_of_tokens: ", count, " ids are not rows of ", length);
  }
  return ValidKeys(length == 0 ? 0 : count / length, length, [&](Index item, Index key) {
    return ids[static_cast<std::size_t>(item * length + key)] != pad;
  });
}

/// The same for a matrix (batch, tokens) of ids, a tensor or Eigen's.
template <detail::MatrixOfAnswers Ids>
ValidKeys padding_of_tokens(const Ids& tokens, Index pad) {
  using Id = std::remove_cvref_t<decltype(detail::answer_at(tokens, 0, 0, 0, 0))>;
  static_assert(std::integral<Id>, "padding_of_tokens: ids of tokens are whole numbers");
  if constexpr (detail::TensorOfAnswers<Ids>) {
    static_assert(Ids::rank() == 2, "padding_of_tokens takes a matrix of (batch, tokens)");
  }
  const MaskShape shape = detail::mask_shape_of(tokens);
  return ValidKeys(shape.queries, shape.keys, [&](Index item, Index key) {
    return static_cast<Index>(detail::answer_at(tokens, 0, 0, item, key)) != pad;
  });
}

/// Speculative decoding over a tree of drafts. The first `cached` positions are the accepted text,
/// causal among themselves and seen by every node. Node i stands at position cached + i and sees
/// itself and its ancestors. `parents[i]` is the number of its parent node, below i, or -1 if it
/// follows the text directly. A node's place in its text is its depth and not its column: models
/// with positions need positions_of(tree, …), and biases and windows by distance do not fit. Throws
/// InvalidArgument for another parent and for `cached` below 0; a call throws ShapeError for tokens
/// beyond the nodes. Miao et al. 2024 (SpecInfer).
class Tree {
 public:
  static constexpr bool depends_on_head = false;

  Tree(Index cached, detail::SharedArray<Index> parents)
      : cached_(cached), parents_(std::move(parents)) {
    if (cached < 0 || cached > std::numeric_limits<Index>::max() / 2) {
      throw_invalid_argument("Tree: ", cached, " cached tokens, expected 0 or more");
    }
    for (Index node = 0; node < parents_.size(); ++node) {
      if (parents_[node] < -1 || parents_[node] >= node) {
        throw_invalid_argument("Tree: node ", node, " has parent ", parents_[node],
                               "; expected -1 or an earlier node");
      }
    }
    branches_ = branches_of(parents_);
  }

  bool allows(Position at) const {
    if (at.query < cached_ || at.key < cached_) return at.key <= at.query && at.query < end();
    if (at.query >= end() || at.key > at.query) return false;
    const Index node = branches_[at.query - cached_].first;
    const Branch branch = branches_[at.key - cached_];
    return branch.first <= node && node < branch.past;
  }
  Coverage coverage(Tile tile) const {
    if (tile.first_key > tile.last_query || tile.first_query >= end()) return Coverage::none;
    const bool all_cached = tile.last_key < cached_ && tile.last_key <= tile.first_query;
    return all_cached && tile.last_query < end() ? Coverage::full : Coverage::partial;
  }
  /// The cached text by its diagonal, then every query's ancestors once.
  void lane_words(Tile tile, std::uint64_t* words) const {
    for (Index key = tile.first_key; key <= tile.last_key; ++key) {
      words[key - tile.first_key] =
          key < cached_ ? lanes_between(key - tile.first_query, end() - 1 - tile.first_query) : 0;
    }
    for (Index query = tile.first_query; query <= tile.last_query && query < end(); ++query) {
      for (Index node = query - cached_; node >= 0 && node + cached_ >= tile.first_key;
           node = parents_[node]) {
        if (node + cached_ > tile.last_key) continue;
        words[node + cached_ - tile.first_key] |= std::uint64_t{1} << (query - tile.first_query);
      }
    }
  }
  void check(MaskShape shape) const { detail::check_describes("Tree", end(), shape); }

  /// The number of tokens before the nodes.
  Index cached() const { return cached_; }
  /// The place of a token of the text, or of a node, in the text that ends with it.
  Index place(Index column) const {
    Index depth = 0;
    for (Index node = column - cached_; node >= 0; node = parents_[node]) ++depth;
    return depth == 0 ? column : cached_ + depth - 1;
  }

 private:
  /// A node's number in a walk through the tree, depth first, and the one after its descendants.
  struct Branch {
    Index first = 0;
    Index past = 0;
  };
  static detail::SharedArray<Branch> branches_of(const detail::SharedArray<Index>& parents) {
    return detail::SharedArray<Branch>::filled(parents.size(), [&](Branch* branches) {
      Branch text;
      const auto parent_of = [&](Index node) -> Branch& {
        return parents[node] < 0 ? text : branches[parents[node]];
      };
      for (Index node = parents.size(); node-- > 0;) {  // `first` counts descendants
        parent_of(node).first += branches[node].first + 1;
      }
      for (Index node = 0; node < parents.size(); ++node) {  // `past` is the next free number
        Index& next = parent_of(node).past;
        const Index size = branches[node].first + 1;
        branches[node] = {next, next + 1};
        next += size;
      }
    });
  }
  Index end() const { return cached_ + parents_.size(); }

  Index cached_;
  detail::SharedArray<Index> parents_;
  detail::SharedArray<Branch> branches_;
};

/// The three masks of an encoder-decoder for one batch of padded token ids.
struct TranslationMasks {
  ValidKeys source;               // encoder: every real source token
  And<Causal, ValidKeys> target;  // decoder self-attention: real tokens up to its own position
  ValidKeys memory;               // cross-attention to the encoder: every real source token

  /// Of the real tokens of both sides. Throws ShapeError for batches of two sizes.
  static TranslationMasks of(const ValidKeys& source, const ValidKeys& target) {
    if (source.batch() != target.batch()) {
      throw_shape_error("create_masks: ", source.batch(), " source rows and ", target.batch(),
                        " target rows");
    }
    return {source, Causal{} & target, source};
  }
};

/// Source, target and memory masks from token ids: rows of `source_length` and `target_length` ids,
/// one per batch item, with `pad` at padded positions. The target mask hides padded keys. A common
/// recipe masks the rows of padded queries instead, which lets a real token see the padding before
/// it.
template <TokenIds Source, TokenIds Target>
TranslationMasks create_masks(const Source& source, Index source_length, const Target& target,
                              Index target_length, TokenOf<Source> pad) {
  static_assert(std::same_as<TokenOf<Source>, TokenOf<Target>>,
                "create_masks: source and target ids must have one integer type");
  return TranslationMasks::of(padding_of_tokens(source, source_length, pad),
                              padding_of_tokens(target, target_length, pad));
}
/// The same for matrices (batch, tokens) of ids: `create_masks(source, target, 0)`.
template <detail::MatrixOfAnswers Source, detail::MatrixOfAnswers Target>
TranslationMasks create_masks(const Source& source, const Target& target, Index pad) {
  return TranslationMasks::of(padding_of_tokens(source, pad), padding_of_tokens(target, pad));
}

}  // namespace heed::masks
