// SPDX-License-Identifier: MIT
#include <heed/generation/session.hpp>

#include <gtest/gtest.h>

#include <heed/core/bfloat16.hpp>
#include <heed/generation/generate.hpp>
#include <heed/layers/positions.hpp>
#include <heed/masks/intervals.hpp>
#include <heed/masks/tokens.hpp>

#include "laws/layer_laws.hpp"
#include "support/bfloat16_cases.hpp"

namespace heed::test {
namespace {

TEST(SessionOptions, TakeTheModelsLength) {
  LanguageModelOptions model;
  model.max_length = 70;
  EXPECT_EQ(detail::checked_options({}, model).max_length, 70);
  EXPECT_EQ(detail::checked_options({.max_length = 60}, model).max_length, 60);
  EXPECT_THROW(detail::checked_options({.max_length = 71}, model), InvalidArgument);
  model.block.positions = PositionKind::rotary;
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

using Sequences = std::vector<std::vector<Index>>;

LanguageModelOptions gpt() {
  LanguageModelOptions options;
  options.vocab_size = 23;
  options.block.model_dim = 24;
  options.block.heads = 3;
  options.layers = 2;
  options.max_length = 130;
  return options;
}

/// Grouped heads of a size of their own, rotary positions.
LanguageModelOptions llama() {
  auto options = LanguageModelOptions::llama();
  options.vocab_size = 23;
  options.block.model_dim = 20;
  options.block.heads = 6;
  options.block.kv_heads = 2;
  options.block.head_dim = 10;
  options.layers = 2;
  options.block.hidden_dim = 33;
  options.max_length = 130;
  return options;
}

template <class T>
LanguageModel<T> made(const LanguageModelOptions& options) {
  Random random(1);
  LanguageModel<T> model(options, random);
  scatter_parameters(model, 2);
  return model;
}

std::vector<Index> some_tokens(Index count, std::uint64_t seed) {
  Random random(seed);
  std::vector<Index> tokens;
  for (Index i = 0; i < count; ++i) tokens.push_back(random.integer(23));
  return tokens;
}

Tokens rows_of(const Sequences& sequences) {
  Tokens tokens({static_cast<Index>(sequences.size()), static_cast<Index>(sequences[0].size())});
  Index* to = tokens.data();
  for (const auto& sequence : sequences) to = std::copy(sequence.begin(), sequence.end(), to);
  return tokens;
}

template <class T>
Tensor<T, 1> row_of(const Tensor<T, 2>& logits, Index row) {
  return Tensor<T, 1>::copy_of(logits.view().select(0, row));
}

/// The logits behind the last of these tokens, by one pass over all of them.
template <class T>
Tensor<T, 1> last_of_full_pass(const LanguageModel<T>& model, const std::vector<Index>& tokens,
                               const Mask& mask = masks::Causal{}) {
  const auto logits = model.forward(rows_of({tokens}), mask);
  return Tensor<T, 1>::copy_of(
      logits.view().select(0, 0).select(0, static_cast<Index>(tokens.size()) - 1));
}

template <class T, class Stored = T>
void expect_any_chunks_equal_one_pass(const LanguageModelOptions& options, bool packed,
                                      Products products = Products::exact) {
  auto model = made<T>(options);
  set_products(model, products);
  if (packed) model.pack();
  const auto a = some_tokens(101, 3), b = some_tokens(101, 4);
  const auto tokens = rows_of({a, b});
  const auto whole = model.forward(tokens, masks::Causal{});
  for (const Index chunk : {1, 2, 7, 64, 101}) {
    for (const Index page_size : {0, 16, 96}) {
      Session<T, Stored> session(model, {.batch = 2, .page_size = page_size});
      for (Index first = 0; first < 101; first += chunk) {
        const Index last = std::min<Index>(first + chunk, 101);
        const auto part = Tokens::copy_of(std::as_const(tokens).view().slice(1, first, last));
        ASSERT_TRUE(same_bits(session.logits(part),
                              Tensor<T, 3>::copy_of(whole.view().slice(1, first, last))))
            << "tokens " << first << " to " << last << ", pages of " << page_size;
      }
      EXPECT_EQ(session.length(1), 101);
    }
  }
}

TEST(Session, AnyChunksEqualOnePass) {
  for (const bool packed : {false, true}) {
    expect_any_chunks_equal_one_pass<float>(gpt(), packed);
    expect_any_chunks_equal_one_pass<float>(llama(), packed);
    expect_any_chunks_equal_one_pass<double>(gpt(), packed);
    expect_any_chunks_equal_one_pass<double>(llama(), packed);
  }
  auto other = llama();
  other.block.positions = PositionKind::sinusoidal;
  other.block.norm_before = false;
  other.block.fused_projection = true;
  other.block.query_key_norm = NormKind::rms;
  expect_any_chunks_equal_one_pass<float>(other, true);
  other.block.positions = PositionKind::relative;
  other.block.relative_reach = 20;
  expect_any_chunks_equal_one_pass<float>(other, false);
  other.block.positions = PositionKind::alibi;
  expect_any_chunks_equal_one_pass<float>(other, false);
  other.block.positions = PositionKind::none;
  expect_any_chunks_equal_one_pass<float>(other, true);
  other.block.softcap = 2;
  other.block.sinks = true;
  other.block.window = 30;
  expect_any_chunks_equal_one_pass<float>(other, true);
}

/// Layers that see a window between others that see all, as in Gemma 2.
TEST(Session, LayersKeepMasksOfTheirOwn) {
  auto model = made<float>(llama());
  const auto whole = model.forward(rows_of({some_tokens(90, 5)}), masks::Causal{});
  model.blocks[1].attention.own_mask = masks::last_n(7);
  const auto tokens = some_tokens(90, 5);
  const auto windowed = model.forward(rows_of({tokens}), masks::Causal{});
  EXPECT_TRUE(same_bits(Tensor<float, 3>::copy_of(windowed.view().slice(1, 0, 7)),
                        Tensor<float, 3>::copy_of(whole.view().slice(1, 0, 7))));
  EXPECT_NE(windowed(0, 7, 0), whole(0, 7, 0));
  Session<float> session(model, {.page_size = 16});
  session.prefill(std::span(tokens).first(60));
  EXPECT_TRUE(same_bits(session.logits(std::span(tokens).subspan(60)),
                        Tensor<float, 3>::copy_of(windowed.view().slice(1, 60, 90))));
  auto other = made<float>(llama());
  other.blocks[1].attention.options.window = 7;
  EXPECT_TRUE(same_bits(other.forward(rows_of({tokens}), masks::Causal{}), windowed));
}

/// Attention rounds keys and values as a cache of bfloat16 does.
TEST(Session, AnyChunksOfAModelWithBfloat16ProductsEqualOnePass) {
  const RestoreSettings restore;
  for (const auto set : bfloat16_sets()) {
    SCOPED_TRACE(simd::name(set));
    simd::use(set);
    expect_any_chunks_equal_one_pass<float>(gpt(), false, Products::bfloat16);
    expect_any_chunks_equal_one_pass<float>(llama(), true, Products::bfloat16);
    expect_any_chunks_equal_one_pass<float, bfloat16>(llama(), false, Products::bfloat16);
  }
  auto other = llama();
  other.block.positions = PositionKind::alibi;
  expect_any_chunks_equal_one_pass<float>(other, false, Products::bfloat16);
  expect_any_chunks_equal_one_pass<float, bfloat16>(other, true, Products::bfloat16);
}

template <class T>
void expect_batch_equals_each_alone(const LanguageModelOptions& options,
                                    Products products = Products::exact) {
  auto model = made<T>(options);
  set_products(model, products);
  Sequences sequences = {some_tokens(5, 1), some_tokens(70, 2), some_tokens(1, 3),
                         some_tokens(33, 4)};
  Session<T> session(model, {.batch = 4, .page_size = 16});
  auto logits = session.prefill(sequences);
  for (Index turn = 0; turn < 4; ++turn) {
    for (Index item = 0; item < 4; ++item) {
      const auto& own = sequences[static_cast<std::size_t>(item)];
      ASSERT_TRUE(same_bits(row_of(logits, item), last_of_full_pass(model, own)))
          << "sequence " << item << ", turn " << turn;
    }
    Sequences next(4);
    for (std::size_t item = 0; item < 4; ++item) {
      next[item] = some_tokens(turn == 1 ? static_cast<Index>(item) + 1 : 1, item + 10);
      sequences[item].insert(sequences[item].end(), next[item].begin(), next[item].end());
    }
    logits = turn == 1
                 ? session.prefill(next)
                 : session.step(std::vector<Index>{next[0][0], next[1][0], next[2][0], next[3][0]});
  }
}

TEST(Session, AModelOfNoBlocksReadsTheLastToken) {
  Random random(3);
  const LanguageModel<float> model({.vocab_size = 8, .layers = 0, .block = {.model_dim = 4}},
                                   random);
  Session<float> session(model, {.batch = 2});
  const auto logits = session.prefill(Sequences{{1, 2}, {3}});
  const auto whole = model.forward(Tokens({2, 2}, {1, 2, 3, 0}), masks::Causal{});
  for (Index i = 0; i < 8; ++i) {
    EXPECT_EQ(logits(0, i), whole(0, 1, i));
    EXPECT_EQ(logits(1, i), whole(1, 0, i));
  }
}

TEST(Session, BatchEqualsEachAlone) {
  expect_batch_equals_each_alone<float>(gpt());
  expect_batch_equals_each_alone<float>(llama());
  expect_batch_equals_each_alone<float>(llama(), Products::bfloat16);
  expect_batch_equals_each_alone<double>(gpt());
  expect_batch_equals_each_alone<double>(llama());
}

TEST(Session, SequencesMayRest) {
  const auto model = made<float>(llama());
  Session<float> session(model, {.batch = 2});
  auto a = some_tokens(3, 1);
  session.prefill(Sequences{a, {}});
  EXPECT_EQ(session.length(1), 0);
  const auto logits = session.prefill(Sequences{{}, {4, 5}});
  EXPECT_EQ(session.length(0), 3);
  EXPECT_TRUE(same_bits(row_of(logits, 0), Tensor<float, 1>({23})));
  EXPECT_TRUE(same_bits(row_of(logits, 1), last_of_full_pass(model, {4, 5})));
  a.push_back(9);
  EXPECT_TRUE(
      same_bits(row_of(session.prefill(Sequences{{9}, {}}), 0), last_of_full_pass(model, a)));
  session.prefill(Sequences{{}, {}});
  EXPECT_EQ(session.length(0), 4);
}

TEST(Session, OtherMasks) {
  const auto model = made<float>(llama());
  const Mask mask = masks::SlidingWindow{7, 0};
  Session<float> session(model, {.mask = mask});
  auto tokens = some_tokens(40, 1);
  session(tokens);
  tokens.push_back(3);
  EXPECT_TRUE(same_bits(session(std::vector<Index>{3}), last_of_full_pass(model, tokens, mask)));
  EXPECT_FALSE(same_bits(last_of_full_pass(model, tokens), last_of_full_pass(model, tokens, mask)));
}

TEST(Session, MasksAreAskedAboutTokensThatThereCanBe) {
  auto options = gpt();
  options.max_length = 12;
  const auto model = made<float>(options);
  std::vector<Index> groups(12);
  for (Index i = 0; i < 12; ++i) groups[static_cast<std::size_t>(i)] = i / 6;
  const auto of_list = [&](Index query, Index key) {
    return key <= query &&
           groups.at(static_cast<std::size_t>(query)) == groups.at(static_cast<std::size_t>(key));
  };
  for (const Mask& mask : {Mask(masks::Causal{} & masks::Segments({0, 6, 12})), Mask(of_list)}) {
    Session<float> session(model, {.batch = 3, .mask = mask});
    auto a = some_tokens(10, 1);
    session.prefill(Sequences{a, {}, {7}});
    a.push_back(2);
    const auto b = some_tokens(5, 2), c = std::vector<Index>{7, 1, 2, 3, 4, 5};
    const auto logits = session.prefill(Sequences{{2}, b, {1, 2, 3, 4, 5}});
    EXPECT_TRUE(same_bits(row_of(logits, 0), last_of_full_pass(model, a, masks::partial(mask))));
    EXPECT_TRUE(same_bits(row_of(logits, 1), last_of_full_pass(model, b, masks::partial(mask))));
    EXPECT_TRUE(same_bits(row_of(logits, 2), last_of_full_pass(model, c, masks::partial(mask))));
  }
}

TEST(Session, AFailedCallLeavesPagesShared) {
  const auto model = made<float>(gpt());
  Session<float> session(model, {.batch = 3, .page_size = 16, .pages = 2});
  session.prefill(Sequences{{1, 2, 3}, {}, {}});
  session.reorder(std::vector<Index>{0, 0, 0});
  EXPECT_THROW(session.prefill(Sequences{{1}, {2}, {3}}), CacheFull);
  const auto logits = session.prefill(Sequences{{}, {2}, {}});  // the page that is free
  EXPECT_TRUE(same_bits(row_of(logits, 1), last_of_full_pass(model, {1, 2, 3, 2})));
}

TEST(Session, AFailedCallChangesNoTokenOfAPageThatWasShared) {
  const auto model = made<float>(gpt());
  Session<float> session(model, {.batch = 3, .page_size = 16, .pages = 3});
  auto a = some_tokens(10, 1);
  session.prefill(Sequences{a, {}, {}});
  session.reorder(std::vector<Index>{0, 0, 2});
  session.truncate(1, 4);
  // The first would get a copy, the second write behind its four tokens; then pages are missing.
  EXPECT_THROW(session.prefill(Sequences{{1}, {2, 3}, some_tokens(20, 2)}), CacheFull);
  a.push_back(5);
  const auto logits = session.prefill(Sequences{{5}, {}, {}});
  EXPECT_TRUE(same_bits(row_of(logits, 0), last_of_full_pass(model, a)));
}

auto causal_unless(const bool& throws) {
  return [&throws](Index query, Index key) {
    if (throws) throw std::runtime_error("no answer");
    return key <= query;
  };
}

TEST(Session, AMaskThatThrowsChangesNoTokenOfAPageThatWasShared) {
  const auto model = made<float>(gpt());
  bool throws = false;
  const auto mask = causal_unless(throws);
  Session<float> session(model, {.batch = 2, .page_size = 16, .mask = mask});
  auto a = some_tokens(10, 1);
  session.prefill(Sequences{a, {}});
  session.reorder(std::vector<Index>{0, 0});
  session.truncate(1, 4);
  throws = true;
  EXPECT_THROW(session.prefill(Sequences{{1}, {2, 3}}), std::runtime_error);
  throws = false;
  a.push_back(5);
  const auto logits = session.prefill(Sequences{{5}, {}});
  EXPECT_TRUE(same_bits(row_of(logits, 0), last_of_full_pass(model, a)));
}

TEST(Session, AMaskThatThrowsLeavesPagesShared) {
  const auto model = made<float>(gpt());
  bool throws = false;
  const auto mask = causal_unless(throws);
  Session<float> session(model, {.batch = 3, .page_size = 16, .pages = 4, .mask = mask});
  auto a = some_tokens(10, 1);
  session.prefill(Sequences{a, {}, {}});
  session.reorder(std::vector<Index>{0, 0, 2});
  const Index room = session.room(2);
  throws = true;
  EXPECT_THROW(session.prefill(Sequences{{1}, {2, 3}, {4}}), std::runtime_error);
  throws = false;
  EXPECT_EQ(session.room(2), room);
  const auto c = some_tokens(room, 3);
  const auto logits = session.prefill(Sequences{{}, {}, c});
  EXPECT_TRUE(same_bits(row_of(logits, 2), last_of_full_pass(model, c)));
}

TEST(Session, ReorderAndTruncate) {
  const auto model = made<float>(llama());
  Session<float> session(model, {.batch = 3, .page_size = 16});
  const Sequences sequences = {some_tokens(20, 1), some_tokens(9, 2), some_tokens(16, 3)};
  session.prefill(sequences);
  session.reorder({2, 0, 0});
  session.truncate(2, 11);
  EXPECT_EQ(session.length(2), 11);
  const auto logits = session.step(std::vector<Index>{1, 2, 3});
  auto a = sequences[2], b = sequences[0], c = sequences[0];
  a.push_back(1);
  b.push_back(2);
  c.resize(11);
  c.push_back(3);
  EXPECT_TRUE(same_bits(row_of(logits, 0), last_of_full_pass(model, a)));
  EXPECT_TRUE(same_bits(row_of(logits, 1), last_of_full_pass(model, b)));
  EXPECT_TRUE(same_bits(row_of(logits, 2), last_of_full_pass(model, c)));
  session.clear();
  EXPECT_EQ(session.length(0) + session.length(1) + session.length(2), 0);
}

TEST(Session, WhatFailsLeavesItAsItWas) {
  const auto model = made<float>(gpt());
  EXPECT_THROW(Session<float>(model, {.batch = 0}), InvalidArgument);
  EXPECT_THROW(Session<float>(model, {.max_length = -1}), InvalidArgument);
  EXPECT_NO_THROW(Session<float>(model, {.max_length = 1}).prefill(Sequences{{1}}));
  EXPECT_THROW(Session<float>(model, {.max_length = 131}), InvalidArgument)
      << "positions are a table";
  EXPECT_THROW(Session<float>(model, {.page_size = 20}), InvalidArgument);
  constexpr Index most = std::numeric_limits<Index>::max();
  const auto rotary = made<float>(llama());
  EXPECT_THROW(Session<float>(rotary, {.max_length = most}), InvalidArgument);
  Session<float> session(model, {.batch = 2, .max_length = 64, .page_size = 16, .pages = 3});
  session.prefill(Sequences{some_tokens(5, 1), some_tokens(6, 2)});
  const auto before = session;
  EXPECT_THROW(session.prefill(Sequences{{1}}), ShapeError);
  EXPECT_THROW(session.prefill(Sequences{{1}, {23}}), InvalidArgument) << "no such token";
  EXPECT_THROW(session.prefill(Sequences{some_tokens(60, 1), {}}), ShapeError) << "too long";
  EXPECT_THROW(session.prefill(Sequences{some_tokens(20, 1), some_tokens(20, 1)}), CacheFull);
  EXPECT_THROW(session(std::vector<Index>{1}), ShapeError) << "two sequences";
  EXPECT_THROW(session.logits(Tokens({1, 2})), ShapeError) << "two sequences";
  EXPECT_THROW(session.logits(Tokens({3, 2})), ShapeError) << "two sequences";
  EXPECT_THROW(session.reorder(std::vector<Index>{0}), ShapeError);
  EXPECT_THROW(session.reorder(std::vector<Index>{0, 2}), ShapeError);
  EXPECT_THROW(session.truncate(0, 6), ShapeError);
  EXPECT_THROW(session.length(2), ShapeError);
  EXPECT_EQ(session.length(0), 5);
  EXPECT_EQ(session.length(1), 6);
  auto copy = before;
  const std::vector<Index> next = {3, 4};
  EXPECT_TRUE(same_bits(session.step(next), copy.step(next)));
}

TEST(Session, ReadsATreeOfDraftsAtTheDepthsOfItsNodes) {
  const std::vector<Index> parents = {-1, 0, 0, 1, -1, 3}, path = {0, 1, 3, 5};
  auto text = some_tokens(37, 11);
  const auto nodes = some_tokens(6, 12);
  auto all = text;
  all.insert(all.end(), nodes.begin(), nodes.end());
  const masks::Tree tree(37, parents);
  for (const auto& options : {gpt(), llama()}) {
    const auto model = made<float>(options);
    const auto positions = positions_of(tree, {1, 43});
    const auto whole = model.forward(rows_of({all}), tree, positions);
    for (const Index page_size : {0, 16}) {
      Session<float> session(model, {.page_size = page_size});
      session.prefill(text);
      const auto logits = session.logits(nodes, tree);
      EXPECT_TRUE(same_bits(logits, Tensor<float, 3>::copy_of(whole.view().slice(1, 37, 43))));
      session.truncate(0, 37);
      std::vector<Index> accepted;
      for (const Index node : path) accepted.push_back(nodes[static_cast<std::size_t>(node)]);
      const auto alone = session.logits(accepted);
      for (std::size_t i = 0; i < path.size(); ++i) {
        for (Index token = 0; token < 23; ++token) {
          EXPECT_NEAR(logits(0, path[i], token), alone(0, static_cast<Index>(i), token), 1e-4f);
        }
      }
    }
  }
}

TEST(Session, RefusesATreeWhereLayersCountColumns) {
  const masks::Tree tree(0, {-1, -1});
  const std::vector<Index> nodes = {3, 4};
  for (const auto kind : {PositionKind::relative, PositionKind::alibi}) {
    auto options = gpt();
    options.block.positions = kind;
    const auto model = made<float>(options);
    Session<float> session(model);
    EXPECT_THROW(session.logits(nodes, tree), InvalidArgument);
  }
  auto model = made<float>(gpt());
  model.blocks[1].attention.own_mask = masks::last_n(9);
  Session<float> session(model);
  EXPECT_THROW(session.logits(nodes, tree), InvalidArgument);
  EXPECT_EQ(session.length(), 0);
}

TEST(Session, TakesTheMaskAndPositionsOfACall) {
  const auto model = made<float>(llama());
  Session<float> session(model, {.batch = 2, .max_length = 64, .page_size = 16});
  const auto a = some_tokens(9, 1), b = some_tokens(9, 2);
  const auto tokens = rows_of({a, b});
  Tensor<Index, 2> places({2, 9});
  for (Index i = 0; i < 18; ++i) places.data()[i] = i % 9 < 4 ? i % 9 : 3 * (i % 9) + i / 9;
  const Positions positions(places);
  const auto mask = masks::Causal{} & masks::last_n(5);
  const auto whole = model.forward(tokens, mask, positions);
  const auto at = [&](Index first, Index last) {
    return session.logits(Tokens::copy_of(tokens.view().slice(1, first, last)), mask,
                          positions.columns(0, last));
  };
  EXPECT_TRUE(same_bits(at(0, 4), Tensor<float, 3>::copy_of(whole.view().slice(1, 0, 4))));
  const auto before = session;
  for (const Extents<2>& other : {Extents<2>{1, 5}, {1, 8}, {1, 10}, {3, 9}}) {
    const Positions wrong((Tensor<Index, 2>(other)));
    EXPECT_THROW(session.logits(Tokens({2, 5}), mask, wrong), ShapeError) << other[1];
  }
  const masks::Tree other(4, {-1});
  EXPECT_THROW(session.logits(Tokens({2, 5}), other), ShapeError) << "four nodes too few";
  EXPECT_EQ(session.length(0), 4);
  EXPECT_TRUE(same_bits(at(4, 9), Tensor<float, 3>::copy_of(whole.view().slice(1, 4, 9))));
  auto plain = before, again = before;
  auto placed = before, causal = before;
  EXPECT_TRUE(same_bits(placed.logits(Tokens({2, 5}), positions),
                        causal.logits(Tokens({2, 5}), masks::Causal{}, positions)));
  EXPECT_TRUE(
      same_bits(plain.logits(Tokens({2, 5})), again.logits(Tokens({2, 5}), masks::Causal{})))
      << "for one call alone";
}

TEST(Session, OfOneThatHasBeenMovedFromNothingCanBeAsked) {
  const auto model = made<float>(gpt());
  Session<float> session(model);
  const Session<float> other = std::move(session);
  EXPECT_EQ(session.batch(), 0);  // NOLINT(bugprone-use-after-move)
  EXPECT_THROW(session.length(), ShapeError);
  EXPECT_THROW(session.prefill(Sequences{{1}}), ShapeError);
  EXPECT_EQ(other.length(), 0);
}

TEST(Session, CachesInHalfTheMemoryAreClose) {
  const auto model = made<float>(llama());
  Session<float, bfloat16> half(model);
  Session<float> full(model);
  const auto tokens = some_tokens(50, 1);
  const auto a = half(tokens), b = full(tokens);
  EXPECT_FALSE(same_bits(a, b));
  for (Index i = 0; i < 23; ++i) EXPECT_NEAR(a(i), b(i), 0.1);
}

TEST(Session, GenerateReadsThePromptOnceAndWritesWhatFullPassesWrite) {
  const auto model = made<float>(llama());
  Session<float> session(model);
  const auto prompt = some_tokens(12, 5);
  Random random(1);
  const Sampler greedy{samplers::Greedy{}};
  const auto cached = generate(session, prompt, greedy, {.max_tokens = 20}, random);
  std::vector<Index> all;
  const auto full = [&](std::span<const Index> tokens) {
    all.insert(all.end(), tokens.begin(), tokens.end());
    return last_of_full_pass(model, all);
  };
  EXPECT_EQ(cached.tokens, generate(full, prompt, greedy, {.max_tokens = 20}, random).tokens);
  EXPECT_EQ(session.length(), 12 + 19);
}

TEST(Session, BeamSearchEqualsThatByFullPasses) {
  for (const Index page_size : {0, 16}) {
    const auto model = made<float>(gpt());
    Session<float> session(model, {.batch = 5, .max_length = 40, .page_size = page_size});
    const auto prompt = some_tokens(15, 6);
    const BeamOptions options{.width = 4, .max_tokens = 9, .end_token = 7, .results = 3};
    Sequences live;
    const auto full = beam_search(
        [&](std::span<const Index> parents, std::span<const Index> tokens) {
          Sequences next = {prompt};
          if (!tokens.empty()) next.clear();
          for (std::size_t i = 0; i < tokens.size(); ++i) {
            next.push_back(live[static_cast<std::size_t>(parents[i])]);
            next.back().push_back(tokens[i]);
          }
          live = next;
          Tensor<float, 2> logits({static_cast<Index>(live.size()), 23});
          for (std::size_t i = 0; i < live.size(); ++i) {
            const auto row = last_of_full_pass(model, live[i]);
            std::copy(row.begin(), row.end(), logits.data() + 23 * static_cast<Index>(i));
          }
          return logits;
        },
        options);
    for (int again = 0; again < 2; ++again) {
      const auto cached = beam_search(session, prompt, options);
      ASSERT_EQ(cached.size(), full.size());
      for (std::size_t i = 0; i < full.size(); ++i) {
        EXPECT_EQ(cached[i].tokens, full[i].tokens);
        EXPECT_EQ(cached[i].log_probability, full[i].log_probability);
      }
    }
    Session<float> small(model, {.batch = 5, .max_length = 20, .page_size = page_size});
    const auto cut = beam_search(small, prompt, {.max_tokens = 50, .results = 3});
    const auto fitting = beam_search(session, prompt, {.max_tokens = 6, .results = 3});
    ASSERT_EQ(cut.size(), 3u);
    for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(cut[i].tokens, fitting[i].tokens) << "full";
    EXPECT_THROW(beam_search(small, some_tokens(21, 6), options), ShapeError);
    EXPECT_THROW(beam_search(session, prompt, {.width = 6}), ShapeError);
    EXPECT_THROW(beam_search(session, {}, options), ShapeError);
  }
}

}  // namespace
}  // namespace heed::test
