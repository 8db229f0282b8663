// SPDX-License-Identifier: MIT
// Any bytes as a GGUF file give a Llama, as a config.json the options of a model, or a FileError.
#include <string_view>

#include <heed/pretrained/load_model.hpp>

#include "fuzz/fuzz.hpp"
#include "support/gguf_mutation.hpp"

namespace {

template <class Read>
void check(const Read& read) {
  try {
    read();
  } catch (const heed::FileError&) {
  }
}

void read_model(const heed::SharedBytes& bytes) {
  const heed::Gguf file(bytes, "x");
  const auto options = heed::llama_options(file);
  const auto model = heed::load_llama<float>(file);
  heed::fuzz::require(static_cast<heed::Index>(model.blocks.size()) == options.layers);
  heed::fuzz::require(model.input.embedding.weight.extent(0) == options.vocab_size);
}

}  // namespace

HEED_FUZZ_PIECES(heed::test::GgufPieces);

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (text.starts_with("GGUF")) {
    check([&] { read_model(heed::SharedBytes(heed::fuzz::bytes_of(data, size))); });
    return 0;
  }
  check([&] {
    const heed::ModelConfig config(text, "x");
    check([&] { heed::bert_options(config); });
    check([&] { heed::gpt2_options(config); });
    check([&] { heed::llama_options(config); });
  });
  return 0;
}
