// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <queue>
#include <utility>
#include <vector>

#include <heed/core/error.hpp>
#include <heed/core/index.hpp>
#include <heed/distributed/token_shards.hpp>
#include <heed/kernels/attention_kernels.hpp>
#include <heed/masks/detail/mask_ref.hpp>
#include <heed/masks/policy.hpp>
#include <heed/tensor/tensor.hpp>

namespace heed {

/// What a rank does during `sharded_attention`: it computes with a chunk of simd::key_chunk keys,
/// or sends or receives the keys of a chunk that one rank owns.
struct RingEvent {
  enum class Kind : std::uint8_t { compute, receive, send };
  Kind kind = Kind::compute;
  Index chunk = 0;
  TokenRange keys;
  Index other = -1;  // the rank that sends or receives them
  Index bytes = 0;   // that move
  /// Seconds after the first message could leave. A receive begins when there is room for the keys.
  double begin = 0, end = 0;
};

/// The events of one rank in the order in which they began; those of one kind and chunk by key.
using RingTrace = std::vector<RingEvent>;

namespace detail {

/// Chunks in memory at one time: one that is computed, the others on their way.
inline constexpr Index ring_slots = 4;

/// Consecutive tokens that travel together: those of one chunk that one rank holds.
struct TokenPiece {
  Index first = 0;
  Index end = 0;
  Index owner = 0;
  Index local = 0;  // where they begin in the tensors of the owner
  Index number = 0;
};

/// The tokens of the shards in order, cut where ranks and chunks change: entry c is chunk c.
inline std::vector<std::vector<TokenPiece>> pieces_of(const TokenShards& shards, Index chunk) {
  std::vector<std::vector<TokenPiece>> chunks(
      static_cast<std::size_t>(parts_of(shards.tokens(), chunk)));
  for (Index rank = 0; rank < shards.ranks(); ++rank) {
    Index local = 0;
    for (const TokenRange& range : shards.ranges(rank)) {
      for (Index first = range.first; first < range.end;) {
        const Index end = smaller(range.end, (first / chunk + 1) * chunk);
        chunks[static_cast<std::size_t>(first / chunk)].push_back({first, end, rank, local, 0});
        local += end - first;
        first = end;
      }
    }
  }
  Index number = 0;
  for (auto& pieces : chunks) {
    std::sort(pieces.begin(), pieces.end(),
              [](const TokenPiece& a, const TokenPiece& b) { return a.first < b.first; });
    for (TokenPiece& piece : pieces) piece.number = number++;
  }
  return chunks;
}

/// The scores that a rank computes for queries [row, row + rows) of the whole call with keys
/// [first, end): tiles of 64 × 96 that the mask does not call empty, as the kernels do.
inline double scores_of(const MaskRef& mask, Tile tile) {
  const auto area = [&] {
    return static_cast<double>(tile.queries()) * static_cast<double>(tile.keys());
  };
  const Coverage coverage = mask.coverage(tile);
  if (coverage == Coverage::none) return 0;
  const Index row_blocks = parts_of(tile.queries(), simd::query_block);
  const Index key_blocks = parts_of(tile.keys(), simd::key_block);
  if (coverage == Coverage::full || (row_blocks == 1 && key_blocks == 1)) return area();
  Tile rest = tile;
  if (row_blocks > 1) {
    tile.last_query = tile.first_query + row_blocks / 2 * simd::query_block - 1;
    rest.first_query = tile.last_query + 1;
    return scores_of(mask, tile) + scores_of(mask, rest);
  }
  tile.last_key = tile.first_key + key_blocks / 2 * simd::key_block - 1;
  rest.first_key = tile.last_key + 1;
  // A chunk that 64 queries may see as a whole travels, even if none of its parts is seen.
  const double sum = scores_of(mask, tile) + scores_of(mask, rest);
  return sum > 0 ? sum : 1;
}

}  // namespace detail

/// The sizes of a call of `sharded_attention` that decide what it costs.
struct RingShape {
  Index batch = 1;
  Index heads = 1;
  Index kv_heads = 1;
  Index head_dim = 64;
  Index value_dim = 64;
  Index element_bytes = 4;

  /// Of a token's keys and values.
  Index key_bytes() const { return batch * kv_heads * (head_dim + value_dim) * element_bytes; }
  /// Of what a rank holds: its tensors, the chunks on their way, the softmax of its rows.
  Index bytes_held(const TokenShards& queries, const TokenShards& keys, Index rank) const {
    Index rows = 0;
    for (const TokenRange& run : queries.ranges(rank)) {
      rows += detail::parts_of(run.count(), simd::query_block) * simd::query_block;
    }
    const Index pages =
        detail::smaller(detail::ring_slots, detail::parts_of(keys.tokens(), simd::key_chunk));
    return (keys.count(rank) + pages * simd::key_chunk) * key_bytes() +
           batch * heads *
               (queries.count(rank) * (head_dim + value_dim) * element_bytes +
                rows * (value_dim + 2) * detail::larger(element_bytes, Index{4}));
  }
};

/// What a machine can do, for a prediction.
struct RingCosts {
  double latency = 0;      // seconds of a message, beside those of its bytes
  double bandwidth = 1e9;  // bytes a second that a rank sends; receiving has no limit
  double flops = 1e9;      // of a rank a second; a score takes 2 · (head_dim + value_dim)
};

/// What one rank does in a simulated call.
struct SimulatedRank {
  Index bytes_sent = 0;
  Index most_chunks = 0;  // in memory at one time
  double computing = 0;   // seconds
  double end = 0;         // seconds until it has computed and sent everything
  RingTrace trace = {};   // where asked for
};

/// How many scores each rank computes with each chunk of keys in a call of `sharded_attention`:
/// (ranks, chunks), 0 where the rank does not get the chunk.
template <MaskPolicy M>
Tensor<double, 2> scores_by_chunk(const TokenShards& queries, const TokenShards& keys,
                                  const RingShape& shape, const M& mask) {
  const MaskRef ref(mask);
  const Index all = keys.tokens(), offset = all - queries.tokens();
  Tensor<double, 2> scores({queries.ranks(), detail::parts_of(all, simd::key_chunk)});
  const Index heads = ref.depends_on_head() ? shape.heads : 1;
  const Index alike = ref.depends_on_head() ? 1 : shape.heads;
  for (Index rank = 0; rank < queries.ranks(); ++rank) {
    for (const TokenRange& run : queries.ranges(rank)) {
      for (Index chunk = 0; chunk < scores.extent(1); ++chunk) {
        const Index first = chunk * simd::key_chunk;
        const Index last = detail::smaller(first + simd::key_chunk, all) - 1;
        for (Index item = 0; item < shape.batch; ++item) {
          for (Index head = 0; head < heads; ++head) {
            const Tile tile{item, head,  offset + run.first, offset + run.end - 1, first,
                            last, offset};
            scores(rank, chunk) += detail::scores_of(ref, tile) * static_cast<double>(alike);
          }
        }
      }
    }
  }
  return scores;
}

namespace detail {

/// The ring of KeyRing, with times from a model in place of messages. What happens next is always
/// the earliest thing that can; a rank sends one message at a time, in the order in which they can
/// leave, and a message leaves once its receiver has room.
class RingSimulation {
 public:
  RingSimulation(const TokenShards& keys, const RingShape& shape, const RingCosts& costs,
                 const Tensor<double, 2>& scores, bool traced)
      : keys_(keys),
        shape_(shape),
        costs_(costs),
        scores_(scores),
        traced_(traced),
        ranks_(static_cast<std::size_t>(scores.extent(0))) {
    for (const auto& pieces : pieces_of(keys, simd::key_chunk)) {
      first_way_.push_back(ways_.size());
      for (const TokenPiece& piece : pieces) add_way(piece);
    }
    first_way_.push_back(ways_.size());
  }

  std::vector<SimulatedRank> run() {
    for (Index rank = 0; rank < size(); ++rank) begin_steps(rank, 0);
    while (!events_.empty()) {
      const Event event = events_.top();
      events_.pop();
      if (event.way < 0) {
        computed(event.rank, event.time);
      } else {
        arrived(static_cast<std::size_t>(event.way), static_cast<std::size_t>(event.rank),
                event.time);
      }
    }
    std::vector<SimulatedRank> told;
    for (Rank& rank : ranks_) told.push_back(std::move(rank.told));
    return told;
  }

 private:
  /// The way of a piece: its owner, then the ranks that need it.
  struct Way {
    TokenPiece piece;
    Index chunk = 0;
    std::vector<Index> stops;
    std::vector<std::uint8_t> here, room;  // of each stop
  };
  struct Step {
    Index chunk = 0;
    Index missing = 0;  // pieces
    Index sending = 0;  // those of others
  };
  struct Rank {
    std::vector<Step> steps;   // the chunks in which it takes part
    std::size_t begun = 0;     // of the steps
    std::size_t computes = 0;  // the step that it computes or waits for; those before are over
    bool busy = false;         // with computing,
    bool sends = false;        // with sending
    std::deque<std::pair<std::size_t, std::size_t>> leaving = {};  // way, stop
    SimulatedRank told = {};
  };
  struct Event {
    double time;
    Index number;  // of two at one time the one that was caused first
    Index way;     // whose message arrives; -1: a rank has computed
    Index rank;    // or the stop of the way at which it arrives

    friend bool operator<(const Event& a, const Event& b) {
      return a.time != b.time ? a.time > b.time : a.number > b.number;
    }
  };

  Index size() const { return static_cast<Index>(ranks_.size()); }
  Rank& at(Index rank) { return ranks_[static_cast<std::size_t>(rank)]; }
  bool needs(Index rank, Index chunk) const { return scores_(rank, chunk) > 0; }

  void add_way(const TokenPiece& piece) {
    Way way{piece, piece.first / simd::key_chunk, {piece.owner}, {}, {}};
    for (Index step = 1; step < size(); ++step) {
      const Index rank = (piece.owner + step) % size();
      if (needs(rank, way.chunk)) way.stops.push_back(rank);
    }
    way.here.assign(way.stops.size(), 0);
    way.room.assign(way.stops.size(), 0);
    way.here[0] = 1;
    if (needs(piece.owner, way.chunk)) add_step(piece.owner, way.chunk);
    for (std::size_t i = 1; i < way.stops.size(); ++i) add_step(way.stops[i], way.chunk);
    ways_.push_back(std::move(way));
  }
  void add_step(Index rank, Index chunk) {
    auto& steps = at(rank).steps;
    if (steps.empty() || steps.back().chunk != chunk) steps.push_back({chunk});
  }

  /// Whether a step still takes memory.
  static bool is_open(const Rank& rank, std::size_t step) {
    const Step& it = rank.steps[step];
    return it.missing > 0 || it.sending > 0 || step >= rank.computes;
  }
  static bool has_room(const Rank& rank) {
    constexpr auto slot_count = static_cast<std::size_t>(ring_slots);
    return rank.begun < slot_count || !is_open(rank, rank.begun - slot_count);
  }
  /// A rank begins with the chunks for which it has room, and computes if it can.
  void begin_steps(Index number, double now) {
    Rank& rank = at(number);
    for (; rank.begun < rank.steps.size() && has_room(rank); ++rank.begun) {
      Step& step = rank.steps[rank.begun];
      const auto chunk = static_cast<std::size_t>(step.chunk);
      for (std::size_t i = first_way_[chunk]; i < first_way_[chunk + 1]; ++i) {
        take_part(ways_[i], i, number, step, now);
      }
      count_chunks(rank);
    }
    compute(number, now);
  }
  void take_part(Way& way, std::size_t index, Index number, Step& step, double now) {
    const auto stop = stop_of(way, number);
    if (stop == 0) return;
    if (stop + 1 < way.stops.size()) ++step.sending;
    way.room[stop] = 1;
    ++step.missing;
    note(at(number), RingEvent::Kind::receive, way, way.stops[stop - 1], now, now);
    leave(index, stop, now);
  }
  std::size_t stop_of(const Way& way, Index rank) const {
    const auto away = [&](Index other) { return (other - way.piece.owner + size()) % size(); };
    const auto found =
        std::lower_bound(way.stops.begin(), way.stops.end(), rank,
                         [&](Index stop, Index wanted) { return away(stop) < away(wanted); });
    return static_cast<std::size_t>(found - way.stops.begin());
  }
  static void count_chunks(Rank& rank) {
    Index held = 0;
    for (std::size_t i = 0; i <= rank.begun && i < ring_slots; ++i) {
      held += is_open(rank, rank.begun - i) ? 1 : 0;
    }
    rank.told.most_chunks = larger(rank.told.most_chunks, held);
  }

  /// A piece leaves for a stop if it is at the one before and there is room.
  void leave(std::size_t index, std::size_t stop, double now) {
    const Way& way = ways_[index];
    if (stop == way.stops.size() || way.here[stop - 1] == 0 || way.room[stop] == 0) return;
    Rank& sender = at(way.stops[stop - 1]);
    sender.leaving.push_back({index, stop});
    if (!sender.sends) send(sender, now);
  }
  void send(Rank& sender, double now) {
    sender.sends = !sender.leaving.empty();
    if (!sender.sends) return;
    const auto [index, stop] = sender.leaving.front();
    sender.leaving.pop_front();
    const Way& way = ways_[index];
    const double end = now + costs_.latency + static_cast<double>(bytes_of(way)) / costs_.bandwidth;
    note(sender, RingEvent::Kind::send, way, way.stops[stop], now, end);
    sender.told.bytes_sent += bytes_of(way);
    events_.push({end, events_made_++, static_cast<Index>(index), static_cast<Index>(stop)});
  }
  void arrived(std::size_t index, std::size_t stop, double now) {
    Way& way = ways_[index];
    const Index from = way.stops[stop - 1], to = way.stops[stop];
    way.here[stop] = 1;
    --step_of(at(to), way.chunk).missing;
    if (stop > 1) --step_of(at(from), way.chunk).sending;
    for (RingEvent& event : at(to).told.trace) {
      if (event.kind == RingEvent::Kind::receive && event.keys.first == way.piece.first) {
        event.end = now;
      }
    }
    leave(index, stop + 1, now);
    at(from).told.end = now;
    send(at(from), now);
    begin_steps(from, now);
    begin_steps(to, now);
  }
  static Step& step_of(Rank& rank, Index chunk) {
    std::size_t i = rank.begun;
    while (rank.steps[--i].chunk != chunk) {
    }
    return rank.steps[i];
  }

  void compute(Index number, double now) {
    Rank& rank = at(number);
    if (rank.busy || rank.computes >= rank.begun || rank.steps[rank.computes].missing > 0) return;
    const Index chunk = rank.steps[rank.computes].chunk;
    const double seconds = scores_(number, chunk) * 2 *
                           static_cast<double>(shape_.head_dim + shape_.value_dim) / costs_.flops;
    rank.busy = true;
    rank.told.computing += seconds;
    const Index first = chunk * simd::key_chunk;
    if (traced_) {
      const TokenRange keys{first, smaller(first + simd::key_chunk, keys_.tokens())};
      rank.told.trace.push_back({RingEvent::Kind::compute, chunk, keys, -1, 0, now, now + seconds});
    }
    events_.push({now + seconds, events_made_++, -1, number});
  }
  void computed(Index number, double now) {
    Rank& rank = at(number);
    rank.busy = false;
    rank.told.end = now;
    ++rank.computes;
    begin_steps(number, now);
  }

  Index bytes_of(const Way& way) const {
    return (way.piece.end - way.piece.first) * shape_.key_bytes();
  }
  void note(Rank& rank, RingEvent::Kind kind, const Way& way, Index other, double begin,
            double end) const {
    if (!traced_) return;
    const TokenRange keys{way.piece.first, way.piece.end};
    rank.told.trace.push_back({kind, way.chunk, keys, other, bytes_of(way), begin, end});
  }

  const TokenShards& keys_;
  RingShape shape_;
  RingCosts costs_;
  const Tensor<double, 2>& scores_;
  bool traced_;
  std::vector<Rank> ranks_;
  std::vector<Way> ways_;
  std::vector<std::size_t> first_way_;  // of each chunk
  std::priority_queue<Event> events_;
  Index events_made_ = 0;
};

}  // namespace detail

/// A call of `sharded_attention` on paper: the same messages, in any number of ranks, with times
/// from a model of the machines. `scores`: those of scores_by_chunk. Throws InvalidArgument for
/// scores of other ranks or chunks than the keys have, a latency below 0, and a bandwidth or flops
/// that are not above 0.
inline std::vector<SimulatedRank> simulate_ring(const TokenShards& keys, const RingShape& shape,
                                                const RingCosts& costs,
                                                const Tensor<double, 2>& scores,
                                                bool traced = false) {
  const Extents<2> expected{keys.ranks(), detail::parts_of(keys.tokens(), simd::key_chunk)};
  if (scores.extents() != expected || !(costs.latency >= 0) || !(costs.bandwidth > 0) ||
      !(costs.flops > 0)) {
    throw_invalid_argument("simulate_ring: scores are ", scores.extents(), ", expected ", expected,
                           "; latency ", costs.latency, ", bandwidth ", costs.bandwidth, ", flops ",
                           costs.flops);
  }
  return detail::RingSimulation(keys, shape, costs, scores, traced).run();
}

}  // namespace heed
