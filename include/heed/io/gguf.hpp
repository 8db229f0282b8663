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

#include <heed/core/detail/shared.hpp>
#include <heed/core/printable.hpp>
#include <heed/core/scalar.hpp>
#include <heed/io/dequantize.hpp>
#include <heed/io/detail/name_index.hpp>
#include <heed/io/gguf_field.hpp>
#include <heed/io/gguf_header.hpp>
#include <heed/io/shared_bytes.hpp>
#include <heed/tensor/tensor.hpp>

namespace heed {

/// A GGUF file (versions 2 and 3): metadata and tensors by name. Opening checks everything but the
/// weights and touches none of them; copies share the file. Any bytes give this or a FileError, in
/// time and memory of the order of their number.
class Gguf {
 public:
  /// `name` stands in error messages.
  Gguf(SharedBytes bytes, std::string name)
      : bytes_(std::move(bytes)), name_(std::move(name)), header_(new Header(bytes_, name_)) {
    const GgufField* key = header_->by_key.twice(header_->fields);
    if (key != nullptr) fail_at_text(key->key, quote(key->key), " twice");
    const GgufTensor* tensor = header_->by_name.twice(header_->tensors);
    if (tensor != nullptr) fail_at_text(tensor->name, "tensor ", quote(tensor->name), " twice");
  }
  /// A file, memory-mapped: what is not asked for is not read from the disk.
  static Gguf open(const std::string& path) { return Gguf(SharedBytes(MappedFile(path)), path); }

  /// What stands in error messages, usually the path.
  const std::string& name() const { return name_; }
  std::uint32_t version() const { return header_->version; }
  /// In the order of the file, as are the tensors.
  std::span<const GgufField> fields() const { return header_->fields; }
  std::span<const GgufTensor> tensors() const { return header_->tensors; }

  bool has_field(std::string_view key) const { return find_field(key) != nullptr; }
  const GgufField& field(std::string_view key) const {
    const GgufField* found = find_field(key);
    if (found == nullptr) throw_file_error(name_, ": no field ", quote(key));
    return *found;
  }
  /// The value of a field as T: std::string_view (which lives as long as the file), bool, float,
  /// double, any integer. Throws FileError when it is missing, an array or something else.
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

  /// Throws FileError for what is wrong with one of the file's fields, at the byte of its value.
  template <class... Parts>
  [[noreturn]] void fail_at(const GgufField& field, const Parts&... parts) const {
    throw_file_error(name_, ": byte ", byte_of(field), ": ", quote(field.key), " ", parts...);
  }

  /// Calls visit with each element of an array as T, one after another: no memory is taken, where
  /// `values` takes that of a vector.
  template <class T, class Visit>
  void for_each(std::string_view key, const Visit& visit) const {
    const GgufField& found = field(key);
    if (!found.is_array) fail_at(found, "is no array");
    with_byte_of(found, [&] { found.template for_each<T>(visit); });
  }

  bool has_tensor(std::string_view name) const { return find_tensor(name) != nullptr; }
  const GgufTensor& tensor(std::string_view name) const {
    const GgufTensor* found = find_tensor(name);
    if (found == nullptr) throw_file_error(name_, ": no tensor ", quote(name));
    return *found;
  }
  /// The tensor's blocks as they stand in the file.
  std::span<const std::byte> bytes(std::string_view name) const {
    const GgufTensor& found = tensor(name);
    return bytes_.get().subspan(found.begin, found.end - found.begin);
  }
  /// The tensor's weights, dequantized. The shape is row-major, the file's order reversed. Throws
  /// FileError when the rank differs or heed does not read the type.
  template <Scalar T, std::size_t Rank>
  Tensor<T, Rank> tensor(std::string_view name) const {
    const GgufTensor& found = tensor(name);
    if (found.rank != Rank) {
      throw_file_error(name_, ": tensor ", quote(name), ": shape ", found.shape(), " has rank ",
                       found.rank, ", expected ", Rank);
    }
    Extents<Rank> extents{};
    std::copy_n(found.extents.begin(), Rank, extents.begin());
    Tensor<T, Rank> result(extents);
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
    if (result.empty()) read(name, 0, {});  // whether the type is one of ours
    return result;
  }
  /// Weights `first` … first + out.size() − 1 of the tensor in row-major order, dequantized.
  void read(std::string_view name, Index first, std::span<float> out) const {
    const GgufTensor& found = tensor(name);
    if (!is_dequantizable(*found.type)) {
      throw_file_error(name_, ": tensor ", quote(name), ": type ", found.type->name,
                       " is not read");
    }
    const Index size = found.size();
    if (first < 0 || first > size || static_cast<Index>(out.size()) > size - first) {
      throw_shape_error("read: weights ", first, " to ", first + static_cast<Index>(out.size()),
                        " of ", quote(name), ", which has ", size);
    }
    dequantize(*found.type, bytes_.get().data() + found.begin, first, out);
  }

 private:
  using ByKey = detail::NameIndex<&GgufField::key>;
  using ByName = detail::NameIndex<&GgufTensor::name>;

  struct Header {
    Header(const SharedBytes& bytes, const std::string& name) {
      detail::GgufHeader header(bytes.get(), name);
      version = header.version;
      fields = std::move(header.fields);
      tensors = std::move(header.tensors);
      by_key = ByKey(fields);
      by_name = ByName(tensors);
    }
    std::uint32_t version = 0;
    std::vector<GgufField> fields;
    std::vector<GgufTensor> tensors;
    ByKey by_key;
    ByName by_name;
  };

  const GgufField* find_field(std::string_view key) const {
    return header_->by_key.find(header_->fields, key);
  }
  const GgufTensor* find_tensor(std::string_view name) const {
    return header_->by_name.find(header_->tensors, name);
  }
  /// `text` is a part of the file.
  template <class... Parts>
  [[noreturn]] void fail_at_text(std::string_view text, const Parts&... parts) const {
    const auto* begin = reinterpret_cast<const char*>(bytes_.get().data());
    throw_file_error(name_, ": byte ", text.data() - begin, ": ", parts...);
  }

  std::size_t byte_of(const GgufField& field) const {
    return static_cast<std::size_t>(field.data - bytes_.get().data());
  }
  template <class Call>
  auto with_byte_of(const GgufField& field, const Call& call) const {
    try {
      return call();
    } catch (const FileError& error) {
      throw_file_error(name_, ": byte ", byte_of(field), ": ", error.what());
    }
  }

  SharedBytes bytes_;
  std::string name_;
  detail::Shared<Header> header_;
};

}  // namespace heed
