// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include <heed/attention/detail/call.hpp>
#include <heed/attention/detail/operands.hpp>
#include <heed/attention/detail/pass.hpp>
#include <heed/attention/forward.hpp>
#include <heed/attention/options.hpp>
#include <heed/core/error.hpp>
#include <heed/core/index.hpp>
#include <heed/distributed/agreement.hpp>
#include <heed/distributed/communicator.hpp>
#include <heed/distributed/detail/key_ring.hpp>
#include <heed/distributed/ring_schedule.hpp>
#include <heed/distributed/token_shards.hpp>
#include <heed/masks/detail/mask_ref.hpp>
#include <heed/tensor/tensor.hpp>
#include <heed/tensor/view_of.hpp>

namespace heed {

/// Which rank holds which queries, and which keys with their values; one TokenShards for both where
/// a sequence attends to itself.
struct AttentionShards {
  TokenShards queries;
  TokenShards keys;

  AttentionShards(const TokenShards& of_both)  // NOLINT(google-explicit-constructor)
      : queries(of_both), keys(of_both) {}
  AttentionShards(TokenShards of_queries, TokenShards of_keys)
      : queries(std::move(of_queries)), keys(std::move(of_keys)) {}
};

namespace detail {

// What all ranks bring alike. ---------------------------------------------------------------------

/// A fingerprint of what a mask answers: 16 queries of the whole call, spread over heads and batch
/// items, and all their keys.
template <class T>
std::uint64_t mask_fingerprint(const AttentionArgs<T>& whole, const MaskRef& mask) {
  constexpr Index samples = 16;
  Fingerprint print;
  print.add_bits(mask.depends_on_head());
  const Index queries = whole.query_count();
  if (whole.batch() == 0 || whole.heads() == 0) return print.value();
  std::uint64_t words[simd::key_block];
  for (Index i = 0; i < smaller(samples, queries); ++i) {
    const Index row = queries - 1 - i * queries / samples;
    const Index item = i % whole.batch(), head = i % whole.heads();
    const Index keys = whole.key_count_of(item);
    for (Index key = 0; key < keys; key += simd::key_block) {
      const Index last = smaller(key + simd::key_block, keys) - 1;
      const Tile tile = tile_of(whole, item, head, row, 1, key, last);
      mask.lane_words(tile, words);
      for (Index j = 0; j < tile.keys(); ++j) print.add(words[j] & 1);
    }
  }
  return print.value();
}

/// Adds what decides the bits of a call, beside its tensors. `whole`: the call over all ranks.
template <class T>
void add_call(Agreement& agreement, const AttentionArgs<T>& whole, const AttentionShards& shards,
              const MaskRef& mask, const AttentionOptions<T>& options) {
  add_library(agreement);
  agreement.add("scalar type of", sizeof(T), " bytes, bfloat16: ", whole.keys.is_bfloat16());
  agreement.add("queries", whole.queries.extents());
  agreement.add("keys", whole.keys.extents());
  agreement.add("values", whole.values.extents());
  agreement.add("shards with fingerprint", fingerprint_of(shards.queries), ' ',
                fingerprint_of(shards.keys));
  agreement.add("scale", static_cast<double>(whole.scale));
  agreement.add("first_query", whole.first_query, whole.first_queries);
  agreement.add("key_counts", whole.key_counts);
  agreement.add("products", static_cast<int>(Products{options.products}));
  agreement.add("softcap", static_cast<double>(options.softcap));
  agreement.add("alibi_slopes with fingerprint", fingerprint_of(options.alibi_slopes));
  agreement.add("relative_bias", options.relative_bias.extents(), " with fingerprint ",
                fingerprint_of(options.relative_bias));
  agreement.add("bias", options.bias.given() ? "given" : "not given");
  agreement.add("score_function", options.score_function.given() ? "given" : "not given");
  agreement.add("sinks with fingerprint", fingerprint_of(options.sinks));
  const WeightDropout& dropout = options.dropout;
  agreement.add("dropout (probability, seed, layer)", dropout.probability, ' ',
                dropout.seed.value_or(0), ' ', dropout.layer);
  agreement.add("a mask with fingerprint", mask_fingerprint(whole, mask));
}

template <class X>
const AttentionShards& check_shards(const Communicator& ranks, const AttentionShards& shards,
                                    const TensorView<const X, 4>& queries,
                                    const TensorView<const X, 4>& keys) {
  check_shard(ranks, "queries", shards.queries, queries);
  check_shard(ranks, "keys", shards.keys, keys);
  return shards;
}

/// The options with the positions of the whole call written out.
template <class T>
AttentionOptions<T> whole_options(const AttentionOptions<T>& options, const AttentionShards& shards,
                                  Index batch) {
  AttentionOptions<T> result = options;
  if (options.first_query || !options.first_queries.empty()) return result;
  const Index queries = shards.queries.tokens();
  if (options.key_counts.empty()) {
    result.first_query = shards.keys.tokens() - queries;
  } else if (static_cast<Index>(options.key_counts.size()) == batch) {
    std::vector<Index> firsts;
    for (const Index count : options.key_counts) firsts.push_back(count - queries);
    result.first_queries = firsts;
  }
  return result;
}

/// Arguments whose arrays are those of options that live as long.
template <class T>
void refer_to(AttentionArgs<T>& args, const AttentionOptions<T>& options) {
  args.first_queries = options.first_queries;
  args.key_counts = options.key_counts;
  args.score_mods.alibi_slopes = options.alibi_slopes;
  args.score_mods.sinks = options.sinks;
}

// The parts of a call that one rank computes. -----------------------------------------------------

/// One run of queries of this rank against all keys: a call of its own, with the positions of the
/// whole.
template <class T>
struct QueryRun {
  AttentionArgs<T> args;
  PausedRows<T> rows;

  explicit QueryRun(const AttentionArgs<T>& call) : args(call), rows(call) {}
};

/// A sharded call after its checks on this rank.
template <class X>
class ShardedCall {
 public:
  using T = ComputedIn<X>;
  using Inputs = TensorView<const X, 4>;

  ShardedCall(const Communicator& ranks, const AttentionShards& shards, const Inputs& queries,
              const Inputs& keys, const Inputs& values, const TensorView<X, 4>& out,
              const AttentionOptions<T>& options)
      : shards_(check_shards(ranks, shards, queries, keys)),
        ring_(ranks, shards.keys, keys, values),
        whole_options_(whole_options(options, shards, queries.extent(0))) {
    AttentionOptions<T> local;
    local.log_sum_exp = options.log_sum_exp;
    checked_args<ComputedIn<X>>(queries, keys, values, out, local);
    check_rows_of_bias(options, queries.extent(2));
    Index begin = 0;
    for (const TokenRange& range : shards.queries.ranges(ranks.rank())) {
      const Index end = begin + range.count();
      auto args =
          call(queries.slice(2, begin, end), out.slice(2, begin, end), part_options(begin, end));
      args.query_offset = range.first;
      runs_.emplace_back(args);
      begin = end;
    }
    // For the mask and the agreement: without memory for the queries of others.
    AttentionOptions<T> of_all = whole_options_;
    of_all.log_sum_exp = {};
    of_all.bias = {};
    whole_ = call(queries.slice(2, 0, 0), out.slice(2, 0, 0), of_all);
    whole_.queries =
        without_memory<const X>(with_extent(queries.extents(), 2, shards.queries.tokens()));
  }

  /// The call over all ranks; its queries have no memory.
  const AttentionArgs<T>& whole() const { return whole_; }

  void run(const Communicator& ranks, const MaskRef& mask, RingTrace* trace) {
    ring_.trace_to(trace);
    const Tensor<bool, 2> needed = needed_by(ranks, mask);
    ring_.start(needed);
    for (Index chunk = 0; chunk < ring_.chunks(); ++chunk) {
      if (!needed(ranks.rank(), chunk)) continue;
      ring_.wait_for(chunk);
      const Index first = chunk * simd::key_chunk, end = first + simd::key_chunk;
      const auto event =
          ring_.note(RingEvent::Kind::compute, chunk, {first, smaller(end, whole_.key_count())});
      for (auto& one : runs_) {
        take_keys<T>(one.args, mask, first, end, one.rows, [&] { ring_.advance(); });
      }
      ring_.note_end(event);
    }
    for (auto& one : runs_) write_rows(one.args, mask, one.rows);
    ring_.finish();
  }

 private:
  static void check_rows_of_bias(const AttentionOptions<T>& options, Index rows) {
    if (!options.bias.given()) return;
    const Index given = options.bias.view().extent(2);
    if (given != 1 && given != rows) {
      throw_shape_error("bias has ", given, " rows for ", rows, " queries of this rank");
    }
  }

  AttentionOptions<T> part_options(Index begin, Index end) const {
    AttentionOptions<T> result = whole_options_;
    if (result.log_sum_exp.given()) {
      result.log_sum_exp = result.log_sum_exp.view().slice(2, begin, end);
    }
    if (result.bias.given() && result.bias.view().extent(2) != 1) {
      result.bias = result.bias.view().slice(2, begin, end);
    }
    return result;
  }
  AttentionArgs<T> call(const Inputs& queries, const TensorView<X, 4>& out,
                        const AttentionOptions<T>& options) const {
    auto args = checked_args<ComputedIn<X>>(queries, ring_.template keys<T>(),
                                            ring_.template values<T>(), out, options);
    refer_to(args, whole_options_);
    return args;
  }

  /// Which rank computes with which chunk of keys. Collective.
  Tensor<bool, 2> needed_by(const Communicator& ranks, const MaskRef& mask) const {
    Tensor<bool, 1> mine({ring_.chunks()});
    for (Index chunk = 0; chunk < ring_.chunks(); ++chunk) {
      const Index first = chunk * simd::key_chunk;
      for (const auto& one : runs_) {
        mine(chunk) = mine(chunk) || may_see(one.args, mask, first, first + simd::key_chunk);
      }
    }
    Tensor<bool, 2> all({ranks.size(), ring_.chunks()});
    ranks.all_gather(mine, all);
    return all;
  }

  const AttentionShards& shards_;
  KeyRing<X> ring_;
  AttentionOptions<T> whole_options_;
  std::vector<QueryRun<T>> runs_;
  AttentionArgs<T> whole_;
};

}  // namespace detail

/// Attention over a sequence that no rank holds whole: `attention` of all queries, keys and values,
/// of which every rank brings its shard and receives the rows of its queries. The bits are those of
/// one process with the whole sequence, for any number of ranks and any shards. Collective.
///
/// Shapes: as `attention`, with the tokens of this rank in place of all of them: queries (…, heads,
/// queries of the rank, head_dim), keys and values (…, kv_heads, keys of the rank, dim), out and
/// options.log_sum_exp like the queries; options.bias has the rows of the rank and the columns of
/// all keys. The mask and all other options are those of the whole call: positions are absolute.
///
/// Keys travel in chunks of simd::key_chunk tokens, each to the ranks with a query that the mask
/// lets see one of them. Besides its tensors a rank holds four chunks, and one row of value_dim + 2
/// numbers per query and head. Throws, on all ranks with one message and before anything is
/// computed, InvalidArgument where a rank's call is wrong or differs from that of rank 0;
/// CommunicationError where MPI fails. `trace`, where given, gets what this rank did and when.
template <class Q, class K, class V, class M, detail::MeantAsResult Out,
          detail::IsOptions Options = detail::OptionsOf<Q>>
void sharded_attention(const Communicator& ranks, const AttentionShards& shards, const Q& queries,
                       const K& keys, const V& values, const M& mask, Out&& out,
                       const Options& options = {}, RingTrace* trace = nullptr) {
  using To = std::remove_reference_t<Out>;
  if constexpr (detail::expect_call_to<Options, M, To, Q, const K, const V>()) {
    using X = ValueOf<Q>;
    using Call = detail::ShardedCall<X>;
    Agreement agreement = detail::agreement_of("sharded_attention", ranks);
    const MaskRef ref(mask);
    std::optional<Call> call;
    agreement.check(ranks, [&] {
      call.emplace(ranks, shards, detail::as_rank_4(view_of(queries)),
                   detail::as_rank_4(view_of(keys)), detail::as_rank_4(view_of(values)),
                   detail::as_rank_4(view_of(out)), options);
      detail::check_mask_fits(ref, call->whole());
      detail::add_call(agreement, call->whole(), shards, ref, options);
    });
    call->run(ranks, ref, trace);
  }
}

}  // namespace heed

#include <heed/definitions/attention.hpp>
