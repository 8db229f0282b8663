// SPDX-License-Identifier: MIT
#include <heed/core/hand_over.hpp>

#include <gtest/gtest.h>

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
  int asked = 0;
  for (int i = 0; i < 2560; ++i) asked += hand_over.pays(3000) ? 1 : 0;
  EXPECT_EQ(asked, 160);
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
