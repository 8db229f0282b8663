// SPDX-License-Identifier: MIT
#pragma once

#include <utility>
#include <vector>

#include <heed/core/error.hpp>
#include <heed/core/index.hpp>
#include <heed/distributed/agreement.hpp>
#include <heed/distributed/communicator.hpp>
#include <heed/distributed/token_shards.hpp>
#include <heed/tensor/copy.hpp>
#include <heed/tensor/tensor.hpp>
#include <heed/tensor/view.hpp>

namespace heed {

namespace detail {

/// Consecutive tokens that a rank has by two divisions of a sequence, or that move to another rank.
struct TokenMove {
  Index count = 0;
  Index from = 0;  // where they begin in the tensors of the one rank
  Index to = 0;    // and of the other
};

/// What moves from rank `source` to rank `target` when a sequence is divided anew, in order.
inline std::vector<TokenMove> moves_between(const TokenShards& from, Index source,
                                            const TokenShards& to, Index target) {
  std::vector<TokenMove> moves;
  Index sent = 0;
  for (const TokenRange& old : from.ranges(source)) {
    Index received = 0;
    for (const TokenRange& now : to.ranges(target)) {
      const Index first = larger(old.first, now.first), end = smaller(old.end, now.end);
      if (first < end) {
        moves.push_back({end - first, sent + first - old.first, received + first - now.first});
      }
      received += now.count();
    }
    sent += old.count();
  }
  return moves;
}

/// One way between two ranks: the tokens and heads that move there, and their memory while they do.
template <class T>
struct TokenPacket {
  std::vector<TokenMove> moves;
  TokenRange heads;     // in the tensor of this rank
  Tensor<T, 4> values;  // (batch, heads, tokens, dim)

  TokenPacket(std::vector<TokenMove> some, const TokenRange& of_heads, const Extents<4>& like)
      : moves(std::move(some)), heads(of_heads) {
    Extents<4> extents = like;
    extents[1] = heads.count();
    extents[2] = 0;
    for (const TokenMove& move : moves) extents[2] += move.count;
    values = Tensor<T, 4>::uninitialized(extents);
  }
  void fill_from(const TensorView<const T, 4>& source) {
    Index at = 0;
    for (const TokenMove& move : moves) {
      copy(source.slice(1, heads.first, heads.end).slice(2, move.from, move.from + move.count),
           values.view().slice(2, at, at + move.count));
      at += move.count;
    }
  }
  void empty_into(const TensorView<T, 4>& target) const {
    Index at = 0;
    for (const TokenMove& move : moves) {
      copy(values.view().slice(2, at, at + move.count),
           target.slice(1, heads.first, heads.end).slice(2, move.to, move.to + move.count));
      at += move.count;
    }
  }
};

/// Sends leaving[r], filled from `source`, to rank r, and receives arriving[r] into `target`.
template <class T>
void exchange(const Communicator& ranks, std::vector<TokenPacket<T>>& leaving,
              std::vector<TokenPacket<T>>& arriving, const TensorView<const T, 4>& source,
              const TensorView<T, 4>& target) {
  const auto numbers_of = [](TokenPacket<T>& packet) {
    return NumberRuns{NumberRun::of(packet.values.data(), packet.values.size())};
  };
  std::vector<NumberRuns> sent, received;
  for (auto& packet : leaving) {
    packet.fill_from(source);
    sent.push_back(numbers_of(packet));
  }
  for (auto& packet : arriving) received.push_back(numbers_of(packet));
  exchange(ranks, sent, received);
  for (const auto& packet : arriving) packet.empty_into(target);
}

/// Of `heads` heads, those that a rank computes where heads are divided: those of its key heads.
inline TokenRange share_of_heads(Index heads, Index kv_heads, Index rank, Index ranks) {
  const Index group = heads / kv_heads;
  return {kv_heads * rank / ranks * group, kv_heads * (rank + 1) / ranks * group};
}

/// From ranks with their tokens of all heads, (batch, heads, tokens of the rank, dim), to ranks
/// with all tokens of their share of the heads, (batch, heads of the rank, tokens, dim).
/// Collective.
template <class T>
void tokens_to_heads(const Communicator& ranks, const TokenShards& tokens, Index kv_heads,
                     const TensorView<const T, 4>& source, const TensorView<T, 4>& target) {
  const TokenShards whole = TokenShards::even(tokens.tokens(), 1);
  std::vector<TokenPacket<T>> leaving, arriving;
  for (Index rank = 0; rank < ranks.size(); ++rank) {
    const TokenRange theirs = share_of_heads(source.extent(1), kv_heads, rank, ranks.size());
    leaving.emplace_back(moves_between(tokens, ranks.rank(), whole, 0), theirs, source.extents());
    arriving.emplace_back(moves_between(tokens, rank, whole, 0), TokenRange{0, target.extent(1)},
                          target.extents());
  }
  exchange<T>(ranks, leaving, arriving, source, target);
}
/// And back.
template <class T>
void heads_to_tokens(const Communicator& ranks, const TokenShards& tokens, Index kv_heads,
                     const TensorView<const T, 4>& source, const TensorView<T, 4>& target) {
  const TokenShards whole = TokenShards::even(tokens.tokens(), 1);
  std::vector<TokenPacket<T>> leaving, arriving;
  for (Index rank = 0; rank < ranks.size(); ++rank) {
    const TokenRange theirs = share_of_heads(target.extent(1), kv_heads, rank, ranks.size());
    leaving.emplace_back(moves_between(whole, 0, tokens, rank), TokenRange{0, source.extent(1)},
                         source.extents());
    arriving.emplace_back(moves_between(whole, 0, tokens, ranks.rank()), theirs, target.extents());
  }
  exchange<T>(ranks, leaving, arriving, source, target);
}

/// A (batch, heads, queries) view as (batch, heads, queries, 1).
template <class T>
TensorView<T, 4> as_columns(const TensorView<T, 3>& view) {
  return {view.data_handle(),
          {view.extent(0), view.extent(1), view.extent(2), 1},
          {view.stride(0), view.stride(1), view.stride(2), 1}};
}

/// reshard where all ranks are known to agree.
template <class T>
void move_tokens(const Communicator& ranks, const TokenShards& from, const TokenShards& to,
                 const TensorView<const T, 4>& source, const TensorView<T, 4>& target) {
  const Index me = ranks.rank();
  const TokenRange heads{0, source.extent(1)};
  std::vector<TokenPacket<T>> leaving, arriving;
  for (Index rank = 0; rank < ranks.size(); ++rank) {
    leaving.emplace_back(moves_between(from, me, to, rank), heads, source.extents());
    arriving.emplace_back(moves_between(from, rank, to, me), heads, source.extents());
  }
  exchange<T>(ranks, leaving, arriving, source, target);
}

}  // namespace detail

/// Divides a sequence anew: `source` holds this rank's tokens of `from` along axis 2, and `target`
/// receives those of `to`; (batch, heads, tokens, dim). Collective. Throws InvalidArgument, on all
/// ranks with one message, for shards of other ranks, for two with different numbers of tokens, and
/// for tensors that do not have the tokens of their shards or differ otherwise; CommunicationError
/// where MPI fails.
template <class T>
void reshard(const Communicator& ranks, const TokenShards& from, const TokenShards& to,
             const TensorView<const T, 4>& source, const TensorView<T, 4>& target) {
  Agreement agreement = detail::agreement_of("reshard", ranks);
  agreement.check(ranks, [&] {
    detail::check_shard<T>(ranks, "source tensors", from, source);
    detail::check_shard<T>(ranks, "target tensors", to, target);
    const auto of_source = detail::with_extent(source.extents(), 2, from.tokens());
    const auto of_target = detail::with_extent(target.extents(), 2, to.tokens());
    if (of_source != of_target) {
      throw_shape_error("all of source is ", of_source, ", all of target ", of_target);
    }
    agreement.add("scalar type of", sizeof(T), " bytes");
    agreement.add("tensors", of_source);
    agreement.add("shards with fingerprint", detail::fingerprint_of(from), ' ',
                  detail::fingerprint_of(to));
  });
  detail::move_tokens<T>(ranks, from, to, source, target);
}

}  // namespace heed
