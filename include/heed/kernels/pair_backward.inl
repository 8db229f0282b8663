// SPDX-License-Identifier: MIT
// Gradients of attention in bfloat16: the blocks and the five products of backward.inl, on products
// of pairs or of AMX tiles. P and dS are rounded to bfloat16, which is what the products read.
// Included by part.inl, after amx_attention.inl.

/// The block product of vdpbf16ps: sums(row, lane) (+)= Σ_k a(row, k) · b(k, lane), where the pairs
/// of a row of `a` are column_stride apart, and `b` holds [depth / 2][lanes][2]. Rows and lanes are
/// multiples of 16. TileProduct in amx_attention.inl is its counterpart.
template <class T>
struct PairBlockProduct {
  using S = Lanes<T>;
  using P = Pairs<T>;
  static constexpr Index group = 2;

  /// Keys as PairKernels::turn leaves them, a row per column.
  HEED_SIMD static MatrixRef<std::uint16_t> turned(const std::uint16_t* keys, Index,
                                                   Index columns) {
    return {keys, 2, 2 * columns};
  }

  template <int Rows, int Vectors>
  HEED_KERNEL static void micro_tile(const MatrixRef<std::uint16_t>& a, const std::uint16_t* b,
                                     Index b_row, Index depth, T* out, Index out_row,
                                     bool accumulate) {
    typename S::V sums[Rows][Vectors] = {};
    if (accumulate) load_sums<S>(sums, out, out_row);
    multiply_pairs<P, Rows, Vectors>(a.data, a.row_stride, a.column_stride, b, b_row, depth / 2,
                                     sums);
    store_sums<S>(sums, out, out_row);
  }

  /// All rows of a column of micro tiles; sixteens are sums of sixes and fours.
  template <int Vectors>
  HEED_SIMD static void column(MatrixRef<std::uint16_t> a, Index rows, const std::uint16_t* b,
                               Index b_row, Index depth, T* out, Index out_row, bool accumulate) {
    while (rows > 0) {
      const Index some = Vectors == 1 ? 16 : rows == 4 || rows == 8 ? 4 : 6;
      if constexpr (Vectors == 1) {
        micro_tile<16, 1>(a, b, b_row, depth, out, out_row, accumulate);
      } else if (some == 4) {
        micro_tile<4, Vectors>(a, b, b_row, depth, out, out_row, accumulate);
      } else {
        micro_tile<6, Vectors>(a, b, b_row, depth, out, out_row, accumulate);
      }
      rows -= some;
      a.data += some * a.row_stride;
      out += some * out_row;
    }
  }

  HEED_KERNEL void multiply(const MatrixRef<std::uint16_t>& a, Index rows, const std::uint16_t* b,
                            Index b_row, Index lanes, Index depth, T* sums, Index sums_row,
                            bool accumulate) const {
    Index lane = 0;
    for (; lane + 4 * S::width <= lanes; lane += 4 * S::width) {
      column<4>(a, rows, b + 2 * lane, b_row, depth, sums + lane, sums_row, accumulate);
    }
    for (; lane < lanes; lane += S::width) {
      column<1>(a, rows, b + 2 * lane, b_row, depth, sums + lane, sums_row, accumulate);
    }
  }
};

/// The five products of a block, by a Product: PairBlockProduct or TileProduct.
template <class Product, class T>
struct PairBackwardTable {
  using S = Lanes<T>;
  using P = Pairs<T>;

  /// The range from the first to the last key that one of 16 lanes sees, in whole groups.
  HEED_SIMD static Range seen_keys(const std::uint64_t* words, Index lane) {
    return whole(seen_by(words, key_block, word_of_lanes(lane, 16)), Product::group);
  }
  /// The end of the keys that some query sees, in multiples of pair_key_rows: whole rows and
  /// groups.
  HEED_SIMD static Index seen_end(const std::uint64_t* words) {
    Index end = key_block;
    while (words != nullptr && end > 0 && words[end - 1] == 0) --end;
    return (end + pair_key_rows - 1) & -pair_key_rows;
  }
  HEED_SIMD static Range whole(Range range, Index group) {
    if (range.first == range.end) return {};
    return {range.first & -group, (range.end + group - 1) & -group};
  }
  /// The range of the lanes that see one of the keys [key, key + rows), in whole groups.
  HEED_SIMD static Range seeing_lanes(const PairGradientBlock<T>& block, Index key, Index rows,
                                      Index group) {
    return whole(seeing(block.words, key, rows, query_block), group);
  }

  /// P and dS = P · (dP − delta) of the keys [key, key + rows) from their scores and dP: rounded,
  /// key by key and, dS only, in pairs of keys.
  template <bool Masked>
  HEED_KERNEL static void weigh(const PairGradientBlock<T>& block, Index key, Index rows,
                                const Range& lanes) {
    const auto none = S::broadcast(0), factor = S::broadcast(block.factor);
    for (Index lane = lanes.first; lane < lanes.end; lane += S::width) {
      const auto delta = S::load(block.delta + lane);
      const auto base = none - S::load(block.log_sum_exp + lane);
      for (Index row = key; row < key + rows; row += 2) {
        WholeWords grads[2];
        HEED_UNROLL for (int r = 0; r < 2; ++r) {
          const Index at = (row + r) * query_block + lane;
          auto p = bfloat16_weight<true, S>(S::fma(S::load(block.scores + at), factor, base));
          auto grad = S::load(block.grad_weights + at) - delta;
          if constexpr (Masked) {
            const auto seen = S::mask_of(block.words[row + r] >> lane);
            p = S::select(seen, p, none);
            grad = S::select(seen, grad, none);
          }
          grads[r] = rounded_to_bfloat16(p * grad) >> 16;
          store_lower_halves(block.probabilities + at, (WholeWords)p >> 16);
          store_lower_halves(block.grad_scores + at, grads[r]);
        }
        P::store(block.paired_grad_scores + row * query_block + 2 * lane,
                 (typename P::V)(grads[0] | grads[1] << 16));
      }
    }
  }
  /// P = dS = 0 for the keys [key, key + rows).
  HEED_SIMD static void clear(const PairGradientBlock<T>& block, Index key, Index rows) {
    for (Index i = key * query_block; i < (key + rows) * query_block; i += P::step) {
      P::store(block.probabilities + i, typename P::V{});
      P::store(block.grad_scores + i, typename P::V{});
      P::store(block.paired_grad_scores + i, typename P::V{});
    }
  }

  /// K·Qᵀ, V·dOᵀ, and what becomes of them, for the keys [key, key + rows).
  HEED_SIMD static void grad_scores(Product& product, const PairGradientBlock<T>& block, Index key,
                                    Index rows) {
    const Range lanes = seeing_lanes(block, key, rows, S::width);
    const Index count = lanes.end - lanes.first;
    if (count < query_block) clear(block, key, rows);
    if (count == 0) return;
    const auto multiply = [&](const MatrixRef<std::uint16_t>& a, Index depth,
                              const std::uint16_t* b, T* sums) HEED_LAMBDA {
      product.multiply({a.data + key * a.row_stride, a.row_stride, 2}, rows, b + 2 * lanes.first,
                       2 * query_block, count, depth, sums + key * query_block + lanes.first,
                       query_block, false);
    };
    multiply(block.keys, block.head_depth, block.packed_queries, block.scores);
    multiply(block.values, block.value_depth, block.packed_gradient, block.grad_weights);
    block.words != nullptr ? weigh<true>(block, key, rows, lanes)
                           : weigh<false>(block, key, rows, lanes);
  }

  /// dQᵀ += Kᵀ·dSᵀ.
  HEED_SIMD static void add_keys(Product& product, const PairGradientBlock<T>& block) {
    const Index step = block.words != nullptr ? S::width : query_block;
    for (Index lane = 0; lane < query_block; lane += step) {
      const Range keys = seen_keys(block.words, lane);
      if (keys.first == keys.end) continue;
      auto turned = Product::turned(block.turned_keys, block.key_count, block.head_row);
      turned.data += keys.first / 2 * turned.column_stride;
      product.multiply(turned, block.head_row,
                       block.paired_grad_scores + keys.first * query_block + 2 * lane,
                       2 * query_block, step, keys.end - keys.first, block.grad_queries + lane,
                       query_block, true);
    }
  }

  /// grad[key] += Σ_query weights[key][query] · rows[query] for the keys [key, key + count): dV
  /// from P and dO, dK from dS and Q.
  HEED_SIMD static void add_rows(Product& product, const PairGradientBlock<T>& block, Index key,
                                 Index count, const std::uint16_t* weights,
                                 const std::uint16_t* rows, Index columns, T* grad) {
    const Range lanes = seeing_lanes(block, key, count, Product::group);
    if (lanes.first == lanes.end) return;
    product.multiply({weights + key * query_block + lanes.first, query_block, 2}, count,
                     rows + lanes.first * columns, 2 * columns, columns, lanes.end - lanes.first,
                     grad + key * columns, columns, true);
  }

  HEED_KERNEL static void backward(const PairGradientBlock<T>& block) {
    Product product;
    const Index rows = block.words != nullptr ? S::width : key_block / 2;
    const Index end = seen_end(block.words);
    for (Index key = 0; key < end; key += rows) {
      prefetch_coming(block.coming);
      grad_scores(product, block, key, rows);
    }
    add_keys(product, block);
    for (Index key = 0; key < end; key += rows) {
      prefetch_coming(block.coming);
      add_rows(product, block, key, rows, block.probabilities, block.zipped_gradient,
               block.value_row, block.gradients.values);
      add_rows(product, block, key, rows, block.grad_scores, block.zipped_queries, block.head_row,
               block.gradients.keys);
    }
  }
};
