// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <heed/core/index.hpp>
#include <heed/core/text.hpp>
#include <heed/io/detail/tensor_file.hpp>
#include <heed/io/element_type.hpp>
#include <heed/io/file.hpp>

namespace heed {

/// The storage format of a tensor's weights in a GGUF file: blocks with a number of weights and
/// bytes.
struct GgufType {
  std::uint32_t id = 0;
  std::string_view name;
  Index block_length = 1, block_bytes = 1;
};

namespace detail {

/// All types of the format. heed dequantizes those of `is_dequantizable` and knows the sizes of the
/// others. Format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
inline constexpr std::array<GgufType, 34> gguf_types = {{
    {0, "F32", 1, 4},         {1, "F16", 1, 2},         {2, "Q4_0", 32, 18},
    {3, "Q4_1", 32, 20},      {6, "Q5_0", 32, 22},      {7, "Q5_1", 32, 24},
    {8, "Q8_0", 32, 34},      {9, "Q8_1", 32, 40},      {10, "Q2_K", 256, 84},
    {11, "Q3_K", 256, 110},   {12, "Q4_K", 256, 144},   {13, "Q5_K", 256, 176},
    {14, "Q6_K", 256, 210},   {15, "Q8_K", 256, 292},   {16, "IQ2_XXS", 256, 66},
    {17, "IQ2_XS", 256, 74},  {18, "IQ3_XXS", 256, 98}, {19, "IQ1_S", 256, 50},
    {20, "IQ4_NL", 32, 18},   {21, "IQ3_S", 256, 110},  {22, "IQ2_S", 256, 82},
    {23, "IQ4_XS", 256, 136}, {24, "I8", 1, 1},         {25, "I16", 1, 2},
    {26, "I32", 1, 4},        {27, "I64", 1, 8},        {28, "F64", 1, 8},
    {29, "IQ1_M", 256, 56},   {30, "BF16", 1, 2},       {34, "TQ1_0", 256, 54},
    {35, "TQ2_0", 256, 66},   {39, "MXFP4", 32, 17},    {40, "NVFP4", 64, 36},
    {41, "Q1_0", 128, 18},
}};

}  // namespace detail

/// The type with that number, or null.
inline const GgufType* gguf_type(std::uint32_t id) {
  for (const GgufType& type : detail::gguf_types) {
    if (type.id == id) return &type;
  }
  return nullptr;
}

/// Whether `dequantize` reads that type.
inline bool is_dequantizable(const GgufType& type) {
  for (const std::string_view name :
       {"F32", "F16", "BF16", "F64", "Q8_0", "Q4_0", "Q4_1", "Q6_K"}) {
    if (type.name == name) return true;
  }
  return false;
}

/// The type of a metadata value, with the format's own numbers.
enum class GgufValueType : std::uint32_t {
  u8,
  i8,
  u16,
  i16,
  u32,
  i32,
  f32,
  boolean,
  text,
  array,
  u64,
  i64,
  f64
};

/// "u32", "text", …
inline std::string_view name_of(GgufValueType type) {
  constexpr std::string_view names[] = {"u8",   "i8",   "u16",   "i16", "u32", "i32", "f32",
                                        "bool", "text", "array", "u64", "i64", "f64"};
  return names[static_cast<std::size_t>(type)];
}

/// Bytes of one value; 0 for text and arrays, which store their own size.
inline std::size_t width_of(GgufValueType type) {
  constexpr std::size_t widths[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
  return widths[static_cast<std::size_t>(type)];
}

namespace detail {

/// Calls visit with the number of that type at `bytes`; not for text or arrays.
template <class Visit>
decltype(auto) visit_number(GgufValueType type, const std::byte* bytes, const Visit& visit) {
  switch (type) {
    case GgufValueType::u8:
      return visit(unaligned<std::uint8_t>(bytes));
    case GgufValueType::i8:
      return visit(unaligned<std::int8_t>(bytes));
    case GgufValueType::u16:
      return visit(unaligned<std::uint16_t>(bytes));
    case GgufValueType::i16:
      return visit(unaligned<std::int16_t>(bytes));
    case GgufValueType::u32:
      return visit(unaligned<std::uint32_t>(bytes));
    case GgufValueType::i32:
      return visit(unaligned<std::int32_t>(bytes));
    case GgufValueType::f32:
      return visit(unaligned<float>(bytes));
    case GgufValueType::u64:
      return visit(unaligned<std::uint64_t>(bytes));
    case GgufValueType::i64:
      return visit(unaligned<std::int64_t>(bytes));
    case GgufValueType::f64:
      return visit(unaligned<double>(bytes));
    default:
      return visit(*bytes != std::byte{0});
  }
}

/// The text at `bytes`: a 64-bit length and that many bytes, checked when the file was opened.
inline std::string_view text_at(const std::byte* bytes) {
  return {reinterpret_cast<const char*>(bytes) + 8,
          static_cast<std::size_t>(unaligned<std::uint64_t>(bytes))};
}

}  // namespace detail

/// A metadata field of a GGUF file. It was checked when the file was opened; its values stay in the
/// file until they are asked for.
struct GgufField {
  std::string_view key;
  GgufValueType type{};   // of the value, or of an array's elements
  bool is_array = false;  // arrays of arrays: type is `array`
  std::size_t count = 1;  // elements
  const std::byte* data = nullptr;

  /// Whether the value, or every element, can be read as T: std::string_view from text, bool from
  /// bool, float and double from either, integers from integers (which must fit).
  template <class T>
  bool holds() const {
    const bool floating = type == GgufValueType::f32 || type == GgufValueType::f64;
    if constexpr (std::same_as<T, std::string_view>) return type == GgufValueType::text;
    if constexpr (std::same_as<T, bool>) return type == GgufValueType::boolean;
    if constexpr (std::floating_point<T>) return floating;
    return !floating && width_of(type) > 0 && type != GgufValueType::boolean;
  }

  /// Calls visit with each of the first `most` values as T, in order, without allocating. Throws
  /// FileError, with the key, for values of another type.
  template <class T, class Visit>
  void for_each(const Visit& visit, std::size_t most = SIZE_MAX) const {
    if (!holds<T>()) {
      throw_file_error(quote(key), " is ", name_of(type), ", expected ", expected_name<T>());
    }
    const std::byte* at = data;
    for (std::size_t i = 0; i < std::min(count, most); ++i) {
      if constexpr (std::same_as<T, std::string_view>) {
        const std::string_view text = detail::text_at(at);
        visit(text);
        at += 8 + text.size();
      } else {
        visit(detail::visit_number(type, at, [&](auto number) { return as<T>(number); }));
        at += width_of(type);
      }
    }
  }
  /// The first `most` values as T. Throws as for_each does.
  template <class T>
  std::vector<T> values(std::size_t most = SIZE_MAX) const {
    std::vector<T> result;
    if (holds<T>()) result.reserve(std::min(count, most));
    for_each<T>([&](T value) { result.push_back(value); }, most);
    return result;
  }

 private:
  template <class T>
  static constexpr std::string_view expected_name() {
    if constexpr (std::same_as<T, std::string_view>) return "text";
    if constexpr (std::same_as<T, bool>) return "bool";
    return std::floating_point<T> ? "a floating-point number" : "an integer";
  }
  template <class T, class Number>
  T as(Number number) const {
    if constexpr (std::same_as<T, Number>) {
      return number;
    } else if constexpr (std::integral<T> && std::integral<Number> && !std::same_as<T, bool> &&
                         !std::same_as<Number, bool>) {
      if (!std::in_range<T>(number)) {
        throw_file_error(quote(key), ": ", number, " is out of range");
      }
      return static_cast<T>(number);
    } else {
      return static_cast<T>(number);
    }
  }
};

namespace detail {

/// Reads the fields of a file in order and never past its end: a field that does not fit is a
/// FileError with the file's name and the byte.
class ByteReader {
 public:
  ByteReader(std::span<const std::byte> bytes, std::string_view name)
      : bytes_(bytes), name_(name) {}

  template <class... Parts>
  [[noreturn]] void fail(const Parts&... parts) const {
    throw_file_error(name_, ": byte ", at_, ": ", parts...);
  }
  std::size_t at() const { return at_; }
  std::size_t left() const { return bytes_.size() - at_; }
  const std::byte* here() const { return bytes_.data() + at_; }

  /// A little-endian number; `what` names it in the error.
  template <class T>
  T number(std::string_view what) {
    T value{};
    std::memcpy(&value, take(sizeof(T), what).data(), sizeof(T));
    return value;
  }
  /// A 64-bit length and that many bytes.
  std::string_view text(std::string_view what) {
    const auto length = number<std::uint64_t>(what);
    if (length > left()) fail(what, " of ", length, " bytes, the file has ", left(), " more");
    const auto bytes = take(static_cast<std::size_t>(length), what);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
  /// A count of items of at least `least` bytes each, checked against the rest of the file.
  std::size_t count(std::size_t least, std::string_view what) {
    const auto value = number<std::uint64_t>(what);
    if (value > left() / least) fail(what, " is ", value, ", the file has ", left(), " more bytes");
    return static_cast<std::size_t>(value);
  }
  std::span<const std::byte> take(std::size_t size, std::string_view what) {
    if (size > left()) fail("the file ends inside ", what);
    const auto taken = bytes_.subspan(at_, size);
    at_ += size;
    return taken;
  }

 private:
  std::span<const std::byte> bytes_;
  std::string_view name_;
  std::size_t at_ = 0;
};

}  // namespace detail

/// One tensor of a GGUF file.
struct GgufTensor {
  std::string_view name;
  const GgufType* type = nullptr;
  std::size_t rank = 0;
  std::array<Index, 4> extents{};  // row-major: the file's order reversed
  std::size_t begin = 0, end = 0;  // bytes of the file

  std::span<const Index> shape() const { return {extents.data(), rank}; }
  /// The number of weights. If one extent is 0, the others may have any size.
  Index size() const {
    Index product = std::count(shape().begin(), shape().end(), 0) > 0 ? 0 : 1;
    for (const Index extent : shape()) product *= extent;
    return product;
  }
  std::string_view type_name() const { return type->name; }
  template <class T>
  bool is_readable_as() const {
    return std::floating_point<T> && is_dequantizable(*type);
  }
};

namespace detail {

/// Reads and checks everything in a GGUF file (versions 2 and 3, little-endian) but the weights.
/// Names and values stay where they are in `bytes`, which must outlive the result.
class GgufHeader {
 public:
  std::uint32_t version = 0;
  std::vector<GgufField> fields;    // in the file's order
  std::vector<GgufTensor> entries;  // in the file's order

  GgufHeader(std::span<const std::byte> bytes, std::string_view name)
      : reader_(bytes, name), name_(name), begin_(bytes.data()), size_(bytes.size()) {
    read_version();
    const std::size_t tensor_count = reader_.count(least_tensor, "the number of tensors");
    const std::size_t field_count = reader_.count(least_field, "the number of metadata fields");
    fields.reserve(field_count);
    for (std::size_t i = 0; i < field_count; ++i) read_field();
    if (tensor_count > reader_.left() / least_tensor) {
      reader_.fail(tensor_count, " tensors, the file has ", reader_.left(), " more bytes");
    }
    entries.reserve(tensor_count);
    for (std::size_t i = 0; i < tensor_count; ++i) read_tensor();
    place_tensors();
  }

 private:
  static constexpr std::size_t least_field = 8 + 1 + 4 + 1, least_tensor = 8 + 1 + 4 + 4 + 8;
  static constexpr int deepest = 4;

  void read_version() {
    const auto magic = reader_.take(4, "the magic");
    if (std::memcmp(magic.data(), "GGUF", 4) != 0) {
      throw_file_error(name_, ": byte 0: not a GGUF file");
    }
    version = reader_.number<std::uint32_t>("the version");
    if (version == 0x02000000 || version == 0x03000000) {
      throw_file_error(name_, ": byte 4: a big-endian file");
    }
    if (version != 2 && version != 3) {
      throw_file_error(name_, ": byte 4: version ", version, ", expected 2 or 3");
    }
  }

  GgufValueType value_type() {
    const auto type = reader_.number<std::uint32_t>("a type of metadata");
    if (type > static_cast<std::uint32_t>(GgufValueType::f64)) {
      reader_.fail("unknown type of metadata ", type);
    }
    return static_cast<GgufValueType>(type);
  }

  void read_field() {
    GgufField& field = fields.emplace_back();
    field.key = reader_.text("a metadata key");
    if (field.key.empty() || !is_utf8(field.key))
      reader_.fail("a metadata key is empty or not UTF-8");
    field.type = value_type();
    field.is_array = field.type == GgufValueType::array;
    if (field.is_array) {
      std::tie(field.type, field.count) = array_start();
    }
    field.data = reader_.here();
    skip_values(field.type, field.count, field.key, field.is_array ? 1 : 0);
  }

  /// Type and number of an array's elements.
  std::pair<GgufValueType, std::size_t> array_start() {
    const GgufValueType type = value_type();
    const std::size_t least = type == GgufValueType::text    ? 8
                              : type == GgufValueType::array ? 12
                                                             : width_of(type);
    return {type, reader_.count(least, "the length of an array")};
  }

  /// Checks values and skips them.
  void skip_values(GgufValueType type, std::size_t count, std::string_view key, int depth) {
    if (depth > deepest) reader_.fail(quote(key), ": arrays more than ", deepest, " deep");
    if (type == GgufValueType::text) {
      for (std::size_t i = 0; i < count; ++i) reader_.text("text");
    } else if (type == GgufValueType::array) {
      for (std::size_t i = 0; i < count; ++i) {
        const auto [inner, inner_count] = array_start();
        skip_values(inner, inner_count, key, depth + 1);
      }
    } else {
      const auto bytes = reader_.take(count * width_of(type), "metadata");
      const bool two_valued =
          type != GgufValueType::boolean ||
          std::all_of(bytes.begin(), bytes.end(), [](std::byte b) { return b <= std::byte{1}; });
      if (!two_valued) reader_.fail(quote(key), ": a bool that is neither 0 nor 1");
    }
  }

  template <class... Parts>
  [[noreturn]] void fail(const GgufTensor& tensor, const Parts&... parts) const {
    reader_.fail("tensor ", quote(tensor.name), ": ", parts...);
  }

  void read_tensor() {
    GgufTensor& tensor = entries.emplace_back();
    tensor.name = reader_.text("a tensor's name");
    if (tensor.name.empty() || !is_utf8(tensor.name)) {
      reader_.fail("a tensor's name is empty or not UTF-8");
    }
    const auto rank = reader_.number<std::uint32_t>("a tensor's rank");
    if (rank > tensor.extents.size()) fail(tensor, "rank ", rank, ", at most 4 is known");
    tensor.rank = rank;
    for (std::size_t axis = rank; axis-- > 0;) {
      const auto extent = reader_.number<std::uint64_t>("a tensor's shape");
      if (!std::in_range<Index>(extent)) fail(tensor, "an extent of ", extent);
      tensor.extents[axis] = static_cast<Index>(extent);
    }
    const auto type = reader_.number<std::uint32_t>("a tensor's type");
    tensor.type = gguf_type(type);
    if (tensor.type == nullptr) fail(tensor, "unknown type ", type);
    const auto offset = reader_.number<std::uint64_t>("a tensor's offset");
    const std::size_t bytes = size_of(tensor);
    if (offset > size_ || bytes > size_ - offset) {
      fail_place(tensor, bytes, " bytes at offset ", offset, " in a file of ", size_);
    }
    tensor.begin = static_cast<std::size_t>(offset);
    tensor.end = tensor.begin + bytes;
  }

  std::size_t size_of(const GgufTensor& tensor) const {
    const auto shape = tensor.shape();
    const Index row = shape.empty() ? 1 : shape.back();
    if (row % tensor.type->block_length != 0) {
      fail(tensor, "rows of ", row, " are not blocks of ", tensor.type->block_length, " (",
           tensor.type->name, ")");
    }
    if (std::find(shape.begin(), shape.end(), 0) != shape.end()) return 0;
    Index bytes = tensor.type->block_bytes, elements = 1;
    bool fits = !__builtin_mul_overflow(bytes, row / tensor.type->block_length, &bytes);
    for (std::size_t axis = 0; axis + 1 < shape.size(); ++axis) {
      fits = fits && !__builtin_mul_overflow(bytes, shape[axis], &bytes);
    }
    for (const Index extent : shape) {
      fits = fits && !__builtin_mul_overflow(elements, extent, &elements);
    }
    if (!fits) fail(tensor, "shape ", shape, " is too large");
    return static_cast<std::size_t>(bytes);
  }

  std::size_t alignment() const {
    for (const GgufField& field : fields) {
      if (field.key != "general.alignment") continue;
      const bool number = !field.is_array && field.type == GgufValueType::u32;
      const auto value = number ? unaligned<std::uint32_t>(field.data) : 0;
      if (value < 8 || (value & (value - 1)) != 0) {
        throw_file_error(name_, ": byte ", field.data - begin_,
                         ": 'general.alignment' must be a u32, a power of two, at least 8");
      }
      return value;
    }
    return 32;
  }

  /// Throws FileError about a tensor's place, with the byte of its offset in the header: the last 8
  /// bytes of its entry.
  template <class... Parts>
  [[noreturn]] void fail_place(const GgufTensor& tensor, const Parts&... parts) const {
    const char* name_end = tensor.name.data() + tensor.name.size();
    const auto* offset = reinterpret_cast<const std::byte*>(name_end) + 4 + 8 * tensor.rank + 4;
    throw_file_error(name_, ": byte ", offset - begin_, ": tensor ", quote(tensor.name), ": ",
                     parts...);
  }

  /// Turns offsets from the end of the header into offsets in the file, and checks that all tensors
  /// lie inside the file without overlap.
  void place_tensors() {
    const std::size_t step = alignment();
    const std::size_t data = (reader_.at() + step - 1) / step * step;
    for (GgufTensor& tensor : entries) {
      if (tensor.begin % step != 0)
        fail_place(tensor, "offset ", tensor.begin, " is not aligned to ", step);
      if (data > size_ || tensor.end > size_ - data) {
        fail_place(tensor, "ends at byte ", data + tensor.end, " of a file of ", size_);
      }
      tensor.begin += data;
      tensor.end += data;
    }
    const auto order = sorted_order(entries.size(), [&](std::size_t a, std::size_t b) {
      return std::pair(entries[a].begin, entries[a].end) <
             std::pair(entries[b].begin, entries[b].end);
    });
    for (std::size_t i = 1; i < order.size(); ++i) {
      const GgufTensor &before = entries[order[i - 1]], &after = entries[order[i]];
      if (after.begin < before.end) fail_place(after, "overlaps ", quote(before.name));
    }
  }

  ByteReader reader_;
  std::string_view name_;
  const std::byte* begin_;
  std::size_t size_;
};

}  // namespace detail
}  // namespace heed
