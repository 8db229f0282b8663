// SPDX-License-Identifier: MIT
// Somebody else's program of several processes; here it is one.
#include <heed/distributed.hpp>
#include <heed/masks.hpp>

int main(int argc, char** argv) {
  return heed::run_ranks(argc, argv, [](const heed::Communicator& ranks) {
    const auto shards = heed::TokenShards::even(4 * ranks.size(), ranks.size());
    const heed::Tensor<float, 2> tokens({4, 8});
    heed::Tensor<float, 2> out(tokens.extents());
    heed::sharded_attention(ranks, shards, tokens, tokens, tokens, heed::masks::Causal{}, out);
    return out(3, 7) == 0.0f ? 0 : 1;
  });
}
