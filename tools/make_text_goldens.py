#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes texts and what the original tokenizers make of them to tests/golden/text.

lines.txt: a text a line, with \\\\ \\n \\r for backslash and line ends. small_vocab.txt, small_bpe.gguf: small
vocabularies, trained on the lines. The two texts are written only where there are none: some lines are heed's own code,
which changes, and two trainings of word pieces differ.
NAME.ids: for each line a count and the token numbers, 16 bits each:
  small_vocab, small_gpt2, small_smollm   by the small vocabularies
  small_llama3, small_qwen2               by the small one of byte pairs without every tenth merge
  minilm, smollm2                         by the real ones (tools/models.sh), special tokens recognized

  pip install tokenizers transformers gguf
  tools/make_text_goldens.py FOLDER
"""
import os
import pathlib
import random
import re
import sys
import tempfile
import unicodedata

os.environ["HF_HUB_OFFLINE"] = "1"

import gguf
import numpy as np
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
from transformers import BertTokenizerFast

root = pathlib.Path(__file__).resolve().parent.parent
golden = root / "tests/golden/text"
golden.mkdir(parents=True, exist_ok=True)
rng = random.Random(20261121)

SENTENCES = """The cat that chased the mouse was tired, so it slept.
She didn't say "no"; they'd've gone, I'm sure — we'll see it's OK.
Attention is all you need: softmax(QK^T / √d_k) V.
E-mail me at jane.doe+test@example.co.uk or call +1 (555) 010-9999!
On 2024-02-29 at 23:59:60 the price was $1,234.56 (≈ €1.100,00).
Ünïcödé ñandú façade naïve coöperate Ångström Þórr straße ŒUVRE ﬁne
Ça va ? « Oui », répondit-elle… l'été où j'étais à Besançon.
El pingüino Wenceslao hizo kilómetros bajo exhaustiva lluvia.
Zażółć gęślą jaźń; příliš žluťoučký kůň úpěl ďábelské ódy.
İstanbul'da IĞDIR ve ığdır; ŞİŞLİ'de çay içtik.
Съешь ещё этих мягких французских булок, да выпей чаю. Їжак й Ґанок.
Ξεσκεπάζω τὴν ψυχοφθόρα βδελυγμία. ΟΔΥΣΣΕΎΣ ς σ; τί;
דג סקרן שט בים מאוכזב ולפתע מצא חברה. שָׁלוֹם עֲלֵיכֶם
نص حكيم له سر قاطع وذو شأن عظيم. ١٢٣٤٥ اَلسَّلَامُ
یہ اردو ہے۔ این فارسی است، می‌خواهم.
नमस्ते दुनिया! यह एक परीक्षण है। १२३ क्षत्रिय ज्ञान क़लम
বাংলা ভাষা; தமிழ் மொழி; తెలుగు; ಕನ್ನಡ; മലയാളം; ગુજરાતી; ਪੰਜਾਬੀ; සිංහල
ภาษาไทยไม่มีช่องว่างระหว่างคำ ๑๒๓ ລາວ ខ្មែរ မြန်မာ
我能吞下玻璃而不伤身体。2024年，北京大學；臺灣。「引用」
吾輩は猫である。名前はまだ無い。カタカナ ﾊﾝｶｸ がぎぐげご パピプペポ
키스의 고유조건은 입술끼리 만나야 하고 특별한 기술은 필요치 않다. ᄒᆞᆫ글
Tiếng Việt: Trăm năm trong cõi người ta, chữ tài chữ mệnh khéo là ghét nhau.
👋🏽 Hello 👩‍👩‍👧‍👦 family 🏳️‍🌈 flags 🇩🇪🇯🇵 1️⃣ 2️⃣ ❤️ ☺️ 🤷🏿‍♀️ 🫠🪿🧑‍🚀
∀x∈ℝ: ⌈x⌉ = −⌊−x⌋, α ∧ ¬β → γ, 2⁸ ≠ H₂O, ½ + ⅓ = Ⅷ ①②③ ㊗ ㎏
def f(x: int) -> str: return f"{x!r:>10}"  # TODO: naïve\tcase
for (size_t i = 0; i < n; ++i) { a[i] += b[i] * c[i]; } // 0x1F, 1e-9f
<div class="a-b" data-x='1'>&nbsp;&lt;p&gt; https://example.org/?q=a%20b&c=d#e</div>
SELECT * FROM `t` WHERE a >= 10 AND b != 'it''s' LIMIT 5;
git commit -m "fix: don't" && echo $HOME | sed 's/\\//\\\\/g' > /dev/null 2>&1
{"key": [1, 2.5e10, true, null, "\\u00e9"], "nested": {"a": {}}}
supercalifragilisticexpialidocious pneumonoultramicroscopicsilicovolcanoconiosis
AAAAAAAA aaaaaaaaaaaaaaaaaaaa !!!!!!!!!! ......... ____ ---- ===== ~~~~
[CLS] The [MASK] is here. [SEP] [PAD] [UNK] [unused1] [mask] [CLS
<|im_start|>user
Hi<|im_end|> <|endoftext|><|im_start <|im_end|>><repo_name><file_sep><jupyter_code>x
x̂ ȳ Z͑ͫ̓ͪ̂ͫ̽͏̴̙̤̞͉͚̯̞̠͍A̴̵̜̰͔ͫ͗͢L̠ͨͧͩ͘G̴̻͈͍͔̹̑͗̎̅͛́O̵̹͎͍͐
café café Å Å Å ﷺ ﬀ Ǆ ǆ ſ ẞ ŉ İ i̇ ͅ ᾳ ᾼ Ω Ω K K
zero​width‌non‍joiner﻿bom­soft⁠word‮rtl‬ lsep para nel nbsp nnbsp　ideo
""".splitlines()

BLOCKS = [(0x20, 0x7E), (0x20, 0x7E), (0x00, 0x1F), (0x7F, 0xFF), (0x100, 0x24F), (0x250, 0x36F), (0x370, 0x52F),
          (0x531, 0x6FF), (0x700, 0x8FF), (0x900, 0xDFF), (0xE00, 0x10FF), (0x1100, 0x139F), (0x13A0, 0x1FFF),
          (0x2000, 0x206F), (0x2070, 0x23FF), (0x2460, 0x27BF), (0x2E80, 0x30FF), (0x3400, 0x4DBF),
          (0x4E00, 0x9FFF), (0xA000, 0xABFF), (0xAC00, 0xD7FF), (0xE000, 0xE010), (0xF900, 0xFAFF), (0xFB00, 0xFFFF),
          (0x10000, 0x10FFF), (0x11000, 0x11FFF), (0x1D100, 0x1D7FF), (0x1F000, 0x1FAFF), (0x20000, 0x2FA1F),
          (0xE0000, 0xE01EF), (0x10FFF0, 0x10FFFF)]
WORDS = ("the of and to in is you that it he was for on are as with his they at be this have from or one had by word "
         "but not what all were we when your can said there use an each which she do how their if will up other about "
         "tokenization unhappiness internationalisation running quickly neural attention transformer gradient").split()
ENDINGS = ["'s", "'t", "'re", "'ve", "'m", "'ll", "'d", "'S", "'LL", "’s", "'", "''", "'x", "'r", "'l"]
SPACES = [" ", "  ", "   ", "\t", "\n", "\r\n", "\n\n", " \n", "\n ", "\u00a0", "\u2003", "\u3000", "\x0b", "\x0c", "\x85",
          "\u2028", "      "]


def character():
    low, high = rng.choice(BLOCKS)
    while True:
        code = rng.randint(low, high)
        if not 0xD800 <= code < 0xE000:
            return chr(code)


def random_line():
    kind = rng.randrange(8)
    if kind == 0:  # any characters
        return "".join(character() for _ in range(rng.randint(1, 30)))
    if kind == 1:  # words and what hangs on them
        parts = []
        for _ in range(rng.randint(1, 10)):
            word = rng.choice(WORDS)
            word = rng.choice([word, word, word.capitalize(), word.upper()])
            parts.append(word + rng.choice(["", "", "", ",", ".", "!?", rng.choice(ENDINGS)]) + rng.choice([" ", " ", rng.choice(SPACES)]))
        return "".join(parts)
    if kind == 2:  # the pre-tokenizer's own corners
        alphabet = ["a", "B", "1", "٣", "½", ".", "'", "s", "t", "é", "中", "😀", "_", *SPACES]
        return "".join(rng.choice(alphabet) for _ in range(rng.randint(1, 24)))
    if kind == 3:  # numbers
        return " ".join(str(rng.randrange(10 ** rng.randint(1, 12))) + rng.choice(["", ".5", ",000", "e-3", "%", "th"])
                        for _ in range(rng.randint(1, 5)))
    if kind == 4:  # a slice of a sentence, cut anywhere
        line = rng.choice(SENTENCES)
        begin = rng.randrange(len(line))
        return line[begin:begin + rng.randint(1, 40)]
    if kind == 5:  # slices of two languages against one another
        return "".join(line[(at := rng.randrange(len(line))):at + rng.randint(1, 12)]
                       for line in rng.sample(SENTENCES, 2))
    if kind == 6:  # accents on letters, composed and not
        letters = [rng.choice("aeiouncszAEIOUNC가क") + "".join(chr(rng.randint(0x300, 0x36F)) for _ in range(rng.randint(0, 2)))
                   for _ in range(rng.randint(1, 12))]
        return unicodedata.normalize(rng.choice(["NFC", "NFD"]), "".join(letters))
    return "".join(rng.choice(["    ", "\t", ""]) + rng.choice(["if", "return", "x", "->", "::", "(", ")", "{", "}", ";", "==", "0x", "_id", "//"])
                   for _ in range(rng.randint(2, 14)))  # something like code


def texts():
    source = sorted((root / "include/heed/masks").glob("*.hpp"))[:6]
    code = [line for path in source for line in path.read_text().splitlines() if line][:200]
    lines = SENTENCES + ["", " ", "\n", "a" * 101, "é" * 100, "é" * 101, "word" * 60, "'" * 9, " " * 40] + code
    while len(lines) < 3000:
        lines.append(random_line())
    # Two accents that only newer versions of Unicode know, side by side, are put in order by nobody.
    return lines


def write_ids(name, encodings):
    flat = [value for ids in encodings for value in (len(ids), *ids)]
    (golden / f"{name}.ids").write_bytes(np.array(flat, dtype="<u2").tobytes())


# As in the tokenizer.json of Llama 3; that of Qwen2 has one number in place of three.
LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
          r"|\s*[\r\n]+|\s+(?!\S)|\s+")


def bpe(vocabulary, merges, pre, special):
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=merges, ignore_merges=pre == "llama3"))
    split = pre in ("llama3", "qwen2")
    steps = [pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=not split)]
    if pre == "smollm":
        steps.insert(0, pre_tokenizers.Digits(individual_digits=True))
    if split:
        pattern = LLAMA3 if pre == "llama3" else LLAMA3.replace("{1,3}", "")
        steps.insert(0, pre_tokenizers.Split(Regex(pattern), "isolated"))
    if pre == "qwen2":
        tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(steps)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(special)
    return tokenizer


def encode_all(tokenizer, lines):
    return [tokenizer.encode(line, add_special_tokens=False).ids for line in lines]


def small_bpe(lines):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    special = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    trainer = trainers.BpeTrainer(vocab_size=1000, special_tokens=special, show_progress=False,
                                  initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    tokenizer.train_from_iterator(lines, trainer)
    vocabulary = tokenizer.get_vocab()
    tokens = sorted(vocabulary, key=vocabulary.get)
    import json
    merges = [tuple(merge) for merge in json.loads(tokenizer.to_str())["model"]["merges"]]
    writer = gguf.GGUFWriter(golden / "small_bpe.gguf", "none")
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(tokens)
    writer.add_token_types([3 if token in special else 1 for token in tokens])
    writer.add_token_merges([" ".join(merge) for merge in merges])
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()
    for pre in ("gpt2", "smollm"):
        write_ids(f"small_{pre}", encode_all(bpe(vocabulary, merges, pre, special), lines))
    kept = [merge for i, merge in enumerate(merges) if i % 10 != 9]
    for pre in ("llama3", "qwen2"):
        write_ids(f"small_{pre}", encode_all(bpe(vocabulary, kept, pre, special), lines))


def small_vocabulary(lines):
    path = golden / "small_vocab.txt"
    if not path.exists():
        tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
        tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
        tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
        tokenizer.train_from_iterator(lines, trainers.WordPieceTrainer(
            vocab_size=1500, limit_alphabet=400, special_tokens=special, show_progress=False))
        vocabulary = tokenizer.get_vocab()
        path.write_text("".join(token + "\n" for token in sorted(vocabulary, key=vocabulary.get)))
    write_ids("small_vocab", bert(path, lines))


def bert(vocabulary, lines):
    """By transformers, from vocab.txt alone."""
    with tempfile.TemporaryDirectory() as folder:
        (pathlib.Path(folder) / "vocab.txt").write_bytes(pathlib.Path(vocabulary).read_bytes())
        tokenizer = BertTokenizerFast.from_pretrained(folder, do_lower_case=True)
    return [tokenizer(line, add_special_tokens=False)["input_ids"] for line in lines]


def smollm2(path, lines):
    reader = gguf.GGUFReader(path)
    field = lambda name: reader.fields[f"tokenizer.ggml.{name}"].contents()
    tokens = field("tokens")
    special = [token for token, type in zip(tokens, field("token_type")) if type == 3]
    merges = [tuple(merge.split(" ")) for merge in field("merges")]
    vocabulary = {token: i for i, token in enumerate(tokens)}
    return encode_all(bpe(vocabulary, merges, "smollm", special), lines)


path = golden / "lines.txt"
if not path.exists():
    escaped = [line.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r") for line in texts()]
    path.write_bytes("".join(line + "\n" for line in escaped).encode())
plain = {"\\\\": "\\", "\\n": "\n", "\\r": "\r"}
lines = [re.sub(r"\\.", lambda escape: plain[escape[0]], line) for line in path.read_bytes().decode().split("\n")[:-1]]
small_bpe(lines)
small_vocabulary(lines)
folder = pathlib.Path(sys.argv[1])
write_ids("minilm", bert(folder / "minilm/vocab.txt", lines))
write_ids("smollm2", smollm2(folder / "smollm2.gguf", lines))
