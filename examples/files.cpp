// SPDX-License-Identifier: MIT
// What docs/10-files.md shows: tensors in files, and text as token numbers.
// usage: files [MODEL.gguf]
#include <unistd.h>

#include <cstdio>
#include <exception>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include <heed/io.hpp>
#include <heed/io/gguf.hpp>
#include <heed/tensor.hpp>
#include <heed/text.hpp>

#include "help.hpp"

namespace {

using namespace heed;

void print(const char* name, const std::vector<Index>& tokens) {
  std::printf("%s", name);
  for (const Index token : tokens) std::printf(" %td", token);
  std::puts("");
}

void safetensors(const std::string& path) {
  Tensor<float, 2> weights({2, 3}, {1, 2, 3, 4, 5, 6});
  const std::vector<float> bias = {0.1f, 0.2f, 0.3f};
  {
    // [write]
    SafetensorsWriter writer;
    writer.add("weights", weights);
    writer.add("bias", bias, ElementType::bf16);  // rounded to the nearest
    writer.note("step", "1000");
    writer.write(path);  // completely or not at all
    // [/write]
  }
  // [read]
  const auto file = load_safetensors(path);  // memory-mapped; only the header is read now
  const auto again = file.tensor<float, 2>("weights");
  const auto rounded = file.tensor<double, 1>("bias");
  for (const auto& entry : file.entries()) std::printf("%s ", entry.name.c_str());
  // [/read]
  std::printf("%g %g %s\n", static_cast<double>(again(1, 2)), rounded(0),
              file.metadata().at("step").c_str());
}

void errors(const std::string& path) {
  // [errors]
  try {
    const auto weights = load_safetensors(path).tensor<float, 1>("weights");
  } catch (const FileError& error) {
    std::puts(error.what());
  }
  // [/errors]
}

void arrays(const std::string& path) {
  // [npy]
  const std::vector<double> values = {1, 2, 3};
  write_npy(path, values);
  const auto array = load_npy<double, 1>(path);
  // [/npy]
  std::printf("%td values\n", array.size());
}

void tokenizers() {
  // [tokenizers]
  const ByteTokenizer bytes;
  const CharacterTokenizer characters("the quick brown fox");
  const WordPiece pieces(
      {"[UNK]", "un", "##aff", "##able", "!"});  // or WordPiece::read("vocab.txt")
  print("bytes     ", bytes.encode("fox"));
  print("characters", characters.encode("fox"));
  print("pieces    ", pieces.encode("Unaffable!"));
  // [/tokenizers]
  std::printf("and back: %s\n", pieces.decode(pieces.encode("Unaffable!")).c_str());
}

void model(const std::string& path) {
  // [gguf]
  const auto file = Gguf::open(path);  // memory-mapped
  const auto layers = file.value<Index>("llama.block_count");
  const auto norm = file.tensor<float, 1>("output_norm.weight");  // dequantized
  std::vector<float> row(576);
  file.read("token_embd.weight", 42 * 576, row);  // one row of a large table

  const BytePairEncoding tokenizer = load_tokenizer(file);
  const auto text = tokenizer.encode("Hello <|im_end|>");  // what users type is text
  const auto chat = tokenizer.encode("Hello <|im_end|>", SpecialTokens::recognized);
  // [/gguf]
  std::printf("%td layers, %td wide, %g\n", layers, norm.size(), static_cast<double>(row[0]));
  print("as text   ", text);
  print("recognized", chat);
}

}  // namespace

int main(int count, char** arguments) {
  int status = 0;
  if (example::helped(
          count, arguments,
          "Tensors in files, and text as token numbers; what is in a Llama's GGUF file.", status,
          " [MODEL.gguf]", 0, 1)) {
    return status;
  }
  try {
    const std::string gguf = count > 1 ? std::filesystem::absolute(arguments[1]).string() : "";
    if (!gguf.empty()) static_cast<void>(Gguf::open(gguf));  // refused before the rest is printed
    const auto folder = std::filesystem::temp_directory_path() /
                        ("heed_files_example_" + std::to_string(::getpid()));
    std::filesystem::create_directory(folder);
    std::filesystem::current_path(folder);
    safetensors("model.safetensors");
    errors("model.safetensors");
    arrays("array.npy");
    tokenizers();
    std::filesystem::current_path(folder.parent_path());
    std::filesystem::remove_all(folder);
    if (!gguf.empty()) model(gguf);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "files: %s\n", error.what());
    return 2;
  }
}
