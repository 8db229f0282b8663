// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <heed/io/mapped_file.hpp>

namespace heed {

/// The bytes of a file, mapped or in memory, which live until the last copy of this goes.
class SharedBytes {
 public:
  SharedBytes() = default;
  explicit SharedBytes(MappedFile file) {
    auto owner = std::make_shared<const MappedFile>(std::move(file));
    bytes_ = owner->bytes();
    owner_ = std::move(owner);
  }
  explicit SharedBytes(std::vector<std::byte> bytes) {
    auto owner = std::make_shared<const std::vector<std::byte>>(std::move(bytes));
    bytes_ = *owner;
    owner_ = std::move(owner);
  }

  std::span<const std::byte> get() const { return bytes_; }

 private:
  std::span<const std::byte> bytes_;
  std::shared_ptr<const void> owner_;
};

}  // namespace heed
