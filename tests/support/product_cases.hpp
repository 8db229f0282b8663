// SPDX-License-Identifier: MIT
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include <heed/core/parallel.hpp>
#include <heed/tensor/matrix_product.hpp>

#include "support/attention_cases.hpp"

namespace heed::test {

/// A row of a product has the same bits alone and beside `count` − 1 others, on any number of
/// threads and by any strides.
inline void expect_rows_in_any_company(const PackedMatrix<float>& matrix, Index count,
                                       const std::vector<simd::Isa>& sets) {
  std::mt19937_64 bits(4);
  const auto x = random_tensor<float, 2>({count, matrix.rows()}, bits);
  const auto across = Tensor<float, 2>::copy_of(x.view().permute({1, 0}));
  const Index columns = matrix.columns();
  const RestoreSettings restore;
  for (const auto isa : sets) {
    simd::use(isa);
    set_thread_count(1);
    const auto all = matrix_product(x, matrix);
    for (const Index row : {Index{0}, Index{5}, Index{767}, Index{768}, count - 1}) {
      const auto alone = matrix_product(x.view().slice(0, row, row + 1), matrix);
      ASSERT_TRUE(std::equal(alone.data(), alone.data() + columns, all.data() + row * columns));
    }
    for (const Index threads : {2, 3, 8}) {
      set_thread_count(threads);
      ASSERT_TRUE(same_bits(matrix_product(x, matrix), all));
      ASSERT_TRUE(same_bits(matrix_product(across.view().permute({1, 0}), matrix), all));
    }
  }
}

}  // namespace heed::test
