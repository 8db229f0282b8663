// SPDX-License-Identifier: MIT
// Included by part.inl, for head_run.inl.

/// One vector of queries of one head.
template <class T>
struct HeadGroup {
  using S = Lanes<T>;
  const HeadRun<T>& run;
  MatrixRef<T> keys;
  MatrixRef<T> values;
  const T* tail;  // of the values, see fill_tail
  const std::uint64_t* words;
  int lane;       // the first query
  Index count;    // keys from the first to the last that one of the queries sees
  Index all_see;  // so many of them, the first ones, are seen by every query
  Index queries;  // at most a vector
  T* out;
  T* maximum;
  T* sum;
  Ahead<T, 3>* ahead;

  HEED_SIMD typename S::M visible(Index key) const { return S::lanes(words[key] >> lane); }
  /// Leaves out the keys at both ends that no query of the group sees.
  HEED_SIMD void cut() {
    const std::uint64_t whole = ~std::uint64_t{0} >> (64 - queries) << lane;
    Index first = 0;
    while (first < count && (words[first] & whole) == 0) ++first;
    while (count > first && (words[count - 1] & whole) == 0) --count;
    keys.data += first * keys.row_stride;
    values.data += first * values.row_stride;
    tail += first * S::width;
    words += first;
    count -= first;
    all_see = 0;
    while (all_see < count && (words[all_see] & whole) == whole) {
      ++all_see;
    }
  }
};
