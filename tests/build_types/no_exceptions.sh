#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# usage: no_exceptions.sh COMPILER INCLUDE
# A program built with -fno-exceptions computes, gets the message of an error in a handler of its own, and
# without one prints it and aborts.
set -euo pipefail
compiler=$1 include=$2 here=$(dirname "$0")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$compiler" -std=c++20 -O1 -fno-exceptions -Wall -Wextra -Werror -I"$include" "$here/no_exceptions.cpp" -o "$work/program" -pthread
"$work/program" compute
said=$("$work/program" handle 2> "$work/default")
[ "$said" = "handled: attention: queries have head_dim 4, keys 3" ] || { echo "a handler got: $said"; exit 1; }
[ "$(cat "$work/default")" = "attention: queries have head_dim 4, keys 3" ] || { echo "the one before it is not the default"; exit 1; }
if said=$({ ulimit -c 0; "$work/program" abort; } 2>&1); then
  echo "an error that nobody handles does not end the program"; exit 1
fi
[[ $said == *"attention: queries have head_dim 4, keys 3"* ]] || { echo "it says: $said"; exit 1; }
