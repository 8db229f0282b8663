// SPDX-License-Identifier: MIT
#include <heed/pretrained/load_weights.hpp>

#include <gtest/gtest.h>

#include <set>

namespace heed {
namespace {

TEST(WeightNames, NumbersOfBlocks) {
  const auto check = [](const char* name, const char* pattern, const char* number) {
    const auto is = detail::numbered(name);
    EXPECT_EQ(is.pattern, pattern);
    EXPECT_EQ(is.number, number);
  };
  check("blocks.12.attention_norm.weight", "blocks.*.attention_norm.weight", "12");
  check("h.0.ln_1.bias", "h.*.ln_1.bias", "0");
  check("model.layers.3.mlp.2.x", "model.layers.*.mlp.2.x", "3");
  check("ln_f.weight", "ln_f.weight", "");
  check("a.7", "a.7", "");
  check("a..b.1x.c", "a..b.1x.c", "");
  check("", "", "");
}

TEST(WeightNames, EveryNameStandsOnceInItsTable) {
  for (const auto& names :
       {bert_names, gpt2_names, llama_names, tied_llama_names, gguf_llama_names}) {
    std::set<std::string_view> ours, theirs;
    for (const auto& layer : names.layers) {
      EXPECT_TRUE(ours.insert(layer.ours).second) << layer.ours;
      EXPECT_TRUE(theirs.insert(layer.theirs).second) << layer.theirs;
      EXPECT_EQ(layer.ours.find('*') == layer.ours.npos,
                layer.theirs.find('*') == layer.theirs.npos);
    }
  }
}

}  // namespace
}  // namespace heed
