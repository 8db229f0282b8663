// SPDX-License-Identifier: MIT
// What decoding prefetches while it reads keys and values in place. Included by part.inl, after
// lines_after and lines_during_values of attend_queries.inl, which say what is read later.

/// What decoding prefetches in a step. Near: what lines_beyond says, into the first-level cache, in
/// the order of memory; see prefetches_near.
template <bool Near>
struct StepAhead {
  LinesAhead lines;

  /// For the `step` rows at `row` of `count`, behind the last of which come `next`.
  template <class Number, class T>
  HEED_SIMD static StepAhead of(const QueryRows<T>&, const LinesAhead& lines,
                                const MatrixRef<Number>&, Index, Index, Index, Index,
                                const MatrixRef<Number>&) {
    return {lines};
  }
  template <class Number>
  HEED_SIMD static StepAhead of(const LinesAhead& lines, const Number*) {
    return {lines};
  }
  HEED_SIMD static StepAhead none(const void* place) { return {LinesAhead::none(place)}; }
  /// Some lines, while as many from `place` on are read.
  template <int Lines = 1>
  HEED_SIMD void fetch(const void*) {
    HEED_UNROLL for (int i = 0; i < Lines; ++i) lines.fetch_line();
  }
  /// A line for each of some rows, `stride` apart. Before these are loaded: between the loads it
  /// took up to 1.15 times as long from memory.
  template <int Rows, class Number>
  HEED_SIMD void fetch_rows(const Number*, Index) {
    for (int i = 0; i < Rows; ++i) lines.fetch_line();
  }
};
/// Otherwise, into the second-level cache, what lies there in the place of what is read, or, into
/// the first, what lies there in the next step, or both; see prefetches_soon.
template <>
struct StepAhead<false> {
  std::uintptr_t later = 0;  // from a place to what is read later; 0: not prefetched
  std::uintptr_t soon = 0;   // to what is read in the next step
  static constexpr Index most_soon = Index{16} << 10;  // bytes: a third of a first-level cache

  template <class Number, class T>
  HEED_SIMD static StepAhead of(const QueryRows<T>& what, const LinesAhead& lines,
                                const MatrixRef<Number>& rows, Index columns, Index count,
                                Index row, Index step, const MatrixRef<Number>& next) {
    const Number* first = rows.data + row * rows.row_stride;
    const auto at = reinterpret_cast<std::uintptr_t>(first);
    StepAhead ahead{lines.at - at};
    if (!what.soon || step * columns * Index{sizeof(Number)} > most_soon) return ahead;
    const auto bytes = static_cast<std::uintptr_t>(step * rows.row_stride) * sizeof(Number);
    ahead.soon = bytes;
    if (row + step >= count && next.data != nullptr) {
      ahead.soon = reinterpret_cast<std::uintptr_t>(next.data) - at;
    }
    ahead.later = what.later ? ahead.later + bytes : 0;
    return ahead;
  }
  /// For the step that begins at `first`.
  template <class Number>
  HEED_SIMD static StepAhead of(const LinesAhead& lines, const Number* first) {
    return {lines.at - reinterpret_cast<std::uintptr_t>(first)};
  }
  HEED_SIMD static StepAhead none(const void*) { return {}; }

  template <int Level>
  HEED_SIMD static void fetch_at(const void* place, std::uintptr_t offset) {
    const std::uintptr_t address = reinterpret_cast<std::uintptr_t>(place) + offset;
    const auto* there = reinterpret_cast<const void*>(address);  // NOLINT: it may end beyond
    __builtin_prefetch(there, 0, Level);
  }
  template <int Lines = 1>
  HEED_SIMD void fetch(const void* place) {
    if (soon != 0) {
      HEED_UNROLL for (unsigned i = 0; i < Lines; ++i) fetch_at<3>(place, soon + 64 * i);
    }
    if (later != 0) {
      HEED_UNROLL for (unsigned i = 0; i < Lines; ++i) fetch_at<2>(place, later + 64 * i);
    }
  }
  template <int Rows, class Number>
  HEED_SIMD void fetch_rows(const Number* place, Index stride) {
    if (soon != 0) {
      for_each_row<Rows>(place, stride,
                         [&](int, const Number* at) HEED_LAMBDA { fetch_at<3>(at, soon); });
    }
    if (later != 0) {
      for_each_row<Rows>(place, stride,
                         [&](int, const Number* at) HEED_LAMBDA { fetch_at<2>(at, later); });
    }
  }
};
/// Calls run(std::bool_constant<Near>()); the processors that prefetch near have these vectors.
template <class Rows, class Run>
HEED_SIMD void with_near(const Rows& rows, const Run& run) {
  if constexpr (HEED_SIMD_BYTES == 64) {
    if (rows.near) return run(std::true_type());
  }
  run(std::false_type());
}
