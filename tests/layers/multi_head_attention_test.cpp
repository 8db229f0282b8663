// SPDX-License-Identifier: MIT
#include <heed/layers/multi_head_attention.hpp>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include <heed/masks.hpp>
#include <heed/tensor/copy.hpp>

#include "laws/layer_laws.hpp"
#include "support/attention_calls.hpp"
#include "support/bfloat16_cases.hpp"

namespace heed::test {
namespace {

auto maker(const MultiHeadAttentionOptions& options) {
  return [options](auto scalar) {
    Random random(1);
    return MultiHeadAttention<decltype(scalar)>(options, random);
  };
}

/// Cross-attention of the first tokens over the others.
template <class T>
struct Cross {
  using Input = Tensor<T, 3>;
  using Output = Tensor<T, 3>;
  using Saved = typename MultiHeadAttention<T>::Saved;
  static constexpr Index queries = 3;

  Output forward(const Input& both, const Mask& mask) const {
    const auto memory = tokens_of(both, queries, both.extent(1));
    return layer.forward(tokens_of(both, 0, queries), memory, memory, mask);
  }
  Output forward(const Input& both, const Mask& mask, Saved& saved) const {
    const auto memory = tokens_of(both, queries, both.extent(1));
    return layer.forward(tokens_of(both, 0, queries), memory, memory, mask, saved);
  }
  Input backward(const Output& grad, const Saved& saved, Cross& gradients) const {
    Input grad_memory(saved.key->extents());
    const auto grad_x = layer.backward(grad, saved, gradients.layer, grad_memory, grad_memory);
    return side_by_side(grad_x, grad_memory);
  }
  static auto members(auto& cross) { return Members{member("", cross.layer)}; }

  MultiHeadAttention<T> layer;
};

const std::vector<std::string> separate_names = {"query.weight", "query.bias",   "key.weight",
                                                 "key.bias",     "value.weight", "value.bias",
                                                 "out.weight",   "out.bias"};

TEST(MultiHeadAttention, KeepsTheLaws) {
  check_layer_laws(maker({.model_dim = 6, .heads = 2}), {2, 5, 6}, separate_names, false,
                   MaskedCall{masks::Causal{}});
}

TEST(MultiHeadAttention, KeepsTheLawsFusedGroupedNormedAndTurned) {
  check_layer_laws(maker({.model_dim = 6,
                          .heads = 4,
                          .kv_heads = 2,
                          .head_dim = 4,
                          .bias = false,
                          .output_bias = false,
                          .fused = true,
                          .query_key_norm = NormKind::rms,
                          .scale = 0.7,
                          .positions = PositionKind::rotary,
                          .rotary = {.base = 50}}),
                   {2, 4, 6},
                   {"query_key_value.weight", "query_norm.weight", "key_norm.weight", "out.weight"},
                   false, MaskedCall{masks::Causal{} & masks::Padding({4, 3})});
}

struct NoisyCall {
  template <class L, class X>
  auto operator()(const L& layer, const X& x) const {
    typename L::Saved saved;
    return layer.forward(x, masks::Causal{}, Noise{7}, saved);
  }
  template <class L, class X>
  auto operator()(const L& layer, const X& x, typename L::Saved& saved) const {
    return layer.forward(x, masks::Causal{}, Noise{7}, saved);
  }
};

TEST(MultiHeadAttention, KeepsTheLawsWithABiasThatIsLearned) {
  auto names = separate_names;
  names.insert(names.end() - 2, "relative_bias");
  const Mask mask = masks::Padding({7, 5});
  check_layer_laws(
      maker({.model_dim = 6, .heads = 2, .positions = PositionKind::relative, .relative_reach = 3}),
      {2, 7, 6}, names, false, MaskedCall{mask});
  check_layer_laws(maker({.model_dim = 6,
                          .heads = 2,
                          .positions = PositionKind::relative,
                          .relative_reach = 9,
                          .dropout = 0.4}),
                   {2, 4, 6}, names, false, NoisyCall{});
  check_layer_laws(maker({.model_dim = 6, .heads = 3, .positions = PositionKind::alibi}), {2, 5, 6},
                   separate_names, false, MaskedCall{masks::Causal{}});
  EXPECT_THROW(
      maker({.model_dim = 6, .positions = PositionKind::relative, .relative_reach = 0})(float{}),
      InvalidArgument);
}

TEST(MultiHeadAttention, KeepsTheLawsWithSoftcapSinksAndWindow) {
  auto names = separate_names;
  names.insert(names.end() - 2, "sinks");
  const MultiHeadAttentionOptions options{.model_dim = 6,
                                          .heads = 2,
                                          .head_dim = 4,
                                          .scale = 2.5,
                                          .softcap = 1.5,
                                          .sinks = true,
                                          .window = 3,
                                          .positions = PositionKind::rotary};
  check_layer_laws(maker(options), {2, 7, 6}, names, false, MaskedCall{masks::Padding({7, 5})});
  auto both = options;
  both.positions = PositionKind::relative;
  both.relative_reach = 4;
  names.insert(names.end() - 3, "relative_bias");
  check_layer_laws(maker(both), {2, 7, 6}, names, false, MaskedCall{masks::Causal{}});
}

/// A window may be set later, and holds beside the layer's own mask.
TEST(MultiHeadAttention, AWindowIsReadByEveryCall) {
  auto layer = maker({.model_dim = 6, .heads = 2})(float{});
  Random random(3);
  Tensor<float, 3> x({1, 8, 6});
  for (float& value : x) value = random.normal<float>();
  const auto expected = layer.forward(x, masks::last_n(3) & masks::Strided{2});
  layer.options.window = 3;
  layer.own_mask = masks::Strided{2};
  EXPECT_TRUE(same_bits(layer.forward(x, masks::Causal{}), expected));
  layer.options.window = -1;
  EXPECT_THROW(layer.forward(x, masks::Full{}), InvalidArgument);
}

/// The options mean what they mean in a call of attention, in every kind of pass.
TEST(MultiHeadAttention, SoftcapSinksAndOwnMaskAreThoseOfACall) {
  auto layer = maker({.model_dim = 6, .heads = 2, .softcap = 0.5, .sinks = true})(double{});
  scatter_parameters(layer, 7);
  layer.own_mask = masks::last_n(3) | masks::first_n(1);
  Random random(8);
  Tensor<double, 3> x({2, 9, 6});
  for (double& value : x) value = 3 * random.normal();
  const auto in = layer.inputs(x, x, x);
  const auto heads = [](const auto& rows) { return rows.view().split(2, 3).permute({0, 2, 1, 3}); };
  const std::vector<double> sinks(layer.score_bias.sinks->begin(), layer.score_bias.sinks->end());
  const auto mask = masks::Causal{} & (masks::last_n(3) | masks::first_n(1));
  Tensor<double, 3> context({2, 9, 6});
  const AttentionOptions<double> call{.softcap = 0.5, .sinks = sinks};
  attention(heads(in.queries), heads(in.keys), heads(in.values), mask,
            context.view().split(2, 3).permute({0, 2, 1, 3}), call);
  const auto expected = layer.out.forward(context);
  EXPECT_TRUE(same_bits(layer.forward(x, masks::Causal{}), expected));
  MultiHeadAttention<double>::Saved saved;
  EXPECT_TRUE(same_bits(layer.forward(x, masks::Causal{}, saved), expected));
  EXPECT_TRUE(same_bits(layer.weights(x, x, masks::Causal{}),
                        attention_weights(heads(in.queries), heads(in.keys), mask, call)));
  Tensor<double, 3> packed({1, 18, 6}, x);
  const auto texts = layer.forward_packed(packed, PackedOffsets({0, 9, 18}), masks::Causal{});
  EXPECT_TRUE(std::equal(texts.begin(), texts.end(), expected.begin()));
}

TEST(MultiHeadAttention, TheLastTokensOfATextMeetAllOfItAsInTheWhole) {
  for (const auto kind : {PositionKind::rotary, PositionKind::alibi, PositionKind::relative}) {
    const auto layer = maker({.model_dim = 8, .heads = 2, .positions = kind})(float{});
    std::mt19937_64 bits(4);
    const auto x = random_tensor<float, 3>({2, 9, 8}, bits);
    const auto last = tokens_of(x, 6, 9);
    const auto whole = layer.forward(x, masks::Causal{});
    EXPECT_TRUE(same_bits(layer.forward(last, x, x, masks::Causal{}), tokens_of(whole, 6, 9)));
    const auto memory = layer.memory_inputs(x);
    for (const Index first : {0, 6}) {  // that of top_left alone
      EXPECT_TRUE(
          same_bits(layer.forward(last, memory, masks::Causal{}, first), tokens_of(whole, 6, 9)));
    }
    const auto weights = layer.weights(x, x, masks::Causal{});
    EXPECT_TRUE(same_bits(layer.weights(last, x, masks::Causal{}),
                          Tensor<float, 4>::copy_of(weights.view().slice(2, 6, 9))));
    typename MultiHeadAttention<float>::Saved of_whole, of_last;
    layer.forward(x, masks::Causal{}, of_whole);
    layer.forward(last, x, x, masks::Causal{}, of_last);
    auto gradients = layer, same = layer;
    auto grad = random_tensor<float, 3>({2, 9, 8}, bits);
    for (Index item : {0, 1}) grad[item].slice(0, 0, 6).fill(0);
    const auto grad_x = layer.backward(grad, of_whole, gradients);
    Tensor<float, 3> grad_memory(x.extents());
    const auto grad_last =
        layer.backward(tokens_of(grad, 6, 9), of_last, same, grad_memory, grad_memory);
    for (Index item : {0, 1}) {
      for (Index token = 0; token < 9; ++token) {
        for (Index i = 0; i < 8; ++i) {
          const float of_query = token < 6 ? 0 : grad_last(item, token - 6, i);
          EXPECT_NEAR(grad_memory(item, token, i) + of_query, grad_x(item, token, i), 1e-5);
        }
      }
    }
  }
}

TEST(MultiHeadAttention, MasksOfTwoTextsSeeTheFirstQueryOnTheFirstKey) {
  const auto layer = maker({.model_dim = 6, .top_left = true})(float{});
  std::mt19937_64 bits(3);
  const auto x = random_tensor<float, 3>({1, 3, 6}, bits),
             y = random_tensor<float, 3>({1, 8, 6}, bits);
  const auto weights = layer.weights(x, y, masks::Causal{});
  for (Index query = 0; query < 3; ++query) {
    for (Index key = 0; key < 8; ++key) EXPECT_EQ(weights(0, 0, query, key) > 0, key <= query);
  }
  EXPECT_GT(maker({.model_dim = 6})(float{}).weights(x, y, masks::Causal{})(0, 0, 0, 5), 0);
  MultiHeadAttention<float>::Saved saved;
  const auto whole = layer.forward(x, y, y, masks::Causal{});
  EXPECT_TRUE(same_bits(layer.forward(x, y, y, masks::Causal{}, saved), whole));
  EXPECT_TRUE(
      same_bits(layer.forward(tokens_of(x, 1, 3), layer.memory_inputs(y), masks::Causal{}, 1),
                tokens_of(whole, 1, 3)));
}

TEST(MultiHeadAttention, KeepsTheLawsOverAMemory) {
  check_layer_laws(
      [](auto scalar) {
        using T = decltype(scalar);
        return Cross<T>{maker({.model_dim = 6, .heads = 3})(scalar)};
      },
      {2, 3 + 4, 6}, separate_names, false, MaskedCall{masks::Padding({4, 2})});
}

/// Attention of the first tokens with keys from the next and values from the last, cut to their
/// widths: what backward gives each input stands where it came from.
template <class T>
struct ThreeInputs {
  using Input = Tensor<T, 3>;
  using Output = Tensor<T, 3>;
  using Saved = typename MultiHeadAttention<T>::Saved;
  static constexpr Index queries = 2, keys = 3, kdim = 5, vdim = 4;

  static Input part(const Input& all, Index first, Index count, Index width) {
    return Input::copy_of(all.view().slice(1, first, first + count).slice(2, 0, width));
  }
  static Input query(const Input& all) { return part(all, 0, queries, all.extent(2)); }
  static Input key(const Input& all) { return part(all, queries, keys, kdim); }
  static Input value(const Input& all) { return part(all, queries + keys, keys, vdim); }

  Output forward(const Input& all, const Mask& mask) const {
    return layer.forward(query(all), key(all), value(all), mask);
  }
  Output forward(const Input& all, const Mask& mask, Saved& saved) const {
    return layer.forward(query(all), key(all), value(all), mask, saved);
  }
  Input backward(const Output& grad, const Saved& saved, ThreeInputs& gradients) const {
    Input grad_key(saved.key->extents()), grad_value(saved.value->extents());
    auto grad_query = layer.backward(grad, saved, gradients.layer, grad_key, grad_value);
    Input all({grad.extent(0), queries + 2 * keys, layer.options.model_dim});
    Index first = 0;
    for (Input* from : {&grad_query, &grad_key, &grad_value}) {
      const Index end = first + from->extent(1);
      copy(*from, all.view().slice(1, first, end).slice(2, 0, from->extent(2)));
      first = end;
    }
    return all;
  }
  static auto members(auto& three) { return Members{member("", three.layer)}; }

  MultiHeadAttention<T> layer;
};

TEST(MultiHeadAttention, KeepsTheLawsWithKeysAndValuesFromDifferentTensors) {
  check_layer_laws(
      [](auto scalar) {
        using T = decltype(scalar);
        return ThreeInputs<T>{maker({.model_dim = 6, .heads = 3, .kdim = 5, .vdim = 4})(scalar)};
      },
      {2, 2 + 3 + 3, 6}, separate_names, false, MaskedCall{masks::Padding({3, 2})});
}

/// x · weightᵀ + bias by hand.
double projected(const Linear<double>& layer, const Tensor<double, 3>& x, Index token, Index i) {
  double sum = (*layer.bias)[i];
  for (Index d = 0; d < x.extent(2); ++d) sum += layer.weight(i, d) * x(0, token, d);
  return sum;
}

TEST(MultiHeadAttention, QueryKeyValueAndWeightsAreThoseOfPyTorch) {
  const auto layer = maker({.model_dim = 6, .heads = 2, .kdim = 5, .vdim = 4})(double{});
  EXPECT_EQ(layer.projections.key->weight.extents(), (Extents<2>{6, 5}));
  EXPECT_EQ(layer.projections.value->weight.extents(), (Extents<2>{6, 4}));
  std::mt19937_64 bits(31);
  const auto query = random_tensor<double, 3>({1, 2, 6}, bits),
             key = random_tensor<double, 3>({1, 3, 5}, bits),
             value = random_tensor<double, 3>({1, 3, 4}, bits);
  Tensor<double, 4> weights;
  Tensor<double, 3> mean;
  const auto y = layer.forward(query, key, value, masks::Full{}, weights);
  EXPECT_TRUE(same_bits(layer.forward(query, key, value, masks::Full{}, mean), y));
  EXPECT_TRUE(same_bits(layer.forward(query, key, value, masks::Full{}), y));
  EXPECT_TRUE(same_bits(layer.weights(query, key, masks::Full{}), weights));
  Tensor<double, 3> context({1, 2, 6});
  for (Index q = 0; q < 2; ++q) {
    for (Index head = 0; head < 2; ++head) {
      double scores[3] = {}, sum = 0;
      for (Index k = 0; k < 3; ++k) {
        for (Index i = 3 * head; i < 3 * head + 3; ++i) {
          scores[k] += projected(*layer.projections.query, query, q, i) *
                       projected(*layer.projections.key, key, k, i);
        }
        sum += scores[k] = std::exp(scores[k] / std::sqrt(3.));
      }
      for (Index k = 0; k < 3; ++k) {
        EXPECT_NEAR(weights(0, head, q, k), scores[k] / sum, 1e-12);
        for (Index i = 3 * head; i < 3 * head + 3; ++i) {
          context(0, q, i) += scores[k] / sum * projected(*layer.projections.value, value, k, i);
        }
      }
    }
    for (Index k = 0; k < 3; ++k) {
      EXPECT_NEAR(mean(0, q, k), (weights(0, 0, q, k) + weights(0, 1, q, k)) / 2, 1e-15);
    }
    for (Index i = 0; i < 6; ++i) {
      EXPECT_NEAR(y(0, q, i), projected(layer.out, context, q, i), 1e-12);
    }
  }
}

TEST(MultiHeadAttention, QueryKeyValueOfOneTensorAreSelfAttention) {
  const auto layer = maker({.model_dim = 6, .heads = 2, .fused = true})(float{});
  std::mt19937_64 bits(32);
  const auto x = random_tensor<float, 3>({2, 5, 6}, bits), same = x;
  const auto y = layer.forward(x, masks::Causal{});
  EXPECT_TRUE(same_bits(layer.forward(x, x, x, masks::Causal{}), y));
  EXPECT_TRUE(same_bits(layer.forward(x, same, x, masks::Causal{}), y));
  EXPECT_THROW(layer.forward(x, Tensor<float, 3>({2, 5, 7}), x, masks::Causal{}), ShapeError);
  EXPECT_THROW(layer.forward(x, x, tokens_of(x, 0, 3), masks::Causal{}), ShapeError);
}

TEST(MultiHeadAttention, ATokenIsTheSameWhateverComesAfterIt) {
  const auto layer =
      maker({.model_dim = 32, .heads = 4, .positions = PositionKind::rotary})(float{});
  std::mt19937_64 bits(3);
  const auto x = random_tensor<float, 3>({2, 130, 32}, bits);
  const auto whole = layer.forward(x, masks::Causal{});
  for (const Index length : {1, 2, 17, 64, 96, 129}) {
    EXPECT_TRUE(same_bits(layer.forward(tokens_of(x, 0, length), masks::Causal{}),
                          tokens_of(whole, 0, length)))
        << length;
  }
}

TEST(MultiHeadAttention, KeysAndValuesComputedOnceGiveTheSameBits) {
  const auto layer = maker({.model_dim = 8, .heads = 2, .query_key_norm = NormKind::rms})(float{});
  std::mt19937_64 bits(4);
  const auto x = random_tensor<float, 3>({2, 3, 8}, bits);
  const auto memory = random_tensor<float, 3>({2, 5, 8}, bits);
  const auto expected = layer.forward(x, memory, memory, masks::Full{});
  EXPECT_TRUE(same_bits(layer.forward(x, layer.memory_inputs(memory), masks::Full{}), expected));
  auto packed = layer;
  packed.pack();
  EXPECT_FALSE(packed.out.packed.empty());
  EXPECT_TRUE(same_bits(packed.forward(x, memory, memory, masks::Full{}), expected));
}

TEST(MultiHeadAttention, WeightsAreThoseOfTheOutput) {
  const auto layer = maker({.model_dim = 8, .heads = 2})(double{});
  std::mt19937_64 bits(5);
  const auto x = random_tensor<double, 3>({1, 4, 8}, bits);
  const auto weights = layer.weights(x, x, masks::Causal{});
  const auto in = layer.inputs(x, x, x);
  Tensor<double, 3> context({1, 4, 8});
  for (Index h = 0; h < 2; ++h) {
    for (Index q = 0; q < 4; ++q) {
      for (Index k = 0; k < 4; ++k) {
        EXPECT_EQ(weights(0, h, q, k) == 0, k > q);
        for (Index d = 0; d < 4; ++d) {
          context(0, q, 4 * h + d) += weights(0, h, q, k) * in.values(0, k, 4 * h + d);
        }
      }
    }
  }
  const auto expected = layer.out.forward(context), y = layer.forward(x, masks::Causal{});
  for (Index i = 0; i < y.size(); ++i) EXPECT_NEAR(y.data()[i], expected.data()[i], 1e-14);
}

TEST(MultiHeadAttention, GradientsOfAMemoryAreNotAddedToThoseOfTheQuery) {
  for (const bool fused : {false, true}) {
    const auto layer = maker({.model_dim = 8, .heads = 2, .fused = fused})(float{});
    std::mt19937_64 bits(6);
    const auto x = random_tensor<float, 3>({1, 4, 8}, bits), grad = x;
    auto gradients = zeros_like(layer);
    MultiHeadAttention<float>::Saved alone, thrice, saved;
    layer.forward(x, masks::Causal{}, alone);
    layer.forward(x, x, x, masks::Causal{}, thrice);
    const auto expected = layer.backward(grad, alone, gradients);
    const auto same = layer.backward(grad, thrice, gradients);
    for (Index i = 0; i < x.size(); ++i) EXPECT_NEAR(same.data()[i], expected.data()[i], 1e-5);
    for (const Index tokens : {4, 6}) {
      const auto memory = random_tensor<float, 3>({1, tokens, 8}, bits);
      const auto before = gradients;
      layer.forward(x, memory, memory, masks::Full{}, saved);
      try {
        layer.backward(grad, saved, gradients);
        ADD_FAILURE() << "accepted";
      } catch (const InvalidArgument& error) {
        EXPECT_STREQ(error.what(),
                     "MultiHeadAttention: query, key and value have gradients of their own here: "
                     "backward(grad, saved, gradients, grad_key, grad_value)");
      }
      EXPECT_EQ(before.out.weight, gradients.out.weight) << "nothing is added";
    }
  }
}

TEST(MultiHeadAttention, KeepsTheLawsWhileWeightsAreDropped) {
  check_layer_laws(maker({.model_dim = 6, .heads = 2, .dropout = 0.4}), {2, 5, 6}, separate_names,
                   false, NoisyCall{});
}

TEST(MultiHeadAttention, DropsWeightsInTrainingAlone) {
  const auto layer = maker({.model_dim = 8, .heads = 2, .dropout = 0.5})(float{});
  std::mt19937_64 bits(6);
  const auto x = random_tensor<float, 3>({1, 9, 8}, bits);
  const auto plain = layer.forward(x, masks::Causal{});
  MultiHeadAttention<float>::Saved saved;
  EXPECT_TRUE(same_bits(layer.forward(x, masks::Causal{}, saved), plain));
  EXPECT_FALSE(same_bits(layer.forward(x, masks::Causal{}, Noise{1}, saved), plain));
  EXPECT_THROW(maker({.model_dim = 8, .dropout = 1.5})(float{}), InvalidArgument);
}

/// The three are computed together where queries and keys have one input, else one by one.
/// The bits of a layer do not depend on how it is called, and are those of its parts.
TEST(MultiHeadAttention, ProductsInBfloat16AreAlsoThoseOfAttention) {
  Random random(3);
  MultiHeadAttention<float> layer({.model_dim = 24, .heads = 3}, random);
  std::mt19937_64 bits(5);
  const auto x = random_tensor<float, 3>({1, 90, 24}, bits);
  const auto exact = layer.forward(x, masks::Causal{});
  set_products(layer, Products::bfloat16);
  const auto narrow = layer.forward(x, masks::Causal{});
  const auto in = layer.inputs(x, x, x);
  const auto attended = [&](const AttentionOptions<float>& options) {
    Tensor<float, 3> context(x.extents());
    attention(layer.heads_of(in.queries), layer.heads_of(in.keys), layer.heads_of(in.values),
              masks::Causal{}, layer.heads_of(context), options);
    return layer.out.forward(context);
  };
  EXPECT_FALSE(same_bits(narrow, exact));
  EXPECT_FALSE(same_bits(narrow, attended({})));
  EXPECT_TRUE(same_bits(narrow, attended({.products = Products::bfloat16})));
  MultiHeadAttention<float>::Saved saved;
  EXPECT_TRUE(same_bits(narrow, layer.forward(x, masks::Causal{}, saved)));
  const auto packed = layer.forward_packed(x, {0, 40, 90}, masks::Causal{});
  EXPECT_TRUE(same_bits(tokens_of(packed, 0, 40), tokens_of(narrow, 0, 40)));
  EXPECT_TRUE(saved.narrow && saved.inputs.queries.empty());
  const auto grads = [&] {
    auto gradients = zeros_like(layer);
    return layer.backward(x, saved, gradients);
  };
  const auto rounded = grads();
  saved.narrow.reset();
  saved.inputs = in;
  EXPECT_TRUE(same_bits(rounded, grads())) << "inputs that are kept in bfloat16 change no bit";
  layer.products = Products::exact;
  EXPECT_FALSE(same_bits(rounded, grads())) << "attention_backward takes the option too";
  for (auto* kept : {&saved.inputs.queries, &saved.inputs.keys, &saved.inputs.values}) {
    *kept = rounded_to_bfloat16(*kept);
  }
  const auto exactly = grads();
  layer.products = Products::bfloat16;
  layer.forward(x, masks::Causal{}, saved);
  layer.products = Products::exact;
  EXPECT_TRUE(same_bits(exactly, grads())) << "and from inputs that are kept so";
  layer.forward(x, masks::Causal{}, saved);
  EXPECT_FALSE(saved.narrow);
}

TEST(AttentionInputs, SameBitsTogetherAndOneByOne) {
  for (const bool fused : {false, true}) {
    for (const bool normed : {false, true}) {
      Random random(3);
      MultiHeadAttentionOptions options{.model_dim = 24, .heads = 4, .kv_heads = 2, .fused = fused};
      if (normed) options.query_key_norm = NormKind::rms;
      options.positions = PositionKind::rotary;
      const MultiHeadAttention<float> layer(options, random);
      std::mt19937_64 bits(4);
      const auto x = random_tensor<float, 3>({2, 5, 24}, bits);
      const auto same_x = x;
      const auto together = layer.inputs(x, x, x, 7), apart = layer.inputs(x, same_x, same_x, 7);
      EXPECT_TRUE(same_bits(together.queries, apart.queries)) << fused << normed;
      EXPECT_TRUE(same_bits(together.keys, apart.keys)) << fused << normed;
      EXPECT_TRUE(same_bits(together.values, apart.values)) << fused << normed;
      EXPECT_EQ(together.queries.extents(), (Extents<3>{2, 5, 24}));
      EXPECT_EQ(together.keys.extents(), (Extents<3>{2, 5, 12}));
    }
  }
}

TEST(MultiHeadAttentionOptions, ZerosStandForTheUsual) {
  const auto options = detail::completed({.model_dim = 12, .heads = 3});
  EXPECT_EQ(options.kv_heads, 3);
  EXPECT_EQ(options.head_dim, 4);
  EXPECT_EQ(options.kdim, 12);
  EXPECT_EQ(options.vdim, 12);
}

TEST(MultiHeadAttentionOptions, RefusesWhatCannotBe) {
  for (const MultiHeadAttentionOptions& bad :
       {MultiHeadAttentionOptions{.model_dim = 0},
        {.model_dim = 10, .heads = 3},
        {.model_dim = 12, .heads = 4, .kv_heads = 3},
        {.model_dim = 12, .heads = 0},
        {.model_dim = 12, .softcap = -1},
        {.model_dim = 12, .softcap = std::numeric_limits<double>::infinity()},
        {.model_dim = 12, .window = -1},
        {.model_dim = 12, .heads = 2, .kdim = 5, .fused = true}}) {
    EXPECT_THROW(detail::completed(bad), InvalidArgument);
  }
}

TEST(MultiHeadAttention, ASavedWithTheMaskOfAnotherCallIsRefusedBeforeAnythingIsAdded) {
  Random random(1);
  const MultiHeadAttention<float> layer(8, 2, random);
  const auto ones = [](Index tokens) {
    Tensor<float, 3> x({1, tokens, 8});
    x.fill(1);
    return x;
  };
  const auto dense = [](Index tokens) {
    const std::vector<bool> answers(static_cast<std::size_t>(tokens * tokens), true);
    return masks::Dense(answers, {1, 1, tokens, tokens});
  };
  MultiHeadAttention<float>::Saved six, five;
  layer.forward(ones(6), dense(6), six);
  layer.forward(ones(5), dense(5), five);
  six.mask = five.mask;
  auto gradients = zeros_like(layer);
  EXPECT_THROW(layer.backward(ones(6), six, gradients), ShapeError);
  for_each_parameter(
      [](std::string_view name, const auto& gradient) {
        for (const float value : gradient) EXPECT_EQ(value, 0.f) << name;
      },
      gradients);
}

TEST(MultiHeadAttention, AnInputThatDoesNotFitIsNamed) {
  for (const bool fused : {false, true}) {
    Random random(1);
    const MultiHeadAttention<float> layer(
        {.model_dim = 16, .heads = 2, .kdim = fused ? 0 : 8, .fused = fused}, random);
    const Index width = fused ? 16 : 8;
    const Tensor<float, 3> x({1, 3, 16}), narrow({1, 3, 12}), keys({1, 3, width});
    const auto message = [&](const Tensor<float, 3>& q, const Tensor<float, 3>& k,
                             const Tensor<float, 3>& v) -> std::string {
      try {
        layer.forward(q, k, v, masks::Full{});
      } catch (const ShapeError& error) {
        return error.what();
      }
      return "";
    };
    const auto expected = [](const char* name, const char* wide) {
      return std::string("MultiHeadAttention: ") + name + " is (1, 3, 12), expected " + wide +
             " as the last extent";
    };
    EXPECT_EQ(message(narrow, keys, x), expected("query", "16"));
    EXPECT_EQ(message(x, narrow, x), expected("key", fused ? "16" : "8"));
    EXPECT_EQ(message(x, keys, narrow), expected("value", "16"));
    EXPECT_EQ(message(x, keys, x), "");
    EXPECT_EQ(message(narrow, narrow, narrow), expected("x", "16"));
  }
}

}  // namespace
}  // namespace heed::test
