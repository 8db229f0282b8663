// SPDX-License-Identifier: MIT
#pragma once

// Definitions of <heed/training/checkpoint.hpp>, which includes this file.

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <system_error>
#include <vector>

#include <heed/core/text.hpp>

namespace heed::detail {

/// Whether a floating-point type holds all numbers of another, or is the same type.
inline bool holds_exactly(ElementType type, ElementType stored) {
  const bool narrow = stored == ElementType::f16 || stored == ElementType::bf16;
  if (type == ElementType::f64 && stored == ElementType::f32) return true;
  return type == stored || ((type == ElementType::f32 || type == ElementType::f64) && narrow);
}

HEED_INLINE void ParameterMatch::expect(const std::string& name, ElementType type,
                                        std::span<const Index> extents, void* to, Index first,
                                        Index count) {
  expected_.push_back(name);
  if (!file_.contains(name)) return problems_.add("missing: ", name, " ", extents);
  const SafetensorsEntry& entry = file_.entry(name);
  const auto shape = entry.shape();
  if (!std::equal(extents.begin(), extents.end(), shape.begin(), shape.end()) ||
      !holds_exactly(type, entry.type)) {
    return problems_.add("other shape or type: ", name, " is ", name_of(entry.type), " ", shape,
                         ", expected ", name_of(type), " ", extents);
  }
  const auto width = static_cast<Index>(width_of(entry.type));
  const auto from = file_.bytes(name).subspan(static_cast<std::size_t>(first * width),
                                              static_cast<std::size_t>(count * width));
  found_.push_back({to, type, from, entry.type});
}

HEED_INLINE void ParameterMatch::finish(const std::string& path) {
  std::sort(expected_.begin(), expected_.end());
  for (const SafetensorsEntry& entry : file_.entries()) {
    if (!std::binary_search(expected_.begin(), expected_.end(), entry.name)) {
      problems_.add("not in the model: ", printable(entry.name), " ", entry.shape());
    }
  }
  if (problems_.count() == 0) return;
  throw_file_error(path, ": does not match the model:\n  ", problems_.text());
}

HEED_INLINE void ParameterMatch::read() const noexcept {
  for (const Found& found : found_) {
    const auto count = static_cast<Index>(found.from.size() / width_of(found.stored));
    if (found.type != found.stored) {
      if (found.type == ElementType::f32) {
        read_elements(found.stored, found.from.data(), count, static_cast<float*>(found.to));
      } else {
        read_elements(found.stored, found.from.data(), count, static_cast<double*>(found.to));
      }
    } else if (!found.from.empty()) {
      std::memcpy(found.to, found.from.data(), found.from.size());
    }
  }
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

HEED_INLINE void note_state(SafetensorsWriter& writer, const std::string& path,
                            const TrainingState& state, Index optimizer_steps) {
  if (state.notes.size() > most_notes) {
    throw_file_error(path, ": ", state.notes.size(), " notes, at most ", most_notes);
  }
  if (state.step < 0 || state.epoch < 0 || state.batch < 0 || optimizer_steps < 0) {
    throw_file_error(path, ": step ", state.step, ", epoch ", state.epoch, ", batch ", state.batch,
                     ", optimizer steps ", optimizer_steps, "; expected 0 or more");
  }
  writer.note("heed_checkpoint", "1");
  writer.note("optimizer_steps", std::to_string(optimizer_steps));
  writer.note("step", std::to_string(state.step));
  writer.note("epoch", std::to_string(state.epoch));
  writer.note("batch", std::to_string(state.batch));
  const Random::State random = state.random.state();
  for (std::size_t i = 0; i < random.size(); ++i) {
    writer.note("random_" + std::to_string(i), std::to_string(random[i]));
  }
  for (const auto& [key, text] : state.notes) writer.note("note." + key, text);
}

HEED_INLINE TrainingState noted_state(const std::string& path, const Notes& notes) {
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

HEED_INLINE Index noted_optimizer_steps(const std::string& path, const Notes& notes) {
  return noted_number<Index>(path, notes, "optimizer_steps");
}

HEED_INLINE void note_streams(SafetensorsWriter& writer,
                              const std::vector<std::uint32_t>& streams) {
  if (streams.empty()) return;
  std::string text;
  for (const std::uint32_t stream : streams) text += std::to_string(stream) + " ";
  text.pop_back();
  writer.note("dropout_streams", text);
}

HEED_INLINE std::vector<std::uint32_t> noted_streams(const std::string& path, const Notes& notes,
                                                     std::size_t count) {
  std::vector<std::uint32_t> streams;
  if (!notes.contains("dropout_streams")) return streams;
  const std::string text = notes.at("dropout_streams");
  const char* end = text.data() + text.size();
  for (const char* at = text.data(); at < end && streams.size() <= count; ++at) {
    const auto [stop, failure] = std::from_chars(at, end, streams.emplace_back());
    if (failure != std::errc() || (stop != end && *stop != ' ')) {
      throw_file_error(path, ": no checkpoint: 'dropout_streams' is ", quote(text));
    }
    at = stop;
  }
  if (streams.size() != count) {
    throw_file_error(path, ": does not match the model, which has ", count, " layers with dropout");
  }
  return streams;
}

HEED_INLINE void note_stopping(SafetensorsWriter& writer, const EarlyStoppingState& state) {
  writer.note("best_loss_bits", std::to_string(std::bit_cast<std::uint64_t>(state.best_loss)));
  writer.note("best_evaluation", std::to_string(state.best_evaluation));
  writer.note("evaluations", std::to_string(state.evaluations));
}

HEED_INLINE EarlyStoppingState noted_stopping(const std::string& path, const Notes& notes) {
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

}  // namespace heed::detail
