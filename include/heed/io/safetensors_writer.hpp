// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <heed/core/printable.hpp>
#include <heed/core/utf8.hpp>
#include <heed/io/element_type.hpp>
#include <heed/io/file.hpp>
#include <heed/io/safetensors_header.hpp>
#include <heed/tensor/tensor.hpp>
#include <heed/tensor/view_of.hpp>

namespace heed {

/// Collects tensors and writes them as one safetensors file, whole or not at all. The file is the
/// same whatever the order in which they were added.
class SafetensorsWriter {
 public:
  /// Any view, tensor or vector; as `type`, rounded to the nearest where that is narrower. A name
  /// that is taken, empty, `__metadata__` or not UTF-8 is a FileError.
  template <Viewable X>
  void add(std::string_view name, const X& values,
           ElementType type = element_type_of<ValueOf<X>>()) {
    using T = ValueOf<X>;
    constexpr std::size_t rank = ViewOf<const X>::rank();
    static_assert(rank <= 8, "safetensors: tensors of at most 8 axes");
    if (!is_readable_as<T>(type)) {
      throw_file_error("safetensors: tensor ", quote(name), " of ", name_of(element_type_of<T>()),
                       " cannot be written as ", name_of(type));
    }
    const TensorView<const T, rank> view = view_of(values);
    std::byte* to = add_item(name, type, view.extents()).data();
    const std::size_t width = width_of(type);
    detail::for_each_row(view.extents(), [&](const Extents<rank>& at) {
      const TensorView<const T, 1> row = detail::row_at(view, at);
      for (Index i = 0; i < row.extent(0); ++i, to += width) write_element<T>(type, row(i), to);
    });
  }
  /// A tensor as it stands in another file, of any rank: row-major, little-endian. FileError when
  /// the bytes are not what type and shape take.
  void add_bytes(std::string_view name, ElementType type, std::span<const Index> shape,
                 std::span<const std::byte> bytes) {
    const bool empty = std::find(shape.begin(), shape.end(), 0) != shape.end();
    std::size_t size = empty ? 0 : width_of(type);
    for (const Index extent : shape) {
      if (extent < 0 || __builtin_mul_overflow(size, static_cast<std::size_t>(extent), &size)) {
        throw_file_error("safetensors: tensor ", quote(name), ": shape ", shape, " is none");
      }
    }
    if (shape.size() > 8 || size != bytes.size()) {
      throw_file_error("safetensors: tensor ", quote(name), ": ", bytes.size(), " bytes for shape ",
                       shape, " of ", name_of(type));
    }
    const std::span<std::byte> to = add_item(name, type, shape);
    std::copy(bytes.begin(), bytes.end(), to.begin());
  }
  /// Notes about the file, e.g. {"format", "pt"}.
  void note(std::string_view key, std::string_view value) {
    if (!is_utf8(key) || !is_utf8(value)) throw_file_error("safetensors: a note is not UTF-8");
    notes_[std::string(key)] = value;
  }

  /// The file's beginning and each tensor's bytes go to the disk one after another.
  void write(const std::string& path) const {
    const std::string header = this->header();
    write_file_parts(path, parts(header));
  }
  /// The same file in memory.
  std::vector<std::byte> bytes() const {
    const std::string header = this->header();
    std::vector<std::byte> all;
    for (const auto part : parts(header)) all.insert(all.end(), part.begin(), part.end());
    return all;
  }

 private:
  struct Item {
    std::vector<Index> shape;
    std::vector<std::byte> bytes;
  };

  /// Place for a new tensor's bytes, which are 0.
  std::span<std::byte> add_item(std::string_view name, ElementType type,
                                std::span<const Index> shape) {
    if (name.empty() || name == "__metadata__" || !is_utf8(name)) {
      throw_file_error("safetensors: no name for a tensor: ", quote(name));
    }
    for (const auto& row : detail::element_types) {
      if (items_.contains(key_of(row.type, name))) {
        throw_file_error("safetensors: tensor ", quote(name), " twice");
      }
    }
    std::size_t size = width_of(type);
    for (const Index extent : shape) size *= static_cast<std::size_t>(extent);
    Item& item = items_[key_of(type, name)];
    item.shape.assign(shape.begin(), shape.end());
    item.bytes.resize(size);
    return item.bytes;
  }

  /// Orders wide types first, so that every tensor is aligned; then by name.
  static std::string key_of(ElementType type, std::string_view name) {
    return std::string(1, static_cast<char>('0' + static_cast<int>(type))).append(name);
  }

  std::vector<std::span<const std::byte>> parts(const std::string& header) const {
    std::vector<std::span<const std::byte>> all = {std::as_bytes(std::span(header))};
    for (const auto& [key, item] : items_) all.push_back(item.bytes);
    return all;
  }

  static std::string json_string(std::string_view text) {
    constexpr std::string_view digits = "0123456789abcdef";
    std::string result = "\"";
    for (const char letter : text) {
      const auto code = static_cast<unsigned char>(letter);
      if (code < 0x20) {
        result += "\\u00";
        result += digits[code >> 4];
        result += digits[code & 15];
        continue;
      }
      if (letter == '"' || letter == '\\') result += '\\';
      result += letter;
    }
    return result + '"';
  }

  std::string header() const {
    std::string json = "{";
    if (!notes_.empty()) {
      json += "\"__metadata__\":{";
      for (const auto& [key, value] : notes_) {
        json += json_string(key) + ':' + json_string(value) + ',';
      }
      json.back() = '}';
      json += ',';
    }
    std::size_t begin = 0;
    for (const auto& [key, item] : items_) {
      const auto type = static_cast<ElementType>(key[0] - '0');
      json += json_string(key.substr(1)) + ":{\"dtype\":\"" + std::string(name_of(type)) +
              "\",\"shape\":[";
      for (const Index extent : item.shape) json += std::to_string(extent) + ',';
      if (json.back() == ',') json.pop_back();
      const std::size_t end = begin + item.bytes.size();
      json += "],\"data_offsets\":[" + std::to_string(begin) + ',' + std::to_string(end) + "]},";
      begin = end;
    }
    if (json.back() == ',') json.pop_back();
    json += '}';
    json.resize((json.size() + 7) / 8 * 8, ' ');
    if (json.size() > detail::SafetensorsHeader::longest) {
      throw_file_error("safetensors: a header of ", json.size(), " bytes is too long");
    }
    std::string start(8, '\0');
    const std::uint64_t length = json.size();
    std::memcpy(start.data(), &length, 8);
    return start + json;
  }

  std::map<std::string, Item> items_;  // by key_of
  std::map<std::string, std::string> notes_;
};

}  // namespace heed
