// SPDX-License-Identifier: MIT
// Tiles: registers of 16 rows by 64 bytes, the instruction that multiplies them as bfloat16 pairs,
// and the matrix product on them. A processor has them as AMX; a twin in plain vectors computes the
// same bits anywhere, slowly, so that kernels on tiles are tested where no processor has them.
// Included by part.inl, after lanes.inl.

/// bfloat16 numbers in a row of a tile, and thus the terms that one instruction adds up. Terms come
/// in groups of this many, which start at absolute multiples: where a group starts decides bits.
inline constexpr Index amx_terms = 32;
/// Rows of a tile, and floats in one of them.
inline constexpr Index amx_side = 16;

HEED_SIMD Index whole_terms(Index count) { return (count + amx_terms - 1) & -amx_terms; }

/// While an object of this lives, vectors take denormal numbers as zeros of their sign, and round
/// to such zeros, as tiles do. For kernels that are called: a compiler may move what is inlined.
class DenormalsAreZero {
 public:
  DenormalsAreZero() {
    asm volatile("stmxcsr %0" : "=m"(before_)::"memory");
    const unsigned now = before_ | 0x8040;
    asm volatile("ldmxcsr %0" ::"m"(now) : "memory");
  }
  ~DenormalsAreZero() { asm volatile("ldmxcsr %0" ::"m"(before_) : "memory"); }
  DenormalsAreZero(const DenormalsAreZero&) = delete;
  DenormalsAreZero& operator=(const DenormalsAreZero&) = delete;

 private:
  unsigned before_;
};

/// What one instruction adds to one row of sums, while DenormalsAreZero. Both halves of the pairs
/// are chains of fused multiply-adds that start at zero; the two are added to each other, then to
/// the sums. Observed on Sapphire Rapids and Emerald Rapids, bit by bit: Intel's manual (tdpbf16ps)
/// leaves the order open.
template <class T>
struct TileChains {
  using S = Lanes<T>;
  using V = typename S::V;
  using Ints = typename S::Ints;  // of pairs, too

  HEED_SIMD static V first_of(Ints pairs) { return (V)(pairs << 16); }
  HEED_SIMD static V second_of(Ints pairs) { return (V)(pairs & ~0xffff); }

  HEED_SIMD void add(Ints a, Ints b) {
    first = S::fma(first_of(a), first_of(b), first);
    second = S::fma(second_of(a), second_of(b), second);
  }
  HEED_SIMD V added_to(V sums) const { return sums + (first + second); }

  V first{};
  V second{};
};

/// The shapes of eight tiles, as HardwareTiles says.
struct alignas(64) TileLayout {
  explicit constexpr TileLayout(Index bytes) {
    row_bytes[4] = row_bytes[5] = static_cast<std::uint16_t>(bytes);
    rows[6] = rows[7] = static_cast<std::uint8_t>(bytes / 4);
  }
  std::uint8_t palette = 1;
  std::uint8_t start_row = 0;
  std::uint8_t reserved[14] = {};
  std::uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  std::uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};

/// The instructions on the processor's eight tiles, between begin() and end(). Addresses are any,
/// `stride` is the distance of rows in bytes. Assembler, since the intrinsics of g++ 12 do not say
/// that they read memory.
class TileInstructions {
 public:
  static constexpr bool has_rounding = true;  // avx512_bf16, with the set amx

  /// `bytes`: 64 or 32 in a row of the tiles 4 and 5, which are left-hand factors. The tiles 6 and
  /// 7, to their right, have a quarter as many rows. The others are whole.
  HEED_SIMD static void begin(Index bytes = 4 * amx_side) {
    static constexpr TileLayout half(2 * amx_side), whole(4 * amx_side);
    asm volatile("ldtilecfg %0" ::"m"(bytes == 2 * amx_side ? half : whole));
  }
  HEED_SIMD static void end() { asm volatile("tilerelease" ::: "memory"); }

  template <int Tile>
  HEED_SIMD void zero() {
    asm volatile("tilezero %%tmm%c0" ::"i"(Tile));
  }
  template <int Tile>
  HEED_SIMD void load(const void* rows, Index stride) {
    asm volatile("tileloadd (%0,%1,1), %%tmm%c2" ::"r"(rows), "r"(stride), "i"(Tile) : "memory");
  }
  template <int Tile>
  HEED_SIMD void store(void* rows, Index stride) {
    asm volatile("tilestored %%tmm%c2, (%0,%1,1)" ::"r"(rows), "r"(stride), "i"(Tile) : "memory");
  }
  /// sums(row, lane) += Σ_k a(row, k) · b(k, lane): a row of `A` holds 32 numbers, a row of `B` a
  /// pair of numbers for each of 16 lanes.
  template <int Sums, int A, int B>
  HEED_SIMD void multiply() {
    asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(Sums), "i"(A), "i"(B));
  }
  /// The same sums of integers: a row of `A` holds numbers of 8 bits, with a sign if `Signed`, a
  /// row of `B` four signed ones for each of 16 lanes.
  template <bool Signed, int Sums, int A, int B>
  HEED_SIMD void multiply_bytes() {
    if constexpr (Signed) {
      asm volatile("tdpbssd %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(Sums), "i"(A), "i"(B));
    } else {
      asm volatile("tdpbusd %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(Sums), "i"(A), "i"(B));
    }
  }
};

/// Tiles that are in use while the object lives, so that nothing of them is left when a kernel
/// returns. Beginning and ending take 0.1 µs (Emerald Rapids).
class HardwareTiles : public TileInstructions {
 public:
  using Instructions = TileInstructions;
  static constexpr bool beside_vectors = true;  // both work at a time

  explicit HardwareTiles(Index bytes = 4 * amx_side) { begin(bytes); }
  ~HardwareTiles() { end(); }
  HardwareTiles(const HardwareTiles&) = delete;
  HardwareTiles& operator=(const HardwareTiles&) = delete;
};

/// The same tiles in memory.
template <class T>
class TwinTiles {
  using V = typename Lanes<T>::Ints;

 public:
  using Instructions = TwinTiles;
  static constexpr bool beside_vectors = false;
  static constexpr bool has_rounding = false;

  HEED_SIMD static void begin() {}
  HEED_SIMD static void end() {}

  explicit TwinTiles(Index bytes = 4 * amx_side) : bytes_(bytes) {}

  template <int Tile>
  HEED_SIMD void zero() {
    for (V& row : tiles_[Tile]) row = V{};
  }
  template <int Tile>
  HEED_SIMD void load(const void* rows, Index stride) {
    load_rows(tiles_[Tile], static_cast<const char*>(rows), stride,
              Tile >= 6 ? bytes_ / 4 : amx_side, Tile / 2 == 2 ? bytes_ : 4 * amx_side);
  }
  template <int Tile>
  HEED_SIMD void store(void* rows, Index stride) {
    store_rows(tiles_[Tile], static_cast<char*>(rows), stride);
  }
  template <int Sums, int A, int B>
  HEED_SIMD void multiply() {
    const DenormalsAreZero mode;
    multiply_rows(tiles_[Sums], tiles_[A], tiles_[B]);
  }
  template <bool Signed, int Sums, int A, int B>
  HEED_SIMD void multiply_bytes() {
    multiply_byte_rows<Signed>(tiles_[Sums], tiles_[A], tiles_[B]);
  }

 private:
  HEED_KERNEL static void load_rows(V* tile, const char* rows, Index stride, Index count,
                                    Index bytes) {
    for (Index row = 0; row < count; ++row) {
      __builtin_memcpy(tile + row, rows + row * stride, static_cast<std::size_t>(bytes));
    }
  }
  HEED_KERNEL static void store_rows(const V* tile, char* rows, Index stride) {
    for (Index row = 0; row < amx_side; ++row) {
      __builtin_memcpy(rows + row * stride, tile + row, sizeof(V));
    }
  }
  HEED_KERNEL static void multiply_rows(V* sums, const V* a, const V* b) {
    for (Index row = 0; row < amx_side; ++row) {
      TileChains<T> chains;
      for (int k = 0; k < amx_side; ++k) chains.add(a[row][k] - V{}, b[k]);
      sums[row] = (V)chains.added_to((typename Lanes<T>::V)sums[row]);
    }
  }
  template <bool Signed>
  HEED_KERNEL static void multiply_byte_rows(V* sums, const V* a, const V* b) {
    for (Index row = 0; row < amx_side; ++row) {
      for (int k = 0; k < amx_side; ++k) {
        for (int up = 24; up >= 0; up -= 8) {  // moves a byte to the top
          const auto left = static_cast<std::uint32_t>(a[row][k]) << up;
          const auto factor = Signed ? static_cast<std::int32_t>(left) >> 24
                                     : static_cast<std::int32_t>(left >> 24);
          sums[row] += factor * (b[k] << up >> 24);
        }
      }
    }
  }

  Index bytes_;
  V tiles_[8][amx_side] = {};  // with zeros where a tile is not whole
};

/// A matrix for tiles, and the distances, in elements, of its rows and of tiles of 16 lanes, which
/// lie side by side unless said.
template <class Element>
struct AmxMatrix {
  Element* data;
  Index stride;
  Index lane_stride = amx_side * Index{sizeof(float)} / Index{sizeof(Element)};
};

/// Adds 32 terms, from k on, to tile `Sum` of the sums, which are rows of `Across` tiles. The first
/// row brings the tiles of b, the first lane those of a.
template <int Across, int Sum, class Tiles>
HEED_SIMD void add_terms(Tiles& tiles, AmxMatrix<const std::uint16_t> a,
                         AmxMatrix<const std::uint16_t> b, Index k) {
  constexpr auto element = static_cast<Index>(sizeof(std::uint16_t));
  constexpr int row = Sum / Across, lane = Sum % Across;
  if constexpr (row == 0) {
    tiles.template load<6 + lane % 2>(b.data + k / 2 * b.stride + 2 * lane * amx_side,
                                      b.stride * element);
  }
  if constexpr (lane == 0) {
    tiles.template load<4 + row % 2>(a.data + row * amx_side * a.stride + k, a.stride * element);
  }
  tiles.template multiply<Sum, 4 + row % 2, 6 + lane % 2>();
}

/// Brings a tile of sums to add to: what is there, or zeros.
template <int Sum, class Tiles, class T>
HEED_SIMD void begin_sums(Tiles& tiles, const T* at, Index stride, bool accumulate) {
  accumulate ? tiles.template load<Sum>(at, stride) : tiles.template zero<Sum>();
}

/// Nothing to compute between the instructions of tiles.
struct NothingBetween {
  HEED_SIMD void operator()() const {}
};
/// The same, or something behind a pointer, so that one function serves for all.
struct CalledBetween {
  template <class Between>
  HEED_SIMD static CalledBetween of(Between& between) {
    return {call_it<Between>, &between};
  }
  template <class Between>
  HEED_KERNEL static void call_it(void* between) {
    (*static_cast<Between*>(between))();
  }
  HEED_SIMD void operator()() const {
    if (call != nullptr) call(between);
  }

  void (*call)(void*) = nullptr;
  void* between = nullptr;
};

/// sums(row, lane) (+)= Σ_k a(row, k) · b(k, lane) for rows of `Across` tiles, as many as `Sum`
/// counts: up to four tiles in one row, two rows of two or one lane of four. A row of a holds
/// `depth` numbers, a row of b pairs of numbers, lane by lane; depth is a multiple of amx_terms.
/// Calls between() after each product of two tiles.
template <int Across, int... Sum, class Tiles, class T, class Between = NothingBetween>
HEED_SIMD void multiply_tiles(std::integer_sequence<int, Sum...>, Tiles& tiles,
                              AmxMatrix<const std::uint16_t> a, AmxMatrix<const std::uint16_t> b,
                              Index depth, AmxMatrix<T> sums, bool accumulate,
                              Between&& between = {}) {
  const auto stride = sums.stride * static_cast<Index>(sizeof(T));
  const auto at = [&](int tile) HEED_LAMBDA {
    return sums.data + tile / Across * amx_side * sums.stride + tile % Across * amx_side;
  };
  (begin_sums<Sum>(tiles, at(Sum), stride, accumulate), ...);
  for (Index k = 0; k < depth; k += amx_terms) {
    ((add_terms<Across, Sum>(tiles, a, b, k), between()), ...);
  }
  (tiles.template store<Sum>(at(Sum), stride), ...);
}

/// A product for tiles, with `row_tiles` tiles of rows and `lane_tiles` of lanes.
template <class T>
struct PendingProduct {
  AmxMatrix<const std::uint16_t> a;
  Index row_tiles;
  AmxMatrix<const std::uint16_t> b;
  Index depth;
  AmxMatrix<T> sums;
  bool accumulate;
  Index lane_tiles = 1;
};

/// A product of one tile of lanes whose right-hand tiles stay while rows pass by: on a busy core a
/// load takes as long as a product (Emerald Rapids). Two tiles of sums take turns, so that a store
/// need not wait for its sum.
template <class Tiles, class T, class Between>
struct StayingProduct {
  template <int Group>
  HEED_SIMD void load_right() {
    tiles.template load<4 + Group>(product.b.data + Group * amx_side * product.b.stride,
                                   product.b.stride * Index{sizeof(std::uint16_t)});
  }
  HEED_SIMD Index sums_row() const { return product.sums.stride * Index{sizeof(T)}; }
  HEED_SIMD Index sums_step() const { return amx_side * product.sums.stride; }

  template <int Sum, int Group>
  HEED_SIMD void add_group(bool begins) {
    constexpr int tile = 2 + Group % 2;
    tiles.template load<tile>(left + Group * amx_terms,
                              product.a.stride * Index{sizeof(std::uint16_t)});
    tiles.template multiply<Sum, tile, 4 + Group>();
    if (Group == 0 && !begins) tiles.template store<1 - Sum>(sums - sums_step(), sums_row());
    between();
  }
  template <int Sum, int... Group>
  HEED_SIMD void multiply_row(bool begins, std::integer_sequence<int, Group...>) {
    begin_sums<Sum>(tiles, sums, sums_row(), product.accumulate);
    (add_group<Sum, Group>(begins), ...);
    left += amx_side * product.a.stride;
    sums += sums_step();
  }
  template <int... Group>
  HEED_SIMD void multiply(std::integer_sequence<int, Group...> groups) {
    (load_right<Group>(), ...);
    Index row = 0;
    for (; row + 2 <= product.row_tiles; row += 2) {
      multiply_row<0>(row == 0, groups);
      multiply_row<1>(false, groups);
    }
    if (row < product.row_tiles) {
      multiply_row<0>(row == 0, groups);
      tiles.template store<0>(sums - sums_step(), sums_row());
    } else if (row > 0) {
      tiles.template store<1>(sums - sums_step(), sums_row());
    }
  }

  Tiles& tiles;
  const PendingProduct<T>& product;
  Between& between;
  const std::uint16_t* left = product.a.data;
  T* sums = product.sums.data;
};

/// Calls multiply(product) for each tile of lanes, with a product of it alone.
template <class T, class Multiply>
HEED_SIMD void for_each_lane_tile(PendingProduct<T> product, Multiply&& multiply) {
  for (Index lane = 0; lane < product.lane_tiles; ++lane) {
    multiply(product);
    product.b.data += product.b.lane_stride;
    product.sums.data += product.sums.lane_stride;
  }
}

/// multiply_tiles for any number of tiles of rows and lanes, one tile of lanes after the other.
/// Up to three right-hand tiles stay; four took more time than what happens with more: up to four
/// tiles of rows come at once, shared out evenly, so that right-hand tiles are loaded for several.
template <class Tiles, class T, class Between = NothingBetween>
HEED_SIMD void multiply_tiles(Tiles& tiles, const PendingProduct<T>& product,
                              Between&& between = {}) {
  using Staying = StayingProduct<Tiles, T, std::remove_reference_t<Between>>;
  const auto stay = [&](auto groups) HEED_LAMBDA {
    for_each_lane_tile(product, [&](const PendingProduct<T>& one) HEED_LAMBDA {
      Staying{tiles, one, between}.multiply(groups);
    });
  };
  if (product.depth == 1 * amx_terms) return stay(std::make_integer_sequence<int, 1>());
  if (product.depth == 2 * amx_terms) return stay(std::make_integer_sequence<int, 2>());
  if (product.depth == 3 * amx_terms) return stay(std::make_integer_sequence<int, 3>());
  for_each_lane_tile(product, [&](PendingProduct<T> left) HEED_LAMBDA {
    const auto take = [&](auto some) HEED_LAMBDA {
      multiply_tiles<1>(std::make_integer_sequence<int, some>(), tiles, left.a, left.b, left.depth,
                        left.sums, left.accumulate, between);
      left.a.data += some * amx_side * left.a.stride;
      left.sums.data += some * amx_side * left.sums.stride;
      left.row_tiles -= some;
    };
    while (left.row_tiles > 0) {
      const Index rows = left.row_tiles, some = rows <= 4 ? rows : rows <= 6 ? 3 : 4;
      if (some == 4) take(Known<4>());
      if (some == 3) take(Known<3>());
      if (some == 2) take(Known<2>());
      if (some == 1) take(Known<1>());
    }
  });
}
