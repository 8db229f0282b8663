// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include <heed/core/half.hpp>
#include <heed/core/index.hpp>
#include <heed/core/q4_0.hpp>
#include <heed/core/q4_1.hpp>
#include <heed/core/q6_k.hpp>
#include <heed/core/q8_0.hpp>
#include <heed/io/element_type.hpp>
#include <heed/io/gguf_type.hpp>

namespace heed {

namespace detail {

/// Weights `first` … of a row of blocks; blocks that are only partly wanted go through a buffer.
template <class Block>
void dequantize_blocks(const std::byte* blocks, Index first, std::span<float> out) {
  const auto size = static_cast<Index>(out.size());
  for (Index done = 0; done < size;) {
    const Index at = first + done, skipped = at % Block::length;
    const auto block = unaligned<Block>(blocks + at / Block::length * Index{sizeof(Block)});
    const Index count = std::min(Block::length - skipped, size - done);
    if (count == Block::length) {
      block.dequantize(out.data() + done);
    } else {
      float weights[Block::length];
      block.dequantize(weights);
      std::copy_n(weights + skipped, count, out.data() + done);
    }
    done += count;
  }
}

template <class Element, class ToFloat>
void widen(const std::byte* from, Index first, std::span<float> out, const ToFloat& to_float) {
  from += first * Index{sizeof(Element)};
  for (float& value : out) {
    value = to_float(unaligned<Element>(from));
    from += sizeof(Element);
  }
}

}  // namespace detail

/// Whether `dequantize` reads that type.
inline bool is_dequantizable(const GgufType& type) {
  for (const std::string_view name :
       {"F32", "F16", "BF16", "F64", "Q8_0", "Q4_0", "Q4_1", "Q6_K"}) {
    if (type.name == name) return true;
  }
  return false;
}

/// Weights `first` … first + out.size() − 1 of a tensor that begins at `data`, as floats; exact for
/// F32, F16 and BF16, else rounded as the format's own definition rounds. The type must be
/// dequantizable and the range lie inside the tensor.
inline void dequantize(const GgufType& type, const std::byte* data, Index first,
                       std::span<float> out) {
  switch (type.id) {
    case 0:
      return detail::widen<float>(data, first, out, [](float x) { return x; });
    case 1:
      return detail::widen<std::uint16_t>(data, first, out, float_of_half);
    case 2:
      return detail::dequantize_blocks<Q4_0>(data, first, out);
    case 3:
      return detail::dequantize_blocks<Q4_1>(data, first, out);
    case 8:
      return detail::dequantize_blocks<Q8_0>(data, first, out);
    case 14:
      return detail::dequantize_blocks<Q6_K>(data, first, out);
    case 28:
      return detail::widen<double>(data, first, out,
                                   [](double x) { return static_cast<float>(x); });
    default:
      return detail::widen<std::uint16_t>(data, first, out, float_of_bfloat16);
  }
}

}  // namespace heed
