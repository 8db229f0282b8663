// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

#include "support/file_bytes.hpp"

namespace heed::test {

/// Text as GGUF files hold it: 64-bit length, then its bytes.
inline std::string gguf_text(std::string_view text) {
  return raw<std::uint64_t>(text.size()) + std::string(text);
}

/// A GGUF file put together piece by piece; what is said and what is so may differ.
struct GgufFile {
  std::string fields, tensors, data;
  std::uint64_t field_count = 0, tensor_count = 0;
  std::uint32_t version = 3;
  std::size_t alignment = 32;

  /// A field of the type with that number; `value` as it stands in the file.
  void field(std::string_view key, std::uint32_t type, const std::string& value) {
    fields += gguf_text(key) + raw(type) + value;
    ++field_count;
  }
  /// The shape in the file's order, the last axis first.
  void tensor(std::string_view name, std::initializer_list<std::uint64_t> shape, std::uint32_t type,
              std::uint64_t offset) {
    tensors += gguf_text(name) + raw(static_cast<std::uint32_t>(shape.size()));
    for (const std::uint64_t extent : shape) tensors += raw(extent);
    tensors += raw(type) + raw(offset);
    ++tensor_count;
  }
  std::string text() const {
    std::string all =
        "GGUF" + raw(version) + raw(tensor_count) + raw(field_count) + fields + tensors;
    if (!data.empty()) all.resize((all.size() + alignment - 1) / alignment * alignment, '\0');
    return all + data;
  }
};

}  // namespace heed::test
