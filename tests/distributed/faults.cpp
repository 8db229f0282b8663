// SPDX-License-Identifier: MIT
// Computes without end; rank 1 fails in the middle of a step, in the way its argument names. After
// `train FILE`, `go_on FILE` takes the last checkpoint and is 0 if no bit is lost.
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>

#include <heed/distributed.hpp>
#include <heed/masks.hpp>
#include <heed/training.hpp>

#include "training/tiny_model.hpp"

namespace {

using namespace heed;

/// A step of three batches, of which rank 1 computes the second one.
BatchLoss compute(const TinyLayer& layer, Index batch, TinyLayer& gradients) {
  Random random(1, static_cast<std::uint64_t>(batch));
  Tensor<double, 2> input({4, 2}), expected({4, 3});
  for (double& value : input) value = random.normal();
  expected.fill(1);
  TinyLayer::Saved saved;
  const auto [loss, grad_out] = mean_squared_error(layer.forward(input, saved), expected);
  layer.backward(grad_out, saved, gradients);
  return {loss, 4};
}

TinyLayer first_weights() {
  TinyLayer layer;
  layer.weight.fill(0.3);
  return layer;
}

constexpr Index last_step = 7;

/// Writes a checkpoint after every step, until rank 1 is killed in the last one.
void train_and_fail(const Communicator& ranks, const std::string& path) {
  TinyLayer layer = first_weights();
  AdamW optimizer(optimizer_part(ranks, layer));
  const auto one = [&](Index batch, TinyLayer& gradients) {
    if (batch == 3 * last_step + 1) static_cast<void>(std::raise(SIGKILL));
    return compute(layer, batch, gradients);
  };
  train(ranks, layer, optimizer, {.accumulate = 3}, one, [&](const StepInfo& info) {
    save_checkpoint(ranks, path, layer, optimizer, {.step = info.step + 1});
  });
}

/// Whether some more steps from the last checkpoint give the bits of one process that was not
/// killed.
bool goes_on(const Communicator& ranks, const std::string& path) {
  TinyLayer layer, whole = first_weights();
  AdamW optimizer(optimizer_part(ranks, layer)), alone(whole);
  const auto state = load_checkpoint(ranks, path, layer, optimizer);
  const auto quiet = [](const StepInfo&) {};
  const auto step = [](const TinyLayer& of) {
    return [&of](Index batch, TinyLayer& gradients) { return compute(of, batch, gradients); };
  };
  TrainOptions options{.steps = last_step + 3, .accumulate = 3};
  train(whole, alone, options, step(whole), quiet);
  options.first_step = state.step;
  train(ranks, layer, optimizer, options, step(layer), quiet);
  return state.step == last_step &&
         std::memcmp(layer.weight.data(), whole.weight.data(), sizeof(double) * 6) == 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string fault = argc > 1 ? argv[1] : "", file = argc > 2 ? argv[2] : "";
  return run_ranks(argc, argv, [&](const Communicator& ranks) -> int {
    if (fault == "train") train_and_fail(ranks, file);
    if (fault == "go_on") return goes_on(ranks, file) ? 0 : 1;
    const Index tokens = 12'000;
    const auto shards = TokenShards::zigzag(tokens, ranks.size());
    const Tensor<float, 3> mine({2, shards.count(ranks.rank()), 8});
    Tensor<float, 3> out(mine.extents());
    if (fault == "disagree") {
      sharded_attention(ranks, shards, mine, mine, mine, masks::last_n(ranks.rank() == 2 ? 3 : 4),
                        out);
    }
    for (int step = 0;; ++step) {
      // In the middle of the second step: the queries sampled before it are others.
      const auto failing = [&](Index query, Index key) {
        if (step == 1 && ranks.rank() == 1 && key == 8000 && query > 8000 && query % 64 == 63) {
          if (fault == "kill") static_cast<void>(std::raise(SIGKILL));
          if (fault == "exit") std::_Exit(3);
          if (fault == "throw") throw std::runtime_error("the mask fails");
        }
        return key <= query;
      };
      sharded_attention(ranks, shards, mine, mine, mine, failing, out);
    }
  });
}
