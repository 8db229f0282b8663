// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include <heed/core/printable.hpp>
#include <heed/core/random.hpp>
#include <heed/io/safetensors.hpp>
#include <heed/io/safetensors_writer.hpp>
#include <heed/layers/parameters.hpp>
#include <heed/training/detail/parameter_match.hpp>
#include <heed/training/early_stopping.hpp>

namespace heed {

/// Where a training run stands, besides weights and moments. Schedules and batches are functions of
/// these numbers (and of settings that the program has).
struct TrainingState {
  Index step = 0;
  Index epoch = 0;
  Index batch = 0;  // of the epoch
  Random random{0};
  /// What else a program wants to find again: names and UTF-8 texts, metadata `note.NAME`.
  std::map<std::string, std::string> notes = {};
};

namespace detail {

/// Adds every parameter, its name behind `prefix`.
template <class Model>
void add_parameters(SafetensorsWriter& writer, const std::string& prefix, const Model& model) {
  for_each_parameter(
      [&](std::string_view name, const auto& parameter) {
        writer.add(prefix + std::string(name), parameter);
      },
      model);
}

/// Notes of its own that a checkpoint may hold: each takes many times what it takes in a file.
inline constexpr std::size_t most_notes = 4096;

/// A whole number that a note holds. Throws FileError.
template <class Integer>
Integer noted_number(const std::string& path, const Notes& notes, const std::string& key) {
  if (!notes.contains(key)) throw_file_error(path, ": no checkpoint: '", key, "' is not noted");
  const std::string text = notes.at(key);
  Integer value{};
  const char* end = text.data() + text.size();
  const auto [stop, failure] = std::from_chars(text.data(), end, value);
  if (failure != std::errc() || stop != end || value < 0) {
    throw_file_error(path, ": no checkpoint: '", key, "' is ", quote(text));
  }
  return value;
}

/// Adds the state of early stopping; the best loss by its bits.
inline void note_stopping(SafetensorsWriter& writer, const EarlyStoppingState& state) {
  writer.note("best_loss_bits", std::to_string(std::bit_cast<std::uint64_t>(state.best_loss)));
  writer.note("best_evaluation", std::to_string(state.best_evaluation));
  writer.note("evaluations", std::to_string(state.evaluations));
}
inline EarlyStoppingState noted_stopping(const std::string& path, const Notes& notes) {
  const EarlyStoppingState state{
      std::bit_cast<double>(noted_number<std::uint64_t>(path, notes, "best_loss_bits")),
      noted_number<Index>(path, notes, "best_evaluation"),
      noted_number<Index>(path, notes, "evaluations")};
  if (state.best_evaluation > state.evaluations || state.best_loss != state.best_loss) {
    throw_file_error(path, ": no checkpoint: evaluation ", state.best_evaluation, " of ",
                     state.evaluations, " is the best, with a loss of ", state.best_loss);
  }
  return state;
}

/// Where a run stood and its random numbers.
inline TrainingState noted_state(const std::string& path, const Notes& notes) {
  const auto number = [&](const std::string& key) { return noted_number<Index>(path, notes, key); };
  if (number("heed_checkpoint") != 1) throw_file_error(path, ": a checkpoint of another version");
  TrainingState state{.step = number("step"), .epoch = number("epoch"), .batch = number("batch")};
  Random::State random{};
  for (std::size_t i = 0; i < random.size(); ++i) {
    random[i] = noted_number<std::uint32_t>(path, notes, "random_" + std::to_string(i));
  }
  if (random.back() > 4) throw_file_error(path, ": no checkpoint: 'random_6' is ", random.back());
  state.random = Random::from_state(random);
  for (const auto& [key, text] : notes) {
    if (!key.starts_with("note.")) continue;
    if (state.notes.size() == most_notes) {
      throw_file_error(path, ": no checkpoint: more than ", most_notes, " notes");
    }
    state.notes[std::string(key.substr(5))] = text;
  }
  return state;
}

template <class Model, class Optimizer>
void write_checkpoint(const std::string& path, const Model& model, const Optimizer& optimizer,
                      const TrainingState& state, const EarlyStopping<Model>* stopping) {
  if (state.notes.size() > most_notes) {
    throw_file_error(path, ": ", state.notes.size(), " notes, at most ", most_notes);
  }
  SafetensorsWriter writer;
  add_parameters(writer, "model.", model);
  add_parameters(writer, "optimizer.", optimizer);
  writer.note("heed_checkpoint", "1");
  writer.note("optimizer_steps", std::to_string(optimizer.steps()));
  writer.note("step", std::to_string(state.step));
  writer.note("epoch", std::to_string(state.epoch));
  writer.note("batch", std::to_string(state.batch));
  const Random::State random = state.random.state();
  for (std::size_t i = 0; i < random.size(); ++i) {
    writer.note("random_" + std::to_string(i), std::to_string(random[i]));
  }
  for (const auto& [key, text] : state.notes) writer.note("note." + key, text);
  if (stopping != nullptr) {
    add_parameters(writer, "stopping.", *stopping);
    note_stopping(writer, stopping->state());
  }
  writer.write(path);
}

template <class Model, class Optimizer>
TrainingState read_checkpoint(const std::string& path, Model& model, Optimizer& optimizer,
                              EarlyStopping<Model>* stopping) {
  const Safetensors file = load_safetensors(path);
  const auto notes = file.metadata();
  TrainingState state = noted_state(path, notes);
  const auto optimizer_steps = noted_number<Index>(path, notes, "optimizer_steps");
  ParameterMatch match(file);
  match.expect("model.", model);
  match.expect("optimizer.", optimizer);
  if (stopping != nullptr) match.expect("stopping.", *stopping);
  match.finish(path);
  if (stopping != nullptr) stopping->set_state(noted_stopping(path, notes));
  match.read();
  optimizer.set_steps(optimizer_steps);
  return state;
}

}  // namespace detail

/// Writes the parameters of a model as a safetensors file under their names, whole or not at all.
/// Throws FileError.
template <HasMembers Model>
void save_weights(const std::string& path, const Model& model) {
  SafetensorsWriter writer;
  detail::add_parameters(writer, "", model);
  writer.write(path);
}

/// Reads what save_weights wrote into a model of the same shape. Throws FileError, the model
/// untouched, that lists tensors which are missing, too many or of another shape or type.
template <HasMembers Model>
void load_weights(const std::string& path, Model& model) {
  const Safetensors file = load_safetensors(path);
  detail::ParameterMatch match(file);
  match.expect("", model);
  match.finish(path);
  match.read();
}

/// Writes all that a run needs to go on with the same bits: weights (as `model.…`), the optimizer's
/// moments (`optimizer.…`) and steps, and where the run stands; whole or not at all. Throws
/// FileError.
template <HasMembers Model, HasMembers Optimizer>
void save_checkpoint(const std::string& path, const Model& model, const Optimizer& optimizer,
                     const TrainingState& state) {
  detail::write_checkpoint<Model>(path, model, optimizer, state, nullptr);
}
/// The same with what early stopping remembers: its best weights (`stopping.best_model.…`), their
/// loss, and how long it has waited since.
template <HasMembers Model, HasMembers Optimizer>
void save_checkpoint(const std::string& path, const Model& model, const Optimizer& optimizer,
                     const TrainingState& state, const EarlyStopping<Model>& stopping) {
  detail::write_checkpoint(path, model, optimizer, state, &stopping);
}

/// Reads what save_checkpoint wrote into a model and an optimizer of the same shapes. Throws
/// FileError, both untouched, for what is no checkpoint or does not match; what was written with
/// early stopping is read with it.
template <HasMembers Model, HasMembers Optimizer>
TrainingState load_checkpoint(const std::string& path, Model& model, Optimizer& optimizer) {
  return detail::read_checkpoint<Model, Optimizer>(path, model, optimizer, nullptr);
}
template <HasMembers Model, HasMembers Optimizer>
TrainingState load_checkpoint(const std::string& path, Model& model, Optimizer& optimizer,
                              EarlyStopping<Model>& stopping) {
  return detail::read_checkpoint(path, model, optimizer, &stopping);
}

}  // namespace heed
