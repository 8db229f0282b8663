// SPDX-License-Identifier: MIT
#pragma once

// Definitions of TensorMemory in <heed/tensor/tensor.hpp>, which includes this file.

#include <array>
#include <bit>
#include <cstddef>
#include <cstring>
#include <new>

#include <heed/core/config.hpp>
#include <heed/core/detail/exceptions.hpp>
#include <heed/core/error.hpp>
#include <heed/core/index.hpp>

#if defined(__SANITIZE_ADDRESS__)
#define HEED_ADDRESS_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define HEED_ADDRESS_SANITIZER 1
#endif
#endif

namespace heed::detail {

/// The blocks that a thread keeps.
class KeptBlocks {
 public:
  static constexpr std::align_val_t alignment{64};
#if defined(HEED_ADDRESS_SANITIZER)
  static constexpr bool keeps = false;
#else
  static constexpr bool keeps = true;
#endif

  /// False after the thread's blocks are destroyed: static tensors are destroyed later.
  static bool& alive() {
    thread_local bool value = true;
    return value;
  }
  static KeptBlocks& of_this_thread() {
    thread_local KeptBlocks blocks;
    return blocks;
  }

  /// Rounds sizes up to steps of an eighth of a power of two, so that slightly different lengths
  /// share blocks; small sizes to cache lines.
  static std::size_t rounded(std::size_t bytes) {
    if (bytes < small) return bytes == 0 ? line : (bytes + line - 1) / line * line;
    const std::size_t step = std::bit_floor(bytes) / 8;
    return (bytes + step - 1) / step * step;
  }
  static void release(void* memory) noexcept { ::operator delete(memory, alignment); }

  void* find(std::size_t size) {
    if (size <= small) {
      List& list = lists_[size / line];
      return list.length > 0 ? pop(list) : nullptr;
    }
    for (std::size_t i = count_; i-- > 0;) {
      if (blocks_[i].size == size) return remove(i);
    }
    return nullptr;
  }
  void keep(void* memory, std::size_t size) noexcept {
    if (size <= small) {
      List& list = lists_[size / line];
      if (list.length == most_in_list) return release(memory);
      std::memcpy(memory, &list.first, sizeof(void*));
      list.first = memory;
      ++list.length;
      return;
    }
    if (size > TensorMemory::most_bytes) return release(memory);
    while (count_ == blocks_.size() || bytes_ + size > TensorMemory::most_bytes) release(remove(0));
    blocks_[count_++] = {memory, size};
    bytes_ += size;
  }
  std::size_t bytes() const { return bytes_; }
  void clear() noexcept {
    while (count_ > 0) release(remove(count_ - 1));
    for (List& list : lists_) {
      while (list.length > 0) release(pop(list));
    }
  }

 private:
  struct Block {
    void* memory = nullptr;
    std::size_t size = 0;
  };
  /// A list of small blocks of one size, each holding the address of the next.
  struct List {
    void* first = nullptr;
    int length = 0;
  };
  static constexpr std::size_t small = std::size_t{1} << 12, line = 64;
  static constexpr int most_in_list = 16;

  KeptBlocks() = default;
  ~KeptBlocks() {
    clear();
    alive() = false;
  }

  static void* pop(List& list) {
    void* const block = list.first;
    std::memcpy(&list.first, block, sizeof(void*));
    --list.length;
    return block;
  }
  void* remove(std::size_t at) {
    const Block block = blocks_[at];
    for (std::size_t i = at; i + 1 < count_; ++i) blocks_[i] = blocks_[i + 1];
    --count_;
    bytes_ -= block.size;
    return block.memory;
  }

  std::array<List, small / line + 1> lists_{};
  std::array<Block, 512> blocks_{};  // oldest first
  std::size_t count_ = 0;
  std::size_t bytes_ = 0;
};

// NOLINTBEGIN(misc-definitions-in-headers)
HEED_INLINE void* TensorMemory::take(std::size_t bytes) {
  const std::size_t size = KeptBlocks::rounded(bytes);
  if (!KeptBlocks::keeps || !KeptBlocks::alive()) {
    return ::operator new(size, KeptBlocks::alignment);
  }
  KeptBlocks& blocks = KeptBlocks::of_this_thread();
  if (void* kept = blocks.find(size)) return kept;
  void* memory = ::operator new(size, KeptBlocks::alignment, std::nothrow);
  if (memory != nullptr) return memory;
  blocks.clear();
  return ::operator new(size, KeptBlocks::alignment);
}

HEED_INLINE void* TensorMemory::take(std::size_t count, std::size_t element_bytes,
                                     const Index* extents, std::size_t rank) {
  const auto refuse = [&]() -> void* { throw_out_of_memory({extents, rank}, element_bytes); };
  if (count == 0) return nullptr;
  if (count > static_cast<std::size_t>(-1) / 2 / element_bytes) return refuse();
  return handled<std::bad_alloc>([&] { return take(count * element_bytes); },
                                 [&](const std::bad_alloc&) { return refuse(); });
}

HEED_INLINE void TensorMemory::give(void* memory, std::size_t bytes) noexcept {
  if (memory == nullptr) return;
  if (!KeptBlocks::keeps || !KeptBlocks::alive()) return KeptBlocks::release(memory);
  KeptBlocks::of_this_thread().keep(memory, KeptBlocks::rounded(bytes));
}

HEED_INLINE std::size_t TensorMemory::kept_bytes() {
  return KeptBlocks::alive() ? KeptBlocks::of_this_thread().bytes() : 0;
}
// NOLINTEND(misc-definitions-in-headers)

}  // namespace heed::detail
