#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# usage: note.sh CLANG INCLUDE
# clang says once that it does not optimize kernels, where that is so.
set -euo pipefail
# notes FLAG...  how many there are
notes() {
  echo '#include <heed/heed.hpp>' | "$clang" -std=c++20 "$@" -I"$include" -fsyntax-only -x c++ - 2>&1 |
    grep -c 'warning: heed: without optimization' || true
}
clang=$1 include=$2
[ "$(notes -O0)" = 1 ] || { echo "-O0: $(notes -O0) notes"; exit 1; }
for flags in -O1 -O2 '-O0 -DHEED_COMPILED'; do
  # shellcheck disable=SC2086
  [ "$(notes $flags)" = 0 ] || { echo "a note with $flags"; exit 1; }
done
