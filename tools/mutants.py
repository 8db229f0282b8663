#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Plants one-line faults in include/ and lists those that no test notices.

  tools/mutants.py                      every folder: plant, build, run, print the table
  tools/mutants.py --folder masks       one folder (may be given several times), with the tests near it
  tools/mutants.py --survivors          the tests as they are now against what survived
  tools/mutants.py --table              print the table and the survivors of the last run

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
import os
import pathlib
import re
import resource
import signal
import subprocess
import sys
import time

from mutation import Reader, planted

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDERS = ["core", "masks", "tensor", "io", "text", "generation", "training", "plot", "layers", "models",
           "attention", "pretrained", "simd"]
# Folders of tests that exercise a folder of include/; its own comes first.
NEAR = {"core": ["tensor", "attention", "io", "layers", "training"], "masks": ["laws", "attention"],
        "tensor": ["layers", "attention", "training"], "io": ["text", "pretrained"], "text": ["generation", "pretrained"],
        "generation": ["models"], "training": ["layers", "models"], "plot": [], "layers": ["models", "training", "laws"],
        "models": ["generation", "pretrained", "training"], "attention": ["layers", "laws", "generation"],
        "pretrained": [], "simd": ["attention", "layers", "tensor"]}
PREFIX = """// Written by tools/mutants.py.
#pragma once
#include <cstdlib>
namespace heed_mutants {
inline unsigned char reached[8192];
inline int active = std::getenv("HEED_MUTANT") ? std::atoi(std::getenv("HEED_MUTANT")) : 0;
}
#define HEED_MUTANT(k) (!__builtin_is_constant_evaluated() && (::heed_mutants::reached[k] = 1, ::heed_mutants::active == (k)))
"""
LISTENER = r"""
#include <fstream>
#include <gtest/gtest.h>
struct Listener : ::testing::EmptyTestEventListener {
  void OnTestEnd(const ::testing::TestInfo& test) override {
    std::ofstream log(std::getenv("HEED_MUTANT_LOG"), std::ios::app);
    log << test.test_suite_name() << '.' << test.name() << ' ' << test.result()->elapsed_time() << ' '
        << (test.result()->Failed() ? "failed" : "passed");
    for (int k = 0; k < 8192; ++k) {
      if (heed_mutants::reached[k]) log << ' ' << k;
      heed_mutants::reached[k] = 0;
    }
    log << std::endl;
  }
};
int main(int count, char** words) {
  ::testing::InitGoogleTest(&count, words);
  if (std::getenv("HEED_MUTANT_LOG")) ::testing::UnitTest::GetInstance()->listeners().Append(new Listener);
  return RUN_ALL_TESTS();
}
"""


def limits():
    """For a faulty process: 6 GiB, files of 1 GiB, no core dumps."""
    resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30))
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 30, 1 << 30))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


class Plan:
    """The faults of one run, and the copy of include/ that holds them."""

    def __init__(self, work, folders, lines_each):
        self.work, self.folders, self.texts, self.chosen = work, folders, {}, {}
        self.mutants, number = [], 0
        for folder in folders:
            files = sorted((ROOT / "include/heed" / folder).glob("*.[hi]*"))
            lines = sum(file.read_text().count("\n") for file in files)
            for file, site in self.choose(files, max(40, lines // lines_each)):
                number += 1
                self.chosen.setdefault(file, []).append((number, site))
                text = self.texts[file]
                self.mutants.append(dict(
                    id=number, folder=folder, file=f"{folder}/{file.name}", line=site.line, kind=site.kind,
                    first=site.first_line, last=site.last_line, status="planted",
                    before=" ".join(text[site.at:site.end].split()), after=site.changed))

    def choose(self, files, count):
        """`count` sites, one per statement at most, by a hash of their text."""
        ranked, seen = [], collections.Counter()
        for file in files:
            self.texts[file] = file.read_text()
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
        dropped = {m["id"] for m in self.mutants if m["status"] == "does not compile"}
        for file in (ROOT / "include").rglob("*.*"):
            text = file.read_text()
            if file in self.chosen:
                text = planted(text, [pair for pair in self.chosen[file] if pair[0] not in dropped])
            put(target / file.relative_to(ROOT / "include"), text)
        self.save()

    def save(self):
        (self.work / "results.json").write_text(json.dumps(self.mutants, indent=1))

    def recall(self):
        """What an earlier run over the same faults found; nothing built over others stays."""
        key = hashlib.sha256(json.dumps([[m["file"], m["line"], m["before"], m["after"]] for m in self.mutants] +
                                        [PREFIX, LISTENER]).encode()).hexdigest()
        results = self.work / "results.json"
        if (self.work / "key").exists() and (self.work / "key").read_text() == key and results.exists():
            self.mutants = json.loads(results.read_text())
            return
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
            places = set(re.findall(r"include/heed/(\w+/[\w.]+):(\d+)", "\n".join(lines)))
            named = [m for m in self.mutants if m["status"] != "does not compile" and
                     any((m["file"], str(k)) in places for k in range(m["first"], m["last"] + 1))]
            for mutant in named:
                mutant["status"] = "does not compile"
            if named:
                return len(named)
        return 0


def put(path, text):
    """Writes a file, unless it holds the text already."""
    if not path.exists() or path.read_text() != text:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


class Build:
    """The test executables over a plan's copy of include/."""

    def __init__(self, plan, jobs):
        self.plan, self.work, self.jobs, self.built_for = plan, plan.work, jobs, None
        eigen = next(p for p in ("/usr/include/eigen3", "/usr/local/include/eigen3") if os.path.isdir(p))
        self.flags = ["g++", "-std=c++20", "-w", "-DEIGEN_MPL2_ONLY", f"-I{self.work}/include", f"-I{ROOT}/tests",
                      f"-isystem{eigen}", f'-DHEED_TEST_DATA="{ROOT}/tests/golden"',
                      f'-DHEED_EXAMPLE_DATA="{ROOT}/examples/data"']

    def compile(self, *arguments):
        """What the compiler complains of, empty where it succeeded."""
        done = subprocess.run([*self.flags, *map(str, arguments)], capture_output=True, text=True)
        return "" if done.returncode == 0 else done.stderr or "failed"

    def until_it_compiles(self, what, *arguments):
        """Compiles what takes no part in rounds, dropping faults that do not compile."""
        while errors := self.compile(*arguments):
            put(self.work / "errors.txt", errors)
            if not self.plan.drop(errors):
                sys.exit(f"{what} does not compile: see {self.work}/errors.txt")
            self.plan.write()

    def prepare(self):
        """The copy of include/, the kernels and the listener."""
        self.plan.write()
        put(self.work / "mutant.hpp", PREFIX)
        put(self.work / "prefix.hpp", PREFIX + "#include <gtest/gtest.h>\n#include <heed/heed.hpp>\n")
        put(self.work / "listener.cpp", LISTENER)
        self.precompile()
        with_mutant = ["-include", self.work / "mutant.hpp", "-c"]
        if not (self.work / "compiled.o").exists():
            self.until_it_compiles("cmake/compiled.cpp", "-O2", "-DHEED_COMPILED", *with_mutant,
                                   ROOT / "cmake/compiled.cpp", "-o", self.work / "compiled.o")
        self.until_it_compiles("the listener", "-O1", *with_mutant, self.work / "listener.cpp", "-o",
                               self.work / "listener.o")
        self.precompile()
        print(f"{time.strftime('%H:%M:%S')} kernels and precompiled header built", flush=True)

    def precompile(self):
        """<heed/heed.hpp> and GoogleTest, again whenever faults were dropped."""
        dropped = [m["id"] for m in self.plan.mutants if m["status"] == "does not compile"]
        if self.built_for != dropped or not (self.work / "prefix.hpp.gch").exists():
            self.until_it_compiles("include/", "-O1", "-DHEED_COMPILED", "-x", "c++-header",
                                   self.work / "prefix.hpp", "-o", self.work / "prefix.hpp.gch")
            self.built_for = [m["id"] for m in self.plan.mutants if m["status"] == "does not compile"]

    def groups(self, folder, together=30000):
        """Test files that are compiled together, in namespaces of their own."""
        groups, alone = [[]], []
        for file in sorted((ROOT / "tests" / folder).glob("*_test.cpp")):
            if re.search(r"^#define|^template <>|^using namespace|namespace std", file.read_text(), re.M):
                alone.append([file])
                continue
            if groups[-1] and sum(f.stat().st_size for f in [*groups[-1], file]) > together:
                groups.append([])
            groups[-1].append(file)
        return [group for group in groups if group] + alone

    def unit(self, group):
        """Compiles a group where it is out of date; returns its object file and the errors."""
        name = hashlib.sha256(" ".join(map(str, group)).encode()).hexdigest()[:8]
        source = self.work / f"units/{group[0].parent.name}_{group[0].stem}_{name}.cpp"
        text = []
        for file in group:
            body = file.read_text()
            if len(group) > 1:
                body = re.sub(r"^namespace \{", f"namespace unit_{file.stem} {{", body, flags=re.M)
            text.append(f'#line 1 "{file}"\n{body}\n')
        put(source, "".join(text))
        target = source.with_suffix(".o")
        changed = max(source.stat().st_mtime, *(f.stat().st_mtime for f in (ROOT / "tests/support").glob("*")))
        if target.exists() and target.stat().st_mtime > changed:
            return target, ""
        return target, self.compile("-O1", "-DHEED_COMPILED", "-include", self.work / "prefix.hpp", "-c",
                                    f"-I{group[0].parent}", source, "-o", target)

    def executable(self, folder):
        """Compiles in rounds: what fails loses the faults it names, or goes on file by file."""
        split = self.work / f"units/{folder}_split.json"
        apart = json.loads(split.read_text()) if split.exists() else []
        groups = [part for group in self.groups(folder)
                  for part in ([[f] for f in group] if str(group[0]) in apart else [group])]
        objects = []
        while groups:
            with concurrent.futures.ThreadPoolExecutor(self.jobs) as pool:
                results = list(zip(groups, pool.map(self.unit, groups)))
            objects += [target for _, (target, errors) in results if not errors]
            failed = [(group, errors) for group, (_, errors) in results if errors]
            counts = [self.plan.drop(errors) for _, errors in failed]
            groups = []
            for group, errors in failed:
                put(self.work / "errors.txt", errors)
                if sum(counts):
                    groups.append(group)
                elif len(group) > 1:
                    apart.append(str(group[0]))
                    groups += [[file] for file in group]
                else:
                    print(f"{group[0]} is left out: it does not compile, see {self.work}/errors.txt")
            if sum(counts):
                self.plan.write()
                self.precompile()
        put(split, json.dumps(apart))
        return self.link(folder, objects)

    def link(self, folder, objects):
        exe = self.work / f"test_{folder}"
        objects = [*objects, self.work / "compiled.o", self.work / "listener.o"]
        if not exe.exists() or exe.stat().st_mtime < max(o.stat().st_mtime for o in objects):
            subprocess.run(["g++", *map(str, objects), "-o", str(exe), "-lgtest", "-lpthread"], check=True)
            print(f"{time.strftime('%H:%M:%S')} built {exe.name}", flush=True)
        return exe


class Tests:
    """What each test of a folder reaches, and the runs against a fault."""

    def __init__(self, exe):
        self.exe, self.tests = exe, []
        log = exe.with_suffix(".log")
        if not log.exists() or log.stat().st_mtime < exe.stat().st_mtime:
            log.unlink(missing_ok=True)
            subprocess.run([exe, "--gtest_brief=1"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                           env={**os.environ, "HEED_MUTANT_LOG": str(log)}, cwd=exe.parent)
        for line in log.read_text().splitlines():
            name, milliseconds, result, *reached = line.split()
            if result == "passed":
                self.tests.append((int(milliseconds) / 1000, name, set(map(int, reached))))
            else:
                print(f"{exe.name}: {name} fails without a fault and is left out")
        self.tests.sort(key=lambda test: test[0])

    def killer(self, number, budget):
        """The tests that notice the fault (a group's first), "" when none does, None when none reaches it."""
        reaching = [(seconds, name) for seconds, name, reached in self.tests if number in reached]
        group, spent, limit = [], 0.0, 0.3
        for i, (seconds, name) in enumerate(reaching):
            group.append(name)
            spent += seconds
            if spent > limit or len(group) == 300 or i == len(reaching) - 1:
                if self.notices(number, group, spent):
                    return group[0]
                budget -= spent
                group, spent, limit = [], 0.0, limit * 4
            if budget < 0:
                break
        return "" if reaching else None

    def notices(self, number, names, seconds):
        """Whether one of the tests fails, crashes or hangs with the fault."""
        process = subprocess.Popen(
            [self.exe, "--gtest_brief=1", "--gtest_fail_fast", "--gtest_filter=" + ":".join(names)],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=self.exe.parent, preexec_fn=limits,
            start_new_session=True, env={**os.environ, "HEED_MUTANT": str(number)})
        try:
            return process.wait(timeout=10 + 10 * seconds) != 0
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            return True


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
        rows.append(f"| {folder} | {len(own)} | {killed} | {same} | {len(alive) - same} |"
                    f" {100 * killed / max(1, len(own) - same):.1f} % |")
        listed += [] if folder == "all" else alive
    head = ["| folder | planted | killed | no change of behavior | survived | killed of the others |",
            "| --- | ---: | ---: | ---: | ---: | ---: |"]
    for m in listed:
        reason = left.get((m["file"], m["before"], m["after"]), m["status"])
        rows += [f"\n{m['file']}:{m['line']} ({m['id']}, {m['kind']}) {reason}", f"- {m['before']}",
                 f"+ {m['after'] or '(dropped)'}"]
    return "\n".join(head + rows)


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
    words.add_argument("--jobs", type=int, default=2)
    words.add_argument("--lines", type=int, default=32, help="lines of code for each fault")
    words.add_argument("--budget", type=float, default=30, help="seconds of tests for each fault and executable")
    words.add_argument("--work", type=pathlib.Path, default=ROOT / "build/mutants")
    given = words.parse_args()
    folders = given.folder or FOLDERS
    plan = Plan(given.work.resolve(), FOLDERS, given.lines)
    plan.recall()
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
    print(table([m for m in plan.mutants if m["folder"] in folders]))


if __name__ == "__main__":
    main()
