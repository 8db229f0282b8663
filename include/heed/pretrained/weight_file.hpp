// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <heed/core/index.hpp>
#include <heed/core/printable.hpp>
#include <heed/io/file.hpp>
#include <heed/io/gguf.hpp>
#include <heed/io/safetensors.hpp>

namespace heed {

/// Weights by name, from a safetensors or a GGUF file.
class WeightFile {
  // First, since the functions below deduce their results from it.
  template <class Visit>
  decltype(auto) visit(const Visit& visit) const {
    const auto* gguf = std::get_if<Gguf>(&file_);
    return gguf != nullptr ? visit(*gguf) : visit(*std::get_if<Safetensors>(&file_));
  }

 public:
  explicit WeightFile(Safetensors file) : file_(std::move(file)) {}
  explicit WeightFile(Gguf file) : file_(std::move(file)) {}

  /// The file's name in error messages.
  const std::string& name() const {
    return visit([](const auto& file) -> const std::string& { return file.name(); });
  }
  /// The names of all weights, valid as long as this object.
  std::vector<std::string_view> names() const {
    std::vector<std::string_view> all;
    for_each_entry([&](const auto& entry) { all.push_back(entry.name); });
    return all;
  }
  bool contains(std::string_view name) const {
    return visit([&](const auto& file) { return file.contains(name); });
  }
  /// The shape of a tensor, valid as long as this object.
  std::span<const Index> shape(std::string_view name) const {
    return visit([&](const auto& file) { return file.entry(name).shape(); });
  }
  /// The file's name for the type of a tensor's weights.
  std::string_view type(std::string_view name) const {
    return visit([&](const auto& file) { return file.entry(name).type_name(); });
  }
  /// Whether `tensor` reads weights of that type as T.
  template <class T>
  bool is_readable(std::string_view name) const {
    return visit([&](const auto& file) { return file.entry(name).template is_readable_as<T>(); });
  }
  /// The size of all weights in bytes.
  std::size_t bytes() const {
    std::size_t sum = 0;
    for_each_entry([&](const auto& entry) { sum += entry.end - entry.begin; });
    return sum;
  }
  /// The weights as T, dequantized if they are quantized.
  template <class T, std::size_t Rank>
  Tensor<T, Rank> tensor(std::string_view name) const {
    return visit([&](const auto& file) { return file.template tensor<T, Rank>(name); });
  }

  /// Throws FileError for a weight that is NaN or infinite, with its tensor and byte. Loading a
  /// model does not check this, since it would read every weight twice. Weights of types that heed
  /// does not read are skipped.
  void check_finite() const {
    for_each_entry([&](const auto& entry) { check_finite(entry); });
  }

 private:
  template <class Visit>
  void for_each_entry(const Visit& visit_entry) const {
    visit([&](const auto& file) {
      for (const auto& entry : file.entries()) visit_entry(entry);
    });
  }

  void check_finite(std::string_view name, std::size_t byte, double weight) const {
    if (std::isfinite(weight)) return;
    throw_file_error(this->name(), ": byte ", byte, ": tensor ", quote(name), ": a weight is ",
                     weight);
  }
  void check_finite(const GgufTensor& tensor) const {
    if (!is_dequantizable(*tensor.type)) return;
    const Index block = tensor.type->block_bytes, length = tensor.type->block_length;
    const Index size = tensor.size();
    float part[1024];
    for (Index first = 0; first < size; first += 1024) {
      const auto count = static_cast<std::size_t>(std::min<Index>(1024, size - first));
      std::get<Gguf>(file_).read(tensor.name, first, std::span(part, count));
      for (std::size_t i = 0; i < count; ++i) {
        const Index at = (first + static_cast<Index>(i)) / length * block;
        check_finite(tensor.name, tensor.begin + static_cast<std::size_t>(at),
                     static_cast<double>(part[i]));
      }
    }
  }
  void check_finite(const SafetensorsEntry& entry) const {
    if (!is_readable_as<double>(entry.type)) return;
    const auto bytes = std::get<Safetensors>(file_).bytes(entry.name);
    for (std::size_t at = 0; at < bytes.size(); at += width_of(entry.type)) {
      check_finite(entry.name, entry.begin + at,
                   read_element<double>(entry.type, bytes.data() + at));
    }
  }

  std::variant<Safetensors, Gguf> file_;
};

}  // namespace heed
