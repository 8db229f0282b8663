// SPDX-License-Identifier: MIT
// A C face of the kernels for the scripts in this folder, which call other libraries on the same
// buffers in turn. Built as libheed_bench_peer.so.
#include <cstdint>

#include <heed/attention/forward.hpp>
#include <heed/core/parallel.hpp>
#include <heed/masks/causal.hpp>
#include <heed/masks/full.hpp>

#include "../machine.hpp"

namespace {

using heed::Index;
using heed::Position;
using heed::Tile;

/// Causal window of `size` keys, and prefix and documents with causal: what the peers are given as
/// dense masks or functions.
struct Window {
  Index size;
  bool allows(Position at) const { return at.key <= at.query && at.key > at.query - size; }
  heed::Coverage coverage(Tile tile) const {
    if (tile.first_key > tile.last_query || tile.last_key <= tile.first_query - size) {
      return heed::Coverage::none;
    }
    return tile.last_key <= tile.first_query && tile.first_key > tile.last_query - size
               ? heed::Coverage::full
               : heed::Coverage::partial;
  }
  void lane_words(Tile tile, std::uint64_t* words) const {
    for (Index key = tile.first_key; key <= tile.last_key; ++key) {
      *words++ = heed::lanes_between(key - tile.first_query, key + size - 1 - tile.first_query);
    }
  }
};

}  // namespace

extern "C" {

double heed_peak() { return heed::bench::peak_gflops(); }
double heed_read_gbytes() { return heed::bench::read_gbytes(); }
const char* heed_isa() { return heed::simd::name(heed::simd::active()).data(); }
void heed_threads(int count) { heed::set_thread_count(count); }

/// Contiguous (batch, heads, length, dim) float; `kind` 0 none, 1 causal, 2 causal window.
void heed_forward(const float* q, const float* k, const float* v, float* out, Index batch,
                  Index heads, Index key_heads, Index queries, Index keys, Index dim, int kind,
                  Index window) {
  const heed::TensorView<const float, 4> query_view(q, {batch, heads, queries, dim});
  const heed::TensorView<const float, 4> key_view(k, {batch, key_heads, keys, dim});
  const heed::TensorView<const float, 4> value_view(v, {batch, key_heads, keys, dim});
  const heed::TensorView<float, 4> out_view(out, {batch, heads, queries, dim});
  if (kind == 0) {
    heed::attention(query_view, key_view, value_view, heed::masks::Full{}, out_view);
  } else if (kind == 1) {
    heed::attention(query_view, key_view, value_view, heed::masks::Causal{}, out_view);
  } else {
    heed::attention(query_view, key_view, value_view, Window{window}, out_view);
  }
}
}
