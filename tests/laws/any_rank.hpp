// SPDX-License-Identifier: MIT
#pragma once

#include <heed/tensor/view.hpp>

#include "laws/layer_laws.hpp"

// A layer that looks at rows gives the rows of a tensor of any rank, and of views of any strides,
// the bits that they have in (batch, tokens, width), forward and backward.
namespace heed::test {

template <class L, std::size_t Rank>
void expect_rows_as_in_rank_3(const L& layer, const Tensor<float, 3>& x,
                              const TensorView<const float, Rank>& same) {
  SCOPED_TRACE("rank " + std::to_string(Rank));
  typename L::Saved saved, saved_here;
  const Tensor<float, 3> y = layer.forward(x, saved);
  const Tensor<float, Rank> here = layer.forward(same, saved_here);
  for (std::size_t axis = 0; axis + 1 < Rank; ++axis) {
    EXPECT_EQ(here.extent(axis), same.extent(axis)) << "axis " << axis;
  }
  ASSERT_EQ(here.size(), y.size());
  const auto bytes = [](const auto& tensor) {
    return static_cast<std::size_t>(tensor.size()) * sizeof(float);
  };
  EXPECT_EQ(std::memcmp(here.data(), y.data(), bytes(y)), 0);
  const Tensor<float, Rank> inferred = layer.forward(same);
  EXPECT_TRUE(same_bits(inferred, here));
  L gradients = zeros_like(layer), gradients_here = zeros_like(layer);
  const Tensor<float, 3> grad_x = layer.backward(y, saved, gradients);
  const Tensor<float, Rank> grad_here = layer.backward(here.view(), saved_here, gradients_here);
  EXPECT_EQ(grad_here.extents(), same.extents());
  EXPECT_EQ(std::memcmp(grad_here.data(), grad_x.data(), bytes(x)), 0);
  const auto a = flat_parameters<float>(gradients), b = flat_parameters<float>(gradients_here);
  for (std::size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(std::memcmp(a[i].data, b[i].data, static_cast<std::size_t>(a[i].size) * 4), 0)
        << a[i].name;
  }
}

template <class L>
void expect_any_rank(const L& layer, Index width) {
  std::mt19937_64 bits(91);
  const auto x = random_tensor<float, 3>({6, 4, width}, bits);
  const auto view = x.view();
  expect_rows_as_in_rank_3(layer, x, view);
  expect_rows_as_in_rank_3(layer, x, view.split(0, 3));
  expect_rows_as_in_rank_3<L, 2>(layer, x, TensorView<const float, 2>(x.data(), {24, width}));
  const auto row = random_tensor<float, 3>({1, 1, width}, bits);
  expect_rows_as_in_rank_3<L, 1>(layer, row, TensorView<const float, 1>(row.data(), {width}));
  // Every other row, back to front, the width not the axis that lies together.
  const auto turned = Tensor<float, 3>::copy_of(view.permute({2, 0, 1}));
  const auto strided = turned.view().permute({1, 2, 0}).reverse(0).slice(1, 0, 4, 2);
  expect_rows_as_in_rank_3(layer, Tensor<float, 3>::copy_of(strided), strided);
  const Tensor<float, 2> none({0, width});
  EXPECT_EQ(layer.forward(none).extent(0), 0);
}

}  // namespace heed::test
