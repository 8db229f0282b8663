#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Plants one-line faults in include/ and lists those that no test notices.

  tools/mutants.py                      every folder: plant, build, run, print the table
  tools/mutants.py --folder masks       one folder (may be given several times), with the tests near it
  tools/mutants.py --survivors          the tests as they are now against what survived
  tools/mutants.py --table              print the table and the survivors of the last run
  tools/mutants.py --table --page       the same, written into docs/mutants.md

All faults stand in one copy of include/ (build/mutants/include), chosen at run time by the environment
variable HEED_MUTANT, so that each test file is compiled once. A first run of every test notes which faults
it reaches; a fault then meets the tests that reach it, those of its own folder first, the fastest first.
The choice is by a hash of the code: the same code gives the same faults. What does not compile is dropped.
tools/mutants_left.txt holds the survivors that change no behavior, with the reason.
"""
import argparse
import collections
import concurrent.futures
import hashlib
import json
import pathlib
import re
import time

from mutant_tests import LISTENER, PREFIX, ROOT, Build, Tests, put
from mutation import Reader, planted

FOLDERS = ["core", "masks", "tensor", "io", "text", "generation", "training", "plot", "layers", "models",
           "attention", "pretrained", "kernels"]
# Folders of tests that exercise a folder of include/; its own comes first.
NEAR = {"core": ["tensor", "attention", "io", "layers", "training"], "masks": ["laws", "attention"],
        "tensor": ["layers", "attention", "training"], "io": ["text", "pretrained"], "text": ["generation", "pretrained"],
        "generation": ["models"], "training": ["layers", "models"], "plot": [], "layers": ["generation", "models", "training"],
        "models": ["generation", "pretrained", "training"], "attention": ["layers", "laws", "generation"],
        "pretrained": [], "kernels": ["attention", "layers", "tensor"]}


class Plan:
    """The faults of one run, and the copy of include/ that holds them."""

    def __init__(self, work, folders, lines_each):
        self.work, self.folders, self.chosen = work, folders, {}
        self.mutants, number = [], 0
        self.texts = {file: file.read_text() for file in (ROOT / "include").rglob("*.*")}
        for folder in folders:
            files = sorted((ROOT / "include/heed" / folder).rglob("*.[hi]*"))
            lines = sum(file.read_text().count("\n") for file in files)
            for file, site in self.choose(files, max(40, lines // lines_each)):
                number += 1
                self.chosen.setdefault(file, []).append((number, site))
                text = self.texts[file]
                self.mutants.append(dict(
                    id=number, folder=folder, file=str(file.relative_to(ROOT / "include/heed")), line=site.line, kind=site.kind,
                    first=site.first_line, last=site.last_line, status="planted",
                    before=" ".join(text[site.at:site.end].split()), after=site.changed))

    def choose(self, files, count):
        """`count` sites, one per statement at most, by a hash of their text."""
        ranked, seen = [], collections.Counter()
        for file in files:
            for site in Reader(self.texts[file]).sites:
                name = f"{file.name} {self.texts[file][site.at:site.end]} {site.kind} {site.changed}"
                seen[name] += 1
                digest = hashlib.sha256(f"{name} {seen[name]}".encode()).hexdigest()
                ranked.append((digest, file, site))
        taken, result = collections.defaultdict(list), []
        for _, file, site in sorted(ranked, key=lambda one: one[0]):
            apart = all(site.end <= a or b <= site.at for a, b in taken[file])
            if apart and len(result) < count:
                taken[file].append((site.at, site.end))
                result.append((file, site))
        return sorted(result, key=lambda pair: (str(pair[0]), pair[1].at))

    def write(self):
        """The copy of include/, without the faults that were dropped."""
        target = self.work / "include"
        dropped = json.loads(self.dropped())
        for file, text in self.texts.items():
            if file in self.chosen:
                text = planted(text, [pair for pair in self.chosen[file] if pair[0] not in dropped])
            put(target / file.relative_to(ROOT / "include"), text)
        self.save()

    def dropped(self):
        return json.dumps([m["id"] for m in self.mutants if m["status"] == "does not compile"])

    def save(self):
        (self.work / "results.json").write_text(json.dumps(self.mutants, indent=1))

    def recall(self, as_it_is):
        """What an earlier run over the same faults found; nothing built over others stays, unless it is
        only to be looked at."""
        key = hashlib.sha256(json.dumps([[m["file"], m["line"], m["before"], m["after"]] for m in self.mutants] +
                                        [PREFIX, LISTENER, sorted(map(str, self.texts.items()))]).encode()).hexdigest()
        results = self.work / "results.json"
        same = (self.work / "key").exists() and (self.work / "key").read_text() == key
        if results.exists() and (same or as_it_is):
            self.mutants = json.loads(results.read_text())
        if same or as_it_is:
            return
        print("include/ is not what the last run saw: everything is built anew", flush=True)
        for old in [*self.work.glob("units/*"), *self.work.glob("*.gch"), *self.work.glob("*.o"), results]:
            old.unlink(missing_ok=True)
        put(self.work / "key", key)

    def forget(self, folders):
        for mutant in self.mutants:
            if mutant["folder"] in folders and mutant["status"] != "does not compile":
                mutant["status"] = "planted"

    def drop(self, errors):
        """Drops the faults on the lines that `errors` names; returns how many."""
        for lines in ([line for line in errors.splitlines() if " error:" in line], errors.splitlines()):
            places = set(re.findall(r"include/heed/([\w/]+\.\w+):(\d+)", "\n".join(lines)))
            named = [m for m in self.mutants if m["status"] != "does not compile" and
                     any((m["file"], str(k)) in places for k in range(m["first"], m["last"] + 1))]
            for mutant in named:
                mutant["status"] = "does not compile"
            if named:
                return len(named)
        return 0


def left_alone():
    """Survivors that tools/mutants_left.txt gives a reason for: (file, before, after) to reason."""
    result, path = {}, ROOT / "tools/mutants_left.txt"
    blocks = re.split(r"\n\n+", path.read_text()) if path.exists() else []
    for block in blocks:
        lines = block.splitlines()
        if len(lines) == 4 and lines[1].startswith("- "):
            result[lines[0], lines[1][2:], lines[2][2:]] = lines[3]
    return result


def table(mutants):
    """Markdown: one row per folder, then every survivor."""
    left, rows, listed = left_alone(), [], []
    for folder in [*FOLDERS, "all"]:
        own = [m for m in mutants if folder in (m["folder"], "all") and m["status"] != "does not compile"]
        if not own:
            continue
        killed = sum(m["status"] == "killed" for m in own)
        alive = [m for m in own if m["status"] != "killed"]
        same = sum((m["file"], m["before"], m["after"]) in left for m in alive)
        rows.append(f"| `{folder}/` | {len(own)} | {killed} | {same} | {len(alive) - same} |"
                    f" {100 * killed / max(1, len(own) - same):.1f} % |")
        listed += [] if folder == "all" else alive
    rows[-1] = rows[-1].replace("`all/`", "all")
    head = ["| folder | planted | killed | change nothing | survived | killed of those that change something |",
            "| --- | ---: | ---: | ---: | ---: | ---: |"]
    notes = []
    for m in sorted(listed, key=lambda m: (m["file"], m["line"])):
        reason = left.get((m["file"], m["before"], m["after"]), f"**{m['status']}**")
        notes.append(f"- `{m['file']}` line {m['line']}: `{shown(m['before'])}` → "
                     f"`{shown(m['after']) or '(left out)'}`: {reason}")
    return "\n".join([*head, *rows, "", *notes]) + "\n"


def shown(text):
    """Code for one line of a page."""
    return text if len(text) <= 150 else text[:147] + "..."


def run(plan, build, tests, folder, near, jobs, budget):
    """Every living fault of a folder against one executable."""
    alive = [m for m in plan.mutants if m["folder"] == folder and m["status"] in ("planted", "survived", "not reached")]
    if not alive:
        return
    if near not in tests:
        tests[near] = Tests(build.executable(near))

    def meet(mutant):
        killer = tests[near].killer(mutant["id"], budget)
        if killer:
            mutant.update(status="killed", test=f"{near}/{killer}")
        elif mutant["status"] != "survived":
            mutant["status"] = "not reached" if killer is None else "survived"

    alive = [m for m in alive if m["status"] != "does not compile"]
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        list(pool.map(meet, alive))
    plan.save()
    killed = sum(m["status"] == "killed" for m in alive)
    print(f"{time.strftime('%H:%M:%S')} {folder} by tests/{near}: {killed} of {len(alive)} killed", flush=True)


def main():
    words = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    words.add_argument("--folder", action="append", choices=FOLDERS)
    words.add_argument("--survivors", action="store_true")
    words.add_argument("--table", action="store_true")
    words.add_argument("--page", action="store_true")
    words.add_argument("--jobs", type=int, default=2)
    words.add_argument("--lines", type=int, default=32, help="lines of code for each fault")
    words.add_argument("--budget", type=float, default=30, help="seconds of tests for each fault and executable")
    words.add_argument("--work", type=pathlib.Path, default=ROOT / "build/mutants")
    given = words.parse_args()
    folders = given.folder or FOLDERS
    plan = Plan(given.work.resolve(), FOLDERS, given.lines)
    plan.recall(given.table)
    if not given.table:
        if not given.survivors:
            plan.forget(folders)
        build, tests = Build(plan, given.jobs), {}
        build.prepare()
        for folder in folders:
            run(plan, build, tests, folder, folder, given.jobs, given.budget)
        for folder in folders:
            for near in NEAR[folder]:
                run(plan, build, tests, folder, near, given.jobs, given.budget)
    text = table([m for m in plan.mutants if m["folder"] in folders])
    print(text)
    if given.page:
        page = ROOT / "docs/mutants.md"
        put(page, page.read_text().split("<!-- table -->")[0] + "<!-- table -->\n" + text)


if __name__ == "__main__":
    main()
