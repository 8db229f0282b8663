// SPDX-License-Identifier: MIT
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <heed/io/file.hpp>

namespace heed::test {

inline std::string text_golden(const std::string& name) {
  return std::string(HEED_TEST_DATA "/text/") + name;
}

/// The texts of tests/golden/text/lines.txt, by tools/make_text_goldens.py.
inline std::vector<std::string> golden_lines() {
  const auto bytes = read_file(text_golden("lines.txt"));
  std::vector<std::string> lines;
  std::string line;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const auto letter = static_cast<char>(bytes[i]);
    if (letter == '\n') {
      lines.push_back(line);
      line.clear();
    } else if (letter == '\\') {
      const auto escaped = static_cast<char>(bytes[++i]);
      line += escaped == 'n' ? '\n' : escaped == 'r' ? '\r' : escaped;
    } else {
      line += letter;
    }
  }
  return lines;
}

/// The token numbers of each line in NAME.ids.
inline std::vector<std::vector<Index>> golden_ids(const std::string& name) {
  const auto bytes = read_file(text_golden(name));
  std::vector<std::vector<Index>> all;
  std::size_t at = 0;
  const auto next = [&] {
    const auto value = std::to_integer<int>(bytes[at]) | std::to_integer<int>(bytes[at + 1]) << 8;
    at += 2;
    return Index{value};
  };
  while (at < bytes.size()) {
    std::vector<Index> ids(static_cast<std::size_t>(next()));
    for (Index& id : ids) id = next();
    all.push_back(ids);
  }
  return all;
}

/// Every line gives the numbers that the original gave; `encode` makes them.
template <class Encode>
void expect_golden(const std::string& name, const Encode& encode) {
  const auto lines = golden_lines();
  const auto expected = golden_ids(name);
  ASSERT_EQ(lines.size(), 3000u);
  ASSERT_EQ(expected.size(), lines.size());
  int different = 0;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const std::vector<Index> ids = encode(lines[i]);
    if (ids == expected[i]) continue;
    if (++different <= 5) {
      ADD_FAILURE() << "line " << i + 1 << ": " << lines[i] << "\n  "
                    << ::testing::PrintToString(ids) << "\n  expected "
                    << ::testing::PrintToString(expected[i]);
    }
  }
  EXPECT_EQ(different, 0);
}

}  // namespace heed::test
