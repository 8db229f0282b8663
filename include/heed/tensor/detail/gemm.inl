// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include <heed/core/config.hpp>
#include <heed/core/detail/scratch.hpp>
#include <heed/core/index.hpp>
#include <heed/core/parallel.hpp>
#include <heed/kernels/isa.hpp>
#include <heed/kernels/product_kernels.hpp>
#include <heed/tensor/detail/product_args.hpp>

// The matrix product of layers: the loops around its kernels, which are in kernels/gemm.inl.

namespace heed::detail {

// Division into tasks. ----------------------------------------------------------------------------

/// How the result of a product is divided into tasks: groups of panels (64 columns each) by chunks
/// of rows. The division decides no bit.
class ProductCut {
 public:
  static constexpr Index max_group = 4;           // panels that a task packs or unpacks
  static constexpr Index max_bfloat16_group = 8;  // the same memory for factors in bfloat16

  struct Task {
    Index first, last;  // panels
    Index row, end;     // rows
  };

  ProductCut() = default;
  /// Makes about `wanted` tasks.
  template <class T>
  ProductCut(const ProductArgs<T>& args, Index wanted)
      : rows_(args.rows), panels_(parts_of(args.columns, simd::panel_columns)) {
    const Index threads = thread_count();
    const Index most_chunks = larger(1, rows_ / rows_worth_packing);
    const Index most = smaller(most_panels(args), larger(1, panels_ * most_chunks / wanted));
    group_ = parts_of(panels_, parts_of(panels_, most));  // groups of nearly equal size
    groups_ = parts_of(panels_, group_);
    Index chunks = smaller(most_chunks, parts_of(wanted, groups_));
    while (chunks < most_chunks && groups_ * chunks % threads != 0) ++chunks;
    chunk_ = parts_of(rows_, chunks);
    chunk_ = parts_of(chunk_, simd::product_rows) * simd::product_rows;
    chunks_ = (rows_ + chunk_ - 1) / larger(1, chunk_);
  }

  Index count() const { return groups_ * chunks_; }
  Task task(Index index) const {
    const Index first = index / chunks_ * group_, row = index % chunks_ * chunk_;
    return {first, smaller(first + group_, panels_), row, smaller(row + chunk_, rows_)};
  }

 private:
  static constexpr Index rows_worth_packing = 96;

  /// Panels in bfloat16 that are stored so need no memory: rows are rounded once for all of them.
  template <class T>
  Index most_panels(const ProductArgs<T>& args) const {
    if (args.quantized.products != Products::bfloat16) return max_group;
    return args.quantized.blocks != nullptr ? panels_ : max_bfloat16_group;
  }

  Index rows_ = 0;
  Index panels_ = 0;
  Index group_ = 1;
  Index groups_ = 0;
  Index chunk_ = 1;
  Index chunks_ = 0;
};

/// The total work of products that are computed together.
class ProductWork {
 public:
  void add(Index rows, Index columns, Index depth) {
    // Reading a weight takes as long as multiplying a few rows with it.
    work_ +=
        static_cast<double>(rows + 4) * static_cast<double>(columns) * static_cast<double>(depth);
  }
  bool parallel() const { return detail::worth_sharing(static_cast<Index>(work_ / 100)); }
  /// Whether handing out tasks one by one would cost a good part of the work.
  bool is_small() const { return work_ < 4e6; }
  /// Number of tasks to make for several threads.
  Index tasks() const { return thread_count() * (is_small() ? 1 : 3); }

 private:
  double work_ = 0;  // multiplications
};

/// A piece without a and b: some rows of panel `panel`, terms k … k + depth − 1.
template <class T>
simd::ProductPiece<T> piece_of(const ProductArgs<T>& p, Index row, Index rows, Index panel, Index k,
                               Index depth) {
  const Index column = panel * simd::panel_columns;
  T* out = p.out + row * p.out_row + column * p.out_column;
  simd::MatrixRef<T> addend{out, p.out_row, p.out_column};
  if (k == 0) {
    addend = p.addend;
    if (addend.data != nullptr) {
      addend.data += row * addend.row_stride + column * addend.column_stride;
    }
  }
  return {{},           nullptr, 0,
          addend,       out,     p.out_row,
          p.out_column, rows,    smaller(simd::panel_columns, p.columns - column),
          depth,        nullptr, simd::detail::prefetches_near(),
          false};
}

/// The quantized panel `index` from term k on.
template <class T>
simd::QuantizedPanel quantized_panel_of(const ProductArgs<T>& args, Index index, Index k) {
  auto panel = args.quantized;
  panel.blocks += index * panel.bytes(panel.codes, args.depth) + panel.bytes(panel.codes, k);
  return panel;
}

/// Products that are computed together: threads are woken once, for the tasks of all of them.
template <class T>
class ProductList {
 public:
  /// The arguments must outlive the list.
  void add(const ProductArgs<T>& args) {
    problems_[count_++] = &args;
    work_.add(args.rows, args.columns, args.depth);
  }
  Index count() const { return count_; }
  const ProductArgs<T>& operator[](Index index) const { return *problems_[index]; }

  /// Calls run(args, task) for all tasks, on the pool's threads if waking them is worth it.
  template <class Run>
  void for_each_task(const Run& run) const {
    if (work_.parallel()) return share_tasks(run);
    for (Index i = 0; i < count_; ++i) {
      const ProductCut cut((*this)[i], 1);
      for (Index task = 0; task < cut.count(); ++task) run((*this)[i], cut.task(task));
    }
  }

 private:
  template <class Run>
  void share_tasks(const Run& run) const {
    ProductCut cuts[most_products];
    for (Index i = 0; i < count_; ++i) {
      cuts[i] = ProductCut((*this)[i], work_.tasks());
    }
    if (work_.is_small()) return share_evenly(cuts, run);
    Index tasks = 0;
    for (Index i = 0; i < count_; ++i) tasks += cuts[i].count();
    parallel_for(tasks, [&](Index task) {
      Index i = 0;
      for (; task >= cuts[i].count(); ++i) task -= cuts[i].count();
      run((*this)[i], cuts[i].task(task));
    });
  }
  /// Gives each thread a part of every product, the same part in every call, so that weights stay
  /// in the caches of the threads that read them. Handing out tasks one by one would take too long.
  template <class Run>
  void share_evenly(const ProductCut* cuts, const Run& run) const {
    const Index threads = thread_count();
    parallel_for(threads, [&](Index thread) {
      for (Index i = 0; i < count_; ++i) {
        const Index first = i % 2 == 0 ? thread : threads - 1 - thread;  // the last have least
        for (Index at = first; at < cuts[i].count(); at += threads) {
          run((*this)[i], cuts[i].task(at));
        }
      }
    });
  }

  const ProductArgs<T>* problems_[most_products];
  Index count_ = 0;
  ProductWork work_;
};

/// Calls run(first, count) for each block of the terms of a sum, and once without any: out is then
/// the addend.
template <class Run>
void for_each_depth_block(Index depth, const Run& run) {
  Index k = 0;
  do {
    run(k, smaller(depth - k, simd::product_block));
    k += simd::product_block;
  } while (k < depth);
}

// Products in floating point. ---------------------------------------------------------------------

/// Computes a product task by task. Within a task and a depth block the panels stay in the
/// second-level cache, while the rows pass through the first, six at a time.
template <class T>
class ProductTasks {
 public:
  explicit ProductTasks(const ProductArgs<T>& args)
      : args_(args), kernels_(simd::product_kernels<T>()) {}

  void run(const ProductCut::Task& task) const {
    if (reads_lying_columns(task.end - task.row)) return run_lying(task);
    for_each_depth_block(args_.depth, [&](Index k, Index depth) { run_block(task, k, depth); });
  }

 private:
  static constexpr Index panel = simd::panel_columns;
  static constexpr Index piece_rows = simd::product_rows;
  static constexpr Index max_group = ProductCut::max_group;
  // A copied row of a, with one more cache line so that rows do not fall on the same cache sets.
  static constexpr Index copied_row = simd::product_block + simd::numbers_in_line<T>;
  // Pieces of a transposed a that are copied at a time: 48 rows are whole cache lines.
  static constexpr Index max_pieces = 8;
  static constexpr Index panel_size = panel * simd::product_block;

  /// Number of rows up to which reading blocks as they are stored is faster than unpacking them
  /// first: few for half precision, which takes more work to widen. Measured on Zen 5.
  Index rows_as_stored() const {
    if (args_.quantized.codes == simd::QuantizedCodes::bfloat16) return 16 * piece_rows;
    return args_.quantized.codes == simd::QuantizedCodes::half ? 4 * piece_rows : 1;
  }
  /// A depth block of panel `index` of b, in place or packed into `scratch`.
  const T* panel_of(Index index, Index rows, Index k, Index depth, T* scratch,
                    Index& stride) const {
    const Index first = index * panel;
    const Index columns = smaller(panel, args_.columns - first);
    stride = panel;
    if (args_.in_blocks()) {
      kernels_.dequantize(quantized_panel_of(args_, index, k), depth, scratch);
      return scratch;
    }
    if (args_.packed != nullptr) return args_.packed + first * args_.depth + k * panel;
    const auto& b = args_.b;
    const T* from = b.data + k * b.row_stride + first * b.column_stride;
    // Rows close together in memory are as good as packed ones.
    constexpr Index near = 512 / static_cast<Index>(sizeof(T));
    const bool close = -near <= b.row_stride && b.row_stride <= near;
    if (b.column_stride == 1 && columns == panel && (close || rows <= 2 * piece_rows)) {
      stride = b.row_stride;
      return from;
    }
    kernels_.pack({from, b.row_stride, b.column_stride}, depth, columns, scratch);
    return scratch;
  }

  /// Whether reading six rows of a in place would be slow: rows a multiple of 4 KiB apart share
  /// cache sets, which may be too small, and rows of a transposed a touch a cache line per element.
  bool worth_copying() const {
    const Index stride = args_.a.row_stride * static_cast<Index>(sizeof(T));
    return args_.a.column_stride != 1 ||
           (stride % 4096 == 0 && !simd::detail::holds_twelve_lines());
  }
  /// Copies pieces of a side by side, starting with `row`: all whole pieces of the `rows` rows if a
  /// is transposed, since they share cache lines, otherwise one piece. Returns their number.
  Index copy_pieces(Index row, Index rows, Index k, Index depth, T* scratch) const {
    const auto a = args_.a.from(row, k);
    if (a.column_stride == 1) {
      for (Index r = 0; r < smaller(rows, piece_rows); ++r) {
        std::memcpy(scratch + r * copied_row, a.data + r * a.row_stride,
                    static_cast<std::size_t>(depth) * sizeof(T));
      }
      return 1;
    }
    if (a.row_stride == 1 && rows >= piece_rows) {  // whole words, not single numbers
      const Index pieces = smaller(rows / piece_rows, max_pieces);
      for (Index i = 0; i < depth; ++i) {
        for (Index piece = 0; piece < pieces; ++piece) {
          std::memcpy(scratch + piece * piece_rows * copied_row + i * piece_rows,
                      a.data + i * a.column_stride + piece * piece_rows, piece_rows * sizeof(T));
        }
      }
      return pieces;
    }
    for (Index i = 0; i < depth; ++i) {
      for (Index r = 0; r < smaller(rows, piece_rows); ++r) {
        scratch[i * piece_rows + r] = a.data[r * a.row_stride + i * a.column_stride];
      }
    }
    return 1;
  }
  /// The copy that copy_pieces made of a piece.
  simd::MatrixRef<T> copied_piece(const T* scratch) const {
    if (args_.a.column_stride == 1) return {scratch, copied_row, 1};
    return {scratch, 1, piece_rows};
  }

  /// Whether b has contiguous columns, as the weights of layers have, that are transposed in
  /// registers.
  bool reads_lying_columns(Index rows) const {
    return rows <= kernels_.lying_rows && args_.a.column_stride == 1 && args_.b.row_stride == 1 &&
           args_.b.column_stride != 1 && !args_.in_blocks() && args_.packed == nullptr;
  }
  /// Whether a single row prefetches what it reads soon, of weights with more than `least` bytes.
  bool fetches_soon(Index rows, Index least) const {
    const Index bytes = args_.depth * args_.columns * static_cast<Index>(sizeof(T));
    return rows == 1 && bytes > least && simd::detail::prefetches_soon();
  }
  void run_lying(const ProductCut::Task& task) const {
    // What the second-level cache does not hold is likely one of many weights, which come from
    // memory. Columns longer than a page are foreseen by the processor. Those a multiple of 2 KiB
    // apart would push what is read soon out of the first-level cache.
    constexpr Index cached = Index{1} << 20, page = 4096, few_sets = 2048;
    constexpr Index one = sizeof(T);
    const Index bytes = args_.depth * one, size = bytes * args_.columns;
    const bool soon = fetches_soon(task.end - task.row, cached * 3 / 2) &&
                      args_.b.column_stride * one % few_sets != 0;
    for (Index i = task.first; i < task.last; ++i) {
      auto piece = piece_of(args_, task.row, task.end - task.row, i, 0, args_.depth);
      piece.a = args_.a.from(task.row, 0);
      piece.b = args_.b.data + i * panel * args_.b.column_stride;
      piece.b_stride = args_.b.column_stride;
      piece.next = bytes <= page && size > cached ? piece.b + panel * piece.b_stride : nullptr;
      piece.soon = soon;
      kernels_.lying_piece(piece);
    }
  }

  void run_block(const ProductCut::Task& task, Index k, Index depth) const {
    const Index first = task.first, last = task.last, end = task.end;
    Index row = task.row;
    T* scratch = reinterpret_cast<T*>(Scratch::of_this_thread<ProductTasks>(
        static_cast<std::size_t>(max_group * panel_size + max_pieces * piece_rows * copied_row) *
        sizeof(T)));
    T* copied = scratch + max_group * panel_size;
    const T* b[max_group];
    Index b_stride[max_group];
    const bool as_stored = args_.in_blocks() && end - row <= rows_as_stored();
    for (Index i = first; i < last && !as_stored; ++i) {
      b[i - first] =
          panel_of(i, end - row, k, depth, scratch + (i - first) * panel_size, b_stride[i - first]);
    }
    const bool copying = last - first > 1 && worth_copying();
    Index at = 0, pieces = 0;  // among the copied pieces
    for (; row < end; row += piece_rows) {
      const Index rows = smaller(piece_rows, end - row);
      auto a = args_.a.from(row, k);
      if (copying && rows > 1) {
        if (++at >= pieces) {
          pieces = copy_pieces(row, end - row, k, depth, copied);
          at = 0;
        }
        a = copied_piece(copied + at * piece_rows * copied_row);
      }
      for (Index i = first; i < last; ++i) {
        auto piece = piece_of(args_, row, rows, i, k, depth);
        piece.a = a;
        if (as_stored) {
          kernels_.quantized_piece(piece, quantized_panel_of(args_, i, k));
          continue;
        }
        piece.b = b[i - first];
        if (row == task.row && args_.packed != nullptr) {  // what follows a panel is the next one
          piece.next = i + 1 < last ? b[i + 1 - first] : b[0] + depth * panel;
          piece.soon = fetches_soon(end - row, Index{16} << 20);
        }
        piece.b_stride = b_stride[i - first];
        kernels_.piece(piece);
      }
    }
  }

  const ProductArgs<T>& args_;
  const simd::ProductKernels<T>& kernels_;
};

// Products of int16 rows. -------------------------------------------------------------------------

/// Rows of a slab as int16, and their products with quantized weights, task by task; T is float.
template <class T>
class Int16Slab {
 public:
  Int16Slab(Index rows, Index depth) {
    const Index pairs = depth / 2, blocks = depth / terms;
    divide_scratch<Int16Slab>([&](Carver& carver) {
      pairs_ = carver.take<std::int32_t>(rows * pairs);
      blocks_ = carver.take<Block>(rows * blocks);
    });
    rows_ = {pairs_, pairs, blocks_, blocks};
  }

  void round(Index row, const T* x, Index step, Index depth) const {
    kernels_.round_row(x, step, depth, pairs_ + row * rows_.pair_stride,
                       blocks_ + row * rows_.block_stride);
  }
  void run(const ProductArgs<T>& args, const ProductCut::Task& task) const {
    HEED_EXPECTS(!simd::QuantizedPanel::has_pairs(args.quantized.codes));
    for_each_depth_block(args.depth,
                         [&](Index k, Index depth) { run_block(args, task, k, depth); });
  }

 private:
  using Block = simd::Int16Rows::Block;
  using Unpacked = simd::UnpackedBlock;
  static constexpr Index terms = simd::QuantizedPanel::terms;
  static constexpr Index panel_blocks = simd::product_block / terms;

  simd::Int16Rows rows_from(Index row, Index k) const {
    auto rows = rows_;
    rows.pairs += row * rows.pair_stride + k / 2;
    rows.blocks += row * rows.block_stride + k / terms;
    return rows;
  }

  void run_block(const ProductArgs<T>& args, const ProductCut::Task& task, Index k,
                 Index depth) const {
    if (task.end - task.row == 1) {
      for (Index i = task.first; i < task.last; ++i) {
        kernels_.row(piece_of(args, task.row, 1, i, k, depth), rows_from(task.row, k),
                     quantized_panel_of(args, i, k));
      }
      return;
    }
    auto* unpacked = reinterpret_cast<Unpacked*>(Scratch::of_this_thread<Unpacked>(
        static_cast<std::size_t>(ProductCut::max_group * panel_blocks) * sizeof(Unpacked)));
    const auto& pieces = task.end - task.row > simd::product_rows ? kernels_.many : kernels_.few;
    for (Index i = task.first; i < task.last; ++i) {
      pieces.unpack(quantized_panel_of(args, i, k), depth,
                    unpacked + (i - task.first) * panel_blocks);
    }
    for (Index row = task.row; row < task.end; row += pieces.rows) {
      const Index rows = smaller(pieces.rows, task.end - row);
      for (Index i = task.first; i < task.last; ++i) {
        pieces.piece(piece_of(args, row, rows, i, k, depth), rows_from(row, k),
                     unpacked + (i - task.first) * panel_blocks, args.quantized.codes);
      }
    }
  }

  const simd::Int16Kernels<T>& kernels_ = simd::int16_kernels<T>();
  std::int32_t* pairs_ = nullptr;
  Block* blocks_ = nullptr;
  simd::Int16Rows rows_{};
};

/// Computes the products of at most slab_rows rows; their a is rounded once.
template <class T>
void run_slab(const ProductList<T>& products) {
  const ProductArgs<T>& first = products[0];  // all have its rows and depth
  const Int16Slab<T> slab(first.rows, first.depth);
  const auto round = [&](Index row) {
    slab.round(row, first.a.data + row * first.a.row_stride, first.a.column_stride, first.depth);
  };
  if (first.rows * first.depth < 50000) {
    for (Index row = 0; row < first.rows; ++row) round(row);
  } else {
    constexpr Index chunk = 16;
    parallel_for(parts_of(first.rows, chunk), [&](Index i) {
      const Index end = smaller((i + 1) * chunk, first.rows);
      for (Index row = i * chunk; row < end; ++row) round(row);
    });
  }
  products.for_each_task(
      [&](const ProductArgs<T>& args, const ProductCut::Task& task) { slab.run(args, task); });
}

/// Products of int16 rows, a limited number of rows at a time, so that the memory for the rounded
/// ones does not grow with their number.
template <class T>
void run_int16_products(const ProductList<T>& products) {
  constexpr Index slab_rows = 768;
  const Index rows = products.count() == 0 ? 0 : products[0].rows;
  for (Index row = 0; row < rows; row += slab_rows) {
    ProductArgs<T> parts[most_products];
    ProductList<T> slab;
    for (Index i = 0; i < products.count(); ++i) {
      auto& part = parts[i] = products[i];
      part.rows = smaller(slab_rows, rows - row);
      part.a.data += row * part.a.row_stride;
      if (part.addend.data != nullptr) part.addend.data += row * part.addend.row_stride;
      part.out += row * part.out_row;
      slab.add(part);
    }
    run_slab(slab);
  }
}

// Products in bfloat16. ---------------------------------------------------------------------------

/// Computes a product of factors rounded to bfloat16, task by task: a is rounded a few pieces at a
/// time, and b as it is packed, unless it is stored so. T is float.
template <class T>
class Bfloat16Tasks {
 public:
  explicit Bfloat16Tasks(const ProductArgs<T>& args)
      : args_(args), kernels_(simd::bfloat16_product_kernels<T>()) {}

  void run(const ProductCut::Task& task) const {
    for_each_depth_block(args_.depth, [&](Index k, Index depth) { run_block(task, k, depth); });
  }

 private:
  // Whole cache lines of a transposed a, and whole pieces. With tiles, products are so fast that to
  // read the weights for every 64 rows took longer.
  Index rounded_rows() const { return 8 * kernels_.rows; }
  static constexpr Index max_group = ProductCut::max_bfloat16_group;
  static constexpr Index panel_bytes =
      simd::QuantizedPanel::bytes(simd::QuantizedCodes::bfloat16, simd::product_block);

  /// Rounds a depth block of panel `index` of b.
  void pack_panel(Index index, Index k, Index depth, std::uint8_t* to) const {
    const Index first = index * simd::panel_columns;
    const Index columns = smaller(simd::panel_columns, args_.columns - first);
    if (args_.narrow_b.data != nullptr) {
      kernels_.pack_bits(args_.narrow_b.from(k, first), depth, columns, to);
    } else {
      kernels_.pack(args_.b.from(k, first), depth, columns, to);
    }
  }

  void run_block(const ProductCut::Task& task, Index k, Index depth) const {
    constexpr Index size = sizeof(T), panels_bytes = max_group * panel_bytes;
    // With one more cache line, so that rows do not fall on the same cache sets.
    const Index stride = simd::product_block / kernels_.terms_in_float + simd::numbers_in_line<T>;
    std::byte* memory = Scratch::of_this_thread<Bfloat16Tasks>(
        static_cast<std::size_t>(panels_bytes + rounded_rows() * stride * size));
    auto* panels = reinterpret_cast<std::uint8_t*>(memory);
    auto* rounded = reinterpret_cast<T*>(memory + panels_bytes);
    for (Index i = task.first; i < task.last && !args_.in_blocks(); ++i) {
      pack_panel(i, k, depth, panels + (i - task.first) * panel_bytes);
    }
    for (Index row = task.row; row < task.end; row += rounded_rows()) {
      const Index rows = smaller(rounded_rows(), task.end - row);
      if (args_.narrow_a.data != nullptr) {
        kernels_.copy_rows(args_.narrow_a.from(row, k), rows, depth, rounded, stride);
      } else {
        kernels_.round_rows(args_.a.from(row, k), rows, depth, rounded, stride);
      }
      for (Index first = task.first; first < task.last; first += max_group) {
        multiply_rounded({first, smaller(first + max_group, task.last), row, row + rows}, k, depth,
                         rounded, stride, panels);
      }
    }
  }
  /// Multiplies some rounded rows by some panels, which stay in the second-level
  /// cache.
  void multiply_rounded(const ProductCut::Task& part, Index k, Index depth, const T* rounded,
                        Index stride, const std::uint8_t* panels) const {
    if (kernels_.begin != nullptr) kernels_.begin();
    for (Index row = part.row; row < part.end;
         row += kernels_.rows, rounded += kernels_.rows * stride) {
      for (Index i = part.first; i < part.last; ++i) {
        const auto* panel = args_.in_blocks() ? quantized_panel_of(args_, i, k).blocks
                                              : panels + (i - part.first) * panel_bytes;
        const auto piece =
            piece_of(args_, row, smaller(kernels_.rows, part.end - row), i, k, depth);
        kernels_.piece(piece, rounded, stride, panel);
      }
    }
    if (kernels_.end != nullptr) kernels_.end();
  }

  const ProductArgs<T>& args_;
  const simd::Bfloat16ProductKernels<T>& kernels_;
};

// All kinds of products. --------------------------------------------------------------------------

// A template, so that programs without products are spared the compile time of the kernels.
template <class T>
void run_products(const ProductArgs<T>* problems, Index count) {
  ProductArgs<T> flipped[most_products];
  ProductList<T> exact, int16, bfloat16;
  for (Index i = 0; i < count; ++i) {
    const auto* args = problems + i;
    if (args->rows == 0 || args->columns == 0) continue;
    if (transpose_pays(*args)) args = &(flipped[i] = transposed(*args));
    const auto products = args->quantized.products;
    auto& list = products == Products::int16      ? int16
                 : products == Products::bfloat16 ? bfloat16
                                                  : exact;
    list.add(*args);
  }
  exact.for_each_task([](const ProductArgs<T>& args, const ProductCut::Task& task) {
    ProductTasks<T>(args).run(task);
  });
  if constexpr (std::is_same_v<T, float>) {
    run_int16_products(int16);
    bfloat16.for_each_task([](const ProductArgs<T>& args, const ProductCut::Task& task) {
      Bfloat16Tasks<T>(args).run(task);
    });
  }
}
#if defined(HEED_COMPILED_SOURCE)
template void run_products(const ProductArgs<float>* problems, Index count);
template void run_products(const ProductArgs<double>* problems, Index count);
#endif

}  // namespace heed::detail
