// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
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
#include <heed/io/element_type.hpp>
#include <heed/io/file.hpp>
#include <heed/tensor/tensor.hpp>
#include <heed/tensor/view_of.hpp>

namespace heed {

/// Notes in a file's metadata: texts by name, in the order of the names. Takes the memory of the
/// texts and 16 bytes for each, however many a file has.
class Notes {
 public:
  using Note = std::pair<std::string_view, std::string_view>;
  using Iterator = detail::ListIterator<Notes>;

  Notes() = default;
  /// Alternating names and texts; names must be unique.
  explicit Notes(TextList texts);

  std::size_t size() const { return order_.size(); }
  bool empty() const { return order_.empty(); }
  /// The note at a place in the order of the names.
  Note operator[](std::size_t place) const;
  Iterator begin() const { return {*this, 0}; }
  Iterator end() const { return {*this, size()}; }

  bool contains(std::string_view name) const { return place_of(name) < size(); }
  /// The text with that name. Throws FileError if there is none.
  std::string at(std::string_view name) const;
  friend bool operator==(const Notes& a, const Notes& b);

 private:
  std::size_t place_of(std::string_view name) const;

  TextList texts_;
  std::vector<std::size_t> order_;
};

/// One tensor of a safetensors file.
struct SafetensorsEntry {
  std::string name;
  ElementType type{};
  std::uint8_t rank = 0;
  std::array<Index, 8> extents{};
  std::size_t begin = 0, end = 0;  // bytes of the file

  std::span<const Index> shape() const { return {extents.data(), rank}; }
  std::string_view type_name() const { return name_of(type); }
  template <class T>
  bool is_readable_as() const {
    return heed::is_readable_as<T>(type);
  }
};

namespace detail {

/// The contents of a safetensors file apart from the tensors' data.
struct SafetensorsContents {
  /// Reads and checks the header of a file. Names that occur twice are not refused here.
  SafetensorsContents(std::span<const std::byte> bytes, const std::string& name);

  std::string_view metadata;              // the text of the object `__metadata__`, or empty
  std::vector<SafetensorsEntry> entries;  // in the order of the header
};

}  // namespace detail

/// The tensors of a safetensors file, by name. Opening checks the whole header and reads no data;
/// copies share the file. Any bytes give a Safetensors or a FileError, in time and memory
/// proportional to their number.
class Safetensors : public detail::TensorFile<detail::SafetensorsContents> {
 public:
  /// `name` appears in error messages.
  Safetensors(SharedBytes bytes, std::string name);
  template <detail::PathLike Path>
  explicit Safetensors(const Path&) : Safetensors(SharedBytes(), std::string()) {
    static_assert(sizeof(Path) == 0,
                  "heed::load_safetensors(path) reads a file; Safetensors(bytes, name) takes the "
                  "bytes of one");
  }

  /// The tensor as T: float, double, bfloat16 or float16 from F64, F32, F16 and BF16, rounded to
  /// nearest where T is narrower, otherwise the file's own type: std::int64_t, std::int32_t,
  /// std::uint8_t, bool. Throws FileError for another type or rank.
  template <class T, std::size_t Rank = detail::rank_not_given<T>()>
  Tensor<T, Rank> tensor(std::string_view name) const {
    const SafetensorsEntry& found = entry(name);
    if (!found.is_readable_as<T>()) {
      throw_file_error(this->name(), ": tensor ", quote(name), ": elements are ", found.type_name(),
                       ", expected ", name_of(element_type_of<T>()));
    }
    auto result = Tensor<T, Rank>::uninitialized(extents_of<Rank>(found));
    read_elements(found.type, data() + found.begin, result.size(), result.data());
    return result;
  }
  template <detail::PathLike Name>
  Tensor<float, 1> tensor(const Name&) const {
    return detail::expect_type_of_tensor<Name>(), Tensor<float, 1>();
  }
  /// The notes in the file's metadata.
  Notes metadata() const;
};

/// Loads a memory-mapped file: the disk is read only where data is asked for. Throws FileError.
Safetensors load_safetensors(const FilePath& path);

/// Collects tensors and writes them as one safetensors file, completely or not at all. The file is
/// the same whatever the order of the calls.
class SafetensorsWriter {
 public:
  SafetensorsWriter() = default;
  template <detail::PathLike Path>
  explicit SafetensorsWriter(const Path&) {
    static_assert(sizeof(Path) == 0,
                  "a SafetensorsWriter is made of nothing: add(name, tensor) collects tensors, and "
                  "write(path) writes the file");
  }

  /// Adds a view, tensor or vector as `type`, rounded to nearest if that is narrower. Throws
  /// FileError for a name that is taken, empty, `__metadata__` or not UTF-8.
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
      const Index size = row.extent(0), run = row.stride(0) == 1 ? size : 1;
      for (Index i = 0; i < size; i += run, to += static_cast<std::size_t>(run) * width) {
        write_elements(type, &row(i), run, to);
      }
    });
  }
  template <detail::NoPath X>
  void add(const X&, std::string_view) {
    static_assert(detail::never<X>, "the name goes first, and then the values: add(name, tensor)");
  }
  /// Adds a tensor of at most 8 axes by its bytes: row-major, little-endian. Throws FileError for
  /// more axes, for bytes whose number does not match type and shape, and for names as `add` does.
  void add_bytes(std::string_view name, ElementType type, std::span<const Index> shape,
                 std::span<const std::byte> bytes);
  /// Adds a note to the file's metadata, e.g. {"format", "pt"}, or replaces it. Throws FileError
  /// for text that is not UTF-8.
  void note(std::string_view key, std::string_view value);

  /// Writes the file, completely or not at all: header and tensors one after another, without a
  /// copy. Throws FileError.
  void write(const FilePath& path) const;
  /// The file's bytes in memory.
  std::vector<std::byte> bytes() const;

 private:
  struct Item {
    std::vector<Index> shape;
    std::vector<std::byte> bytes;
  };

  /// Memory for a new tensor, filled with 0.
  std::span<std::byte> add_item(std::string_view name, ElementType type,
                                std::span<const Index> shape);

  std::vector<std::span<const std::byte>> parts(const std::string& header) const;

  std::string header() const;

  std::map<std::string, Item> items_;  // wide types first, then by name
  std::map<std::string, std::string> notes_;
};

}  // namespace heed

#if HEED_DEFINITIONS
#include <heed/io/detail/safetensors.inl>
#endif
