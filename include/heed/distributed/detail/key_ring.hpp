// SPDX-License-Identifier: MIT
#pragma once

#include <sched.h>

#include <algorithm>
#include <cstddef>
#include <vector>

#include <heed/attention/detail/operands.hpp>
#include <heed/core/index.hpp>
#include <heed/distributed/communicator.hpp>
#include <heed/distributed/ring_schedule.hpp>
#include <heed/distributed/token_shards.hpp>
#include <heed/kernels/attention_kernels.hpp>
#include <heed/tensor/copy.hpp>
#include <heed/tensor/tensor.hpp>
#include <heed/tensor/view.hpp>

namespace heed::detail {

/// Brings the keys and values of a sharded sequence to the ranks that need them, chunk by chunk in
/// key order. A piece of a chunk goes from its owner to the next rank that needs it, and from there
/// on to the next, around the ring: every rank receives it once and sends it at most once. A few
/// chunks are in memory: one that is computed, the others on their way. Owners send from their own
/// tensors, as soon as the receiver has room. All ranks take part in the same order, so the
/// earliest chunk that is on its way always arrives. X: the stored type.
template <class X>
class KeyRing {
 public:
  static constexpr Index slot_count = ring_slots;
  static constexpr Index page = simd::key_chunk;

  /// Takes memory; nothing is sent before `start`. keys (batch, kv_heads, tokens of this rank,
  /// head_dim) and values must live as long.
  KeyRing(const Communicator& ranks, const TokenShards& shards, const TensorView<const X, 4>& keys,
          const TensorView<const X, 4>& values)
      : ranks_(ranks),
        own_keys_(keys),
        own_values_(values),
        chunks_(pieces_of(shards, page)),
        tokens_(shards.tokens()),
        key_pages_(Tensor<X, 4>::uninitialized(pages_like(keys))),
        value_pages_(Tensor<X, 4>::uninitialized(pages_like(values))),
        tables_({keys.extent(0), chunks()}) {
    for (Index item = 0; item < keys.extent(0); ++item) {
      items_.push_back(tables_.data() + item * chunks());
    }
  }
  KeyRing(const KeyRing&) = delete;
  KeyRing& operator=(const KeyRing&) = delete;
  /// If messages are still under way, an error is: MPI may yet write to the pages, which are
  /// therefore never freed.
  ~KeyRing() {
    if (flying_.empty()) return;
    static_cast<void>(new Tensor<X, 4>(std::move(key_pages_)));
    static_cast<void>(new Tensor<X, 4>(std::move(value_pages_)));
  }

  Index chunks() const { return static_cast<Index>(chunks_.size()); }
  /// All keys and values of the sequence, of which those of a chunk can be read while it is here.
  template <class T>
  Operand<T> keys() const {
    return operand<T>(key_pages_, own_keys_);
  }
  template <class T>
  Operand<T> values() const {
    return operand<T>(value_pages_, own_values_);
  }

  /// Notes what is done and when, where `trace` is given; it lives as long.
  void trace_to(RingTrace* trace) { trace_ = trace; }
  /// Begins an event that has no end yet, and ends one.
  std::size_t note(RingEvent::Kind kind, Index chunk, TokenRange keys, Index other = -1,
                   Index bytes = 0) {
    if (trace_ == nullptr) return 0;
    const double now = MPI_Wtime() - started_;
    trace_->push_back({kind, chunk, keys, other, bytes, now, now});
    return trace_->size() - 1;
  }
  void note_end(std::size_t event) {
    if (trace_ != nullptr) (*trace_)[event].end = MPI_Wtime() - started_;
  }

  /// Begins. `needed` (ranks, chunks): which rank computes with which chunk, the same on all ranks.
  void start(const Tensor<bool, 2>& needed) {
    needed_ = needed;
    started_ = MPI_Wtime();
    own_.resize(static_cast<std::size_t>(ranks_.size()));
    for (Index chunk = 0; chunk < chunks(); ++chunk) {
      if (needed_(ranks_.rank(), chunk)) steps_.push_back(chunk);
      for (const TokenPiece& piece : pieces(chunk)) {
        if (piece.owner != ranks_.rank()) continue;
        const Index next = neighbor(piece, chunk, 1);
        if (next == piece.owner) continue;  // no other rank needs it
        own_[static_cast<std::size_t>(next)].flights.push_back(flight_of(piece, chunk, next));
      }
    }
    advance();
  }

  /// Waits for a chunk that this rank needs; chunks come in order. The one before is over.
  void wait_for(Index chunk) {
    const auto arrived = [&] {
      if (begun_ == 0 || steps_[begun_ - 1] < chunk) return false;
      return std::none_of(flying_.begin(), flying_.end(), [&](const Flight& flight) {
        return flight.chunk == chunk && !flight.here;
      });
    };
    current_ = chunk;
    for (advance(); !arrived(); advance()) sched_yield();
  }
  /// Waits until nothing of this rank is under way.
  void finish() {
    current_ = chunks();
    const auto over = [&] {
      return begun_ == steps_.size() && flying_.empty() &&
             std::all_of(own_.begin(), own_.end(),
                         [](const OwnPieces& own) { return own.over == own.flights.size(); });
    };
    for (advance(); !over(); advance()) sched_yield();
  }
  /// Passes on what has arrived, and begins what there is room for. MPI moves large messages only
  /// while it is called, so this is called often.
  void advance() {
    for (Flight& flight : flying_) advance(flight);
    std::erase_if(flying_, [](Flight& flight) {
      if (!flight.here || flight.out != MPI_REQUEST_NULL) return false;
      MPI_Type_free(&flight.type);
      return true;
    });
    while (begun_ < steps_.size() && has_room(begun_)) begin(begun_++);
    for (OwnPieces& own : own_) advance(own);
  }

 private:
  static constexpr Index tags = 32768;  // that every MPI has; far fewer pieces are on their way

  /// A piece under way.
  struct Flight {
    Index chunk = 0;
    MPI_Datatype type = MPI_DATATYPE_NULL;
    MPI_Request in = MPI_REQUEST_NULL;
    MPI_Request out = MPI_REQUEST_NULL;
    bool here = false;
    int next = -1;  // the rank to which it goes on; -1: none
    int tag = 0;    // says which piece it is: a rank sends what it has, in any order
    Index bytes = 0;
    TokenRange keys;
    Index local = 0;        // where they begin in this rank's tensors, if it owns them
    std::size_t event = 0;  // of the trace
  };

  /// The pieces of this rank that go to one other, in key order; a few are on their way.
  struct OwnPieces {
    std::vector<Flight> flights;
    std::size_t over = 0;
    std::size_t begun = 0;
  };

  Extents<4> pages_like(const TensorView<const X, 4>& tensor) const {
    return {smaller(slot_count, chunks()) * tensor.extent(0), tensor.extent(1), page,
            tensor.extent(3)};
  }
  template <class T>
  Operand<T> operand(const Tensor<X, 4>& pages, const TensorView<const X, 4>& own) const {
    return {pages.data(), page, items_.data(), with_extent(own.extents(), 2, tokens_)};
  }

  const std::vector<TokenPiece>& pieces(Index chunk) const {
    return chunks_[static_cast<std::size_t>(chunk)];
  }
  /// The neighbor of this rank on the way of a piece that it has or needs: the next rank that needs
  /// it (step 1), or the one before (step -1); the owner where there is none.
  Index neighbor(const TokenPiece& piece, Index chunk, Index step) const {
    const Index size = ranks_.size();
    Index rank = (ranks_.rank() + size + step) % size;
    while (rank != piece.owner && !needed_(rank, chunk)) rank = (rank + size + step) % size;
    return rank;
  }

  /// A step takes the pages of the one `slot_count` before, which must be computed and passed on.
  bool has_room(std::size_t step) const {
    if (step < static_cast<std::size_t>(slot_count)) return true;
    const Index old = steps_[step - static_cast<std::size_t>(slot_count)];
    return old < current_ &&
           std::none_of(flying_.begin(), flying_.end(),
                        [&](const Flight& flight) { return flight.chunk == old; });
  }

  void begin(std::size_t step) {
    const Index chunk = steps_[step], slot = static_cast<Index>(step) % slot_count;
    const Index batch = own_keys_.extent(0);
    for (Index item = 0; item < batch; ++item) tables_(item, chunk) = slot * batch + item;
    for (const TokenPiece& piece : pieces(chunk)) {
      if (piece.owner == ranks_.rank()) {
        put_own(own_keys_, key_pages_, piece, chunk, slot);
        put_own(own_values_, value_pages_, piece, chunk, slot);
        continue;
      }
      Flight flight = flight_of(piece, chunk, neighbor(piece, chunk, 1));
      const TensorView<const X, 4> places[] = {place_of(key_pages_, piece, chunk, slot),
                                               place_of(value_pages_, piece, chunk, slot)};
      flight.type = type_of_views<X>(places);
      const auto from = static_cast<int>(neighbor(piece, chunk, -1));
      check_mpi(MPI_Irecv(MPI_BOTTOM, 1, flight.type, from, flight.tag, ranks_.inner_handle(),
                          &flight.in),
                "MPI_Irecv of keys from rank ", from);
      flight.event = note(RingEvent::Kind::receive, chunk, flight.keys, from, flight.bytes);
      flying_.push_back(flight);
    }
  }
  Flight flight_of(const TokenPiece& piece, Index chunk, Index next) const {
    Flight flight;
    flight.chunk = chunk;
    flight.next = next == piece.owner ? -1 : static_cast<int>(next);
    flight.tag = static_cast<int>(piece.number % tags);
    flight.keys = {piece.first, piece.end};
    flight.local = piece.local;
    flight.bytes = flight.keys.count() * own_keys_.extent(0) * own_keys_.extent(1) *
                   (own_keys_.extent(3) + own_values_.extent(3)) * static_cast<Index>(sizeof(X));
    return flight;
  }

  /// The place of a piece in the pages of a slot.
  TensorView<X, 4> place_of(Tensor<X, 4>& pages, const TokenPiece& piece, Index chunk,
                            Index slot) const {
    const Index batch = own_keys_.extent(0);
    return pages.view()
        .slice(0, slot * batch, (slot + 1) * batch)
        .slice(2, piece.first - chunk * page, piece.end - chunk * page);
  }
  void put_own(const TensorView<const X, 4>& from, Tensor<X, 4>& pages, const TokenPiece& piece,
               Index chunk, Index slot) const {
    copy(from.slice(2, piece.local, piece.local + piece.end - piece.first),
         place_of(pages, piece, chunk, slot));
  }

  void advance(OwnPieces& own) {
    for (; own.over < own.begun; ++own.over) {
      Flight& first = own.flights[own.over];
      advance(first);
      if (first.out != MPI_REQUEST_NULL) break;
      MPI_Type_free(&first.type);
    }
    const std::size_t end = std::min(own.flights.size(), own.over + std::size_t{slot_count});
    for (; own.begun < end; ++own.begun) {
      Flight& flight = own.flights[own.begun];
      const Index at = flight.local, after = at + flight.keys.count();
      const TensorView<const X, 4> pieces[] = {own_keys_.slice(2, at, after),
                                               own_values_.slice(2, at, after)};
      flight.type = type_of_views<X>(pieces);
      flight.here = true;
      send_on(flight);
    }
  }
  void advance(Flight& flight) {
    int done = 0;
    if (flight.in != MPI_REQUEST_NULL) {
      check_mpi(MPI_Test(&flight.in, &done, MPI_STATUS_IGNORE), "keys of chunk ", flight.chunk);
      if (done != 0) {
        flight.here = true;
        note_end(flight.event);
        send_on(flight);
      }
    } else if (flight.out != MPI_REQUEST_NULL) {
      check_mpi(MPI_Test(&flight.out, &done, MPI_STATUS_IGNORE), "keys of chunk ", flight.chunk);
      if (done != 0) note_end(flight.event);
    }
  }
  void send_on(Flight& flight) {
    if (flight.next < 0) return;
    check_mpi(MPI_Isend(MPI_BOTTOM, 1, flight.type, flight.next, flight.tag, ranks_.inner_handle(),
                        &flight.out),
              "MPI_Isend of keys to rank ", flight.next);
    ranks_.count_sent(flight.bytes);
    flight.event =
        note(RingEvent::Kind::send, flight.chunk, flight.keys, flight.next, flight.bytes);
  }

  const Communicator& ranks_;
  TensorView<const X, 4> own_keys_;
  TensorView<const X, 4> own_values_;
  std::vector<std::vector<TokenPiece>> chunks_;
  Index tokens_;
  Tensor<X, 4> key_pages_;    // (slot · batch + item, kv_heads, page, head_dim)
  Tensor<X, 4> value_pages_;  // likewise
  Tensor<Index, 2> tables_;   // (batch, chunks): the page of a chunk that is here
  std::vector<const Index*> items_;
  Tensor<bool, 2> needed_;
  std::vector<Index> steps_;    // the chunks in which this rank takes part
  std::vector<Flight> flying_;  // what others own
  std::vector<OwnPieces> own_;  // by the rank to which they go
  std::size_t begun_ = 0;
  RingTrace* trace_ = nullptr;
  double started_ = 0;
  Index current_ = -1;  // the chunk that is computed; those before are over
};

}  // namespace heed::detail
