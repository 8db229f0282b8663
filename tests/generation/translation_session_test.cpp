// SPDX-License-Identifier: MIT
#include <heed/generation/translation_session.hpp>

#include <heed/generation/generate.hpp>
#include <heed/masks/intervals.hpp>
#include <heed/masks/mask.hpp>
#include <heed/tensor/copy.hpp>

#include "laws/layer_laws.hpp"

namespace heed::test {
namespace {

EncoderDecoderOptions original() {
  auto options = EncoderDecoderOptions::original({.model_dim = 20, .heads = 2, .hidden_dim = 33});
  options.source_vocab_size = 9;
  options.target_vocab_size = 13;
  options.decoder_layers = 2;
  options.max_length = 75;
  return options;
}

template <class T>
EncoderDecoder<T> made(const EncoderDecoderOptions& options) {
  Random random(1);
  EncoderDecoder<T> model(options, random);
  scatter_parameters(model, 2);
  return model;
}

Tokens some_tokens(Index batch, Index length, Index vocabulary, std::uint64_t seed) {
  Random random(seed);
  Tokens tokens({batch, length});
  for (Index& token : tokens) token = random.integer(vocabulary);
  return tokens;
}

/// The source is padded, and each target token sees five words more of it than the one before: a
/// mask of the memory that asks where the target token stands.
EncoderDecoderMasks some_masks() {
  const masks::Padding padding({18, 5, 11});
  const auto read_so_far = predicate([](Index query, Index key) { return key <= query / 5 + 2; });
  return {padding, masks::Causal{}, padding & read_so_far};
}

template <class T>
void expect_any_chunks_equal_one_pass(const EncoderDecoderOptions& options, bool packed) {
  auto model = made<T>(options);
  if (packed) model.pack();
  const Tokens source = some_tokens(3, 18, 9, 3), target = some_tokens(3, 71, 13, 4);
  const auto masks = some_masks();
  const auto whole = model.forward(source, target, masks);
  typename EncoderDecoder<T>::Saved saved;
  EXPECT_TRUE(same_bits(model.forward(source, target, masks, saved), whole)) << "in training";
  const Index threads = thread_count();
  for (const Index chunk : {1, 2, 7, 64, 71}) {
    set_thread_count(1 + chunk % 3);
    const Index page_size = chunk % 2 == 0 ? 0 : 16;
    TranslationSession<T> session(model, source, {.page_size = page_size, .masks = masks});
    for (Index first = 0; first < 71; first += chunk) {
      const Index last = std::min<Index>(first + chunk, 71);
      const auto part = Tokens::copy_of(target.view().slice(1, first, last));
      ASSERT_TRUE(same_bits(session.logits(part),
                            Tensor<T, 3>::copy_of(whole.view().slice(1, first, last))))
          << "tokens " << first << " to " << last << ", pages of " << page_size;
    }
    EXPECT_EQ(session.length(), 71);
  }
  set_thread_count(threads);
}

TEST(TranslationSession, AnyChunksEqualOnePass) {
  for (const bool packed : {false, true}) {
    expect_any_chunks_equal_one_pass<float>(original(), packed);
    expect_any_chunks_equal_one_pass<double>(original(), packed);
    auto other = original();
    other.block.norm_before = true;
    other.tied_head = true;
    other.block.positions = PositionKind::learned;
    other.block.activation = ActivationKind::gelu;
    expect_any_chunks_equal_one_pass<float>(other, packed);
    other.block.positions = PositionKind::rotary;
    other.block.heads = 5;
    expect_any_chunks_equal_one_pass<float>(other, packed);
    expect_any_chunks_equal_one_pass<double>(other, packed);
    other.block.positions = PositionKind::relative;
    other.block.relative_reach = 9;
    expect_any_chunks_equal_one_pass<float>(other, packed);
    other.block.positions = PositionKind::alibi;
    expect_any_chunks_equal_one_pass<float>(other, packed);
  }
}

TEST(TranslationSession, DecodingGrowingTargetsHasTheSameBitsToo) {
  const auto model = made<float>(original());
  const Tokens source = some_tokens(3, 18, 9, 3), target = some_tokens(3, 20, 13, 4);
  const auto masks = some_masks();
  const auto whole = model.forward(source, target, masks);
  const auto memory = model.remember(model.encode(source, masks.source));
  for (const Index length : {1, 3, 19, 20}) {
    EXPECT_TRUE(
        same_bits(model.decode(Tokens::copy_of(target.view().slice(1, 0, length)), memory, masks),
                  Tensor<float, 3>::copy_of(whole.view().slice(1, 0, length))))
        << length;
  }
}

TEST(TranslationSession, OneTokenAtATimeForGenerate) {
  const auto model = made<float>(original());
  const Tokens source = some_tokens(1, 6, 9, 5);
  TranslationSession<float> session(model, source);
  const std::vector<Index> begin = {1};
  Random random(1);
  const Sampler greedy{samplers::Greedy{}};
  const auto cached = generate(session, begin, greedy, {.max_tokens = 30}, random);
  Tokens all({1, 31});
  all(0, 0) = 1;
  std::copy(cached.tokens.begin(), cached.tokens.end(), all.data() + 1);
  ASSERT_EQ(cached.tokens.size(), 30u);
  const auto whole = model.forward(source, all, {masks::Full{}, masks::Causal{}, masks::Full{}});
  for (Index i = 0; i < 30; ++i) {
    const float* row = whole.data() + i * 13;
    EXPECT_EQ(std::max_element(row, row + 13) - row, all(0, i + 1)) << i;
  }
}

TEST(TranslationSession, SeveralTokensAtOnceAndFromTheBeginning) {
  const auto model = made<float>(original());
  TranslationSession<float> session(model, some_tokens(1, 6, 9, 5));
  const std::vector<Index> text = {1, 5, 2};
  const auto together = session(text);
  session.truncate(0);
  EXPECT_EQ(session.length(), 0);
  session(std::vector<Index>{1});
  session(std::vector<Index>{5});
  EXPECT_TRUE(same_bits(session(std::vector<Index>{2}), together));
}

TEST(TranslationSession, WhatFailsLeavesItAsItWas) {
  const auto model = made<float>(original());
  const Tokens source = some_tokens(3, 18, 9, 3), target = some_tokens(3, 9, 13, 4);
  auto learned = original();
  learned.block.positions = PositionKind::learned;
  const auto short_model = made<float>(learned);
  EXPECT_THROW(TranslationSession<float>(short_model, source, {.max_length = 76}), ShapeError);
  EXPECT_THROW(TranslationSession<float>(model, source, {.max_length = -1}), ShapeError);
  EXPECT_THROW(TranslationSession<float>(
                   model, source, {.masks = {masks::Padding({1}), masks::Causal{}, masks::Full{}}}),
               ShapeError);
  TranslationSession<float> session(model, source, {.max_length = 12, .masks = some_masks()});
  session.logits(target);
  auto copy = session;
  EXPECT_THROW(session.logits(target), ShapeError) << "too long";
  EXPECT_THROW(session.step(std::vector<Index>{1, 2}), ShapeError) << "two of three";
  EXPECT_THROW(session.step(std::vector<Index>{1, 2, 13}), InvalidArgument) << "no such token";
  EXPECT_THROW(session(std::vector<Index>{1}), ShapeError) << "three sequences";
  EXPECT_THROW(TranslationSession<float>(model, Tokens({1, 3}))({}), ShapeError) << "no tokens";
  EXPECT_THROW(session.truncate(10), ShapeError);
  EXPECT_EQ(session.length(), 9);
  const std::vector<Index> next = {1, 2, 3};
  const auto logits = session.step(next);
  EXPECT_TRUE(same_bits(logits, copy.step(next)));
  session.step(next);
  session.truncate(9);
  EXPECT_TRUE(same_bits(logits, session.step(next)));
  TranslationSession<float> wrong(
      model, source, {.masks = {masks::Full{}, masks::Causal{}, masks::Padding({1, 2})}});
  EXPECT_THROW(wrong.step(next), ShapeError) << "a mask of the memory for two sequences";
  EXPECT_EQ(wrong.length(), 0);
  EXPECT_THROW(wrong.step(next), ShapeError) << "nothing stayed in the caches";
}

TEST(TranslationSession, NoSequencesAndEmptySources) {
  const auto model = made<float>(original());
  TranslationSession<float> nobody(model, Tokens({0, 4}));
  EXPECT_EQ(nobody.logits(Tokens({0, 2})).extents(), (Extents<3>{0, 2, 13}));
  TranslationSession<float> silent(model, Tokens({2, 0}));
  const auto target = some_tokens(2, 5, 13, 6);
  const auto whole =
      model.forward(Tokens({2, 0}), target, {masks::Full{}, masks::Causal{}, masks::Full{}});
  EXPECT_TRUE(same_bits(silent.logits(target), whole));
  EXPECT_EQ(silent.logits(Tokens({2, 0})).extents(), (Extents<3>{2, 0, 13}));
}

/// Sources and targets padded on the left, each row as it is alone.
TEST(TranslationSession, PaddedOnTheLeftIsAsAlone) {
  for (const auto kind : {PositionKind::none, PositionKind::learned, PositionKind::sinusoidal,
                          PositionKind::rotary, PositionKind::relative, PositionKind::alibi}) {
    auto options = original();
    options.block.positions = kind;
    options.block.relative_reach = 4;
    const auto model = made<double>(options);
    const Tokens source = some_tokens(2, 8, 9, 3), target = some_tokens(2, 9, 13, 4);
    const std::vector<Index> source_begins = {3, 0}, target_begins = {0, 4};
    const masks::Padding source_padding(source_begins, {8, 8});
    const masks::Padding target_padding(target_begins, {9, 9});
    const auto own = predicate([&](Position at) {
      return at.key <= at.query && target_begins[static_cast<std::size_t>(at.batch)] <= at.key;
    });
    TranslationSession<double> session(
        model, source,
        {.max_length = 9,
         .masks = {source_padding, own, source_padding},
         .positions = {positions_of(source_padding, source.extents()),
                       positions_of(target_padding, target.extents())}});
    Tensor<double, 3> logits({2, 9, 13});
    for (const auto& [first, last] : {std::pair<Index, Index>{0, 6}, {6, 7}, {7, 9}}) {
      const auto part = session.logits(Tokens::copy_of(target.view().slice(1, first, last)));
      heed::copy(part.view(), logits.view().slice(1, first, last));
    }
    for (Index row = 0; row < 2; ++row) {
      const auto item = static_cast<std::size_t>(row);
      const auto alone = [&](const Tokens& tokens, Index begin) {
        return Tokens::copy_of(
            tokens.view().slice(0, row, row + 1).slice(1, begin, tokens.extent(1)));
      };
      const auto expected =
          model.forward(alone(source, source_begins[item]), alone(target, target_begins[item]),
                        {masks::Full{}, masks::Causal{}, masks::Full{}});
      for (Index token = 0; token < expected.extent(1); ++token) {
        for (Index i = 0; i < 13; ++i) {
          ASSERT_NEAR(logits(row, target_begins[item] + token, i), expected(0, token, i), 1e-12)
              << "row " << row << ", kind " << static_cast<int>(kind);
        }
      }
    }
    EXPECT_THROW(session.logits(Tokens({2, 1})), ShapeError);
    EXPECT_EQ(session.length(), 9);
  }
}

TEST(TranslationSession, RefusesPositionsThatDoNotReach) {
  const auto model = made<float>(original());
  const Tokens source = some_tokens(1, 6, 9, 5);
  EXPECT_THROW(
      TranslationSession<float>(model, source, {.positions = {Positions(Tokens({1, 5})), {}}}),
      ShapeError);
  TranslationSession<float> session(model, source, {.positions = {{}, Positions(Tokens({1, 2}))}});
  session.step(std::vector<Index>{1});
  EXPECT_THROW(session.logits(Tokens({1, 2})), ShapeError);
  EXPECT_EQ(session.length(), 1);
  session.step(std::vector<Index>{2});
}

}  // namespace
}  // namespace heed::test
