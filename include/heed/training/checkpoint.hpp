// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <heed/core/random.hpp>
#include <heed/core/text.hpp>
#include <heed/io/safetensors.hpp>
#include <heed/layers/parameters.hpp>
#include <heed/training/train.hpp>

namespace heed {

namespace detail {

/// Compares the names, types and shapes of a model's parameters with those of a file, then reads
/// them.
class ParameterMatch {
 public:
  explicit ParameterMatch(const Safetensors& file) : file_(file) {}

  /// Adds the parameters of a model, which must not move until read().
  template <class Model>
  void expect(const std::string& prefix, Model& model) {
    for_each_parameter(
        [&](std::string_view name, auto& parameter) {
          using T = typename std::remove_cvref_t<decltype(parameter)>::value_type;
          const std::string full = prefix + std::string(name);
          expected_.insert(full);
          if (!file_.contains(full)) {
            return problems_.add("missing: ", full, " ", parameter.extents());
          }
          const SafetensorsEntry& entry = file_.entry(full);
          const auto& extents = parameter.extents();
          const auto shape = entry.shape();
          if (!std::equal(extents.begin(), extents.end(), shape.begin(), shape.end()) ||
              entry.type != element_type_of<T>()) {
            problems_.add("other shape or type: ", full, " is ", name_of(entry.type), " ", shape,
                          ", expected ", name_of(element_type_of<T>()), " ", extents);
          }
          found_.push_back({parameter.data(), file_.bytes(full)});
        },
        model);
  }

  /// Throws FileError with a list of all differences, if there are any; the first 50 by name.
  void finish(const std::string& path) {
    for (const SafetensorsEntry& entry : file_.entries()) {
      if (!expected_.contains(entry.name)) {
        problems_.add("not in the model: ", printable(entry.name), " ", entry.shape());
      }
    }
    if (problems_.count() == 0) return;
    throw_file_error(path, ": does not match the model:\n  ", problems_.text());
  }
  /// Reads every expected parameter. After finish() nothing can fail.
  void read() const noexcept {
    for (const Found& found : found_) {
      if (!found.from.empty()) std::memcpy(found.to, found.from.data(), found.from.size());
    }
  }

 private:
  struct Found {
    void* to;
    std::span<const std::byte> from;
  };

  const Safetensors& file_;
  std::set<std::string> expected_;
  std::vector<Found> found_;
  ProblemList problems_{"\n  "};
};

}  // namespace detail

/// The position of a training run, apart from weights and moments. Schedules and batches are
/// functions of these numbers and of the program's own settings.
struct TrainingState {
  Index step = 0;
  Index epoch = 0;
  Index batch = 0;  // of the epoch
  Random random{0};
  /// A program's own notes: names and UTF-8 texts, stored as metadata `note.NAME`.
  std::map<std::string, std::string> notes = {};
};

namespace detail {

/// Adds every parameter under `prefix` and its name.
template <class Model>
void add_parameters(SafetensorsWriter& writer, const std::string& prefix, const Model& model) {
  for_each_parameter(
      [&](std::string_view name, const auto& parameter) {
        writer.add(prefix + std::string(name), parameter);
      },
      model);
}

/// The most notes of a program in a checkpoint: each takes many times its bytes in the file.
inline constexpr std::size_t most_notes = 4096;

/// The whole number in a note. Throws FileError.
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

/// The position of the run and its random numbers.
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

/// Writes the parameters of a model under their names as a safetensors file, completely or not at
/// all. Throws FileError.
template <HasMembers Model>
void save_weights(const std::string& path, const Model& model) {
  SafetensorsWriter writer;
  detail::add_parameters(writer, "", model);
  writer.write(path);
}

/// Reads a file of save_weights into a model of the same shape. Throws FileError, with the model
/// unchanged, and lists tensors that are missing, unknown, or of another shape or type.
template <HasMembers Model>
void load_weights(const std::string& path, Model& model) {
  const Safetensors file = load_safetensors(path);
  detail::ParameterMatch match(file);
  match.expect("", model);
  match.finish(path);
  match.read();
}

/// Writes everything that a run needs to continue with the same bits: weights (as `model.…`), the
/// optimizer's moments (`optimizer.…`) and steps, and the position of the run; completely or not at
/// all. Throws FileError.
template <HasMembers Model, HasMembers Optimizer>
void save_checkpoint(const std::string& path, const Model& model, const Optimizer& optimizer,
                     const TrainingState& state) {
  detail::write_checkpoint<Model>(path, model, optimizer, state, nullptr);
}
/// The same with the state of early stopping: its best weights (`stopping.best_model.…`), their
/// loss, and the number of evaluations since.
template <HasMembers Model, HasMembers Optimizer>
void save_checkpoint(const std::string& path, const Model& model, const Optimizer& optimizer,
                     const TrainingState& state, const EarlyStopping<Model>& stopping) {
  detail::write_checkpoint(path, model, optimizer, state, &stopping);
}

/// Reads a file of save_checkpoint into a model and an optimizer of the same shapes. A checkpoint
/// written with early stopping must be read with it. Throws FileError, with both unchanged, for a
/// file that is no checkpoint or does not match.
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
