#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""model.py LISTING TRACE: cycles of what a trace executed, and the functions that they went to.

A model of one core of a Sapphire Rapids: instructions enter in order, six a cycle, wait for their
operands and a port, and leave in order; 512 are under way, 97 of them wait for ports of arithmetic
and 70 for memory. All data is in the first-level cache and all branches are foreseen, so cycles are
fewer than a processor takes; what it shows is which of two orders hides more. Numbers are
what is said of the core (tiles: a product every 16 cycles with a latency of 52, a load every 8 with
45, a store every 16); none was measured here.
"""
import bisect
import heapq
import re
import struct
import sys
from collections import Counter, defaultdict

WINDOW, WAITING, WAITING_MEMORY, WIDTH, LEAVING = 512, 97, 70, 6, 8
VECTOR = ("p0", "p5")
SCALAR = ("p0", "p1", "p5", "p6", "p10")
REGISTER = re.compile(
    r"%(tmm\d|[xyz]mm\d+|k[0-7]|r\d+[dwb]?|[re]?[abcd]x|[abcd][lh]|[re]?[sd]il?|[re]?[sb]pl?)")


def register(name):
    """One name for all widths of a register."""
    if name.startswith("tmm") or name[0] == "k":
        return name
    if name[1:3] == "mm":
        return "v" + name[3:]
    if name[0] == "r" and name[1].isdigit():
        return re.match(r"r\d+", name).group()
    if len(name) > 2 and name[-1] == "l":
        name = name[:-1]
    if len(name) > 2:
        name = name[1:]
    return name[0] + "x" if name[-1] in "lh" and name[0] in "abcd" else name


def registers(text):
    return [register(x) for x in REGISTER.findall(text)]


def operands_of(text):
    parts, depth, part = [], 0, ""
    for letter in text:
        depth += (letter in "({") - (letter in ")}")
        if letter == "," and depth == 0:
            parts.append(part.strip())
            part = ""
        else:
            part += letter
    return parts + [part.strip()] if part.strip() else parts


TWO_OPERATIONS = ("vreduceps", "vscalefps", "vrndscaleps")


def vector_work(name, in_memory):
    """Ports and latency of an instruction on 512 bits, or None for a mere load, store or renaming.
    TWO_OPERATIONS do this twice."""
    if name.startswith("vmov"):
        return (VECTOR, 3) if name in ("vmovq", "vmovd") and not in_memory else None
    if name.startswith(("vbroadcast", "vpbroadcast")):
        return None if in_memory else (("p5",), 3)
    if name.startswith(("vpsr", "vpsl", "vcomis")):
        return ("p0",), 1 if name[1] == "p" else 3
    if name.startswith(("vpand", "vpor", "vand", "vor", "vpxor", "vxor", "vpternlog", "vpadd", "vpsub")):
        return VECTOR, 1
    if name.startswith(("vperm", "vpunpck", "vunpck", "vshuf", "vinsert", "vextract", "vpack", "vpmov",
                        "vcmp", "vpcmp", "vptest")):
        return ("p5",), 3
    return VECTOR, 4


def scalar_work(name, in_memory):
    if name.startswith("mov"):
        return None if in_memory else (SCALAR, 1)
    if name.startswith("k"):
        return None if in_memory else (("p0",), 1)
    if name.startswith("imul"):
        return ("p1",), 3
    if name.startswith(("idiv", "div")):
        return ("p1",), 15
    return (("p0", "p6"), 1) if name.startswith(("set", "cmov", "sh", "sa", "cqto")) else (SCALAR, 1)


class Instruction:
    """What an instruction reads, writes and occupies: (kind or ports, cycles of a port, latency)."""

    def __init__(self, text):
        name, *rest = text.split(None, 1)
        operands = operands_of(rest[0]) if rest else []
        self.reads, self.writes, self.uses = [], [], []
        self.reads_flags = name.startswith(("cmov", "set", "adc", "sbb")) or (name[0] == "j" and name != "jmp")
        self.writes_flags = False
        everything = registers(" ".join(operands))
        if name == "tileloadd":
            self.reads, self.writes, self.uses = registers(operands[0]), registers(operands[1]), [("tile load", 8, 45)]
        elif name == "tilestored":
            self.reads, self.uses = everything, [("tile store", 16, 10)]
        elif name == "tilezero":
            self.writes = everything
        elif name.startswith("tdp"):
            self.reads, self.writes, self.uses = everything, everything[-1:], [("tile product", 16, 52)]
        elif name[0] == "j":
            self.uses = [(("p6",), 1, 1)]
        elif name.startswith(("push", "pop")):
            self.reads, self.uses = everything, [("store" if name[1] == "u" else "load", 1, 1)]
        else:
            self.take(name, operands)

    def take(self, name, operands):
        last = operands[-1] if operands else ""
        compares = name.startswith(("cmp", "test", "vcomis"))
        memory = [x for x in operands if "(" in x] if not name.startswith("lea") else []
        stores = last in memory and not compares
        self.writes_flags = compares or (name[0] != "v" and not name.startswith(("mov", "lea", "set", "cmov")))
        for operand in operands[:-1]:
            self.reads += registers(operand)
        if stores or compares or "fmadd" in name or "fnmadd" in name or "dpbf16" in name or (
                "{" in last and "{z}" not in last) or (name[0] != "v" and not name.startswith(("mov", "lea", "set"))):
            self.reads += registers(last)
        if not stores and not compares:
            self.writes = registers(last.split("{")[0])
        if "xor" in name and not memory and len(set(registers(" ".join(operands)))) == 1:
            self.reads = []  # a zero, without work
            return
        work = (vector_work if name[0] == "v" else scalar_work)(name, bool(memory))
        wide = "%zmm" in " ".join(operands)
        if memory and not stores:
            self.uses.append(("wide load" if wide else "load", 1, 7 if name[0] == "v" else 5))
        if work and not (name.startswith("mov") and operands[0][0] == "%"):
            self.uses += [(work[0], 1, work[1])] * (2 if name in TWO_OPERATIONS else 1)
        if stores:
            self.uses.append(("wide store" if wide else "store", 1, 1))


class Core:
    PORTS = {"load": ("p2", "p3", "p11"), "wide load": ("p2", "p3"), "store": ("s0", "s1"),
             "wide store": ("s0",), "tile store": ("s0",)}

    def __init__(self):
        self.busy, self.ready = defaultdict(set), defaultdict(int)
        self.cycle = self.entered = self.flags = self.tile_product = self.leaves = self.leaving = 0
        self.left, self.waiting, self.waiting_memory = [], [], []

    def book(self, ports, start, cycles):
        """The first time from `start` on at which one of the ports is free, which it then is not."""
        best = None
        for port in ports:
            at, busy = start, self.busy[port]
            while any(at + i in busy for i in range(cycles)):
                at += 1
            if best is None or at < best[0]:
                best = at, port
        self.busy[best[1]].update(range(best[0], best[0] + cycles))
        return best[0]

    def enter(self, count):
        for _ in range(count):
            self.entered += 1
            if self.entered > WIDTH:
                self.cycle, self.entered = self.cycle + 1, 1
        if len(self.left) >= WINDOW and self.left[-WINDOW] > self.cycle:
            self.cycle, self.entered = self.left[-WINDOW], 1
        for queue, room in ((self.waiting, WAITING), (self.waiting_memory, WAITING_MEMORY)):
            while queue and (queue[0] <= self.cycle or len(queue) >= room):
                if queue[0] > self.cycle:
                    self.cycle, self.entered = queue[0], 1
                heapq.heappop(queue)

    def use(self, kind, cycles, latency, start):
        """When the result of one use is there."""
        if kind == "tile product":
            at = max(start, self.tile_product)
            self.tile_product = at + cycles
            self.book(("p5",), at, 1)
        elif kind == "tile load":
            at = self.book(("p2",), start, cycles)
            self.book(("p3",), at, cycles)
        else:
            at = self.book(self.PORTS.get(kind, kind), start, cycles)
        heapq.heappush(self.waiting if kind == "tile product" or isinstance(kind, tuple)
                       else self.waiting_memory, at)
        return at + latency

    def run(self, instruction):
        self.enter(2 if instruction.uses and "tile" in instruction.uses[0][0] else 1)
        start = self.cycle + 1
        for name in instruction.reads:
            start = max(start, self.ready[name])
        if instruction.reads_flags:
            start = max(start, self.flags)
        end = start
        for kind, cycles, latency in instruction.uses:
            end = self.use(kind, cycles, latency, end)
        for name in instruction.writes:
            self.ready[name] = end
        if instruction.writes_flags:
            self.flags = end
        leaves = max(end, self.leaves)
        self.leaving = self.leaving + 1 if leaves == self.leaves else 1
        if self.leaving > LEAVING:
            leaves, self.leaving = leaves + 1, 1
        self.leaves = leaves
        self.left.append(leaves)


class Listing:
    """A program as objdump writes it: its instructions and functions by their addresses."""

    def __init__(self, path):
        self.text, self.begins, self.names = {}, [], []
        for line in open(path):
            if head := re.match(r"^([0-9a-f]+) <(.*)>:$", line):
                self.begins.append(int(head.group(1), 16))
                self.names.append(head.group(2))
            elif found := re.match(r"^ *([0-9a-f]+):\t(.*)$", line):
                self.text[int(found.group(1), 16)] = re.sub(r"#.*|<[^>]*>", "", found.group(2)).strip()

    def function_at(self, address):
        return self.names[bisect.bisect_right(self.begins, address) - 1]


def main():
    listing = Listing(sys.argv[1])
    data = open(sys.argv[2], "rb").read()
    idle = ("nop", "cs", "data16", "xchg", "vzeroupper", "ldtilecfg", "tilerelease", "call", "ret")
    core, known, taken, before = Core(), {}, Counter(), 0
    vectors = tiles = 0
    for address in struct.unpack(f"<{len(data) // 8}Q", data):
        text = listing.text.get(address, "nop")
        if text.startswith(idle):
            continue
        if text not in known:
            known[text] = Instruction(text)
        core.run(known[text])
        vectors += sum(set(use[0]) <= set(VECTOR) for use in known[text].uses)
        tiles += text.startswith("tdp")
        taken[listing.function_at(address)] += core.leaves - before
        before = core.leaves
    print(f"{core.leaves} cycles; tiles need {16 * tiles}, vectors {vectors // len(VECTOR)}")
    for name, cycles in taken.most_common(6):
        short = re.sub(r"heed::(simd::|detail::)?(\w+::avx512_kernels::)?", "", name)
        print(f"  {100 * cycles / core.leaves:4.1f} % {short[:90]}")


main()
