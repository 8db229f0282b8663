// SPDX-License-Identifier: MIT
#pragma once

#include <sched.h>

#include <array>
#include <cstddef>
#include <utility>
#include <vector>

#include <heed/core/index.hpp>
#include <heed/distributed/communicator.hpp>
#include <heed/distributed/token_shards.hpp>
#include <heed/tensor/tensor.hpp>
#include <heed/tensor/view.hpp>

namespace heed::detail {

/// What the backward pass reads and writes of some rows of queries. All (batch, heads, rows, …).
template <class T>
struct QueryRows {
  Tensor<T, 4> queries, output, grad_output, log_sum_exp, grad_queries;

  QueryRows(Index batch, Index heads, Index rows, Index head_dim, Index value_dim)
      : queries({batch, heads, rows, head_dim}),
        output({batch, heads, rows, value_dim}),
        grad_output({batch, heads, rows, value_dim}),
        log_sum_exp({batch, heads, rows, 1}),
        grad_queries({batch, heads, rows, head_dim}) {}

  std::array<Tensor<T, 4>*, 5> all() {
    return {&queries, &output, &grad_output, &log_sum_exp, &grad_queries};
  }
};

/// The order in which runs of queries meet the keys of all ranks: queries travel, keys stay. Rank r
/// holds the r-th run of keys. A unit is a run of queries of every `group`-th head: it goes from
/// its owner to the first rank with keys that it sees, on to the next one, each adding to its
/// gradient, and the gradient returns to the owner. All ranks take the units in one order, so that
/// every key meets its queries in order, and every query its keys.
template <class T>
class QueryRing {
 public:
  /// Rows of a unit: whole blocks of queries.
  static constexpr Index span = 512;

  /// `own`: the rows of this rank by `shards`; `run` writes their gradient.
  /// `sees` (ranks, spans): whether a span of queries sees keys of a rank, the same on all ranks.
  QueryRing(const Communicator& ranks, const TokenShards& shards, QueryRows<T> own, Index group,
            const Tensor<bool, 2>& sees)
      : ranks_(ranks), shards_(shards), own_(std::move(own)), group_(group), sees_(sees) {
    const auto& q = own_.queries.extents();
    for (std::size_t i = 0; i < slot_count; ++i) {
      slots_.emplace_back(q[0], q[1], span, q[3], own_.output.extent(3));
    }
    arriving_.assign(slot_count, MPI_REQUEST_NULL);
    leaving_.assign(slot_count, MPI_REQUEST_NULL);
  }
  QueryRing(const QueryRing&) = delete;
  QueryRing& operator=(const QueryRing&) = delete;
  /// As ~KeyRing: memory that MPI may yet use is never freed.
  ~QueryRing() {
    if (done_) return;
    slots_.push_back(std::move(own_));
    static_cast<void>(new std::vector<QueryRows<T>>(std::move(slots_)));
  }

  QueryRows<T>& own() { return own_; }

  /// The rows [first, end) of the sequence, `rows` of memory, of the heads member, member + group,
  /// …
  struct Unit {
    Index member = 0;
    Index first = 0;
    Index end = 0;
    QueryRows<T>* rows = nullptr;
  };

  /// Calls use(unit) for each unit that sees keys of this rank, in order.
  template <class Use>
  void run(const Use& use) {
    own_.grad_queries.fill(0);
    const Index spans = sees_.extent(1);
    for (Index number = 0; number < group_ * spans; ++number) {
      begin_own(number);
      if (sees_(ranks_.rank(), number % spans)) units_.push_back(number);
    }
    done_ = false;
    if (!units_.empty()) receive(0);
    for (std::size_t i = 0; i < units_.size(); ++i) {
      wait(arriving_[i % slot_count]);
      if (i + 1 < units_.size()) receive(i + 1);
      const Index number = units_[i];
      use(Unit{number / spans, first_of(number), end_of(number), &slots_[i % slot_count]});
      pass_on(i);
    }
    for (MPI_Request& request : leaving_) wait(request);
    for (MPI_Request& request : own_requests_) wait(request);
    done_ = true;
  }
  /// Lets MPI move messages: it does so only while it is called.
  void advance() const {
    int there = 0;
    MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, ranks_.inner_handle(), &there, MPI_STATUS_IGNORE);
  }

 private:
  static constexpr Index tags = 32768;
  static constexpr std::size_t slot_count = 3;  // one computed, one arriving, one leaving

  Index first_of(Index number) const { return number % sees_.extent(1) * span; }
  Index end_of(Index number) const { return smaller(first_of(number) + span, shards_.tokens()); }
  int tag_of(Index number, bool gradient) const {
    return static_cast<int>((2 * number + (gradient ? 1 : 0)) % tags);
  }
  Index owner_of(Index number) const {
    for (Index rank = 0; rank < shards_.ranks(); ++rank) {
      for (const TokenRange& range : shards_.ranges(rank)) {
        if (range.first <= first_of(number) && first_of(number) < range.end) return rank;
      }
    }
    return -1;
  }
  /// The nearest rank after `rank` (step 1) that the unit visits, or before it (step -1); -1 if
  /// there is none.
  Index next_of(Index number, Index rank, Index step = 1) const {
    do {
      rank += step;
    } while (rank >= 0 && rank < ranks_.size() && !sees_(rank, number % sees_.extent(1)));
    return rank < ranks_.size() ? rank : -1;
  }

  /// The rows of a unit in `tensors`, of which the first is row `row`.
  template <std::size_t Count>
  MPI_Datatype type_of(const std::array<Tensor<T, 4>*, Count>& tensors, Index number, Index row) {
    const Index end = row + end_of(number) - first_of(number), member = number / sees_.extent(1);
    std::array<TensorView<const T, 4>, Count> views;
    for (std::size_t i = 0; i < Count; ++i) {
      views[i] = tensors[i]->view().split(1, group_).select(2, member).slice(2, row, end);
    }
    return type_of_views<T>(views);
  }
  /// Starts a message and frees its type, which MPI keeps for as long as it needs it.
  MPI_Request send(MPI_Datatype type, Index to, int tag) const {
    MPI_Request request = MPI_REQUEST_NULL;
    check_mpi(
        MPI_Isend(MPI_BOTTOM, 1, type, static_cast<int>(to), tag, ranks_.inner_handle(), &request),
        "MPI_Isend of queries to rank ", to);
    MPI_Count bytes = 0;
    MPI_Type_size_x(type, &bytes);
    if (to != ranks_.rank()) ranks_.count_sent(static_cast<Index>(bytes));
    MPI_Type_free(&type);
    return request;
  }
  MPI_Request expect(MPI_Datatype type, Index from, int tag) const {
    MPI_Request request = MPI_REQUEST_NULL;
    check_mpi(MPI_Irecv(MPI_BOTTOM, 1, type, static_cast<int>(from), tag, ranks_.inner_handle(),
                        &request),
              "MPI_Irecv of queries from rank ", from);
    MPI_Type_free(&type);
    return request;
  }
  static void wait(MPI_Request& request) {
    int there = 0;
    while (true) {
      check_mpi(MPI_Test(&request, &there, MPI_STATUS_IGNORE), "queries of another rank");
      if (there != 0) return;
      sched_yield();
    }
  }

  static std::array<Tensor<T, 4>*, 4> read_of(QueryRows<T>& rows) {
    return {&rows.queries, &rows.output, &rows.grad_output, &rows.log_sum_exp};
  }
  static std::array<Tensor<T, 4>*, 1> gradient_of(QueryRows<T>& rows) {
    return {&rows.grad_queries};
  }

  /// Sends a unit of this rank on its way, and expects its gradient.
  void begin_own(Index number) {
    const Index first = next_of(number, -1);
    if (owner_of(number) != ranks_.rank() || first < 0) return;
    const Index row = first_of(number) - shards_.ranges(ranks_.rank())[0].first;
    const Index last = next_of(number, ranks_.size(), -1);
    own_requests_.push_back(
        expect(type_of(gradient_of(own_), number, row), last, tag_of(number, true)));
    own_requests_.push_back(
        send(type_of(read_of(own_), number, row), first, tag_of(number, false)));
  }
  /// Expects unit `i` of those of this rank, where the one `slot_count` before it was.
  void receive(std::size_t i) {
    QueryRows<T>& slot = slots_[i % slot_count];
    wait(leaving_[i % slot_count]);
    const Index number = units_[i], before = next_of(number, ranks_.rank(), -1);
    if (before < 0) slot.grad_queries.fill(0);
    arriving_[i % slot_count] =
        before < 0
            ? expect(type_of(read_of(slot), number, 0), owner_of(number), tag_of(number, false))
            : expect(type_of(slot.all(), number, 0), before, tag_of(number, false));
  }
  void pass_on(std::size_t i) {
    QueryRows<T>& slot = slots_[i % slot_count];
    const Index number = units_[i], next = next_of(number, ranks_.rank());
    leaving_[i % slot_count] =
        next < 0
            ? send(type_of(gradient_of(slot), number, 0), owner_of(number), tag_of(number, true))
            : send(type_of(slot.all(), number, 0), next, tag_of(number, false));
  }

  const Communicator& ranks_;
  const TokenShards& shards_;
  QueryRows<T> own_;
  Index group_;
  const Tensor<bool, 2>& sees_;
  std::vector<QueryRows<T>> slots_;
  std::vector<MPI_Request> arriving_, leaving_;  // of each slot
  std::vector<MPI_Request> own_requests_;
  std::vector<Index> units_;  // that see keys of this rank
  bool done_ = true;
};

}  // namespace heed::detail
