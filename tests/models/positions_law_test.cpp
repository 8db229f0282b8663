// SPDX-License-Identifier: MIT
// The same text alone, padded on the left or on the right, or packed behind another: the same
// numbers, for every kind of position and every model.
#include <heed/layers/positions.hpp>

#include <string>
#include <utility>
#include <vector>

#include <heed/masks.hpp>
#include <heed/models.hpp>

#include "laws/layer_laws.hpp"

namespace heed::test {
namespace {

const std::vector<PositionKind> kinds = {PositionKind::none,       PositionKind::learned,
                                         PositionKind::sinusoidal, PositionKind::rotary,
                                         PositionKind::relative,   PositionKind::alibi};

/// One row of tokens in which a text begins at a column, what hides the rest of the row, and where
/// its tokens stand.
struct Placed {
  std::string name;
  Tokens tokens;
  Index begin;
  Mask visible;
  Positions positions;
};

Tokens row_of(Index length, std::uint64_t seed, Index vocabulary) {
  Random random(seed);
  Tokens tokens({1, length});
  for (Index& token : tokens) token = 1 + random.integer(vocabulary - 1);
  return tokens;
}

Placed placed(const std::string& name, const Tokens& text, Index before, Index behind, Index fill) {
  const Index end = before + text.extent(1);
  Placed made{name, Tokens({1, end + behind}), before, masks::Full{}, {}};
  std::fill(made.tokens.begin(), made.tokens.end(), fill);
  std::copy(text.begin(), text.end(), made.tokens.data() + before);
  return made;
}

/// All ways to place a text of 5 or more tokens. Token 0 is padding.
std::vector<Placed> places_of(const Tokens& text) {
  const Index length = text.extent(1);
  std::vector<Placed> all;
  for (const Index before : {0, 3}) {
    for (const Index behind : {0, 4}) {
      auto place = placed(std::to_string(before) + " before, " + std::to_string(behind) + " behind",
                          text, before, behind, 0);
      const masks::Padding padding({before}, {before + length});
      place.visible = padding;
      place.positions = positions_of(padding, place.tokens.extents());
      all.push_back(place);
      const auto found = masks::padding_of_tokens(
          std::vector<Index>(place.tokens.begin(), place.tokens.end()), place.tokens.extent(1), 0);
      place.name += ", by tokens";
      place.visible = found;
      place.positions = positions_of(found, place.tokens.extents());
      all.push_back(place);
    }
  }
  auto packed = placed("packed", text, 5, 2, 3);
  const masks::Segments segments({0, 5, 5 + length, 7 + length});
  packed.visible = segments;
  packed.positions = positions_of(segments, packed.tokens.extents());
  all.push_back(packed);
  return all;
}

template <class T>
Tensor<T, 3> columns(const Tensor<T, 3>& x, Index begin, Index count) {
  return Tensor<T, 3>::copy_of(x.view().slice(1, begin, begin + count));
}

/// In double 1e-12, since the kernel adds up blocks of keys that begin elsewhere; the same bits
/// where the text begins at column 0 (R7).
void expect_same(const Tensor<double, 3>& given, const Tensor<double, 3>& alone, bool bits) {
  ASSERT_EQ(given.extents(), alone.extents());
  if (bits) {
    EXPECT_TRUE(same_bits(given, alone));
  }
  for (Index i = 0; i < alone.size(); ++i) {
    ASSERT_NEAR(given.data()[i], alone.data()[i], 1e-12) << i;
  }
}

/// Gradients by the same numbers as alone: rows of padding and of other documents have none.
template <class M>
void expect_same_gradients(M& given, M& alone) {
  const auto a = flat_parameters<double>(given), b = flat_parameters<double>(alone);
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    for (Index j = 0; j < a[i].size; ++j) {
      ASSERT_NEAR(a[i].data[j], b[i].data[j], 1e-11) << a[i].name << " " << j;
    }
  }
}

/// The gradient of the logits of a text, at its columns; 0 elsewhere.
Tensor<double, 3> at_columns(const Tensor<double, 3>& grad, Index begin, Index tokens) {
  Tensor<double, 3> all({1, tokens, grad.extent(2)});
  std::copy(grad.begin(), grad.end(), all.data() + begin * grad.extent(2));
  return all;
}

LanguageModel<double> language_model(PositionKind kind) {
  LanguageModelOptions options;
  options.vocab_size = 11;
  options.block.model_dim = 16;
  options.block.heads = 2;
  options.layers = 2;
  options.max_length = 120;
  options.block.positions = kind;
  options.block.relative_reach = 6;
  Random random(1);
  LanguageModel<double> model(options, random);
  scatter_parameters(model, 2);
  return model;
}

/// Every path of a tree of drafts has the logits of its text alone, where positions are not by
/// distance: a sibling between two nodes does not move them apart.
TEST(PositionsLaw, NodesOfATreeStandAtTheirDepths) {
  const std::vector<Index> parents = {-1, 0, 0, 1, -1, 4};
  const Index cached = 5, nodes = 6;
  const Tokens tokens = row_of(cached + nodes, 3, 11);
  const masks::Tree tree(cached, parents);
  const auto positions = positions_of(tree, tokens.extents());
  for (const auto kind : {PositionKind::none, PositionKind::learned, PositionKind::sinusoidal,
                          PositionKind::rotary}) {
    SCOPED_TRACE(static_cast<int>(kind));
    const auto model = language_model(kind);
    const auto all = model.forward(tokens, tree, positions);
    for (Index node = 0; node < nodes; ++node) {
      std::vector<Index> path;
      for (Index at = node; at >= 0; at = parents[static_cast<std::size_t>(at)]) {
        path.insert(path.begin(), tokens(0, cached + at));
      }
      path.insert(path.begin(), tokens.data(), tokens.data() + cached);
      const auto length = static_cast<Index>(path.size());
      const auto alone = model.forward(Tokens({1, length}, path), masks::Causal{});
      expect_same(columns(all, cached + node, 1), columns(alone, length - 1, 1), false);
    }
  }
}

TEST(PositionsLaw, OfLanguageModels) {
  for (const auto kind : kinds) {
    const auto model = language_model(kind);
    for (const Index length : {5, 110}) {
      const auto text = row_of(length, 4, 11);
      LanguageModel<double>::Saved saved;
      const auto alone = model.forward(text, masks::Causal{}, saved);
      std::mt19937_64 bits(3);
      const auto grad = random_tensor<double, 3>(alone.extents(), bits);
      auto gradients = zeros_like(model);
      model.backward(grad, saved, gradients);
      for (const auto& place : places_of(text)) {
        SCOPED_TRACE(place.name + ", kind " + std::to_string(static_cast<int>(kind)));
        const Mask mask = masks::Causal{} & place.visible;
        const auto given = model.forward(place.tokens, mask, place.positions);
        expect_same(columns(given, place.begin, length), alone, place.begin == 0);
        EXPECT_TRUE(
            same_bits(given, model.forward(place.tokens, mask, place.positions, Noise{}, saved)));
        auto own = zeros_like(model);
        model.backward(at_columns(grad, place.begin, place.tokens.extent(1)), saved, own);
        expect_same_gradients(own, gradients);
      }
    }
  }
}

TEST(PositionsLaw, OfEncoders) {
  for (const auto kind : kinds) {
    Random random(1);
    auto options =
        EncoderOptions::bert({.model_dim = 16, .heads = 2, .positions = kind, .relative_reach = 6});
    options.vocab_size = 11;
    options.layers = 2;
    options.max_length = 120;
    Encoder<double> model(options, random);
    scatter_parameters(model, 2);
    for (const Index length : {5, 110}) {
      const auto text = row_of(length, 4, 11);
      Encoder<double>::Saved saved;
      const auto alone = model.forward(text, masks::Full{}, saved);
      std::mt19937_64 bits(3);
      const auto grad = random_tensor<double, 3>(alone.extents(), bits);
      auto gradients = zeros_like(model);
      model.backward(grad, saved, gradients);
      for (const auto& place : places_of(text)) {
        SCOPED_TRACE(place.name + ", kind " + std::to_string(static_cast<int>(kind)));
        const auto given = model.forward(place.tokens, place.visible, {}, place.positions);
        expect_same(columns(given, place.begin, length), alone, place.begin == 0);
        EXPECT_TRUE(same_bits(given, model.forward(place.tokens, place.visible, {}, place.positions,
                                                   Noise{}, saved)));
        auto own = zeros_like(model);
        model.backward(at_columns(grad, place.begin, place.tokens.extent(1)), saved, own);
        expect_same_gradients(own, gradients);
      }
    }
  }
}

/// A memory mask for a source that stands elsewhere.
Mask memory_of(const Placed& source, Index length) {
  return masks::Padding({source.begin}, {source.begin + length});
}

TEST(PositionsLaw, OfEncoderDecoders) {
  const Index source_length = 7, target_length = 6;
  for (const auto kind : kinds) {
    Random random(1);
    EncoderDecoder<double> model({.source_vocab_size = 11,
                                  .target_vocab_size = 11,
                                  .decoder_layers = 2,
                                  .max_length = 14,
                                  .block = {.model_dim = 16,
                                            .heads = 2,
                                            .activation = ActivationKind::relu,
                                            .norm_before = false,
                                            .positions = kind,
                                            .relative_reach = 3}},
                                 random);
    scatter_parameters(model, 2);
    const auto source = row_of(source_length, 5, 11), target = row_of(target_length, 6, 11);
    EncoderDecoder<double>::Saved saved;
    const auto alone =
        model.forward(source, target, {masks::Full{}, masks::Causal{}, masks::Full{}}, saved);
    std::mt19937_64 bits(3);
    const auto grad = random_tensor<double, 3>(alone.extents(), bits);
    auto gradients = zeros_like(model);
    model.backward(grad, saved, gradients);
    for (const auto& from : places_of(source)) {
      for (const auto& to : places_of(target)) {
        SCOPED_TRACE(from.name + "; " + to.name + ", kind " +
                     std::to_string(static_cast<int>(kind)));
        const EncoderDecoderMasks masks{from.visible, masks::Causal{} & to.visible,
                                        memory_of(from, source_length)};
        const EncoderDecoderPositions positions{from.positions, to.positions};
        const auto given = model.forward(from.tokens, to.tokens, masks, positions);
        expect_same(columns(given, to.begin, target_length), alone,
                    from.begin == 0 && to.begin == 0);
        EXPECT_TRUE(same_bits(
            given, model.forward(from.tokens, to.tokens, masks, positions, Noise{}, saved)));
        auto own = zeros_like(model);
        model.backward(at_columns(grad, to.begin, to.tokens.extent(1)), saved, own);
        expect_same_gradients(own, gradients);
      }
    }
  }
}

TEST(PositionsLaw, RowsOfABatchStandWhereTheyLike) {
  for (const auto kind : kinds) {
    const auto model = language_model(kind);
    const auto a = row_of(9, 1, 11), b = row_of(4, 2, 11);
    Tokens both({2, 9});
    std::copy(a.begin(), a.end(), both.data());
    std::copy(b.begin(), b.end(), both.data() + 14);
    const masks::Padding padding({0, 5}, {9, 9});
    const auto given =
        model.forward(both, masks::Causal{} & padding, positions_of(padding, both.extents()));
    const auto item = [&](Index row) {
      return Tensor<double, 3>::copy_of(given.view().slice(0, row, row + 1));
    };
    expect_same(item(0), model.forward(a, masks::Causal{}), true);
    expect_same(columns(item(1), 5, 4), model.forward(b, masks::Causal{}), false);
  }
}

TEST(PositionsLaw, WhatDoesNotFitIsRefused) {
  const auto text = row_of(5, 1, 11);
  for (const auto kind : kinds) {
    const auto model = language_model(kind);
    EXPECT_THROW(model.forward(text, masks::Causal{}, Positions(Tokens({1, 4}))), ShapeError);
    EXPECT_THROW(model.forward(text, masks::Causal{}, Positions(Tokens({2, 5}))), ShapeError);
  }
  const auto model = language_model(PositionKind::learned);
  const Positions past(Tokens({1, 5}, {0, 1, 120, 3, 4}));
  LanguageModel<double>::Saved saved;
  EXPECT_THROW(model.forward(text, masks::Causal{}, past, Noise{}, saved), ShapeError);
  try {
    model.forward(text, masks::Causal{}, past);
    FAIL();
  } catch (const ShapeError& error) {
    EXPECT_STREQ(error.what(),
                 "LearnedPositions: token 2 of row 0 at position 120 where max_length is 120");
  }
  EXPECT_THROW(model.forward(text, masks::Causal{}, 116), ShapeError);
  model.forward(text, masks::Causal{}, 115);
}

TEST(PositionsLaw, AttentionOfIsThatOfTheText) {
  const auto model = language_model(PositionKind::rotary);
  const auto text = row_of(5, 1, 11);
  const auto alone = attention_of(model, text, masks::Causal{}, 1);
  for (const auto& place : places_of(text)) {
    const auto weights =
        attention_of(model, place.tokens, masks::Causal{} & place.visible, 1, place.positions);
    for (Index query = 0; query < 5; ++query) {
      for (Index key = 0; key < 5; ++key) {
        EXPECT_NEAR(weights(0, 1, place.begin + query, place.begin + key), alone(0, 1, query, key),
                    1e-13);
      }
    }
  }
}

}  // namespace
}  // namespace heed::test
