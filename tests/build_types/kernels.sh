#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# usage: kernels.sh COMPILER INCLUDE
# The machine code of all attention and product kernels is as long with -O0 and -Og as with -O2, to a
# tenth; kernels that nobody optimizes are twice as long and more.
set -euo pipefail
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT
cat >"$work/unit.cpp" <<'UNIT'
#include <heed/attention.hpp>
#include <heed/tensor.hpp>
void both(heed::TensorView<float, 2> x) {
  heed::attention(x, x, x, heed::masks::Causal{}, x);
  heed::matrix_product(x, x, x);
}
UNIT
# bytes FLAG  of all functions of kernels
bytes() {
  "$compiler" -std=c++20 "$1" -I"$include" -c "$work/unit.cpp" -o "$work/unit.o"
  local sum=0 size
  while read -r _ size _; do sum=$((sum + 16#$size)); done < <(nm -S -C --defined-only "$work/unit.o" | grep '_kernels::')
  echo $sum
}
compiler=$1 include=$2
expected=$(bytes -O2)
[ "$expected" -gt 50000 ] || { echo "kernels of $expected bytes: not all of them were found"; exit 1; }
for flag in -O0 -Og; do
  found=$(bytes $flag)
  echo "$flag: $found bytes of kernels, -O2: $expected"
  [ $((found * 10)) -lt $((expected * 11)) ] && [ $((found * 10)) -gt $((expected * 9)) ] || exit 1
done
