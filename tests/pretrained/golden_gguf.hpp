// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include <heed/core/bfloat16.hpp>
#include <heed/io/file.hpp>
#include <heed/io/gguf.hpp>
#include <heed/pretrained/load_model.hpp>

#include "pretrained/pretrained_files.hpp"
#include "support/gguf_file.hpp"

namespace heed::test {

/// Where a row of queries or keys goes when pairs of a head become neighbors, as in GGUF files.
inline Index interleaved_row(Index row, Index head_dim) {
  const Index at = row % head_dim, half = head_dim / 2;
  return row - at + (at < half ? 2 * at : 2 * (at - half) + 1);
}

/// What a GGUF file says otherwise than the golden.
struct GgufChanges {
  const char* architecture = "llama";
  std::uint32_t context_length = 64;
  float norm_epsilon = 1e-5f, rotary_base = 50000;
  std::string_view key = "";  // of one more field
  std::uint32_t type = 4;
  std::string value = "";
  std::string_view other_type = "";  // the tensor whose type is I32
  bool has_base = true;
  std::string_view without = "";  // a tensor
  std::string more = {};          // fields as they stand in a file, so many
  std::uint64_t more_count = 0;
  std::uint32_t matrices = 0;  // their type: F32, 1 for F16, 30 for BF16
  std::vector<float> rotary_divisors = {};
  std::string golden = "llama";  // or another one of its family
};

/// The bytes of the golden Llama as a GGUF file.
inline std::string golden_gguf_text(const GgufChanges& changes = {}) {
  const auto source = detail::weights_in(pretrained_golden(changes.golden));
  const auto model = load_llama<float>(pretrained_golden(changes.golden));
  const BlockOptions& block = model.options.block;
  const std::string own = changes.golden + ".";
  GgufFile file;
  const auto number = [&](const char* key, Index value) {
    file.field(own + key, 4, raw(static_cast<std::uint32_t>(value)));
  };
  file.field("general.architecture", 8, gguf_text(changes.architecture));
  number("embedding_length", block.model_dim);
  number("block_count", model.options.layers);
  number("feed_forward_length", block.hidden_dim);
  number("context_length", changes.context_length);
  number("attention.head_count", block.heads);
  number("attention.head_count_kv", block.kv_heads);
  number("attention.key_length", 4);
  file.field(own + "attention.layer_norm_rms_epsilon", 6, raw(changes.norm_epsilon));
  if (changes.has_base) file.field(own + "rope.freq_base", 6, raw(changes.rotary_base));
  if (!changes.key.empty()) file.field(changes.key, changes.type, changes.value);
  file.fields += changes.more;
  file.field_count += changes.more_count;
  const detail::WeightMatch ours(source, gguf_llama_names);
  for_each_parameter(
      [&](std::string_view name, const auto& parameter) {
        const auto gguf_name = ours.name_of(name).name;
        if (gguf_name == changes.without) return;
        const bool turns =
            changes.golden == "llama" && (gguf_name.find("attn_q.") != gguf_name.npos ||
                                          gguf_name.find("attn_k.") != gguf_name.npos);
        const Index rows = parameter.extent(0), row = parameter.size() / rows;
        std::vector<float> values(static_cast<std::size_t>(parameter.size()));
        for (Index i = 0; i < rows; ++i) {
          std::copy_n(parameter.data() + i * row, row,
                      values.data() + (turns ? interleaved_row(i, 4) : i) * row);
        }
        file.data.resize((file.data.size() + 31) / 32 * 32, '\0');
        const std::uint32_t as_given = parameter.rank() == 1 ? 0 : changes.matrices;
        const std::uint32_t type = gguf_name == changes.other_type ? 26 : as_given;
        if (parameter.rank() == 1) {
          file.tensor(gguf_name, {static_cast<std::uint64_t>(rows)}, type, file.data.size());
        } else {
          file.tensor(gguf_name,
                      {static_cast<std::uint64_t>(row), static_cast<std::uint64_t>(rows)}, type,
                      file.data.size());
        }
        for (const float value : values) {
          if (type == 0 || type == 26) {
            file.data += raw(value);
          } else {
            file.data += raw(type == 1 ? half_of_float(value) : bfloat16_of_float(value));
          }
        }
      },
      model);
  if (!changes.rotary_divisors.empty()) {
    file.data.resize((file.data.size() + 31) / 32 * 32, '\0');
    file.tensor("rope_freqs.weight", {changes.rotary_divisors.size()}, 0, file.data.size());
    for (const float divisor : changes.rotary_divisors) file.data += raw(divisor);
  }
  return file.text();
}
inline Gguf golden_as_gguf(const GgufChanges& changes = {}) {
  const std::string text = golden_gguf_text(changes);
  std::vector<std::byte> bytes(text.size());
  std::memcpy(bytes.data(), text.data(), text.size());
  return Gguf(SharedBytes(std::move(bytes)), "golden.gguf");
}

}  // namespace heed::test
