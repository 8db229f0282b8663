// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <heed/core/bfloat16.hpp>
#include <heed/core/detail/shared.hpp>
#include <heed/core/index.hpp>
#include <heed/core/quantized.hpp>
#include <heed/core/scalar.hpp>
#include <heed/core/text.hpp>
#include <heed/io/detail/tensor_file.hpp>
#include <heed/io/element_type.hpp>
#include <heed/io/file.hpp>
#include <heed/io/gguf_header.hpp>
#include <heed/tensor/tensor.hpp>

namespace heed {

namespace detail {

/// Weights `first` … of a row of blocks; blocks that are only partly needed go through a buffer.
template <class Block>
void dequantize_blocks(const std::byte* blocks, Index first, std::span<float> out) {
  const auto size = static_cast<Index>(out.size());
  for (Index done = 0; done < size;) {
    const Index at = first + done, skipped = at % Block::length;
    const auto block = unaligned<Block>(blocks + at / Block::length * Index{sizeof(Block)});
    const Index count = std::min(Block::length - skipped, size - done);
    if (count == Block::length) {
      block.dequantize(out.data() + done);
    } else {
      float weights[Block::length];
      block.dequantize(weights);
      std::copy_n(weights + skipped, count, out.data() + done);
    }
    done += count;
  }
}

template <class Element, class ToFloat>
void widen(const std::byte* from, Index first, std::span<float> out, const ToFloat& to_float) {
  from += first * Index{sizeof(Element)};
  for (float& value : out) {
    value = to_float(unaligned<Element>(from));
    from += sizeof(Element);
  }
}

}  // namespace detail

/// Weights `first` … first + out.size() − 1 of a tensor that begins at `data`, as floats: exact for
/// F32, F16 and BF16, otherwise rounded as the format defines. The type must be dequantizable and
/// the range must lie inside the tensor.
inline void dequantize(const GgufType& type, const std::byte* data, Index first,
                       std::span<float> out) {
  switch (type.id) {
    case 0:
      return detail::widen<float>(data, first, out, [](float x) { return x; });
    case 1:
      return detail::widen<std::uint16_t>(data, first, out, float_of_half);
    case 2:
      return detail::dequantize_blocks<Q4_0>(data, first, out);
    case 3:
      return detail::dequantize_blocks<Q4_1>(data, first, out);
    case 8:
      return detail::dequantize_blocks<Q8_0>(data, first, out);
    case 14:
      return detail::dequantize_blocks<Q6_K>(data, first, out);
    case 28:
      return detail::widen<double>(data, first, out,
                                   [](double x) { return static_cast<float>(x); });
    default:
      return detail::widen<std::uint16_t>(data, first, out, float_of_bfloat16);
  }
}

namespace detail {

/// The contents of a GGUF file apart from the weights.
struct GgufContents {
  GgufContents(std::span<const std::byte> bytes, const std::string& name) {
    GgufHeader header(bytes, name);
    version = header.version;
    fields = std::move(header.fields);
    entries = std::move(header.entries);
    by_key = NameIndex<&GgufField::key>(fields);
  }
  std::uint32_t version = 0;
  std::vector<GgufField> fields;
  std::vector<GgufTensor> entries;
  NameIndex<&GgufField::key> by_key;
};

}  // namespace detail

/// A GGUF file (versions 2 and 3): metadata and tensors by name. Opening checks everything but the
/// weights and reads none of them; copies share the file. Any bytes give a Gguf or a FileError, in
/// time and memory proportional to their number.
class Gguf : public detail::TensorFile<detail::GgufContents> {
 public:
  /// `name` appears in error messages.
  Gguf(SharedBytes bytes, std::string name) : TensorFile(std::move(bytes), std::move(name)) {
    const GgufField* key = header().by_key.twice(header().fields);
    if (key != nullptr) fail_at_text(key->key, quote(key->key), " twice");
    const GgufTensor* tensor = twice();
    if (tensor != nullptr) fail_at_text(tensor->name, "tensor ", quote(tensor->name), " twice");
  }
  /// A memory-mapped file: the disk is read only where data is asked for.
  static Gguf open(const std::string& path) { return Gguf(SharedBytes(MappedFile(path)), path); }

  std::uint32_t version() const { return header().version; }
  /// In the order of the file.
  std::span<const GgufField> fields() const { return header().fields; }

  bool has_field(std::string_view key) const { return find_field(key) != nullptr; }
  const GgufField& field(std::string_view key) const {
    const GgufField* found = find_field(key);
    if (found == nullptr) throw_file_error(name(), ": no field ", quote(key));
    return *found;
  }
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
  /// The elements of an array.
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

  /// The tensor's weights, dequantized. The shape is row-major: the file's order reversed. Throws
  /// FileError for another rank and for types that heed does not read.
  template <Scalar T, std::size_t Rank>
  Tensor<T, Rank> tensor(std::string_view name) const {
    Tensor<T, Rank> result(extents_of<Rank>(entry(name)));
    if constexpr (std::is_same_v<T, float>) {
      read(name, 0, {result.data(), static_cast<std::size_t>(result.size())});
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
  void read(std::string_view name, Index first, std::span<float> out) const {
    const GgufTensor& found = entry(name);
    if (!is_dequantizable(*found.type)) {
      throw_file_error(this->name(), ": tensor ", quote(name), ": type ", found.type->name,
                       " is not read");
    }
    const Index size = found.size();
    if (first < 0 || first > size || static_cast<Index>(out.size()) > size - first) {
      throw_shape_error("read: weights ", first, " to ", first + static_cast<Index>(out.size()),
                        " of ", quote(name), ", which has ", size);
    }
    dequantize(*found.type, data() + found.begin, first, out);
  }

 private:
  const GgufField* find_field(std::string_view key) const {
    return header().by_key.find(header().fields, key);
  }
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
