// SPDX-License-Identifier: MIT
// Memory that will be needed soon. Included by part.inl.

/// Some matrices that the next piece of work touches, fetched a few lines at a time in the course
/// of this one: pieces that are short and many are nothing that a processor guesses by itself.
template <class T, int count>
struct Ahead {
  struct Rows {
    const T* data;
    Index stride;
    Index rows;
    Index columns;
  };
  Rows matrices[count];
  int which = 0;
  Index row = 0;
  Index column = 0;

  HEED_SIMD void fetch() {
    constexpr Index line = 64 / static_cast<Index>(sizeof(T)), lines = 24;
    for (Index i = 0; i < lines && which < count; ++i) {
      const Rows& matrix = matrices[which];
      __builtin_prefetch(matrix.data + row * matrix.stride + column);
      column += line;
      if (column < matrix.columns) continue;
      column = 0;
      if (++row < matrix.rows) continue;
      row = 0;
      ++which;
    }
  }
};
