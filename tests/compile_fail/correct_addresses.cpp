// SPDX-License-Identifier: MIT
// Types whose operator& gives no address.
#include <vector>

#include <heed/attention.hpp>
#include <heed/layers/parameters.hpp>
#include <heed/masks.hpp>

struct Mine {
  bool allows(heed::Position at) const { return at.key <= at.query; }
  void operator&() const = delete;
};
struct MyFunction {
  float value(float score, heed::Position) const { return score; }
  float derivative(float, heed::Position) const { return 1; }
  void operator&() const = delete;
};
void use(heed::Tensor<float, 3>& x, const heed::Tensor<float, 2>& lse) {
  const auto out = heed::attention(x, x, x, Mine{}, {.score_function = MyFunction{}});
  heed::attention_backward(x, x, x, Mine{}, out, lse, x, {.score_function = MyFunction{}});
  heed::attention(x, x, x, heed::masks::Causal{} & ~heed::Mask(Mine{}));
  heed::attention(x, x, x, heed::masks::PerHead(std::vector<Mine>{{}}));
  heed::plan(x, x, x, Mine{});
}

struct MyLayer {
  heed::Tensor<float, 1> weight;
  static auto members(auto& layer) { return heed::Members{heed::member("weight", layer.weight)}; }
  void operator&() const = delete;
};
struct MyModel {
  MyLayer layer;
  static auto members(auto& model) { return heed::Members{heed::member("layer", model.layer)}; }
  void operator&() const = delete;
};
void use(MyModel& model, const MyModel& other) {
  heed::for_each_parameter([](auto, auto&, const auto&) {}, model, other);
  heed::zeros_like(model);
}
