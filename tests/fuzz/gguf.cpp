// SPDX-License-Identifier: MIT
// Any bytes give metadata, tensors and perhaps a tokenizer, or a FileError.
#include <heed/io/gguf.hpp>
#include <heed/text/load_tokenizer.hpp>

#include "fuzz/fuzz.hpp"
#include "support/gguf_mutation.hpp"

namespace {

void read_field(const heed::GgufField& field) {
  if (field.holds<std::string_view>()) {
    for (const auto text : field.values<std::string_view>())
      heed::fuzz::require(text.data() != nullptr);
  }
  if (field.holds<double>()) field.values<double>();
  if (field.holds<bool>()) field.values<bool>();
  try {
    if (field.holds<std::int8_t>()) field.values<std::int8_t>();
  } catch (const heed::FileError&) {
  }
}

void read_tensor(const heed::Gguf& file, const heed::GgufTensor& tensor) {
  const heed::Index size = tensor.size();
  if (!heed::is_dequantizable(*tensor.type) || size == 0) return;
  float part[300];
  const auto count = static_cast<std::size_t>(std::min<heed::Index>(size, 300));
  file.read(tensor.name, 0, std::span(part, count));
  file.read(tensor.name, size - static_cast<heed::Index>(count), std::span(part, count));
}

}  // namespace

HEED_FUZZ_PIECES(heed::test::GgufPieces);

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto file = heed::fuzz::opened<heed::Gguf>(data, size);
  if (!file) return 0;
  heed::fuzz::require(heed::test::GgufPieces(std::string(data, data + size)).is_of(*file));
  for (const heed::GgufField& field : file->fields()) read_field(file->field(field.key));
  for (const heed::GgufTensor& tensor : file->entries()) {
    read_tensor(*file, file->entry(tensor.name));
  }
  try {
    const auto tokenizer = heed::load_tokenizer(*file);
    const auto tokens = tokenizer.encode("It's 12 <|im_end|>\n\n", heed::SpecialTokens::recognized);
    tokenizer.decode(tokens);
  } catch (const heed::FileError&) {
  }
  return 0;
}
