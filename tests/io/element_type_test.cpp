// SPDX-License-Identifier: MIT
#include <heed/io/element_type.hpp>

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include <heed/tensor/tensor.hpp>

namespace heed {
namespace {

TEST(ElementType, NamesAndWidths) {
  for (int i = 0; i <= static_cast<int>(ElementType::boolean); ++i) {
    const auto type = static_cast<ElementType>(i);
    EXPECT_EQ(element_type(name_of(type)), type);
  }
  EXPECT_EQ(element_type("F8_E4M3"), std::nullopt);
  EXPECT_EQ(width_of(ElementType::bf16), 2u);
  EXPECT_EQ(element_type_of<bool>(), ElementType::boolean);
}

template <class T>
void expect_round_trip(ElementType type, T value, T expected) {
  ASSERT_TRUE(is_readable_as<T>(type));
  std::array<std::byte, 9> bytes{};
  write_element(type, value, bytes.data() + 1);  // at an odd address
  EXPECT_EQ(read_element<T>(type, bytes.data() + 1), expected) << name_of(type);
  for (std::size_t i = 1 + width_of(type); i < bytes.size(); ++i) EXPECT_EQ(bytes[i], std::byte{0});
  for (const Index count : {0, 63, 64, 200}) {  // with and without whole parts
    const std::size_t size = static_cast<std::size_t>(count) * width_of(type);
    const Tensor<T, 1> values({count}, value);
    std::vector<std::byte> many(size + 2);
    write_elements(type, values.data(), count, many.data() + 1);
    EXPECT_EQ(many.front() | many.back(), std::byte{0});
    Tensor<T, 1> read({count + 1}, value);
    read_elements(type, many.data() + 1, count, read.data());
    for (Index i = 0; i < count; ++i) ASSERT_EQ(read[i], expected) << name_of(type) << " " << i;
    EXPECT_EQ(read[count], value);
  }
}

TEST(ElementType, WritesAndReadsBack) {
  expect_round_trip(ElementType::f64, 0.1, 0.1);
  expect_round_trip(ElementType::f32, 0.1, static_cast<double>(0.1f));
  expect_round_trip(ElementType::f64, 0.1f, 0.1f);
  expect_round_trip(ElementType::f16, 1.f / 3, 0.333251953125f);
  expect_round_trip(ElementType::bf16, 1.f / 3, 0.333984375f);
  const double above_a_tie = 1 + 0x1p-11 + 0x1p-30;  // in float it is the tie
  expect_round_trip(ElementType::f16, above_a_tie, 1 + 0x1p-10);
  expect_round_trip(ElementType::f16, -above_a_tie, -1 - 0x1p-10);
  expect_round_trip(ElementType::f16, 1 + 0x3p-11 - 0x1p-30, 1 + 0x1p-10);
  expect_round_trip(ElementType::bf16, 1 + 0x1p-8 + 0x1p-40, 1 + 0x1p-7);
  expect_round_trip(ElementType::bf16, 1e300, std::numeric_limits<double>::infinity());
  expect_round_trip(ElementType::f16, -1e-300, -0.0);
  const bfloat16 third(1.f / 3);
  expect_round_trip(ElementType::bf16, third, third);
  expect_round_trip(ElementType::f32, third, third);
  expect_round_trip(ElementType::f64, third, third);
  expect_round_trip(ElementType::f16, bfloat16(1e5f), bfloat16(HUGE_VALF));
  expect_round_trip(ElementType::f16, float16(1.f / 3), float16(1.f / 3));
  expect_round_trip(ElementType::bf16, float16(1 + 0x1p-10f), float16(1.f));
  expect_round_trip<std::int64_t>(ElementType::i64, -5, -5);
  expect_round_trip<std::int32_t>(ElementType::i32, -5, -5);
  expect_round_trip<std::uint8_t>(ElementType::u8, 200, 200);
  expect_round_trip(ElementType::boolean, true, true);
}

TEST(ElementType, NarrowTypesRoundOnceAndKeepTheirNaNs) {
  std::array<std::byte, 8> bytes{};
  write_element(ElementType::f64, 1 + 0x1p-8 + 0x1p-40, bytes.data());  // in float it is a tie
  EXPECT_EQ(read_element<bfloat16>(ElementType::f64, bytes.data()), bfloat16(1 + 0x1p-7f));
  for (const unsigned bits : {0x7f81u, 0xffffu, 0x0001u, 0x8000u}) {
    bfloat16 value;
    value.bits = static_cast<std::uint16_t>(bits);
    write_element(ElementType::bf16, value, bytes.data());
    EXPECT_EQ(read_element<bfloat16>(ElementType::bf16, bytes.data()).bits, bits);
  }
}

TEST(ElementType, NumbersOfOneKindAreNotReadAsAnother) {
  EXPECT_FALSE(is_readable_as<float>(ElementType::i32));
  EXPECT_FALSE(is_readable_as<std::int32_t>(ElementType::i64));
  EXPECT_FALSE(is_readable_as<bool>(ElementType::u8));
  EXPECT_FALSE(is_readable_as<std::int32_t>(ElementType::f32));
}

}  // namespace
}  // namespace heed
