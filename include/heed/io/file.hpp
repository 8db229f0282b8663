// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <initializer_list>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <heed/core/config.hpp>
#include <heed/core/detail/exceptions.hpp>
#include <heed/core/detail/shared.hpp>
#include <heed/core/error.hpp>

namespace heed {

/// A file that cannot be read or written, or has invalid contents. The message names the fault, and
/// the file and the byte offset where they are known.
class FileError : public detail::ErrorAs<std::runtime_error> {
 public:
  using ErrorAs::ErrorAs;
};

namespace detail {

[[noreturn]] void throw_file(std::initializer_list<MessagePart> parts);

/// What names a file: a string, a view of one, a std::filesystem::path.
template <class X>
concept PathLike = std::is_constructible_v<std::string, const X&>;
/// What stands where a path belongs.
template <class X>
concept NoPath = !PathLike<X>;
template <class X>
constexpr void expect_path_first() {
  static_assert(!NoPath<X>, "the path goes first, and then what is written or read");
}

/// make(), whose InvalidArgument is the fault of the file with that name.
template <class Make>
auto made_of_file(const std::string& name, const Make& make) {
  return handled<InvalidArgument>(make, [&](const InvalidArgument& error) -> decltype(make()) {
    throw_file({name, ": ", error.what()});
  });
}

/// The folder of a file: "." for a name without slashes.
std::string folder_of(const std::string& path);
/// read_file, for a file of at most `most` bytes; a larger one is a FileError.
std::vector<std::byte> read_at_most(const std::string& path, std::size_t most);

/// Consecutive parts of a file.
using FileParts = std::span<const std::span<const std::byte>>;

}  // namespace detail

/// The name of a file or folder, as functions take it: a string, a view of one, or a
/// std::filesystem::path.
struct FilePath : std::string {
  template <detail::PathLike Path>
  FilePath(const Path& path) : std::string(path) {}  // NOLINT: all of them are paths
};

/// Throws FileError with a message made of the parts.
template <class... Parts>
[[noreturn]] __attribute__((cold)) void throw_file_error(const Parts&... parts) {
  detail::throw_file({detail::MessagePart(parts)...});
}

/// The contents of a regular file; a pipe or a device is refused, without waiting on it. Throws
/// FileError.
std::vector<std::byte> read_file(const FilePath& path);

/// Writes a file completely or not at all: the new file is written beside the old one, flushed to
/// the disk, then renamed over it, so that a crash at any moment leaves either the old file or the
/// new one. A replaced file passes on its permissions, and the new one has no others while it is
/// written. A symbolic link to it stays, also one to a file that is yet to be created. A device or
/// a pipe is written to as it is, and so is an open file that /dev/stdout or /dev/fd/N names.
/// Throws FileError.
void write_file_parts(const FilePath& path, detail::FileParts parts);
/// The same for one contiguous part.
void write_file(const FilePath& path, std::span<const std::byte> bytes);

/// A regular file mapped into memory, read-only, for the lifetime of this object: pages are read
/// from the disk on first access and shared with other processes that map the file. Replacing the
/// file (as `write_file` does) leaves the mapping intact. If another process truncates the file in
/// place, reading the lost part ends the program with SIGBUS; where that can happen, use
/// `read_file`. Throws FileError.
class MappedFile {
 public:
  /// Maps nothing.
  MappedFile() = default;
  explicit MappedFile(const FilePath& path);
  MappedFile(MappedFile&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  MappedFile& operator=(MappedFile&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~MappedFile();

  std::span<const std::byte> bytes() const { return {data_, size_}; }

 private:
  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

/// The bytes of a file, mapped or in memory, shared by all copies of this object and freed with the
/// last one.
class SharedBytes {
 public:
  SharedBytes();
  explicit SharedBytes(MappedFile file);
  explicit SharedBytes(std::vector<std::byte> bytes);

  std::span<const std::byte> get() const {
    const auto mapped = owner_->file.bytes();
    return mapped.empty() ? std::span<const std::byte>(owner_->bytes) : mapped;
  }

 private:
  struct Owner {
    MappedFile file;
    std::vector<std::byte> bytes;
  };
  detail::Shared<Owner> owner_;
};

}  // namespace heed

#if HEED_DEFINITIONS
#include <heed/io/detail/file.inl>
#endif
