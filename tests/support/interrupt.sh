#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# usage: interrupt.sh TRAIN_CHAR TRAIN_SEQUENCE LEARNED_MASKS FOLDER
# Interrupts examples that train, as Ctrl-C does: they end with status 130, soon, and the files that they
# were asked for are whole. A checkpoint written so can be gone on with.
set -euo pipefail
train_char=$1 train_sequence=$2 learned_masks=$3 folder=$4
rm -rf "$folder"; mkdir -p "$folder"
fail() { echo "$*" >&2; exit 1; }
# interrupted PROGRAM ARGUMENT...: SIGINT once it has printed its first line of training.
interrupted() {
  : > "$folder/printed"  # the lines of the program before are not this one's
  stdbuf -oL "$@" > "$folder/printed" & local program=$! status=0
  for _ in $(seq 600); do grep -qE '^ *(step|epoch) ' "$folder/printed" && break; sleep 0.1; done
  kill -INT "$program"
  wait "$program" || status=$?
  [ "$status" -eq 130 ] || fail "$1 ended with $status after SIGINT"
}
small=(--dim 32 --layers 1 --length 32 --sample 20)
interrupted "$train_char" "${small[@]}" --steps 1000000 --validations 100000 --save "$folder/checkpoint.safetensors"
grep -q "wrote $folder/checkpoint.safetensors" "$folder/printed" || fail "no checkpoint after SIGINT"
last=$(grep '^step' "$folder/printed" | tail -1 | awk '{print $2}')
"$train_char" "${small[@]}" --steps $((last + 5)) --validations 1 --resume "$folder/checkpoint.safetensors" \
  > "$folder/resumed"
grep -q "^step *$((last + 5)) " "$folder/resumed" || fail "the checkpoint cannot be gone on with"
interrupted "$train_sequence" --epochs 1000000 --out "$folder/pictures"
interrupted "$learned_masks" --out "$folder/pictures"
for picture in random_loss random_attention random_generated random_attention_over_time bias; do
  tail -c 7 "$folder/pictures/$picture.svg" | grep -q '</svg>' || fail "$picture.svg is not whole"
done
