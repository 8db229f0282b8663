// SPDX-License-Identifier: MIT
#pragma once

// Definitions of <heed/io/gguf.hpp>, which includes this file.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <heed/core/bfloat16.hpp>
#include <heed/core/quantized.hpp>
#include <heed/core/text.hpp>
#include <heed/io/element_type.hpp>

namespace heed {

HEED_INLINE const GgufType* gguf_type(std::uint32_t id) {
  for (const GgufType& type : detail::gguf_types) {
    if (type.id == id) return &type;
  }
  return nullptr;
}

HEED_INLINE bool is_dequantizable(const GgufType& type) {
  for (const std::string_view name :
       {"F32", "F16", "BF16", "F64", "Q8_0", "Q4_0", "Q4_1", "Q6_K"}) {
    if (type.name == name) return true;
  }
  return false;
}

HEED_INLINE std::string_view name_of(GgufValueType type) {
  constexpr std::string_view names[] = {"u8",   "i8",   "u16",   "i16", "u32", "i32", "f32",
                                        "bool", "text", "array", "u64", "i64", "f64"};
  return names[static_cast<std::size_t>(type)];
}

HEED_INLINE std::size_t width_of(GgufValueType type) {
  constexpr std::size_t widths[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
  return widths[static_cast<std::size_t>(type)];
}

HEED_INLINE Index GgufTensor::size() const {
  Index product = std::count(shape().begin(), shape().end(), 0) > 0 ? 0 : 1;
  for (const Index extent : shape()) product *= extent;
  return product;
}

namespace detail {

HEED_INLINE std::string_view ByteReader::text(std::string_view what) {
  const auto length = number<std::uint64_t>(what);
  if (length > left()) fail(what, " of ", length, " bytes, the file has ", left(), " more");
  const auto bytes = take(static_cast<std::size_t>(length), what);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

HEED_INLINE std::size_t ByteReader::count(std::size_t least, std::string_view what) {
  const auto value = number<std::uint64_t>(what);
  if (value > left() / least) fail(what, " is ", value, ", the file has ", left(), " more bytes");
  return static_cast<std::size_t>(value);
}

HEED_INLINE std::span<const std::byte> ByteReader::take(std::size_t size, std::string_view what) {
  if (size > left()) fail("the file ends inside ", what);
  const auto taken = bytes_.subspan(at_, size);
  at_ += size;
  return taken;
}

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
    const auto elements = bytes_of(1, shape);
    Index bytes = 0;
    if (!elements || !std::in_range<Index>(*elements) ||
        __builtin_mul_overflow(static_cast<Index>(*elements) / tensor.type->block_length,
                               tensor.type->block_bytes, &bytes)) {
      fail(tensor, "shape ", shape, " is too large");
    }
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

HEED_INLINE GgufContents::GgufContents(std::span<const std::byte> bytes, const std::string& name) {
  GgufHeader header(bytes, name);
  version = header.version;
  fields = std::move(header.fields);
  entries = std::move(header.entries);
  by_key = NameIndex<&GgufField::key>(fields);
}

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

template <class Element>
void widen(const std::byte* from, Index first, std::span<float> out) {
  convert_elements<Element, float>(from + first * Index{sizeof(Element)},
                                   static_cast<Index>(out.size()),
                                   reinterpret_cast<std::byte*>(out.data()));
}

}  // namespace detail

HEED_INLINE void dequantize(const GgufType& type, const std::byte* data, Index first,
                            std::span<float> out) {
  if (type.id == 0) return detail::widen<float>(data, first, out);
  if (type.id == 1) return detail::widen<float16>(data, first, out);
  if (type.id == 2) return detail::dequantize_blocks<Q4_0>(data, first, out);
  if (type.id == 3) return detail::dequantize_blocks<Q4_1>(data, first, out);
  if (type.id == 8) return detail::dequantize_blocks<Q8_0>(data, first, out);
  if (type.id == 14) return detail::dequantize_blocks<Q6_K>(data, first, out);
  if (type.id == 28) return detail::widen<double>(data, first, out);
  detail::widen<bfloat16>(data, first, out);
}

HEED_INLINE Gguf::Gguf(SharedBytes bytes, std::string name)
    : TensorFile(std::move(bytes), std::move(name)) {
  const GgufField* key = header().by_key.twice(header().fields);
  if (key != nullptr) fail_at_text(key->key, quote(key->key), " twice");
  const GgufTensor* tensor = twice();
  if (tensor != nullptr) fail_at_text(tensor->name, "tensor ", quote(tensor->name), " twice");
}

HEED_INLINE Gguf Gguf::open(const FilePath& path) {
  return Gguf(SharedBytes(MappedFile(path)), path);
}

HEED_INLINE const GgufField& Gguf::field(std::string_view key) const {
  const GgufField* found = find_field(key);
  if (found == nullptr) throw_file_error(name(), ": no field ", quote(key));
  return *found;
}

HEED_INLINE void Gguf::read(std::string_view name, Index first, std::span<float> out) const {
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

HEED_INLINE const GgufField* Gguf::find_field(std::string_view key) const {
  return header().by_key.find(header().fields, key);
}

}  // namespace heed
