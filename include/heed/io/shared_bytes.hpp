// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include <heed/core/detail/shared.hpp>
#include <heed/io/mapped_file.hpp>

namespace heed {

/// The bytes of a file, mapped or in memory, which live until the last copy of this goes.
class SharedBytes {
 public:
  SharedBytes() : SharedBytes(std::vector<std::byte>()) {}
  explicit SharedBytes(MappedFile file) : owner_(new Owner{std::move(file), {}}) {}
  explicit SharedBytes(std::vector<std::byte> bytes)
      : owner_(new Owner{MappedFile(), std::move(bytes)}) {}

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
