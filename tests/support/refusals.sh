#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# usage: refusals.sh PROGRAMS SOURCES EMPTY
# Every example whose source is in SOURCES and whose program is in PROGRAMS is called wrongly, in as many
# ways as its --help names: each call must end with status 2 and one line that tells why, before anything
# is printed, computed or written. EMPTY is a folder to be in. `hello`, the first program, takes no arguments:
# it is as short as it can be.
set -euo pipefail
programs=$(cd "$1" && pwd) sources=$(cd "$2" && pwd) empty=$3
rm -rf "$empty"; mkdir -p "$empty/in" && cd "$empty/in"
unset HEED_MODELS
failures=0 calls=0
fail() { failures=$((failures + 1)); echo "$*" >&2; }
# refused WORDS PROGRAM ARGUMENT...: WORDS is a regular expression of the line, behind the program's name.
refused() {
  local words=$1 program=$2 status=0; shift 2
  [ -f "$sources/$program.cpp" ] || fail "no example $program"
  [ -x "$programs/$program" ] || return 0
  calls=$((calls + 1))
  timeout 30 "$programs/$program" "$@" > ../printed 2> ../said < /dev/null || status=$?
  [ "$status" -eq 2 ] || fail "$program $*: status $status"
  [ ! -s ../printed ] || fail "$program $*: printed '$(head -1 ../printed)' …"
  [ "$(wc -l < ../said)" -eq 1 ] && grep -qE "^$program: .*($words)" ../said ||
    fail "$program $*: said '$(cat ../said)', not '$words'"
  [ -z "$(ls -A)" ] || fail "$program $*: left $(ls -A)"; rm -rf -- ./* ./.[!.]*
}
no_file='No such file|not exist|no stb|without stb'
for source in "$sources"/*.cpp; do
  program=$(basename "$source" .cpp)
  [ -x "$programs/$program" ] && [ "$program" != hello ] || continue
  "$programs/$program" --help > ../help && grep -q '^Usage: ' ../help || fail "$program --help: $(cat ../help)"
  refused '' "$program" --no-such-option
  refused '' "$program" one too many
  # The options as --help writes them: `--threads INT:INT >= 0=0`, `--svg TEXT`.
  while read -r option type; do
    case $option/$type in
      */INT* | */UINT* | */FLOAT*)
        refused "$option" "$program" "$option" many ;;&
      --threads/* | --steps/* | --batch/* | --epochs/* | --max-tokens/* | --length/* | --window/*)
        refused "$option: -1 is not" "$program" "$option=-1" ;;
      --svg/* | --png/* | --html/* | --save/*)
        set -- "$option"
        ! grep -q -- --attention ../help || set -- --attention 0.0 "$option"
        refused "$no_file" "$program" "$@" no/such/folder/file
        refused "$no_file|denied|Read-only" "$program" "$@" /proc/file  # read-only, even to root
        refused 'Is a directory|without stb' "$program" "$@" "$programs" ;;
      --out/*)
        refused 'Not a directory' "$program" --out "$source"
        refused "$no_file|denied|Read-only" "$program" --out /proc/folder ;;
      --model/* | --resume/* | --data/*)
        refused "$no_file|cannot be read|--model" "$program" "$option" no/such/place ;;
      --color/* | --mask/* | --products/* | --attention/*)
        refused "${option}|no-such|LAYER" "$program" "$option" no-such ;;
    esac
  done < <(sed -nE 's/^ +(-[a-z],)?(--[a-z-]+) ((TEXT|U?INT|FLOAT|\{).*)/\2 \3/p' ../help)
done
# What else can be wrong.
models='tools/models.sh'
refused "$models" chat
refused "$models" embed
refused "$models" explore
refused "$models" heatmap --text 'I love AI'
refused 'No such file' chat --model no/such.gguf
refused 'No such file' files no/such.gguf
refused 'GGUF' files "$sources/README.md"
refused 'usage: inspect' inspect
refused 'No such file' inspect no/such.gguf
refused 'not a safetensors file' inspect "$sources/README.md"
refused 'file is required' generate
refused 'No such file' generate no/such.gguf
refused 'not a safetensors file' generate "$sources/README.md"
refused 'pictures of --attention' embed --svg picture.svg
refused 'expected full, causal' explore --mask window:0
refused 'layer' heatmap --layer 9
refused 'head' heatmap --head 99
refused 'sentence' heatmap --sentence 9
refused 'no mask is called nothing' masks --only nothing
refused 'heads' train_char --quick --heads 3
refused 'dropout' train_char --dropout 2
refused 'safetensors' train_char --resume "$sources/README.md"
refused '--out' train_sequence --png
refused '--out' learned_masks --html
TMPDIR=/proc refused "$no_file|denied|Read-only|not permitted" files
[ "$calls" -gt 0 ] && [ "$failures" -eq 0 ] || { echo "$failures of $calls calls" >&2; exit 1; }
