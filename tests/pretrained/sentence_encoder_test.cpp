// SPDX-License-Identifier: MIT
#include <heed/pretrained/sentence_encoder.hpp>

#include <filesystem>
#include <fstream>

#include <heed/io/detail/json_reader.hpp>

#include "pretrained/pretrained_files.hpp"
#include "support/attention_cases.hpp"
#include "support/models.hpp"

namespace heed::test {
namespace {

/// The golden BERT of random weights over letters.
template <class T>
SentenceEncoder<T> small() {
  std::vector<std::string> tokens = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "."};
  for (char letter = 'a'; tokens.size() < 29; ++letter) tokens.emplace_back(1, letter);
  return {load_bert<T>(pretrained_golden("bert")), WordPiece(tokens)};
}

const std::vector<std::string> letters = {"a b c.", "d", "", "e f g h a b c d e f g h i j", "b."};

/// The mean over a padded batch, of which `vectors` holds the directions.
template <class T>
void expect_same_direction(const Tensor<T, 2>& means, const Tensor<T, 2>& vectors, Index row) {
  double square = 0;
  for (Index d = 0; d < means.extent(1); ++d) {
    square += static_cast<double>(means(row, d)) * static_cast<double>(means(row, d));
  }
  for (Index d = 0; d < means.extent(1); ++d) {
    EXPECT_EQ(vectors(row, d),
              static_cast<T>(static_cast<double>(means(row, d)) / std::sqrt(square)));
  }
}

template <class T>
void expect_padding_and_batch_change_nothing(const SentenceEncoder<T>& encoder,
                                             const std::vector<std::string>& sentences) {
  auto batch = encoder.tokens(sentences);
  const auto together = encoder.embed(batch);
  const auto padded = mean_pool(
      encoder.model().forward(batch.tokens, masks::Padding(batch.lengths)), batch.lengths);
  for (Index row = 0; row < batch.tokens.extent(0); ++row) {
    const auto at = static_cast<std::size_t>(row);
    const std::vector<std::string> alone = {sentences[at]};
    EXPECT_TRUE(same_bits(encoder.embed(alone),
                          Tensor<T, 2>::copy_of(together.view().slice(0, row, row + 1))))
        << sentences[at];
    expect_same_direction(padded, together, row);
    for (Index i = batch.lengths[at]; i < batch.tokens.extent(1); ++i) {
      batch.tokens(row, i) = (7 * i + row) % encoder.tokenizer().vocab_size();
    }
  }
  EXPECT_TRUE(same_bits(encoder.embed(batch), together)) << "padding of other content";
}

TEST(SentenceEncoder, LengthsMustFit) {
  const auto encoder = small<float>();
  auto batch = encoder.tokens(letters);
  batch.lengths[1] = 0;
  const auto vectors = encoder.embed(batch);
  for (Index d = 0; d < vectors.extent(1); ++d) EXPECT_EQ(vectors(1, d), 0) << "no tokens";
  batch.lengths[1] = -1;
  EXPECT_THROW(encoder.embed(batch), ShapeError);
  batch.lengths[1] = batch.tokens.extent(1) + 1;
  EXPECT_THROW(encoder.embed(batch), ShapeError);
  batch.lengths.pop_back();
  EXPECT_THROW(encoder.embed(batch), ShapeError);
  EXPECT_EQ(encoder.embed(SentenceBatch{Tokens({0, 0}), {}}).extent(0), 0);
}

TEST(SentenceEncoder, TokensAndLengths) {
  const auto encoder = small<float>();
  const auto batch = encoder.tokens(letters);
  EXPECT_EQ(batch.lengths, (std::vector<Index>{6, 3, 2, 13, 4})) << "cut to what the model can";
  EXPECT_EQ(batch.tokens.extents(), (Extents<2>{5, 13}));
  EXPECT_EQ(batch.tokens(0, 0), 2);
  EXPECT_EQ(batch.tokens(0, 5), 3);
  EXPECT_EQ(batch.tokens(0, 6), 0);
  EXPECT_EQ(batch.tokens(3, 12), 3);
  EXPECT_EQ(encoder.tokens(letters, 4).tokens.extent(1), 4);
  EXPECT_THROW(encoder.tokens(letters, 14), InvalidArgument);
  EXPECT_THROW(encoder.tokens(letters, 1), InvalidArgument);
  const SentenceEncoder<float> cut(encoder.model(), encoder.tokenizer(), 5);
  EXPECT_EQ(cut.tokens(letters).tokens.extent(1), 5);
  EXPECT_EQ(cut.tokens(letters, 13).tokens.extent(1), 13);
  EXPECT_THROW(SentenceEncoder<float>(encoder.model(), encoder.tokenizer(), 14), InvalidArgument);
  EXPECT_EQ(encoder.tokens(letters, 2).lengths, std::vector<Index>(5, 2));
  std::vector<std::string> other = {"[UNK]", "[CLS]", "[SEP]", "[PAD]"};
  while (other.size() < 29) other.push_back("x" + std::to_string(other.size()));
  const auto padded = SentenceEncoder<float>(encoder.model(), WordPiece(other)).tokens(letters);
  EXPECT_EQ(padded.tokens(1, 5), 3) << "padding is what the vocabulary calls so";
  std::vector<std::string> many(30, "[UNK]");
  for (std::size_t i = 1; i < 30; ++i) many[i] = "x" + std::to_string(i);
  EXPECT_THROW(SentenceEncoder<float>(encoder.model(), WordPiece(many)), ShapeError);
}

TEST(SentenceEncoder, AFolderHasItsTokenizerAndAVocabularyThatDoesNotFitIsAFileError) {
  const std::filesystem::path folder = ::testing::TempDir() + "sentence_encoder_test";
  std::filesystem::create_directories(folder);
  for (const char* name : {"config.json", "model.safetensors"}) {
    std::filesystem::copy_file(pretrained_golden("bert/") + name, folder / name,
                               std::filesystem::copy_options::overwrite_existing);
  }
  const auto refusal = [&](std::vector<std::string> tokens, std::size_t lines) {
    while (tokens.size() < lines) tokens.push_back("x" + std::to_string(tokens.size()));
    std::ofstream out(folder / "vocab.txt");
    for (const auto& token : tokens) out << token << '\n';
    out.close();
    return file_error_of([&] { SentenceEncoder<float>::read(folder.string()); });
  };
  EXPECT_EQ(refusal({"[PAD]", "[UNK]", "[CLS]", "[SEP]", "a", "A"}, 29), "");
  const auto tokens_of = [&](const std::string& sentence) {
    return SentenceEncoder<float>::read(folder.string()).tokens(std::vector{sentence}).tokens;
  };
  EXPECT_EQ(tokens_of("A")(0, 1), 4);
  std::ofstream(folder / "tokenizer_config.json") << R"({"do_lower_case": false})";
  EXPECT_EQ(tokens_of("A")(0, 1), 5) << "a model that tells letters' cases apart";
  const auto more = refusal({"[PAD]", "[UNK]", "[CLS]", "[SEP]"}, 30);
  EXPECT_NE(more.find("vocab.txt: SentenceEncoder: a vocabulary of 30"), std::string::npos) << more;
  EXPECT_NE(refusal({"[PAD]", "[UNK]", "[SEP]"}, 29).find("[CLS]"), std::string::npos);
  EXPECT_NE(refusal({"[PAD]", "[UNK]", "[CLS]"}, 29).find("[SEP]"), std::string::npos);
  EXPECT_NE(refusal({"[SEP]", "[UNK]", "[CLS]"}, 29).find("[PAD]"), std::string::npos);
  std::filesystem::remove_all(folder);
}

TEST(SentenceEncoder, AFolderSaysHowToPoolAndWhereToCut) {
  const Folder folder("bert");
  folder.write("vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\na\n");
  const std::vector<std::string> sentence = {"a a a a a a a a a a a a a a"};
  const auto length = [&] {
    return SentenceEncoder<float>::read(folder.path()).tokens(sentence).tokens.extent(1);
  };
  const auto refusal = [&](const std::string& file, const std::string& text) {
    folder.write(file, text);
    return file_error_of(length);
  };
  const std::string pooling = "1_Pooling/config.json", cut = "sentence_bert_config.json";
  for (const char* other :
       {R"("pooling_mode": "cls")", R"("pooling_mode_cls_token": true)",
        R"("pooling_mode_mean_tokens": false)", R"("pooling_mode_max_tokens": true)",
        R"("pooling_mode_mean_sqrt_len_tokens": true)", R"("pooling_mode_lasttoken": true)",
        R"("pooling_mode_weightedmean_tokens": true)"}) {
    const std::string entry = other, said = refusal(pooling, "{" + entry + "}");
    const std::string words = "'" + entry.substr(1, entry.find(':') - 2) + "' is ";
    EXPECT_NE(said.find(words), std::string::npos) << said;
    EXPECT_NE(said.find(pooling), std::string::npos) << said;
  }
  for (const char* mean :
       {"{}", R"({"pooling_mode": "mean"})",
        R"({"pooling_mode_cls_token": false, "pooling_mode_mean_tokens": true})"}) {
    EXPECT_EQ(refusal(pooling, mean), "");
  }
  EXPECT_EQ(length(), 13);
  EXPECT_NE(refusal(cut, R"({"max_seq_length": 1})").find("'max_seq_length' is 1"),
            std::string::npos);
  for (const auto& [given, expected] : {std::pair{"5", 5}, {"null", 13}, {"512", 13}}) {
    EXPECT_EQ(refusal(cut, R"({"max_seq_length": )" + std::string(given) + "}"), "");
    EXPECT_EQ(length(), expected);
  }
}

TEST(SentenceEncoder, AModuleThatItLacksIsRefused) {
  const Folder folder("bert");
  folder.write("vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\na\n");
  const auto refusal = [&](const std::string& more) {
    folder.write("modules.json", R"([{"idx": 0, "name": "0", "path": "",
        "type": "sentence_transformers.models.Transformer"})" +
                                     more + "]");
    return file_error_of([&] { SentenceEncoder<float>::read(folder.path()); });
  };
  EXPECT_EQ(refusal(""), "");
  EXPECT_EQ(refusal(R"(, {"type": "sentence_transformers.models.Pooling", "path": "1_Pooling"},
      {"type": "sentence_transformers.sentence_transformer.modules.normalize.Normalize"})"),
            "");
  const auto dense = refusal(R"(, {"type": "sentence_transformers.models.Dense"})");
  EXPECT_NE(dense.find("modules.json: byte "), std::string::npos) << dense;
  EXPECT_NE(dense.find("a module 'sentence_transformers.models.Dense', expected Transformer, "
                       "Pooling or Normalize"),
            std::string::npos)
      << dense;
  EXPECT_NE(refusal(R"(, {"type": "OtherPooling"})").find("'OtherPooling'"), std::string::npos);
  EXPECT_NE(refusal(R"(, {"name": "2"})").find("a module ''"), std::string::npos);
}

TEST(SentenceEncoder, VectorsOfLengthOneThatPaddingDoesNotChange) {
  expect_padding_and_batch_change_nothing(small<float>(), letters);
  expect_padding_and_batch_change_nothing(small<double>(), letters);
  const auto vectors = small<double>().embed(letters);
  for (Index row = 0; row < vectors.extent(0); ++row) {
    double square = 0;
    for (Index d = 0; d < vectors.extent(1); ++d) square += vectors(row, d) * vectors(row, d);
    EXPECT_NEAR(square, 1, 1e-12);
  }
}

TEST(SentenceEncoder, MiniLMEqualsTransformers) {
  HEED_NEEDS_MODELS();
  const auto bytes = read_file(pretrained_golden("minilm_sentences.json"));
  detail::JsonReader json({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, "sentences");
  std::vector<std::string> sentences;
  json.array([&] { sentences.push_back(json.string()); });
  ASSERT_EQ(sentences.size(), 8u);
  const auto encoder = SentenceEncoder<float>::read(model_file("minilm"));
  const double most =
      largest_difference(encoder.embed(sentences), pretrained_array<float, 2>("minilm_embeddings"));
  EXPECT_LT(most, 1e-5);
  RecordProperty("largest_difference", std::to_string(most));
  expect_padding_and_batch_change_nothing(encoder, sentences);
  const auto narrow =
      SentenceEncoder<float>::read(model_file("minilm"), Products::bfloat16).embed(sentences);
  const auto exact = encoder.embed(sentences);
  for (Index row = 0; row < exact.extent(0); ++row) {
    float cosine = 0;
    for (Index d = 0; d < exact.extent(1); ++d) cosine += narrow(row, d) * exact(row, d);
    EXPECT_GT(cosine, 0.999f) << sentences[static_cast<std::size_t>(row)];
    EXPECT_LT(cosine, 0.9999999f) << "rounded";
  }
}

}  // namespace
}  // namespace heed::test
