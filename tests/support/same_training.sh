#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# usage: same_training.sh FOLDER TRAIN_CHAR COMMAND...
# COMMAND, which trains on several ranks, prints what TRAIN_CHAR prints in one process, losses to the last
# digit, and saves the same file. Three batches a step: on two ranks one has more of them.
set -euo pipefail
folder=$1 train_char=$2; shift 2
rm -rf "$folder"; mkdir -p "$folder"; cd "$folder"
options=(--quick --batch 2 --accumulate 3 --digits 17 --dropout 0.1 --color never --save checkpoint.safetensors)
"$train_char" "${options[@]}" > one.txt
mv checkpoint.safetensors one.safetensors
"$@" "${options[@]}" --threads 1 > ranks.txt
[ "$(grep -cE '^step .* loss [0-9]\.[0-9]{17} ' one.txt)" -eq 4 ] || { cat one.txt; exit 1; }
diff one.txt ranks.txt
cmp one.safetensors checkpoint.safetensors
