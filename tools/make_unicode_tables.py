#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes include/heed/text/detail/unicode_tables.hpp: what the original tokenizers make of each character.

The originals (the package tokenizers, through its Python door) mix several versions of Unicode, so
every character is put to them rather than looked up in one version's tables.

  pip install tokenizers
  tools/make_unicode_tables.py
"""
import pathlib
import unicodedata

import tokenizers
from tokenizers import Regex, normalizers, pre_tokenizers

# The flags of Classes in include/heed/text/unicode.hpp.
LETTER, NUMBER, DIGIT, SPACE, DROPPED, PUNCTUATION, MARK = (1 << i for i in range(7))
DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz+-"
CODES = [code for code in range(0x110000) if not 0xD800 <= code < 0xE000]
HANGUL = range(0xAC00, 0xD7A4)  # syllables, whose decompositions are a formula
nfd, nfc = normalizers.NFD().normalize_str, normalizers.NFC().normalize_str


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
    return {code: sum(flag for flag, members in sets.items() if code in members) for code in range(0x110000)}


def varint(value):
    text = ""
    while value >= 32:
        text += DIGITS[32 + value % 32]
        value //= 32
    return text + DIGITS[value]


def zigzag(value):
    return varint(2 * value if value >= 0 else -2 * value - 1)


def packed_runs(numbers):
    """Runs of (first code - that of the run before, number), of {code: number}."""
    text, at, before = "", 0, None
    for code in range(0x110000):
        number = numbers.get(code, 0)
        if number != before:
            text += varint(code - at) + varint(number)
            at, before = code, number
    return text


def decompositions():
    """(code, letters, whether they compose to it again): then two, of which the first may decompose further."""
    for code in CODES:
        letters = nfd(chr(code))
        if code in HANGUL or letters == chr(code):
            continue
        if nfc(letters) == chr(code):
            first, second = nfc(letters[:-1]), letters[-1]
            assert len(first) == 1 and nfc(first + second) == chr(code)
            yield code, [ord(first), ord(second)], True
        else:
            yield code, [ord(letter) for letter in letters], False


def combining_classes():
    """{mark: class}, found by which of two marks behind a letter comes first."""
    def goes_before(a, b):
        return a != b and nfd("a" + b + a) == "a" + a + b

    low, high = "\u0334", "\u0345"  # of the lowest class, 1, and of the highest, 240
    marks = [chr(code) for code in CODES if nfd(chr(code)) == chr(code)
             and (goes_before(low, chr(code)) or goes_before(chr(code), high))]
    known, classes = {}, {}
    for mark in marks:
        known.setdefault(unicodedata.combining(mark), mark)
    for mark in marks:
        equal = [number for number, other in known.items()
                 if not goes_before(mark, other) and not goes_before(other, mark)]
        assert len(equal) == 1, (hex(ord(mark)), equal)
        classes[ord(mark)] = equal[0]
    return classes


def check_decompositions(mapping, marks):
    """What unicode.inl counts on: BERT's letters without accents are the decomposition without marks, and what
    composes again begins with nothing that composes with a letter in front of it."""
    steps = {code: letters for code, letters, _ in mapping}
    composing = {code for code, _, composes in mapping if composes}
    seconds = {steps[code][1] for code in composing}
    strip = bert(strip_accents=True)
    for code in set(CODES) - set(HANGUL):
        whole = [code]
        while whole[0] in steps:
            whole[:1] = steps[whole[0]]
        assert "".join(map(chr, whole)) == nfd(chr(code)), hex(code)
        assert strip("a" + chr(code)) == "a" + "".join(chr(letter) for letter in whole if letter not in marks)
        assert code not in composing or whole[0] not in seconds, hex(code)


def lowered():
    lower = bert(lowercase=True)
    for code in CODES:
        small = lower(chr(code))
        if small != chr(code):
            yield code, [ord(letter) for letter in small], False


def packed_mapping(mapping):
    """Runs of (first code - that of the run before, codes, step, letters each or 0: two that compose again,
    letters - code)."""
    runs = []
    for code, letters, composes in mapping:
        difference = [letter - code for letter in letters]
        if runs:
            first, count, step, *same = runs[-1]
            gap = code - (first + (count - 1) * step)
            if same == [difference, composes] and (gap == step or (count == 1 and gap <= 2)):
                runs[-1] = (first, count + 1, gap, *same)
                continue
        runs.append((code, 1, 1, difference, composes))
    text, at = "", 0
    for first, count, step, difference, composes in runs:
        text += varint(first - at) + varint(count) + varint(step) + varint(0 if composes else len(difference))
        text += "".join(map(zigzag, difference))
        at = first
    return text


def literal(text):
    return "\n".join(f'    "{text[i:i + 94]}"' for i in range(0, len(text), 94))


flags, mapping = classes(), list(decompositions())
check_decompositions(mapping, {code for code, members in flags.items() if members & MARK})
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
{literal(packed_runs(flags))};

/// The combining classes of marks, in the same form.
inline constexpr std::string_view packed_combining_classes =
{literal(packed_runs(combining_classes()))};

/// Canonical decompositions: runs of first character, counted from the run before, characters,
/// step, letters of each (0: two, which compose to the character again), and those letters less the
/// character, as zigzag.
inline constexpr std::string_view packed_decompositions =
{literal(packed_mapping(mapping))};

/// Lower case, in the same form.
inline constexpr std::string_view packed_lower_case =
{literal(packed_mapping(lowered()))};
// clang-format on

}}  // namespace heed::detail
""")
