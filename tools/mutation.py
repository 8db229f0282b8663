# SPDX-License-Identifier: MIT
"""Where one-line faults can stand in heed's C++, and the text that plants them.

A reader of clang-formatted C++, enough of one to find statements inside function bodies: binary operators
have a space on both sides there, template brackets and references have none. A fault is chosen at run time:
`E` becomes `HEED_MUTANT(17) ? (E') : (E)`, a statement `if (HEED_MUTANT(17)) { S' } else { S }`.
"""
import dataclasses
import re

TOKEN = re.compile(
    r"(?P<skip>\s+|//[^\n]*|/\*.*?\*/)|(?P<directive>^[ \t]*#(?:[^\n\\]|\\.|\\\n)*)"
    r'|(?P<string>(?:u8|u|U|L)?R"(?P<raw>[^(]*)\(.*?\)(?P=raw)"|(?:u8|u|U|L)?"(?:[^"\\\n]|\\.)*")'
    r"|(?P<char>(?:u8|u|U|L)?'(?:[^'\\\n]|\\.)+')|(?P<number>\.?\d(?:[eEpP][+-]|['\w.])*)|(?P<name>[A-Za-z_]\w*)"
    r"|(?P<sign>->\*|<<=|>>=|<=>|\.\.\.|::|->|\+\+|--|<<|<=|>=|==|!=|&&|\|\||[-+*/%&|^]=|.)", re.S | re.M)
SPACED = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "==", "&&": "||", "||": "&&", "+": "-",
          "-": "+", "*": "/", "/": "*", "%": "/", "<<": ">>", ">>": "<<", "&": "|", "|": "&", "^": "|",
          "+=": "-=", "-=": "+=", "*=": "/=", "/=": "*=", "|=": "&=", "&=": "|="}
NAMES = {"true": "false", "false": "true", "smaller": "larger", "larger": "smaller", "min": "max", "max": "min",
         "floor": "ceil", "ceil": "floor", "lower_bound": "upper_bound", "upper_bound": "lower_bound"}
NOT_MUTATED = {"throw", "using", "static_assert", "constexpr", "static", "enum", "typedef", "template", "goto",
               "break", "continue", "friend", "extern", "thread_local", "asm", "alignas"}
OTHER_BUILD = re.compile(r"__aarch64__|__clang__|has_feature|_WIN32|SANITI|__AVX|^#if !HEED_SIMD_ALL|HEED_CHECKED")


@dataclasses.dataclass(frozen=True)
class Token:
    kind: str
    text: str
    at: int
    end: int
    line: int


@dataclasses.dataclass(frozen=True)
class Site:
    """One fault: text[at:end] becomes `form` with `changed` beside it."""
    form: str  # expression, statement, return or drop
    at: int
    end: int
    first_line: int
    last_line: int
    kind: str
    changed: str
    line: int


class Reader:
    """The sites of one file."""

    def __init__(self, text):
        self.text, self.tokens, self.sites = text, [], []
        self.read_tokens()
        self.match = self.matches()
        self.declarations(0, len(self.tokens))

    def read_tokens(self):
        line, branches = 1, []
        for found in TOKEN.finditer(self.text):
            kind, text = found.lastgroup, found.group()
            kind = "string" if kind == "raw" else kind
            if kind == "directive":
                self.branch(text.strip(), branches)
            elif kind != "skip" and not any(branches):
                self.tokens.append(Token(kind, text, found.start(), found.end(), line))
            line += text.count("\n")

    @staticmethod
    def branch(directive, branches):
        """Keeps in `branches` whether text is left out: another compiler's, another processor's."""
        if directive.startswith("#if"):
            branches.append(bool(OTHER_BUILD.search(directive)))
        elif directive.startswith("#el"):
            branches[-1] = not branches[-1] and bool(OTHER_BUILD.search(directive))
        elif directive.startswith("#endif"):
            branches.pop()

    def matches(self):
        opened, match = [], {}
        for i, token in enumerate(self.tokens):
            if token.text in ("(", "[", "{"):
                opened.append(i)
            elif token.text in (")", "]", "}") and opened:
                match[opened.pop()] = i
        match.update({end: start for start, end in list(match.items())})
        return match

    def word(self, i):
        return self.tokens[i].text if 0 <= i < len(self.tokens) else ""

    def declarations(self, i, end):
        """Namespaces and classes: bodies of functions and initial values of members."""
        start = i
        while i < end:
            word = self.word(i)
            if word in ("(", "["):
                i = self.match[i]
            elif word == "{":
                what = self.brace(start, i)
                if what == "scope":
                    self.declarations(i + 1, self.match[i])
                elif what == "body":
                    self.statements(i + 1, self.match[i])
                i = self.match[i]
                start = start if what == "value" else i + 1
            elif word == ";":
                self.declaration(start, i)
                start = i + 1
            elif word == ":" and self.word(i - 1) in ("public", "private", "protected"):
                start = i + 1
            i += 1

    def brace(self, start, i):
        """What opens here: a scope, the body of a function, or a value."""
        if self.word(start) == "template":
            depth, start = 0, start + 1
            while start < i:
                depth += {"<": 1, ">": -1, ">>": -2}.get(self.word(start), 0)
                start += 1
                if depth <= 0:
                    break
        depth, head = 0, []
        for k in range(start, i):
            if not depth or self.word(k) == ")":
                head.append(self.word(k))
            depth += {"(": 1, ")": -1}.get(self.word(k), 0)
        if "namespace" in head or "extern" in head:
            return "scope"
        if "enum" in head or "consteval" in head or "concept" in head:
            return "value"
        if {"class", "struct", "union"} & set(head):
            return "scope"
        if "operator" in head:
            return "body"
        if "=" in head:
            return "value"
        ends = self.word(i - 1) in (")", "const", "noexcept", "override", "final", "}")
        return "body" if ends or "->" in head else "value"

    def statements(self, i, end):
        while i < end:
            i = self.statement(i, end)

    def statement(self, i, end):
        """Reads one statement and returns where the next begins."""
        word = self.word(i)
        if word == "{":
            self.statements(i + 1, self.match[i])
            return self.match[i] + 1
        if word in ("if", "while", "for", "switch", "catch"):
            return self.control(i, end)
        if word in ("do", "try", "else") or word == "HEED_UNROLL":
            return i + 1
        if word in ("case", "default"):
            while self.word(i) != ":":
                i += 1
            return i + 1
        if word in ("struct", "class", "union"):
            stop = i
            while self.word(stop) not in ("{", ";"):
                stop += 1
            if self.word(stop) == "{":
                self.declarations(stop + 1, self.match[stop])
                stop = self.match[stop]
            return stop + 1
        stop, lambdas = self.to_semicolon(i, end)
        self.leaf(i, stop, lambdas)
        return stop + 1

    def control(self, i, end):
        """if, while, for, switch, catch: the condition here, the body as the next statement."""
        word = self.word(i)
        fixed = self.word(i + 1) == "constexpr"
        opened = i + 1 + fixed
        if self.word(opened) != "(":
            return opened + 1
        closed = self.match[opened]
        parts, at, start = [], opened + 1, opened + 1
        while at < closed:
            if self.word(at) in ("(", "[", "{"):
                at = self.match[at]
            elif self.word(at) == ";":
                parts.append((start, at))
                start = at + 1
            at += 1
        parts.append((start, closed))
        if word == "for" and len(parts) == 3:
            self.declaration(*parts[0])
            self.expression(*parts[1], "expression")
        elif word in ("if", "while") and not fixed and not self.declares(*parts[-1]):
            self.expression(*parts[-1], "expression")
            self.add("negated", "expression", *parts[-1], f"!({self.plain(*parts[-1])})", parts[-1][0])
        return closed + 1

    def to_semicolon(self, i, end):
        """The end of a plain statement; bodies of lambdas on the way are read."""
        lambdas = False
        while i < end and self.word(i) != ";":
            if self.word(i) == "{":
                back = i - 1
                while self.word(back) not in ("]", ")", ";", "{", "}", "(", ","):
                    back -= 1
                after = self.word(back) == "]" or (
                    self.word(back) == ")" and self.word(self.match[back] - 1) == "]")
                plain = back == i - 1 or self.word(back + 1) in ("->", "mutable", "noexcept")
                if after and plain:
                    self.statements(i + 1, self.match[i])
                    lambdas = True
                    i = self.match[i]
                else:
                    i += 1
            else:
                i += 1
        return min(i, end), lambdas

    def declares(self, i, end):
        """Whether tokens declare a name: two names, or a type's end and a name, side by side."""
        for k in range(i, end - 1):
            if self.word(k) in ("=", "(", "{", "?"):
                return False
            one, two = self.tokens[k], self.tokens[k + 1]
            type_end = one.kind == "name" or (one.text in ("*", "&", "&&", ">") and one.end < two.at
                                              and self.tokens[k - 1].end == one.at)
            if type_end and k >= i and two.kind == "name" or one.text == "auto":
                return True
        return False

    def leaf(self, i, end, lambdas):
        """A statement up to its semicolon."""
        word = self.word(i)
        if i >= end or word in NOT_MUTATED or word.startswith(("HEED_", "_", "throw_", "fail")):
            return
        if word == "return":
            if not lambdas:
                self.expression(i + 1, end, "return", i)
        elif self.declares(i, end):
            if not lambdas:
                self.declaration(i, end)
        else:
            if not lambdas:
                self.expression(i, end, "statement")
            self.add("dropped", "drop", i, end, "", i)

    def declaration(self, i, end):
        """`T x = E`: E, where it can change at run time."""
        if {"constexpr", "static", "using", "operator", "concept", "constinit"} & {self.word(k) for k in range(i, end)}:
            return
        at = i
        while at < end and self.word(at) != "=":
            at = self.match[at] + 1 if self.word(at) in ("(", "[", "{") else at + 1
        stop = at
        while stop < end and not (self.word(stop) == "," and self.word(stop + 2) == "="):
            stop = self.match[stop] + 1 if self.word(stop) in ("(", "[", "{") else stop + 1
        if at < end and self.word(at + 1) not in ("{", "default", "delete", "0"):
            if not any(self.word(k) == "[" and self.word(k - 1) in ("=", "(", ",") for k in range(at, stop)):
                self.expression(at + 1, stop, "expression")
        if stop < end:
            self.declaration(stop + 1, end)

    def expression(self, i, end, form, start=None):
        """Every change of one token, and swapped neighbors, in tokens i … end."""
        start = i if start is None else start
        of_text = any(self.tokens[k].kind == "string" for k in range(i, end))
        for k in range(i, end):
            token, before = self.tokens[k], self.word(k - 1)
            spaced = self.text[token.at - 1] == " " and self.text[token.end:token.end + 1] in (" ", "\n")
            change = None
            if token.kind == "sign" and spaced and token.text in SPACED and k > i and not (of_text and "+" in token.text):
                change = "operator", SPACED[token.text]
            elif token.kind == "sign" and token.text == "!":
                change = "operator", ""
            elif token.kind == "name" and token.text in NAMES and before != ".":
                change = "name", NAMES[token.text]
            elif token.kind in ("number", "char") and not (self.word(k + 1) == ">" and self.text[token.end] == ">"):
                change = "constant", other_constant(token.text)
            elif before in ("(", ",") and token.kind == "name" and self.word(k + 1) == "," and k + 3 < end:
                pointless = self.word(k + 2) == token.text or (before == "(" and self.word(k - 2) == "fma")
                if self.tokens[k + 2].kind == "name" and self.word(k + 3) in (",", ")") and not pointless:
                    swapped = f"{self.word(k + 2)}, {token.text}"
                    self.add("swapped", form, start, end, self.plain(start, end, k, swapped, k + 3), k)
            if change and change[1] is not None:
                self.add(change[0], form, start, end, self.plain(start, end, k, change[1]), k)

    def plain(self, i, end, edited=None, new="", after=None):
        """Tokens i … end on one line, with tokens edited … after replaced by `new`."""
        after = None if edited is None else (edited + 1 if after is None else after)
        parts, k = [], i
        while k < end:
            if k > i and self.tokens[k - 1].end < self.tokens[k].at:
                parts.append(" ")
            if k == edited:
                parts.append(new)
                k = after
            else:
                parts.append(self.word(k))
                k += 1
        return "".join(parts)

    def add(self, kind, form, i, end, changed, at):
        one, last = self.tokens[i], self.tokens[end - 1]
        if "\n#" not in self.text[one.at:last.end] and "HEED_MUTANT" not in changed:
            self.sites.append(Site(form, one.at, last.end, one.line, last.line, kind, changed,
                                   self.tokens[at].line))


def other_constant(text):
    """A neighbor of a literal, or None."""
    if text.startswith("'"):
        return f"'{chr(ord(text[1]) + 1)}'" if len(text) == 3 and text[1].isalnum() and text[1] not in "zZ9" else None
    if re.fullmatch(r"(0x[\da-fA-F']+|0|[1-9][\d']*)[uUlLzZ]*", text):
        digits = text.rstrip("uUlLzZ")
        return str(int(digits.replace("'", ""), 0) + 1) + text[len(digits):]
    if re.fullmatch(r"\d*\.\d*(e[-+]?\d+)?[fFlL]?", text):
        return f"({text} + 1)" if not float(text.rstrip("fFlL")) else f"({text} * 2)"
    return None


def planted(text, chosen):
    """`text` with every (number, Site) of `chosen` in it; lines keep their numbers."""
    for number, site in sorted(chosen, key=lambda pair: -pair[1].at):
        old, test = text[site.at:site.end], f"HEED_MUTANT({number})"
        new = {"expression": f"({test} ? ({site.changed}) : ({old}))",
               "statement": f"{{ if ({test}) {{ {site.changed}; }} else {{ {old}; }} }}",
               "return": f"{{ if ({test}) {{ {site.changed}; }} {old}; }}",
               "drop": f"{{ if (!{test}) {{ {old}; }} }}"}[site.form]
        end = site.end + (site.form != "expression" and text[site.end] == ";")
        text = text[:site.at] + new + text[end:]
    return text
