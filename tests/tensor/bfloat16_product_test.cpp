// SPDX-License-Identifier: MIT
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include <heed/core/bfloat16.hpp>
#include <heed/core/parallel.hpp>
#include <heed/core/random.hpp>
#include <heed/tensor/copy.hpp>
#include <heed/tensor/matrix_product.hpp>

#include "support/bfloat16_cases.hpp"
#include "support/product_cases.hpp"
#include "support/tile_emulator.hpp"

namespace heed {
namespace {

/// Random bfloat16 weights (columns, rows).
std::vector<bfloat16> random_weights(Index count) {
  Random random(3);
  std::vector<bfloat16> weights;
  for (Index i = 0; i < count; ++i) weights.emplace_back(static_cast<float>(random.normal()));
  return weights;
}

PackedMatrix<float> packed(const std::vector<bfloat16>& weights, Index rows, Index columns,
                           Products products = Products::bfloat16) {
  return PackedMatrix<float>::transposed_blocks<bfloat16>(std::as_bytes(std::span(weights)), rows,
                                                          columns, products);
}

/// A partial sum of a product, in plain words.
float partial_sum(const float* row, const bfloat16* column, Index terms, simd::Isa isa) {
  const bool fuses = isa != simd::Isa::sse2 && isa != simd::Isa::scalar;
  float sum = 0;
  for (Index k = 0; k < terms; ++k) {
    const float a = bfloat16(row[k]), b = column[k];
    const volatile float product = a * b;
    sum = fuses ? std::fma(a, b, sum) : product + sum;
  }
  return sum;
}
/// The same on tiles: 32 terms are two chains.
float partial_sum_of_tiles(const float* row, const bfloat16* column, Index terms) {
  float sum = 0;
  for (Index first = 0; first < terms; first += 32) {
    float chains[2] = {0, 0};
    for (Index k = first; k < std::min(first + 32, terms); ++k) {
      chains[k % 2] = std::fma(float{bfloat16(row[k])}, float{column[k]}, chains[k % 2]);
    }
    sum += chains[0] + chains[1];
  }
  return sum;
}
/// One element of a product.
float element(const float* row, const bfloat16* column, Index depth, float out, simd::Isa isa) {
  for (Index k = 0; k < depth; k += 512) {
    const Index terms = std::min<Index>(depth - k, 512);
    out += isa >= simd::Isa::amx ? partial_sum_of_tiles(row + k, column + k, terms)
                                 : partial_sum(row + k, column + k, terms, isa);
  }
  return out;
}

void check_bits(Index rows, Index columns, Index count) {
  SCOPED_TRACE(::testing::Message() << rows << " x " << columns << ", " << count << " rows");
  const auto weights = random_weights(rows * columns);
  const auto matrix = packed(weights, rows, columns);
  std::mt19937_64 bits(1);
  const auto x = test::random_tensor<float, 2>({count, rows}, bits);
  const auto bias = test::random_tensor<float, 1>({columns}, bits);
  const test::RestoreSettings restore;
  for (const auto isa : test::bfloat16_sets()) {
    simd::use(isa);
    Tensor<float, 2> out({count, columns});
    matrix_product(x, matrix, out, {.bias = bias});
    for (Index i = 0; i < count; ++i) {
      for (Index c = 0; c < columns; ++c) {
        ASSERT_EQ(out(i, c),
                  element(x.data() + i * rows, &weights[static_cast<std::size_t>(c * rows)], rows,
                          bias(c), isa))
            << simd::name(isa) << " " << i << " " << c;
      }
    }
    matrix_product(x, matrix, out);
    const float once = out(0, 0);
    matrix_product(x, matrix, out, {.accumulate = true});
    ASSERT_EQ(out(0, 0), element(x.data(), weights.data(), rows, once, isa));
  }
}

TEST(Bfloat16Product, HasTheBitsOfItsDefinitionOnEverySet) {
  for (const Index rows : {1, 2, 512 + 31}) {
    for (const Index columns : {1, 150}) {
      for (const Index count : {1, 2, 7, 20}) check_bits(rows, columns, count);
    }
  }
}

TEST(Bfloat16Product, IsWithin8BitsOfTheExactOne) {
  constexpr Index rows = 577, columns = 70, count = 9;
  const auto weights = random_weights(rows * columns);
  std::mt19937_64 bits(2);
  const auto x = test::random_tensor<float, 2>({count, rows}, bits);
  const auto exact = matrix_product(x, packed(weights, rows, columns, Products::exact));
  const auto out = matrix_product(x, packed(weights, rows, columns));
  double most = 0;
  for (Index i = 0; i < count; ++i) {
    for (Index c = 0; c < columns; ++c) {
      double absolute = 0;
      for (Index k = 0; k < rows; ++k) {
        const auto weight = static_cast<float>(weights[static_cast<std::size_t>(c * rows + k)]);
        absolute += std::abs(static_cast<double>(x(i, k)) * static_cast<double>(weight));
      }
      const double error =
          std::abs(static_cast<double>(out(i, c)) - static_cast<double>(exact(i, c)));
      ASSERT_LE(error, absolute * (1.0 / 512 + 8e-6)) << i << " " << c;
      most = std::max(most, error / absolute);
    }
  }
  EXPECT_GT(most, 1e-5);  // the rows are rounded
}

TEST(Bfloat16Product, ARowHasTheSameBitsInAnyCompany) {
  constexpr Index rows = 545, columns = 130, count = 780;  // more rows than are rounded at once
  const auto matrix = packed(random_weights(rows * columns), rows, columns);
  test::expect_rows_in_any_company(matrix, count, test::bfloat16_sets());
}

TEST(Bfloat16Product, NumbersThatAreNotOrdinary) {
  constexpr Index rows = 65, columns = 70;
  const auto matrix = packed(random_weights(rows * columns), rows, columns);
  std::mt19937_64 bits(6);
  const auto x = test::random_tensor<float, 2>({7, rows}, bits);
  const test::RestoreSettings restore;
  for (const auto isa : test::bfloat16_sets()) {
    simd::use(isa);
    auto spoiled = Tensor<float, 2>::copy_of(x);
    const auto before = matrix_product(x, matrix);
    spoiled(1, 3) = std::numeric_limits<float>::quiet_NaN();
    spoiled(2, 64) = __builtin_bit_cast(float, 0x7f800001);  // a NaN in the last bit alone
    spoiled(3, 40) = std::numeric_limits<float>::infinity();
    for (Index k = 0; k < rows; ++k) spoiled(5, k) = 1e-40f;  // subnormal
    const auto after = matrix_product(spoiled, matrix);
    for (Index c = 0; c < columns; ++c) {
      ASSERT_TRUE(std::isnan(after(1, c)) && std::isnan(after(2, c))) << simd::name(isa);
      ASSERT_TRUE(std::isinf(after(3, c)));
      ASSERT_LT(std::abs(after(5, c)), 1e-38f);
      for (const Index row : {0, 4, 6}) ASSERT_EQ(after(row, c), before(row, c));
    }
  }
}

TEST(Bfloat16Product, GroupsMixAllKinds) {
  constexpr Index rows = 96, columns = 70;
  const auto weights = random_weights(rows * columns);
  const std::vector<std::byte> zeros(sizeof(Q8_0) * rows / 32 * columns);
  const auto blocks = PackedMatrix<float>::transposed_blocks<Q8_0>(std::span(zeros), rows, columns,
                                                                   Products::int16);
  const auto rounded = packed(weights, rows, columns);
  const auto exact = packed(weights, rows, columns, Products::int16);  // has no such
  std::mt19937_64 bits(7);
  const auto x = test::random_tensor<float, 2>({5, rows}, bits);
  Tensor<float, 2> a({5, columns}), b({5, columns}), c({5, columns});
  ProductGroup<float> group(x.view());
  group.add(rounded, a.view());
  group.add(blocks, b.view());
  group.add(exact, c.view());
  group.run();
  EXPECT_TRUE(test::same_bits(a, matrix_product(x, rounded)));
  EXPECT_TRUE(std::all_of(b.begin(), b.end(), [](float value) { return value == 0; }));
  Tensor<float, 2> wide({columns, rows});
  std::copy(weights.begin(), weights.end(), wide.data());
  EXPECT_TRUE(test::same_bits(c, matrix_product(x, wide.view().permute({1, 0}))));
}

/// Of two matrices as they lie, or across.
Tensor<float, 2> product(const TensorView<const float, 2>& a, const Tensor<float, 2>& b) {
  Tensor<float, 2> out({a.extent(0), b.extent(1)});
  matrix_product(a, b, out, {.products = Products::bfloat16});
  return out;
}

TEST(Bfloat16Product, OfFloatsIsTheExactOneOfRoundedFloats) {
  const test::RestoreSettings restore;
  for (const auto [rows, depth, columns] :
       {Extents<3>{1, 1, 1}, {7, 3, 64}, {64, 2 * 512 + 31, 65}, {100, 48, 150}, {3, 0, 2}}) {
    std::mt19937_64 bits(8);
    const auto a = test::random_tensor<float, 2>({rows, depth}, bits);
    const auto b = test::random_tensor<float, 2>({depth, columns}, bits);
    const auto before = test::random_tensor<float, 2>({rows, columns}, bits);
    const auto a_across = Tensor<float, 2>::copy_of(a.view().permute({1, 0}));
    const auto b_across = Tensor<float, 2>::copy_of(b.view().permute({1, 0}));
    std::vector<bfloat16> narrow(b_across.begin(), b_across.end());
    for (const auto isa : test::bfloat16_sets()) {
      SCOPED_TRACE(::testing::Message() << simd::name(isa) << " " << rows << " " << depth);
      simd::use(isa);
      auto expected = before;
      if (isa < simd::Isa::amx) {
        matrix_product(test::rounded_to_bfloat16(a), test::rounded_to_bfloat16(b), expected,
                       {.accumulate = true});
      } else {  // terms in another order
        for (Index i = 0; i < expected.size(); ++i) {
          const auto* column = narrow.data() + i % columns * depth;
          float& sum = expected.data()[i];
          sum = element(a.data() + i / columns * depth, column, depth, sum, isa);
        }
      }
      for (const bool left : {false, true}) {
        for (const bool right : {false, true}) {
          auto out = before;
          matrix_product(left ? a_across.view().permute({1, 0}) : a.view(),
                         right ? b_across.view().permute({1, 0}) : b.view(), out,
                         {.accumulate = true, .products = Products::bfloat16});
          EXPECT_TRUE(test::same_bits(out, expected)) << left << right;
        }
      }
    }
  }
}

TEST(Bfloat16Product, TilesOfTheProcessorGiveTheBitsOfTheTwin) {
  const test::AmxForTests amx;
  if (!amx.runs()) GTEST_SKIP() << "no amx here, nor avx512_bf16 to emulate it";
  const test::RestoreSettings restore;
  for (const auto [rows, depth, columns] :
       {Extents<3>{7, 3, 64}, {64, 512 + 31, 65}, {100, 48, 150}, {17, 512, 16}}) {
    std::mt19937_64 bits(12);
    const auto a = test::random_tensor<float, 2>({rows, depth}, bits);
    const auto b = test::random_tensor<float, 2>({depth, columns}, bits);
    simd::use(simd::Isa::amx_twin);
    const auto twin = product(a.view(), b);
    test::AmxForTests::use();
    EXPECT_TRUE(test::same_bits(product(a.view(), b), twin)) << rows << " x " << depth;
  }
}

TEST(Bfloat16Product, NumbersNextToTheLeastNormalOneRoundToIt) {
  constexpr Index rows = 40, depth = 70, columns = 70;
  const float scale = 0x1p120f;  // what does not become 0 is seen in the product
  std::mt19937_64 bits(10);
  auto small = test::random_tensor<float, 2>({rows, depth}, bits);
  for (float& x : small) {  // from the largest that round to a subnormal number on, of both signs
    const auto places = static_cast<std::uint32_t>(bits() % 0x10000);
    const auto sign = static_cast<std::uint32_t>(bits() % 2) << 31;
    x = __builtin_bit_cast(float, sign | (0x007f7ff0 + places));
  }
  const auto large = test::random_tensor<float, 2>({depth, columns}, bits);
  auto factors = large;
  for (float& x : factors) x *= scale;
  const test::RestoreSettings restore;
  for (const auto isa : test::bfloat16_sets()) {
    simd::use(isa);
    const bool flushes = isa >= simd::Isa::avx512_bf16;
    auto known = test::rounded_to_bfloat16(small);
    for (float& x : known) {
      if (flushes && std::fpclassify(x) == FP_SUBNORMAL) x = 0;
    }
    const auto small_across = Tensor<float, 2>::copy_of(small.view().transpose());
    const auto known_across = Tensor<float, 2>::copy_of(known.view().transpose());
    const auto factors_across = Tensor<float, 2>::copy_of(factors.view().transpose());
    const auto expected = product(known, factors);
    EXPECT_NE(expected(0, 0), 0) << simd::name(isa);
    EXPECT_TRUE(test::same_bits(product(small, factors), expected)) << simd::name(isa);
    EXPECT_TRUE(test::same_bits(product(small_across.view().transpose(), factors), expected));
    const auto turned = product(factors_across, known_across);  // b as it lies
    EXPECT_TRUE(test::same_bits(product(factors_across, small_across), turned));
    Tensor<float, 2> out({columns, rows});
    matrix_product(factors_across, small.view().transpose(), out, {.products = Products::bfloat16});
    EXPECT_TRUE(test::same_bits(out, turned)) << simd::name(isa);
  }
}

TEST(Bfloat16Product, OfFloatsHasTheSameBitsInAnyCompany) {
  constexpr Index rows = 545, columns = 130, count = 780;
  std::mt19937_64 bits(9);
  const auto b = test::random_tensor<float, 2>({rows, columns}, bits);
  test::expect_rows_in_any_company([&](const auto& x) { return product(x, b); }, rows, count,
                                   test::bfloat16_sets());
}

Tensor<bfloat16, 2> narrowed(const Tensor<float, 2>& wide) {
  Tensor<bfloat16, 2> narrow(wide.extents());
  copy(wide, narrow);
  return narrow;
}
/// A matrix, or the same that lies across, with `step` columns to one.
template <class T>
TensorView<const T, 2> lying(const Tensor<T, 2>& across, Tensor<T, 2>& memory, bool turned,
                             Index step) {
  const auto view = turned ? across.view().transpose() : across.view();
  memory = Tensor<T, 2>({view.extent(0), view.extent(1) * step});
  const auto some = TensorView<T, 2>(memory.data(), view.extents(), {view.extent(1) * step, step});
  copy(view, some);
  return some;
}

TEST(Bfloat16Product, OfFactorsInBfloat16IsThatOfTheSameFloats) {
  const test::RestoreSettings restore;
  for (const auto [rows, depth, columns] : {Extents<3>{1, 1, 1},
                                            {7, 3, 64},
                                            {64, 2 * 512 + 31, 65},
                                            {100, 48, 150},
                                            {70, 33, 17},
                                            {3, 0, 2}}) {
    SCOPED_TRACE(::testing::Message() << rows << " " << depth << " " << columns);
    std::mt19937_64 bits(18);
    const auto a = narrowed(test::random_tensor<float, 2>({rows, depth}, bits));
    const auto b = narrowed(test::random_tensor<float, 2>({depth, columns}, bits));
    const auto before = test::random_tensor<float, 2>({rows, columns}, bits);
    Tensor<float, 2> wide_a(a.extents()), wide_b(b.extents());
    copy(a, wide_a);
    copy(b, wide_b);
    const auto a_across = Tensor<bfloat16, 2>::copy_of(a.view().transpose());
    const auto b_across = Tensor<bfloat16, 2>::copy_of(b.view().transpose());
    const PackedMatrix<float> packed(wide_b, Products::bfloat16);
    const ProductOptions<float> how{.accumulate = true, .products = Products::bfloat16};
    for (const auto isa : test::bfloat16_sets()) {
      simd::use(isa);
      auto expected = before;
      matrix_product(wide_a, wide_b, expected, how);
      const auto check = [&](const auto& left, const auto& right, const char* what) {
        auto out = before;
        matrix_product(left, right, out, how);
        EXPECT_TRUE(test::same_bits(out, expected)) << what << ", " << simd::name(isa);
      };
      check(a, b, "as they lie");
      check(a_across.view().transpose(), b, "a across");
      check(a, b_across.view().transpose(), "b across");
      check(a, wide_b, "b is float");
      check(wide_a, b_across.view().transpose(), "a is float");
      check(a, packed, "b is packed");
      Tensor<bfloat16, 2> a_memory, b_memory;
      check(lying(a, a_memory, false, 3), lying(b_across, b_memory, true, 2), "far apart");
    }
  }
}

TEST(Bfloat16Product, OfTwoFactorsInBfloat16NeedsNoOption) {
  std::mt19937_64 bits(19);
  const auto a = narrowed(test::random_tensor<float, 2>({5, 40}, bits));
  const auto b = narrowed(test::random_tensor<float, 2>({40, 7}, bits));
  Tensor<float, 2> asked({5, 7}), out({5, 7}), wide({5, 40});
  matrix_product(a, b, asked, {.products = Products::bfloat16});
  matrix_product(a, b, out);
  EXPECT_TRUE(test::same_bits(out, asked));
  const Tensor<float, 2> returned = matrix_product(a, b);
  EXPECT_TRUE(test::same_bits(returned, asked));
  copy(a, wide);
  const auto before = out;
  EXPECT_THROW(matrix_product(wide, b, out), InvalidArgument) << "b alone is in bfloat16";
  EXPECT_THROW(matrix_product(a, Tensor<float, 2>({40, 7}), out), InvalidArgument);
  EXPECT_THROW(matrix_product(a, PackedMatrix<float>(Tensor<float, 2>({40, 7})), out),
               InvalidArgument)
      << "packed for exact products";
  EXPECT_THROW(matrix_product(a, a, out), ShapeError);
  EXPECT_THROW(matrix_product(a, b, out, {.products = Products::int16}), InvalidArgument);
  EXPECT_TRUE(test::same_bits(out, before));
}

TEST(Bfloat16Product, OfOtherNumbersIsRefused) {
  const Tensor<double, 2> wide({2, 2}, {1, 2, 3, 4});
  const Tensor<float, 2> narrow({2, 2}, {1, 2, 3, 4});
  auto out = wide;
  auto narrow_out = narrow;
  EXPECT_THROW(matrix_product(wide, wide, out, {.products = Products::bfloat16}), InvalidArgument);
  EXPECT_THROW(matrix_product(narrow, narrow, narrow_out, {.products = Products::int16}),
               InvalidArgument);
  EXPECT_TRUE(test::same_bits(out, wide) && test::same_bits(narrow_out, narrow));
}

}  // namespace
}  // namespace heed
