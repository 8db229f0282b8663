// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <heed/core/config.hpp>
#include <heed/core/random.hpp>
#include <heed/io/detail/tensor_file.hpp>
#include <heed/io/element_type.hpp>
#include <heed/io/file.hpp>
#include <heed/io/safetensors.hpp>
#include <heed/layers/parameters.hpp>
#include <heed/training/train.hpp>

namespace heed {

/// The position of a training run, apart from weights and moments. Schedules and batches are
/// functions of these numbers and of the program's own settings.
struct TrainingState {
  Index step = 0;
  Index epoch = 0;
  Index batch = 0;  // of the epoch
  Random random{0};
  /// A program's own notes: names and texts, both UTF-8, stored as metadata `note.NAME`. With more
  /// than 4096, or other text, save_checkpoint throws FileError.
  std::map<std::string, std::string> notes = {};
};

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
          const auto& extents = parameter.extents();
          expect(prefix + std::string(name), element_type_of<T>(), extents, parameter.data(), 0,
                 parameter.size());
        },
        model);
  }
  /// Adds a tensor of which the values first, …, first + count - 1 are read, from the same type or
  /// from one that `type` holds exactly.
  void expect(const std::string& name, ElementType type, std::span<const Index> extents, void* to,
              Index first, Index count);

  /// Throws FileError with a list of all differences, if there are any; the first 50 by name.
  void finish(const std::string& path);
  /// Reads every expected parameter. After finish() nothing can fail.
  void read() const noexcept;

 private:
  struct Found {
    void* to;
    ElementType type;  // of `to`
    std::span<const std::byte> from;
    ElementType stored;
  };

  const Safetensors& file_;
  std::vector<std::string> expected_;
  std::vector<Found> found_;
  ProblemList problems_{"\n  "};
};

/// Adds every parameter under `prefix` and its name.
template <class Model>
void add_parameters(SafetensorsWriter& writer, const std::string& prefix, const Model& model) {
  for_each_parameter(
      [&](std::string_view name, const auto& parameter) {
        writer.add(prefix + std::string(name), parameter);
      },
      model);
}

/// Adds the state of early stopping; the best loss by its bits.
void note_stopping(SafetensorsWriter& writer, const EarlyStoppingState& state);
EarlyStoppingState noted_stopping(const std::string& path, const Notes& notes);

/// The position of the run and its random numbers.
TrainingState noted_state(const std::string& path, const Notes& notes);
/// The steps of the optimizer.
Index noted_optimizer_steps(const std::string& path, const Notes& notes);
/// Adds the position of the run, its random numbers and the program's own notes. Throws FileError
/// for too many of these.
void note_state(SafetensorsWriter& writer, const std::string& path, const TrainingState& state,
                Index optimizer_steps);

template <class Model>
std::vector<std::uint32_t> streams_of(const Model& model) {
  std::vector<std::uint32_t> streams;
  for_each_stream(model, [&](std::uint32_t stream) { streams.push_back(stream); });
  return streams;
}
/// Changes nothing where a checkpoint had no streams.
template <class Model>
void set_streams(Model& model, const std::vector<std::uint32_t>& streams) {
  if (streams.empty()) return;
  std::size_t at = 0;
  for_each_stream(model, [&](std::uint32_t& stream) { stream = streams[at++]; });
}

/// Adds the streams of a model, if it has any.
void note_streams(SafetensorsWriter& writer, const std::vector<std::uint32_t>& streams);
/// The streams of a checkpoint; none in one of heed 0.1. Throws FileError where they are not
/// `count`.
std::vector<std::uint32_t> noted_streams(const std::string& path, const Notes& notes,
                                         std::size_t count);

}  // namespace detail

/// Writes the parameters of a model under their names as a safetensors file, completely or not at
/// all; with a type, every one rounded to nearest: in bf16, half the bytes of float. Throws
/// FileError.
template <HasMembers Model>
void save_weights(const FilePath& path, const Model& model, std::optional<ElementType> type = {}) {
  SafetensorsWriter writer;
  for_each_parameter(
      [&](std::string_view name, const auto& parameter) {
        type ? writer.add(name, parameter, *type) : writer.add(name, parameter);
      },
      model);
  writer.write(path);
}

template <detail::NoPath Model>
void save_weights(const Model&, const std::string&) {
  detail::expect_path_first<Model>();
}

/// Reads a file of save_weights into a model of the same shape; types that the model's holds
/// exactly are widened. Throws FileError, with the model unchanged, and lists tensors that are
/// missing, unknown, or of another shape or type.
template <HasMembers Model>
void load_weights(const FilePath& path, Model& model) {
  const Safetensors file = load_safetensors(path);
  detail::ParameterMatch match(file);
  match.expect("", model);
  match.finish(path);
  match.read();
}

/// Writes everything that a run needs to continue with the same bits: weights (as `model.…`), which
/// numbers dropout draws in each layer, the optimizer's moments (`optimizer.…`) and steps, and the
/// position of the run; completely or not at all. With early stopping as the last argument, also
/// its state: its best weights (`stopping.best_model.…`), their loss, and the number of evaluations
/// since. Options are the program's. Throws FileError.
template <HasMembers Model, HasMembers Optimizer,
          std::derived_from<EarlyStopping<Model>>... Stopping>
requires(sizeof...(Stopping) <= 1) void save_checkpoint(const FilePath& path, const Model& model,
                                                        const Optimizer& optimizer,
                                                        const TrainingState& state,
                                                        const Stopping&... stopping) {
  SafetensorsWriter writer;
  detail::note_state(writer, path, state, optimizer.steps());
  detail::note_streams(writer, detail::streams_of(model));
  detail::add_parameters(writer, "model.", model);
  detail::add_parameters(writer, "optimizer.", optimizer);
  (detail::add_parameters(writer, "stopping.", stopping), ...);
  (detail::note_stopping(writer, stopping.state()), ...);
  writer.write(path);
}

/// Reads a file of save_checkpoint into a model and an optimizer of the same shapes. A checkpoint
/// written with early stopping must be read with it. Throws FileError, with both unchanged, for a
/// file that is no checkpoint or does not match. One of heed 0.1 does not know about dropout: for
/// the same bits, build the model from the same Random.
template <HasMembers Model, HasMembers Optimizer,
          std::derived_from<EarlyStopping<Model>>... Stopping>
requires(sizeof...(Stopping) <= 1 && (!std::is_const_v<Stopping> && ...)) TrainingState
    load_checkpoint(const FilePath& path, Model& model, Optimizer& optimizer,
                    Stopping&... stopping) {
  const Safetensors file = load_safetensors(path);
  const auto notes = file.metadata();
  TrainingState state = detail::noted_state(path, notes);
  const Index optimizer_steps = detail::noted_optimizer_steps(path, notes);
  const auto streams = detail::noted_streams(path, notes, detail::streams_of(model).size());
  detail::ParameterMatch match(file);
  match.expect("model.", model);
  match.expect("optimizer.", optimizer);
  (match.expect("stopping.", stopping), ...);
  match.finish(path);
  (stopping.set_state(detail::noted_stopping(path, notes)), ...);
  match.read();
  detail::set_streams(model, streams);
  (detail::set_streams(stopping, streams), ...);
  optimizer.set_steps(optimizer_steps);
  return state;
}

}  // namespace heed

#if HEED_DEFINITIONS
#include <heed/training/detail/checkpoint.inl>
#endif
