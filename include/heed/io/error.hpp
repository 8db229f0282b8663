// SPDX-License-Identifier: MIT
#pragma once

#include <stdexcept>
#include <string>

#include <heed/core/error.hpp>

namespace heed {

/// A file that cannot be read or written, or is not what it should be. The message names the file,
/// the byte offset where known, and what was found.
class FileError : public detail::ErrorAs<std::runtime_error> {
 public:
  using ErrorAs::ErrorAs;
};

/// Throws FileError with the parts put together as its message.
template <class... Parts>
[[noreturn]] void throw_file_error(const Parts&... parts) {
  throw FileError(detail::message(parts...));
}

}  // namespace heed
