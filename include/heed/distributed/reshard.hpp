// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include <heed/core/error.hpp>
#include <heed/core/index.hpp>
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

/// One way between two ranks: the tokens that move there, and their memory while they do.
template <class T>
struct TokenPacket {
  std::vector<TokenMove> moves;
  Tensor<T, 4> values;  // (batch, heads, tokens, dim)

  TokenPacket(std::vector<TokenMove> some, const Extents<4>& like) : moves(std::move(some)) {
    Extents<4> extents = like;
    extents[2] = 0;
    for (const TokenMove& move : moves) extents[2] += move.count;
    values = Tensor<T, 4>::uninitialized(extents);
  }
  void fill_from(const TensorView<const T, 4>& source) {
    Index at = 0;
    for (const TokenMove& move : moves) {
      copy(source.slice(2, move.from, move.from + move.count),
           values.view().slice(2, at, at + move.count));
      at += move.count;
    }
  }
  void empty_into(const TensorView<T, 4>& target) const {
    Index at = 0;
    for (const TokenMove& move : moves) {
      copy(values.view().slice(2, at, at + move.count),
           target.slice(2, move.to, move.to + move.count));
      at += move.count;
    }
  }
};

}  // namespace detail

/// Divides a sequence anew: `source` holds this rank's tokens of `from` along axis 2, and `target`
/// receives those of `to`; (batch, heads, tokens, dim). Collective. Throws ShapeError if a tensor
/// does not have the tokens of its shards, CommunicationError where MPI fails.
template <class T>
void reshard(const Communicator& ranks, const TokenShards& from, const TokenShards& to,
             const TensorView<const T, 4>& source, const TensorView<T, 4>& target) {
  const Index me = ranks.rank(), size = ranks.size();
  if (source.extent(2) != from.count(me) || target.extent(2) != to.count(me)) {
    throw_shape_error("reshard: ", source.extent(2), " tokens to ", target.extent(2),
                      ", the shards have ", from.count(me), " and ", to.count(me));
  }
  const auto length = [](const detail::TokenPacket<T>& packet) {
    return detail::mpi_int(packet.values.size(), "the number of values of a message");
  };
  std::vector<detail::TokenPacket<T>> arriving, leaving;
  std::vector<MPI_Request> requests(2 * static_cast<std::size_t>(size), MPI_REQUEST_NULL);
  for (Index rank = 0; rank < size; ++rank) {
    auto& packet =
        arriving.emplace_back(detail::moves_between(from, rank, to, me), source.extents());
    if (packet.values.empty()) continue;
    detail::check_mpi(MPI_Irecv(packet.values.data(), length(packet), detail::datatype_of<T>(),
                                static_cast<int>(rank), 0, ranks.inner_handle(),
                                &requests[static_cast<std::size_t>(rank)]),
                      "MPI_Irecv from rank ", rank);
  }
  for (Index rank = 0; rank < size; ++rank) {
    auto& packet =
        leaving.emplace_back(detail::moves_between(from, me, to, rank), source.extents());
    if (packet.values.empty()) continue;
    packet.fill_from(source);
    detail::check_mpi(MPI_Isend(packet.values.data(), length(packet), detail::datatype_of<T>(),
                                static_cast<int>(rank), 0, ranks.inner_handle(),
                                &requests[static_cast<std::size_t>(size + rank)]),
                      "MPI_Isend to rank ", rank);
    if (rank != me) ranks.count_sent(packet.values.size() * static_cast<Index>(sizeof(T)));
  }
  detail::check_mpi(
      MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE),
      "MPI_Waitall");
  for (const auto& packet : arriving) packet.empty_into(target);
}

}  // namespace heed
