// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <concepts>
#include <initializer_list>
#include <limits>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include <heed/attention/key_value_cache.hpp>
#include <heed/attention/options.hpp>
#include <heed/core/config.hpp>
#include <heed/core/error.hpp>
#include <heed/layers/cached_attention.hpp>
#include <heed/layers/multi_head_attention.hpp>
#include <heed/layers/positions.hpp>
#include <heed/masks/intervals.hpp>
#include <heed/masks/mask.hpp>
#include <heed/masks/tokens.hpp>
#include <heed/models/language_model.hpp>

namespace heed {

/// Capacity, mask and memory layout of a session.
struct SessionOptions {
  Index batch = 1;
  Index max_length = 0;  // tokens of each sequence; 0: the model's
  /// Above 0, a sequence without room for its next tokens slides: its oldest tokens leave, in the
  /// smallest multiple of `slide` that makes room, and the others are read again at positions 0, 1,
  /// … The logits are those of a forward pass over the tokens that stay. With 1 the fewest tokens
  /// leave, but every new token costs a full pass; max_length / 2 costs one pass per that many
  /// tokens. While it slides, a session takes memory for its caches twice. 0: tokens without room
  /// are a ShapeError.
  Index slide = 0;
  /// Tokens per page of the caches, as in CacheShape; 0: one contiguous page per sequence.
  Index page_size = 0;
  Index pages = 0;  // in each cache, if page_size is not 0; 0: enough for all at full length
  /// Over positions within a sequence, the same mask for every sequence: reorder() moves them. Keys
  /// are seen by the tokens that come with them or later: under a mask that lets a token see later
  /// ones, such as a Prefix, those that it may see must come in the same call. Tokens stand at
  /// their places in the sequence; for a Tree, whose nodes do not, see Session::logits.
  Mask mask = masks::Causal{};
};

namespace detail {

/// The options with max_length filled in. Throws InvalidArgument for options that the model does
/// not support.
inline SessionOptions checked_options(SessionOptions options, const LanguageModelOptions& model) {
  if (options.max_length == 0) options.max_length = model.max_length;
  const bool table = model.block.positions == PositionKind::learned;
  if (options.batch < 1 || options.max_length < 1 || options.page_size < 0 || options.pages < 0 ||
      options.slide < 0 || options.slide > options.max_length ||
      (table && options.max_length > model.max_length)) {
    throw_invalid_argument("Session: batch ", options.batch, ", expected 1 or more; max_length ",
                           options.max_length, ", expected 1 ",
                           table ? "to the model's " : "or more; the model's is ", model.max_length,
                           "; slide ", options.slide, ", expected 0 to max_length; ", options.pages,
                           " pages of ", options.page_size, ", expected 0 or more");
  }
  return options;
}

inline CacheShape cache_shape(const SessionOptions& options,
                              const MultiHeadAttentionOptions& attention) {
  const Index heads = attention.kv_heads, dim = attention.head_dim;
  const Index length = options.max_length, page = options.page_size;
  if (page == 0) return CacheShape::contiguous(options.batch, heads, dim, dim, length);
  auto shape = CacheShape{options.batch, heads, dim, dim, page}.for_tokens(length);
  if (options.pages > 0) shape.pages = options.pages;
  return shape;
}

}  // namespace detail

/// Reads and generates with a language model a few tokens at a time. Caches keep the keys and
/// values of every block, so that each token is computed once. Logits have the bits of the model's
/// forward pass on the whole sequences, however these are cut into calls (but see
/// SessionOptions::mask) and whatever the other sequences hold. `Stored` may be bfloat16: half the
/// memory, other bits. Every call either succeeds or throws and leaves the session as it was:
/// ShapeError, InvalidArgument for a token outside the vocabulary, CacheFull, OutOfMemory. The
/// model is referenced, not copied. Sequences of unequal length need no padding: a token's position
/// is its place in its own sequence.
template <ModelScalar T, class Stored = T>
class Session {
 public:
  template <class Other>
  explicit Session(const LanguageModel<Other>&&, const SessionOptions& = {}) {
    static_assert(detail::never<Other>,
                  "a session refers to its model: give the model a name first");
  }
  template <class Other>
  requires(!std::is_same_v<Other, T>) explicit Session(const LanguageModel<Other>&,
                                                       const SessionOptions& = {}) {
    static_assert(detail::never<Other>,
                  "a session has the scalar type of its model: Session<double> of a "
                  "LanguageModel<double>");
  }
  /// Throws InvalidArgument for options that are negative, a batch of 0, a slide above max_length,
  /// and a max_length above that of learned positions; ShapeError for a page_size that is not a
  /// multiple of 16.
  explicit Session(const LanguageModel<T>& model, const SessionOptions& options = {});

  /// The number of sequences; 0 of a session that has been moved from.
  Index batch() const { return static_cast<Index>(lengths_.size()); }
  /// The number of tokens in a sequence, without those that slid out of it.
  Index length(Index item = 0) const {
    check_item(item);
    return lengths_[static_cast<std::size_t>(item)];
  }

  /// The number of tokens that a sequence can still read: without end where old ones make room.
  Index room(Index item = 0) const {
    if (options_.slide > 0) return std::numeric_limits<Index>::max();
    Index room = options_.max_length - length(item);
    for (const auto& cache : caches_) room = detail::smaller(room, cache.room(item));
    return room;
  }

  /// Reads the next tokens of every sequence, possibly none for some, and returns the logits of the
  /// token after them: (batch, vocabulary), rows of 0 where there were none.
  Tensor<T, 2> prefill(std::span<const std::vector<Index>> tokens);
  Tensor<T, 2> prefill(std::initializer_list<std::vector<Index>> tokens) {
    return prefill(std::span(tokens.begin(), tokens.size()));
  }
  /// The same with lists of any integers, or with the rows of a matrix, such as Tokens.
  template <detail::ListsOf<Index> Lists>
  requires(!std::is_convertible_v<const Lists&, std::span<const std::vector<Index>>>)
      Tensor<T, 2> prefill(const Lists& tokens) {
    std::vector<std::vector<Index>> same;
    for (std::size_t i = 0; i < detail::count_of_lists(tokens); ++i) {
      const OwnedArray<Index> list = detail::list_at(tokens, i);
      same.emplace_back(list.begin(), list.end());
    }
    return prefill(same);
  }
  /// The same for a session of one sequence: a list of any integers.
  Tensor<T, 2> prefill(const OwnedArray<Index>& tokens) {
    return prefill({std::vector<Index>(tokens.begin(), tokens.end())});
  }
  /// The same with one token for every sequence, a list of any integers.
  Tensor<T, 2> step(const OwnedArray<Index>& tokens) {
    std::vector<std::vector<Index>> each;
    for (const Index token : tokens) each.push_back({token});
    return prefill(each);
  }
  template <std::integral Token>  // a template: `{}` is no token
  Tensor<T, 2> step(Token token) {
    return step({static_cast<Index>(token)});
  }
  /// The interface of `generate`, for a session of one sequence: the logits (vocabulary) after
  /// `tokens`.
  Tensor<T, 1> operator()(std::span<const Index> tokens) {
    check_one_sequence();
    auto logits = prefill(OwnedArray<Index>::borrowed(tokens));
    const Index vocabulary = logits.extent(1);
    return std::move(logits).reshaped(Extents<1>{vocabulary});
  }
  /// The logits after every one of the next tokens, (batch, tokens, vocabulary). Never slides:
  /// tokens without room are a ShapeError, whatever `slide` is.
  Tensor<T, 3> logits(const Tokens& tokens) { return logits(tokens, options_.mask); }
  /// The same under another mask, for this call alone. It and `positions` are over whole sequences,
  /// with the tokens of earlier calls, up to the longest one. Throws ShapeError where they do not
  /// fit these.
  Tensor<T, 3> logits(const Tokens& tokens, const Mask& mask, const Positions& positions = {});
  Tensor<T, 3> logits(const Tokens& tokens, const std::same_as<Positions> auto& positions) {
    return logits(tokens, options_.mask, positions);
  }
  /// The same for nodes of a tree of drafts, each at its place in its own text; a Mask that holds a
  /// Tree is any mask. Only one branch can stay: truncate the sequence to the text, and read the
  /// accepted tokens. Throws InvalidArgument for a model that counts columns, in masks of its
  /// layers or biases by distance, and for a tree behind more text than a sequence has.
  Tensor<T, 3> logits(const Tokens& nodes, const masks::Tree& tree) {
    check_counts_no_columns();
    for (const Index length : lengths_) {
      if (length >= tree.cached()) continue;
      throw_invalid_argument("Session: a Tree behind ", tree.cached(),
                             " tokens, where a sequence has ", length);
    }
    const Index tokens = detail::sum_or_most(length(), nodes.extent(1));
    return logits(nodes, tree, positions_of(tree, {1, tokens}));
  }
  /// The same with a list of any integers, for a session of one sequence.
  template <detail::ListOf<Index> List, class... More>
  requires(!Viewable<const List> ||
           ViewOf<const List>::rank() == 1) Tensor<T, 3> logits(const List& tokens,
                                                                const More&... more) {
    return logits(Tokens({1, static_cast<Index>(tokens.size())}, tokens), more...);
  }
  template <class... More>
  Tensor<T, 3> logits(std::initializer_list<Index> tokens, const More&... more) {
    return logits(std::span(tokens.begin(), tokens.size()), more...);
  }

  /// Replaces sequence i by a copy of sequence parents[i], a list of any integers, for all i at
  /// once: beam search.
  void reorder(const OwnedArray<Index>& parents);
  /// Shortens a sequence to its first `length` tokens; 0 starts anew.
  void truncate(Index item, Index length) {
    check_item(item);
    if (length < 0 || length > this->length(item)) {
      throw_shape_error("Session: truncate to ", length, " tokens where there are ",
                        this->length(item));
    }
    for (auto& cache : caches_) cache.truncate(item, length);
    lengths_[static_cast<std::size_t>(item)] = length;
    texts_[static_cast<std::size_t>(item)].resize(static_cast<std::size_t>(length));
  }
  /// The same for a session of one sequence.
  void truncate(Index length) {
    check_one_sequence();
    truncate(0, length);
  }
  void clear() {
    for (Index item = 0; item < batch(); ++item) truncate(item, 0);
  }

 private:
  struct Ragged {
    Tokens tokens;  // (1, all of them)
    std::vector<Index> counts;
    bool last = false;  // only the logits after the last token of each sequence are wanted
  };

  void check_item(Index item) const {
    if (item < 0 || item >= batch()) throw_shape_error("Session: sequence ", item, " of ", batch());
  }

  void check_one_sequence() const {
    if (batch() != 1) throw_shape_error("Session: one sequence wanted, there are ", batch());
  }
  void check_counts_no_columns() const {
    for (std::size_t i = 0; i < model_->blocks.size(); ++i) {
      const auto& layer = model_->blocks[i].attention;
      const bool masked = layer.own_mask || layer.options.window != 0;
      if (!masked && !layer.score_bias.relative && layer.score_bias.slopes.empty()) continue;
      throw_invalid_argument("Session: block ", i, " has ",
                             masked ? "a mask of its own" : "a bias by distance",
                             ", which counts columns; nodes of a Tree stand at their depths");
    }
  }
  void check_batch(std::span<const std::vector<Index>> tokens) const {
    if (static_cast<Index>(tokens.size()) == batch()) return;
    throw_shape_error("Session: tokens of ", tokens.size(), " sequences for a batch of ", batch());
  }
  bool fits(std::span<const std::vector<Index>> tokens) const {
    for (std::size_t item = 0; item < tokens.size(); ++item) {
      const Index room = options_.max_length - lengths_[item];
      if (static_cast<Index>(tokens[item].size()) > room) return false;
    }
    return true;
  }
  /// prefill where old tokens leave. Works on a copy, so that a failure leaves this session as it
  /// was.
  Tensor<T, 2> slide(std::span<const std::vector<Index>> tokens);
  Ragged flattened(std::span<const std::vector<Index>> tokens) const {
    Ragged ragged;
    std::vector<Index> all;
    for (Index item = 0; item < batch(); ++item) {
      const auto& next = tokens[static_cast<std::size_t>(item)];
      const auto count = static_cast<Index>(next.size());
      if (count > options_.max_length - length(item)) {
        throw_shape_error("Session: ", count, " more tokens than the ", length(item),
                          " that it holds pass its max_length, ", options_.max_length,
                          "; with SessionOptions::slide old tokens make room");
      }
      ragged.counts.push_back(count);
      all.insert(all.end(), next.begin(), next.end());
    }
    ragged.tokens = Tokens({1, static_cast<Index>(all.size())}, all);
    return ragged;
  }

  /// Reads tokens and returns `finish(logits)` of the logits (1, tokens, vocabulary) after all of
  /// them, or after the last ones of their sequences.
  template <class Finish>
  auto advance(const Ragged& next, const Mask& mask, const Positions& positions,
               const Finish& finish) {
    std::vector<typename KeyValueCache<T, Stored>::Ends> ends;
    for (const auto& cache : caches_) ends.push_back(cache.ends());
    detail::OnFailure step_back([&] {
      for (std::size_t i = 0; i < caches_.size(); ++i) caches_[i].take_back(ends[i]);
      for (std::size_t item = 0; item < texts_.size(); ++item) {
        texts_[item].resize(static_cast<std::size_t>(lengths_[item]));
      }
    });
    auto x = hidden(next, mask, positions);
    if (model_->norm) x = model_->norm->forward(x);
    auto result = finish(model_->head.forward(x, model_->input.embedding));
    const Index* token = next.tokens.data();
    for (std::size_t item = 0; item < texts_.size(); token += next.counts[item++]) {
      texts_[item].insert(texts_[item].end(), token, token + next.counts[item]);
    }
    for (std::size_t item = 0; item < lengths_.size(); ++item) lengths_[item] += next.counts[item];
    step_back.done();
    return result;
  }
  /// The output of the last block, (1, tokens, model_dim); advances the caches.
  Tensor<T, 3> hidden(const Ragged& next, const Mask& mask, const Positions& positions) {
    const auto& counts = next.counts;
    auto x = embedded(next, positions);
    if (next.last && caches_.empty()) return detail::rows_of_sequences(x, counts, true);
    for (std::size_t i = 0; i < caches_.size(); ++i) {
      const auto& block = model_->blocks[i];
      if (next.last && i + 1 == caches_.size()) {
        return last_tokens_forward(block, x, counts, caches_[i], mask);
      }
      x = block.forward_around(std::move(x), [&](const Tensor<T, 3>& in) {
        return cached_attention(block.attention, in, counts, caches_[i], mask, positions);
      });
    }
    return x;
  }
  Tensor<T, 3> embedded(const Ragged& next, const Positions& positions) const {
    const Tokens& tokens = next.tokens;
    auto x = Tensor<T, 3>::uninitialized({1, tokens.size(), model_->options.block.model_dim});
    Index row = 0;
    for (Index item = 0; item < batch(); ++item) {
      const Index count = next.counts[static_cast<std::size_t>(item)];
      const auto own = Tokens::copy_of(tokens.view().slice(1, row, row + count));
      const auto at = positions.row(item).columns(length(item), count);
      const auto part = model_->input.forward(own, at);
      std::copy_n(part.data(), part.size(), x.data() + row * x.extent(2));
      row += count;
    }
    return x;
  }

  const LanguageModel<T>* model_;
  SessionOptions options_;
  std::vector<Index> lengths_;
  std::vector<std::vector<Index>> texts_;  // the tokens in the caches
  std::vector<KeyValueCache<T, Stored>> caches_;
};

template <ModelScalar T, class Stored>
Session<T, Stored>::Session(const LanguageModel<T>& model, const SessionOptions& options)
    : model_(&model),
      options_(detail::checked_options(options, model.options)),
      lengths_(static_cast<std::size_t>(options_.batch), 0),
      texts_(lengths_.size()) {
  for (const auto& block : model.blocks) {
    caches_.emplace_back(detail::cache_shape(options_, block.attention.options));
  }
}

template <ModelScalar T, class Stored>
Tensor<T, 2> Session<T, Stored>::prefill(std::span<const std::vector<Index>> tokens) {
  check_batch(tokens);
  if (options_.slide > 0 && !fits(tokens)) return slide(tokens);
  auto next = flattened(tokens);
  next.last = true;
  return advance(next, options_.mask, {}, [&](const Tensor<T, 3>& logits) {
    const Index vocabulary = logits.extent(2);
    Tensor<T, 2> result({batch(), vocabulary});
    const T* from = logits.data();
    for (Index item = 0; item < batch(); ++item) {
      if (next.counts[static_cast<std::size_t>(item)] == 0) continue;
      std::copy_n(from, vocabulary, result.data() + item * vocabulary);
      from += vocabulary;
    }
    return result;
  });
}

template <ModelScalar T, class Stored>
Tensor<T, 3> Session<T, Stored>::logits(const Tokens& tokens, const Mask& mask,
                                        const Positions& positions) {
  std::vector<std::vector<Index>> rows;
  for (Index item = 0; item < tokens.extent(0); ++item) {
    const Index* row = tokens.data() + item * tokens.extent(1);
    rows.emplace_back(row, row + tokens.extent(1));
  }
  check_batch(rows);
  const Index longest = *std::max_element(lengths_.begin(), lengths_.end());
  positions.check("Session", {batch(), detail::sum_or_most(longest, tokens.extent(1))});
  return advance(flattened(rows), mask, positions, [&](Tensor<T, 3>&& logits) {
    const Index vocabulary = logits.extent(2);
    return std::move(logits).reshaped(Extents<3>{batch(), tokens.extent(1), vocabulary});
  });
}

template <ModelScalar T, class Stored>
void Session<T, Stored>::reorder(const OwnedArray<Index>& parents) {
  if (static_cast<Index>(parents.size()) != batch()) {
    throw_shape_error("Session: ", parents.size(), " parents for a batch of ", batch());
  }
  std::vector<Index> lengths;
  std::vector<std::vector<Index>> texts;
  for (const Index parent : parents) {
    lengths.push_back(length(parent));
    texts.push_back(texts_[static_cast<std::size_t>(parent)]);
  }
  std::vector<typename KeyValueCache<T, Stored>::Places> places;
  for (const auto& cache : caches_) places.push_back(cache.places());
  for (std::size_t i = 0; i < caches_.size(); ++i) caches_[i].reorder(parents, places[i]);
  lengths_ = std::move(lengths);
  texts_ = std::move(texts);
}

template <ModelScalar T, class Stored>
Tensor<T, 2> Session<T, Stored>::slide(std::span<const std::vector<Index>> tokens) {
  Session other = *this;
  std::vector<std::vector<Index>> next(tokens.begin(), tokens.end());
  for (std::size_t item = 0; item < next.size(); ++item) {
    auto& all = next[item];
    const auto count = static_cast<Index>(all.size());
    const Index over = lengths_[item] + count - options_.max_length;
    if (over <= 0) continue;
    const Index leaving = detail::parts_of(over, options_.slide) * options_.slide;
    all.insert(all.begin(), texts_[item].begin(), texts_[item].end());
    all.erase(all.begin(), all.begin() + leaving);
    other.truncate(static_cast<Index>(item), 0);
  }
  auto logits = other.prefill(next);
  lengths_ = std::move(other.lengths_);
  texts_ = std::move(other.texts_);
  caches_ = std::move(other.caches_);
  return logits;
}

HEED_LINKED_TEMPLATE(class, Session)

}  // namespace heed
