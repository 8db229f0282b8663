// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <type_traits>

#include <heed/attention/backward.hpp>
#include <heed/attention/detail/backward_call.hpp>
#include <heed/attention/detail/call.hpp>
#include <heed/attention/detail/operands.hpp>
#include <heed/attention/forward.hpp>
#include <heed/attention/options.hpp>
#include <heed/core/bfloat16.hpp>
#include <heed/core/error.hpp>
#include <heed/core/index.hpp>
#include <heed/distributed/agreement.hpp>
#include <heed/distributed/communicator.hpp>
#include <heed/distributed/reshard.hpp>
#include <heed/distributed/sharded_attention.hpp>
#include <heed/distributed/token_shards.hpp>
#include <heed/masks/detail/mask_ref.hpp>
#include <heed/tensor/tensor.hpp>
#include <heed/tensor/view_of.hpp>

namespace heed {

namespace detail {

/// A sharded call after its checks on this rank, which computes all tokens of its share of the
/// heads. X: the stored type.
template <class X>
class CallByHeads {
 public:
  using T = ComputedIn<X>;
  using Inputs = TensorView<const X, 4>;

  CallByHeads(const Communicator& ranks, const AttentionShards& shards, const Inputs& queries,
              const Inputs& keys, const Inputs& values, const AttentionOptions<T>& options)
      : ranks_(ranks),
        shards_(check_shards(ranks, shards, queries, keys)),
        kv_heads_(enough(ranks, keys.extent(1))),
        options_(whole_options(options, shards, queries.extent(0))),
        queries_(with_all_tokens(queries.extents(), shards.queries)),
        keys_(with_all_tokens(keys.extents(), shards.keys)),
        values_(with_all_tokens(values.extents(), shards.keys)) {
    if (options.bias.given() && options.bias.view().extent(2) != 1) {
      throw_invalid_argument("heads with a bias for every query are not divided");
    }
    options_.log_sum_exp = {};
    const auto all = with_extent(queries.extents(), 2, shards.queries.tokens());
    score_mods_ = checked_score_mods(options_, {all[0], all[1], all[2], shards.keys.tokens()});
    whole_ = differentiated_args<T>(queries_.view(), keys_.view(), values_.view(), plain());
    refer_to(whole_, options_);
    whole_.queries = without_memory<const X>(all);
    const Index tokens = shards.keys.tokens();
    whole_.keys = without_memory<const X>(with_extent(keys.extents(), 2, tokens));
    whole_.values = without_memory<const X>(with_extent(values.extents(), 2, tokens));
  }

  /// The call over all ranks; its tensors have no memory.
  const AttentionArgs<T>& whole() const { return whole_; }

  /// Memory for all tokens of the heads of this rank, of a tensor with these extents on every rank.
  Tensor<X, 4> with_all_tokens(const Extents<4>& extents, const TokenShards& tokens) const {
    const Index heads = share(extents[1], ranks_.rank()).count();
    return Tensor<X, 4>::uninitialized({extents[0], heads, tokens.tokens(), extents[3]});
  }
  void bring_inputs(const Inputs& queries, const Inputs& keys, const Inputs& values) {
    bring(shards_.queries, queries, queries_);
    bring(shards_.keys, keys, keys_);
    bring(shards_.keys, values, values_);
  }
  /// Moves results back to the ranks with their tokens.
  template <class Y>
  void give_back(const TokenShards& tokens, const TensorView<const Y, 4>& from,
                 const TensorView<Y, 4>& to) const {
    heads_to_tokens<Y>(ranks_, tokens, kv_heads_, from, to);
  }

  /// The forward call of this rank's heads.
  AttentionArgs<T> forward(const TensorView<X, 4>& out, const OptionalView<T, 3>& lse) const {
    AttentionOptions<T> options = plain();
    options.log_sum_exp = lse;
    return placed(
        checked_args<T>(queries_.view(), keys_.view(), values_.view(), Result<T>(out), options));
  }
  /// Completes the checks of `local`, the backward call with the tensors of this rank.
  void check(BackwardArgs<T>& local, const AttentionOptions<T>& options,
             const GradientOptions<T>& gradients) const {
    local.forward.score_mods = score_mods_;
    local.more = gradients;
    check_backward_args(local, options);
    const auto check_heads = [&](const char* name, Index heads) {
      if (heads != 1 || whole_.heads() == 1 || ranks_.size() == 1) return;
      throw_invalid_argument(name, " is a sum over heads of several ranks, which is not computed");
    };
    if (gradients.grad_bias.given()) check_heads("grad_bias", gradients.grad_bias.view().extent(1));
    check_heads("grad_relative_bias", gradients.grad_relative_bias.extent(0));
  }

  /// Computes the gradients of `local`.
  void run_backward(const BackwardArgs<T>& local, const MaskRef& mask) const {
    const auto brought = [&](const TensorView<const X, 4>& from) {
      auto to = with_all_tokens(from.extents(), shards_.queries);
      bring(shards_.queries, from, to);
      return to;
    };
    const auto output = brought(local.output), grad_output = brought(local.grad_output);
    const auto lse = brought(as_columns(local.log_sum_exp));
    Tensor<X, 4> grad_queries(queries_.extents()), grad_keys(keys_.extents()),
        grad_values(values_.extents());
    BackwardArgs<T> args{
        placed(differentiated_args<T>(queries_.view(), keys_.view(), values_.view(), plain())),
        output.view(),
        lse.view().select(3, 0),
        grad_output.view(),
        grad_queries.view(),
        grad_keys.view(),
        grad_values.view(),
        {}};
    args.more = part_of(local.more, ranks_.rank());
    Tensor<T, 4> grad_lse;
    if (local.more.grad_log_sum_exp.given()) {
      grad_lse = brought(as_columns(local.more.grad_log_sum_exp.view()));
      args.more.grad_log_sum_exp = grad_lse.view().select(3, 0);
    }
    detail::run_backward(args, mask);
    for (Index rank = 0; rank < ranks_.size(); ++rank) tell(part_of(local.more, rank), rank);
    give_back<X>(shards_.queries, grad_queries, local.grad_queries);
    give_back<X>(shards_.keys, grad_keys, local.grad_keys);
    give_back<X>(shards_.keys, grad_values, local.grad_values);
  }

 private:
  void bring(const TokenShards& tokens, const Inputs& from, const TensorView<X, 4>& to) const {
    tokens_to_heads<X>(ranks_, tokens, kv_heads_, from, to);
  }
  static Index enough(const Communicator& ranks, Index kv_heads) {
    if (kv_heads < ranks.size()) {
      throw_invalid_argument(kv_heads, " key heads for ", ranks.size(),
                             " ranks: every rank needs one, or tokens are divided instead");
    }
    return kv_heads;
  }
  TokenRange share(Index heads, Index rank) const {
    return share_of_heads(heads, kv_heads_, rank, ranks_.size());
  }
  /// Of the gradients of changes of scores, those of the heads of a rank.
  GradientOptions<T> part_of(const GradientOptions<T>& all, Index rank) const {
    const TokenRange heads = share(whole_.heads(), rank);
    const auto of_heads = [&](const auto& view, std::size_t axis) {
      return view.extent(axis) == whole_.heads() ? view.slice(axis, heads.first, heads.end) : view;
    };
    const auto some = [&](std::span<T> numbers) {
      const auto first = static_cast<std::size_t>(heads.first);
      return numbers.empty() ? numbers
                             : numbers.subspan(first, static_cast<std::size_t>(heads.count()));
    };
    GradientOptions<T> part;
    if (all.grad_bias.given()) part.grad_bias = of_heads(all.grad_bias.view(), 1);
    part.grad_relative_bias = of_heads(all.grad_relative_bias, 0);
    part.grad_alibi_slopes = some(all.grad_alibi_slopes);
    part.grad_sinks = some(all.grad_sinks);
    return part;
  }
  /// Sends the part of a rank to all others.
  void tell(const GradientOptions<T>& part, Index rank) const {
    if (part.grad_bias.given()) ranks_.broadcast(part.grad_bias.view(), rank);
    ranks_.broadcast(part.grad_relative_bias, rank);
    ranks_.broadcast(TensorView<T, 1>(part.grad_alibi_slopes), rank);
    ranks_.broadcast(TensorView<T, 1>(part.grad_sinks), rank);
  }
  /// The options that do not belong to heads.
  AttentionOptions<T> plain() const {
    AttentionOptions<T> options = options_;
    options.alibi_slopes = {};
    options.relative_bias = {};
    options.bias = {};
    options.sinks = {};
    return options;
  }
  /// With the changes of scores of all heads.
  AttentionArgs<T> placed(AttentionArgs<T> args) const {
    args.score_mods = score_mods_;
    args.head_offset = share(whole_.heads(), ranks_.rank()).first;
    refer_to(args, options_);
    return args;
  }

  const Communicator& ranks_;
  const AttentionShards& shards_;
  Index kv_heads_;
  AttentionOptions<T> options_;  // of the whole call
  Tensor<X, 4> queries_, keys_, values_;
  ScoreMods<T> score_mods_;
  AttentionArgs<T> whole_;
};

}  // namespace detail

/// `sharded_attention` that divides heads instead of keys: tokens move to the rank that computes
/// their head, and results back. The same arguments, shapes, errors and bits; for queries, keys and
/// values of float, double or bfloat16. Collective.
///
/// Rank r of n computes the key heads from kv_heads · r / n on, with their query heads; kv_heads
/// must be n or more. A bias must be the same for all queries. For the time of the call a rank
/// holds a second copy of its share of queries, keys, values and results. Jacobs et al. 2023
/// (Ulysses).
template <class Q, class K, class V, class M, detail::MeantAsResult Out,
          detail::IsOptions Options = detail::OptionsOf<Q>>
void attention_by_heads(const Communicator& ranks, const AttentionShards& shards, const Q& queries,
                        const K& keys, const V& values, const M& mask, Out&& out,
                        const Options& options = {}) {
  using To = std::remove_reference_t<Out>;
  if constexpr (detail::expect_call_to<Options, M, To, Q, const K, const V>()) {
    using X = ValueOf<Q>;
    using T = ComputedIn<X>;
    const TensorView<const X, 4> q = detail::as_rank_4(view_of(queries)),
                                 k = detail::as_rank_4(view_of(keys)),
                                 v = detail::as_rank_4(view_of(values));
    const TensorView<X, 4> to = detail::as_rank_4(view_of(out));
    Agreement agreement = detail::agreement_of("attention_by_heads", ranks);
    const MaskRef ref(mask);
    std::optional<detail::CallByHeads<X>> call;
    agreement.check(ranks, [&] {
      AttentionOptions<T> local;
      local.log_sum_exp = options.log_sum_exp;
      detail::checked_args<T>(q, k, v, to, local);
      call.emplace(ranks, shards, q, k, v, options);
      detail::check_mask_fits(ref, call->whole());
      detail::add_call(agreement, call->whole(), shards, ref, options);
      agreement.add("log_sum_exp", options.log_sum_exp.given() ? "given" : "not given");
    });
    call->bring_inputs(q, k, v);
    Tensor<X, 4> own = call->with_all_tokens(to.extents(), shards.queries);
    Tensor<T, 4> lse;
    OptionalView<T, 3> own_lse;
    if (options.log_sum_exp.given()) {
      lse = Tensor<T, 4>({own.extent(0), own.extent(1), own.extent(2), 1});
      own_lse = lse.view().select(3, 0);
    }
    detail::run_attention(call->forward(own.view(), own_lse), ref);
    call->template give_back<X>(shards.queries, own, to);
    if (own_lse.given()) {
      const auto columns = detail::as_columns(options.log_sum_exp.view());
      call->template give_back<T>(shards.queries, lse, columns);
    }
  }
}

/// The gradients of `attention_by_heads`: `sharded_attention_backward`, with the same arguments,
/// shapes, errors and bits, divided by heads. Ranks with equally many heads have equal work under
/// any mask. `gradients` as in `attention_backward`, with the rows of this rank in
/// grad_log_sum_exp; all ranks receive the gradients of biases, slopes and sinks, which must have
/// an axis of heads.
template <class Q, class K, class V, class M, class Out, class Lse, class GradOut, class GradQ,
          class GradK, detail::MeantAsResult GradV,
          detail::IsOptions Options = detail::OptionsOf<Q>>
void attention_by_heads_backward(const Communicator& ranks, const AttentionShards& shards,
                                 const Q& queries, const K& keys, const V& values, const M& mask,
                                 const Out& output, const Lse& log_sum_exp,
                                 const GradOut& grad_output, GradQ&& grad_queries,
                                 GradK&& grad_keys, GradV&& grad_values,
                                 const Options& options = {},
                                 const detail::GradientsOf<Q>& gradients = {}) {
  if constexpr (detail::expect_backward<Options, M, Q, K, V, Out, Lse, GradOut, GradQ, GradK,
                                        GradV>()) {
    using T = ValueOf<Q>;
    static_assert(!std::is_same_v<T, bfloat16>, "sharded gradients are those of float or double");
    Agreement agreement = detail::agreement_of("attention_by_heads_backward", ranks);
    const MaskRef ref(mask);
    const TensorView<const T, 4> q = detail::as_rank_4(view_of(queries)),
                                 k = detail::as_rank_4(view_of(keys)),
                                 v = detail::as_rank_4(view_of(values));
    std::optional<detail::BackwardArgs<T>> local;
    std::optional<detail::CallByHeads<T>> call;
    agreement.check(ranks, [&] {
      local =
          detail::checked_backward_args<T>(queries, keys, values, output, log_sum_exp, grad_output,
                                           grad_queries, grad_keys, grad_values, {}, {});
      call.emplace(ranks, shards, q, k, v, options);
      call->check(*local, options, gradients);
      detail::check_mask_fits(ref, call->whole());
      detail::add_call(agreement, call->whole(), shards, ref, options);
      agreement.add("gradients (of log_sum_exp, bias, relative_bias, slopes, sinks)",
                    gradients.grad_log_sum_exp.given(), ' ', gradients.grad_bias.given(), ' ',
                    gradients.grad_relative_bias.extents(), ' ', gradients.grad_alibi_slopes.size(),
                    ' ', gradients.grad_sinks.size());
    });
    call->bring_inputs(q, k, v);
    call->run_backward(*local, ref);
  }
}

}  // namespace heed

#include <heed/definitions/attention.hpp>
