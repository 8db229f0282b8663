// SPDX-License-Identifier: MIT
#pragma once

// Definitions of <heed/io/npy.hpp>, which includes this file.

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace heed {

namespace detail {

/// Parser of an .npy header, versions 1.0 to 3.0: a Python dictionary literal with exactly the keys
/// descr, fortran_order and shape. Every byte is checked before it is used. Format:
/// numpy.lib.format, NEP 1.
class NpyHeaderParser {
 public:
  NpyHeaderParser(std::span<const std::byte> bytes, std::string_view name)
      : bytes_(bytes), name_(name) {}

  NpyHeader parse() {
    const std::size_t begin = header_begin();
    at_ = begin;
    NpyHeader header;
    header.data_offset = end_;
    expect('{');
    unsigned seen = 0;
    while (!accept('}')) {
      if (seen != 0) {
        expect(',');
        if (accept('}')) break;
      }
      seen |= entry(header, seen);
    }
    if (seen != 7) fail("descr, fortran_order and shape must all be given");
    skip_space();
    if (at_ != end_) fail("something follows the dictionary");
    return header;
  }

 private:
  static constexpr std::size_t longest_header = 64 * 1024;
  static constexpr std::size_t highest_rank = 32;

  template <class... Parts>
  [[noreturn]] void fail(const Parts&... parts) const {
    throw_file_error(name_, ": byte ", at_, ": ", parts...);
  }

  std::size_t byte(std::size_t at) const { return static_cast<std::size_t>(bytes_[at]); }

  /// Checks magic, version and length; returns the beginning of the dictionary and sets its end.
  std::size_t header_begin() {
    constexpr std::string_view magic = "\x93NUMPY";
    if (bytes_.size() < 10 || std::memcmp(bytes_.data(), magic.data(), magic.size()) != 0) {
      fail("not an .npy file");
    }
    const std::size_t major = byte(6);
    if (major < 1 || major > 3 || byte(7) != 0) {
      at_ = 6;
      fail("version ", major, ".", byte(7), "; expected 1.0, 2.0 or 3.0");
    }
    const std::size_t begin = major == 1 ? 10 : 12;
    at_ = 8;
    if (bytes_.size() < begin) fail("file ends inside the header length");
    std::size_t length = byte(8) | byte(9) << 8;
    if (major > 1) length |= byte(10) << 16 | byte(11) << 24;
    const std::size_t most = std::min(longest_header, bytes_.size() - begin);
    if (length > most) {
      fail("header of ", length, " bytes in a file of ", bytes_.size(), ", expected at most ",
           most);
    }
    end_ = begin + length;
    return begin;
  }

  /// Reads one `'key': value`; returns the key's bit.
  unsigned entry(NpyHeader& header, unsigned seen) {
    const std::string key = quoted();
    expect(':');
    const unsigned bit = key == "descr" ? 1 : key == "fortran_order" ? 2 : key == "shape" ? 4 : 0;
    if (bit == 0) fail("unknown key '", key, "'");
    if ((seen & bit) != 0) fail("key '", key, "' twice");
    skip_space();
    if (bit == 1) header.descr_offset = at_;
    if (bit == 4) header.shape_offset = at_;
    if (bit == 1) header.descr = quoted();
    if (bit == 2) header.fortran_order = boolean();
    if (bit == 4) header.shape = tuple();
    return bit;
  }

  void skip_space() {
    while (at_ < end_ && (peek() == ' ' || peek() == '\n' || peek() == '\t')) ++at_;
  }
  char peek() const { return at_ < end_ ? static_cast<char>(bytes_[at_]) : '\0'; }
  bool accept(char wanted) {
    skip_space();
    if (at_ >= end_ || peek() != wanted) return false;
    ++at_;
    return true;
  }
  void expect(char wanted) {
    if (!accept(wanted)) fail("expected '", wanted, "'");
  }

  std::string quoted() {
    skip_space();
    const char quote = peek();
    if (quote != '\'' && quote != '"') fail("expected a quoted word");
    ++at_;
    std::string word;
    while (at_ < end_ && peek() != quote) {
      const char letter = peek();
      if (letter < ' ' || letter > '~' || letter == '\\' || word.size() >= 80) {
        fail("expected a short plain word");
      }
      word += letter;
      ++at_;
    }
    expect(quote);
    return word;
  }

  bool boolean() {
    skip_space();
    for (const bool value : {true, false}) {
      const std::string_view word = value ? "True" : "False";
      if (end_ - at_ < word.size() ||
          std::memcmp(bytes_.data() + at_, word.data(), word.size()) != 0) {
        continue;
      }
      at_ += word.size();
      return value;
    }
    fail("expected True or False");
  }

  std::vector<Index> tuple() {
    expect('(');
    std::vector<Index> extents;
    if (accept(')')) return extents;
    do {
      if (extents.size() == highest_rank) fail("more than ", highest_rank, " axes");
      extents.push_back(integer());
      if (extents.size() > 1 && accept(')')) break;  // Python takes (3) for a number, not a tuple
      expect(',');
    } while (!accept(')'));
    return extents;
  }
  Index integer() {
    skip_space();
    Index value = 0;
    const std::size_t begin = at_;
    for (; at_ < end_ && peek() >= '0' && peek() <= '9'; ++at_) {
      if (__builtin_mul_overflow(value, Index{10}, &value) ||
          __builtin_add_overflow(value, Index{peek() - '0'}, &value)) {
        fail("an extent is too large");
      }
    }
    if (at_ == begin) fail("expected a number");
    if (at_ > begin + 1 && bytes_[begin] == std::byte{'0'}) fail("an extent begins with 0");
    if (peek() == 'L') ++at_;  // as Python 2 wrote its long integers
    return value;
  }

  std::span<const std::byte> bytes_;
  std::string_view name_;
  std::size_t at_ = 0;
  std::size_t end_ = 0;
};

HEED_INLINE void write_npy(const std::string& path, std::string_view descr,
                           std::span<const Index> extents, std::span<const std::byte> elements) {
  std::string text = "{'descr': '" + std::string(descr) + "', 'fortran_order': False, 'shape': (";
  for (const Index extent : extents) text += std::to_string(extent) + ", ";
  if (extents.size() > 1) text.resize(text.size() - 2);
  text += "), }";
  text.resize((10 + text.size() + 1 + 63) / 64 * 64 - 10 - 1, ' ');  // data begins at 64 · n
  text += '\n';
  std::string start = "\x93NUMPY";
  start += '\1';
  start += '\0';
  start += static_cast<char>(text.size() & 255);
  start += static_cast<char>(text.size() >> 8);
  start += text;
  const std::span<const std::byte> parts[] = {std::as_bytes(std::span(start)), elements};
  write_file_parts(path, parts);
}

}  // namespace detail

HEED_INLINE NpyHeader parse_npy_header(std::span<const std::byte> bytes, std::string_view name) {
  return detail::NpyHeaderParser(bytes, name).parse();
}

HEED_INLINE std::size_t npy_element_size(std::string_view descr) {
  constexpr std::string_view orders = "<>|=", kinds = "biufcmMSVU";
  if (!descr.empty() && orders.find(descr[0]) != std::string_view::npos) descr.remove_prefix(1);
  if (descr.empty() || kinds.find(descr[0]) == std::string_view::npos) return 0;
  const bool date = descr[0] == 'm' || descr[0] == 'M';
  std::uint32_t count = 0;
  const char* end = descr.data() + descr.size();
  const auto [stop, error] = std::from_chars(descr.data() + 1, end, count);
  if (error != std::errc() || (stop != end && !(date && *stop == '['))) return 0;
  return descr[0] == 'U' ? std::size_t{4} * count : count;
}

HEED_INLINE void check_npy_size(const NpyHeader& header, std::size_t file_size,
                                std::string_view name) {
  const std::size_t width = npy_element_size(header.descr);
  if (width == 0) {
    throw_file_error(name, ": byte ", header.descr_offset, ": elements are '", header.descr,
                     "', of no known size");
  }
  const auto& shape = header.shape;
  const auto bytes = detail::bytes_of(width, shape);
  if (!bytes) {
    throw_file_error(name, ": byte ", header.shape_offset, ": shape ", shape, " is too large");
  }
  const std::size_t have = file_size - header.data_offset;
  if (*bytes != have) {
    throw_file_error(name, ": byte ", header.data_offset, ": shape ", shape, " of ", header.descr,
                     " needs ", *bytes, " bytes of data, the file has ", have);
  }
}

}  // namespace heed
