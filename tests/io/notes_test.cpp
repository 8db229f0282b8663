// SPDX-License-Identifier: MIT
#include <heed/io/safetensors.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "support/file_bytes.hpp"

namespace heed {
namespace {

static_assert(std::forward_iterator<Notes::Iterator>);

TEST(Notes, ByNameInTheOrderOfNames) {
  const Notes notes(TextList{"step", "7", "", "nothing", "format", "pt", "stem", ""});
  EXPECT_EQ(notes.size(), 4u);
  EXPECT_EQ(notes.at("step"), "7");
  EXPECT_EQ(notes.at(""), "nothing");
  EXPECT_TRUE(notes.contains("stem"));
  EXPECT_FALSE(notes.contains("ste"));
  EXPECT_FALSE(notes.contains("z"));
  std::string names;
  for (const auto& [name, text] : notes) names += std::string(name) + "=" + std::string(text) + ";";
  EXPECT_EQ(names, "=nothing;format=pt;stem=;step=7;");
  EXPECT_EQ(test::error_of([&] { notes.at("steps"); }), "no note 'steps'");
  EXPECT_EQ(notes, Notes(TextList{"", "nothing", "stem", "", "step", "7", "format", "pt"}));
  EXPECT_FALSE(notes == Notes(TextList{"", "nothing", "stem", "", "step", "8", "format", "pt"}));
  EXPECT_TRUE(Notes().empty());
  EXPECT_FALSE(Notes().contains(""));
}

TEST(Notes, ManyInAnyOrder) {
  TextList texts;
  for (int i = 0; i < 500; ++i) {
    texts.push_back(std::to_string(i * 389 % 500));
    texts.push_back(std::to_string(i));
  }
  const Notes notes(std::move(texts));
  for (int i = 0; i < 500; ++i) {
    EXPECT_EQ(notes.at(std::to_string(i * 389 % 500)), std::to_string(i));
    EXPECT_FALSE(notes.contains(std::to_string(i + 500)));
  }
  EXPECT_TRUE(std::is_sorted(notes.begin(), notes.end()));
}

}  // namespace
}  // namespace heed
