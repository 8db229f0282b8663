// SPDX-License-Identifier: MIT
#pragma once

// Definitions of <heed/io/safetensors.hpp>, which includes this file.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <heed/core/text.hpp>
#include <heed/io/detail/json_reader.hpp>
#include <heed/io/detail/tensor_file.hpp>
#include <heed/io/element_type.hpp>
#include <heed/io/file.hpp>

namespace heed {

HEED_INLINE Notes::Notes(TextList texts) : texts_(std::move(texts)) {
  order_ = detail::sorted_order(texts_.size() / 2, [&](std::size_t a, std::size_t b) {
    return texts_[2 * a] < texts_[2 * b];
  });
}

HEED_INLINE Notes::Note Notes::operator[](std::size_t place) const {
  const std::size_t name = 2 * order_[place];
  return {texts_[name], texts_[name + 1]};
}

HEED_INLINE std::string Notes::at(std::string_view name) const {
  const std::size_t place = place_of(name);
  if (place == size()) throw_file_error("no note ", quote(name));
  return std::string((*this)[place].second);
}

HEED_INLINE bool operator==(const Notes& a, const Notes& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end());
}

HEED_INLINE std::size_t Notes::place_of(std::string_view name) const {
  const std::size_t place =
      detail::lower_place(order_, [&](std::size_t i) { return texts_[2 * i] < name; });
  return place < size() && (*this)[place].first == name ? place : size();
}

namespace detail {

/// Parser of a safetensors header: 8 bytes of length, then JSON with the name, type, shape and
/// place of each tensor. Tensors must fill the rest of the file without holes or overlap. Format:
/// https://huggingface.co/docs/safetensors
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

  /// In the order of the header. Duplicate names are not refused here.
  std::vector<SafetensorsEntry> take_entries() { return std::move(entries_); }
  /// The text of the object `__metadata__`, or an empty text.
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

  /// The number of tensors in the header. Also reads the metadata, before entries take memory.
  std::size_t count_entries(JsonReader json) {
    std::size_t count = 0;
    json.object([&](const std::string& name) {
      if (name == "__metadata__") return read_metadata(json);
      json.skip();
      ++count;
    });
    return count;
  }

  /// Checks the metadata, a map of texts, and keeps its place only. All names lie in one string
  /// while they are compared: a string for each would take many times the size of the file.
  void read_metadata(JsonReader& json) {
    if (metadata_.data() != nullptr) json.fail("__metadata__ twice");
    json.peek();
    JsonReader rest = json;
    rest.skip();
    metadata_ = text_.substr(json.at(), rest.at() - json.at());
    TextList names;
    names.reserve(metadata_.size() / shortest_note + 1, metadata_.size());
    json.object([&](const std::string& name) {
      names.push_back(name);
      json.string();
    });
    const auto order = sorted_order(
        names.size(), [&](std::size_t a, std::size_t b) { return names[a] < names[b]; });
    for (std::size_t i = 1; i < order.size(); ++i) {
      const std::string_view name = names[order[i]];
      if (name == names[order[i - 1]]) json.fail("__metadata__: ", quote(name), " twice");
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

  /// Checks that the data has the size of the shape and lies in the file. `byte` is the place of
  /// the entry.
  void check_size(SafetensorsEntry& entry, std::size_t byte) const {
    if (entry.begin > entry.end || entry.end > file_size_ - data_) {
      fail(byte, entry, "data_offsets [", entry.begin, ", ", entry.end, "], but the file has ",
           file_size_ - data_, " bytes of data");
    }
    const auto shape = entry.shape();
    const auto bytes = bytes_of(width_of(entry.type), shape);
    if (!bytes) fail(byte, entry, "shape ", shape, " is too large");
    if (*bytes != entry.end - entry.begin) {
      fail(byte, entry, "shape ", shape, " of ", name_of(entry.type), " needs ", *bytes,
           " bytes, data_offsets hold ", entry.end - entry.begin);
    }
    entry.begin += data_;
    entry.end += data_;
  }

  /// Checks that the tensors follow one another from the header to the end of the file.
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

HEED_INLINE SafetensorsContents::SafetensorsContents(std::span<const std::byte> bytes,
                                                     const std::string& name) {
  SafetensorsHeader header(bytes, name);
  metadata = header.metadata();
  entries = header.take_entries();
}

/// Orders wide types first, so that every tensor is aligned; then by name.
inline std::string safetensors_key(ElementType type, std::string_view name) {
  return std::string(1, static_cast<char>('0' + static_cast<int>(type))).append(name);
}

/// A text as JSON, in quotation marks.
inline std::string json_text(std::string_view text) {
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

}  // namespace detail

HEED_INLINE Safetensors::Safetensors(SharedBytes bytes, std::string name)
    : TensorFile(std::move(bytes), std::move(name)) {
  if (const Entry* again = twice(); again != nullptr) {
    throw_file_error(this->name(), ": byte ", again->begin, ": tensor ", quote(again->name),
                     " twice");
  }
}

HEED_INLINE Notes Safetensors::metadata() const {
  const std::string_view metadata = header().metadata;
  if (metadata.empty()) return {};
  return Notes(TextList::of([&](const auto& visit) {
    detail::JsonReader json(metadata, name());
    json.object([&](const std::string& key) {
      visit(key);
      visit(json.string());
    });
  }));
}

HEED_INLINE Safetensors load_safetensors(const FilePath& path) {
  return Safetensors(SharedBytes(MappedFile(path)), path);
}

HEED_INLINE void SafetensorsWriter::add_bytes(std::string_view name, ElementType type,
                                              std::span<const Index> shape,
                                              std::span<const std::byte> bytes) {
  const auto size = detail::bytes_of(width_of(type), shape);
  if (!size) throw_file_error("safetensors: tensor ", quote(name), ": shape ", shape, " is none");
  if (shape.size() > 8 || *size != bytes.size()) {
    throw_file_error("safetensors: tensor ", quote(name), ": ", bytes.size(), " bytes for shape ",
                     shape, " of ", name_of(type));
  }
  const std::span<std::byte> to = add_item(name, type, shape);
  std::copy(bytes.begin(), bytes.end(), to.begin());
}

HEED_INLINE void SafetensorsWriter::note(std::string_view key, std::string_view value) {
  if (!is_utf8(key) || !is_utf8(value)) throw_file_error("safetensors: a note is not UTF-8");
  notes_[std::string(key)] = value;
}

HEED_INLINE void SafetensorsWriter::write(const FilePath& path) const {
  const std::string header = this->header();
  write_file_parts(path, parts(header));
}

HEED_INLINE std::vector<std::byte> SafetensorsWriter::bytes() const {
  const std::string header = this->header();
  std::vector<std::byte> all;
  for (const auto part : parts(header)) all.insert(all.end(), part.begin(), part.end());
  return all;
}

HEED_INLINE std::span<std::byte> SafetensorsWriter::add_item(std::string_view name,
                                                             ElementType type,
                                                             std::span<const Index> shape) {
  if (name.empty() || name == "__metadata__" || !is_utf8(name)) {
    throw_file_error("safetensors: no name for a tensor: ", quote(name));
  }
  for (const auto& row : detail::element_types) {
    if (items_.contains(detail::safetensors_key(row.type, name))) {
      throw_file_error("safetensors: tensor ", quote(name), " twice");
    }
  }
  Item& item = items_[detail::safetensors_key(type, name)];
  item.shape.assign(shape.begin(), shape.end());
  item.bytes.resize(detail::bytes_of(width_of(type), shape).value());
  return item.bytes;
}

HEED_INLINE std::vector<std::span<const std::byte>> SafetensorsWriter::parts(
    const std::string& header) const {
  std::vector<std::span<const std::byte>> all = {std::as_bytes(std::span(header))};
  for (const auto& [key, item] : items_) all.push_back(item.bytes);
  return all;
}

HEED_INLINE std::string SafetensorsWriter::header() const {
  std::string json = "{";
  if (!notes_.empty()) {
    json += "\"__metadata__\":{";
    for (const auto& [key, value] : notes_) {
      json += detail::json_text(key) + ':' + detail::json_text(value) + ',';
    }
    json.back() = '}';
    json += ',';
  }
  std::size_t begin = 0;
  for (const auto& [key, item] : items_) {
    const auto type = static_cast<ElementType>(key[0] - '0');
    json += detail::json_text(key.substr(1)) + ":{\"dtype\":\"" + std::string(name_of(type)) +
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

}  // namespace heed
