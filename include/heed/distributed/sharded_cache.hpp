// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include <heed/attention/cached.hpp>
#include <heed/attention/detail/call.hpp>
#include <heed/attention/detail/operands.hpp>
#include <heed/attention/detail/pass.hpp>
#include <heed/attention/key_value_cache.hpp>
#include <heed/attention/options.hpp>
#include <heed/core/detail/exceptions.hpp>
#include <heed/core/error.hpp>
#include <heed/core/index.hpp>
#include <heed/distributed/agreement.hpp>
#include <heed/distributed/communicator.hpp>
#include <heed/distributed/detail/key_ring.hpp>
#include <heed/distributed/reshard.hpp>
#include <heed/distributed/sharded_attention.hpp>
#include <heed/distributed/token_shards.hpp>
#include <heed/kernels/attention_kernels.hpp>
#include <heed/masks/detail/mask_ref.hpp>
#include <heed/tensor/tensor.hpp>
#include <heed/tensor/view_of.hpp>

namespace heed {

/// A KeyValueCache of sequences that no rank holds whole: every rank stores the keys and values of
/// its shard of the positions, and they stay there. `sharded_attention` reads it. All ranks make
/// the same calls, and throw the same errors, which leave the cache unchanged.
template <class T, class Stored = T>
class ShardedCache {
 public:
  /// `shards` divides the positions 0, …, n − 1 of sequences of at most n tokens, where every chunk
  /// of simd::key_chunk positions lies on one rank: TokenShards::even(n, ranks.size(),
  /// simd::key_chunk), for example. `shape` is that of a KeyValueCache; its page_size, 16 or more,
  /// divides simd::key_chunk; `pages` is ignored. Throws InvalidArgument and ShapeError.
  ShardedCache(const Communicator& ranks, const TokenShards& shards, const CacheShape& shape)
      : rank_(ranks.rank()),
        shards_(checked(ranks, shards, shape)),
        local_(shape.for_tokens(shards.count(ranks.rank()))),
        lengths_({local_.shape().batch}) {
    for (const auto& pieces : detail::pieces_of(shards, simd::key_chunk)) {
      if (pieces.size() != 1) {
        throw_invalid_argument("ShardedCache: shards are cut inside the chunk of ", simd::key_chunk,
                               " positions that begins at ", pieces[0].first);
      }
      owners_.push_back(pieces[0].owner);
    }
  }

  /// Number of tokens of each sequence, over all ranks.
  std::span<const Index> lengths() const { return lengths_; }
  const TokenShards& shards() const { return shards_; }
  /// The tokens that this rank stores, one after another.
  const KeyValueCache<T, Stored>& local() const { return local_; }
  /// The rank that holds the chunk [i · simd::key_chunk, (i + 1) · simd::key_chunk).
  Index owner(Index chunk) const { return owners_[static_cast<std::size_t>(chunk)]; }

  /// Appends tokens that every rank has to every sequence: keys (batch, kv_heads, tokens,
  /// head_dim), values likewise. Each rank stores its own; nothing is sent. Throws ShapeError,
  /// CacheFull.
  template <Viewable K, Viewable V>
  void append(const K& keys, const V& values) {
    const TensorView<const T, 4> k = view_of(keys), v = view_of(values);
    check_tokens(k, v, k.extent(2));
    const auto before = local_.ends();
    detail::OnFailure kept([&] { local_.take_back(before); });
    for (Index item = 0; item < lengths_.size(); ++item) {
      for (const TokenRange& part : new_ranges(rank_, lengths_(item), k.extent(2))) {
        local_.append(item, k.select(0, item).slice(1, part.first, part.end),
                      v.select(0, item).slice(1, part.first, part.end));
      }
    }
    for (Index& each : lengths_) each += k.extent(2);
    kept.done();
  }
  /// Appends tokens of which every rank has its shard by `tokens`, as `sharded_attention` takes
  /// them: they move to the ranks that store them. All sequences are equally long. Collective.
  /// Throws InvalidArgument on all ranks, for a full cache too, and CommunicationError.
  template <Viewable K, Viewable V>
  void append(const Communicator& ranks, const TokenShards& tokens, const K& keys,
              const V& values) {
    const TensorView<const T, 4> k = view_of(keys), v = view_of(values);
    const Index count = tokens.tokens(), length = lengths_.empty() ? 0 : lengths_(0);
    Agreement agreement = detail::agreement_of("ShardedCache::append", ranks);
    agreement.check(ranks, [&] {
      agreement.add("shards with fingerprint", detail::fingerprint_of(tokens));
      agreement.add("sequences of", lengths());
      detail::check_shard(ranks, "keys", tokens, k);
      check_tokens(k, v, count);
      for (const Index other : lengths_) {
        if (other == length) continue;
        throw_invalid_argument("shards of a cache with sequences of ", length, " and ", other,
                               " tokens");
      }
    });
    std::vector<std::vector<TokenRange>> to;
    for (Index rank = 0; rank < ranks.size(); ++rank) {
      to.push_back(new_ranges(rank, length, count));
    }
    const TokenShards stored(std::move(to));
    const auto moved = [&](const TensorView<const T, 4>& mine) {
      Tensor<T, 4> own({k.extent(0), k.extent(1), stored.count(rank_), mine.extent(3)});
      detail::move_tokens<T>(ranks, tokens, stored, mine, own);
      return own;
    };
    const Tensor<T, 4> own_keys = moved(k), own_values = moved(v);
    local_.append(own_keys, own_values);
    for (Index& each : lengths_) each += count;
  }

  /// Removes tokens from the end of a sequence, down to `length`.
  void truncate(Index item, Index length) {
    if (item < 0 || item >= lengths_.size() || length < 0 || length > lengths_(item)) {
      throw_shape_error("ShardedCache: truncate sequence ", item, " of ", lengths_.size(), " to ",
                        length, " tokens");
    }
    Index kept = 0;
    for (const TokenRange& part : new_ranges(rank_, 0, length)) kept += part.count();
    local_.truncate(item, kept);
    lengths_(item) = length;
  }

  /// The pages of `local` by position, (batch, pages of the longest sequence); 0 for those of other
  /// ranks.
  Tensor<Index, 2> pages() const {
    const Index page = local_.shape().page_size, batch = lengths_.size();
    Index longest = 0;
    for (const Index length : lengths_) longest = detail::larger(longest, length);
    Tensor<Index, 2> pages({batch, detail::parts_of(longest, page)});
    Tensor<const Index*, 1> stored({batch});
    local_.find_pages(stored);
    for (Index item = 0; item < batch; ++item) {
      const Index* from = stored(item);
      for (const TokenRange& part : new_ranges(rank_, 0, lengths_(item))) {
        const Index end = detail::parts_of(part.end, page);
        for (Index at = part.first / page; at < end; ++at) pages(item, at) = *from++;
      }
    }
    return pages;
  }

 private:
  static const TokenShards& checked(const Communicator& ranks, const TokenShards& shards,
                                    const CacheShape& shape) {
    if (shards.ranks() != ranks.size()) {
      throw_invalid_argument("ShardedCache: shards for ", shards.ranks(), " ranks among ",
                             ranks.size());
    }
    if (shape.page_size < 16 || simd::key_chunk % shape.page_size != 0) {
      throw_shape_error("ShardedCache: pages of ", shape.page_size, " tokens, expected 16 or more ",
                        "that divide chunks of ", simd::key_chunk);
    }
    return shards;
  }

  /// Throws unless `count` tokens in shards like these can be appended.
  void check_tokens(const TensorView<const T, 4>& keys, const TensorView<const T, 4>& values,
                    Index count) {
    if (values.extent(2) != keys.extent(2)) {
      throw_shape_error("ShardedCache: keys have ", keys.extent(2), " tokens, values ",
                        values.extent(2));
    }
    local_.append(keys.slice(2, 0, 0), values.slice(2, 0, 0));  // checks all other extents
    for (const Index length : lengths_) {
      if (count <= shards_.tokens() - length) continue;
      detail::raise(CacheFull(detail::message("ShardedCache: ", count, " more tokens after ",
                                              length, ", room for ", shards_.tokens(), " in all")));
    }
  }

  /// Of `count` tokens from position `length` on, those that a rank holds, counted from 0.
  std::vector<TokenRange> new_ranges(Index rank, Index length, Index count) const {
    std::vector<TokenRange> parts;
    for (const TokenRange& range : shards_.ranges(rank)) {
      const TokenRange part{detail::larger(range.first - length, 0),
                            detail::smaller(range.end - length, count)};
      if (part.count() > 0) parts.push_back(part);
    }
    return parts;
  }

  Index rank_;
  TokenShards shards_;
  KeyValueCache<T, Stored> local_;
  Tensor<Index, 1> lengths_;
  std::vector<Index> owners_;  // of each chunk
};

namespace detail {

/// Computes a call whose chunks of keys lie on several ranks: each rank the softmax over its
/// chunks, one by one. The total goes from rank to rank in key order, each adding its chunks, and
/// from the last one to all, which write the results. At most simd::query_block queries.
template <class T, class Cache>
void run_over_ranks(const Communicator& ranks, const Cache& cache, const AttentionArgs<T>& args,
                    const MaskRef& mask) {
  struct Leg {
    Index rank;
    Index chunks;
  };
  std::vector<Leg> legs;
  std::vector<Index> own;
  for (Index chunk = 0; chunk < parts_of(args.key_count(), simd::key_chunk); ++chunk) {
    const Index first = chunk * simd::key_chunk, rank = cache.owner(chunk);
    if (!may_see(args, mask, first, first + simd::key_chunk)) continue;
    if (rank == ranks.rank()) own.push_back(chunk);
    if (legs.empty() || legs.back().rank != rank) legs.push_back({rank, 0});
    ++legs.back().chunks;
  }
  ChunkRows<T> rows(args.batch() * args.heads() * args.query_count(), args.value_dim(), own);
  take_chunks(args, mask, rows);
  const auto total = rows.total();
  const int size = mpi_int(total.size(), "the number of values of a message");
  Index done = 0;
  for (std::size_t i = 0; i < legs.size(); ++i) {
    if (legs[i].rank != ranks.rank()) continue;
    if (i > 0) {
      const auto from = static_cast<int>(legs[i - 1].rank);
      check_mpi(MPI_Recv(total.data_handle(), size, datatype_of<T>(), from, 0, ranks.inner_handle(),
                         MPI_STATUS_IGNORE),
                "MPI_Recv from rank ", from);
    }
    add_chunks(args, mask, done, done + legs[i].chunks, i > 0, rows);
    done += legs[i].chunks;
    if (i + 1 == legs.size()) continue;
    const auto to = static_cast<int>(legs[i + 1].rank);
    check_mpi(MPI_Send(total.data_handle(), size, datatype_of<T>(), to, 0, ranks.inner_handle()),
              "MPI_Send to rank ", to);
    ranks.count_sent(total.size() * static_cast<Index>(sizeof(T)));
  }
  if (legs.empty()) {
    add_chunks(args, mask, 0, 0, false, rows);
  } else {
    ranks.broadcast(total, legs.back().rank);
  }
  write_total(args, mask, rows);
}

}  // namespace detail

/// Attention over a cache that no rank holds whole: `attention(queries, cache, mask, out, options)`
/// with one cache of all tokens, whose bits every rank receives, for any number of ranks and any
/// shards. All ranks bring the same queries and options. Collective.
///
/// Keys stay where they are. A rank computes the softmax of all queries over each chunk of its
/// keys; value_dim + 2 numbers per query and head go from rank to rank, in key order, and at last
/// to all. Chunks that the mask hides from all queries are not computed, and ranks without others
/// are passed by. Throws as the other `sharded_attention`.
template <class Q, class Held, class Stored, class M, detail::MeantAsResult Out,
          detail::IsOptions Options = detail::OptionsOf<Q>>
void sharded_attention(const Communicator& ranks, const Q& queries,
                       const ShardedCache<Held, Stored>& cache, const M& mask, Out&& out,
                       const Options& options = {}) {
  using To = std::remove_reference_t<Out>;
  if constexpr (detail::expect_call_to<Options, M, To, Q>() &&
                detail::expect_cache<Q, Held, Stored>()) {
    using X = ValueOf<Q>;
    using T = ComputedIn<X>;
    Agreement agreement = detail::agreement_of("sharded_attention", ranks);
    const MaskRef ref(mask);
    const Tensor<Index, 2> pages = cache.pages();
    Tensor<const Index*, 1> tables({pages.extent(0)});
    for (Index item = 0; item < tables.size(); ++item) {
      tables(item) = pages.data() + item * pages.extent(1);
    }
    detail::AttentionArgs<T> args;
    agreement.check(ranks, [&] {
      const TensorView<const X, 4> view = detail::as_rank_4(view_of(queries));
      args = detail::cache_call<Q>(queries, cache.local(), cache.lengths(), tables, mask,
                                   detail::as_rank_4(view_of(out)), options);
      detail::add_call(agreement, args, cache.shards(), ref, options);
      agreement.add("queries with fingerprint", detail::fingerprint_of(view));
    });
    const Index count = args.query_count();
    for (Index first = 0; first < count; first += simd::query_block) {
      const Index end = detail::smaller(first + simd::query_block, count);
      detail::run_over_ranks(ranks, cache, detail::queries_of(args, first, end), ref);
    }
  }
}

}  // namespace heed

#include <heed/definitions/attention.hpp>
