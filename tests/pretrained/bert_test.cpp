// SPDX-License-Identifier: MIT
#include <heed/pretrained/load_model.hpp>

#include <heed/masks/intervals.hpp>

#include "pretrained/pretrained_files.hpp"
#include "support/temporary_file.hpp"

namespace heed::test {
namespace {

template <class T>
Tensor<T, 3> hidden_of(const Encoder<T>& model) {
  auto hidden = model.forward(pretrained_tokens("bert/tokens"), masks::Padding({11, 7}),
                              pretrained_tokens("bert/segments"));
  for (Index token = 7; token < 11; ++token) {  // which are padding
    for (Index d = 0; d < hidden.extent(2); ++d) hidden(1, token, d) = 0;
  }
  return hidden;
}

TEST(Bert, HiddenStatesEqualTransformers) {
  const auto golden = pretrained_array<float, 3>("bert/out");
  EXPECT_LT(largest_difference(hidden_of(load_bert<float>(pretrained_golden("bert"))), golden),
            1e-5);
  EXPECT_LT(largest_difference(hidden_of(load_bert<double>(pretrained_golden("bert"))), golden),
            1e-5);
}

/// bert-base-uncased is published with these names, and with the heads of its training.
TEST(Bert, NormsMayHaveTheNamesOfTheFirstFiles) {
  const Safetensors file = load_safetensors(pretrained_golden("bert/model.safetensors"));
  SafetensorsWriter writer;
  for (const auto& entry : file.entries()) {
    std::string name(entry.name);
    const auto rename = [&](const std::string& from, const std::string& to) {
      if (name.ends_with(from)) name.replace(name.size() - from.size(), from.size(), to);
    };
    rename("LayerNorm.weight", "LayerNorm.gamma");
    rename("LayerNorm.bias", "LayerNorm.beta");
    writer.add_bytes(name, entry.type, entry.shape(), file.bytes(entry.name));
  }
  writer.add("cls.predictions.transform.LayerNorm.gamma", Tensor<float, 1>({4}));
  const TemporaryFile older;
  writer.write(older.path());
  const auto options = bert_options(ModelConfig::read(pretrained_golden("bert/config.json")));
  const auto model = load_weights<Encoder<float>>(weights_of(older.path()), bert_names, options);
  EXPECT_EQ(
      largest_difference(hidden_of(model), hidden_of(load_bert<float>(pretrained_golden("bert")))),
      0);
}

TEST(Bert, RefusesWhatItHasNot) {
  const ModelConfig relative(R"({"position_embedding_type": "relative_key"})", "config.json");
  EXPECT_NE(file_error_of([&] { bert_options(relative); }).find("relative_key"), std::string::npos);
  EXPECT_THROW(bert_options(ModelConfig("{}", "config.json")), FileError);
  const std::string sizes =
      R"({"vocab_size": 9, "hidden_size": 4, "intermediate_size": 5, "num_hidden_layers": 1,
          "num_attention_heads": 2)";
  const std::string length = R"(, "max_position_embeddings": 8)";
  EXPECT_EQ(bert_options(ModelConfig(sizes + length + "}", "config.json")).max_length, 8);
  for (const std::string& more :
       {length + R"(, "model_type": "roberta")", length + R"(, "is_decoder": true)",
        length + R"(, "layer_norm_eps": 0)", length + R"(, "layer_norm_eps": -1e-5)",
        std::string(R"(, "max_position_embeddings": 16777217)"),
        std::string(R"(, "max_position_embeddings": 0)")}) {
    EXPECT_THROW(bert_options(ModelConfig(sizes + more + "}", "config.json")), FileError) << more;
  }
  EXPECT_THROW(load_bert<float>(pretrained_golden("none")), FileError);
  EXPECT_THROW(load_bert<float>(pretrained_golden("gpt2")), FileError);
}

}  // namespace
}  // namespace heed::test
