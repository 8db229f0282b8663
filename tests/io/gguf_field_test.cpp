// SPDX-License-Identifier: MIT
#include <heed/io/gguf_header.hpp>

#include <gtest/gtest.h>

#include <string>

#include "support/gguf_file.hpp"

namespace heed {
namespace {

GgufField field_of(GgufValueType type, const std::string& value, std::size_t count = 1) {
  return {"k", type, count != 1, count, reinterpret_cast<const std::byte*>(value.data())};
}

TEST(GgufField, IntegersOfEveryWidthAndWhatDoesNotFit) {
  const std::string minus = test::raw<std::int64_t>(-3), large = test::raw(~std::uint64_t{0});
  const GgufField field = field_of(GgufValueType::i64, minus);
  EXPECT_EQ(field.values<std::int8_t>()[0], -3);
  EXPECT_EQ(test::error_of([&] { field.values<std::uint32_t>(); }), "'k': -3 is out of range");
  EXPECT_EQ(field_of(GgufValueType::u64, large).values<std::uint64_t>()[0], ~std::uint64_t{0});
  EXPECT_THROW(field_of(GgufValueType::u64, large).values<std::int64_t>(), FileError);
  const std::string bytes = "\x80\xff";
  EXPECT_EQ(field_of(GgufValueType::i8, bytes, 2).values<int>(), (std::vector<int>{-128, -1}));
  EXPECT_EQ(field_of(GgufValueType::u8, bytes, 2).values<int>(), (std::vector<int>{128, 255}));
}

TEST(GgufField, EveryKindStaysItsKind) {
  const std::string half = test::raw(0.5f), one = test::raw<std::uint8_t>(1),
                    text = test::gguf_text("ab");
  const GgufField real = field_of(GgufValueType::f32, half),
                  boolean = field_of(GgufValueType::boolean, one),
                  words = field_of(GgufValueType::text, text);
  EXPECT_EQ(real.values<double>()[0], 0.5);
  EXPECT_EQ(boolean.values<bool>()[0], true);
  EXPECT_EQ(words.values<std::string_view>()[0], "ab");
  EXPECT_EQ(test::error_of([&] { real.values<int>(); }), "'k' is f32, expected an integer");
  EXPECT_EQ(test::error_of([&] { boolean.values<int>(); }), "'k' is bool, expected an integer");
  EXPECT_EQ(test::error_of([&] { words.values<bool>(); }), "'k' is text, expected bool");
  EXPECT_EQ(test::error_of([&] { real.values<std::string_view>(); }), "'k' is f32, expected text");
  EXPECT_EQ(test::error_of([&] { words.values<float>(); }),
            "'k' is text, expected a floating-point number");
  EXPECT_THROW(field_of(GgufValueType::array, text).values<int>(), FileError);
}

}  // namespace
}  // namespace heed
