// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>

#include <heed/tensor/tensor.hpp>
#include <heed/tensor/view.hpp>

namespace heed {

/// Where the gradient of a BiasView goes: of the bias's own extents, 1 where it holds for all.
/// Converts from views and tensors of the ranks a BiasView takes. Empty: not wanted.
template <class T>
class BiasGradientView {
 public:
  BiasGradientView() = default;
  BiasGradientView(TensorView<T, 4> view) : view_(view), given_(true) {}  // NOLINT
  template <std::size_t Rank>
  requires(Rank < 4) BiasGradientView(const TensorView<T, Rank>& view)  // NOLINT
      : BiasGradientView(view.with_leading_axis()) {}
  template <std::size_t Rank>
  BiasGradientView(Tensor<T, Rank>& tensor) : BiasGradientView(tensor.view()) {}  // NOLINT
  template <std::size_t Rank>
  BiasGradientView(const Tensor<T, Rank>&&) {  // NOLINT
    static_assert(Rank == 0, "a view of a temporary tensor dangles: give the tensor a name first");
  }

  bool given() const { return given_; }
  const TensorView<T, 4>& view() const { return view_; }

 private:
  TensorView<T, 4> view_;
  bool given_ = false;
};

}  // namespace heed
