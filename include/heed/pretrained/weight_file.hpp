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
#include <heed/io/error.hpp>
#include <heed/io/gguf.hpp>
#include <heed/io/safetensors.hpp>

namespace heed {

/// Weights by name, in whichever format they came.
class WeightFile {
 public:
  WeightFile(Safetensors file, std::string name) : name_(std::move(name)), file_(std::move(file)) {}
  explicit WeightFile(Gguf file) : name_(file.name()), file_(std::move(file)) {}

  const std::string& name() const { return name_; }
  /// Which live as long as this.
  std::vector<std::string_view> names() const {
    std::vector<std::string_view> all;
    if (const auto* gguf = std::get_if<Gguf>(&file_)) {
      all.reserve(gguf->tensors().size());
      for (const auto& tensor : gguf->tensors()) all.push_back(tensor.name);
    } else {
      const auto& entries = std::get<Safetensors>(file_).entries();
      all.reserve(entries.size());
      for (const auto& entry : entries) all.push_back(entry.name);
    }
    return all;
  }
  bool contains(std::string_view name) const {
    if (const auto* gguf = std::get_if<Gguf>(&file_)) return gguf->has_tensor(name);
    return std::get<Safetensors>(file_).contains(name);
  }
  /// Lives as long as the file.
  std::span<const Index> shape(std::string_view name) const {
    if (const auto* gguf = std::get_if<Gguf>(&file_)) return gguf->tensor(name).shape();
    return std::get<Safetensors>(file_).entry(name).shape();
  }
  /// What the file calls the type of a tensor's weights.
  std::string_view type(std::string_view name) const {
    if (const auto* gguf = std::get_if<Gguf>(&file_)) return gguf->tensor(name).type->name;
    return name_of(std::get<Safetensors>(file_).entry(name).type);
  }
  /// Whether `tensor` reads weights of that type as T.
  template <class T>
  bool is_readable(std::string_view name) const {
    if (const auto* gguf = std::get_if<Gguf>(&file_)) {
      return is_dequantizable(*gguf->tensor(name).type);
    }
    return is_readable_as<T>(std::get<Safetensors>(file_).entry(name).type);
  }
  /// Bytes of all weights.
  std::size_t bytes() const {
    std::size_t sum = 0;
    if (const auto* gguf = std::get_if<Gguf>(&file_)) {
      for (const auto& tensor : gguf->tensors()) sum += tensor.end - tensor.begin;
    } else {
      for (const auto& entry : std::get<Safetensors>(file_).entries()) {
        sum += entry.end - entry.begin;
      }
    }
    return sum;
  }
  /// The weights as T, dequantized where they are quantized.
  template <class T, std::size_t Rank>
  Tensor<T, Rank> tensor(std::string_view name) const {
    if (const auto* gguf = std::get_if<Gguf>(&file_)) return gguf->tensor<T, Rank>(name);
    return std::get<Safetensors>(file_).template tensor<T, Rank>(name);
  }

  /// Throws FileError for a weight that is NaN or infinite, naming tensor and byte. Reading a model
  /// does not ask, as it would touch every weight twice. Weights of types that heed does not read
  /// are passed over.
  void check_finite() const {
    if (const auto* gguf = std::get_if<Gguf>(&file_)) {
      for (const auto& tensor : gguf->tensors()) check_finite(*gguf, tensor);
    } else {
      for (const auto& entry : std::get<Safetensors>(file_).entries()) check_finite(entry);
    }
  }

 private:
  void check_finite(std::string_view name, std::size_t byte, double weight) const {
    if (std::isfinite(weight)) return;
    throw_file_error(name_, ": byte ", byte, ": tensor ", quote(name), ": a weight is ", weight);
  }
  void check_finite(const Gguf& file, const GgufTensor& tensor) const {
    if (!is_dequantizable(*tensor.type)) return;
    const Index block = tensor.type->block_bytes, length = tensor.type->block_length;
    const Index size = tensor.size();
    float part[1024];
    for (Index first = 0; first < size; first += 1024) {
      const auto count = static_cast<std::size_t>(std::min<Index>(1024, size - first));
      file.read(tensor.name, first, std::span(part, count));
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

  std::string name_;
  std::variant<Safetensors, Gguf> file_;
};

}  // namespace heed
