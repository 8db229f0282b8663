// SPDX-License-Identifier: MIT
#include <heed/io/npy.hpp>

#include <gtest/gtest.h>

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
