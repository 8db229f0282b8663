// SPDX-License-Identifier: MIT
// What a token may not see it does not depend on: whatever changes at a position, nothing before it
// changes a bit, under every mask that is joined with Causal and every choice made of content,
// forward and backward, in kernels, layers and models. Padding and neighbors alike.
#include <gtest/gtest.h>

#include <functional>
#include <optional>
#include <utility>

#include <heed/attention/block_top_k.hpp>
#include <heed/layers/multi_head_attention.hpp>
#include <heed/masks.hpp>
#include <heed/models/encoder.hpp>
#include <heed/models/encoder_decoder.hpp>
#include <heed/models/language_model.hpp>

#include "laws/layer_laws.hpp"
#include "support/backward_cases.hpp"
#include "support/mask_catalogue.hpp"
#include "support/sanitizers.hpp"

namespace heed::test {
namespace {

constexpr std::uint64_t seed = 2026;
constexpr Index length = 141;  // no multiple of tiles or blocks
constexpr Index changed_from[] = {1, 22, 63, 64, 97, 140};

/// A mask made of the tensors it is applied to; or not, where it is the same for all.
template <class T>
using MakeMask = std::function<Mask(const Inputs<T>&)>;

template <class T>
MakeMask<T> always(const Mask& mask) {
  return [mask](const Inputs<T>&) { return mask; };
}
template <class T>
MakeMask<T> chosen(const Mask& mask, Index block, Index count) {
  return [=](const Inputs<T>& in) {
    return Mask(block_top_k(in.queries, in.keys, mask, block, count));
  };
}

/// What stands where nobody may look.
enum class Content { other, large, nan, infinite };
constexpr Content contents[] = {Content::other, Content::large, Content::nan, Content::infinite};

template <class T>
T drawn(Content content, std::mt19937_64& bits) {
  const T value = static_cast<T>(bits() >> 11) * static_cast<T>(0x1p-52) - T{1};
  if (content == Content::nan) return std::numeric_limits<T>::quiet_NaN();
  if (content == Content::infinite) {
    return value < 0 ? -std::numeric_limits<T>::infinity() : std::numeric_limits<T>::infinity();
  }
  return content == Content::large ? static_cast<T>(1e30) * value : 5 * value;
}

/// Something else at (item, head, token) of a tensor wherever `where` says so.
template <class T, class Where>
void put(Tensor<T, 4>& tensor, Content content, std::mt19937_64& bits, const Where& where) {
  for (Index item = 0; item < tensor.extent(0); ++item) {
    for (Index head = 0; head < tensor.extent(1); ++head) {
      for (Index token = 0; token < tensor.extent(2); ++token) {
        if (!where(item, head, token)) continue;
        for (Index d = 0; d < tensor.extent(3); ++d) {
          tensor(item, head, token, d) = drawn<T>(content, bits);
        }
      }
    }
  }
}

/// Which rows of queries, and which of keys and values, must not feel a change made elsewhere.
using Rows = std::function<bool(Index item, Index head, Index token)>;

template <class T>
Index rows_that_differ(const Tensor<T, 4>& a, const Tensor<T, 4>& b, const Rows& rows) {
  Index count = 0;
  for (Index item = 0; item < a.extent(0); ++item) {
    for (Index head = 0; head < a.extent(1); ++head) {
      for (Index token = 0; token < a.extent(2); ++token) {
        if (!rows(item, head, token)) continue;
        count += std::memcmp(&a(item, head, token, 0), &b(item, head, token, 0),
                             static_cast<std::size_t>(a.extent(3)) * sizeof(T)) != 0;
      }
    }
  }
  return count;
}

template <class T>
Tensor<T, 4> with_last_axis(const Tensor<T, 3>& tensor) {
  Tensor<T, 4> same({tensor.extent(0), tensor.extent(1), tensor.extent(2), 1});
  std::copy(tensor.begin(), tensor.end(), same.begin());
  return same;
}

/// Attention forward and backward under a mask made of its tensors. The loss looks at `queries`
/// alone; the others are left out by a log-sum-exp of -inf, as layers do for rows without gradient.
template <class T>
struct Computed {
  Computed(const Shape& shape, const Inputs<T>& in, const MakeMask<T>& make, const Rows& queries)
      : gradients(shape) {
    const Mask mask = make(in);
    auto forward = fused(shape, in, mask);
    lse = with_last_axis(forward.lse);
    const Loss<T> loss(shape, seed);
    for (Index item = 0; item < shape.batch; ++item) {
      for (Index head = 0; head < shape.heads; ++head) {
        for (Index token = 0; token < shape.queries; ++token) {
          if (queries(item, head, token)) continue;
          forward.lse(item, head, token) = -std::numeric_limits<T>::infinity();
        }
      }
    }
    attention_backward(in.queries, in.keys, in.values, mask, forward.out, forward.lse,
                       loss.grad_out, gradients.queries, gradients.keys, gradients.values, {},
                       {.grad_log_sum_exp = loss.grad_lse});
    out = std::move(forward.out);
  }
  Tensor<T, 4> out, lse;
  Gradients<T> gradients;
};

/// `change(inputs)` leaves no trace in `queries` (rows of the output and of the gradient of
/// queries) and `keys` (rows of the gradients of keys and values).
template <class T, class ChangeInputs>
void expect_no_trace(const Shape& shape, const MakeMask<T>& make, const Rows& queries,
                     const Rows& keys, const ChangeInputs& change) {
  const Inputs<T> in(shape, seed);
  const Computed<T> before(shape, in, make, queries);
  for (const Content content : contents) {
    SCOPED_TRACE("content " + std::to_string(static_cast<int>(content)) + " seed " +
                 std::to_string(seed));
    Inputs<T> other = in;
    std::mt19937_64 bits(seed + 1);
    change(other, content, bits);
    const Computed<T> after(shape, other, make, queries);
    EXPECT_EQ(rows_that_differ(before.out, after.out, queries), 0) << "rows of output";
    EXPECT_EQ(rows_that_differ(before.lse, after.lse, queries), 0) << "log-sum-exps";
    const auto &a = before.gradients, &b = after.gradients;
    EXPECT_EQ(rows_that_differ(a.queries, b.queries, queries), 0) << "gradients of queries";
    EXPECT_EQ(rows_that_differ(a.keys, b.keys, keys), 0) << "gradients of keys";
    EXPECT_EQ(rows_that_differ(a.values, b.values, keys), 0) << "gradients of values";
  }
}

/// Whatever stands at positions from p on, or at p alone: nothing before p changes a bit, and what
/// is lost before p has no gradient from p on.
template <class T>
void expect_causal(const Shape& shape, const MakeMask<T>& make, bool alone_too = false) {
  for (const Index p : changed_from) {
    if (p >= shape.keys) continue;
    SCOPED_TRACE("changed from " + std::to_string(p));
    const Rows before = [=](Index, Index, Index token) { return token < p; };
    for (const Index past : {shape.keys, p + 1}) {
      if (past != shape.keys && !alone_too) continue;
      const Rows changed = [=](Index, Index, Index token) { return p <= token && token < past; };
      expect_no_trace<T>(shape, make, before, before, [&](Inputs<T>& in, Content c, auto& bits) {
        for (auto* tensor : {&in.queries, &in.keys, &in.values}) put(*tensor, c, bits, changed);
      });
    }
    const Computed<T> computed(shape, Inputs<T>(shape, seed), make, before);
    const Tensor<T, 4> none(computed.gradients.keys.extents());
    const auto after = [=](Index, Index, Index token) { return token >= p; };
    EXPECT_EQ(rows_that_differ(computed.gradients.keys, none, after), 0) << "gradient from after";
  }
}

const Shape shape{2, 2, 1, length, length, 12, 7};

TEST(Causality, EveryMaskWithCausal) {
  const RestoreSettings restore;
  for (const auto isa : supported_sets()) {
    if (threads_sanitized && isa != supported_sets().back()) continue;
    simd::use(isa);
    SCOPED_TRACE(simd::name(isa));
    for_each_mask(length, [](const auto& named) {
      SCOPED_TRACE(named.name);
      expect_causal<float>(shape, always<float>(Mask(named.mask & masks::Causal{})));
    });
  }
}

TEST(Causality, EveryChoiceOfContentUnderEveryMask) {
  for_each_mask(length, [](const auto& named) {
    SCOPED_TRACE(named.name);
    expect_causal<float>(shape, chosen<float>(named.mask & masks::Causal{}, 9, 3));
  });
}

TEST(Causality, ChoicesOfContentOfEverySize) {
  for (const auto& [block, count] : {std::pair<Index, Index>{1, 5}, {5, 2}, {32, 3}, {200, 1}}) {
    SCOPED_TRACE(std::to_string(count) + " blocks of " + std::to_string(block));
    expect_causal<float>(shape, chosen<float>(masks::Causal{}, block, count), true);
    expect_causal<double>(shape, chosen<double>(masks::Causal{}, block, count), true);
  }
}

TEST(Causality, WhatPaddingHoldsChangesNoBit) {
  using namespace masks;
  const std::pair<const char*, Mask> paddings[] = {
      {"right", Padding({length - 3, 77})},
      {"both sides", Padding({3, 0}, {length - 7, 65})},
      {"in between", ValidKeys(2, length, [](Index item, Index key) {
         return (key + item) % 4 != 1 && key % 50 != 7;
       })}};
  for (const auto& [name, padding] : paddings) {
    SCOPED_TRACE(name);
    const Rows real = [&mask = padding](Index item, Index, Index token) {
      return mask.allows({item, 0, 0, token});
    };
    const Rows padded = [&real](Index item, Index head, Index token) {
      return !real(item, head, token);
    };
    for (const Mask& mask : {Mask(Causal{} & padding), padding}) {
      for (const auto& make : {always<float>(mask), chosen<float>(mask, 9, 3)}) {
        expect_no_trace<float>(shape, make, real, real, [&](auto& in, Content c, auto& bits) {
          for (auto* tensor : {&in.queries, &in.keys, &in.values}) put(*tensor, c, bits, padded);
        });
      }
    }
  }
}

TEST(Causality, OtherTextsOfAPackChangeNoBit) {
  const std::vector<Index> starts = {0, 4, 61, 63, 100, length};
  const auto text_of = [&](Index token) {
    return std::upper_bound(starts.begin(), starts.end(), token) - starts.begin();
  };
  const masks::Segments pack(starts);
  for (const Mask& mask : {Mask(pack), Mask(pack & masks::Causal{})}) {
    for (std::ptrdiff_t text = 1; text < std::ssize(starts); ++text) {
      const Rows own = [&](Index, Index, Index token) { return text_of(token) == text; };
      const Rows others = [&](Index, Index, Index token) { return text_of(token) != text; };
      for (const auto& make : {always<float>(mask), chosen<float>(mask, 9, 3)}) {
        expect_no_trace<float>(shape, make, own, own, [&](auto& in, Content c, auto& bits) {
          for (auto* tensor : {&in.queries, &in.keys, &in.values}) put(*tensor, c, bits, others);
        });
      }
    }
  }
}

TEST(Causality, NeighborsAndOtherHeadsChangeNoBit) {
  const Shape heads{2, 4, 2, 77, 77, 12, 7};
  const Rows first_item = [](Index item, Index, Index) { return item == 0; };
  const Rows second_item = [](Index item, Index, Index) { return item == 1; };
  for (const auto& make : {always<float>(masks::Causal{}), chosen<float>(masks::Causal{}, 9, 3)}) {
    expect_no_trace<float>(heads, make, first_item, first_item,
                           [&](auto& in, Content c, auto& bits) {
                             for (auto* tensor : {&in.queries, &in.keys, &in.values}) {
                               put(*tensor, c, bits, second_item);
                             }
                           });
    // Query heads 0 and 1 read key head 0.
    expect_no_trace<float>(
        heads, make, [](Index, Index head, Index) { return head < 2; },
        [](Index, Index head, Index) { return head == 0; },
        [](auto& in, Content c, auto& bits) {
          put(in.queries, c, bits, [](Index, Index head, Index) { return head >= 2; });
          for (auto* tensor : {&in.keys, &in.values}) {
            put(*tensor, c, bits, [](Index, Index head, Index) { return head == 1; });
          }
        });
  }
}

/// Attention of a layer under a mask made of its own queries and keys.
template <class T>
struct Retrieving {
  using Output = Tensor<T, 3>;
  using Saved = typename MultiHeadAttention<T>::Saved;

  Mask mask_of(const Tensor<T, 3>& x) const {
    const auto in = attention.inputs(x, x, x);
    return block_top_k(attention.heads_of(in.queries), attention.heads_of(in.keys), masks::Causal{},
                       4, 2);
  }
  Output forward(const Tensor<T, 3>& x) const { return attention.forward(x, mask_of(x)); }
  Output forward(const Tensor<T, 3>& x, Saved& saved) const {
    return attention.forward(x, mask_of(x), saved);
  }
  Tensor<T, 3> backward(const Output& grad, const Saved& saved, Retrieving& gradients) const {
    return attention.backward(grad, saved, gradients.attention);
  }
  static auto members(auto& layer) { return Members{member("attention", layer.attention)}; }

  MultiHeadAttention<T> attention;
};

constexpr Index text_length = 23;

/// Of (batch, tokens, dim), the tokens before p.
template <class T>
Tensor<T, 3> before(const Tensor<T, 3>& x, Index p) {
  return Tensor<T, 3>::copy_of(x.view().slice(1, 0, p));
}

/// All parameter gradients, one after another.
template <class L>
std::vector<float> gradients_of(L& gradients) {
  std::vector<float> all;
  for (const auto& p : flat_parameters<float>(gradients))
    all.insert(all.end(), p.data, p.data + p.size);
  return all;
}
bool same_numbers(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

/// What a loss that looks at the tokens before p alone has to do with: outputs and gradients.
struct Trained {
  Tensor<float, 3> inference, out;
  std::vector<float> gradients;
};

/// `run(input, saved)` and `model.backward`: whatever `other` holds from p on, nothing before p and
/// no gradient of a loss before p differs from that of `input`.
template <class Model, class Input, class Infer, class Train>
void expect_causal_model(const Model& model, const Input& input, const Input& other, Index p,
                         const Infer& infer, const Train& train) {
  const auto run = [&](const Input& given) {
    typename Model::Saved saved;
    const auto out = train(given, saved);
    std::mt19937_64 bits(seed);
    auto grad = random_tensor<float, 3>(out.extents(), bits);
    for (Index item = 0; item < grad.extent(0); ++item) {
      for (Index token = p; token < grad.extent(1); ++token) {
        for (Index i = 0; i < grad.extent(2); ++i) grad(item, token, i) = 0;
      }
    }
    auto gradients = zeros_like(model);
    model.backward(grad, saved, gradients);
    return Trained{before(infer(given), p), before(out, p), gradients_of(gradients)};
  };
  const Trained a = run(input), b = run(other);
  EXPECT_TRUE(same_bits(a.inference, b.inference)) << "inference before " << p;
  EXPECT_TRUE(same_bits(a.out, b.out)) << "training before " << p;
  EXPECT_TRUE(same_numbers(a.gradients, b.gradients)) << "gradients of a loss before " << p;
}

TEST(Causality, ALayerThatChoosesByContent) {
  Random random(seed);
  for (const bool rotary : {false, true}) {
    MultiHeadAttentionOptions options{.model_dim = 16, .heads = 4, .kv_heads = 2};
    if (rotary) options.positions = PositionKind::rotary;
    const Retrieving<float> layer{MultiHeadAttention<float>(options, random)};
    std::mt19937_64 bits(seed);
    const auto x = random_tensor<float, 3>({2, text_length, 16}, bits);
    for (const Index p : {1, 4, 9, 22}) {
      for (const Content content : contents) {
        auto other = x;
        for (Index item = 0; item < 2; ++item) {
          for (Index token = p; token < text_length; ++token) {
            for (Index i = 0; i < 16; ++i) other(item, token, i) = drawn<float>(content, bits);
          }
        }
        expect_causal_model(
            layer, x, other, p, [&](const auto& given) { return layer.forward(given); },
            [&](const auto& given, auto& saved) { return layer.forward(given, saved); });
      }
    }
  }
}

Tokens some_tokens(Index vocabulary) {
  Random random(seed);
  Tokens tokens({2, text_length});
  for (Index& token : tokens) token = random.integer(vocabulary);
  return tokens;
}
/// Other tokens from p on: all of them, or one.
Tokens other_tokens(const Tokens& tokens, Index p, bool all, Index vocabulary) {
  Tokens other = tokens;
  for (Index item = 0; item < 2; ++item) {
    for (Index token = p; token < (all ? text_length : p + 1); ++token) {
      other(item, token) = (tokens(item, token) + 1 + token % 3) % vocabulary;
    }
  }
  return other;
}

void expect_causal_language_model(const LanguageModelOptions& options, const Mask& mask) {
  Random random(seed);
  LanguageModel<float> model(options, random);
  const Tokens tokens = some_tokens(options.vocab_size);
  const Noise noise{.seed = seed};
  for (const Index p : {1, 7, 16, 22}) {
    for (const bool all : {true, false}) {
      expect_causal_model(
          model, tokens, other_tokens(tokens, p, all, options.vocab_size), p,
          [&](const Tokens& given) { return model.forward(given, mask); },
          [&](const Tokens& given, auto& saved) {
            return model.forward(given, mask, noise, saved);
          });
    }
  }
}

LanguageModelOptions small_model() {
  LanguageModelOptions options;
  options.vocab_size = 9;
  options.block.model_dim = 12;
  options.block.heads = 2;
  options.layers = 2;
  options.block.hidden_dim = 10;
  options.max_length = text_length;
  options.block.relative_reach = 6;
  options.tied_head = false;  // a tied one has gradients for every token there is
  options.block.dropout = 0.1;
  options.block.attention_dropout = 0.1;
  options.init_std = 0.3;
  return options;
}

TEST(Causality, LanguageModelsWithEveryKindOfPosition) {
  for (const auto positions : {PositionKind::none, PositionKind::learned, PositionKind::sinusoidal,
                               PositionKind::rotary, PositionKind::relative, PositionKind::alibi}) {
    SCOPED_TRACE(static_cast<int>(positions));
    auto options = small_model();
    options.block.positions = positions;
    expect_causal_language_model(options, masks::Causal{});
    options.tied_head = true;
    options.block.norm_before = false;
    expect_causal_language_model(options, masks::Causal{});
  }
}

TEST(Causality, LanguageModelsUnderEveryMask) {
  auto options = small_model();
  options.block.positions = PositionKind::rotary;
  for_each_mask(text_length, [&](const auto& named) {
    SCOPED_TRACE(named.name);
    expect_causal_language_model(options, named.mask & masks::Causal{});
  });
}

TEST(Causality, EncodersUnderCausalMasks) {
  Random random(seed);
  auto options = EncoderOptions::bert({.model_dim = 12, .heads = 2, .hidden_dim = 10});
  options.vocab_size = 9;
  options.layers = 2;
  options.max_length = text_length;
  options.init_std = 0.3;
  const Encoder<float> model(options, random);
  const Tokens tokens = some_tokens(9);
  for (const Index p : {1, 7, 16, 22}) {
    expect_causal_model(
        model, tokens, other_tokens(tokens, p, true, 9), p,
        [&](const Tokens& given) { return model.forward(given, masks::Causal{}); },
        [&](const Tokens& given, auto& saved) {
          return model.forward(given, masks::Causal{}, saved);
        });
  }
}

TEST(Causality, TargetsOfEncoderDecoders) {
  for (const auto positions : {PositionKind::sinusoidal, PositionKind::learned,
                               PositionKind::rotary, PositionKind::relative}) {
    auto options = EncoderDecoderOptions::original({.model_dim = 12, .heads = 2, .hidden_dim = 10});
    options.source_vocab_size = options.target_vocab_size = 9;
    options.max_length = text_length;
    options.block.positions = positions;
    Random random(seed);
    const EncoderDecoder<float> model(options, random);
    const Tokens tokens = some_tokens(9);
    const EncoderDecoderMasks masks{masks::Full{}, masks::Causal{}, masks::Full{}};
    for (const Index p : {1, 7, 16, 22}) {
      expect_causal_model(
          model, tokens, other_tokens(tokens, p, true, 9), p,
          [&](const Tokens& given) { return model.forward(tokens, given, masks); },
          [&](const Tokens& given, auto& saved) {
            return model.forward(tokens, given, masks, saved);
          });
    }
  }
}

}  // namespace
}  // namespace heed::test
