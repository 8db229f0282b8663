// SPDX-License-Identifier: MIT
// What docs/01-views.md shows: views of memory that belongs to someone else.
#include <array>
#include <cstdio>
#include <iostream>
#include <span>
#include <vector>

#include <heed/ostream.hpp>
#include <heed/tensor.hpp>

#include "help.hpp"

namespace {

// [image]
struct Image {  // your own container
  heed::Index height, width;
  std::vector<float> pixels;
};
// [/image]

}  // namespace

// [adapter]
template <>
struct heed::ViewAdapter<Image> {
  static auto view(const Image& image) {
    return TensorView(image.pixels.data(), {image.height, image.width});
  }
};
// [/adapter]

namespace {

using namespace heed;

void print(const char* name, const TensorView<const float, 2>& view) {
  std::printf("%s\n", name);
  for (Index row = 0; row < view.extent(0); ++row) {
    for (Index column = 0; column < view.extent(1); ++column) {
      std::printf(" %2.0f", static_cast<double>(view(row, column)));
    }
    std::puts("");
  }
}

void slices() {
  // [make]
  std::vector<float> memory(24);
  for (std::size_t i = 0; i < memory.size(); ++i) memory[i] = static_cast<float>(i);

  const TensorView view(memory, {4, 6});                    // row-major, size checked
  const TensorView columns(memory.data(), {6, 4}, {1, 6});  // a pointer, any strides
  // [/make]
  print("view", view);
  print("columns", columns);
  // [operations]
  print("slice", view.slice(0, 1, 3).slice(1, 0, 6, 2));    // rows 1 and 2, every second column
  print("transpose", view.transpose());                     // the last two axes exchanged
  print("reverse", view.reverse(0));                        // last row first
  print("broadcast", view.slice(0, 2, 3).broadcast(0, 3));  // row 2 three times, stride 0
  print("select", view.split(1, 3).select(1, 1));           // 6 columns as 2 x 3; the second half
  // [/operations]
}

void refusals() {
  // [errors]
  std::vector<float> memory(24);
  const TensorView view(memory.data(), {4, 6});
  try {
    view.split(1, 4);
  } catch (const ShapeError& error) {
    std::puts(error.what());
  }
  // [/errors]
}

void copies() {
  std::vector<float> memory(6);
  for (std::size_t i = 0; i < memory.size(); ++i) memory[i] = static_cast<float>(i);
  const TensorView view(memory.data(), {2, 3});
  // [values]
  const Tensor<float, 2> matrix{{1, 2}, {3, 4}};        // 2 x 2
  const Tensor<float, 2> zeros(2, 2);                   // 2 x 2 as well, of zeros; ({2, 2}) too
  const Tensor<float, 2> listed({2, 2}, {1, 2, 3, 4});  // extents, then values in their order
  const Tensor<float, 1> vector{1, 2, 3};               // values, at least two; {3} is three zeros
  // [/values]
  // [copy]
  Tensor<float, 2> owned(3, 2);   // 64-byte aligned, zero at birth
  copy(view.transpose(), owned);  // any strides on either side
  const auto same = Tensor<float, 2>::copy_of(view.transpose());
  // [/copy]
  // [rows]
  Tensor<float, 2> scores(5, 8);
  scores.fill(1);
  scores[0].fill(0);  // a row is a view; scores[2][3] and scores(2, 3) are one element
  // [/rows]
  if (scores[2][3] != scores(2, 3)) std::puts("rows are not where they are");
  print("copy", owned);
  print("copy_of", same.view());
}

void printing() {
  // [print]
  Tensor<float, 2> table(300, 50);
  for (Index i = 0; i < table.size(); ++i) table.data()[i] = static_cast<float>(i) / 4;
  std::cout << table << '\n'
            << table.slice(0, 0, 2).slice(1, 0, 3) << ' ' << table.extents() << '\n';
  // [/print]
}

void anything() {
  // [viewable]
  const std::vector<float> scores = {1, 3, 2};
  const std::array<bool, 3> visible = {true, true, false};
  const auto votes = softmax(scores, {.mask = visible});
  const Image image{2, 2, {0, 1, 2, 3}};
  const auto rows = softmax(image);
  // [/viewable]
  std::printf("votes %.3f %.3f %.3f\n", static_cast<double>(votes[0]),
              static_cast<double>(votes[1]), static_cast<double>(votes[2]));
  std::printf("image rows %.3f %.3f\n", static_cast<double>(rows(0, 1)),
              static_cast<double>(rows(1, 1)));
}

}  // namespace

int main(int count, char** arguments) {
  int status = 0;
  if (example::helped(count, arguments,
                      "Views of memory: slices, permutations, refusals, adapters.", status))
    return status;
  slices();
  refusals();
  copies();
  printing();
  anything();
}
