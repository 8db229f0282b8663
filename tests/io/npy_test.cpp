// SPDX-License-Identifier: MIT
#include <heed/io/npy.hpp>

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <random>
#include <string>
#include <utility>

namespace heed::detail {
namespace {

std::string file_with(const std::string& dictionary, int major = 1) {
  std::string text = "\x93NUMPY";
  text += static_cast<char>(major);
  text += '\0';
  text += static_cast<char>(dictionary.size() & 255);
  text += static_cast<char>(dictionary.size() >> 8 & 255);
  if (major > 1) text += std::string(2, '\0');
  return text + dictionary;
}

NpyHeader parse(const std::string& text) {
  return parse_npy_header(std::as_bytes(std::span(text)), "x.npy");
}

/// What numpy writes.
std::string written(const NpyHeader& header) {
  std::string text = "{'descr': '" + header.descr + "', 'fortran_order': ";
  text += header.fortran_order ? "True" : "False";
  text += ", 'shape': (";
  for (const Index extent : header.shape) text += std::to_string(extent) + ", ";
  return text + "), }\n";
}

TEST(NpyHeader, TheFieldsInAnyOrderQuotesAndSpacing) {
  for (const char* dictionary :
       {"{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3), }\n",
        "{'shape':(2,3),'fortran_order':True,'descr':'<f4'}",
        "{'shape': (2L, 3L), 'fortran_order': True, 'descr': '<f4'}",
        "  { \"fortran_order\" : True ,\n\t'shape' : ( 2 , 3 , ) , \"descr\" : \"<f4\" , }   \n"}) {
    for (const int major : {1, 2, 3}) {
      const NpyHeader header = parse(file_with(dictionary, major));
      EXPECT_EQ(header.descr, "<f4");
      EXPECT_TRUE(header.fortran_order);
      EXPECT_EQ(header.shape, (std::vector<Index>{2, 3}));
      EXPECT_EQ(header.data_offset, (major == 1 ? 10u : 12u) + std::string(dictionary).size());
    }
  }
}

TEST(NpyHeader, ScalarsAndVectors) {
  EXPECT_TRUE(
      parse(file_with("{'descr': '<f4', 'fortran_order': False, 'shape': (), }")).shape.empty());
  EXPECT_EQ(parse(file_with("{'descr': '<f4', 'fortran_order': False, 'shape': (7,), }")).shape,
            std::vector<Index>{7});
  EXPECT_EQ(parse(file_with("{'descr': '<f4', 'fortran_order': False, 'shape': (0,), }")).shape,
            std::vector<Index>{0});
  EXPECT_EQ(parse(file_with("{'descr': '<f4', 'fortran_order': False, 'shape': "
                            "(9223372036854775807,), }"))
                .shape,
            std::vector<Index>{9223372036854775807});
}

TEST(NpyHeader, SizesOfElements) {
  const std::pair<const char*, std::size_t> sizes[] = {
      {"<f4", 4},     {">f8", 8},     {"|b1", 1},    {"=i2", 2},  {"f4", 4},
      {"<c16", 16},   {"|S3", 3},     {"<U3", 12},   {"|V7", 7},  {"<m8", 8},
      {"<M8[ns]", 8}, {"<m8[ns]", 8}, {"|O", 0},     {"", 0},     {"<", 0},
      {"f", 0},       {"<f4x", 0},    {"<f4[s]", 0}, {"<f-4", 0}, {"<f99999999999", 0},
      {"|V0", 0}};
  for (const auto& [descr, size] : sizes) EXPECT_EQ(npy_element_size(descr), size) << descr;
}

TEST(NpyHeader, TheSizeOfTheFileIsCheckedForAnyType) {
  const auto verdict = [](const std::string& descr, const std::string& shape, std::size_t data) {
    const std::string file =
        file_with("{'descr': '" + descr + "', 'fortran_order': False, 'shape': " + shape + ", }") +
        std::string(data, '\0');
    try {
      check_npy_size(parse(file), file.size(), "x.npy");
    } catch (const FileError& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  EXPECT_EQ(verdict("<u2", "(3,)", 6), "accepted");
  EXPECT_EQ(verdict("<c16", "()", 16), "accepted");
  EXPECT_EQ(verdict("|u1", "(4611686018427387904, 0, 4)", 0), "accepted");
  EXPECT_EQ(verdict("<u2", "(3,)", 5),
            "x.npy: byte 67: shape (3) of <u2 needs 6 bytes of data, the file has 5");
  EXPECT_EQ(verdict("|u1", "(4611686018427387904, 4)", 0),
            "x.npy: byte 60: shape (4611686018427387904, 4) is too large");
  EXPECT_EQ(verdict("|O", "(1,)", 8), "x.npy: byte 20: elements are '|O', of no known size");
}

TEST(NpyHeader, ErrorsNameFileAndByte) {
  const auto message = [](const std::string& text) {
    try {
      parse(text);
    } catch (const FileError& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  EXPECT_EQ(message("\x93NUMPX\1\0\0\0"), "x.npy: byte 0: not an .npy file");
  EXPECT_EQ(message(file_with("{'descr': '<f4'", 9)).substr(0, 22), "x.npy: byte 6: version");
  EXPECT_EQ(message(file_with("['descr']")), "x.npy: byte 10: expected '{'");
  EXPECT_EQ(message(file_with("{'shape': (9223372036854775808,)}")),
            "x.npy: byte 39: an extent is too large");
  EXPECT_EQ(message(file_with("{'shape': (1 2)}")), "x.npy: byte 23: expected ','");
  EXPECT_EQ(message(file_with("{'shape': (3)}")), "x.npy: byte 22: expected ','");
  EXPECT_EQ(message(file_with("{'shape': (02,)}")), "x.npy: byte 23: an extent begins with 0");
  EXPECT_EQ(message(file_with("{'shape': (3, 00)}")), "x.npy: byte 26: an extent begins with 0");
  EXPECT_NE(message(file_with("{'shape': (3,,)}")), "accepted");
  EXPECT_NE(message(file_with("{'descr': '" + std::string(81, 'f') + "'}")), "accepted");
  EXPECT_NE(message(file_with("{'descr': '<\\x66'}")), "accepted");
  std::string axes = "{'descr': '<f4', 'fortran_order': False, 'shape': (";
  for (int axis = 0; axis < 33; ++axis) axes += "1, ";
  EXPECT_NE(message(file_with(axes + ")}")).find("more than 32 axes"), std::string::npos);
}

TEST(NpyHeader, PiecesOfHeadersInAnyOrderAreReadOrRefused) {
  // Whatever is accepted must mean the same when written again; nothing but FileError comes out.
  const std::string pieces[] = {"{",
                                "}",
                                "'descr'",
                                ": ",
                                "'<f4'",
                                ", ",
                                "'shape'",
                                "(",
                                ")",
                                "3",
                                "'fortran_order'",
                                "True",
                                "False",
                                "9223372036854775807",
                                "\n",
                                "\"",
                                "-1",
                                "'",
                                "(2, 3)",
                                "(,)"};
  const std::uint64_t seed = 20261122;
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 bits(seed);
  const std::string good[] = {"{",  "'descr'", ": ", "'<f4'",   ", ", "'fortran_order'",
                              ": ", "False",   ", ", "'shape'", ": ", "(2, 3)",
                              "}"};
  int accepted = 0;
  for (int round = 0; round < 50000; ++round) {
    std::string dictionary;
    for (const std::string& piece : good) {
      const auto luck = bits() % 16;
      if (luck == 0) continue;
      dictionary += luck <= 1 ? pieces[bits() % std::size(pieces)] : piece;
      if (luck == 2) dictionary += pieces[bits() % std::size(pieces)];
    }
    try {
      const NpyHeader header = parse(file_with(dictionary));
      const NpyHeader again = parse(file_with(written(header)));
      ASSERT_EQ(header.descr, again.descr) << dictionary;
      ASSERT_EQ(header.fortran_order, again.fortran_order) << dictionary;
      ASSERT_EQ(header.shape, again.shape) << dictionary;
      ++accepted;
    } catch (const FileError&) {
    }
  }
  EXPECT_GT(accepted, 1000);
  EXPECT_LT(accepted, 25000);
}

}  // namespace
}  // namespace heed::detail

namespace heed {
namespace {

std::string golden(const std::string& name) { return std::string(HEED_TEST_DATA "/npy/") + name; }

/// A file that goes away with the test.
struct TemporaryFile {
  std::string path =
      (std::filesystem::temp_directory_path() /
       ("heed_npy_" + std::to_string(::getpid()) + "_" + std::to_string(counter()++)))
          .string();
  ~TemporaryFile() { std::filesystem::remove(path); }
  static int& counter() {
    static int count = 0;
    return count;
  }
};

/// A version 1.0 file with this dictionary and `data` bytes of zeros.
std::vector<std::byte> file_with(std::string dictionary, std::size_t data, char major = 1) {
  std::string text = "\x93NUMPY";
  text += major;
  text += '\0';
  dictionary += '\n';
  text += static_cast<char>(dictionary.size() & 255);
  text += static_cast<char>(dictionary.size() >> 8);
  if (major > 1) text += std::string(2, '\0');
  text += dictionary + std::string(data, '\0');
  std::vector<std::byte> bytes(text.size());
  std::memcpy(bytes.data(), text.data(), text.size());
  return bytes;
}

void expect_refused(const std::vector<std::byte>& bytes, const std::string& what) {
  try {
    parse_npy<float, 2>(bytes, "test.npy");
    ADD_FAILURE() << "accepted: " << what;
  } catch (const FileError& error) {
    EXPECT_NE(std::string(error.what()).find(what), std::string::npos) << error.what();
    EXPECT_EQ(std::string(error.what()).find("test.npy: "), 0u);
  }
}

TEST(Npy, ReadsWhatNumpyWrote) {
  // arange(6).reshape(2, 3) · 0.5 in each type and order, by tools/make_npy_goldens.py.
  for (const char* name : {"f4.npy", "f4_fortran.npy", "f2.npy", "f4_v2.npy", "f4_v3.npy"}) {
    const auto tensor = load_npy<float, 2>(golden(name));
    ASSERT_EQ(tensor.extents(), (Extents<2>{2, 3})) << name;
    for (Index i = 0; i < 6; ++i) EXPECT_EQ(tensor.data()[i], 0.5f * static_cast<float>(i)) << name;
  }
  const auto doubles = load_npy<double, 3>(golden("f8_fortran_3d.npy"));
  ASSERT_EQ(doubles.extents(), (Extents<3>{2, 3, 4}));
  for (Index i = 0; i < 24; ++i) EXPECT_EQ(doubles.data()[i], static_cast<double>(i));
  EXPECT_EQ((load_npy<std::int32_t, 1>(golden("i4.npy"))(2)), -2);
  EXPECT_EQ((load_npy<std::int64_t, 1>(golden("i8.npy"))(2)), -(std::int64_t{1} << 40));
  EXPECT_TRUE((load_npy<bool, 1>(golden("b1.npy"))(1)));
  EXPECT_FALSE((load_npy<bool, 1>(golden("b1.npy"))(0)));
  EXPECT_EQ((load_npy<float, 2>(golden("empty.npy")).extents()), (Extents<2>{0, 3}));
}

TEST(Npy, RoundTripOfAnyView) {
  const TemporaryFile file;
  Tensor<float, 3> tensor({3, 4, 5});
  for (Index i = 0; i < tensor.size(); ++i) tensor.data()[i] = static_cast<float>(i) + 0.25f;
  const auto view = view_of(tensor).permute({2, 0, 1}).reverse(1);
  write_npy(file.path, view);
  const auto back = load_npy<float, 3>(file.path);
  const auto expected = Tensor<float, 3>::copy_of(view);
  ASSERT_EQ(back.extents(), expected.extents());
  EXPECT_EQ(std::memcmp(back.data(), expected.data(), 60 * sizeof(float)), 0);
  write_npy(file.path, std::vector<std::int64_t>{1, 2, 3});  // replaces
  EXPECT_EQ((load_npy<std::int64_t, 1>(file.path)(2)), 3);
}

TEST(Npy, WrongTypeAndRankSayBoth) {
  const auto bytes = file_with("{'descr': '<f8', 'fortran_order': False, 'shape': (1, 1), }", 8);
  expect_refused(bytes, "byte 20: elements are '<f8', expected '<f4'; load them as double");
  expect_refused(file_with("{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }", 12),
                 "byte 60: shape (3) has rank 1, expected 2");
  expect_refused(file_with("{'descr': '|O', 'fortran_order': False, 'shape': (1, 1), }", 8),
                 "elements are '|O'");
  expect_refused(file_with("{'descr': '>f4', 'fortran_order': False, 'shape': (1, 1), }", 4),
                 "elements are '>f4'");
}

TEST(Npy, BrokenHeaders) {
  const std::string good = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 1), }";
  EXPECT_NO_THROW((parse_npy<float, 2>(file_with(good, 8))));
  expect_refused(file_with(good, 7),
                 "byte 70: shape (2, 1) of <f4 needs 8 bytes of data, the file has 7");
  expect_refused(file_with(good, 9), "needs 8 bytes of data, the file has 9");
  expect_refused(file_with(good + "x", 8), "something follows");
  expect_refused(file_with(good, 8, 4), "version 4.0");
  expect_refused({}, "not an .npy file");
  const auto with = [&](const char* dictionary, const char* what) {
    expect_refused(file_with(dictionary, 8), what);
  };
  with("{'descr': '<f4', 'fortran_order': False}", "must all be given");
  with("{'descr': '<f4', 'fortran_order': 0, 'shape': (2, 1), }", "expected True or False");
  with("{'descr': '<f4', 'descr': '<f4', 'shape': (2, 1), }", "key 'descr' twice");
  with("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 1), 'x': 1}", "unknown key 'x'");
  with("{'descr': '<f4', 'fortran_order': False, 'shape': (2, -1), }", "expected a number");
  with("{'descr': '<f4', 'fortran_order': False, 'shape': [2, 1], }", "expected '('");
  with("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2, 1), }",
       "expected a quoted word");
  with("{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999, 1), }",
       "too large");
}

TEST(Npy, FortranOrderOfManyRows) {
  auto bytes = file_with("{'descr': '<i4', 'fortran_order': True, 'shape': (35, 3, 18), }",
                         std::size_t{4} * 35 * 3 * 18);
  std::byte* to = bytes.data() + bytes.size() - std::size_t{4} * 35 * 3 * 18;
  for (std::int32_t i = 0; i < 35 * 3 * 18; ++i, to += 4) std::memcpy(to, &i, 4);
  const auto array = parse_npy<std::int32_t, 3>(bytes);
  for (Index i = 0; i < 35; ++i) {
    for (Index j = 0; j < 3; ++j) {
      for (Index k = 0; k < 18; ++k) ASSERT_EQ(array(i, j, k), i + 35 * (j + 3 * k));
    }
  }
}

TEST(Npy, ClaimedSizesAreCheckedBeforeMemoryIsTaken) {
  const auto with = [](const char* shape) {
    return file_with(
        "{'descr': '<f4', 'fortran_order': False, 'shape': " + std::string(shape) + ", }", 8);
  };
  expect_refused(with("(9223372036854775807, 2)"),
                 "byte 60: shape (9223372036854775807, 2) is too large");
  expect_refused(with("(1000000000, 1000000)"), "needs 4000000000000000 bytes");
  expect_refused(with("(4294967296, 4294967296)"), "is too large");
  expect_refused(with("(0, 9223372036854775807)"), "needs 0 bytes");
  const auto empty = file_with(
      "{'descr': '<f4', 'fortran_order': True, 'shape': (4611686018427387904, 4611686018427387904, "
      "0), }",
      0);
  EXPECT_EQ((parse_npy<float, 3>(empty).size()), 0);
  auto long_header = with("(2, 1)");
  long_header[8] = long_header[9] = std::byte{255};
  expect_refused(long_header, "header of 65535 bytes in a file of");
}

TEST(Npy, EveryTruncationAndEveryFlippedByteIsAnErrorOrATensor) {
  const auto good = file_with("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }", 24);
  for (std::size_t size = 0; size < good.size(); ++size) {
    const std::vector<std::byte> part(good.begin(), good.begin() + static_cast<Index>(size));
    EXPECT_THROW((parse_npy<float, 2>(part)), FileError) << size;
  }
  const std::uint64_t seed = 20261121;
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 bits(seed);
  int accepted = 0;
  for (int round = 0; round < 20000; ++round) {
    auto bytes = good;
    const int changes = 1 + static_cast<int>(bits() % 3);
    for (int change = 0; change < changes; ++change) {
      bytes[bits() % (bytes.size() - 24)] = static_cast<std::byte>(bits());
    }
    try {
      accepted += parse_npy<float, 2>(bytes).size() == 6 ? 1 : 0;
    } catch (const FileError&) {
    }
  }
  EXPECT_LT(accepted, 20000);
}

TEST(Npy, FilesThatAreNotThereAreNamed) {
  try {
    load_npy<float, 1>("/no/such/file.npy");
    ADD_FAILURE();
  } catch (const FileError& error) {
    EXPECT_EQ(std::string(error.what()), "/no/such/file.npy: No such file or directory");
  }
  EXPECT_THROW((load_npy<float, 1>("/")), FileError);
  EXPECT_THROW(write_npy("/no/such/folder/x.npy", std::vector<float>{1}), FileError);
}

}  // namespace
}  // namespace heed
