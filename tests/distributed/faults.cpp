// SPDX-License-Identifier: MIT
// Computes without end; rank 1 fails in the middle of a step, in the way its argument names.
#include <csignal>
#include <cstdlib>
#include <stdexcept>
#include <string>

#include <heed/distributed.hpp>
#include <heed/masks.hpp>

int main(int argc, char** argv) {
  const std::string fault = argc > 1 ? argv[1] : "";
  return heed::run_ranks(argc, argv, [&](const heed::Communicator& ranks) -> int {
    const heed::Index tokens = 12'000;
    const auto shards = heed::TokenShards::zigzag(tokens, ranks.size());
    const heed::Tensor<float, 3> mine({2, shards.count(ranks.rank()), 8});
    heed::Tensor<float, 3> out(mine.extents());
    if (fault == "disagree") {
      heed::sharded_attention(ranks, shards, mine, mine, mine,
                              heed::masks::last_n(ranks.rank() == 2 ? 3 : 4), out);
    }
    for (int step = 0;; ++step) {
      // In the middle of the second step: the queries sampled before it are others.
      const auto failing = [&](heed::Index query, heed::Index key) {
        if (step == 1 && ranks.rank() == 1 && key == 8000 && query > 8000 && query % 64 == 63) {
          if (fault == "kill") static_cast<void>(std::raise(SIGKILL));
          if (fault == "exit") std::_Exit(3);
          if (fault == "throw") throw std::runtime_error("the mask fails");
        }
        return key <= query;
      };
      heed::sharded_attention(ranks, shards, mine, mine, mine, failing, out);
    }
  });
}
