// SPDX-License-Identifier: MIT
// docs/02-masks.md shows every mask as examples/masks prints it, and nothing else.
#include <gtest/gtest.h>

#include <cstddef>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace heed::laws {
namespace {

std::string read(const std::string& path) {
  std::ifstream file(path);
  EXPECT_TRUE(file) << path;
  return {std::istreambuf_iterator<char>(file), {}};
}

/// What stands between `begin` and `end`, every time.
std::vector<std::string> between(const std::string& text, const std::string& begin,
                                 const std::string& end) {
  std::vector<std::string> found;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t from = text.find(begin, at);
    if (from == std::string::npos) break;
    const std::size_t to = text.find(end, from + begin.size());
    if (to == std::string::npos) break;
    found.push_back(text.substr(from + begin.size(), to - from - begin.size()));
    at = to + end.size();
  }
  return found;
}

TEST(MasksPage, ShowsEveryMaskAsPrinted) {
  const std::string page = read(HEED_EXAMPLE_DATA "/../../docs/02-masks.md");
  std::string printed = read(HEED_EXAMPLE_DATA "/../golden/masks.txt");
  const auto shown = between(page, "```text\n", "\n```");
  std::vector<std::string> masks;
  for (std::size_t end; (end = printed.find("\n\n")) != std::string::npos;) {
    masks.push_back(printed.substr(0, end));
    printed.erase(0, end + 2);
  }
  EXPECT_EQ(printed, "") << "every mask ends with an empty line";
  EXPECT_GE(masks.size(), 25u);
  EXPECT_EQ(shown.size(), masks.size());
  for (const std::string& mask : masks) {
    int times = 0;
    for (const std::string& picture : shown) times += picture == mask;
    EXPECT_EQ(times, 1) << "the page lacks, or repeats,\n" << mask;
  }
}

TEST(MasksPage, NamesEveryPolicy) {
  const std::string page = read(HEED_EXAMPLE_DATA "/../../docs/02-masks.md");
  const std::string umbrella = read(HEED_EXAMPLE_DATA "/../../include/heed/masks.hpp");
  int named = 0;
  for (const std::string& header : between(umbrella, "#include <heed/", ">")) {
    const std::string text = read(HEED_EXAMPLE_DATA "/../../include/heed/" + header);
    for (const char* kind : {"\nclass ", "\nstruct "}) {
      for (const std::string& name : between(text, kind, " {")) {
        // These are made by operators, by predicate and by partial, which the page names; the
        // last one stands for what does not compile.
        const bool made = name == "And" || name == "Or" || name == "Not" || name == "Predicate" ||
                          name == "Partial" || name == "AnyMask";
        const auto from = text.find(kind + name + " {");
        const std::string body = text.substr(from, text.find("\n};", from) - from);
        if (made || body.find("bool allows(Position") == std::string::npos) continue;
        if (name == "UnknownCoverage") continue;
        EXPECT_NE(page.find(name), std::string::npos) << name << " of " << header;
        ++named;
      }
    }
  }
  EXPECT_GE(named, 20) << "policies found in the headers";
}

}  // namespace
}  // namespace heed::laws
