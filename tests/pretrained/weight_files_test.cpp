// SPDX-License-Identifier: MIT
// Models whose weights are in several files, which an index names.
#include <heed/pretrained/load_model.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <limits>
#include <string>
#include <vector>

#include <heed/io/safetensors.hpp>

#include "pretrained/pretrained_files.hpp"
#include "support/attention_cases.hpp"

namespace heed::test {
namespace {

const std::string index_name = "model.safetensors.index.json";
const std::array<std::string, 2> parts = {"model-00001-of-00002.safetensors",
                                          "model-00002-of-00002.safetensors"};

/// The golden GPT-2, with every second weight in another file.
class PartsFolder : public Folder {
 public:
  PartsFolder() : Folder("gpt2"), golden_(load_safetensors(path() + "/model.safetensors")) {
    std::filesystem::remove(path() + "/model.safetensors");
    std::array<SafetensorsWriter, 2> writers;
    std::string map;
    std::size_t part = 0;
    for (const auto& entry : golden_.entries()) {
      add(writers[part], entry.name);
      map += (map.empty() ? "\"" : ", \"") + entry.name + "\": \"" + parts[part] + "\"";
      part = 1 - part;
    }
    for (const std::size_t i : {0u, 1u}) writers[i].write(path() + "/" + parts[i]);
    index_ = R"({"metadata": {"total_size": 18336}, "weight_map": {)" + map + "}}";
    write(index_name, index_);
  }
  void add(SafetensorsWriter& writer, const std::string& name) const {
    const auto& entry = golden_.entry(name);
    writer.add_bytes(name, entry.type, entry.shape(), golden_.bytes(name));
  }
  /// The index, with a text in place of another one.
  std::string index(const std::string& from, const std::string& to) const {
    std::string text = index_;
    return text.replace(text.find(from), from.size(), to);
  }
  /// How the folder with that index is refused.
  std::string refusal(const std::string& index) const {
    write(index_name, index);
    std::string said = file_error_of([&] { load_gpt2<float>(path()); });
    const std::string start = path() + "/" + index_name + ": ";
    EXPECT_TRUE(said.starts_with(start)) << said;
    return said.substr(std::min(said.size(), start.size()));
  }

 private:
  Safetensors golden_;
  std::string index_;
};

TEST(WeightFiles, SeveralHaveTheModelOfOne) {
  const PartsFolder folder;
  const auto tokens = pretrained_tokens("gpt2/tokens");
  const auto expected = load_gpt2<float>(pretrained_golden("gpt2")).forward(tokens);
  EXPECT_TRUE(same_bits(load_gpt2<float>(folder.path()).forward(tokens), expected));
  auto loaded = load_model(folder.path());
  EXPECT_TRUE(same_bits(loaded.language_model().forward(tokens), expected));
  const WeightFile all = detail::weights_in(folder.path());
  const WeightFile one = weights_of(pretrained_golden("gpt2/model.safetensors"));
  EXPECT_EQ(all.name(), folder.path() + "/" + index_name);
  EXPECT_EQ(all.bytes(), one.bytes());
  auto names = all.names(), expected_names = one.names();
  std::sort(names.begin(), names.end());
  std::sort(expected_names.begin(), expected_names.end());
  EXPECT_EQ(names, expected_names);
  const WeightFile copy = all;
  for (const auto& name : names) {
    const auto shape = copy.shape(name), expected_shape = one.shape(name);
    EXPECT_TRUE(
        std::equal(shape.begin(), shape.end(), expected_shape.begin(), expected_shape.end()));
    const auto stored = copy.stored(name), expected_bytes = one.stored(name);
    EXPECT_TRUE(
        std::equal(stored.begin(), stored.end(), expected_bytes.begin(), expected_bytes.end()));
    EXPECT_EQ(copy.type(name), one.type(name));
    EXPECT_TRUE(copy.is_readable<double>(name));
  }
  EXPECT_FALSE(all.contains("x"));
  EXPECT_EQ(file_error_of([&] { all.stored("x"); }), all.name() + ": no tensor 'x'");
}

TEST(WeightFiles, OneFileAloneIsReadBesideAnIndex) {
  const Folder folder("gpt2");
  folder.write(index_name, "{}");
  EXPECT_NO_THROW(load_gpt2<float>(folder.path()));
}

TEST(WeightFiles, AModelThatDiffersIsRefusedByTheNameOfItsIndex) {
  const PartsFolder folder;
  SafetensorsWriter more;
  more.add("x", Tensor<float, 1>({1}));
  more.write(folder.path() + "/more.safetensors");
  EXPECT_EQ(folder.refusal(folder.index("_map\": {", "_map\": {\"x\": \"more.safetensors\", ")),
            "1 weight of the model and the file differ: 'x' is not the model's");
}

TEST(WeightFiles, FindsWeightsThatAreNotFiniteWhenAsked) {
  std::vector<Safetensors> files;
  for (const float last : {1.f, std::numeric_limits<float>::infinity()}) {
    SafetensorsWriter writer;
    const std::string name = last == 1 ? "a" : "b";
    writer.add(name, Tensor<float, 1>({2}, {1, last}));
    files.emplace_back(SharedBytes(writer.bytes()), name + ".safetensors");
  }
  const auto byte = files[1].entry("b").begin + 4;
  EXPECT_EQ(file_error_of([&] { WeightFile(files, "x").check_finite(); }),
            "b.safetensors: byte " + std::to_string(byte) + ": tensor 'b': a weight is inf");
}

TEST(WeightFiles, NamesWhatAnIndexHasAndTheFilesHaveNot) {
  const PartsFolder folder;
  const std::string differ = "the index and the files differ: ";
  EXPECT_EQ(folder.refusal(folder.index("\"transformer.h.0.", "\"transformer.x\": \"" + parts[1] +
                                                                  "\", \"transformer.h.0.")),
            differ + "'" + parts[1] + "' has no 'transformer.x'");
  const std::string others = R"(_map": {"x": "c.safetensors", "y": "c.safetensors",
                                        "z": "d.safetensors", )";
  EXPECT_EQ(folder.refusal(folder.index("_map\": {", others)),
            differ + "no file 'c.safetensors'; no file 'd.safetensors'");
  std::filesystem::remove(folder.path() + "/" + parts[0]);
  std::filesystem::create_symlink("nowhere", folder.path() + "/" + parts[0]);
  EXPECT_EQ(folder.refusal(folder.index(" ", " ")), differ + "no file '" + parts[0] + "'");
}

TEST(WeightFiles, RefusesATensorInTwoFiles) {
  const PartsFolder folder;
  SafetensorsWriter more;
  folder.add(more, "transformer.wpe.weight");
  more.add("x", Tensor<float, 1>({1}));
  more.write(folder.path() + "/more.safetensors");
  const std::string map = "_map\": {\"x\": \"more.safetensors\", ";
  const std::string said = folder.refusal(folder.index("_map\": {", map));
  EXPECT_TRUE(said.starts_with("tensor 'transformer.wpe.weight' is in two files, '")) << said;
  EXPECT_NE(said.find(".safetensors' and '" + folder.path() + "/more.safetensors'"), said.npos);
}

TEST(WeightFiles, AnIndexNamesFilesOfItsFolder) {
  const PartsFolder folder;
  const std::string outside = folder.path() + "_outside.safetensors";
  std::filesystem::copy(folder.path() + "/" + parts[0], outside);
  const std::string name = std::filesystem::path(outside).filename().string();
  const std::vector<std::string> refused = {"../" + name,
                                            outside,
                                            "./" + parts[0],
                                            "sub/" + parts[0],
                                            R"(..\\)" + parts[0],
                                            R"(sub\\)" + parts[0],
                                            parts[0] + R"(\u0000.safetensors)",
                                            "..",
                                            "..safetensors",
                                            "config.json",
                                            ""};
  for (const std::string& file : refused) {
    const std::string said = folder.refusal(folder.index(parts[0], file));
    EXPECT_TRUE(said.starts_with("byte ")) << said;
    EXPECT_TRUE(said.ends_with(", expected the name of a .safetensors file in the same folder"));
  }
  std::filesystem::remove(outside);
}

TEST(WeightFiles, RefusesAnIndexThatIsNone) {
  const PartsFolder folder;
  EXPECT_EQ(folder.refusal("{}"), "no 'weight_map'");
  EXPECT_EQ(folder.refusal(R"({"weight_map": {}, "weight_map": {}})"),
            "byte 32: 'weight_map' twice");
  for (const char* index : {"", "[]", R"({"weight_map": [])", R"({"weight_map": {"x": 1}})",
                            R"({"weight_map": {"x": null}})", R"({"weight_map": {"x": {}}})"}) {
    EXPECT_TRUE(folder.refusal(index).starts_with("byte ")) << index;
  }
  EXPECT_TRUE(folder.refusal(folder.index("}}", "}} x")).ends_with("follows the value"));
  EXPECT_EQ(folder.refusal(R"({"weight_map": {}})"), "2 blocks, the file has 0 tensors");
}

TEST(WeightFiles, AnIndexHasAtMost16MiBAnd1000Files) {
  const PartsFolder folder;
  std::string map = "_map\": {";
  for (int i = 0; i < 999; ++i) {
    map += "\"" + std::to_string(i) + "\": \"" + std::to_string(i) + ".safetensors\", ";
  }
  const std::string said = folder.refusal(folder.index("_map\": {", map));
  EXPECT_TRUE(said.starts_with("byte ") && said.ends_with(": more than 1000 files")) << said;
  const std::string whole = folder.index(" ", " ");
  constexpr std::size_t most = std::size_t{1} << 24;
  folder.write(index_name, whole + std::string(most - whole.size(), ' '));
  EXPECT_NO_THROW(load_gpt2<float>(folder.path()));
  EXPECT_EQ(folder.refusal(whole + std::string(most + 1 - whole.size(), ' ')),
            "16777217 bytes, expected at most 16777216");
}

}  // namespace
}  // namespace heed::test
