// SPDX-License-Identifier: MIT
#pragma once

// Definitions of <heed/pretrained/sentence_encoder.hpp>, which includes this file.

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <heed/core/error.hpp>
#include <heed/io/detail/json_reader.hpp>
#include <heed/pretrained/model_config.hpp>

namespace heed::detail {

/// Types are Python classes, as "sentence_transformers.models.Pooling". The last part alone is
/// compared, since the modules in front of it have changed.
HEED_INLINE void refuse_other_modules(const std::string& path) {
  if (!exists(path)) return;
  const auto bytes = read_file(path);
  JsonReader json({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, path);
  json.array([&] {
    std::string type;
    json.object([&](const std::string& key) {
      if (key == "type") {
        type = json.string();
      } else {
        json.skip();
      }
    });
    const std::string name = type.substr(type.rfind('.') + 1);
    if (name == "Transformer" || name == "Pooling" || name == "Normalize") return;
    json.fail("a module ", quote(type), ", expected Transformer, Pooling or Normalize");
  });
  json.end();
}

HEED_INLINE void refuse_other_pooling(const std::string& path) {
  if (!exists(path)) return;
  const auto config = ModelConfig::read(path);
  const auto mode = config.text("pooling_mode", "mean");
  if (mode != "mean") config.fail_at("pooling_mode", "is ", quote(mode), ", expected mean");
  for (const std::string kind : {"cls_token", "mean_tokens", "max_tokens", "mean_sqrt_len_tokens",
                                 "weightedmean_tokens", "lasttoken"}) {
    const std::string key = "pooling_mode_" + kind;
    const bool mean = kind == "mean_tokens";
    if (config.flag(key, mean) != mean) {
      config.fail_at(key, "is ", mean ? "false, expected true" : "true, expected false");
    }
  }
}

HEED_INLINE void check_sentence_folder(const std::string& folder) {
  refuse_other_modules(folder + "/modules.json");
  refuse_other_pooling(folder + "/1_Pooling/config.json");
}

HEED_INLINE Index sentence_length_in(const std::string& folder, Index most) {
  const std::string path = folder + "/sentence_bert_config.json";
  if (!exists(path)) return most;
  const auto config = ModelConfig::read(path);
  const Index length = config.integer("max_seq_length", most);
  if (length < 2) config.fail_at("max_seq_length", "is ", length, ", expected 2 or more");
  return std::min(length, most);
}

HEED_INLINE SentenceBatch sentence_batch(const WordPiece& tokenizer,
                                         std::span<const std::string> sentences, Index length) {
  std::vector<std::vector<Index>> rows;
  SentenceBatch batch;
  Index longest = 0;
  for (const std::string& sentence : sentences) {
    rows.push_back(tokenizer.encode_sentence(sentence, length));
    batch.lengths.push_back(static_cast<Index>(rows.back().size()));
    longest = std::max(longest, batch.lengths.back());
  }
  batch.tokens = Tokens({static_cast<Index>(rows.size()), longest});
  std::fill(batch.tokens.begin(), batch.tokens.end(), tokenizer.token("[PAD]"));
  for (std::size_t i = 0; i < rows.size(); ++i) {
    std::copy(rows[i].begin(), rows[i].end(),
              batch.tokens.data() + static_cast<Index>(i) * longest);
  }
  return batch;
}

HEED_INLINE std::pair<Tokens, std::vector<Index>> packed_sentences(const SentenceBatch& batch) {
  check_lengths("SentenceEncoder", batch.lengths, batch.tokens.extents());
  std::vector<Index> offsets = {0};
  for (const Index length : batch.lengths) offsets.push_back(offsets.back() + length);
  Tokens tokens({1, offsets.back()});
  for (std::size_t i = 0; i < batch.lengths.size(); ++i) {
    const Index* from = batch.tokens.data() + static_cast<Index>(i) * batch.tokens.extent(1);
    std::copy_n(from, batch.lengths[i], tokens.data() + offsets[i]);
  }
  return {std::move(tokens), std::move(offsets)};
}

}  // namespace heed::detail
