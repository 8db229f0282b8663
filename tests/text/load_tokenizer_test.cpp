// SPDX-License-Identifier: MIT
#include <heed/text/load_tokenizer.hpp>

#include <gtest/gtest.h>

#include <span>
#include <string>
#include <utility>
#include <vector>

#include <heed/io/file.hpp>
#include <heed/io/gguf.hpp>

#include "support/file_error.hpp"
#include "support/gguf_file.hpp"
#include "support/models.hpp"
#include "support/temporary_file.hpp"
#include "text/golden_lines.hpp"

namespace heed::test {
namespace {

std::string quoted(std::string_view text) {
  std::string result = "\"";
  for (const char letter : text) {
    if (letter == '"' || letter == '\\') result += '\\';
    result += letter;
  }
  return result + "\"";
}

BytePairEncoding loaded(const std::string& text) { return parse_tokenizer(text, "tokenizer.json"); }

constexpr const char* gpt2_pieces =
    R"({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true})";
constexpr const char* smollm_pieces =
    R"({"type": "Sequence", "pretokenizers": [{"type": "Digits", "individual_digits": true},
        {"type": "ByteLevel", "add_prefix_space": false, "use_regex": true}]})";

/// The steps of Llama 3, or with "" as numbers those of Qwen2.
std::string split_pieces(const std::string& numbers) {
  return R"({"type": "Sequence", "pretokenizers": [
      {"type": "Split", "behavior": "Isolated", "invert": false, "pattern": {"Regex":
       "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N})" +
         numbers + R"(| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"}},
      {"type": "ByteLevel", "add_prefix_space": false, "use_regex": false}]})";
}

/// The golden vocabulary as tokenizers writes it; merges as texts or as pairs. `sparse`: without
/// every tenth merge.
std::string golden_json(const std::string& pieces, bool pairs, bool sparse = false) {
  const Gguf file = Gguf::open(text_golden("small_bpe.gguf"));
  std::string vocabulary, merges, added;
  Index id = 0, rank = 0;
  for (const auto token : file.values<std::string_view>("tokenizer.ggml.tokens")) {
    if (id < 3) {  // the last of them in the vocabulary too, as some files have it
      added += (id > 0 ? ", " : "") + ("{\"id\": " + std::to_string(id)) +
               ", \"content\": " + quoted(token) + ", \"special\": true}";
    }
    if (id >= 2) {
      vocabulary += (id > 2 ? ", " : "") + quoted(token) + ": " + std::to_string(id);
    }
    ++id;
  }
  for (const auto merge : file.values<std::string_view>("tokenizer.ggml.merges")) {
    if (sparse && ++rank % 10 == 0) continue;
    if (!merges.empty()) merges += ", ";
    const auto space = merge.find(' ');
    merges +=
        pairs ? "[" + quoted(merge.substr(0, space)) + ", " + quoted(merge.substr(space + 1)) + "]"
              : quoted(merge);
  }
  return "{\"version\": \"1.0\", \"truncation\": null, \"added_tokens\": [" + added +
         "], \"normalizer\": null, \"pre_tokenizer\": " + pieces +
         ", \"decoder\": {\"type\": \"ByteLevel\"}, \"model\": {\"type\": \"BPE\", "
         "\"dropout\": null, \"continuing_subword_prefix\": \"\", \"end_of_word_suffix\": null, "
         "\"byte_fallback\": false, \"vocab\": {" +
         vocabulary + "}, \"merges\": [" + merges + "]}}";
}

TEST(TokenizerJson, GivesTheTokensOfTheOriginal) {
  for (const bool pairs : {false, true}) {
    for (const auto& [pieces, ids] :
         {std::pair{gpt2_pieces, "small_gpt2.ids"}, std::pair{smollm_pieces, "small_smollm.ids"}}) {
      const auto tokenizer = loaded(golden_json(pieces, pairs));
      EXPECT_TRUE(tokenizer.is_special(2));
      EXPECT_FALSE(tokenizer.is_special(3));
      expect_golden(ids, [&](const std::string& line) {
        return tokenizer.encode(line, SpecialTokens::recognized);
      });
    }
  }
}

/// `text` with `to` in place of the first `from`.
std::string with(std::string text, const std::string& from, const std::string& to) {
  return text.replace(text.find(from), from.size(), to);
}

TEST(TokenizerJson, GivesTheTokensOfLlama3AndQwen2) {
  const auto expect = [](const std::string& text, const std::string& ids) {
    const auto tokenizer = loaded(text);
    expect_golden(ids, [&](const std::string& line) {
      return tokenizer.encode(line, SpecialTokens::recognized);
    });
  };
  const std::string llama3 = golden_json(split_pieces("{1,3}"), false, true);
  expect(with(llama3, "\"dropout\"", "\"ignore_merges\": true, \"dropout\""), "small_llama3.ids");
  const std::string qwen2 = golden_json(split_pieces(""), true, true);
  expect(with(with(qwen2, "\"dropout\"", "\"ignore_merges\": false, \"dropout\""),
              "\"normalizer\": null", R"("normalizer": {"type": "NFC"})"),
         "small_qwen2.ids");
}

/// A tokenizer of two letters with this instead of one of its parts.
std::string small(const std::string& from = "", const std::string& to = "") {
  std::string text =
      R"({"added_tokens": [{"id": 3, "content": "<end>"}], "normalizer": null,
          "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false},
          "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": ["a b"]}})";
  return from.empty() ? text : with(text, from, to);
}

TEST(TokenizerJson, ReadsTheSmallestThereIs) {
  const TemporaryFile file;
  const std::string text = small();
  write_file(file.path(), std::as_bytes(std::span(text)));
  const auto tokenizer = load_tokenizer(file.path());
  EXPECT_EQ(tokenizer.vocab_size(), 4);
  EXPECT_EQ(tokenizer.encode("abb<end>", SpecialTokens::recognized), (std::vector<Index>{2, 1, 3}));
}

// The numbers below are those of Hugging Face's tokenizers 0.23.

TEST(TokenizerJson, ReadsOlderFilesWithoutATypeAndWithAnEmptyUnknownToken) {
  const auto tokenizer = loaded(small("\"type\": \"BPE\"", R"("unk_token": "")"));
  EXPECT_EQ(tokenizer.encode("xab"), (std::vector<Index>{2}));
}

/// A tokenizer with a space, the bytes of a no-break space and these settings of "<end>" and of the
/// model.
BytePairEncoding spaced(const std::string& end, const std::string& model = "") {
  return loaded(R"({"added_tokens": [{"id": 6, "content": "<end>")" + end +
                R"(}], "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false},
          "model": {)" +
                model + R"("merges": ["a b"],
                    "vocab": {"a": 0, "b": 1, "ab": 2, "Ġ": 3, "Â": 4, "ł": 5, "<end>": 6}}})");
}

TEST(TokenizerJson, NamesTakeTheWhiteSpaceBesideThem) {
  const std::string text = "a \xc2\xa0<end>\xc2\xa0 b <end> <end>";
  const auto encoded = [&](const std::string& end) {
    return spaced(end).encode(text, SpecialTokens::recognized);
  };
  using Tokens = std::vector<Index>;
  EXPECT_EQ(encoded(""), (Tokens{0, 3, 4, 5, 6, 4, 5, 3, 1, 3, 6, 3, 6}));
  EXPECT_EQ(encoded(R"(, "rstrip": true)"), (Tokens{0, 3, 4, 5, 6, 1, 3, 6, 6}));
  EXPECT_EQ(encoded(R"(, "lstrip": true)"), (Tokens{0, 6, 4, 5, 3, 1, 6, 6}));
  EXPECT_EQ(encoded(R"(, "lstrip": true, "rstrip": true)"), (Tokens{0, 6, 1, 6, 6}));
}

TEST(TokenizerJson, AddedTokensThatAreNotSpecialAreAlwaysFoundBehindThoseThatAre) {
  using Tokens = std::vector<Index>;
  const auto expect = [](const std::string& added, const std::string& text, const Tokens& as_text,
                         const Tokens& recognized) {
    const auto tokenizer = loaded(small(
        "\"<end>\"}",
        R"("<end>", "special": true}, {"id": 4, "special": false, "content": ")" + added + "\"}"));
    EXPECT_EQ(tokenizer.encode(text), as_text) << added;
    EXPECT_EQ(tokenizer.encode(text, SpecialTokens::recognized), recognized) << added;
    EXPECT_EQ(tokenizer.text(4), added);
    EXPECT_TRUE(tokenizer.is_special(3));
    EXPECT_FALSE(tokenizer.is_special(4));
  };
  expect("bb", "a<end>abba", Tokens{0, 0, 4, 0}, Tokens{0, 3, 0, 4, 0});
  expect("a<", "a<end>abba<a", Tokens{4, 2, 1, 4, 0}, Tokens{0, 3, 2, 1, 4, 0});
  expect("b<end", "ab<end>ba", Tokens{0, 4, 1, 0}, Tokens{2, 3, 1, 0});
}

TEST(TokenizerJson, NormalizedAddedTokensAreFoundInNormalFormC) {
  const auto tokenizer = loaded(R"({"added_tokens": [
      {"id": 4, "content": "<x>", "special": true, "normalized": false},
      {"id": 5, "content": "<K>", "special": false, "normalized": true},
      {"id": 6, "content": "<a>", "special": false, "normalized": false}],
      "normalizer": {"type": "NFC"},
      "model": {"merges": ["a b"], "vocab": {"K": 0, "a": 1, "b": 2, "ab": 3}},
      "pre_tokenizer": )" + split_pieces("") +
                                "}");
  const auto expect = [&](std::string_view text, const std::vector<Index>& tokens) {
    EXPECT_EQ(tokenizer.encode(text, SpecialTokens::recognized), tokens) << text;
  };
  expect("abK", {3, 0});
  expect("\u212aab", {0, 3});  // the sign of Kelvin
  expect("<K>a", {5, 1});
  expect("<\u212a>a", {5, 1});
  expect("<x><K><a>b", {4, 5, 6, 2});
  expect("<a\u0338>a>", {1, 1});
  expect("a<K>\u0338b", {1, 0, 2});  // U+226F, ≯
  expect("a<a>\u0338b", {1, 6, 2});
}

TEST(TokenizerJson, APieceThatIsATokenMayIgnoreMerges) {
  const auto tokenizer = loaded(R"({"added_tokens": [
      {"id": 4, "content": "end", "special": true, "normalized": false}],
      "model": {"ignore_merges": true, "merges": [],
                "vocab": {"a": 0, "b": 1, "ab": 2, "aba": 3, "end": 4}},
      "pre_tokenizer": )" + split_pieces("{1,3}") +
                                "}");
  using Tokens = std::vector<Index>;
  EXPECT_EQ(tokenizer.encode("ab"), Tokens{2});
  EXPECT_EQ(tokenizer.encode("aba"), Tokens{3});
  EXPECT_EQ(tokenizer.encode("abab"), (Tokens{0, 1, 0, 1}));
  EXPECT_EQ(tokenizer.encode(" aba"), (Tokens{0, 1, 0}));
  EXPECT_EQ(tokenizer.encode("ab1aba"), (Tokens{2, 3}));
  EXPECT_EQ(tokenizer.encode("end"), Tokens{}) << "what users type is text";
  EXPECT_EQ(tokenizer.encode("end", SpecialTokens::recognized), Tokens{4});
}

TEST(TokenizerJson, RefusesOtherSteps) {
  const auto expect = [](const std::string& from, const std::string& to, const char* word) {
    const std::string text = small(R"({"type": "ByteLevel", "add_prefix_space": false})",
                                   with(split_pieces("{1,3}"), from, to));
    const auto refusal = file_error_of([&] { loaded(text); });
    EXPECT_NE(refusal.find(word), std::string::npos) << to << ": " << refusal;
  };
  expect("?\\\\p{L}+|", "?[\\\\p{L}\\\\p{M}]+|",  // Qwen3.5
         R"(the pattern of Split is '(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|)"
         R"(\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+', expected that of )"
         "Llama 3 or of Qwen2");
  expect("{1,3}", "{1,2}", "{1,2}| ?");
  expect("{1,3}", "{1,3}{1,3}", "the pattern of Split is");
  expect("(?i:", "", "the pattern of Split is ''s");
  expect("\\\\s+\"", "\"", "the pattern of Split is");
  expect("\"pattern\"", "\"other\"", "the pattern of Split is ''");
  expect("\"Isolated\"", "\"Removed\"",
         "the 'behavior' of Split is 'Removed', expected 'Isolated'");
  expect("\"invert\": false", "\"invert\": true", "'invert' is true");
  expect("\"use_regex\": false", "\"use_regex\": true", "'use_regex' is true, which is not read");
  expect(", \"use_regex\": false", "", "'use_regex' of ByteLevel behind Split is true");
  expect("\"ByteLevel\"", "\"Digits\"", "the pre-tokenizer is 'Split Digits '");
  expect("\"Split\"", "\"Punctuation\"", "'use_regex' is false");
}

TEST(TokenizerJson, MissingBytesBecomeTheUnknownToken) {
  using Tokens = std::vector<Index>;
  const auto alone = spaced("", R"("unk_token": "<end>", "fuse_unk": false, )");
  EXPECT_EQ(alone.encode("xyabz<end>qq", SpecialTokens::recognized), (Tokens{6, 6, 2, 6, 6, 6, 6}));
  EXPECT_EQ(alone.encode("x\xc3\xa9 bcc"), (Tokens{6, 6, 6, 3, 1, 6, 6}));
  EXPECT_FALSE(alone.has_byte('x'));
  const auto joined = spaced("", R"("unk_token": "<end>", "fuse_unk": true, )");
  EXPECT_EQ(joined.encode("xyabz<end>qq", SpecialTokens::recognized), (Tokens{6, 2, 6, 6, 6}));
  EXPECT_EQ(joined.encode("x\xc3\xa9 bcc"), (Tokens{6, 3, 1, 6}));
}

/// The small vocabulary of word pieces as transformers 5 writes it, with this instead of a part.
WordPiece pieces(const std::string& from = "", const std::string& to = "") {
  const auto tokenizer = WordPiece::read(text_golden("small_vocab.txt"));
  std::string text =
      R"({"added_tokens": [{"id": 1, "content": "[UNK]", "special": true}],
          "normalizer": {"type": "BertNormalizer", "clean_text": true,
                         "handle_chinese_chars": true, "strip_accents": null, "lowercase": true},
          "pre_tokenizer": {"type": "BertPreTokenizer"}, "post_processor": null,
          "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
                    "max_input_chars_per_word": 100, "vocab": {)";
  for (Index i = 0; i < tokenizer.vocab_size(); ++i) {
    const std::string name = tokenizer.name(i);
    text += (i > 0 ? ", " : "") + quoted(std::string_view(name)) + ": " + std::to_string(i);
  }
  text += "}}}";
  if (!from.empty()) text.replace(text.find(from), from.size(), to);
  const TemporaryFile file;
  write_file(file.path(), std::as_bytes(std::span(text)));
  return load_word_piece(file.path());
}

TEST(WordPieceJson, GivesTheTokensOfTheOriginal) {
  expect_golden("small_vocab.ids", [tokenizer = pieces()](const std::string& line) {
    return tokenizer.encode(line, SpecialTokens::recognized);
  });
}

TEST(WordPieceJson, FollowsItsSettings) {
  const auto equals = [](const WordPiece& tokenizer, const WordPieceOptions& options) {
    const auto other = WordPiece::read(text_golden("small_vocab.txt"), options);
    const std::string text = "The Ünïcödé naïve CAFÉ 我爱 unaffable";
    EXPECT_EQ(tokenizer.encode(text), other.encode(text));
    EXPECT_NE(tokenizer.encode(text), pieces().encode(text));
  };
  equals(pieces("\"lowercase\": true", "\"lowercase\": false"),
         {.lower_case = false, .strip_accents = false});
  equals(pieces("\"strip_accents\": null", "\"strip_accents\": false"), {.strip_accents = false});
  equals(pieces("\"handle_chinese_chars\": true", "\"handle_chinese_chars\": false"),
         {.split_cjk = false});
  equals(pieces("word\": 100", "word\": 2"), {.longest_word = 2});
}

TEST(WordPieceJson, AddedTokensOfTheVocabularyAreNames) {
  const std::string list = "\"added_tokens\": [";
  const auto with = [&](const std::string& settings) {
    return pieces(list, list + R"({"id": 801, "content": "un", "special": true)" + settings + "},");
  };
  // The numbers are those of tokenizers 0.23.
  using Ids = std::vector<Index>;
  const Ids named = {66, 801, 7, 7, 61, 67}, text = {66, 748, 7, 7, 61, 67};
  EXPECT_EQ(with("").encode("xun##s y", SpecialTokens::recognized), named);
  EXPECT_EQ(with("").encode("xun##s y"), text);
  EXPECT_EQ(with("").encode("AUNb [SEP]a", SpecialTokens::recognized), (Ids{43, 748, 461, 3, 43}));
  for (const char* other : {R"(, "special": false)", R"(, "normalized": true)"}) {
    const auto refusal = file_error_of(
        [&] { pieces(list, list + R"({"id": 801, "content": "un")" + other + "},"); });
    EXPECT_NE(refusal.find("added token 'un' is not special, or normalized"), std::string::npos)
        << refusal;
  }
  pieces("\"special\": true", R"("special": true, "normalized": true)");  // [UNK]
}

TEST(WordPieceJson, RefusesWhatItWouldReadWrongly) {
  for (const auto& [from, to, word] :
       {std::tuple{"BertNormalizer", "Lowercase", "'Lowercase', expected 'BertNormalizer'"},
        {"\"clean_text\": true", "\"clean_text\": false", "clean_text"},
        {"BertPreTokenizer", "Whitespace", "no BertPreTokenizer"},
        {"\"normalizer\"", "\"others\"", "no BertNormalizer"},
        {"\"##\"", "\"@@\"", "'@@', expected '##'"},
        {"\"unk_token\": \"[UNK]\"", "\"unk_token\": \"a\"", "'unk_token' is 'a'"},
        {"\"WordPiece\"", "\"Unigram\"", "expected 'WordPiece'"},
        {"\"added_tokens\": [", "\"added_tokens\": [{\"id\": 2000, \"content\": \"x\"}, ",
         "'x'"}}) {
    const auto refusal = file_error_of([&, f = from, t = to] { pieces(f, t); });
    EXPECT_NE(refusal.find(word), std::string::npos) << to << ": " << refusal;
  }
}

TEST(TokenizerJson, RefusesWhatItWouldReadWrongly) {
  const auto refusal = [](const std::string& from, const std::string& to) {
    return file_error_of([&] { loaded(small(from, to)); });
  };
  const auto expect = [&](const std::string& from, const std::string& to, const char* word) {
    EXPECT_NE(refusal(from, to).find(word), std::string::npos) << to << ": " << refusal(from, to);
  };
  expect("BPE", "Unigram", "Unigram");
  expect(R"("type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2}, "merges")",
         R"("vocab": {}, "others")", "no 'type'");
  expect("\"vocab\"", R"("unk_token": "zz", "vocab")", "'zz', which is no token");
  expect("\"<end>\"", R"("<end>", "single_word": true)", "single_word");
  expect("\"normalizer\": null", R"("normalizer": {"type": "NFD"})", "a normalizer, 'NFD', which");
  expect("\"<end>\"}], \"normalizer\": null",
         "\"e\u0301\", \"special\": false, \"normalized\": true}], \"normalizer\": {\"type\": "
         "\"NFC\"}",
         "added token 'e\u0301' is not in normal form C");
  expect("\"ByteLevel\"", "\"Metaspace\"", "Metaspace");
  expect("\"add_prefix_space\": false", "\"add_prefix_space\": true", "add_prefix_space");
  expect("\"pre_tokenizer\"", "\"others\"", "ByteLevel");
  expect("\"vocab\"", R"("byte_fallback": true, "vocab")", "byte_fallback");
  expect("\"vocab\"", R"("ignore_merges": 1, "vocab")", "expected true or false");
  expect("\"vocab\"", R"("end_of_word_suffix": "</w>", "vocab")", "</w>");
  expect("\"id\": 3", "\"id\": 4", "number 4 of 4");
  expect("\"id\": 3", "\"id\": 2", "one number");
  expect("\"id\": 3, ", "", "number -1");
  expect("\"b\": 1", "\"b\": 0", "one number");
  expect("\"b\": 1", "\"a\": 1", "twice");
  expect("[\"a b\"]", "[[\"a\"]]", "a merge of 1");
  expect("[\"a b\"]", "[\"a c\"]", "a c");
  expect("\"normalizer\": null", "\"model\": {}", "type");
  expect("\"normalizer\": null", "\"added_tokens\": []", "twice");
  EXPECT_EQ(refusal("BPE", "WordLevel").find("tokenizer.json: byte "), 0u);
  EXPECT_THROW(load_tokenizer("/no/such/tokenizer.json"), FileError);
}

TEST(TokenizerJson, AFileThatBreaksOffIsRefused) {
  const std::string text = small();
  for (std::size_t size = 0; size < text.size(); ++size) {
    EXPECT_THROW(loaded(text.substr(0, size)), FileError) << size;
  }
}

}  // namespace
}  // namespace heed::test

namespace heed {
namespace {

BytePairVocabulary small_vocabulary() {
  const Gguf file = Gguf::open(test::text_golden("small_bpe.gguf"));
  BytePairVocabulary vocabulary;
  for (const auto token : file.values<std::string_view>("tokenizer.ggml.tokens"))
    vocabulary.tokens.emplace_back(token);
  for (const auto merge : file.values<std::string_view>("tokenizer.ggml.merges"))
    vocabulary.merges.emplace_back(merge);
  vocabulary.special = {0, 1, 2};
  return vocabulary;
}

/// Ids as golden, and back to the very bytes, or to those of the normal form.
void expect_equal(const BytePairEncoding& tokenizer, const std::string& name, bool nfc = false) {
  test::expect_golden(name, [&](const std::string& line) {
    const auto tokens = tokenizer.encode(line, SpecialTokens::recognized);
    std::string known;
    for (const char byte : nfc ? unicode::nfc(line) : line) {
      if (tokenizer.has_byte(static_cast<unsigned char>(byte))) known += byte;
    }
    EXPECT_EQ(tokenizer.decode(tokens), known);
    EXPECT_EQ(tokenizer.decode(tokenizer.encode(line)), known);
    return tokens;
  });
}

TEST(GgufTokenizer, EqualsTheOriginalOnTheSmallVocabulary) {
  expect_equal(load_tokenizer(Gguf::open(test::text_golden("small_bpe.gguf"))), "small_gpt2.ids");
  expect_equal(load_tokenizer(test::text_golden("small_bpe.gguf")), "small_gpt2.ids");
  BytePairVocabulary vocabulary = small_vocabulary();
  vocabulary.pre_tokenizer = PreTokenizer::smollm;
  expect_equal(BytePairEncoding(vocabulary), "small_smollm.ids");
}

TEST(BytePairs, EqualTheOriginalsOfLlama3AndQwen2OnTheSmallVocabulary) {
  BytePairVocabulary vocabulary = small_vocabulary();
  TextList merges;
  for (std::size_t i = 0; i < vocabulary.merges.size(); ++i) {
    if (i % 10 != 9) merges.push_back(vocabulary.merges[i]);
  }
  vocabulary.merges = merges;
  vocabulary.pre_tokenizer = PreTokenizer::qwen2;
  vocabulary.nfc = true;
  expect_equal(BytePairEncoding(vocabulary), "small_qwen2.ids", true);
  vocabulary.pre_tokenizer = PreTokenizer::llama3;
  vocabulary.nfc = false;
  vocabulary.ignores_merges = true;
  expect_equal(BytePairEncoding(vocabulary), "small_llama3.ids");
}

TEST(GgufTokenizer, EqualsTheOriginalOnTheRealVocabulary) {
  HEED_NEEDS_MODELS();
  const auto tokenizer = load_tokenizer(Gguf::open(test::model_file("smollm2.gguf")));
  EXPECT_EQ(tokenizer.vocab_size(), 49152);
  EXPECT_TRUE(tokenizer.is_special(2));
  EXPECT_FALSE(tokenizer.is_special(17));
  EXPECT_FALSE(tokenizer.has_byte(4)) << "this vocabulary lacks some control characters";
  expect_equal(tokenizer, "smollm2.ids");
}

/// A file with this metadata, read as a tokenizer.
BytePairEncoding read(const std::string& model, const std::string& pre, const std::string& types) {
  test::GgufFile file;
  file.field("tokenizer.ggml.model", 8, test::gguf_text(model));
  file.field("tokenizer.ggml.pre", 8, test::gguf_text(pre));
  file.field("tokenizer.ggml.tokens", 9,
             test::raw(8u) + test::raw<std::uint64_t>(3) + test::gguf_text("a") +
                 test::gguf_text("b") + test::gguf_text("ab"));
  file.field("tokenizer.ggml.merges", 9,
             test::raw(8u) + test::raw<std::uint64_t>(1) + test::gguf_text("a b"));
  file.field("tokenizer.ggml.token_type", 9, types);
  return load_tokenizer(Gguf(SharedBytes(test::bytes_of(file.text())), "x"));
}
/// The types of three tokens, the first and two normal ones.
std::string types_of(int first) {
  return test::raw(5u) + test::raw<std::uint64_t>(3) + test::raw(first) + test::raw(1) +
         test::raw(1);
}

TEST(GgufTokenizer, ControlTokensAreFoundWhereAskedForUserDefinedOnesAlways) {
  for (const auto& [type, as_text] : {std::pair{3, std::vector<Index>{2}}, {4, {0, 1}}}) {
    const auto tokenizer = read("gpt2", "gpt-2", types_of(type));
    EXPECT_EQ(tokenizer.encode("abc"), as_text);
    EXPECT_EQ(tokenizer.encode("ab", SpecialTokens::recognized), (std::vector<Index>{0, 1}));
    EXPECT_EQ(tokenizer.is_special(0), type == 3);
  }
}

TEST(GgufTokenizer, NamesOfPreTokenizersStandForAllThatBelongsToThem) {
  const auto tokens = [](const std::string& pre) {
    const std::vector<std::string> texts = {"1", "K", "11", "KK", "!", "Ċ", "!Ċ", "KKK"};
    std::string all = test::raw(8u) + test::raw<std::uint64_t>(texts.size());
    for (const std::string& text : texts) all += test::gguf_text(text);
    test::GgufFile file;
    file.field("tokenizer.ggml.model", 8, test::gguf_text("gpt2"));
    file.field("tokenizer.ggml.pre", 8, test::gguf_text(pre));
    file.field("tokenizer.ggml.tokens", 9, all);
    file.field("tokenizer.ggml.merges", 9,
               test::raw(8u) + test::raw<std::uint64_t>(3) + test::gguf_text("1 1") +
                   test::gguf_text("K K") + test::gguf_text("! Ċ"));
    return load_tokenizer(Gguf(SharedBytes(test::bytes_of(file.text())), "x"))
        .encode("KKK11\u212aK!\n");
  };
  using Ids = std::vector<Index>;
  EXPECT_EQ(tokens("gpt-2"), (Ids{3, 1, 2, 1, 4, 5}));
  EXPECT_EQ(tokens("smollm"), (Ids{3, 1, 0, 0, 1, 4, 5}));
  EXPECT_EQ(tokens("llama-bpe"), (Ids{7, 2, 1, 6})) << "KKK is a token, whatever the merges say";
  EXPECT_EQ(tokens("qwen2"), (Ids{3, 1, 0, 0, 3, 6})) << "the sign of Kelvin is a K";
}

TEST(GgufTokenizer, ErrorsNameTheField) {
  const auto verdict = [](const std::string& model, const std::string& pre,
                          const std::string& types) {
    return test::error_of([&] { read(model, pre, types); });
  };
  const std::string types = types_of(3);
  EXPECT_EQ(verdict("gpt2", "gpt-2", types), "accepted");
  EXPECT_EQ(verdict("llama", "gpt-2", types),
            "x: byte 56: 'tokenizer.ggml.model' is 'llama', expected 'gpt2'");
  EXPECT_EQ(verdict("gpt2", "qwen35", types),
            "x: byte 98: 'tokenizer.ggml.pre' is 'qwen35', expected 'gpt-2', 'smollm', 'llama-bpe' "
            "or 'qwen2'");
  EXPECT_EQ(verdict("gpt2", "smollm", test::raw(5u) + test::raw<std::uint64_t>(1) + test::raw(1)),
            "x: byte 290: 'tokenizer.ggml.token_type' has 1 types for 3 tokens");
  EXPECT_EQ(verdict("gpt2", "smollm", test::raw(6u) + test::raw<std::uint64_t>(0)),
            "x: byte 290: 'tokenizer.ggml.token_type' is f32, expected an integer");
  test::GgufFile empty;
  empty.field("tokenizer.ggml.model", 8, test::gguf_text("gpt2"));
  empty.field("tokenizer.ggml.tokens", 9,
              test::raw(8u) + test::raw<std::uint64_t>(2) + std::string(16, '\0'));
  empty.field("tokenizer.ggml.merges", 9, test::raw(8u) + test::raw<std::uint64_t>(0));
  EXPECT_EQ(
      test::error_of([&] { load_tokenizer(Gguf(SharedBytes(test::bytes_of(empty.text())), "x")); }),
      "x: byte 113: 'tokenizer.ggml.tokens' make no tokenizer: vocabulary: '' twice, as token 0 "
      "and 1");
  EXPECT_EQ(test::error_of([] {
              load_tokenizer(Gguf(SharedBytes(test::bytes_of(test::GgufFile().text())), "x"));
            }),
            "x: no field 'tokenizer.ggml.model'");
}

}  // namespace
}  // namespace heed
