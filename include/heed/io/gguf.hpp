// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <heed/core/config.hpp>
#include <heed/core/detail/shared.hpp>
#include <heed/core/index.hpp>
#include <heed/core/text.hpp>
#include <heed/io/detail/tensor_file.hpp>
#include <heed/io/element_type.hpp>
#include <heed/io/file.hpp>
#include <heed/tensor/tensor.hpp>

namespace heed {

/// The storage format of a tensor's weights in a GGUF file: blocks of block_length weights, each of
/// block_bytes bytes.
struct GgufType {
  std::uint32_t id = 0;
  std::string_view name;
  Index block_length = 1, block_bytes = 1;
};

/// The type with that number, or null.
const GgufType* gguf_type(std::uint32_t id);

/// Whether `dequantize` reads that type.
bool is_dequantizable(const GgufType& type);

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
std::string_view name_of(GgufValueType type);

/// Bytes of one value; 0 for text and arrays, which store their own size.
std::size_t width_of(GgufValueType type);

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

/// Calls visit with the number of that type at `bytes`; not for text or arrays.
template <class Visit>
decltype(auto) visit_number(GgufValueType type, const std::byte* bytes, const Visit& visit) {
  using Type = GgufValueType;
  if (type == Type::u8) return visit(unaligned<std::uint8_t>(bytes));
  if (type == Type::i8) return visit(unaligned<std::int8_t>(bytes));
  if (type == Type::u16) return visit(unaligned<std::uint16_t>(bytes));
  if (type == Type::i16) return visit(unaligned<std::int16_t>(bytes));
  if (type == Type::u32) return visit(unaligned<std::uint32_t>(bytes));
  if (type == Type::i32) return visit(unaligned<std::int32_t>(bytes));
  if (type == Type::f32) return visit(unaligned<float>(bytes));
  if (type == Type::u64) return visit(unaligned<std::uint64_t>(bytes));
  if (type == Type::i64) return visit(unaligned<std::int64_t>(bytes));
  if (type == Type::f64) return visit(unaligned<double>(bytes));
  return visit(*bytes != std::byte{0});
}

/// The text at `bytes`: a 64-bit length and that many bytes, checked when the file was opened.
inline std::string_view text_at(const std::byte* bytes) {
  return {reinterpret_cast<const char*>(bytes) + 8,
          static_cast<std::size_t>(unaligned<std::uint64_t>(bytes))};
}

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
    return unaligned<T>(take(sizeof(T), what).data());
  }
  /// A 64-bit length and that many bytes.
  std::string_view text(std::string_view what);
  /// A count of items of at least `least` bytes each, checked against the rest of the file.
  std::size_t count(std::size_t least, std::string_view what);
  std::span<const std::byte> take(std::size_t size, std::string_view what);

 private:
  std::span<const std::byte> bytes_;
  std::string_view name_;
  std::size_t at_ = 0;
};

}  // namespace detail

/// A metadata field of a GGUF file. It was checked when the file was opened; its values stay in the
/// file until they are asked for. It refers to the file, and is valid as long as a copy of the
/// Gguf.
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

/// One tensor of a GGUF file.
struct GgufTensor {
  std::string_view name;
  const GgufType* type = nullptr;
  std::size_t rank = 0;
  std::array<Index, 4> extents{};  // row-major: the file's order reversed
  std::size_t begin = 0, end = 0;  // bytes of the file

  std::span<const Index> shape() const { return {extents.data(), rank}; }
  /// The number of weights. If one extent is 0, the others may have any size.
  Index size() const;
  std::string_view type_name() const { return type->name; }
  template <class T>
  bool is_readable_as() const {
    return detail::is_floating_element<T> && is_dequantizable(*type);
  }
};

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
  template <detail::PathLike Path>
  explicit Gguf(const Path&) : Gguf(SharedBytes(), std::string()) {
    static_assert(sizeof(Path) == 0,
                  "heed::Gguf::open(path) reads a file; Gguf(bytes, name) takes the bytes of one");
  }
  /// A memory-mapped file: the disk is read only where data is asked for.
  static Gguf open(const FilePath& path);

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

  /// The tensor's weights, dequantized to float; F64 to double itself, BF16 and F16 to bfloat16 and
  /// float16 themselves, to which other types are rounded. The shape is row-major: the file's order
  /// reversed. Throws FileError for an unknown name, another rank and types that heed does not
  /// read.
  template <class T, std::size_t Rank = detail::rank_not_given<T>()>
  Tensor<T, Rank> tensor(std::string_view name) const {
    static_assert(detail::is_floating_element<T>,
                  "weights are read as float, double, bfloat16 or float16");
    auto result = Tensor<T, Rank>::uninitialized(extents_of<Rank>(entry(name)));
    if constexpr (std::is_same_v<T, float>) {
      read(name, 0, {result.data(), static_cast<std::size_t>(result.size())});
      return result;
    }
    if (entry(name).type->name == name_of(element_type_of<T>())) {
      const auto stored = bytes(name);
      if (!stored.empty()) std::memcpy(result.data(), stored.data(), stored.size());
      return result;
    }
    float part[1024];
    for (Index first = 0; first < result.size(); first += 1024) {
      const auto count = static_cast<std::size_t>(std::min<Index>(1024, result.size() - first));
      read(name, first, std::span(part, count));
      T* to = result.data() + first;
      std::transform(part, part + count, to, [](float value) { return static_cast<T>(value); });
    }
    if (result.empty()) read(name, 0, {});  // refuses types that are not read
    return result;
  }
  template <detail::PathLike Name>
  Tensor<float, 1> tensor(const Name&) const {
    return detail::expect_type_of_tensor<Name>(), Tensor<float, 1>();
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
