// SPDX-License-Identifier: MIT
#include <heed/generation/session.hpp>

#include <gtest/gtest.h>

namespace heed::test {
namespace {

TEST(SessionOptions, TakeTheModelsLength) {
  LanguageModelOptions model;
  model.max_length = 70;
  EXPECT_EQ(detail::checked_options({}, model).max_length, 70);
  EXPECT_EQ(detail::checked_options({.max_length = 60}, model).max_length, 60);
  EXPECT_THROW(detail::checked_options({.max_length = 71}, model), InvalidArgument);
  model.positions = PositionKind::rotary;
  EXPECT_EQ(detail::checked_options({.max_length = 71}, model).max_length, 71) << "no table";
}

TEST(SessionOptions, RefuseWhatCannotBe) {
  const LanguageModelOptions model;
  EXPECT_THROW(detail::checked_options({.batch = 0}, model), InvalidArgument);
  EXPECT_THROW(detail::checked_options({.max_length = -1}, model), InvalidArgument);
  EXPECT_THROW(detail::checked_options({.page_size = -1}, model), InvalidArgument);
  EXPECT_THROW(detail::checked_options({.pages = -1}, model), InvalidArgument);
  EXPECT_THROW(detail::checked_options({.slide = -1}, model), InvalidArgument);
  EXPECT_THROW(detail::checked_options({.max_length = 9, .slide = 10}, model), InvalidArgument);
}

TEST(SessionOptions, GiveTheShapeOfCaches) {
  MultiHeadAttentionOptions attention;
  attention.kv_heads = 3;
  attention.head_dim = 5;
  const auto one = detail::cache_shape({.batch = 2, .max_length = 40}, attention);
  EXPECT_EQ(one.pages, 2);
  EXPECT_GE(one.page_size, 40);
  EXPECT_EQ(one.kv_heads, 3);
  EXPECT_EQ(one.head_dim, 5);
  EXPECT_EQ(one.value_dim, 5);
  const SessionOptions paged{.batch = 2, .max_length = 40, .page_size = 16};
  EXPECT_EQ(detail::cache_shape(paged, attention).pages, 6);
  auto few = paged;
  few.pages = 4;
  EXPECT_EQ(detail::cache_shape(few, attention).pages, 4);
  EXPECT_EQ(detail::cache_shape(few, attention).page_size, 16);
}

}  // namespace
}  // namespace heed::test
