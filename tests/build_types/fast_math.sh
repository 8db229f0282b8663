#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# usage: fast_math.sh COMPILER INCLUDE
# Parts of -ffast-math that no macro tells, and all of it where it is allowed, leave the kernels' arithmetic alone.
set -euo pipefail
compiler=$1 include=$2 here=$(dirname "$0")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
check() {
  "$compiler" -std=c++20 -O2 "$@" -I"$include" "$here/fast_math.cpp" -o "$work/program" -pthread
  "$work/program" || { echo "wrong with $*"; exit 1; }
}
check -ffast-math -DHEED_ALLOW_FAST_MATH
if "$compiler" --version | grep -q clang; then
  check -funsafe-math-optimizations
  check -ffast-math -fno-finite-math-only
fi
