// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <heed/core/detail/shared.hpp>
#include <heed/core/printable.hpp>
#include <heed/io/detail/name_index.hpp>
#include <heed/io/element_type.hpp>
#include <heed/io/notes.hpp>
#include <heed/io/safetensors_header.hpp>
#include <heed/io/shared_bytes.hpp>
#include <heed/tensor/tensor.hpp>

namespace heed {

/// The tensors of a safetensors file, by name. Opening checks the whole header and touches no data;
/// copies share the file. Any bytes give this or a FileError, in time and memory of the order of
/// their number.
class Safetensors {
 public:
  /// `name` stands in error messages.
  Safetensors(SharedBytes bytes, std::string name)
      : bytes_(std::move(bytes)), name_(std::move(name)), header_(new Header(bytes_, name_)) {
    const SafetensorsEntry* twice = header_->by_name.twice(header_->entries);
    if (twice != nullptr) {
      throw_file_error(name_, ": byte ", twice->begin, ": tensor ", quote(twice->name), " twice");
    }
  }

  /// All of them, in the order of the header.
  std::span<const SafetensorsEntry> entries() const { return header_->entries; }
  bool contains(std::string_view name) const { return find(name) != nullptr; }
  /// Throws FileError when there is no tensor of that name.
  const SafetensorsEntry& entry(std::string_view name) const {
    const SafetensorsEntry* found = find(name);
    if (found == nullptr) throw_file_error(name_, ": no tensor ", quote(name));
    return *found;
  }

  /// The tensor as T: float or double from F64, F32, F16 and BF16 (only F64 to float rounds), else
  /// the file's own type: std::int64_t, std::int32_t, std::uint8_t, bool. Throws FileError when
  /// type or rank differ.
  template <class T, std::size_t Rank>
  Tensor<T, Rank> tensor(std::string_view name) const {
    const SafetensorsEntry& found = entry(name);
    if (!is_readable_as<T>(found.type)) {
      throw_file_error(name_, ": tensor ", quote(name), ": elements are ", name_of(found.type),
                       ", expected ", name_of(element_type_of<T>()));
    }
    if (found.rank != Rank) {
      throw_file_error(name_, ": tensor ", quote(name), ": shape ", found.shape(), " has rank ",
                       Index{found.rank}, ", expected ", Rank);
    }
    Extents<Rank> extents{};
    std::copy_n(found.extents.begin(), Rank, extents.begin());
    Tensor<T, Rank> result(extents);
    const std::byte* from = bytes_.get().data() + found.begin;
    if (found.type == element_type_of<T>() && !std::is_same_v<T, bool>) {
      if (!result.empty()) std::memcpy(result.data(), from, found.end - found.begin);
      return result;
    }
    const std::size_t width = width_of(found.type);
    for (T& value : result) {
      value = read_element<T>(found.type, from);
      from += width;
    }
    return result;
  }
  /// The tensor as it stands in the file: row-major, little-endian, at any alignment.
  std::span<const std::byte> bytes(std::string_view name) const {
    const SafetensorsEntry& found = entry(name);
    return bytes_.get().subspan(found.begin, found.end - found.begin);
  }
  /// What the writer noted about the file.
  Notes metadata() const {
    const std::string_view metadata = header_->metadata;
    if (metadata.empty()) return {};
    std::size_t count = 0, characters = 0;
    const auto read = [&](const auto& keep) {
      detail::JsonReader json(metadata, name_);
      json.object([&](const std::string& key) {
        keep(key);
        keep(json.string());
      });
    };
    read([&](const std::string& text) {
      ++count;
      characters += text.size();
    });
    TextList texts;
    texts.reserve(count, characters);
    read([&](const std::string& text) { texts.push_back(text); });
    return Notes(std::move(texts));
  }

 private:
  using ByName = detail::NameIndex<&SafetensorsEntry::name>;

  struct Header {
    Header(const SharedBytes& bytes, const std::string& name) {
      detail::SafetensorsHeader header(bytes.get(), name);
      metadata = header.metadata();
      entries = header.take_entries();
      by_name = ByName(entries);
    }
    std::string_view metadata;
    std::vector<SafetensorsEntry> entries;
    ByName by_name;
  };

  const SafetensorsEntry* find(std::string_view name) const {
    return header_->by_name.find(header_->entries, name);
  }

  SharedBytes bytes_;
  std::string name_;
  detail::Shared<Header> header_;
};

/// The tensors of a file, memory-mapped: what is not asked for is not read from the disk.
inline Safetensors load_safetensors(const std::string& path) {
  return Safetensors(SharedBytes(MappedFile(path)), path);
}

}  // namespace heed
