// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstring>
#include <limits>
#include <span>
#include <stdexcept>
#include <type_traits>
#include <utility>

#include <heed/attention/detail/operands.hpp>
#include <heed/attention/options.hpp>
#include <heed/core/bfloat16.hpp>
#include <heed/core/error.hpp>
#include <heed/core/index.hpp>
#include <heed/tensor/detail/page_tables.hpp>
#include <heed/tensor/tensor.hpp>
#include <heed/tensor/view_of.hpp>

namespace heed {

// Sizes and errors. -------------------------------------------------------------------------------

/// The sizes of a KeyValueCache and of its pages. `KeyValueCache<T>::for_tokens` counts the pages.
struct CacheShape {
  static constexpr Index same_as_keys = -1;
  Index batch = 1;  // sequences
  Index kv_heads = 1;
  Index head_dim = 1;
  Index value_dim = same_as_keys;  // same_as_keys: head_dim
  /// Tokens per page, a multiple of 16. Pages of a multiple of 96 are read without copying.
  Index page_size = 96;
  /// Total number of pages, for all sequences.
  Index pages = 1;

  /// A contiguous cache: one page per sequence, of at least `length` tokens. Throws ShapeError for
  /// a length that is negative or too large to round up.
  static CacheShape contiguous(Index batch, Index kv_heads, Index head_dim, Index value_dim,
                               Index length);
  /// The same shape, with enough pages for `length` tokens in every sequence. Throws ShapeError if
  /// the page count overflows.
  CacheShape for_tokens(Index length) const;
};

namespace detail {

/// The shape with value_dim filled in; throws if no cache can have this shape.
CacheShape checked(CacheShape shape);

/// Sizes by the name that layers have for heads. A template takes them, so that of two that fit,
/// CacheShape is taken.
struct SizesOfHeads {
  Index batch = 0, heads = 0, kv_heads = 0, head_dim = 0, value_dim = 0, page_size = 0, pages = 0;
};

/// The shape of a cache: one without sequences is left behind where the cache is moved away.
struct HeldShape : CacheShape {
  explicit HeldShape(const CacheShape& shape) : CacheShape(shape) {}
  HeldShape(const HeldShape&) = default;
  HeldShape& operator=(const HeldShape&) = default;
  HeldShape(HeldShape&& other) noexcept : CacheShape(other) { other.batch = 0; }
  HeldShape& operator=(HeldShape&& other) noexcept {
    CacheShape::operator=(other);
    if (this != &other) other.batch = 0;
    return *this;
  }
};

}  // namespace detail

/// The cache has too few free pages for an operation; the cache is unchanged.
class CacheFull : public detail::ErrorAs<std::length_error> {
 public:
  using ErrorAs::ErrorAs;
};

namespace detail {

// Programs call these functions rather than compile them: every program that includes
// <heed/attention.hpp> would.

/// The numbers; a conversion would be compiled in every program.
std::span<const Index> list_of(const Tensor<Index, 1>& numbers);
/// The lengths of sequences with more tokens each.
Tensor<Index, 1> lengthened(std::span<const Index> lengths, Index tokens);

}  // namespace detail

// The cache. --------------------------------------------------------------------------------------

/// Keys and values of all tokens so far, for attention one or several tokens at a time. Sequences
/// grow by `append` and shrink by `truncate`. Sequences can share pages (`fork`, `reorder`); a
/// shared page is copied when one of them writes to it. `forget` frees the pages of tokens that a
/// sliding window has left behind. Stored as T, or as bfloat16 in half the memory of float. Every
/// operation succeeds, or throws (ShapeError, CacheFull, bad_alloc) and leaves the cache unchanged.
template <class T, class Stored = T>
class KeyValueCache {
  static_assert(std::is_same_v<Stored, T> || std::is_same_v<Stored, bfloat16>,
                "KeyValueCache stores its own scalar type or bfloat16");

 public:
  template <class Sizes = T>
  KeyValueCache() : KeyValueCache(CacheShape()) {
    static_assert(detail::never<Sizes>,
                  "a cache is made with its sizes: KeyValueCache<float>::for_tokens({.batch = 1, "
                  ".kv_heads = 2, .head_dim = 64}, length)");
  }
  template <class Sizes = T>
  explicit KeyValueCache(const detail::SizesOfHeads&) : KeyValueCache(CacheShape()) {
    static_assert(detail::never<Sizes>, "a cache holds the heads of keys: {.kv_heads = 2}");
  }
  explicit KeyValueCache(const CacheShape& shape)
      : shape_(detail::checked(shape)),
        pool_(shape_.pages),
        tables_(shape_.batch),
        lengths_({shape_.batch}),
        starts_({shape_.batch}),
        kept_({shape_.batch}),
        keys_({shape_.pages, shape_.kv_heads, shape_.page_size, shape_.head_dim}),
        values_({shape_.pages, shape_.kv_heads, shape_.page_size, shape_.value_dim}) {}
  /// A cache with enough pages, of shape.page_size, for `length` tokens in every sequence. Throws
  /// ShapeError.
  static KeyValueCache for_tokens(const CacheShape& shape, Index length) {
    return KeyValueCache(shape.for_tokens(length));
  }
  template <class Sizes = T>
  static KeyValueCache for_tokens(const detail::SizesOfHeads& sizes, Index) {
    return KeyValueCache(sizes);
  }
  KeyValueCache(const KeyValueCache&) = default;
  /// Leaves a cache without sequences behind, as does the assignment.
  KeyValueCache(KeyValueCache&&) noexcept = default;
  KeyValueCache& operator=(KeyValueCache&&) noexcept = default;
  /// Leaves this cache unchanged if memory runs out.
  KeyValueCache& operator=(const KeyValueCache& other) { return *this = KeyValueCache(other); }

  const CacheShape& shape() const { return shape_; }
  /// Number of tokens of each sequence, including forgotten ones: the position of its next token.
  std::span<const Index> lengths() const { return detail::list_of(lengths_); }
  Index length(Index item) const { return lengths_[slot(item)]; }
  /// The first token of each sequence behind those that are forgotten.
  std::span<const Index> starts() const { return detail::list_of(starts_); }
  /// How many tokens before the forgotten ones are kept.
  std::span<const Index> kept() const { return detail::list_of(kept_); }
  Index free_pages() const { return pool_.available(); }
  /// The number of tokens that can be appended to a sequence, if no other takes the free pages.
  Index room(Index item) const {
    const bool copies = holders_of_partial_page(slot(item)) > 1;
    const Index free = free_pages() - (copies ? 1 : 0);
    return free < 0 ? 0 : (tables_.size(item) + free) * shape_.page_size - length(item);
  }

  /// Throws CacheFull unless counts[i] more tokens fit each sequence i, all of them together, and
  /// ShapeError for another number of counts than sequences, or one below 0.
  void check_room(std::span<const Index> counts) const {
    if (static_cast<Index>(counts.size()) != lengths_.extent(0)) {
      throw_shape_error("KeyValueCache: ", counts.size(), " counts of tokens for a batch of ",
                        lengths_.extent(0));
    }
    for (const Index count : counts) {
      if (count < 0) throw_shape_error("KeyValueCache: a count of ", count, " tokens");
    }
    check_pages(pages_wanted([&](Index item) { return counts[static_cast<std::size_t>(item)]; }));
  }

  /// Appends tokens to one sequence: keys (kv_heads, tokens, head_dim), values likewise.
  void append(Index item, const TensorView<const T, 3>& keys,
              const TensorView<const T, 3>& values) {
    slot(item);
    check_tokens(keys, values);
    const Index tokens = keys.extent(1);
    const Index more = missing(item, tokens);
    const bool copies = tokens > 0 && holders_of_partial_page(item) > 1;
    check_pages(more + (copies ? 1 : 0));
    tables_.make_room(tables_.size(item) + more);
    if (copies) replace_last_page(item, pool_.take());
    for (Index page = 0; page < more; ++page) tables_.push(item, pool_.take());
    const Index first = length(item);
    for (Index token = 0, count = 0; token < tokens; token += count) {
      const Index page = tables_.of(item)[(first + token) / shape_.page_size];
      const Index at = (first + token) % shape_.page_size;
      count = detail::smaller(tokens - token, shape_.page_size - at);
      for (Index head = 0; head < shape_.kv_heads; ++head) {
        const Index row = (page * shape_.kv_heads + head) * shape_.page_size + at;
        store_rows(keys, head, token, count, keys_.data() + row * shape_.head_dim);
        store_rows(values, head, token, count, values_.data() + row * shape_.value_dim);
      }
    }
    lengths_[slot(item)] += tokens;
  }
  /// The same of tensors, temporary ones too, and of what else decode takes.
  template <Viewable K, Viewable V>
  void append(Index item, const K& keys, const V& values) {
    const TensorView<const T, 3> k = detail::with_leading_axes<3>(view_of(keys));
    const TensorView<const T, 3> v = detail::with_leading_axes<3>(view_of(values));
    append(item, k, v);
  }

  /// Appends tokens to every sequence: keys (batch, kv_heads, tokens, head_dim), values likewise;
  /// leading axes may be left out, as in decode.
  template <Viewable K, Viewable V>
  void append(const K& keys, const V& values) {
    const TensorView<const T, 4> k = detail::with_leading_axes<4>(view_of(keys));
    const TensorView<const T, 4> v = detail::with_leading_axes<4>(view_of(values));
    if (k.extent(0) != shape_.batch || v.extent(0) != shape_.batch) {
      throw_shape_error("KeyValueCache: keys are ", k.extents(), ", values ", v.extents(),
                        ", for a batch of ", shape_.batch);
    }
    if (shape_.batch == 0) return;
    check_tokens(k.select(0, 0), v.select(0, 0));
    if (k.extent(2) == 0) return;
    check_pages(pages_wanted([&](Index) { return k.extent(2); }));
    Index longest = 0;
    for (Index item = 0; item < shape_.batch; ++item) {
      longest = detail::larger(longest, tables_.size(item) + missing(item, k.extent(2)));
    }
    tables_.make_room(longest);
    for (Index i = 0; i < shape_.batch; ++i) append(i, k.select(0, i), v.select(0, i));
  }

  /// Where the sequences end, by their last pages.
  struct Ends {
    Tensor<Index, 1> lengths, pages;
  };
  /// The current ends, for `take_back`.
  Ends ends() const {
    Ends ends{lengths_, Tensor<Index, 1>(lengths_.extents())};
    for (Index item = 0; item < lengths_.extent(0); ++item) {
      if (tables_.size(item) > 0) ends.pages[item] = tables_.last(item);
    }
    return ends;
  }
  /// Undoes every `append` since `ends()`, when nothing else may have changed the cache; allocates
  /// nothing. Pages that were copied are shared again, where truncate would leave the copies.
  void take_back(const Ends& before) {
    for (Index item = 0; item < lengths_.extent(0); ++item) {
      truncate(item, before.lengths[item]);
      if (length(item) % shape_.page_size == 0 || tables_.last(item) == before.pages[item])
        continue;
      // The page is there: the last of those that shared it has it still. If it ended before this
      // sequence does, it has written over tokens, of which the copy has the old numbers.
      pool_.retain(before.pages[item]);
      replace_last_page(item, before.pages[item]);
    }
  }

  /// Removes tokens from the end, down to `length`.
  void truncate(Index item, Index length) {
    if (length < starts_[slot(item)] || length > this->length(item)) {
      throw_shape_error("KeyValueCache: truncate to ", length, " tokens where there are ",
                        starts_[slot(item)], " to ", this->length(item));
    }
    const Index keep = detail::parts_of(length, shape_.page_size);
    while (tables_.size(item) > keep) {
      if (tables_.last(item) >= 0) pool_.release(tables_.last(item));
      tables_.pop(item);
    }
    lengths_[slot(item)] = length;
  }

  /// Forgets the pages whose tokens all precede `position`, but for those of the first `keep`
  /// tokens, and frees those that no other sequence holds. Earlier tokens in the page of `position`
  /// are kept, and later ones in that of the last of the first: see `starts` and `kept`. No mask
  /// has to account for this: no query sees a forgotten token. What was forgotten does not return
  /// with a larger `keep`; a negative `position` precedes all of them. Throws ShapeError for a
  /// `position` beyond the last token.
  void forget(Index item, Index position, Index keep = 0) {
    const Index size = shape_.page_size, begin = starts_[slot(item)] / size;
    if (position > length(item)) {
      throw_shape_error("KeyValueCache: forget what precedes ", position, " where there are ",
                        length(item), " tokens");
    }
    const Index end = detail::larger(begin, position / size);
    const Index wanted = keep > 0 ? detail::parts_of(detail::smaller(keep, end * size), size) : 0;
    const Index kept = begin > 0 ? kept_[item] / size : end;
    const Index first = detail::smaller(wanted, kept);
    for (Index page = first; page < end; ++page) {
      if (page >= kept && page < begin) continue;  // forgotten before
      pool_.release(tables_.at(item, page));
      tables_.at(item, page) = -1;
    }
    if (first == end) return;  // nothing is forgotten
    starts_[item] = end * size;
    kept_[item] = first * size;
  }

  /// Makes sequence `to` a copy of `from` that shares its pages.
  void fork(Index from, Index to) {
    if (slot(from) == slot(to)) return;
    retain(tables_, from);
    drop(to);
    tables_.copy(tables_, from, to);
    lengths_[slot(to)] = lengths_[slot(from)];
    starts_[slot(to)] = starts_[slot(from)];
    kept_[slot(to)] = kept_[slot(from)];
  }

  struct Places {
    detail::PageTables tables;
    Tensor<Index, 1> lengths, starts, kept;
  };
  /// The current page tables, lengths and starts, for `reorder`.
  Places places() const { return {tables_, lengths_, starts_, kept_}; }
  /// Makes each sequence i share the pages of the former sequence parents[i]. With `now`, it
  /// allocates nothing; `now` must be the `places()` of this cache as it is, which is not checked.
  /// Throws ShapeError for another number of parents than sequences, and for one that is none of
  /// them.
  void reorder(const OwnedArray<Index>& parents) { reorder(parents, places()); }
  void reorder(std::span<const Index> parents, const Places& now) {
    if (static_cast<Index>(parents.size()) != shape_.batch) {
      throw_shape_error("KeyValueCache: ", parents.size(), " parents for a batch of ",
                        shape_.batch);
    }
    for (const Index parent : parents) slot(parent);
    for (const Index parent : parents) retain(now.tables, parent);
    for (Index item = 0; item < shape_.batch; ++item) drop(item);
    for (Index item = 0; item < shape_.batch; ++item) {
      const Index parent = parents[static_cast<std::size_t>(item)];
      tables_.copy(now.tables, parent, item);
      lengths_[item] = now.lengths[parent];
      starts_[item] = now.starts[parent];
      kept_[item] = now.kept[parent];
    }
  }

  /// The page tables of some sequences, which `find_pages` fills in.
  using Tables = std::span<const Index* const>;
  /// Keys and values of up to `length` tokens of these sequences, as attention in Compute reads
  /// them.
  template <class Compute>
  detail::Operand<Compute> keys(Tables tables, Index length) const {
    return operand<Compute>(keys_, tables, length, shape_.head_dim);
  }
  template <class Compute>
  detail::Operand<Compute> values(Tables tables, Index length) const {
    return operand<Compute>(values_, tables, length, shape_.value_dim);
  }
  void find_pages(Tensor<const Index*, 1>& tables) const {
    for (Index item = 0; item < shape_.batch; ++item) tables[item] = tables_.of(item);
  }

 private:
  template <class Compute>
  detail::Operand<Compute> operand(const Tensor<Stored, 4>& pages, Tables tables, Index length,
                                   Index dim) const {
    const auto sequences = static_cast<Index>(tables.size());
    return {
        pages.data(), shape_.page_size, tables.data(), {sequences, shape_.kv_heads, length, dim}};
  }
  /// Stores one head's part of `count` tokens.
  static void store_rows(const TensorView<const T, 3>& from, Index head, Index token, Index count,
                         Stored* to) {
    const Index dim = from.extent(2);
    if constexpr (std::is_same_v<T, float> && std::is_same_v<Stored, bfloat16>) {
      if (from.stride(2) == 1 && dim > 0) {
        return simd::bfloat16_kernels<T>().narrow({&from(head, token, 0), from.stride(1), 1}, count,
                                                  dim, &to->bits, dim);
      }
    }
    for (Index i = 0; i < count; ++i, to += dim) {
      if constexpr (std::is_same_v<T, Stored>) {
        if (from.stride(2) == 1 && dim > 0) {
          std::memcpy(to, &from(head, token + i, 0), static_cast<std::size_t>(dim) * sizeof(T));
          continue;
        }
      }
      for (Index d = 0; d < dim; ++d) to[d] = static_cast<Stored>(from(head, token + i, d));
    }
  }

  Index slot(Index item) const {
    const Index batch = lengths_.extent(0);  // 0 of a cache that has been moved from
    if (item < 0 || item >= batch) {
      throw_shape_error("KeyValueCache: sequence ", item, " of ", batch);
    }
    return item;
  }

  void check_tokens(const TensorView<const T, 3>& keys,
                    const TensorView<const T, 3>& values) const {
    if (keys.extent(0) != shape_.kv_heads || keys.extent(2) != shape_.head_dim ||
        values.extent(0) != shape_.kv_heads || values.extent(2) != shape_.value_dim ||
        keys.extent(1) != values.extent(1)) {
      throw_shape_error("KeyValueCache: keys ", keys.extents(), " and values ", values.extents(),
                        ", expected (kv_heads, tokens, dim) with ", shape_.kv_heads,
                        " heads, head_dim ", shape_.head_dim, ", value_dim ", shape_.value_dim);
    }
  }
  void check_pages(Index pages) const {
    if (pages <= pool_.available()) return;
    detail::raise(CacheFull(detail::message(
        "KeyValueCache: ", pages, " more pages wanted, ", pool_.available(), " of ", shape_.pages,
        " free: truncate or forget tokens, or make it of more pages")));
  }
  /// New pages needed to append `tokens` to a sequence.
  Index missing(Index item, Index tokens) const {
    const Index room = tables_.size(item) * shape_.page_size - length(item);
    return tokens <= room ? 0 : (tokens - room - 1) / shape_.page_size + 1;
  }
  /// Number of sequences that hold the page where this sequence's next token goes; 0 for a new
  /// page.
  Index holders_of_partial_page(Index item) const {
    return length(item) % shape_.page_size == 0 ? 0 : pool_.holders(tables_.last(item));
  }
  /// New pages needed to append count(item) tokens to each sequence in turn.
  template <class Count>
  Index pages_wanted(const Count& count) const {
    Index pages = 0;
    for (Index item = 0; item < shape_.batch; ++item) {
      if (count(item) == 0) continue;
      const Index more = missing(item, count(item));
      pages = detail::sum_or_most(pages, more + (copies_in_its_turn(item, count) ? 1 : 0));
    }
    return pages;
  }
  /// Whether a sequence must copy its last page when those before it have been appended to: the
  /// last of those that share a page writes to it without a copy.
  template <class Count>
  bool copies_in_its_turn(Index item, const Count& count) const {
    Index holders = holders_of_partial_page(item);
    for (Index i = 0; i < item && holders > 1; ++i) {
      if (count(i) == 0) continue;
      if (holders_of_partial_page(i) > 0 && tables_.last(i) == tables_.last(item)) --holders;
    }
    return holders > 1;
  }
  /// Lets a sequence's last page be another, which it holds already, with the tokens that it has
  /// there; others may have more tokens in that page.
  void replace_last_page(Index item, Index page) {
    Index& last = tables_.at(item, tables_.size(item) - 1);
    copy_rows(keys_, last, page, length(item) % shape_.page_size);
    copy_rows(values_, last, page, length(item) % shape_.page_size);
    pool_.release(last);
    last = page;
  }
  /// Copies the first rows of every head from one page to another.
  static void copy_rows(Tensor<Stored, 4>& pages, Index from, Index to, Index rows) {
    if (pages.empty()) return;
    const Index count = rows * pages.extent(3);
    for (Index head = 0; head < pages.extent(1); ++head) {
      std::memcpy(&pages(to, head, 0, 0), &pages(from, head, 0, 0),
                  static_cast<std::size_t>(count) * sizeof(Stored));
    }
  }
  void retain(const detail::PageTables& tables, Index item) {
    for (Index i = 0; i < tables.size(item); ++i) {
      if (tables.of(item)[i] >= 0) pool_.retain(tables.of(item)[i]);
    }
  }
  void drop(Index item) {
    for (Index i = 0; i < tables_.size(item); ++i) {
      if (tables_.of(item)[i] >= 0) pool_.release(tables_.of(item)[i]);
    }
    tables_.clear(item);
  }

  detail::HeldShape shape_;
  detail::PagePool pool_;
  detail::PageTables tables_;
  Tensor<Index, 1> lengths_, starts_, kept_;
  Tensor<Stored, 4> keys_, values_;
};

}  // namespace heed

// Definitions. ------------------------------------------------------------------------------------

#if HEED_DEFINITIONS
// NOLINTBEGIN(misc-definitions-in-headers)

namespace heed {

HEED_INLINE CacheShape CacheShape::contiguous(Index batch, Index kv_heads, Index head_dim,
                                              Index value_dim, Index length) {
  if (length < 0 || length > std::numeric_limits<Index>::max() - 95) {
    throw_shape_error("KeyValueCache: a length of ", length, " tokens");
  }
  const Index tokens = detail::larger((length + 95) / 96 * 96, 96);
  return {batch, kv_heads, head_dim, value_dim, tokens, batch};
}

HEED_INLINE CacheShape CacheShape::for_tokens(Index length) const {
  CacheShape shape = *this;
  const bool sizes = batch >= 0 && length >= 0 && page_size > 0;
  if (!sizes ||
      __builtin_mul_overflow(batch, length / page_size + (length % page_size > 0), &shape.pages)) {
    throw_shape_error("KeyValueCache: a batch of ", batch, " with ", length, " tokens in pages of ",
                      page_size);
  }
  return shape;
}

namespace detail {

HEED_INLINE CacheShape checked(CacheShape shape) {
  if (shape.value_dim == CacheShape::same_as_keys) shape.value_dim = shape.head_dim;
  if (shape.batch < 0 || shape.kv_heads < 0 || shape.head_dim < 0 || shape.value_dim < 0 ||
      shape.pages < 0 || shape.page_size < 16 || shape.page_size % 16 != 0) {
    throw_shape_error("KeyValueCache: batch ", shape.batch, ", kv_heads ", shape.kv_heads,
                      ", dims ", shape.head_dim, " and ", shape.value_dim, ", ", shape.pages,
                      " pages of ", shape.page_size, " tokens (a multiple of 16)");
  }
  Index tokens = 0;
  if (__builtin_mul_overflow(shape.pages, shape.page_size, &tokens)) {
    throw_shape_error("KeyValueCache: ", shape.pages, " pages of ", shape.page_size,
                      " tokens are more than an Index counts");
  }
  return shape;
}

HEED_INLINE std::span<const Index> list_of(const Tensor<Index, 1>& numbers) { return numbers; }

HEED_INLINE Tensor<Index, 1> lengthened(std::span<const Index> lengths, Index tokens) {
  auto longer = Tensor<Index, 1>::copy_of(TensorView<const Index, 1>(lengths));
  for (Index& length : longer) length = sum_or_most(length, tokens);
  return longer;
}

}  // namespace detail

}  // namespace heed
// NOLINTEND(misc-definitions-in-headers)
#endif
