// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <heed/core/error.hpp>
#include <heed/core/index.hpp>
#include <heed/distributed/agreement.hpp>
#include <heed/distributed/communicator.hpp>
#include <heed/distributed/detail/layer_settings.hpp>
#include <heed/io/file.hpp>
#include <heed/io/safetensors.hpp>
#include <heed/layers/parameters.hpp>
#include <heed/tensor/tensor.hpp>
#include <heed/training/checkpoint.hpp>
#include <heed/training/optimizers.hpp>
#include <heed/training/train.hpp>

namespace heed {

namespace detail {

/// Which numbers of a model the optimizer of which rank moves: the stretches of an optimizer's
/// tasks and sums, one parameter after another, as many numbers for each rank as whole stretches
/// allow. A model's part has its parameters' names and ranks, with these numbers along their last
/// axis: (1, …, 1, count).
class ParameterShards {
 public:
  template <class Model>
  ParameterShards(const Model& model, Index ranks) : ranks_(ranks) {
    for_each_parameter(
        [&](std::string_view name, const auto& parameter) {
          const auto& extents = parameter.extents();
          all_.push_back(
              {std::string(name), {extents.begin(), extents.end()}, numbers_, parameter.size()});
          numbers_ += parameter.size();
        },
        model);
  }

  struct Parameter {
    std::string name;
    std::vector<Index> extents;
    Index before = 0;  // numbers of the parameters before it
    Index size = 0;
  };
  const std::vector<Parameter>& all() const { return all_; }

  /// Where the numbers of a rank begin in a parameter; they end where those of the next rank begin.
  Index first(const Parameter& parameter, Index rank) const {
    const Index share = numbers_ / ranks_ * rank + numbers_ % ranks_ * rank / ranks_;
    const Index missing = larger(share - parameter.before, 0);
    return smaller(parts_of(missing, stretch_numbers) * stretch_numbers, parameter.size);
  }
  Index count(const Parameter& parameter, Index rank) const {
    return first(parameter, rank + 1) - first(parameter, rank);
  }
  /// The stretches of a rank, over all parameters.
  Index stretches(Index rank) const {
    Index sum = 0;
    for (const Parameter& one : all_) sum += parts_of(count(one, rank), stretch_numbers);
    return sum;
  }

  /// The numbers of a rank in a whole model, parameter by parameter.
  template <class Model>
  NumberRuns runs(Model& model, Index rank) const {
    NumberRuns runs;
    for_each_parameter(
        [&](std::string_view, auto& tensor) {
          const Parameter& one = all_[runs.size()];
          runs.push_back(NumberRun::of(tensor.data() + first(one, rank), count(one, rank)));
        },
        model);
    return runs;
  }

  /// Calls visit(name, tensor, its parameter) for every tensor of an optimizer, which has one or
  /// several models of a rank's part. Throws ShapeError for any other tensor.
  template <class Optimizer, class Visit>
  void for_each_moment(Index rank, Optimizer& optimizer, const Visit& visit) const {
    std::size_t next = 0;
    for_each_parameter(
        [&](std::string_view name, auto& tensor) {
          if (all_.empty()) throw_shape_error("the model has no parameters, the optimizer ", name);
          const Parameter& one = all_[next++ % all_.size()];
          std::vector<Index> extents(tensor.rank() - 1, 1);
          extents.push_back(count(one, rank));
          const auto& got = tensor.extents();
          if (!name.ends_with(one.name) ||
              !std::equal(extents.begin(), extents.end(), got.begin(), got.end())) {
            throw_shape_error("the optimizer's ", name, " is ", got, ", expected ", extents, " of ",
                              one.name, ": an optimizer of optimizer_part(ranks, model)");
          }
          visit(name, tensor, one);
        },
        optimizer);
  }

 private:
  Index ranks_;
  Index numbers_ = 0;
  std::vector<Parameter> all_;
};

/// All numbers of a model's part.
template <class Model>
NumberRuns all_runs(Model& part) {
  NumberRuns runs;
  for_each_parameter(
      [&](std::string_view, auto& tensor) {
        runs.push_back(NumberRun::of(tensor.data(), tensor.size()));
      },
      part);
  return runs;
}

}  // namespace detail

/// The numbers of a model that this rank's optimizer moves: a model with tensors of these alone, to
/// make the optimizer for `train` with ranks, `AdamW optimizer(optimizer_part(ranks, model))`. Its
/// moments take 1 / ranks of the memory. Rajbhandari et al. 2020 (ZeRO, stage 1).
template <HasMembers Model>
Model optimizer_part(const Communicator& ranks, const Model& model) {
  const detail::ParameterShards shards(model, ranks.size());
  Model part = model;
  std::size_t next = 0;
  for_each_parameter(
      [&](std::string_view, auto& tensor) {
        const auto& one = shards.all()[next++];
        auto extents = tensor.extents();
        extents.fill(1);
        extents.back() = shards.count(one, ranks.rank());
        std::remove_reference_t<decltype(tensor)> numbers(extents);
        std::copy_n(tensor.data() + shards.first(one, ranks.rank()), numbers.size(),
                    numbers.data());
        tensor = std::move(numbers);
      },
      part);
  return part;
}

namespace detail {

/// The batches of a step, computed on all ranks, and the numbers that this rank's optimizer moves.
template <class Model>
class ShardedStep {
 public:
  ShardedStep(const Communicator& ranks, const ParameterShards& shards, const Model& model)
      : ranks_(ranks),
        shards_(shards),
        alone_(zeros_like(model)),
        sum_(optimizer_part(ranks, alone_)),
        weights_(sum_),
        arriving_(static_cast<std::size_t>(ranks.size()), sum_) {}

  /// Computes batches first, …, first + count - 1, one on each rank in turns, and adds up their
  /// gradients in this order; returns what the batches tell, in it.
  template <class Compute>
  std::vector<BatchLoss> compute(Index first, Index count, Compute& compute) {
    const Index size = ranks_.size(), rounds = parts_of(count, size);
    Tensor<double, 2> told({rounds, 2});  // loss and tokens
    for (Index round = 0; round < rounds; ++round) {
      const Index batch = round * size + ranks_.rank();
      if (batch < count) {
        set_zero(alone_);
        const BatchLoss mine = compute(first + batch, alone_);
        told(round, 0) = mine.loss;
        told(round, 1) = static_cast<double>(mine.tokens);
      }
      add_round(round, smaller(count - round * size, size));
    }
    Tensor<double, 3> all({size, rounds, 2});
    ranks_.all_gather(told, all);
    std::vector<BatchLoss> losses;
    for (Index batch = 0; batch < count; ++batch) {
      const Index round = batch / size, rank = batch % size;
      losses.push_back({all(rank, round, 0), static_cast<Index>(all(rank, round, 1))});
    }
    return losses;
  }

  /// The sum of this rank's part.
  const Model& gradients() const { return sum_; }

  /// The norm of the sum of all ranks, in the bits of gradient_norm.
  GradientNorm norm() const {
    const Index size = ranks_.size();
    Index most = 0;
    for (Index rank = 0; rank < size; ++rank) most = larger(most, shards_.stretches(rank));
    Tensor<double, 1> mine({most});
    Tensor<double, 2> all({size, most});
    double* to = mine.data();
    for_each_parameter(
        [&](std::string_view, const auto& part) {
          for (const double sum : squares_of_stretches(part.data(), part.size())) *to++ = sum;
        },
        sum_);
    ranks_.all_gather(mine, all);
    std::vector<double> squares;  // of all stretches
    for (Index rank = 0; rank < size; ++rank) {
      const double* const from = all.data() + rank * most;
      squares.insert(squares.end(), from, from + shards_.stretches(rank));
    }
    GradientNorm norm;
    std::span<const double> rest = squares;
    for (const auto& one : shards_.all()) {
      const auto count = static_cast<std::size_t>(parts_of(one.size, stretch_numbers));
      add_squares(norm, one.name, rest.first(count));
      rest = rest.subspan(count);
    }
    norm.value = std::sqrt(norm.value);
    return norm;
  }

  /// Calls move(weights of this rank's part); all ranks receive what it has changed.
  template <class Move>
  void move(Model& model, const Move& move) {
    const NumberRuns own = shards_.runs(model, ranks_.rank()), part = all_runs(weights_);
    for (std::size_t i = 0; i < own.size(); ++i) {
      if (own[i].count == 0) continue;
      std::memcpy(part[i].at, own[i].at,
                  static_cast<std::size_t>(own[i].count * own[i].bytes_of_one));
    }
    if (!move(weights_)) return;
    std::vector<NumberRuns> received;
    for (Index rank = 0; rank < ranks_.size(); ++rank) {
      received.push_back(shards_.runs(model, rank));
    }
    exchange(ranks_, std::vector<NumberRuns>(received.size(), part), received);
  }

 private:
  /// Brings the gradients of ranks 0, …, count - 1 to the ranks of their numbers, which add them.
  void add_round(Index round, Index count) {
    std::vector<NumberRuns> sent(arriving_.size()), received(arriving_.size());
    for (Index rank = 0; rank < ranks_.size(); ++rank) {
      const auto at = static_cast<std::size_t>(rank);
      if (ranks_.rank() < count) sent[at] = shards_.runs(alone_, rank);
      if (rank < count) received[at] = all_runs(arriving_[at]);
    }
    exchange(ranks_, sent, received);
    for (std::size_t rank = 0; rank < static_cast<std::size_t>(count); ++rank) {
      if (round == 0 && rank == 0) {
        std::swap(sum_, arriving_[0]);
      } else {
        add_gradients(sum_, arriving_[rank]);
      }
    }
  }

  const Communicator& ranks_;
  const ParameterShards& shards_;
  Model alone_;                  // gradients of a batch
  Model sum_, weights_;          // of this rank's part
  std::vector<Model> arriving_;  // of each rank, for this one's part
};

inline void add_settings(Agreement& agreement, const SgdOptions& options) {
  agreement.add("Sgd (learning rate, momentum, weight decay, nesterov)", options.learning_rate, ' ',
                options.momentum, ' ', options.weight_decay, ' ', options.nesterov);
}
inline void add_settings(Agreement& agreement, const AdamOptions& options) {
  agreement.add("Adam (learning rate, betas, epsilon, weight decay, decoupled, of vectors)",
                options.learning_rate, ' ', options.beta1, ' ', options.beta2, ' ', options.epsilon,
                ' ', options.weight_decay, ' ', options.decoupled, ' ', options.decay_vectors);
}

/// Adds the shapes of a model and the settings of its layers, and with `bits` its numbers too.
template <class Model>
void add_model(Agreement& agreement, const Model& model, bool bits) {
  for_each_parameter(
      [&](std::string_view name, const auto& parameter) {
        agreement.add("a model whose", name, " is ", parameter.extents(), " with fingerprint ",
                      bits ? fingerprint_of(parameter) : 0);
      },
      model);
  agreement.add(
      "layers whose settings (products, dropout, norms, activations, attention) have "
      "fingerprint",
      settings_fingerprint(model));
}

/// Adds which moments an optimizer has.
template <class Optimizer>
void add_moments(Agreement& agreement, const ParameterShards& shards, Index rank,
                 const Optimizer& optimizer) {
  Fingerprint names;
  shards.for_each_moment(rank, optimizer, [&](std::string_view name, const auto&, const auto&) {
    names.add(fingerprint_of(name));
  });
  agreement.add("an optimizer whose moments have fingerprint", names.value());
}

inline void add_state(Agreement& agreement, const TrainingState& state) {
  agreement.add("step", state.step);
  agreement.add("epoch", state.epoch);
  agreement.add("batch", state.batch);
  agreement.add("random state", state.random.state());
  agreement.add("notes", state.notes.size());
  for (const auto& [name, text] : state.notes) {
    agreement.add("a note", name, " with fingerprint ", fingerprint_of(text));
  }
}

/// Adds what decides the bits of a training, apart from what the program computes.
template <class Model, class Optimizer>
void add_training(Agreement& agreement, const Model& model, const Optimizer& optimizer,
                  const TrainOptions& options) {
  add_library(agreement);
  agreement.add("steps", options.first_step, " to ", options.steps);
  agreement.add("accumulate", options.accumulate);
  agreement.add("max_gradient_norm", options.max_gradient_norm);
  Fingerprint rates;
  for (Index i = 0; i < 16 && options.schedule && options.first_step < options.steps; ++i) {
    const Index left = options.steps - 1 - options.first_step;
    rates.add_bits(options.schedule(options.first_step + left / 15 * i + left % 15 * i / 15));
  }
  agreement.add("a schedule with fingerprint", rates.value());
  if constexpr (requires { add_settings(agreement, optimizer.options()); }) {
    add_settings(agreement, optimizer.options());
  }
  agreement.add("an optimizer after steps", optimizer.steps());
  add_model(agreement, model, true);
}

}  // namespace detail

/// `train` on several ranks, with the bits that one process gets: of the options.accumulate batches
/// of a step, rank r computes batches r, r + ranks, …, and with fewer batches than ranks the others
/// wait. An error of `compute` or `on_step` on one rank leaves the others waiting; run_ranks then
/// ends all. Gradients travel to the ranks whose
/// optimizers have their numbers (`optimizer_part`), are added up there in the order of the
/// batches, and the weights that the optimizers have moved return. `compute(batch, gradients)` is
/// called for the batches of this rank alone, and must depend on their number, not on earlier
/// calls; `on_step` is called on every rank with the same numbers, apart from the time, and where
/// one rank's returns false, all end. The optimizer must move each number by itself. Collective.
/// Throws InvalidArgument on every rank, before anything is computed, where ranks bring different
/// versions, instruction sets, options, optimizers, shapes, settings of layers or weights; and
/// CommunicationError.
template <HasMembers Model, class Optimizer, class Compute, class OnStep = detail::Silent>
Index train(const Communicator& ranks, Model& model, Optimizer& optimizer,
            const TrainOptions& options, Compute&& compute, OnStep&& on_step = {}) {
  const detail::ParameterShards shards(model, ranks.size());
  Agreement agreement = detail::agreement_of("train", ranks);
  agreement.check(ranks, [&] {
    detail::add_moments(agreement, shards, ranks.rank(), optimizer);
    detail::add_training(agreement, model, optimizer, options);
  });
  detail::ShardedStep<Model> together(ranks, shards, model);
  const auto take_step = [&](StepInfo& info) {
    Index tokens = 0;
    for (const BatchLoss& batch :
         together.compute(info.step * options.accumulate, options.accumulate, compute)) {
      info.loss += batch.loss / static_cast<double>(options.accumulate);
      tokens += batch.tokens;
    }
    together.move(model, [&](Model& weights) {
      detail::move_weights(weights, optimizer, together.gradients(), options, info,
                           together.norm());
      return info.taken;
    });
    return tokens;
  };
  return detail::train_steps(options, take_step, [&](const StepInfo& info) {
    Tensor<bool, 1> mine({Index{1}});
    Tensor<bool, 2> all({ranks.size(), 1});
    mine(0) = detail::goes_on(on_step, info);
    ranks.all_gather(mine, all);
    return std::all_of(all.begin(), all.end(), [](bool each) { return each; });
  });
}

/// Writes what `save_checkpoint` of one process would, byte for byte: any number of ranks reads it,
/// and so does one process. The optimizers' parts travel to rank 0, which writes the file,
/// completely or not at all, and needs memory for all of it. Collective. Throws InvalidArgument on
/// every rank where it cannot be written, or where ranks bring different shapes or states.
template <HasMembers Model, HasMembers Optimizer>
void save_checkpoint(const Communicator& ranks, const FilePath& path, const Model& model,
                     const Optimizer& optimizer, const TrainingState& state) {
  const detail::ParameterShards shards(model, ranks.size());
  const bool writes = ranks.rank() == 0;
  Agreement same = detail::agreement_of("save_checkpoint", ranks);
  same.check(ranks, [&] {
    detail::add_moments(same, shards, ranks.rank(), optimizer);
    detail::add_state(same, state);
    same.add("an optimizer after steps", optimizer.steps());
    detail::add_model(same, model, false);
  });
  SafetensorsWriter writer;
  shards.for_each_moment(
      ranks.rank(), optimizer, [&](std::string_view name, const auto& part, const auto& whole) {
        using T = typename std::remove_cvref_t<decltype(part)>::value_type;
        Tensor<T, 1> all({writes ? whole.size : 0});
        const auto size = static_cast<std::size_t>(ranks.size());
        std::vector<detail::NumberRuns> sent(size), received(size);
        sent[0] = {detail::NumberRun::of(part.data(), part.size())};
        for (Index rank = 0; writes && rank < ranks.size(); ++rank) {
          received[static_cast<std::size_t>(rank)] = {detail::NumberRun::of(
              all.data() + shards.first(whole, rank), shards.count(whole, rank))};
        }
        detail::exchange(ranks, sent, received);
        if (!writes) return;
        writer.add_bytes(
            "optimizer." + std::string(name), element_type_of<T>(), whole.extents,
            std::as_bytes(std::span(all.data(), static_cast<std::size_t>(all.size()))));
      });
  Agreement written = detail::agreement_of("save_checkpoint", ranks);
  written.check(ranks, [&] {
    if (!writes) return;
    detail::note_state(writer, path, state, optimizer.steps());
    detail::note_streams(writer, detail::streams_of(model));
    detail::add_parameters(writer, "model.", model);
    writer.write(path);
  });
}

/// Reads a file of save_checkpoint, written by any number of ranks or by one process. Each rank
/// reads `path`, and of the optimizer its part. Collective. Throws InvalidArgument on every rank,
/// with all unchanged, where one cannot read it, it does not match, or ranks read different states.
template <HasMembers Model, HasMembers Optimizer>
TrainingState load_checkpoint(const Communicator& ranks, const FilePath& path, Model& model,
                              Optimizer& optimizer) {
  const detail::ParameterShards shards(model, ranks.size());
  std::optional<Safetensors> file;
  std::optional<detail::ParameterMatch> match;
  TrainingState state;
  Index optimizer_steps = 0;
  std::vector<std::uint32_t> streams;
  Agreement same = detail::agreement_of("load_checkpoint", ranks);
  same.check(ranks, [&] {
    file = load_safetensors(path);
    const auto notes = file->metadata();
    state = detail::noted_state(path, notes);
    optimizer_steps = detail::noted_optimizer_steps(path, notes);
    streams = detail::noted_streams(path, notes, detail::streams_of(model).size());
    match.emplace(*file);
    match->expect("model.", model);
    shards.for_each_moment(
        ranks.rank(), optimizer, [&](std::string_view name, auto& part, const auto& whole) {
          using T = typename std::remove_cvref_t<decltype(part)>::value_type;
          match->expect("optimizer." + std::string(name), element_type_of<T>(), whole.extents,
                        part.data(), shards.first(whole, ranks.rank()), part.size());
        });
    match->finish(path);
    detail::add_state(same, state);
    same.add("streams of dropout with fingerprint", detail::fingerprint_of(streams));
  });
  match->read();
  detail::set_streams(model, streams);
  optimizer.set_steps(optimizer_steps);
  return state;
}

}  // namespace heed
