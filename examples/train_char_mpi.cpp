// SPDX-License-Identifier: MIT
// train_char on several ranks, with the bits of one process that accumulates the same batches:
//   mpiexec -n 4 train_char_mpi
#include <cstdio>
#include <stdexcept>

#include <heed/distributed.hpp>

#include "train_char.hpp"

int main(int argc, char** argv) {
  return example::train_char(
      argc, argv,
      "A small GPT learns to write like Shakespeare, on several ranks: mpiexec -n 4 "
      "train_char_mpi [OPTION...]",
      {.batch_size = 3, .accumulate = 4},
      [&](const example::Options& options, const example::Text& text) {
        return heed::run_ranks(argc, argv, [&](const heed::Communicator& ranks) {
          heed::Agreement same("train_char_mpi");  // of what heed's train does not see
          same.add("--seed", options.seed);
          same.add("--batch, --length", options.batch_size, ", ", options.length);
          same.add("--dropout", options.dropout);
          same.check(ranks);
          // Rank 0 prints and draws for all.
          if (ranks.rank() != 0 && std::freopen("/dev/null", "w", stdout) == nullptr) {
            throw std::runtime_error("/dev/null cannot be written");
          }
          example::Options mine = options;
          if (ranks.rank() != 0) mine.pictures = {};
          mine.quick ? example::learn<double>(mine, text, ranks)
                     : example::learn<float>(mine, text, ranks);
          return 0;
        });
      });
}
