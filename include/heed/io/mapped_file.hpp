// SPDX-License-Identifier: MIT
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <span>
#include <string>
#include <utility>

#include <heed/io/file.hpp>

namespace heed {

/// A regular file seen as memory, read-only, for as long as this object lives: pages come from the
/// disk when they are first touched and are shared with every other process that maps the file.
/// Replacing the file (as `write_file` does) leaves what is mapped alone. If another process cuts
/// the file short in place, touching what is gone ends the program with SIGBUS; where that can
/// happen, use `read_file`. Throws FileError.
class MappedFile {
 public:
  /// Of nothing.
  MappedFile() = default;
  explicit MappedFile(const std::string& path) {
    const detail::OpenFile file = detail::open_regular(path);
    size_ = detail::size_of(file, path);
    if (size_ == 0) return;
    void* address = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, file.get(), 0);
    if (address == MAP_FAILED) throw_file_error(path, ": ", std::strerror(errno));
    data_ = static_cast<const std::byte*>(address);
  }
  MappedFile(MappedFile&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  MappedFile& operator=(MappedFile&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~MappedFile() {
    if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), size_);
  }

  std::span<const std::byte> bytes() const { return {data_, size_}; }

 private:
  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace heed
