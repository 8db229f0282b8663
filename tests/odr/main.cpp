// SPDX-License-Identifier: MIT
#include <cstdio>
#include <cstring>
#include <vector>

int compute_plain(const char* isa, float* results);
int compute_wide(const char* isa, float* results);

int main(int count, char** arguments) {
  if (count != 2) return 2;
  std::vector<float> plain(200000), wide(200000);
  const int size = compute_plain(arguments[1], plain.data());
  if (compute_wide(arguments[1], wide.data()) != size) return 1;
  if (size == 0) std::printf("this machine has no %s: nothing to compare\n", arguments[1]);
  const auto bytes = static_cast<std::size_t>(size) * sizeof(float);
  return std::memcmp(plain.data(), wide.data(), bytes) == 0 ? 0 : 1;
}
