// SPDX-License-Identifier: MIT
// Vectors whose last lanes lie outside of an array. Included by part.inl, after lanes.inl.

/// The first `count` numbers of `from`, fewer than a vector; 0 in the other lanes.
template <class S>
HEED_SIMD typename S::V load_first(const typename S::Scalar* from, Index count) {
#if HEED_SIMD_BYTES == 64
  const auto mask = (1u << count) - 1;
  if constexpr (S::width == 16) {
    return __builtin_ia32_loadups512_mask(from, typename S::V{}, static_cast<unsigned short>(mask));
  } else {
    return __builtin_ia32_loadupd512_mask(from, typename S::V{}, static_cast<unsigned char>(mask));
  }
#else
  typename S::Scalar spill[S::width] = {};
  for (Index i = 0; i < count; ++i) spill[i] = from[i];
  return S::load(spill);
#endif
}

/// The first `count` lanes, fewer than all, to `to`.
template <class S>
HEED_SIMD void store_first(typename S::Scalar* to, typename S::V value, Index count) {
#if HEED_SIMD_BYTES == 64
  const auto mask = (1u << count) - 1;
  if constexpr (S::width == 16) {
    __builtin_ia32_storeups512_mask(to, value, static_cast<unsigned short>(mask));
  } else {
    __builtin_ia32_storeupd512_mask(to, value, static_cast<unsigned char>(mask));
  }
#else
  typename S::Scalar spill[S::width];
  S::store(spill, value);
  for (Index i = 0; i < count; ++i) to[i] = spill[i];
#endif
}
