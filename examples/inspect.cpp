// SPDX-License-Identifier: MIT
// What is in a file: tensors, types, sizes and metadata of .safetensors, .gguf and .npy.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <exception>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <heed/io.hpp>
#include <heed/io/gguf.hpp>

#include "help.hpp"

namespace {

using namespace heed;

/// A line of a table: name, type, shape, bytes.
struct Row {
  std::string name, type, shape;
  Index elements;
  std::size_t bytes;
};

template <class Extents>
std::string shape_of(const Extents& extents) {
  std::string text;
  for (const Index extent : extents) text += (text.empty() ? "" : " x ") + std::to_string(extent);
  return text.empty() ? "scalar" : text;
}

template <class Extents>
Index count_of(const Extents& extents) {
  Index count = 1;
  for (const Index extent : extents) {
    if (extent == 0) return 0;
  }
  for (const Index extent : extents) count *= extent;
  return count;
}

Index width_of_text(std::string_view text) {  // in characters
  return std::count_if(text.begin(), text.end(), [](char byte) { return (byte & 0xc0) != 0x80; });
}

std::string padded(const std::string& text, Index width) {
  return text + std::string(static_cast<std::size_t>(width - width_of_text(text)), ' ');
}

std::string size_of(std::size_t bytes) {
  char text[32];
  const auto value = static_cast<double>(bytes);
  if (bytes < 10'000)
    std::snprintf(text, sizeof(text), "%zu bytes", bytes);
  else if (bytes < 1'000'000)
    std::snprintf(text, sizeof(text), "%.1f kB", value / 1e3);
  else
    std::snprintf(text, sizeof(text), "%.1f MB", value / 1e6);
  return text;
}

void print_table(const std::vector<Row>& rows) {
  Index name = 0, type = 0, shape = 0, elements = 0;
  std::size_t bytes = 0;
  for (const Row& row : rows) {
    name = std::max(name, width_of_text(row.name));
    type = std::max(type, width_of_text(row.type));
    shape = std::max(shape, width_of_text(row.shape));
    elements += row.elements;
    bytes += row.bytes;
  }
  std::printf("\n%zu tensor%s of %td elements, %s\n", rows.size(), rows.size() == 1 ? "" : "s",
              elements, size_of(bytes).c_str());
  for (const Row& row : rows) {
    std::printf("  %s  %s  %s  %s\n", padded(row.name, name).c_str(),
                padded(row.type, type).c_str(), padded(row.shape, shape).c_str(),
                size_of(row.bytes).c_str());
  }
}

void print_field(std::string_view key, const std::string& value) {
  const std::string name = printable(key);
  std::printf("  %s %s\n", padded(name, std::max<Index>(40, width_of_text(name))).c_str(),
              value.c_str());
}

/// A number or word of metadata, short.
std::string shown(std::string_view text) { return printable(text, 60); }
std::string shown(bool value) { return value ? "true" : "false"; }
std::string shown(double value) {
  char text[32];
  std::snprintf(text, sizeof(text), "%g", value);
  return text;
}
std::string shown(std::int64_t value) { return std::to_string(value); }
std::string shown(std::uint64_t value) { return std::to_string(value); }

template <class T>
std::string first_values(const GgufField& field) {
  constexpr std::size_t most = 6;
  const auto values = field.values<T>(most);
  std::string text;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (i > 0) text += ", ";
    if constexpr (std::is_same_v<T, std::string_view>) {
      text += field.is_array ? quote(values[i]) : shown(values[i]);
    } else {
      text += shown(static_cast<T>(values[i]));
    }
  }
  if (field.count > most) text += ", …";
  return field.is_array ? "[" + text + "], " + std::to_string(field.count) + " in all" : text;
}

std::string shown(const GgufField& field) {
  if (field.holds<std::string_view>()) return first_values<std::string_view>(field);
  if (field.holds<bool>()) return first_values<bool>(field);
  if (field.holds<double>()) return first_values<double>(field);
  if (field.type == GgufValueType::u64) return first_values<std::uint64_t>(field);
  if (field.holds<std::int64_t>()) return first_values<std::int64_t>(field);
  return std::to_string(field.count) + " arrays";
}

void inspect_gguf(const SharedBytes& bytes, const std::string& path) {
  // [gguf]
  const Gguf file(bytes, path);
  std::printf("GGUF, version %u, %s\n\n", file.version(), size_of(bytes.get().size()).c_str());
  for (const GgufField& field : file.fields()) print_field(field.key, shown(field));
  // [/gguf]
  std::vector<Row> rows;
  for (const GgufTensor& tensor : file.entries()) {
    rows.push_back({printable(tensor.name), std::string(tensor.type->name),
                    shape_of(tensor.shape()), count_of(tensor.shape()), tensor.end - tensor.begin});
  }
  print_table(rows);
}

void inspect_safetensors(const SharedBytes& bytes, const std::string& path) {
  // [safetensors]
  const Safetensors file(bytes, path);
  std::printf("safetensors, %s\n\n", size_of(bytes.get().size()).c_str());
  for (const auto& [key, value] : file.metadata()) print_field(key, shown(value));
  // [/safetensors]
  std::vector<Row> rows;
  for (const SafetensorsEntry& entry : file.entries()) {
    rows.push_back({printable(entry.name), std::string(name_of(entry.type)),
                    shape_of(entry.shape()), count_of(entry.shape()), entry.end - entry.begin});
  }
  print_table(rows);
}

void inspect_npy(const SharedBytes& bytes, const std::string& path) {
  const NpyHeader header = parse_npy_header(bytes.get(), path);
  check_npy_size(header, bytes.get().size(), path);
  std::printf(".npy, %s, %s order\n", size_of(bytes.get().size()).c_str(),
              header.fortran_order ? "Fortran" : "C");
  print_table({{"array", header.descr, shape_of(header.shape), count_of(header.shape),
                bytes.get().size() - header.data_offset}});
}

void inspect(const std::string& path) {
  const SharedBytes bytes{MappedFile(path)};
  const auto begins_with = [&](std::string_view magic) {
    return bytes.get().size() >= magic.size() &&
           std::memcmp(bytes.get().data(), magic.data(), magic.size()) == 0;
  };
  if (begins_with("GGUF")) return inspect_gguf(bytes, path);
  if (begins_with("\x93NUMPY")) return inspect_npy(bytes, path);
  inspect_safetensors(bytes, path);
}

}  // namespace

int main(int count, char** arguments) {
  const char* about = "Shows what a .safetensors, .gguf or .npy file holds.";
  int status = 0;
  if (example::helped(count, arguments, about, status, " FILE", 1, 1)) return status;
  try {
    inspect(arguments[1]);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "inspect: %s\n", printable(error.what(), 500).c_str());
    return 2;
  }
  return 0;
}
