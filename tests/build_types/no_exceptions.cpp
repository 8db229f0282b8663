// SPDX-License-Identifier: MIT
// Built with -fno-exceptions by no_exceptions.sh, which runs it.
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <heed/heed.hpp>
#include <heed/pretrained.hpp>

int main(int count, char** arguments) {
  if (count != 2) return 2;
  const heed::Tensor<float, 2> q(5, 4), narrow(5, 3);
  if (std::strcmp(arguments[1], "compute") == 0) {
    heed::Random random(1);
    const heed::Linear<float> linear(4, 8, random);
    const auto out = linear.forward(heed::attention(q, q, q, heed::masks::Causal{}));
    return out.extent(1) == 8 ? 0 : 1;
  }
  if (std::strcmp(arguments[1], "handle") == 0) {
    static heed::ErrorHandler before = nullptr;
    before = heed::set_error_handler([](const char* message) {
      std::printf("handled: %s\n", message);
      std::fflush(stdout);
      before(message);  // the default prints it to stderr
      std::exit(0);
    });
  }
  return static_cast<int>(heed::attention(q, narrow, narrow).extent(0));
}
