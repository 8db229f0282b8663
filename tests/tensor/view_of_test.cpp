// SPDX-License-Identifier: MIT
#include <heed/tensor/view_of.hpp>

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <heed/tensor/rows.hpp>

// Someone else's container, made known to the library in three lines.
namespace other {
struct Image {
  int height, width;
  std::vector<float> pixels;
};
// What it will be when it is asked for.
struct Negative {
  const Image* of;
};
}  // namespace other
namespace heed {
template <>
struct ViewAdapter<other::Image> {
  static TensorView<float, 2> view(other::Image& image) {
    return {image.pixels.data(), {image.height, image.width}};
  }
  static TensorView<const float, 2> view(const other::Image& image) {
    return {image.pixels.data(), {image.height, image.width}};
  }
  static other::Image result(const Extents<2>& extents) {
    return {static_cast<int>(extents[0]), static_cast<int>(extents[1]),
            std::vector<float>(static_cast<std::size_t>(extents[0] * extents[1]))};
  }
};
template <>
struct ViewAdapter<other::Negative> {
  static other::Image evaluated(const other::Negative& negative) {
    other::Image image = *negative.of;
    for (float& pixel : image.pixels) pixel = -pixel;
    return image;
  }
};

namespace {

template <class Expected, class X>
constexpr bool views_as = std::is_same_v<ViewOf<X>, Expected>;

// Whether there is a view of what is temporary may be asked; making one does not compile.
static_assert(requires { view_of(std::declval<std::vector<float>>()); });

TEST(ViewOf, KeepsConst) {
  static_assert(views_as<TensorView<float, 2>, Tensor<float, 2>>);
  static_assert(views_as<TensorView<const float, 2>, const Tensor<float, 2>>);
  static_assert(views_as<TensorView<float, 2>, const TensorView<float, 2>>);
  static_assert(views_as<TensorView<const float, 2>, TensorView<const float, 2>>);
  static_assert(views_as<TensorView<double, 1>, std::vector<double>>);
  static_assert(views_as<TensorView<const double, 1>, const std::vector<double>>);
  static_assert(views_as<TensorView<int, 1>, std::span<int>>);
  static_assert(views_as<TensorView<const int, 1>, std::span<const int, 3>>);
  static_assert(views_as<TensorView<bool, 1>, std::array<bool, 4>>);
  static_assert(views_as<TensorView<const bool, 1>, const std::array<bool, 4>>);
  static_assert(views_as<TensorView<float, 2>, other::Image>);
  static_assert(views_as<TensorView<const float, 2>, const other::Image>);
  static_assert(std::is_same_v<ValueOf<const other::Image>, float>);
}

TEST(ViewOf, RefusesWhatHoldsNoValues) {
  static_assert(!Viewable<int>);
  static_assert(!Viewable<float*>);
  static_assert(!Viewable<std::vector<bool>>, "a bit is not a bool");
  static_assert(!Viewable<std::string>, "text is not numbers");
}

TEST(ViewOf, IsTheSameMemory) {
  Tensor<float, 2> tensor({2, 3});
  EXPECT_EQ(view_of(tensor).data_handle(), tensor.data());
  std::vector<float> values(5);
  EXPECT_EQ(view_of(values).data_handle(), values.data());
  EXPECT_EQ(view_of(values).extent(0), 5);
  std::array<bool, 2> flags{true, false};
  EXPECT_EQ(view_of(flags).data_handle(), flags.data());
  EXPECT_EQ(view_of(std::span<float>(values).subspan(2)).data_handle(), values.data() + 2);
  other::Image image{2, 2, {1, 2, 3, 4}};
  view_of(image)(1, 0) = 9;
  EXPECT_EQ(image.pixels[2], 9);
  EXPECT_EQ(view_of(std::as_const(image))(1, 1), 4);
}

TEST(ViewOf, ResultsAreOfTheContainersKind) {
  other::Image image{1, 2, {1, 1}};
  const other::Image votes = softmax(image);
  EXPECT_EQ(votes.width, 2);
  EXPECT_EQ(votes.pixels[1], 0.5f);
  static_assert(std::is_same_v<decltype(softmax(Tensor<double, 3>())), Tensor<double, 3>>);
}

TEST(ViewOf, ExpressionsAreEvaluatedAndTheRestIsNot) {
  const other::Image image{1, 2, {1, 2}};
  const other::Negative negative{&image};
  static_assert(detail::Expression<other::Negative> && !detail::Expression<other::Image>);
  static_assert(!Viewable<other::Negative>);
  EXPECT_EQ(&detail::evaluated(image), &image);
  EXPECT_EQ(view_of(std::as_const(detail::evaluated(image)))(0, 1), 2);
  const auto& evaluated = detail::evaluated(negative);
  EXPECT_EQ(view_of(evaluated)(0, 1), -2);
}

TEST(OptionalView, TakesEveryRankUpToItsOwn) {
  const Tensor<float, 3> three({2, 3, 4});
  Tensor<float, 2> two({3, 4});
  const std::vector<float> one(4);
  using Read = OptionalView<const float, 3>;
  EXPECT_EQ(Read(three).view().extents(), (Extents<3>{2, 3, 4}));
  EXPECT_EQ(Read(two).view().extents(), (Extents<3>{1, 3, 4}));
  EXPECT_EQ(Read(one).view().extents(), (Extents<3>{1, 1, 4}));
  EXPECT_EQ(Read(three.view().reverse(2)).view().stride(2), -1);
  EXPECT_TRUE(Read(one).given());
  EXPECT_FALSE(Read().given());
  OptionalView<float, 4> written(two);
  written.view()(0, 0, 2, 3) = 7;
  EXPECT_EQ(two(2, 3), 7);
}

}  // namespace
}  // namespace heed
