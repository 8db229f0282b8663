// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstring>
#include <new>

#if defined(__SANITIZE_ADDRESS__)
#define HEED_ADDRESS_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define HEED_ADDRESS_SANITIZER 1
#endif
#endif

namespace heed::detail {

/// Blocks of tensors that died, kept by the thread they died on for the next ones of their size: a
/// training step makes and drops the same tensors every time, and fetching their pages from the
/// system anew cost a fifth of it, and of small models a quarter: the allocator gives the end of
/// its memory back after every step. At most `most_bytes` a thread; the oldest go first. Blocks
/// up to 4 KiB are kept in lists by their size, since aligned ones cost the allocator a tenth of
/// the time that a small model takes for a token. Under an address sanitizer all blocks are the
/// allocator's.
class TensorMemory {
 public:
  static constexpr std::size_t most_bytes = std::size_t{1} << 30;

  /// 64-byte aligned, at least `bytes`. Throws std::bad_alloc.
  static void* take(std::size_t bytes) {
    const std::size_t size = rounded(bytes);
    if (keeps && alive()) {
      if (void* kept = of_this_thread().find(size)) return kept;
    }
    return ::operator new(size, alignment);
  }
  /// Gives back what `take(bytes)` gave.
  static void give(void* memory, std::size_t bytes) noexcept {
    const std::size_t size = rounded(bytes);
    if (memory == nullptr || !keeps || !alive()) return release(memory);
    of_this_thread().keep({memory, size});
  }
  /// How many bytes this thread keeps in large blocks.
  static std::size_t kept_bytes() { return alive() ? of_this_thread().bytes_ : 0; }

 private:
  struct Block {
    void* memory = nullptr;
    std::size_t size = 0;
  };

  static constexpr std::align_val_t alignment{64};
  static constexpr std::size_t small = std::size_t{1} << 12, line = 64;
  static constexpr int most_in_list = 16;
#if defined(HEED_ADDRESS_SANITIZER)
  static constexpr bool keeps = false;
#else
  static constexpr bool keeps = true;
#endif

  /// Small blocks of one size, each holding the address of the next.
  struct List {
    void* first = nullptr;
    int length = 0;
  };

  TensorMemory() = default;
  ~TensorMemory() {
    for (std::size_t i = 0; i < count_; ++i) release(blocks_[i].memory);
    for (List& list : lists_) {
      while (list.length > 0) release(pop(list));
    }
    alive() = false;
  }

  /// Sizes in steps of an eighth of a power of two, so that lengths that differ a little share
  /// blocks; small ones in steps of a line.
  static std::size_t rounded(std::size_t bytes) {
    if (bytes < small) return bytes == 0 ? line : (bytes + line - 1) / line * line;
    const std::size_t step = std::bit_floor(bytes) / 8;
    return (bytes + step - 1) / step * step;
  }
  static void release(void* memory) noexcept { ::operator delete(memory, alignment); }
  /// False once the thread's blocks are gone: static tensors die later than they.
  static bool& alive() {
    thread_local bool value = true;
    return value;
  }
  static TensorMemory& of_this_thread() {
    thread_local TensorMemory memory;
    return memory;
  }

  static void* pop(List& list) {
    void* const block = list.first;
    std::memcpy(&list.first, block, sizeof(void*));
    --list.length;
    return block;
  }

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
  void keep(Block block) noexcept {
    if (block.size <= small) {
      List& list = lists_[block.size / line];
      if (list.length == most_in_list) return release(block.memory);
      std::memcpy(block.memory, &list.first, sizeof(void*));
      list.first = block.memory;
      ++list.length;
      return;
    }
    if (block.size > most_bytes) return release(block.memory);
    while (count_ == blocks_.size() || bytes_ + block.size > most_bytes) release(remove(0));
    blocks_[count_++] = block;
    bytes_ += block.size;
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

}  // namespace heed::detail
