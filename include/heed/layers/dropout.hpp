// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <utility>

#include <heed/core/error.hpp>
#include <heed/core/index.hpp>
#include <heed/core/philox.hpp>
#include <heed/core/random.hpp>
#include <heed/definitions/tensor.hpp>
#include <heed/kernels/row_kernels.hpp>
#include <heed/layers/detail/rows.hpp>
#include <heed/layers/parameters.hpp>
#include <heed/tensor/tensor.hpp>

namespace heed {

/// The randomness of one training pass: a seed, a new one for every step. Without a seed nothing is
/// dropped, as in inference.
struct Noise {
  std::optional<std::uint64_t> seed = {};
};

/// Dropout, in training alone: elements of a tensor or view of any rank become 0 with a given
/// probability, and all others are divided by 1 − probability. The choice is a pure function of
/// seed, layer and position (Philox), so backward and a resumed run repeat it. Probability 0
/// changes no bit. It has no parameters, but a layer lists it among its members, so that
/// save_checkpoint finds its stream. Srivastava et al. 2014.
template <ModelScalar T>
struct Dropout {
  using Input = Tensor<T, 3>;
  using Output = Tensor<T, 3>;
  using Saved = Noise;

  Dropout() = default;
  /// Takes its stream, a number that differs from layer to layer, from `random`. Throws
  /// InvalidArgument for a probability outside 0 to 1.
  Dropout(double share, Random& random = detail::expect_random<T>())
      : probability(share), stream(random.bits()) {
    if (!(share >= 0 && share <= 1)) {
      throw_invalid_argument("Dropout: probability ", share, ", expected 0 to 1");
    }
  }

  template <class X>
  auto forward(X&& x) const {
    return detail::owned<T>(std::forward<X>(x));
  }
  template <class X>
  auto forward(X&& x, const Noise& noise, Saved& saved) const {
    saved = noise;
    auto y = detail::owned<T>(std::forward<X>(x));
    drop(y.data(), y.size(), noise);
    return y;
  }
  template <class X>
  auto forward(X&& x, Saved& saved) const {
    return forward(std::forward<X>(x), Noise{}, saved);
  }
  template <class G>
  auto backward(G&& grad, const Saved& saved, Dropout&) const {
    auto grad_x = detail::owned<T>(std::forward<G>(grad));
    drop(grad_x.data(), grad_x.size(), saved);
    return grad_x;
  }

  /// Whether a pass with this randomness changes anything.
  bool drops(const Noise& noise) const { return noise.seed && probability != 0; }
  /// Whether element `at` (row-major) is kept under a seed.
  bool keeps(std::uint64_t seed, Index at) const {
    return kept(words(seed, at / 4)[static_cast<std::size_t>(at % 4)]);
  }

  static auto members(auto&) { return Members{}; }

  double probability = 0;  // of an element to become 0
  std::uint32_t stream = 0;

 private:
  bool kept(std::uint32_t word) const { return static_cast<double>(word) * 0x1p-32 >= probability; }
  PhiloxCounter words(std::uint64_t seed, Index four) const {
    const auto at = static_cast<std::uint64_t>(four);
    return philox({static_cast<std::uint32_t>(at), static_cast<std::uint32_t>(at >> 32), stream, 0},
                  {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)});
  }
  void drop(T* x, Index size, const Noise& noise) const {
    if (!drops(noise)) return;
    const double least = std::ceil(probability * 0x1p32);  // word that is kept
    if (least >= 0x1p32) return static_cast<void>(std::fill_n(x, size, T{0}));
    const simd::DropRun<T> drop{
        stream,
        {static_cast<std::uint32_t>(*noise.seed), static_cast<std::uint32_t>(*noise.seed >> 32)},
        static_cast<std::uint32_t>(least),
        static_cast<T>(1 / (1 - probability))};
    const auto& kernels = simd::row_kernels<T>();
    constexpr Index width = 256;  // a multiple of the four numbers of a counter
    detail::for_row_runs(detail::parts_of(size, width), width, [&](Index first, Index last) {
      const Index begin = first * width;
      const Index end = last * width < size ? last * width : size;
      kernels.drop(drop, static_cast<std::uint64_t>(begin / 4), x + begin, end - begin);
    });
  }
};

}  // namespace heed
