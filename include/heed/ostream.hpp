// SPDX-License-Identifier: MIT
#pragma once

/// `std::cout << tensor << view << extents << mask << plan`, and what GoogleTest prints in
/// failures. Opt-in: no other header of heed includes a stream.
#include <concepts>
#include <cstddef>
#include <ostream>
#include <span>
#include <sstream>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <heed/masks/combine.hpp>
#include <heed/masks/describe.hpp>
#include <heed/masks/mask.hpp>
#include <heed/tensor/tensor.hpp>
#include <heed/tensor/view.hpp>

namespace heed {

namespace detail {

/// NumPy's rule: what has more elements is shown by the first and last ones of each axis.
inline constexpr Index most_printed = 1000, printed_edge = 3;
inline constexpr std::size_t printed_width = 80;

/// The indices of one axis that are printed.
class PrintedAxis {
 public:
  PrintedAxis(Index extent, bool shortened)
      : extent_(extent), cut_(shortened && extent > 2 * printed_edge) {}
  Index count() const { return cut_ ? 2 * printed_edge : extent_; }
  Index index(Index i) const { return cut_ && i >= printed_edge ? extent_ - count() + i : i; }
  bool gap_before(Index i) const { return cut_ && i == printed_edge; }

 private:
  Index extent_;
  bool cut_;
};

/// The printed elements in row-major order, formatted as `out` formats numbers.
template <class T>
void collect_cells(std::vector<std::string>& cells, std::ostringstream& out, const T* data,
                   std::span<const Index> extents, std::span<const Index> strides, bool shortened) {
  if (extents.empty()) {
    out.str({});
    if constexpr (std::is_same_v<T, bool> || std::is_floating_point_v<T>) {
      out << *data;
    } else if constexpr (std::is_integral_v<T>) {
      out << +*data;  // characters too are numbers here
    } else {
      out << static_cast<float>(*data);
    }
    cells.push_back(out.str());
    return;
  }
  const PrintedAxis axis(extents[0], shortened);
  for (Index i = 0; i < axis.count(); ++i) {
    collect_cells(cells, out, data + axis.index(i) * strides[0], extents.subspan(1),
                  strides.subspan(1), shortened);
  }
}

/// Lays cells out as nested lists.
class CellWriter {
 public:
  CellWriter(std::ostream& out, std::vector<std::string> cells, bool shortened)
      : out_(out), cells_(std::move(cells)), shortened_(shortened) {
    for (const std::string& cell : cells_) {
      if (cell.size() > width_) width_ = cell.size();
    }
  }
  void write(std::span<const Index> extents, std::size_t depth = 0) {
    const PrintedAxis axis(extents[0], shortened_);
    const bool row = extents.size() == 1;
    out_ << '[';
    std::size_t column = depth + 1;
    for (Index i = 0; i < axis.count(); ++i) {
      if (axis.gap_before(i)) separate(row, column, depth, extents.size(), 1), out_ << "…";
      if (i > 0) separate(row, column, depth, extents.size(), width_);
      if (row) {
        const std::string& cell = cells_[next_++];
        out_ << std::string(width_ - cell.size(), ' ') << cell;
        column += width_;
      } else {
        write(extents.subspan(1), depth + 1);
      }
    }
    out_ << ']';
  }

 private:
  /// What stands before the next `room` characters of a row, or before the next row.
  void separate(bool row, std::size_t& column, std::size_t depth, std::size_t rank,
                std::size_t room) {
    const bool fits = row && column + 2 + room + 1 <= printed_width;
    out_ << ','
         << (fits ? " " : std::string(row ? 1 : rank - 1, '\n') + std::string(depth + 1, ' '));
    column = fits ? column + 2 : depth + 1;
  }

  std::ostream& out_;
  std::vector<std::string> cells_;
  bool shortened_;
  std::size_t width_ = 0, next_ = 0;
};

}  // namespace detail

/// `(2, 4, 10, 64)`
template <std::size_t Rank>
std::ostream& operator<<(std::ostream& out, const Extents<Rank>& extents) {
  out << '(';
  for (std::size_t axis = 0; axis < Rank; ++axis) out << (axis == 0 ? "" : ", ") << extents[axis];
  return out << ')';
}

/// `[[1, 2], [3, 4]]` with a row on each line. Numbers are formatted as the stream is told
/// (std::setprecision, std::fixed, std::boolalpha) and padded to one width; rows break at 80
/// columns. More than 1000 elements are shown by the three at either end of each axis with `…`
/// between them, and the extents behind.
template <class T, std::size_t Rank>
std::ostream& operator<<(std::ostream& out, const TensorView<T, Rank>& view) {
  out.width(0);
  if (view.empty()) return out << "[] " << view.extents();
  const bool shortened = view.size() > detail::most_printed;
  std::vector<std::string> cells;
  std::ostringstream format;
  format.copyfmt(out);
  detail::collect_cells<std::remove_const_t<T>>(cells, format, view.data_handle(), view.extents(),
                                                view.strides(), shortened);
  detail::CellWriter(out, std::move(cells), shortened).write(view.extents());
  return shortened ? out << ' ' << view.extents() : out;
}
template <class T, std::size_t Rank>
std::ostream& operator<<(std::ostream& out, const Tensor<T, Rank>& tensor) {
  return out << tensor.view();
}

/// `(batch, heads, queries, keys) (1, 8, 16, 16)`
inline std::ostream& operator<<(std::ostream& out, const MaskShape& shape) {
  return out << "(batch, heads, queries, keys) "
             << Extents<4>{shape.batch, shape.heads, shape.queries, shape.keys};
}

/// A mask as `describe` draws it: 16 queries and 16 keys of item 0 and head 0, tokens the mask does
/// not know included. `std::cout << describe(mask, queries, keys)` for others, and for masks of
/// one's own.
inline std::ostream& operator<<(std::ostream& out, const Mask& mask) {
  return out << describe(partial(mask), MaskWindow{});
}
namespace masks {
template <MaskPolicy M>
std::ostream& operator<<(std::ostream& out, const M& mask) {
  return out << describe(partial(mask), MaskWindow{});
}
}  // namespace masks

struct AttentionPlan;
/// `avx2, blocks of queries meet blocks of keys; all tensors are stored in the scalar type; 4 tasks
/// by 2 threads; tiles: 3 skipped, 2 partial, 1 full`
template <std::same_as<AttentionPlan> Plan>
std::ostream& operator<<(std::ostream& out, const Plan& plan) {
  out << name(plan.isa) << ", " << plan.why;
  if (plan.last_queries > 0)
    out << ", the last " << plan.last_queries << " have keys in their lanes";
  return out << "; " << plan.why_arithmetic << "; " << plan.tasks << " tasks by " << plan.threads
             << " threads; tiles: " << plan.skipped << " skipped, " << plan.partial << " partial, "
             << plan.full << " full";
}

}  // namespace heed
