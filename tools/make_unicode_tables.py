#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes include/heed/text/detail/unicode_tables.hpp: what the original tokenizers make of each character.

The originals (the package tokenizers, through its Python door) mix several versions of Unicode, so
every character is put to them rather than looked up in one version's tables.

  pip install tokenizers
  tools/make_unicode_tables.py
"""
import pathlib

import tokenizers
from tokenizers import Regex, normalizers, pre_tokenizers

# The flags of Classes in include/heed/text/unicode.hpp.
LETTER, NUMBER, DIGIT, SPACE, DROPPED, PUNCTUATION, MARK = (1 << i for i in range(7))
DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz+-"
CODES = [code for code in range(0x110000) if not 0xD800 <= code < 0xE000]


def bert(**steps):
    off = dict(clean_text=False, handle_chinese_chars=False, strip_accents=False, lowercase=False)
    return normalizers.BertNormalizer(**(off | steps)).normalize_str


def splits(pre_tokenizer, base):
    """The characters that do not stay with `base` in front of them."""
    return {code for code in CODES if len(pre_tokenizer.pre_tokenize_str(base + chr(code))) == 2}


def pattern(text, base="-"):
    return splits(pre_tokenizers.Split(Regex(text), "isolated"), base)


def classes():
    clean, strip = bert(clean_text=True), bert(strip_accents=True)
    sets = {LETTER: pattern(r"\p{L}"), NUMBER: pattern(r"\p{N}"), SPACE: pattern(r"\s"),
            DIGIT: splits(pre_tokenizers.Digits(individual_digits=True), "a"),
            DROPPED: {code for code in CODES if clean("a" + chr(code) + "b") == "ab"},
            PUNCTUATION: splits(pre_tokenizers.BertPreTokenizer(), "a"),
            MARK: {code for code in CODES if strip("a" + chr(code)) == "a"}}
    spaces = {code for code in CODES if clean("a" + chr(code) + "b") == "a b"}
    assert spaces == sets[SPACE] - sets[DROPPED]
    assert not sets[SPACE] & sets[PUNCTUATION]
    runs, before = [], None
    for code in range(0x110000):
        flags = sum(flag for flag, members in sets.items() if code in members)
        if flags != before:
            runs.append((code, flags))
            before = flags
    return runs


def varint(value):
    text = ""
    while value >= 32:
        text += DIGITS[32 + value % 32]
        value //= 32
    return text + DIGITS[value]


def zigzag(value):
    return varint(2 * value if value >= 0 else -2 * value - 1)


def packed_classes():
    text, at = "", 0
    for code, flags in classes():
        text += varint(code - at) + varint(flags)
        at = code
    return text


def stripped():
    """(code, what is left of its decomposition); Hangul, which is a formula, left out."""
    strip = bert(strip_accents=True)
    for code in CODES:
        if 0xAC00 <= code < 0xD7A4:
            continue
        left = strip("a" + chr(code))[1:]
        if left and left != chr(code):
            yield code, [ord(letter) for letter in left]


def lowered():
    lower = bert(lowercase=True)
    for code in CODES:
        small = lower(chr(code))
        if small != chr(code):
            yield code, [ord(letter) for letter in small]


def packed_mapping(pairs):
    """Runs of (first code - end of the run before, codes, step, letters each, letters - code)."""
    runs = []
    for code, letters in pairs:
        difference = [letter - code for letter in letters]
        if runs:
            first, count, step, same = runs[-1]
            gap = code - (first + (count - 1) * step)
            if same == difference and (gap == step or (count == 1 and gap <= 2)):
                runs[-1] = (first, count + 1, gap, same)
                continue
        runs.append((code, 1, 1, difference))
    text, at = "", 0
    for first, count, step, difference in runs:
        text += varint(first - at) + varint(count) + varint(step) + varint(len(difference))
        text += "".join(map(zigzag, difference))
        at = first
    return text


def literal(text):
    return "\n".join(f'    "{text[i:i + 94]}"' for i in range(0, len(text), 94))


out = pathlib.Path(__file__).resolve().parent.parent / "include/heed/text/detail/unicode_tables.hpp"
out.write_text(f"""// SPDX-License-Identifier: MIT
#pragma once

#include <string_view>

/// What the original tokenizers make of each character, by tools/make_unicode_tables.py with
/// tokenizers {tokenizers.__version__}. Numbers in base 32, low digits first; a digit from W on says that another
/// follows. <heed/text/unicode.hpp> unpacks them.
namespace heed::detail {{

// clang-format off
/// Runs of one class: first character, counted from the run before, and flags.
inline constexpr std::string_view packed_character_classes =
{literal(packed_classes())};

/// What is left of a character without its accents: runs of first character, counted from the run
/// before, characters, step, letters of each, and those letters less the character, as zigzag.
inline constexpr std::string_view packed_without_accents =
{literal(packed_mapping(stripped()))};

/// Lower case, in the same form.
inline constexpr std::string_view packed_lower_case =
{literal(packed_mapping(lowered()))};
// clang-format on

}}  // namespace heed::detail
""")
