// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <heed/core/index.hpp>
#include <heed/core/printable.hpp>
#include <heed/io/detail/json_reader.hpp>
#include <heed/io/detail/sorted_order.hpp>
#include <heed/io/element_type.hpp>

namespace heed {

/// One tensor of a safetensors file.
struct SafetensorsEntry {
  std::string name;
  ElementType type{};
  std::uint8_t rank = 0;
  std::array<Index, 8> extents{};
  std::size_t begin = 0, end = 0;  // bytes of the file

  std::span<const Index> shape() const { return {extents.data(), rank}; }
};

namespace detail {

/// Reads and checks the header of a safetensors file: 8 bytes of length, then JSON with a name,
/// type, shape and place for each tensor. Tensors fill the rest of the file without holes or
/// overlap. Format: https://huggingface.co/docs/safetensors
class SafetensorsHeader {
 public:
  static constexpr std::size_t longest = 100'000'000;

  SafetensorsHeader(std::span<const std::byte> bytes, std::string_view name)
      : name_(name), file_size_(bytes.size()) {
    if (bytes.size() < 8) throw_file_error(name, ": byte 0: not a safetensors file");
    const auto length = unaligned<std::uint64_t>(bytes.data());
    if (length > longest || length > bytes.size() - 8) {
      throw_file_error(name, ": byte 0: not a safetensors file: a header of ", length,
                       " bytes in a file of ", bytes.size());
    }
    text_ = {reinterpret_cast<const char*>(bytes.data()) + 8, static_cast<std::size_t>(length)};
    data_ = 8 + text_.size();
    parse();
    check_places();
  }

  /// In the order of the header; whoever takes them refuses names that stand twice.
  std::vector<SafetensorsEntry> take_entries() { return std::move(entries_); }
  /// The text of the object `__metadata__`, or nothing.
  std::string_view metadata() const { return metadata_; }

 private:
  /// Characters of `"":{"dtype":"U8","shape":[],"data_offsets":[0,0]}` and of `"":"",`.
  static constexpr std::size_t shortest_entry = 49, shortest_note = 6;

  template <class... Parts>
  [[noreturn]] void fail(std::size_t byte, const SafetensorsEntry& entry,
                         const Parts&... parts) const {
    throw_file_error(name_, ": byte ", byte, ": tensor ", quote(entry.name), ": ", parts...);
  }

  void parse() {
    JsonReader json(text_, name_, 8);
    entries_.reserve(std::min(count_entries(json), text_.size() / shortest_entry + 1));
    json.object([&](const std::string& name) {
      if (name == "__metadata__") return json.skip();
      SafetensorsEntry& entry = entries_.emplace_back();
      entry.name = name;
      json.peek();
      const std::size_t byte = 8 + json.at();
      read_entry(json, entry);
      check_size(entry, byte);
    });
    json.end();
  }

  /// How many tensors the header names. Metadata is read on the way, before entries take memory.
  std::size_t count_entries(JsonReader json) {
    std::size_t count = 0;
    json.object([&](const std::string& name) {
      if (name == "__metadata__") return read_metadata(json);
      json.skip();
      ++count;
    });
    return count;
  }

  /// Text to text; only where it stands is kept. Its names stand one after another in a single
  /// string while they are compared: a string of its own for each would take many times the file.
  void read_metadata(JsonReader& json) {
    if (metadata_.data() != nullptr) json.fail("__metadata__ twice");
    json.peek();
    JsonReader rest = json;
    rest.skip();
    metadata_ = text_.substr(json.at(), rest.at() - json.at());
    std::string names;
    std::vector<std::uint32_t> ends;
    names.reserve(metadata_.size());
    ends.reserve(metadata_.size() / shortest_note + 1);
    json.object([&](const std::string& name) {
      names += name;
      ends.push_back(static_cast<std::uint32_t>(names.size()));
      json.string();
    });
    const auto name_at = [&](std::size_t i) {
      const std::size_t begin = i == 0 ? 0 : ends[i - 1];
      return std::string_view(names).substr(begin, ends[i] - begin);
    };
    const auto order = sorted_order(
        ends.size(), [&](std::size_t a, std::size_t b) { return name_at(a) < name_at(b); });
    for (std::size_t i = 1; i < order.size(); ++i) {
      const std::string_view name = name_at(order[i]);
      if (name == name_at(order[i - 1])) json.fail("__metadata__: ", quote(name), " twice");
    }
  }

  static void read_entry(JsonReader& json, SafetensorsEntry& entry) {
    unsigned seen = 0;
    json.object([&](const std::string& field) {
      const unsigned bit = field == "dtype"          ? 1
                           : field == "shape"        ? 2
                           : field == "data_offsets" ? 4
                                                     : 0;
      if (bit == 0) json.fail("tensor ", quote(entry.name), ": unknown field ", quote(field));
      if ((seen & bit) != 0) {
        json.fail("tensor ", quote(entry.name), ": field ", quote(field), " twice");
      }
      seen |= bit;
      if (bit == 1) {
        const std::string type = json.string();
        const auto known = element_type(type);
        if (!known) json.fail("tensor ", quote(entry.name), ": unknown type ", quote(type));
        entry.type = *known;
      } else if (bit == 2) {
        json.array([&] {
          if (entry.rank == entry.extents.size()) {
            json.fail("tensor ", quote(entry.name), ": more than ", entry.extents.size(), " axes");
          }
          entry.extents[entry.rank++] = size(json);
        });
      } else {
        unsigned count = 0;
        json.array([&] {
          const auto value = static_cast<std::size_t>(size(json));
          if (count == 0) entry.begin = value;
          if (count++ == 1) entry.end = value;
        });
        if (count != 2) json.fail("tensor ", quote(entry.name), ": data_offsets are not a pair");
      }
    });
    if (seen != 7) {
      json.fail("tensor ", quote(entry.name), ": dtype, shape and data_offsets must all be given");
    }
  }
  static Index size(JsonReader& json) {
    if (json.peek() == '-') json.fail("a negative size");
    return json.integer();
  }

  /// What the shape takes is what the place has, and the place lies in the file. `byte` is where
  /// the entry stands.
  void check_size(SafetensorsEntry& entry, std::size_t byte) const {
    if (entry.begin > entry.end || entry.end > file_size_ - data_) {
      fail(byte, entry, "data_offsets [", entry.begin, ", ", entry.end, "], but the file has ",
           file_size_ - data_, " bytes of data");
    }
    std::size_t bytes = width_of(entry.type);
    const auto shape = entry.shape();
    const bool empty = std::find(shape.begin(), shape.end(), 0) != shape.end();
    for (const Index extent : shape) {
      if (empty) bytes = 0;
      if (__builtin_mul_overflow(bytes, static_cast<std::size_t>(extent), &bytes)) {
        fail(byte, entry, "shape ", shape, " is too large");
      }
    }
    if (bytes != entry.end - entry.begin) {
      fail(byte, entry, "shape ", shape, " of ", name_of(entry.type), " needs ", bytes,
           " bytes, data_offsets hold ", entry.end - entry.begin);
    }
    entry.begin += data_;
    entry.end += data_;
  }

  /// One after another from the header to the end of the file.
  void check_places() const {
    const auto order = sorted_order(entries_.size(), [&](std::size_t a, std::size_t b) {
      const SafetensorsEntry &left = entries_[a], &right = entries_[b];
      return left.begin != right.begin ? left.begin < right.begin : left.end < right.end;
    });
    std::size_t expected = data_;
    for (const std::size_t i : order) {
      if (entries_[i].begin != expected) {
        fail(expected, entries_[i], "begins at byte ", entries_[i].begin,
             ", the one before ends here");
      }
      expected = entries_[i].end;
    }
    if (expected != file_size_) {
      throw_file_error(name_, ": byte ", expected, ": tensors end, the file has ", file_size_,
                       " bytes");
    }
  }

  std::string_view name_, text_, metadata_;
  std::size_t file_size_, data_ = 0;
  std::vector<SafetensorsEntry> entries_;
};

}  // namespace detail
}  // namespace heed
