// SPDX-License-Identifier: MIT
#include <heed/layers/parameters.hpp>

#include <gtest/gtest.h>

namespace heed {
namespace {

struct Line {
  Tensor<float, 2> weight{Extents<2>{2, 3}};
  std::optional<Tensor<float, 1>> bias;
  float scale = 1;  // configuration

  static auto members(auto& layer) {
    return Members{member("weight", layer.weight), member("bias", layer.bias)};
  }
};

struct Plain {
  static auto members(auto&) { return Members{}; }
};

struct Model {
  Tensor<double, 3> table{{1, 2, 2}};
  std::vector<Line> blocks;
  Plain plain;
  Line head;

  static auto members(auto& model) {
    return Members{member("table", model.table), member("blocks", model.blocks),
                   member("plain", model.plain), member("head", model.head)};
  }
};

Model two_blocks() {
  Model model;
  model.blocks.resize(2);
  model.blocks[1].bias.emplace(Extents<1>{3});
  model.head.scale = 7;
  return model;
}

TEST(Parameters, NamesAndOrder) {
  const Model model = two_blocks();
  std::vector<std::string> names;
  for_each_parameter(
      [&](std::string_view name, const auto& parameter) {
        names.push_back(std::string(name) + ":" + std::to_string(parameter.size()));
      },
      model);
  EXPECT_EQ(names, (std::vector<std::string>{"table:4", "blocks.0.weight:6", "blocks.1.weight:6",
                                             "blocks.1.bias:3", "head.weight:6"}));
  EXPECT_EQ(parameter_count(model), 25);
  EXPECT_EQ(parameter_count(Plain{}), 0);
}

TEST(Parameters, SideBySide) {
  Model model = two_blocks();
  const Model gradients = [] {
    Model ones = two_blocks();
    for_each_parameter(
        [](std::string_view, auto& p) {
          for (auto& v : p) v = 1;
        },
        ones);
    return ones;
  }();
  Model sum = zeros_like(model);
  for_each_parameter(
      [](std::string_view name, auto& a, const auto& b, auto& c) {
        static_assert(std::is_same_v<decltype(a), decltype(c)>);
        for (Index i = 0; i < a.size(); ++i) c.data()[i] = a.data()[i] += 2 * b.data()[i];
        if (name == "head.weight") a.data()[0] = 5;
      },
      model, gradients, sum);
  EXPECT_EQ(model.table.data()[3], 2);
  EXPECT_EQ((*sum.blocks[1].bias)[2], 2);
  EXPECT_EQ(model.head.weight(0, 0), 5);
  EXPECT_EQ(sum.head.weight(0, 0), 2);
}

TEST(Parameters, ZerosKeepShapeAndConfiguration) {
  Model model = two_blocks();
  model.table.data()[0] = 3;
  const Model zeros = zeros_like(model);
  EXPECT_EQ(zeros.table.data()[0], 0);
  EXPECT_EQ(model.table.data()[0], 3);
  EXPECT_EQ(zeros.head.scale, 7);
  EXPECT_EQ(parameter_count(zeros), parameter_count(model));
  set_zero(model);
  EXPECT_EQ(model.table.data()[0], 0);
}

/// A layer of others of its own type.
struct Tree {
  Tensor<Index, 1> count{Extents<1>{1}};
  std::vector<Tree> children;

  static auto members(auto& tree) {
    return Members{member("count", tree.count), member("children", tree.children)};
  }
};

TEST(Parameters, LayersOfTheirOwnType) {
  Tree tree;
  tree.children.resize(2);
  tree.children[1].children.resize(1);
  const Tree other = tree;
  std::string names;
  for_each_parameter(
      [&](std::string_view name, auto& count, const auto&) {
        count[0] = static_cast<Index>(names.size());
        names += std::string(name) + ' ';
      },
      tree, other);
  EXPECT_EQ(names, "count children.0.count children.1.count children.1.children.0.count ");
  EXPECT_EQ(tree.children[1].children[0].count[0], 40);  // writes went to their tensor
  EXPECT_EQ(other.children[1].children[0].count[0], 0);
}

void expect_refused(const Model& other, const std::string& words) {
  const Model model = two_blocks();
  int visits = 0;
  try {
    for_each_parameter([&](std::string_view, const auto&, const auto&) { ++visits; }, model, other);
    ADD_FAILURE() << words;
  } catch (const ShapeError& error) {
    EXPECT_EQ(error.what(), words);
  }
  EXPECT_EQ(visits, 0);
}

TEST(Parameters, ModelsOfOtherShapesAreRefusedBeforeTheFirstVisit) {
  Model other = two_blocks();
  other.head.weight = Tensor<float, 2>({3, 2});
  expect_refused(other, "parameters: head.weight is (2, 3) in one model and (3, 2) in another");
  other = two_blocks();
  other.blocks.pop_back();
  expect_refused(other, "parameters: models differ in the number of blocks");
  other = two_blocks();
  other.head.bias.emplace();
  expect_refused(other, "parameters: head.bias is in one model and not in another");
}

}  // namespace
}  // namespace heed
