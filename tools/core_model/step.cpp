// SPDX-License-Identifier: MIT
// step TRACE PROGRAM ARGUMENTS...  writes the address of every instruction that PROGRAM executes
// between two breakpoints, 8 bytes each. What SIGILL handlers do is left out.
#include <cstdint>
#include <cstdio>
#include <vector>

#include <signal.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

/// Bytes of an instruction on tiles: three of VEX, an opcode, ModRM and what that asks for.
int length_of(const std::uint8_t* code) {
  const int mode = code[4] >> 6, last = code[4] & 7;
  if (mode == 3) return 5;
  const bool scaled = last == 4;
  const int moved = mode == 1                                                  ? 1
                    : mode == 2 || last == 5 || (scaled && (code[5] & 7) == 5) ? 4
                                                                               : 0;
  return 5 + (scaled ? 1 : 0) + moved;
}

class Traced {
 public:
  explicit Traced(pid_t pid) : pid_(pid) { wait_for_stop(); }

  std::uint64_t address() const {
    user_regs_struct registers;
    ptrace(PTRACE_GETREGS, pid_, nullptr, &registers);
    return registers.rip;
  }
  bool at_breakpoint() const {
    return (ptrace(PTRACE_PEEKTEXT, pid_, address(), nullptr) & 0xff) == 0xcc;
  }
  /// Runs to a stop and returns its signal, 0 at the end of the program.
  int resume(int signal) { return go(PTRACE_CONT, signal); }
  int step(int signal) { return go(PTRACE_SINGLESTEP, signal); }
  /// Lets the handler of SIGILL compute the instruction at `address`.
  bool step_over(std::uint64_t address) {
    std::uint64_t code[2];
    for (int i = 0; i < 2; ++i) code[i] = word(address + 8 * static_cast<std::uint64_t>(i));
    const std::uint64_t next =
        address + static_cast<std::uint64_t>(length_of(reinterpret_cast<std::uint8_t*>(code)));
    const std::uint64_t there = word(next);
    ptrace(PTRACE_POKETEXT, pid_, next, (there & ~std::uint64_t{0xff}) | 0xcc);
    const bool stopped = resume(SIGILL) == SIGTRAP;
    ptrace(PTRACE_POKETEXT, pid_, next, there);
    user_regs_struct registers;
    ptrace(PTRACE_GETREGS, pid_, nullptr, &registers);
    registers.rip = next;
    ptrace(PTRACE_SETREGS, pid_, nullptr, &registers);
    return stopped;
  }

 private:
  std::uint64_t word(std::uint64_t address) const {
    return static_cast<std::uint64_t>(ptrace(PTRACE_PEEKTEXT, pid_, address, nullptr));
  }
  int go(__ptrace_request how, int signal) {
    ptrace(how, pid_, nullptr, signal);
    return wait_for_stop();
  }
  int wait_for_stop() {
    int status = 0;
    waitpid(pid_, &status, 0);
    return WIFSTOPPED(status) ? WSTOPSIG(status) : 0;
  }

  pid_t pid_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  const pid_t pid = fork();
  if (pid == 0) {
    ptrace(PTRACE_TRACEME, 0, nullptr, nullptr);
    execv(argv[2], argv + 2);
    _exit(1);
  }
  Traced program(pid);
  int signal = program.resume(0);
  while (signal != 0 && signal != SIGTRAP) signal = program.resume(signal);
  std::vector<std::uint64_t> trace;
  for (signal = 0;;) {
    const std::uint64_t address = program.address();
    trace.push_back(address);
    signal = program.step(signal);
    if (signal == SIGILL) {
      if (!program.step_over(address)) break;
      signal = 0;
    } else if (signal == SIGTRAP) {
      if (program.at_breakpoint()) break;
      signal = 0;
    } else if (signal == 0) {
      break;
    }
  }
  std::FILE* file = std::fopen(argv[1], "wb");
  if (file == nullptr) return 1;
  std::fwrite(trace.data(), sizeof trace[0], trace.size(), file);
  std::fclose(file);
  kill(pid, SIGKILL);
}
