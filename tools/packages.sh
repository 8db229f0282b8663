#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Installs missing packages; sourced by the run scripts. Quiet when nothing is missing.

# need_packages PACKAGE...  installs by apt what dpkg does not have, saying so first.
need_packages() {
  if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
    local tool
    for tool in g++ cmake ninja; do
      command -v "$tool" >/dev/null && continue
      echo "$tool is missing, and there is no apt to install it with. Needed: $*" >&2
      exit 1
    done
    without_apt="$*"
    return
  fi
  local package missing=()
  for package in "$@"; do
    dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$package")
  done
  [ ${#missing[@]} -eq 0 ] && return
  local as_root=()
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || { echo "Please install as root: apt-get install ${missing[*]}" >&2; exit 1; }
    as_root=(sudo)
  fi
  echo "Installing: ${missing[*]}"
  export DEBIAN_FRONTEND=noninteractive
  local log; log=$(mktemp)
  if ! { "${as_root[@]}" apt-get update -qq && "${as_root[@]}" apt-get install -y -qq --no-install-recommends "${missing[@]}"; } >"$log" 2>&1; then
    tail -5 "$log" >&2; echo "apt-get could not install: ${missing[*]}" >&2; exit 1
  fi
  rm -f "$log"
}

# quietly COMMAND...  shows the command's output only when it fails, with the packages it may have
# missed where there was no apt to ask.
quietly() {
  local log; log=$(mktemp)
  if ! "$@" >"$log" 2>&1; then
    grep -E "error|FAILED" "$log" | head -20 >&2 || true
    tail -20 "$log" >&2
    echo "failed: $*" >&2
    [ -z "${without_apt:-}" ] || echo "Needed, by their names in Debian: $without_apt" >&2
    exit 1
  fi
  rm -f "$log"
}
