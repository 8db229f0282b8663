#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# usage: shell_blocks.sh ROOT BUILD WORK CXX [PAGE...]
# Runs every ```sh block of the pages (README.md, docs/, bench/README.md) as it stands, in a folder
# WORK/tree that looks like ROOT, and compares what it prints with the block of output right behind
# it. Commands that take minutes or a network have a stand-in (tests/architecture/stand_in.sh), which
# runs what BUILD has and else checks that every path, program, preset and option exists. Commands in
# the text, as `examples/run NAME --option`, are checked for the names of programs and options.
set -euo pipefail
export ROOT=$1 BUILD=$2 WORK=$3
REAL_CXX=$(command -v "$4"); export REAL_CXX
shift 4
pages=("$@")
[ ${#pages[@]} -gt 0 ] || pages=("$ROOT"/README.md "$ROOT"/docs/*.md "$ROOT"/bench/README.md)
here=$(cd "$(dirname "$0")" && pwd)
REAL_CMAKE=$(command -v cmake); export REAL_CMAKE
export TREE=$WORK/tree HOME=$WORK/home COLUMNS=80 MODELS=${HEED_MODELS:-}
unset FORCE_COLOR HEED_MODELS
failed=0 ran=0

# A tree like ROOT: links, but for what stands in.
make_tree() {
  rm -rf "$WORK"; mkdir -p "$TREE" "$HOME/mine/include" "$WORK/bin"
  local folder entry stand folders="examples tests tools bench bench/peers bench/compile_time"
  for folder in $folders; do mkdir -p "$TREE/$folder"; done
  for entry in include cmake docs CMakeLists.txt CMakePresets.json README.md LICENSE; do ln -s "$ROOT/$entry" "$TREE/"; done
  for folder in $folders; do
    for entry in "$ROOT/$folder"/*; do [ -e "$TREE/$folder/${entry##*/}" ] || ln -s "$entry" "$TREE/$folder/"; done
  done
  for stand in examples/run tests/run tests/run_aarch64 tools/models.sh bench/compile_time/run; do
    ln -sf "$here/stand_in.sh" "$TREE/$stand"
  done
  for entry in "$ROOT"/bench/peers/*.py "$ROOT"/bench/*.py; do ln -sf "$here/stand_in.sh" "$TREE/${entry#"$ROOT"/}"; done
  for entry in "$ROOT"/bench/bench_*.cpp; do
    stand=$TREE/build/release/bench/$(basename "$entry" .cpp)
    mkdir -p "${stand%/*}"; ln -s "$here/stand_in.sh" "$stand"
  done
  touch "$TREE/build/release/bench/libheed_bench_peer.so"
  for stand in cmake g++ pip; do ln -s "$here/stand_in.sh" "$WORK/bin/$stand"; done
  cp "$ROOT/examples/hello.cpp" "$TREE/"
}

# The blocks of a page as files N.sh, with N.expected where output stands right behind, and N.given
# where models are needed for it.
blocks_of() {
  awk -v folder="$2" '
    taking == 1 && /^```$/ { taking = 0; behind = 1; next }
    taking == 1 { print > (folder "/" n ".sh"); next }
    taking == 2 && /^```$/ { taking = 0; next }
    taking == 2 { if ($0 !~ /^\[.*\]$/) print > (folder "/" n ".expected"); next }
    /^```sh$/ { taking = 1; ++n; printf "" > (folder "/" n ".sh"); next }
    behind == 1 && /^<!-- output: / { behind = 2; next }
    behind == 1 && /^<!-- printed with models -->$/ { behind = 2; printf "" > (folder "/" n ".given"); next }
    behind == 2 && /^```$/ { taking = 2; behind = 0; next }
    { behind = 0 }' "$1"
}

complain() { echo "${page#"$ROOT"/}: $1" >&2; failed=1; }

run_block() {
  local script=$1 out=$WORK/printed
  ran=$((ran + 1))
  make_tree
  if ! (cd "$TREE" && PATH=$WORK/bin:$PATH bash -euo pipefail "$script") >"$out" 2>"$out.errors"; then
    complain "this block fails:
$(cat "$script")
$(tail -5 "$out.errors")"
  elif [ -f "${script%.sh}.expected" ] && { [ ! -f "${script%.sh}.given" ] || [ -n "$MODELS" ]; } &&
      ! diff <(echo "$(<"${script%.sh}.expected")") <(echo "$(<"$out")") >"$out.difference"; then
    complain "this block prints something else than what stands behind it:
$(cat "$script")
$(cat "$out.difference")"
  fi
}

# Commands in the text: `examples/run NAME …`, `examples/NAME …`, `NAME --option …`, tests/run, tools/….
check_inline() {
  local words
  make_tree
  while IFS= read -r words; do
    set -f; set -- $words; set +f
    local program=${1#./}
    case "$program" in
      tests/run | tests/run_aarch64 | examples/run | bench/*.py | cmake) ;;
      *) # --option VALUE alone belongs to some example
        program=${program#examples/}
        [ -f "$ROOT/examples/$program.cpp" ] || continue
        set -- examples/run "$@"; set -- "$1" "$program" "${@:3}" ;;
    esac
    if ! (cd "$TREE" && CHECK_ONLY=1 PATH=$WORK/bin:$PATH "$([ "$program" = cmake ] && echo cmake || echo "./${1#./}")" "${@:2}") >/dev/null 2>"$WORK/errors"; then
      complain "\`$words\`: $(tail -1 "$WORK/errors")"
    fi
  done < <(sed '/^```/,/^```$/d' "$page" | grep -o '`[^`]*`' | tr -d '`' | sort -u)
}

for page in "${pages[@]}"; do
  folder=$(mktemp -d)
  blocks_of "$page" "$folder"
  for script in "$folder"/*.sh; do
    [ ! -e "$script" ] || run_block "$script"
  done
  check_inline
  rm -rf "$folder"
done
rm -rf "$WORK"
[ $failed -eq 0 ] || exit 1
echo "$ran blocks"
