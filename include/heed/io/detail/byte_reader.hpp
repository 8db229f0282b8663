// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

#include <heed/io/error.hpp>

namespace heed::detail {

/// Reads the bytes of a file one field after another and never past their end: what does not fit
/// is a FileError that names the file and the byte.
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

  /// A little-endian number; `what` it is stands in the error.
  template <class T>
  T number(std::string_view what) {
    T value{};
    std::memcpy(&value, take(sizeof(T), what).data(), sizeof(T));
    return value;
  }
  /// A 64-bit length and as many bytes.
  std::string_view text(std::string_view what) {
    const auto length = number<std::uint64_t>(what);
    if (length > left()) fail(what, " of ", length, " bytes, the file has ", left(), " more");
    const auto bytes = take(static_cast<std::size_t>(length), what);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
  /// A count of things that take at least `least` bytes each, as many as the file can hold.
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

}  // namespace heed::detail
