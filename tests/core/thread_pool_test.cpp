// SPDX-License-Identifier: MIT
#include <heed/core/detail/thread_pool.hpp>

#include <gtest/gtest.h>

#include <vector>

namespace heed::detail {
namespace {

void note_often(HandOver& hand_over, Index nanoseconds) {
  for (int i = 0; i < 50; ++i) hand_over.note(nanoseconds);
}

TEST(HandOver, WorkOfAnySizeBelowAndAboveTheLimits) {
  HandOver hand_over;
  for (const Index latency : {50, 300, 1000, 100000}) {
    note_often(hand_over, latency);
    EXPECT_FALSE(hand_over.pays(1999)) << latency;
    EXPECT_TRUE(hand_over.pays(16000)) << latency;
  }
}

TEST(HandOver, WorkBetweenThemWhereThreadsAnswerFast) {
  HandOver hand_over;
  note_often(hand_over, 100);
  EXPECT_NEAR(static_cast<double>(hand_over.expected()), 100, 5);
  EXPECT_TRUE(hand_over.pays(3000));
  note_often(hand_over, 500);
  EXPECT_FALSE(hand_over.pays(3000));
  EXPECT_TRUE(hand_over.pays(9000));
}

TEST(HandOver, ThreadsThatDoNotComeAreAskedAgainAfterAWhile) {
  HandOver hand_over;
  for (int i = 0; i < 50; ++i) hand_over.note_nobody();
  std::vector<int> asked;  // when
  for (int i = 0; i < 3000; ++i) {
    if (hand_over.pays(3000)) asked.push_back(i);
  }
  ASSERT_GT(asked.size(), 2u);
  EXPECT_LT(asked.size(), 300u) << "a tenth of the work waits for nobody at most";
  Index in_a_row = 0, longest_break = 0;
  for (std::size_t i = 1; i < asked.size(); ++i) {
    in_a_row += asked[i] == asked[i - 1] + 1;
    longest_break = larger(longest_break, asked[i] - asked[i - 1]);
  }
  EXPECT_GT(in_a_row, static_cast<Index>(asked.size()) / 2) << "the first only wakes a thread";
  EXPECT_LT(longest_break, 1000);
  note_often(hand_over, 100);  // one that comes then is seen
  EXPECT_TRUE(hand_over.pays(3000));
}

TEST(HandOver, OneLateAnswerIsNotTheEnd) {
  HandOver hand_over;
  note_often(hand_over, 100);
  hand_over.note(1000000);  // the other thread's processor was taken
  EXPECT_LT(hand_over.expected(), 1500);
  for (int i = 0; i < 12; ++i) hand_over.note(100);
  EXPECT_TRUE(hand_over.pays(3000));
}

}  // namespace
}  // namespace heed::detail
