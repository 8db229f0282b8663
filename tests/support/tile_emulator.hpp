// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include <heed/kernels/isa.hpp>

#include <cmath>

#if defined(__x86_64__)
#include <signal.h>
#include <ucontext.h>

#include <array>
#include <cstring>
#endif

// The instructions of AMX where the processor has none: what they refuse with SIGILL, a handler
// decodes from the bytes of the program and computes, as Intel's manual defines them (volume 2,
// "Intel AMX instructions"; the order of sums as observed). So the very instructions that kernels
// on tiles consist of are run, with their registers, strides and shapes, and compared with the
// twin, which has none of them.

namespace heed::test {

/// A zero of the sign of a denormal number, other numbers as they are.
inline float flushed(float x) { return std::fabs(x) < 0x1p-126f ? std::copysign(0.f, x) : x; }

/// a · b + c, rounded once, with a zero instead of a number that would still be below 2^-126 if
/// exponents had no limit: what MXCSR's FTZ says, and tiles do. Factors are bfloat16, c is a float.
inline float flushed_fma(float a, float b, float c) {
  const float sum = std::fma(a, b, c);
  if (!(std::fabs(sum) <= 0x1p-126f)) return sum;
  // Numbers are small then, so that they can be scaled; a product of one that is not has its bits.
  float& small = std::fabs(a) < std::fabs(b) ? a : b;
  small *= 0x1p64f;
  const float scaled = std::fma(a, b, c * 0x1p64f);
  return std::fabs(scaled) < 0x1p-62f ? std::copysign(0.f, scaled) : scaled * 0x1p-64f;
}

#if defined(__x86_64__)
/// Eight tiles of a thread, and the instructions on them.
class EmulatedTiles {
 public:
  /// Computes the instruction at `context`'s address and steps over it; false if it is none of AMX.
  bool step(ucontext_t& context) {
    registers_ = &context.uc_mcontext.gregs;
    const auto* code = reinterpret_cast<const std::uint8_t*>((*registers_)[REG_RIP]);
    // VEX of three bytes, map 0F38, W0, 128 bits: what all instructions of AMX have.
    if (code[0] != 0xc4 || (code[1] & 0x1f) != 2 || (code[2] & 0x84) != 0) return false;
    extension_ = static_cast<std::uint8_t>(~code[1] >> 5);  // of r, x, b: bits 2, 1, 0
    const int prefix = code[2] & 3, third = ~code[2] >> 3 & 15;
    if (!run(prefix, third, code + 3)) return false;
    (*registers_)[REG_RIP] = reinterpret_cast<greg_t>(end_);
    return true;
  }

 private:
  enum Prefix { none, x66, xf3, xf2 };
  struct Tile {
    int rows = 0, bytes = 0;  // as configured
    std::uint8_t data[16][64] = {};

    template <class T>
    T at(int row, int i) const {
      T value;
      std::memcpy(&value, data[row] + static_cast<std::size_t>(i) * sizeof(T), sizeof(T));
      return value;
    }
    template <class T>
    void put(int row, int i, T value) {
      std::memcpy(data[row] + static_cast<std::size_t>(i) * sizeof(T), &value, sizeof(T));
    }
  };

  bool run(int prefix, int third, const std::uint8_t* code) {
    const int opcode = code[0], mode = code[1] >> 6, last = code[1] & 7;
    const int middle = (code[1] >> 3 & 7) | (extension_ & 4) << 1;
    end_ = code + 2;
    expect((opcode != 0x49 && opcode != 0x4b) || third == 0, "no third operand");
    if (opcode == 0x49 && mode == 3) {
      if (prefix == none && middle == 0 && last == 0) return release();
      return prefix == xf2 && last == 0 && zero(tile(middle));
    }
    if (opcode == 0x49) return prefix == none && middle == 0 && configure(address(code + 1));
    if (opcode == 0x4b && mode != 3 && last == 4) {
      if (prefix == xf2 || prefix == x66) return load(tile(middle), code + 1);
      return prefix == xf3 && store(tile(middle), code + 1);
    }
    if (mode != 3 || (opcode != 0x5c && opcode != 0x5e)) return false;
    Tile &sums = tile(middle), &a = tile(last | (extension_ & 1) << 3), &b = tile(third);
    expect(&sums != &a && &sums != &b && &a != &b, "three different tiles");
    expect(sums.rows == a.rows && sums.bytes == b.bytes && a.bytes == 4 * b.rows,
           "shapes that fit");
    if (opcode == 0x5c) return prefix == xf3 && multiply_pairs(sums, a, b);
    return multiply_bytes(sums, a, b, prefix == xf3 || prefix == xf2,
                          prefix == xf2 || prefix == x66);
  }

  bool release() {
    for (Tile& each : tiles_) each = Tile{};
    return true;
  }
  bool configure(const std::uint8_t* layout) {
    release();
    expect(layout[0] == 1, "palette 1");
    for (int i = 1; i < 16; ++i) expect(layout[i] == 0, "zeros in reserved bytes");
    for (std::size_t i = 0; i < 16; ++i) {
      std::uint16_t bytes;
      std::memcpy(&bytes, layout + 16 + 2 * i, 2);
      const int rows = layout[48 + i];
      if (i >= 8) {
        expect(bytes == 0 && rows == 0, "no more than eight tiles");
        continue;
      }
      expect(rows <= 16 && bytes <= 64 && (rows == 0) == (bytes == 0), "at most 16 rows of 64");
      tiles_[i].rows = rows;
      tiles_[i].bytes = bytes;
    }
    return true;
  }
  static bool zero(Tile& tile) {
    std::memset(tile.data, 0, sizeof tile.data);
    return true;
  }
  bool load(Tile& to, const std::uint8_t* operand) {
    zero(to);
    const std::uint8_t* from = address(operand);
    for (int row = 0; row < to.rows; ++row) {
      std::memcpy(to.data[row], from + row * stride_, static_cast<std::size_t>(to.bytes));
    }
    return true;
  }
  bool store(const Tile& from, const std::uint8_t* operand) {
    auto* to = const_cast<std::uint8_t*>(address(operand));
    for (int row = 0; row < from.rows; ++row) {
      std::memcpy(to + row * stride_, from.data[row], static_cast<std::size_t>(from.bytes));
    }
    return true;
  }

  /// The numbers in a row of a tile, as floats.
  static std::array<float, 32> numbers(const Tile& tile, int row) {
    std::array<float, 32> result;
    for (std::size_t i = 0; i < 32; ++i) {
      const std::uint32_t bits = tile.at<std::uint16_t>(row, static_cast<int>(i));
      result[i] = flushed(__builtin_bit_cast(float, bits << 16));
    }
    return result;
  }
  static bool multiply_pairs(Tile& sums, const Tile& a, const Tile& b) {
    std::array<float, 32> rows_of_b[16];
    for (int k = 0; k < b.rows; ++k) rows_of_b[k] = numbers(b, k);
    for (int row = 0; row < sums.rows; ++row) {
      const auto row_of_a = numbers(a, row);
      for (int lane = 0; lane < sums.bytes / 4; ++lane) {
        const auto place = static_cast<std::size_t>(2 * lane);
        float even = 0, odd = 0;
        for (std::size_t k = 0; k < static_cast<std::size_t>(b.rows); ++k) {
          even = flushed_fma(row_of_a[2 * k], rows_of_b[k][place], even);
          odd = flushed_fma(row_of_a[2 * k + 1], rows_of_b[k][place + 1], odd);
        }
        const float before = flushed(sums.at<float>(row, lane));
        sums.put(row, lane, flushed(before + flushed(even + odd)));
      }
    }
    return true;
  }
  static bool multiply_bytes(Tile& sums, const Tile& a, const Tile& b, bool a_signed,
                             bool b_signed) {
    const auto byte = [](const Tile& tile, int row, int i, bool with_sign) {
      return with_sign ? int{tile.at<std::int8_t>(row, i)} : int{tile.at<std::uint8_t>(row, i)};
    };
    for (int row = 0; row < sums.rows; ++row) {
      for (int lane = 0; lane < sums.bytes / 4; ++lane) {
        auto sum = sums.at<std::uint32_t>(row, lane);
        for (int k = 0; k < a.bytes; ++k) {
          sum += static_cast<std::uint32_t>(byte(a, row, k, a_signed) *
                                            byte(b, k / 4, 4 * lane + k % 4, b_signed));
        }
        sums.put(row, lane, sum);
      }
    }
    return true;
  }

  Tile& tile(int index) {
    expect(index < 8, "one of eight tiles");
    Tile& tile = tiles_[static_cast<std::size_t>(index)];
    expect(tile.rows > 0 && tile.bytes % 4 == 0, "a tile that is configured");
    return tile;
  }
  greg_t value_of(int index) const {
    constexpr int order[] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP,
                             REG_RSI, REG_RDI, REG_R8,  REG_R9,  REG_R10, REG_R11,
                             REG_R12, REG_R13, REG_R14, REG_R15};
    return (*registers_)[order[index]];
  }
  /// The address that a ModRM byte and what follows it name; its index is the stride of rows.
  const std::uint8_t* address(const std::uint8_t* operand) {
    const int mode = operand[0] >> 6, last = operand[0] & 7;
    const std::uint8_t* next = operand + 1;
    greg_t base = 0;
    bool wide = mode == 2;
    stride_ = 0;
    if (last == 4) {
      const int scale = *next >> 6, index = (*next >> 3 & 7) | (extension_ & 2) << 2;
      const int named = *next & 7;
      ++next;
      if (index != 4) stride_ = value_of(index) << scale;
      wide |= mode == 0 && named == 5;
      if (mode != 0 || named != 5) base = value_of(named | (extension_ & 1) << 3);
    } else if (mode == 0 && last == 5) {  // relative to the next instruction
      wide = true;
      base = reinterpret_cast<greg_t>(next + 4);
    } else {
      base = value_of(last | (extension_ & 1) << 3);
    }
    if (wide) {
      std::int32_t offset;
      std::memcpy(&offset, next, 4);
      base += offset;
      next += 4;
    } else if (mode == 1) {
      base += static_cast<std::int8_t>(*next++);
    }
    end_ = next;
    return reinterpret_cast<const std::uint8_t*>(base);
  }

  /// What a processor would answer with a fault ends the program, with the reason.
  static void expect(bool holds, const char* what) {
    if (holds) return;
    std::fprintf(stderr, "an instruction on tiles needs %s\n", what);
    std::abort();
  }

  std::array<Tile, 8> tiles_;
  gregset_t* registers_ = nullptr;
  const std::uint8_t* end_ = nullptr;  // of the instruction
  greg_t stride_ = 0;
  std::uint8_t extension_ = 0;
};
#endif

/// Makes amx usable while it lives: by the processor, or by emulation where it lacks tiles alone.
class AmxForTests {
 public:
  AmxForTests() {
#if defined(__x86_64__)
    if (simd::supported(simd::Isa::amx) || !runs()) return;
    struct sigaction action = {};
    action.sa_sigaction = on_illegal_instruction;
    action.sa_flags = SA_SIGINFO | SA_NODEFER;
    sigaction(SIGILL, &action, &before_);
    emulated_ = true;
#endif
  }
  ~AmxForTests() {
#if defined(__x86_64__)
    if (emulated_) sigaction(SIGILL, &before_, nullptr);
#endif
  }
  AmxForTests(const AmxForTests&) = delete;
  AmxForTests& operator=(const AmxForTests&) = delete;

  /// Whether kernels on tiles can run in either way.
  static bool runs() {
    return simd::supported(simd::Isa::amx) ||
           (simd::supported(simd::Isa::amx_twin) && simd::supported(simd::Isa::avx512_bf16));
  }
  static void use() { simd::detail::set_active(simd::Isa::amx); }

 private:
#if defined(__x86_64__)
  static void on_illegal_instruction(int, siginfo_t*, void* context) {
    static thread_local EmulatedTiles tiles;
    if (tiles.step(*static_cast<ucontext_t*>(context))) return;
    std::fputs("an illegal instruction, and none on tiles\n", stderr);
    std::abort();
  }
  struct sigaction before_ = {};
  bool emulated_ = false;
#endif
};

}  // namespace heed::test
