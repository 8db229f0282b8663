#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# What shell_blocks.sh puts in the place of commands that take minutes or a network; it is called by
# their names:
#   examples/run NAME …   BUILD's program, which must be as new as its source, with --quick; with
#                         CHECK_ONLY, and for models that are not there, --help must name every option
#   tests/run …           its --help must name every option
#   tools/models.sh F     F becomes the folder that HEED_MODELS named, or an empty one
#   bench/…               every option must stand in the script, a filter must select something
#   cmake …               presets and options must exist; --install installs BUILD
#   pip install …         packages that a script in bench/ imports
#   g++ …                 the compiler BUILD was made with
set -euo pipefail
fail() { echo "${me#"$TREE"/}: $*" >&2; exit 1; }
me=$0
[[ $me = /* ]] || me=$PWD/${me#./}

# names_all TEXT ARGUMENT...: every --option among the arguments is a word of TEXT.
names_all() {
  local text=$1 argument; shift
  for argument in "$@"; do
    [[ $argument == --?* ]] || continue
    grep -qE -- "(^|[^[:alnum:]-])${argument%%=*}($|[^[:alnum:]_-])" <<<"$text" || fail "there is no option ${argument%%=*}"
  done
}

run_example() {
  local name=$1 program=$BUILD/examples/$1 help; shift
  [ -f "$ROOT/examples/$name.cpp" ] || fail "no example '$name'"
  [ -x "$program" ] || fail "$name is not built"
  [ ! "$ROOT/examples/$name.cpp" -nt "$program" ] || fail "$name is older than its source: build it"
  help=$("$program" --help)
  names_all "$help" "$@"
  [ -z "${CHECK_ONLY:-}" ] || return 0
  case "$name" in
    heatmap)  # other text needs the model
      [[ " $* " != *" --text "* ]] || [ -f "${HEED_MODELS:-}/minilm/vocab.txt" ] || return 0
      set -- "$@" --quick ;;
    chat) [ -f "${HEED_MODELS:-}/smollm2.gguf" ] || return 0 ;;
    embed | explore) [ -f "${HEED_MODELS:-}/minilm/vocab.txt" ] || return 0 ;;
    *) ! grep -q -- --quick <<<"$help" || set -- "$@" --quick ;;
  esac
  "$program" "$@"
}

declared() {  # -DHEED_NAME=… is an option of some CMakeLists.txt
  local name=${1#-D}; name=${name%%=*}
  [[ $name != HEED_* ]] || grep -rqE --include=CMakeLists.txt "option\($name " "$ROOT/CMakeLists.txt" "$ROOT/tests" ||
    fail "there is no option $name"
}

run_cmake() {
  local argument kind= before=
  for argument in "$@"; do
    case "$argument" in
      --build) kind=--build ;;
      --workflow) kind=--workflow ;;
      --install) shift 2; "$REAL_CMAKE" --install "$BUILD" "$@" >/dev/null; return ;;
      -D*) declared "$argument" ;;
    esac
    if [ "$before" = --preset ]; then
      (cd "$ROOT" && "$REAL_CMAKE" $kind --list-presets) | grep -q "\"$argument\"" || fail "there is no preset $argument${kind:+ to $kind}"
    elif [ "$before" = -S ]; then
      [ -f "$argument/CMakeLists.txt" ] || fail "no CMakeLists.txt in $argument"
    fi
    before=$argument
  done
}

case "${me#"$TREE"/}" in
  examples/run)
    case "${1:-}" in --*) names_all "$("$ROOT/examples/run" --help)" "$@"; exit ;; esac
    if [ $# -eq 0 ]; then run_example hello; run_example heatmap; else run_example "$@"; fi ;;
  tests/run | tests/run_aarch64) names_all "$("$ROOT/${me#"$TREE"/}" --help)" "$@" ;;
  tools/models.sh)
    [ $# -eq 1 ] || fail "wants one folder"
    if [ -n "$MODELS" ]; then ln -s "$MODELS" "$1"; else mkdir -p "$1"; fi ;;
  build/*/bench/*)
    program=$BUILD/bench/$(basename "$me")
    [ ! -x "$program" ] || [ -n "$("$program" --benchmark_list_tests "$@")" ] || fail "selects nothing: $*" ;;
  bench/*)
    names_all "$(cat "$ROOT/${me#"$TREE"/}")" "$@"
    for argument in "$@"; do
      [[ $argument != build/* ]] || [ -e "$argument" ] || fail "no file $argument"
    done ;;
  *)
    case "$(basename "$me")" in
      cmake) run_cmake "$@" ;;
      g++) exec "$REAL_CXX" "$@" ;;
      pip)
        [ "${1:-}" = install ] || fail "only: pip install"
        for package in "${@:2}"; do
          grep -rqE "^ *(import|from) $package\b" "$ROOT"/bench || fail "nothing in bench/ imports $package"
        done ;;
      *) fail "nothing stands in for it" ;;
    esac ;;
esac
