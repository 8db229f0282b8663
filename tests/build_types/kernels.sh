#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# usage: kernels.sh COMPILER INCLUDE
# With -O0 and -Og the machine code of all attention and product kernels is as long as with -O2, to a
# twentieth, and calls nothing that is not optimized: a swap of the standard library, or the value of
# an integral_constant, made decoding take twice the time.
set -euo pipefail
compiler=$1 include=$2
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
# calls  what kernels of the unit call that is no kernel: only the C library's functions are compiled
calls() {
  objdump -dr -C --no-show-raw-insn "$work/unit.o" | awk '
    /^[0-9a-f]+ <.*>:$/ { kernel = /_kernels::/ }
    kernel && /R_X86_64_PLT32/ && !/_kernels::/ {
      sub(/.*R_X86_64_PLT32[ \t]*/, ""); sub(/-0x[0-9a-f]+$/, ""); print
    }' | sort -u | grep -vxE 'memcpy|memset|memmove|sqrtf?|_Unwind_Resume|\.text.*' || true
}
expected=$(bytes -O2)
[ "$expected" -gt 50000 ] || { echo "kernels of $expected bytes: not all of them were found"; exit 1; }
for flag in -O0 -Og; do
  found=$(bytes $flag)
  echo "$flag: $found bytes of kernels, -O2: $expected"
  others=$(calls)
  [ -z "$others" ] || { printf '%s: kernels call what is not optimized:\n%s\n' "$flag" "$others"; exit 1; }
  [ $((found * 20)) -lt $((expected * 21)) ] && [ $((found * 20)) -gt $((expected * 19)) ] || exit 1
done
