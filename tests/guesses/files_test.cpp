// SPDX-License-Identifier: MIT
// Names of files as a user has them: every kind of string is one.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <string_view>

#include <heed/heed.hpp>
#include <heed/io/gguf.hpp>
#include <heed/pretrained.hpp>
#include <heed/text.hpp>

#include "support/temporary_file.hpp"

using namespace heed;

namespace {

template <class Path>
void write_and_read(const Path& path) {
  const Tensor<float, 2> matrix({2, 3}, 1.5f);
  write_npy(path, matrix);
  EXPECT_EQ((load_npy<float, 2>(path)), matrix);
  SafetensorsWriter writer;
  writer.add("matrix", matrix);
  writer.write(path);
  EXPECT_EQ((load_safetensors(path).template tensor<float, 2>("matrix")), matrix);
  EXPECT_EQ(MappedFile(path).bytes().size(), read_file(path).size());
  Random random(1);
  Linear<float> layer(2, 2, random);
  save_weights(path, layer);
  load_weights(path, layer);
  AdamW optimizer(layer, {.learning_rate = 0.1});
  save_checkpoint(path, layer, optimizer, {});
  load_checkpoint(path, layer, optimizer);
  write_svg(path, heatmap_of(matrix));
  write_html(path, heatmap_of(matrix));
  EXPECT_THROW(load_model(path), FileError);
  EXPECT_THROW(load_llama<double>(path), FileError);
  EXPECT_THROW(load_packed_model(path), FileError);
  EXPECT_THROW(SentenceEncoder<float>::read(path), FileError);
  EXPECT_THROW(ModelConfig::read(path), FileError);
  EXPECT_THROW(Gguf::open(path), FileError);
  EXPECT_THROW(load_tokenizer(path), FileError);
  EXPECT_THROW(WordPiece::read(path), FileError);
}

TEST(Files, HaveNamesOfAnyKind) {
  const test::TemporaryFile file;
  const std::string path = file.path();
  write_and_read(path);
  write_and_read(path.c_str());
  write_and_read(std::string_view(path));
  write_and_read(std::filesystem::path(path));
}

}  // namespace
