// SPDX-License-Identifier: MIT
#include <unistd.h>

#include <cmath>
#include <filesystem>

#include <heed/distributed/sharded_training.hpp>
#include <heed/io/file.hpp>
#include <heed/masks.hpp>
#include <heed/models/language_model.hpp>
#include <heed/training/losses.hpp>

#include "distributed/ranks.hpp"

namespace heed::test {
namespace {

using Model = LanguageModel<float>;

/// Parameters of one number, of less than a stretch and of several.
Model model_of(std::uint64_t seed) {
  Random random(seed);
  return Model({.vocab_size = 11,
                .layers = 1,
                .max_length = 6,
                .block = {.model_dim = 100, .heads = 2, .dropout = 0.1}},
               random);
}

/// The gradients of batch number `batch`, which any rank can compute.
BatchLoss compute(const Model& model, Index batch, Model& gradients) {
  Random random(5, static_cast<std::uint64_t>(batch));
  Tensor<Index, 2> tokens({2, 6}), targets({2, 6});
  for (Index& token : tokens) token = random.integer(11);
  for (Index& target : targets) target = random.integer(11);
  Model::Saved saved;
  const Noise noise{.seed = static_cast<std::uint64_t>(batch)};
  const auto logits = model.forward(tokens, masks::Causal{}, noise, saved);
  const auto [loss, grad_logits] = cross_entropy(logits, targets);
  model.backward(grad_logits, saved, gradients);
  return {loss, 12 + batch};
}

const auto quiet = [](const StepInfo&) {};

/// Gradients that are clipped in some steps and in others not.
TrainOptions options_of(Index accumulate, Index steps = 3) {
  return {.steps = steps,
          .schedule = schedules::Linear{.rate = 0.01, .steps = 10},
          .max_gradient_norm = 1.9,
          .accumulate = accumulate};
}

void expect_same_bits(const Model& a, const Model& b) {
  for_each_parameter([](std::string_view name, const auto& one,
                        const auto& other) { EXPECT_TRUE(same_bits(one, other)) << name; },
                     a, b);
}

/// A path that all ranks know, of a file that is removed.
class SharedFile {
 public:
  SharedFile(const Communicator& ranks, const std::string& name) : ranks_(ranks) {
    Tensor<Index, 1> process({Index{1}});
    process(0) = ::getpid();
    ranks.broadcast(process, 0);
    path = testing::TempDir() + "heed_ranks_" + std::to_string(process(0)) + name;
  }
  ~SharedFile() {
    if (ranks_.rank() == 0) std::filesystem::remove(path);
  }
  std::string path;

 private:
  const Communicator& ranks_;
};

/// What a training tells and leaves.
struct Trained {
  Model model = model_of(3);
  std::vector<double> told;

  template <class Train, class Optimizer>
  void run(const Train& call, Optimizer& optimizer, const TrainOptions& options) {
    call(
        model, optimizer, options,
        [this](Index batch, Model& gradients) { return compute(model, batch, gradients); },
        [this](const StepInfo& info) {
          told.insert(told.end(), {info.loss, info.gradient_norm, info.learning_rate});
        });
  }
};

const auto alone = [](auto&&... arguments) { return train(arguments...); };
const auto together = [](auto&&... arguments) { return train(*world(), arguments...); };

TEST(ShardedTraining, AnyNumberOfBatchesGivesTheBitsOfOneProcess) {
  const RestoreSettings restore;
  bool clipped = false, whole = false;
  for (const Index batches : {1, 2, 3, 6}) {
    SCOPED_TRACE(batches);
    set_thread_count(1 + batches % 2);
    Trained one, some;
    AdamW optimizer(one.model, {.weight_decay = 0.1, .decay_vectors = false});
    AdamW part(optimizer_part(*world(), some.model), {.weight_decay = 0.1, .decay_vectors = false});
    one.run(alone, optimizer, options_of(batches));
    set_thread_count(2 - batches % 2);
    some.run(together, part, options_of(batches));
    EXPECT_EQ(some.told, one.told);
    expect_same_bits(some.model, one.model);
    for (std::size_t i = 1; i < one.told.size(); i += 3) {
      (one.told[i] > 1.9 ? clipped : whole) = true;
    }
  }
  EXPECT_TRUE(clipped && whole);
}

TEST(ShardedTraining, EveryRankHoldsItsPartOfTheMomentsAndSendsEachNumberOnce) {
  const Communicator& ranks = *world();
  Trained one, some;
  const Sgd whole(one.model, {.momentum = 0.9, .nesterov = true});
  Sgd optimizer = whole, part(optimizer_part(ranks, some.model), whole.options());
  const std::uint64_t before = ranks.bytes_sent();
  some.run(together, part, options_of(ranks.size(), 1));
  Tensor<Index, 1> mine(2);
  mine(0) = parameter_count(part);
  mine(1) = static_cast<Index>(ranks.bytes_sent() - before);
  Tensor<Index, 2> all({ranks.size(), 2});
  ranks.all_gather(mine, all);
  const Index numbers = parameter_count(one.model);
  Index held = 0, sent = 0;
  for (Index rank = 0; rank < ranks.size(); ++rank) {
    held += all(rank, 0);
    sent += all(rank, 1);
    EXPECT_NEAR(static_cast<double>(all(rank, 0)),
                static_cast<double>(numbers) / static_cast<double>(ranks.size()), 16384.);
  }
  EXPECT_EQ(held, numbers);
  EXPECT_EQ(sent, 2 * numbers * (ranks.size() - 1) * Index{sizeof(float)});
  one.run(alone, optimizer, options_of(ranks.size(), 1));
  expect_same_bits(some.model, one.model);
}

TEST(ShardedTraining, ANaNOfOneRankIsToldOnAllAndNotTaken) {
  const Communicator& ranks = *world();
  Model model = model_of(3);
  const Model before = model;
  AdamW part(optimizer_part(ranks, model));
  const auto broken = [&](Index batch, Model& gradients) {
    const BatchLoss loss = compute(model, batch, gradients);
    if (batch == 4) gradients.blocks[0].feed_forward.up.weight(0, 0) = NAN;
    return loss;
  };
  train(ranks, model, part, options_of(5, 1), broken, [](const StepInfo& info) {
    EXPECT_FALSE(info.taken);
    EXPECT_EQ(info.refused_by, "blocks.0.feed_forward.up.weight");
  });
  expect_same_bits(model, before);
}

TEST(ShardedTraining, AllEndWhereOneRankEnds) {
  const Communicator& ranks = *world();
  Trained some;
  AdamW part(optimizer_part(ranks, some.model));
  const auto run = [&](Index batch, Model& gradients) {
    return compute(some.model, batch, gradients);
  };
  EXPECT_EQ(
      train(ranks, some.model, part, options_of(1, 9), run,
            [&](const StepInfo& info) { return ranks.rank() + 1 < ranks.size() || info.step < 1; }),
      2);
}

TEST(ShardedTraining, TakesNoListener) {
  Trained some;
  AdamW part(optimizer_part(*world(), some.model));
  const auto run = [&](Index batch, Model& gradients) {
    return compute(some.model, batch, gradients);
  };
  EXPECT_EQ(train(*world(), some.model, part, options_of(1, 2), run), 2);
}

TEST(ShardedTraining, CheckpointsAreThoseOfOneProcessForAnyNumberOfRanks) {
  const Communicator& ranks = *world();
  // Two groups of ranks train the same; then all of them go on with what the last group wrote.
  const Index first = (ranks.size() + 1) / 2;
  const bool in_first = ranks.rank() < first;
  const Communicator group = ranks.split(in_first ? 0 : 1);
  const SharedFile of_one(ranks, "one"), of_first(ranks, "first"), of_second(ranks, "second");
  Trained one, some;
  AdamW optimizer(one.model), part(optimizer_part(group, some.model));
  one.run(alone, optimizer, options_of(3, 2));
  some.run([&](auto&&... arguments) { train(group, arguments...); }, part, options_of(3, 2));
  const TrainingState state{.step = 2, .random = Random(7), .notes = {{"name", "a\nb"}}};
  const auto& path = in_first ? of_first.path : of_second.path;
  save_checkpoint(group, path, some.model, part, state);
  if (ranks.rank() == 0) save_checkpoint(of_one.path, one.model, optimizer, state);
  ranks.barrier();
  const auto bytes = read_file(path), expected = read_file(of_one.path);
  EXPECT_EQ(bytes, expected) << "byte for byte";

  Trained rest;
  set_zero(rest.model);
  AdamW after(optimizer_part(ranks, rest.model));
  const auto loaded = load_checkpoint(ranks, first < ranks.size() ? of_second.path : of_first.path,
                                      rest.model, after);
  EXPECT_EQ(loaded.step, 2);
  EXPECT_EQ(loaded.notes, state.notes);
  EXPECT_EQ(loaded.random.state(), state.random.state());
  EXPECT_EQ(after.steps(), 2);
  TrainOptions more = options_of(3, 4);
  more.first_step = loaded.step;
  rest.run(together, after, more);
  one.run(alone, optimizer, more);
  expect_same_bits(rest.model, one.model);
  ranks.barrier();
}

TEST(ShardedTraining, WhatIsWrongWithAFileIsSaidOnAllRanksAndChangesNothing) {
  const Communicator& ranks = *world();
  const std::string over = " over " + std::to_string(ranks.size()) + " ranks: rank ";
  Model model = model_of(3);
  AdamW part(optimizer_part(ranks, model));
  EXPECT_EQ(refusal([&] {
              save_checkpoint(ranks, "/no/such/folder/file", model, part, TrainingState{});
            }).find("save_checkpoint" + over + "0: /no/such/folder/file"),
            0u);
  const SharedFile file(ranks, "other");
  Sgd other(optimizer_part(ranks, model));
  save_checkpoint(ranks, file.path, model, other, TrainingState{});
  Model unchanged = model_of(4);
  AdamW adam(optimizer_part(ranks, unchanged));
  const std::string said = refusal([&] { load_checkpoint(ranks, file.path, unchanged, adam); });
  EXPECT_NE(said.find("missing: optimizer.first_moment."), std::string::npos) << said;
  expect_same_bits(unchanged, model_of(4));
  // A file that only some ranks can see.
  const bool last = ranks.rank() + 1 == ranks.size();
  EXPECT_EQ(refusal([&] {
              load_checkpoint(ranks, last ? "/no/such/file" : file.path, unchanged, other);
            }).find("load_checkpoint" + over + std::to_string(ranks.size() - 1) + ": /no/such"),
            0u);
  expect_same_bits(unchanged, model_of(4));
  if (ranks.size() == 1) return;
  EXPECT_EQ(
      refusal([&] { save_checkpoint(ranks, file.path, model, other, {.step = last ? 8 : 7}); }),
      "save_checkpoint" + over + std::to_string(ranks.size() - 1) +
          " brings step 8, rank 0 step 7");
  const std::string moments = refusal([&] {
    last ? save_checkpoint(ranks, file.path, model, other, {})
         : save_checkpoint(ranks, file.path, model, part, {});
  });
  EXPECT_NE(moments.find("brings an optimizer whose moments have fingerprint"), std::string::npos)
      << moments;
}

/// The message with which ranks refuse to train, where the last one brings something else.
template <class Optimizer>
std::string refused_training(Model model, Optimizer optimizer, const TrainOptions& options) {
  const auto never = [](Index, Model&) -> BatchLoss {
    ADD_FAILURE() << "computed";
    return {};
  };
  return refusal([&] { train(*world(), model, optimizer, options, never, quiet); });
}

TEST(ShardedTraining, WhatRanksBringIsComparedBeforeAnythingIsComputed) {
  const Communicator& ranks = *world();
  const std::string over = "train over " + std::to_string(ranks.size()) + " ranks: rank ";
  const std::string who = std::to_string(ranks.size() - 1);
  const bool last = ranks.rank() + 1 == ranks.size();
  const Model model = model_of(3);
  const AdamW part(optimizer_part(ranks, model));
  const std::string whole = refused_training(model, AdamW(model), options_of(1));
  EXPECT_NE(whole.find(over + "0: the optimizer's first_moment.embedding.weight is (11, 100)"),
            std::string::npos)
      << whole;
  EXPECT_EQ(refused_training(model, part, options_of(0)),
            "train: accumulate 0, expected 1 or more; steps 3, expected 0 or more");
  if (ranks.size() == 1) return;
  EXPECT_EQ(refused_training(model, part, options_of(last ? 2 : 3)),
            over + who + " brings accumulate 2, rank 0 accumulate 3");
  TrainOptions options = options_of(1);
  if (last) options.schedule = schedules::Linear{.rate = 0.01, .steps = 11};
  EXPECT_NE(refused_training(model, part, options).find("brings a schedule with fingerprint"),
            std::string::npos);
  const AdamW other(optimizer_part(ranks, model), {.epsilon = last ? 1e-7 : 1e-8});
  EXPECT_NE(refused_training(model, other, options_of(1)).find("brings Adam (learning rate"),
            std::string::npos);
  const std::string seed = refused_training(model_of(last ? 4 : 3), part, options_of(1));
  EXPECT_NE(seed.find(who + " brings a model whose embedding.weight is (11, 100) with fingerprint"),
            std::string::npos)
      << seed;
  Model rounded = model;
  if (last) set_products(rounded, Products::bfloat16);
  const std::string products = refused_training(rounded, part, options_of(1));
  EXPECT_NE(products.find(who + " brings layers whose settings"), std::string::npos) << products;
  options = options_of(1);
  if (last) options.schedule = {};
  EXPECT_NE(refused_training(model, part, options).find("brings a schedule with fingerprint"),
            std::string::npos);
  options.schedule = [&](Index step) {
    if (last) throw std::runtime_error("no rate for step " + std::to_string(step));
    return 0.01;
  };
  EXPECT_EQ(refused_training(model, part, options), over + who + ": no rate for step 0");
}

/// A user's layer with members that have names of settings and types of their own.
struct OwnLayer {
  static auto members(auto& layer) { return Members{member("weight", layer.weight)}; }

  Tensor<float, 1> weight{Extents<1>{3}};
  std::string kind = "own";
  double probability = 0.5;
  std::vector<int> epsilon;
};

TEST(ShardedTraining, AUsersLayerMayNameItsMembersAsItLikes) {
  OwnLayer layer;
  AdamW optimizer(optimizer_part(*world(), layer));
  const auto compute = [](Index, OwnLayer& gradients) -> BatchLoss {
    gradients.weight(0) += 1;
    return {1, 1};
  };
  EXPECT_EQ(train(*world(), layer, optimizer, options_of(1), compute, quiet), 3);
}

}  // namespace
}  // namespace heed::test
