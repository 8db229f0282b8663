// SPDX-License-Identifier: MIT
#pragma once

#include <type_traits>

#include <heed/attention/detail/call.hpp>
#include <heed/attention/detail/operands.hpp>
#include <heed/core/bfloat16.hpp>
#include <heed/core/index.hpp>
#include <heed/core/parallel.hpp>
#include <heed/tensor/tensor.hpp>

// Copies of tensors that many blocks read, so that each number is rounded to bfloat16 once.

namespace heed::detail {

/// The operand with its numbers, which are bfloat16, copied to `memory`: as bits, or in T. Of every
/// batch item the first count_of(item) tokens.
template <class T, class X, class Count>
Operand<T> copied(const Operand<T>& from, Tensor<X, 4>& memory, const Count& count_of) {
  constexpr Index few = 1 << 17;  // numbers, before waking other threads costs more
  memory = Tensor<X, 4>::uninitialized(from.extents());
  const Index heads = from.extent(1), columns = from.extent(3), size = from.extent(2) * columns;
  const auto copy = [&](Index i) {
    const Index item = i / heads, head = i % heads, count = count_of(item);
    X* const to = memory.data() + i * size;
    if constexpr (std::is_same_v<X, T>) {
      from.rows(item, head, 0, count, to);
    } else {
      from.copy_bits(item, head, 0, count, columns, &to->bits);
    }
  };
  const Index all = size == 0 ? 0 : from.extent(0) * heads;
  for (Index i = 0; memory.size() < few && i < all; ++i) copy(i);
  if (memory.size() >= few) parallel_for(all, copy);
  if constexpr (std::is_same_v<X, T>) return from.at(memory.data());
  if constexpr (!std::is_same_v<X, T>) return from.at(&memory.data()->bits);
}

/// A call that rounds its queries, keys and values, with copies in one form: as bits for products
/// of pairs or tiles, or else in T.
template <class T>
class RoundedCall {
 public:
  RoundedCall(const AttentionArgs<T>& args, bool bits) : args_(args) {
    const auto queries = [&](Index) { return args.query_count(); };
    const auto keys = [&](Index item) { return args.key_count_of(item); };
    take(args_.queries, 0, bits, queries);
    take(args_.keys, 1, bits, keys);
    take(args_.values, 2, bits, keys);
  }
  RoundedCall(const RoundedCall&) = delete;
  RoundedCall& operator=(const RoundedCall&) = delete;

  const AttentionArgs<T>& args() const { return args_; }

 private:
  template <class Count>
  void take(Operand<T>& operand, Index place, bool bits, const Count& count_of) {
    if (!bits) {
      operand = copied(operand, wide_[place], count_of);
    } else if (operand.rounds()) {
      operand = copied(operand, narrow_[place], count_of);
    }
  }

  AttentionArgs<T> args_;
  Tensor<bfloat16, 4> narrow_[3];
  Tensor<T, 4> wide_[3];
};

}  // namespace heed::detail
