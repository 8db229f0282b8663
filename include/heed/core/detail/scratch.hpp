// SPDX-License-Identifier: MIT
#pragma once

#include <cxxabi.h>

#include <cstddef>
#include <new>

#include <heed/core/detail/program_code.hpp>
#include <heed/core/error.hpp>
#include <heed/core/index.hpp>

namespace heed::detail {

/// Working memory of a thread: 64-byte aligned, kept between calls so that hot paths do not
/// allocate, grown to the largest request. Contents are unspecified. Freed when the thread ends,
/// yet available to computations after that, in destructors of thread_local and static objects: it
/// has no destructor itself, and registers for release whenever it allocates anew.
class Scratch {
 public:
  /// At least `bytes` of the calling thread's memory. Each `Purpose` has memory of its own, so that
  /// one keeps its contents through requests for another. Throws std::bad_alloc, and
  /// InvalidArgument within too many calls.
  template <class Purpose = void>
  static std::byte* of_this_thread(std::size_t bytes) {
    thread_local constinit Scratch scratches[ProgramCode::most + 1];
    const int depth = ProgramCode::depth();
    if (depth > ProgramCode::most) {
      throw_invalid_argument("attention: masks and score functions that call heed, more than ",
                             ProgramCode::most, " within one another");
    }
    Scratch& scratch = scratches[depth];
    if (scratch.bytes_ < bytes) scratch.grow(bytes);
    return scratch.memory_;
  }

 private:
  static constexpr std::align_val_t alignment{64};
  inline static char here = 0;  // tells which library's code must stay as long as threads do

  void grow(std::size_t bytes) {
    const bool anew = memory_ == nullptr;
    release(this);
    memory_ = static_cast<std::byte*>(::operator new(bytes, alignment));
    bytes_ = bytes;
    if (anew) abi::__cxa_thread_atexit(&Scratch::release, this, &here);
  }
  static void release(void* scratch) {
    auto& self = *static_cast<Scratch*>(scratch);
    ::operator delete(self.memory_, alignment);
    self.memory_ = nullptr;
    self.bytes_ = 0;
  }

  std::byte* memory_ = nullptr;
  std::size_t bytes_ = 0;
};

/// Divides memory into arrays, each 64-byte aligned. First count with a null base, then divide the
/// real one.
class Carver {
 public:
  explicit Carver(std::byte* base) : base_(base) {}

  template <class T>
  T* take(Index count) {
    T* array = base_ ? reinterpret_cast<T*>(base_ + used_) : nullptr;
    used_ += (static_cast<std::size_t>(count) * sizeof(T) + 63) / 64 * 64 + skew;
    return array;
  }
  std::size_t used() const { return used_; }

 private:
  // Arrays of power-of-two sizes would fall on the same cache sets; one line between them helps.
  static constexpr std::size_t skew = 64;
  std::byte* base_;
  std::size_t used_ = 0;
};

/// Divides memory of the calling thread by `divide`, which takes arrays from a Carver: once to
/// count them, and once to receive them. `Purpose`: see Scratch.
template <class Purpose, class Divide>
void divide_scratch(const Divide& divide) {
  Carver counter(nullptr);
  divide(counter);
  Carver carver(Scratch::of_this_thread<Purpose>(counter.used()));
  divide(carver);
}

/// The same for an aggregate of a Carver, sizes, and arrays that its member initializers take.
template <class Arrays, class Purpose = Arrays, class... Sizes>
Arrays divided_scratch(Sizes... sizes) {
  const auto divided = [&](std::byte* base) { return Arrays{Carver(base), sizes...}; };
  return divided(Scratch::of_this_thread<Purpose>(divided(nullptr).carver.used()));
}

}  // namespace heed::detail
