// SPDX-License-Identifier: MIT
#include <heed/kernels/isa.hpp>

#include <sys/wait.h>
#include <unistd.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <stdexcept>
#include <string>

#include "support/bfloat16_cases.hpp"

namespace heed::test {
namespace {

using simd::Isa;

TEST(Isa, TheBestSupportedSetIsActive) {
  if (std::getenv("HEED_ISA") != nullptr) return;  // chosen from outside
  Isa best = supported_sets().back();
#if defined(__x86_64__)
  if (simd::supported(Isa::avx512_bf16) && !__builtin_cpu_is("intel")) best = Isa::avx512_bf16;
#endif
  if (simd::supported(Isa::amx)) best = Isa::amx;
  EXPECT_EQ(simd::active(), best);
}

TEST(Isa, EveryMachineRunsTheScalarSet) {
  EXPECT_TRUE(simd::supported(Isa::scalar));
#if defined(__x86_64__)
  EXPECT_TRUE(simd::supported(Isa::sse2));
#endif
}

TEST(Isa, TilesHaveATwinWhereverTheirOtherKernelsRun) {
#if defined(__x86_64__) && defined(__linux__)
  EXPECT_EQ(simd::supported(Isa::amx_twin), simd::supported(Isa::avx512));
#else
  EXPECT_FALSE(simd::supported(Isa::amx) || simd::supported(Isa::amx_twin));
#endif
}

TEST(Isa, UseChangesTheKernels) {
  const RestoreSettings restore;
  for (const Isa isa : supported_sets()) {
    simd::use(isa);
    EXPECT_EQ(simd::active(), isa);
  }
  EXPECT_EQ(simd::name(Isa::avx512), "avx512");
  EXPECT_EQ(simd::name(Isa::avx512_bf16), "avx512_bf16");
  EXPECT_EQ(simd::name(Isa::amx), "amx");
  EXPECT_EQ(simd::name(Isa::amx_twin), "amx_twin");
}

TEST(Isa, ASetTheMachineLacksIsRefused) {
  for (const Isa isa :
       {Isa::neon, Isa::sse2, Isa::avx2, Isa::avx512, Isa::avx512_bf16, Isa::amx, Isa::amx_twin}) {
    if (simd::supported(isa)) continue;
    EXPECT_THROW(simd::use(isa), std::invalid_argument);
  }
}

/// A processor with every set of x86, and a system that grants tiles, or refuses them.
bool with_tiles(Isa isa) { return isa >= Isa::sse2; }
bool without_tiles(Isa isa) { return isa >= Isa::sse2 && isa != Isa::amx; }

TEST(Isa, WhereTilesAreRefusedTheNextBestSetIsChosen) {
  using simd::detail::choose;
  Isa next = Isa::avx512_bf16;
#if defined(__x86_64__)
  if (__builtin_cpu_is("intel")) next = Isa::avx512;
#endif
  EXPECT_EQ(choose(nullptr, with_tiles), Isa::amx);
  EXPECT_EQ(choose(nullptr, without_tiles), next);
  EXPECT_EQ(choose("amx", with_tiles), Isa::amx);
  EXPECT_EQ(choose("avx2", without_tiles), Isa::avx2);
  try {
    choose("amx", without_tiles);
    ADD_FAILURE() << "amx was chosen";
  } catch (const InvalidArgument& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("HEED_ISA=amx: expected one of avx512_bf16, avx512"), text.npos) << text;
  }
}

/// Exit status of this test program's child that runs one kernel under HEED_ISA=`value`.
int status_under(const char* value) {
  const pid_t child = fork();
  if (child == 0) {
    setenv("HEED_ISA", value, 1);
    execl("/proc/self/exe", "isa", "--gtest_filter=Isa.ChildRunsWhatTheEnvironmentNames", nullptr);
    _exit(99);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(Isa, ChildRunsWhatTheEnvironmentNames) {
  const char* wanted = std::getenv("HEED_ISA");
  EXPECT_TRUE(wanted == nullptr || simd::name(simd::active()) == wanted);
}

TEST(Isa, TheEnvironmentChoosesAndNonsenseIsRefused) {
  for (const Isa isa : bfloat16_sets()) {
    EXPECT_EQ(status_under(std::string(simd::name(isa)).c_str()), 0);
  }
  EXPECT_NE(status_under("avx1024"), 0);
}

}  // namespace
}  // namespace heed::test
