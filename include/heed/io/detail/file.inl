// SPDX-License-Identifier: MIT
#pragma once

// Definitions of <heed/io/file.hpp>, which includes this file.

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <new>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>
#include <climits>

namespace heed {

namespace detail {

[[noreturn]] __attribute__((cold)) HEED_INLINE void throw_file(
    std::initializer_list<MessagePart> parts) {
  raise(FileError(joined(parts)));
}

/// Closes a file descriptor at the end of a scope.
class OpenFile {
 public:
  explicit OpenFile(int descriptor) : descriptor_(descriptor) {}
  OpenFile(OpenFile&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  OpenFile& operator=(OpenFile&&) = delete;
  ~OpenFile() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  int get() const { return descriptor_; }
  bool valid() const { return descriptor_ >= 0; }

 private:
  int descriptor_;
};

HEED_INLINE std::string folder_of(const std::string& path) {
  const auto slash = path.rfind('/');
  return slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
}

/// The begin of names for temporary files beside `path`: its own, or where that is long the first
/// whole letters of it, which leave room for an ending.
inline std::string temporary_stem(const std::string& path) {
  std::size_t end = path.rfind('/') + 1 + 100;
  if (end >= path.size()) return path;
  while ((path[end] & 0xC0) == 0x80) --end;
  return path.substr(0, end);
}

/// Creates a new file in the folder of `path`, with these permissions as far as the umask lets
/// them; its name goes to `name`. Returns a descriptor, or a negative number with errno set.
inline int create_beside(const std::string& path, mode_t permissions, std::string& name) {
  const std::string stem = temporary_stem(path);
  for (int attempt = 0; attempt < 1000; ++attempt) {
    name = stem + "." + std::to_string(::getpid()) + "-" + std::to_string(attempt) + ".tmp";
    const int file = ::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, permissions);
    if (file >= 0 || errno != EEXIST) return file;
  }
  return -1;
}

/// Writes the parts in order and flushes them to the disk; devices and pipes have nothing to flush.
/// Returns the reason for a failure, otherwise an empty string.
inline std::string write_and_sync(int descriptor, FileParts parts) {
  for (std::span<const std::byte> bytes : parts) {
    while (!bytes.empty()) {
      const ssize_t written = ::write(descriptor, bytes.data(), bytes.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) return std::strerror(errno);
      bytes = bytes.subspan(static_cast<std::size_t>(written));
    }
  }
  const bool flushed = ::fsync(descriptor) == 0 || errno == EINVAL || errno == EROFS;
  return flushed ? std::string() : std::strerror(errno);
}

/// Refuses a path that the system would read up to its first NUL.
inline void check_path(const std::string& path) {
  if (path.find('\0') != path.npos) throw_file_error("a path with a NUL: ", path);
}

/// The number of the program's own descriptor that a path names; -1 for other paths.
inline int descriptor_of(const std::string& path) {
  for (const std::string_view folder : {"/proc/self/fd/", "/dev/fd/"}) {
    if (!path.starts_with(folder)) continue;
    int number = -1;
    const char* end = path.data() + path.size();
    const auto [stop, failure] = std::from_chars(path.data() + folder.size(), end, number);
    return failure == std::errc() && stop == end ? number : -1;
  }
  return -1;
}

/// The path of the file that a symbolic link names, so that the link stays, even where that file is
/// yet to be created; else the path itself. /dev/stdout leads to a descriptor.
inline std::string followed(std::string path) {
  char target[PATH_MAX];
  for (int links = 0; links < 40; ++links) {  // as many as Linux follows
    const ssize_t length = ::readlink(path.c_str(), target, sizeof(target));
    if (length < 0 || descriptor_of(path) >= 0) return path;
    const std::string next(target, static_cast<std::size_t>(length));
    path = next.starts_with('/') ? next : folder_of(path).append("/").append(next);
  }
  throw_file_error(path, ": ", std::strerror(ELOOP));
}

/// Writes into an open file, which is no regular one, or one that the program has open: to replace
/// that would lose what it writes before and after.
inline void write_into(const std::string& path, const OpenFile& file, FileParts parts) {
  const std::string failure =
      file.valid() ? write_and_sync(file.get(), parts) : std::string(std::strerror(errno));
  if (!failure.empty()) throw_file_error(path, ": ", failure);
}

/// Writes the parts to a new file, which then takes the place of `path`.
inline void replace_file(const std::string& path, FileParts parts, const mode_t* old_mode) {
  std::string temporary;
  // Whom the old file shuts out does not see the new one either, not even while it is written.
  const mode_t permissions = old_mode != nullptr ? *old_mode & 0777 : 0666;
  const OpenFile file(create_beside(path, permissions, temporary));
  if (!file.valid()) throw_file_error(path, ": ", std::strerror(errno));
  std::string failure = write_and_sync(file.get(), parts);
  // Not before, as writing takes away the bits of setuid and setgid.
  if (failure.empty() && old_mode != nullptr && ::fchmod(file.get(), *old_mode & 07777) != 0) {
    failure = std::strerror(errno);
  }
  if (failure.empty() && std::rename(temporary.c_str(), path.c_str()) != 0) {
    failure = std::strerror(errno);
  }
  if (!failure.empty()) {
    ::unlink(temporary.c_str());
    throw_file_error(path, ": ", failure);
  }
  const OpenFile folder(::open(folder_of(path).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder.valid()) ::fsync(folder.get());
}

/// Opens a regular file for reading; anything else is refused, without waiting on it.
inline OpenFile open_regular(const std::string& path) {
  check_path(path);
  OpenFile file(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  if (!file.valid()) throw_file_error(path, ": ", std::strerror(errno));
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) throw_file_error(path, ": ", std::strerror(errno));
  if (!S_ISREG(status.st_mode)) throw_file_error(path, ": not a regular file");
  return file;
}

inline std::size_t size_of(const OpenFile& file, const std::string& path) {
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) throw_file_error(path, ": ", std::strerror(errno));
  return static_cast<std::size_t>(status.st_size);
}

/// Allocates memory for a file. A file may claim any size at no cost to the disk, hence the
/// FileError.
inline std::vector<std::byte> room_for(std::size_t size, const std::string& path) {
  return handled<std::exception>([&] { return std::vector<std::byte>(size); },
                                 [&](const std::exception&) -> std::vector<std::byte> {
                                   throw_file_error(path, ": no memory for its ", size, " bytes");
                                 });
}

}  // namespace detail

HEED_INLINE std::vector<std::byte> read_file(const FilePath& path) {
  const detail::OpenFile file = detail::open_regular(path);
  std::vector<std::byte> bytes = detail::room_for(detail::size_of(file, path), path);
  std::size_t have = 0;
  while (have < bytes.size()) {
    const ssize_t got = ::read(file.get(), bytes.data() + have, bytes.size() - have);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw_file_error(path, ": ", std::strerror(errno));
    if (got == 0) throw_file_error(path, ": ended at byte ", have, " of ", bytes.size());
    have += static_cast<std::size_t>(got);
  }
  return bytes;
}

namespace detail {

HEED_INLINE std::vector<std::byte> read_at_most(const std::string& path, std::size_t most) {
  const std::size_t size = size_of(open_regular(path), path);
  if (size > most) throw_file_error(path, ": ", size, " bytes, expected at most ", most);
  return read_file(path);
}

}  // namespace detail

HEED_INLINE void write_file_parts(const FilePath& path, detail::FileParts parts) {
  detail::check_path(path);
  const std::string to = detail::followed(path);
  if (const int own = detail::descriptor_of(to); own >= 0) {
    return detail::write_into(path, detail::OpenFile(::fcntl(own, F_DUPFD_CLOEXEC, 0)), parts);
  }
  struct stat old {};
  const bool exists = ::stat(to.c_str(), &old) == 0;
  if (exists && !S_ISREG(old.st_mode)) {
    return detail::write_into(path, detail::OpenFile(::open(to.c_str(), O_WRONLY | O_CLOEXEC)),
                              parts);
  }
  detail::replace_file(to, parts, exists ? &old.st_mode : nullptr);
}

HEED_INLINE void write_file(const FilePath& path, std::span<const std::byte> bytes) {
  write_file_parts(path, detail::FileParts(&bytes, 1));
}

HEED_INLINE MappedFile::MappedFile(const FilePath& path) {
  const detail::OpenFile file = detail::open_regular(path);
  size_ = detail::size_of(file, path);
  if (size_ == 0) return;
  void* address = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, file.get(), 0);
  if (address == MAP_FAILED) throw_file_error(path, ": ", std::strerror(errno));
  data_ = static_cast<const std::byte*>(address);
}

HEED_INLINE MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), size_);
}

HEED_INLINE SharedBytes::SharedBytes() : SharedBytes(std::vector<std::byte>()) {}
HEED_INLINE SharedBytes::SharedBytes(MappedFile file) : owner_(new Owner{std::move(file), {}}) {}
HEED_INLINE SharedBytes::SharedBytes(std::vector<std::byte> bytes)
    : owner_(new Owner{MappedFile(), std::move(bytes)}) {}

}  // namespace heed
