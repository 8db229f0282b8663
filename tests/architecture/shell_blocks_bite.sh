#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# usage: shell_blocks_bite.sh ROOT BUILD WORK CXX
# shell_blocks.sh itself, tried: a page with each of these mistakes must fail with these words.
set -euo pipefail
root=$1 build=$2 work=$3 cxx=$4
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$work"
page=$work/page.md
fence='```'
failed=0
# bites WORDS < PAGE
bites() {
  cat >"$page"
  local said
  if said=$("$here/shell_blocks.sh" "$root" "$build" "$work/run" "$cxx" "$page" 2>&1); then
    echo "let through:"; cat "$page"; failed=1
  elif ! grep -qF -- "$1" <<<"$said"; then
    echo "fails without saying '$1': $said"; failed=1
  fi
}
block() { printf '%ssh\n%s\n%s\n' "$fence" "$1" "$fence"; }

block 'build/examples/heatmap' | bites 'build/examples/heatmap: No such file'
block './examples/run heetmap' | bites "no example 'heetmap'"
block './examples/run heatmap --maks causal' | bites 'no option --maks'
block './examples/run chat --promt "Hello"' | bites 'no option --promt'
block './tests/run --all' | bites 'no option --all'
block 'tools/model.sh models' | bites 'tools/model.sh: No such file'
block 'cmake --preset fast' | bites 'no preset fast'
block 'cmake --workflow --preset daily' | bites 'no preset daily to --workflow'
block 'cmake -S . -B build -DHEED_TESTS=OFF' | bites 'no option HEED_TESTS'
block 'cmake -S sources -B build' | bites 'no CMakeLists.txt in sources'
block 'bench/peers/sdpa.py build/release/bench/libheed_bench_peer.so --jsn x' | bites 'no option --jsn'
block 'bench/peers/sdpa.py build/release/bench/libheed_peer.so' | bites 'no file build/release/bench/libheed_peer.so'
block 'build/release/bench/bench_backwards' | bites 'bench_backwards: No such file'
block 'pip install tensorflow' | bites 'imports tensorflow'
{ block 'echo one'; printf '<!-- output: two -->\n%s\ntwo\n%s\n' "$fence" "$fence"; } | bites 'prints something else'
echo 'Try `examples/run heatmap --maks causal`.' | bites 'no option --maks'
echo 'Try `train_char --safe`.' | bites 'no option --safe'
echo 'Try `tests/run --all`.' | bites 'no option --all'
echo 'Try `cmake --workflow --preset daily`.' | bites 'no preset daily'
# And what is right passes.
{ block 'echo one'; printf '<!-- output: one -->\n%s\none\n%s\n`heatmap --mask causal`\n' "$fence" "$fence"; } >"$page"
"$here/shell_blocks.sh" "$root" "$build" "$work/run" "$cxx" "$page" >/dev/null || failed=1
rm -rf "$work"
exit $failed
