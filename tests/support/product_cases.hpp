// SPDX-License-Identifier: MIT
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include <heed/core/parallel.hpp>
#include <heed/tensor/matrix_product.hpp>

#include "support/attention_cases.hpp"

namespace heed::test {

/// A row of product(x), x (count, depth), has the same bits alone and beside `count` − 1 others, on
/// any number of threads and by any strides.
template <class Product>
void expect_rows_in_any_company(const Product& product, Index depth, Index count,
                                const std::vector<simd::Isa>& sets) {
  std::mt19937_64 bits(4);
  const auto x = random_tensor<float, 2>({count, depth}, bits);
  const auto across = Tensor<float, 2>::copy_of(x.view().permute({1, 0}));
  const RestoreSettings restore;
  for (const auto isa : sets) {
    simd::use(isa);
    set_thread_count(1);
    const Tensor<float, 2> all = product(x.view());
    const Index columns = all.extent(1);
    for (const Index row : {Index{0}, Index{5}, Index{767}, Index{768}, count - 1}) {
      const Tensor<float, 2> alone = product(x.view().slice(0, row, row + 1));
      ASSERT_TRUE(std::equal(alone.data(), alone.data() + columns, all.data() + row * columns));
    }
    for (const Index threads : {2, 3, 8}) {
      set_thread_count(threads);
      ASSERT_TRUE(same_bits(product(x.view()), all));
      ASSERT_TRUE(same_bits(product(across.view().permute({1, 0})), all));
    }
  }
}
/// The same with a packed matrix.
inline void expect_rows_in_any_company(const PackedMatrix<float>& matrix, Index count,
                                       const std::vector<simd::Isa>& sets) {
  expect_rows_in_any_company([&](const auto& x) { return matrix_product(x, matrix); },
                             matrix.rows(), count, sets);
}

}  // namespace heed::test
