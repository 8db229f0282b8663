# SPDX-License-Identifier: MIT
"""Builds and runs tests over a copy of include/ that holds faults; see tools/mutants.py."""
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

ROOT = pathlib.Path(__file__).resolve().parent.parent
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


def put(path, text):
    """Writes a file, unless it holds the text already."""
    if not path.exists() or path.read_text() != text:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


class Build:
    """The test executables over a plan's copy of include/."""

    def __init__(self, plan, jobs):
        self.plan, self.work, self.jobs = plan, plan.work, jobs
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
        for source in sorted((ROOT / "cmake").glob("compiled*.cpp")):
            target = self.work / f"{source.stem}.o"
            if not target.exists():
                self.until_it_compiles(f"cmake/{source.name}", "-O2", "-DHEED_COMPILED", *with_mutant, source, "-o",
                                       target)
        self.until_it_compiles("the listener", "-O1", *with_mutant, self.work / "listener.cpp", "-o",
                               self.work / "listener.o")
        self.precompile()
        print(f"{time.strftime('%H:%M:%S')} kernels and precompiled header built", flush=True)

    def precompile(self):
        """<heed/heed.hpp> and GoogleTest, again whenever faults were dropped."""
        note = self.work / "precompiled.json"
        if not note.exists() or note.read_text() != self.plan.dropped() or not (self.work / "prefix.hpp.gch").exists():
            self.until_it_compiles("include/", "-O1", "-DHEED_COMPILED", "-x", "c++-header",
                                   self.work / "prefix.hpp", "-o", self.work / "prefix.hpp.gch")
            put(note, self.plan.dropped())

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
        objects = [*objects, *sorted(self.work.glob("compiled*.o")), self.work / "listener.o"]
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
        """A test (the first of a group) that notices the fault, "" when none does, None when none reaches it."""
        suites = {name.split(".")[0] for _, name, reached in self.tests if number in reached}
        # The others of these suites after them: run alone, a test may begin what an earlier one left behind.
        reaching = [(seconds, name) for seconds, name, reached in
                    sorted(self.tests, key=lambda test: (number not in test[2], test[0]))
                    if name.split(".")[0] in suites]
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
