// SPDX-License-Identifier: MIT
// usage: heed_at_exit WAY THREADS
// Computes while the program ends, in one of the ways below, and compares with what main computed.
// Ends with 0 only where that happened and every number was the same.
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include <heed/attention.hpp>
#include <heed/layers/linear.hpp>
#include <heed/masks.hpp>
#include <heed/text/unicode.hpp>

namespace {

using heed::Index;
using heed::Tensor;
using heed::masks::Causal;

[[noreturn]] void end(const char* complaint) {
  if (complaint == nullptr) ::_exit(0);
  std::fprintf(stderr, "at_exit: %s\n", complaint);
  ::_exit(1);
}

template <class T, std::size_t Rank>
void add(std::vector<double>& results, const Tensor<T, Rank>& tensor) {
  for (const T value : tensor) results.push_back(static_cast<double>(value));
}

/// What keeps memory or threads between calls: attention of every kind, products, tensors, tables.
std::vector<double> work() {
  std::vector<double> results;
  Tensor<float, 3> q({4, 300, 32}), token({4, 1, 32});
  for (Index i = 0; i < q.size(); ++i) q.data()[i] = static_cast<float>(i * 37 % 101) / 50 - 1;
  Tensor<float, 2> lse({4, 300});
  const auto out = heed::attention(q, q, q, Causal{}, {.log_sum_exp = lse});
  add(results, out);
  add(results, heed::attention(token, q, q, heed::masks::Full{}));
  Tensor<float, 3> dq(q.extents()), dk(q.extents()), dv(q.extents());
  heed::attention_backward(q, q, q, Causal{}, out, lse, out, dq, dk, dv);
  add(results, dq);
  add(results, dk);
  add(results, dv);
  heed::Random random(1);
  const heed::Linear<float> linear({.inputs = 32, .outputs = 200}, random);
  add(results, linear.forward(q));
  heed::unicode::lower_case(U'Ä', [&](char32_t code) { results.push_back(code); });
  heed::unicode::without_accents(U'é', [&](char32_t code) { results.push_back(code); });
  return results;
}

const std::vector<double>* expected = nullptr;  // never deleted

/// Works some times between other uses of the heap, which would meet what is freed too early.
void work_again() {
  for (int round = 0; round < 2; ++round) {
    std::vector<std::vector<char>> others;
    for (std::size_t bytes = 8; bytes < 300; ++bytes) others.emplace_back(bytes, 'x');
    if (work() != *expected) end("other numbers");
  }
}

/// Constructed before anything of heed's, so that it is destroyed behind it.
struct Last {
  bool works = false, ends = true;
  ~Last() {
    if (works) work_again();
    if (ends) end(nullptr);
  }
} last;

struct OfThread {
  bool works = false;
  ~OfThread() {
    if (works) work_again();
  }
};
thread_local OfThread of_thread;
pthread_key_t key;

void in_destructors_of_a_thread() {
  pthread_key_create(&key, [](void*) { work_again(); });
  for (int round = 0; round < 3; ++round) {
    std::thread([] {
      of_thread.works = true;
      pthread_setspecific(key, &key);
      work_again();
    }).join();
  }
}

void in_the_main_threads_destructors() {
  of_thread.works = true;
  last.works = true;
}

void beside_a_detached_thread() {
  std::thread([] {
    for (;;) work_again();
  }).detach();
  ::usleep(30000);
  std::atexit([] { ::usleep(30000); });
  last.works = true;
}

/// From inside a parallel_for, where the pool is taken.
void in_a_task() {
  last.works = true;
  heed::parallel_for(heed::thread_count(), [](Index i) {
    if (i == 0) std::exit(1);
    ::usleep(1000);
  });
}
void on_a_worker() {
  last.works = true;
  heed::parallel_for(heed::thread_count(), [](Index i) {
    if (i == 1 || heed::thread_count() == 1) std::exit(1);
    ::usleep(1000000);
  });
}

void in_a_forked_child() {
  last.works = true;
  const pid_t child = ::fork();
  if (child == 0) return;  // and exits
  int status = 0;
  ::waitpid(child, &status, 0);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) end("the child failed");
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 3) end("usage: heed_at_exit WAY THREADS");
  const std::string way = arguments[1];
  std::atexit([] {
    if (last.works) work_again();
  });
  heed::set_thread_count(1);
  expected = new std::vector<double>(work());
  heed::set_thread_count(std::atoi(arguments[2]));
  if (way == "static") last.works = true;
  if (way == "thread_local") in_the_main_threads_destructors();
  if (way == "thread") in_destructors_of_a_thread();
  if (way == "detached") beside_a_detached_thread();
  if (way == "task") in_a_task();
  if (way == "worker") on_a_worker();
  if (way == "fork") in_a_forked_child();
  if (work() != *expected) end("other numbers in main");
  return 1;  // the last destructor makes it 0
}
