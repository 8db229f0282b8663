// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <type_traits>

#include <heed/attention/backward.hpp>
#include <heed/attention/detail/backward_call.hpp>
#include <heed/attention/detail/call.hpp>
#include <heed/attention/detail/pass.hpp>
#include <heed/attention/options.hpp>
#include <heed/core/error.hpp>
#include <heed/distributed/agreement.hpp>
#include <heed/distributed/communicator.hpp>
#include <heed/distributed/detail/query_ring.hpp>
#include <heed/distributed/reshard.hpp>
#include <heed/distributed/sharded_attention.hpp>
#include <heed/distributed/token_shards.hpp>
#include <heed/masks/detail/mask_ref.hpp>
#include <heed/tensor/tensor.hpp>
#include <heed/tensor/view_of.hpp>

namespace heed {

namespace detail {

/// A sharded backward call after its checks on this rank. For the time of the call every rank holds
/// one run of keys, cut where one process cuts its chunks, and one of queries.
template <class T>
class ShardedBackward {
 public:
  ShardedBackward(const Communicator& ranks, const AttentionShards& shards,
                  const BackwardArgs<T>& local, const TensorView<const T, 4>& queries,
                  const TensorView<const T, 4>& keys, const TensorView<const T, 4>& values,
                  const AttentionOptions<T>& options)
      : ranks_(ranks),
        shards_(check_shards(ranks, shards, queries, keys)),
        local_(local),
        queries_(queries),
        keys_(keys),
        values_(values),
        options_(whole_options(options, shards, queries.extent(0))),
        key_shards_(TokenShards::even(shards.keys.tokens(), ranks.size(), backward_chunk)),
        query_shards_(TokenShards::even(shards.queries.tokens(), ranks.size(), QueryRing<T>::span)),
        run_of_keys_(run_of(key_shards_, ranks.rank())),
        own_keys_(with_extent(keys.extents(), 2, run_of_keys_.count())),
        own_values_(with_extent(values.extents(), 2, run_of_keys_.count())),
        grad_keys_(own_keys_.extents()),
        grad_values_(own_values_.extents()) {
    if (options.products != Products::exact) {
      throw_invalid_argument("sharded gradients have exact products only");
    }
    if (options.bias.given() && options.bias.view().extent(2) != 1) {
      throw_invalid_argument("gradients of a call with a bias for every query are not computed");
    }
    whole_ = differentiated_args<T>(queries.slice(2, 0, 0), all_of(own_keys_), all_of(own_values_),
                                    options_);
    check_differentiable(whole_);
    refer_to(whole_, options_);
    const auto all = with_extent(queries.extents(), 2, shards.queries.tokens());
    whole_.queries = without_memory<const T>(all);
    if (options.bias.given()) {  // that of the call above has rows for its own queries: none
      auto scores = whole_.score_mods.bias.view().extents();
      scores[2] = all[2];
      whole_.score_mods.bias = broadcast_bias(options_.bias, scores);
    }
  }

  /// The call over all ranks; its queries have no memory.
  const AttentionArgs<T>& whole() const { return whole_; }

  void run(const MaskRef& mask) {
    move_tokens<T>(ranks_, shards_.keys, key_shards_, keys_, own_keys_);
    move_tokens<T>(ranks_, shards_.keys, key_shards_, values_, own_values_);
    const Tensor<bool, 2> sees = seen_by_spans(mask);
    const Index group = local_.sharing() == 0 ? 1 : local_.sharing();
    QueryRing<T> ring(ranks_, query_shards_, own_rows(), group, sees);
    ring.run([&](const typename QueryRing<T>::Unit& unit) {
      const auto between = [&] { ring.advance(); };
      add_backward_part<T>(args_of(*unit.rows, unit.first, unit.end), mask, part(unit.member),
                           between);
    });
    finish_key_gradients<T>(args_of(ring.own(), 0, 0), mask, part(0));
    move_tokens<T>(ranks_, query_shards_, shards_.queries, ring.own().grad_queries,
                   local_.grad_queries);
    move_tokens<T>(ranks_, key_shards_, shards_.keys, grad_keys_, local_.grad_keys);
    move_tokens<T>(ranks_, key_shards_, shards_.keys, grad_values_, local_.grad_values);
  }

 private:
  /// A view with the extents of all keys, of which this rank's run begins at row 0.
  TensorView<const T, 4> all_of(const Tensor<T, 4>& run) const {
    const auto extents = with_extent(run.extents(), 2, shards_.keys.tokens());
    if (run.empty()) return without_memory<const T>(extents);
    return {run.data(), extents, run.view().strides()};
  }
  BackwardPart part(Index member) const { return {member, run_of_keys_.first, run_of_keys_.end}; }

  /// The rows [first, end) of the sequence, which begin at row 0 of `rows`.
  BackwardArgs<T> args_of(QueryRows<T>& rows, Index first, Index end) {
    const auto some = [&](auto& tensor) { return tensor.view().slice(2, 0, end - first); };
    BackwardArgs<T> args{whole_,
                         some(rows.output),
                         some(rows.log_sum_exp).select(3, 0),
                         some(rows.grad_output),
                         some(rows.grad_queries),
                         grad_keys_.view(),
                         grad_values_.view(),
                         {}};
    args.forward.queries = some(rows.queries);
    args.forward.query_offset = first;
    args.key_offset = run_of_keys_.first;
    return args;
  }

  QueryRows<T> own_rows() const {
    const auto& q = queries_.extents();
    QueryRows<T> rows(q[0], q[1], query_shards_.count(ranks_.rank()), q[3], values_.extent(3));
    const auto bring = [&](const TensorView<const T, 4>& from, Tensor<T, 4>& to) {
      move_tokens<T>(ranks_, shards_.queries, query_shards_, from, to);
    };
    bring(queries_, rows.queries);
    bring(local_.output, rows.output);
    bring(local_.grad_output, rows.grad_output);
    bring(as_columns(local_.log_sum_exp), rows.log_sum_exp);
    return rows;
  }

  /// Which spans of queries see keys of which rank. Collective.
  Tensor<bool, 2> seen_by_spans(const MaskRef& mask) const {
    const Index queries = shards_.queries.tokens(), span = QueryRing<T>::span;
    Tensor<bool, 1> mine({parts_of(queries, span)});
    AttentionArgs<T> some = whole_;
    for (Index i = 0; i < mine.size(); ++i) {
      const Index rows = smaller(span, queries - i * span);
      some.queries = without_memory<const T>(with_extent(queries_.extents(), 2, rows));
      some.query_offset = i * span;
      mine(i) = may_see(some, mask, run_of_keys_.first, run_of_keys_.end);
    }
    Tensor<bool, 2> all({ranks_.size(), mine.size()});
    ranks_.all_gather(mine, all);
    return all;
  }

  const Communicator& ranks_;
  const AttentionShards& shards_;
  const BackwardArgs<T>& local_;
  TensorView<const T, 4> queries_;
  TensorView<const T, 4> keys_;
  TensorView<const T, 4> values_;
  AttentionOptions<T> options_;  // of the whole call
  TokenShards key_shards_;       // for the time of the call
  TokenShards query_shards_;
  TokenRange run_of_keys_;
  Tensor<T, 4> own_keys_;
  Tensor<T, 4> own_values_;
  Tensor<T, 4> grad_keys_;
  Tensor<T, 4> grad_values_;
  AttentionArgs<T> whole_;
};

}  // namespace detail

/// The gradients of `sharded_attention`: `attention_backward` of all queries, keys and values, of
/// which every rank brings its shard and receives the gradients of its tokens. The bits are those
/// of one process with the whole sequence, for any number of ranks and any shards. Collective.
///
/// Shapes: as `attention_backward`, in float or double, with the tokens of this rank in place of
/// all of them; output and log_sum_exp are what `sharded_attention` wrote. Mask and options are
/// those of the forward call. Dropout and every change of scores are differentiated through, but a
/// bias must be the same for all queries, and the gradients of biases, slopes and sinks are not
/// computed.
///
/// For the time of the call, keys lie in one run per rank, and queries go from run to run in units
/// of 512: a rank holds a second copy of its shards beside them. Under a causal mask the ranks with
/// early keys compute more. Throws as `sharded_attention`.
template <class Q, class K, class V, class M, class Out, class Lse, class GradOut, class GradQ,
          class GradK, detail::MeantAsResult GradV,
          detail::IsOptions Options = detail::OptionsOf<Q>>
void sharded_attention_backward(const Communicator& ranks, const AttentionShards& shards,
                                const Q& queries, const K& keys, const V& values, const M& mask,
                                const Out& output, const Lse& log_sum_exp,
                                const GradOut& grad_output, GradQ&& grad_queries, GradK&& grad_keys,
                                GradV&& grad_values, const Options& options = {}) {
  if constexpr (detail::expect_backward<Options, M, Q, K, V, Out, Lse, GradOut, GradQ, GradK,
                                        GradV>()) {
    using T = ValueOf<Q>;
    static_assert(!std::is_same_v<T, bfloat16>, "sharded gradients are those of float or double");
    Agreement agreement = detail::agreement_of("sharded_attention_backward", ranks);
    const MaskRef ref(mask);
    std::optional<detail::BackwardArgs<T>> local;
    std::optional<detail::ShardedBackward<T>> call;
    agreement.check(ranks, [&] {
      local =
          detail::checked_backward_args<T>(queries, keys, values, output, log_sum_exp, grad_output,
                                           grad_queries, grad_keys, grad_values, {}, {});
      call.emplace(ranks, shards, *local, detail::as_rank_4(view_of(queries)),
                   detail::as_rank_4(view_of(keys)), detail::as_rank_4(view_of(values)), options);
      detail::check_mask_fits(ref, call->whole());
      detail::add_call(agreement, call->whole(), shards, ref, options);
    });
    call->run(ref);
  }
}

}  // namespace heed

#include <heed/definitions/attention.hpp>
