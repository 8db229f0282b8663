// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include <heed/io/file.hpp>

namespace heed::test {

/// Text as the bytes of a file.
inline std::vector<std::byte> bytes_of(std::string_view text) {
  std::vector<std::byte> bytes(text.size());
  if (!text.empty()) std::memcpy(bytes.data(), text.data(), text.size());
  return bytes;
}

/// A number as it stands in a file.
template <class T>
std::string raw(T value) {
  std::string text(sizeof(T), '\0');
  std::memcpy(text.data(), &value, sizeof(T));
  return text;
}

/// What the FileError says that `call` throws, or "accepted".
template <class Call>
std::string error_of(const Call& call) {
  try {
    call();
  } catch (const FileError& error) {
    return error.what();
  }
  return "accepted";
}

}  // namespace heed::test
