// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <heed/core/config.hpp>
#include <heed/core/detail/shared.hpp>
#include <heed/core/index.hpp>
#include <heed/core/text.hpp>
#include <heed/io/detail/tensor_file.hpp>
#include <heed/io/file.hpp>
#include <heed/io/gguf_header.hpp>
#include <heed/tensor/tensor.hpp>

namespace heed {

/// Weights `first` … first + out.size() − 1 of a tensor that begins at `data`, as floats: exact for
/// F32, F16 and BF16, otherwise rounded as the format defines. The type must be dequantizable and
/// the range must lie inside the tensor.
void dequantize(const GgufType& type, const std::byte* data, Index first, std::span<float> out);

namespace detail {

/// The contents of a GGUF file apart from the weights.
struct GgufContents {
  /// Reads and checks all of a file but the weights.
  GgufContents(std::span<const std::byte> bytes, const std::string& name);

  std::uint32_t version = 0;
  std::vector<GgufField> fields;    // in the file's order
  std::vector<GgufTensor> entries;  // in the file's order
  NameIndex<&GgufField::key> by_key;
};

}  // namespace detail

/// A GGUF file (versions 2 and 3): metadata and tensors by name. Opening checks everything but the
/// weights and reads none of them; copies share the file. Any bytes give a Gguf or a FileError, in
/// time and memory proportional to their number.
class Gguf : public detail::TensorFile<detail::GgufContents> {
 public:
  /// `name` appears in error messages.
  Gguf(SharedBytes bytes, std::string name);
  /// A memory-mapped file: the disk is read only where data is asked for.
  static Gguf open(const std::string& path);

  std::uint32_t version() const { return header().version; }
  /// In the order of the file.
  std::span<const GgufField> fields() const { return header().fields; }

  bool has_field(std::string_view key) const { return find_field(key) != nullptr; }
  /// Throws FileError if there is no such field.
  const GgufField& field(std::string_view key) const;
  /// The value of a field as T: std::string_view (which lives as long as the file), bool, float,
  /// double, or any integer. Throws FileError if the field is missing, an array, or of another
  /// type.
  template <class T>
  T value(std::string_view key) const {
    const GgufField& found = field(key);
    if (found.is_array) fail_at(found, "is an array");
    return with_byte_of(found, [&]() -> T { return found.template values<T>().front(); });
  }
  /// The same, or `otherwise` where the file has no such field.
  template <class T>
  T value(std::string_view key, T otherwise) const {
    return has_field(key) ? value<T>(key) : otherwise;
  }
  /// The elements of an array. Throws FileError for a field that is missing, no array, or of
  /// another type.
  template <class T>
  std::vector<T> values(std::string_view key) const {
    const GgufField& found = field(key);
    if (!found.is_array) fail_at(found, "is no array");
    return with_byte_of(found, [&] { return found.template values<T>(); });
  }
  /// Calls visit with each element of an array as T, without the memory of a vector.
  template <class T, class Visit>
  void for_each(std::string_view key, const Visit& visit) const {
    const GgufField& found = field(key);
    if (!found.is_array) fail_at(found, "is no array");
    with_byte_of(found, [&] { found.template for_each<T>(visit); });
  }
  /// Throws FileError about one of the file's fields, with the byte of its value.
  template <class... Parts>
  [[noreturn]] void fail_at(const GgufField& field, const Parts&... parts) const {
    throw_file_error(name(), ": byte ", byte_of(field), ": ", quote(field.key), " ", parts...);
  }

  /// The tensor's weights, dequantized to float; F64 to T itself. The shape is row-major: the
  /// file's order reversed. Throws FileError for an unknown name, another rank and types that heed
  /// does not read.
  template <Scalar T, std::size_t Rank>
  Tensor<T, Rank> tensor(std::string_view name) const {
    Tensor<T, Rank> result(extents_of<Rank>(entry(name)));
    if constexpr (std::is_same_v<T, float>) {
      read(name, 0, {result.data(), static_cast<std::size_t>(result.size())});
      return result;
    }
    if (std::is_same_v<T, double> && entry(name).type->name == "F64") {
      const auto stored = bytes(name);
      if (!stored.empty()) std::memcpy(result.data(), stored.data(), stored.size());
      return result;
    }
    float part[1024];
    for (Index first = 0; first < result.size(); first += 1024) {
      const auto count = static_cast<std::size_t>(std::min<Index>(1024, result.size() - first));
      read(name, first, std::span(part, count));
      std::copy_n(part, count, result.data() + first);
    }
    if (result.empty()) read(name, 0, {});  // refuses types that are not read
    return result;
  }
  /// Weights `first` … first + out.size() − 1 of the tensor in row-major order, dequantized.
  /// Throws FileError for an unknown name or type, ShapeError for weights outside the tensor.
  void read(std::string_view name, Index first, std::span<float> out) const;

 private:
  const GgufField* find_field(std::string_view key) const;
  /// `text` is a part of the file.
  template <class... Parts>
  [[noreturn]] void fail_at_text(std::string_view text, const Parts&... parts) const {
    const auto* begin = reinterpret_cast<const char*>(data());
    throw_file_error(name(), ": byte ", text.data() - begin, ": ", parts...);
  }

  std::size_t byte_of(const GgufField& field) const {
    return static_cast<std::size_t>(field.data - data());
  }
  template <class Call>
  auto with_byte_of(const GgufField& field, const Call& call) const {
    return detail::handled<FileError>(call, [&](const FileError& error) -> decltype(call()) {
      throw_file_error(name(), ": byte ", byte_of(field), ": ", error.what());
    });
  }
};

}  // namespace heed

#if HEED_DEFINITIONS
#include <heed/io/detail/gguf.inl>
#endif
