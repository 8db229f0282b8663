// SPDX-License-Identifier: MIT
// Somebody else's program of several processes; here it is one.
#include <heed/distributed.hpp>

int main(int argc, char** argv) {
  return heed::run_ranks(argc, argv, [](const heed::Communicator& ranks) {
    const auto shards = heed::TokenShards::even(4 * ranks.size(), ranks.size());
    return shards.count(ranks.rank()) == 4 ? 0 : 1;
  });
}
