// SPDX-License-Identifier: MIT
// The tests of every rank: `mpiexec -n 3 heed_test_ranks`. All ranks run the same tests in the same
// order; the program fails where one of them does.
#include "distributed/ranks.hpp"

namespace heed::test {
namespace {

TEST(Communicator, MovesViewsOfAnyStrides) {
  const Communicator& ranks = *world();
  const Index me = ranks.rank(), size = ranks.size();
  Tensor<float, 2> values({3, 4});
  for (Index i = 0; i < 12; ++i) values.data()[i] = static_cast<float>(100 * me + i);
  Tensor<float, 2> got({4, 3});
  const auto column_major = got.view().permute({1, 0});
  if (size > 1) {
    const Index next = (me + 1) % size, before = (me + size - 1) % size;
    if (me % 2 == 0) ranks.send(values, next, 5);
    ranks.receive(column_major, before, before % 2 == 0 ? 5 : 6);
    if (me % 2 == 1) ranks.send(values, next, 6);
    EXPECT_EQ(got(3, 1), static_cast<float>(100 * before + 7));
  }
  Tensor<double, 3> all({size, 2, 2});
  Tensor<double, 2> mine({2, 2});
  mine.fill(static_cast<double>(me));
  ranks.all_gather(mine, all);
  for (Index rank = 0; rank < size; ++rank) {
    EXPECT_EQ(all(rank, 1, 0), static_cast<double>(rank));
  }
  Tensor<Index, 1> told({2});
  if (me == size - 1) told(1) = 42;
  ranks.broadcast(told.view().reverse(0), size - 1);
  EXPECT_EQ(told(1), 42);
  ranks.barrier();
}

/// In parts of 4 numbers here, as exchanges of more numbers than an int counts.
TEST(Communicator, ExchangesLongRunsInParts) {
  const Communicator& all = *world();
  const auto ranks = static_cast<std::size_t>(all.size());
  constexpr Index numbers = 11;
  const auto value = [](Index from, Index to, Index i) {
    return static_cast<float>(1000 * from + 100 * to + i);
  };
  Tensor<float, 2> leaving({all.size(), numbers}), arrived({all.size(), numbers});
  std::vector<detail::NumberRuns> sent(ranks), received(ranks);
  for (Index rank = 0; rank < all.size(); ++rank) {
    for (Index i = 0; i < numbers; ++i) leaving(rank, i) = value(all.rank(), rank, i);
    const auto at = static_cast<std::size_t>(rank);
    sent[at] = {detail::NumberRun::of(&leaving(rank, 0), numbers - 3),
                detail::NumberRun::of(&leaving(rank, numbers - 3), 3)};
    received[at] = {detail::NumberRun::of(&arrived(rank, 0), numbers)};
  }
  detail::exchange(all, sent, received, 4);
  for (Index rank = 0; rank < all.size(); ++rank) {
    for (Index i = 0; i < numbers; ++i) EXPECT_EQ(arrived(rank, i), value(rank, all.rank(), i));
  }
  EXPECT_EQ(detail::NumberRun::of(leaving.data(), Index{3} << 31).count, Index{3} << 31);
}

TEST(Communicator, SplitsIntoRowsAndColumns) {
  const Communicator& ranks = *world();
  const Communicator part = ranks.split(ranks.rank() % 2, ranks.size() - ranks.rank());
  EXPECT_EQ(part.size(), (ranks.size() + 1 - ranks.rank() % 2) / 2);
  Tensor<Index, 1> first({Index{1}});
  first(0) = ranks.rank();
  part.broadcast(first, 0);
  EXPECT_GE(first(0), ranks.rank()) << "the key turned the order around";
  EXPECT_THROW(static_cast<void>(ranks.split(-1)), InvalidArgument);
}

TEST(Communicator, FaultsOfMpiAreErrorsAndNameTheRank) {
  const Communicator ranks = *world();
  Tensor<float, 1> two({Index{2}}), one({Index{1}}), three({Index{3}});
  const std::string sent = refusal([&] { ranks.send(two, ranks.size() + 3); });
  EXPECT_NE(sent.find("MPI_Send to rank " + std::to_string(ranks.size() + 3) + ": "),
            std::string::npos)
      << sent;
  EXPECT_THROW(ranks.receive(two, ranks.size()), CommunicationError);
  EXPECT_THROW(ranks.send(two, 0, -1), InvalidArgument);
  Tensor<float, 2> all({ranks.size(), 5});
  EXPECT_THROW(ranks.all_gather(two, all), ShapeError);
  if (ranks.size() == 1) return;
  if (ranks.rank() == 0) {
    ranks.send(two, 1);
    ranks.send(two, 1);
  } else if (ranks.rank() == 1) {
    EXPECT_EQ(refusal([&] { ranks.receive(three, 0); }),
              "receive: rank 0 sent 2 values, expected 3");
    EXPECT_THROW(ranks.receive(one, 0), CommunicationError);
  }
}

TEST(Agreement, NamesWhatIsDifferentOnEveryRank) {
  const Communicator& ranks = *world();
  Agreement same("a call");
  same.add("seed", 7, '/', 8);
  same.check(ranks);
  if (ranks.size() == 1) return;
  Agreement other("a call");
  other.add("shape", Extents<2>{2, 3});
  other.add("seed", ranks.rank() == 1 ? 6 : 7);
  EXPECT_EQ(refusal([&] { other.check(ranks); }), "a call: rank 1 brings seed 6, rank 0 seed 7");
  Agreement fewer("a call");
  if (ranks.rank() != 1) fewer.add("seed", 7);
  EXPECT_EQ(refusal([&] { fewer.check(ranks); }), "a call: rank 1 makes another call than rank 0");
  Agreement refused("a call");
  refused.add("seed", 7);
  if (ranks.rank() + 1 == ranks.size()) refused.refuse("no memory");
  EXPECT_EQ(refusal([&] { refused.check(ranks); }),
            "a call: rank " + std::to_string(ranks.size() - 1) + ": no memory");
}

}  // namespace

/// Says what failed on a rank other than 0.
class FailuresAlone : public testing::EmptyTestEventListener {
  void OnTestPartResult(const testing::TestPartResult& result) override {
    if (!result.failed()) return;
    std::printf("rank %td: %s:%d\n%s\n", world()->rank(), result.file_name(), result.line_number(),
                result.message());
  }
};

}  // namespace heed::test

// Of the leak sanitizer, where the program is linked with it. What MPI allocates as it begins is
// left out: some of its plugins are unloaded at once and have no names any more. The rest is
// checked while MPI is still there, and so are its names. What C's functions allocate is also
// MPI's.
extern "C" [[gnu::weak]] void __lsan_disable();
extern "C" [[gnu::weak]] void __lsan_enable();
extern "C" [[gnu::weak]] int __lsan_do_recoverable_leak_check();
extern "C" const char* __lsan_default_suppressions() {
  return "leak:libmpi\nleak:libopen-\nleak:libevent\nleak:libhwloc\nleak:libpmix\nleak:mca_\n"
         "leak:vasprintf\nleak:strdup\n";
}

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  if (__lsan_disable != nullptr) __lsan_disable();
  return heed::run_ranks(argc, argv, [](const heed::Communicator& all) {
    if (__lsan_enable != nullptr) __lsan_enable();
    heed::test::world() = &all;
    if (all.rank() != 0) {
      auto& listeners = testing::UnitTest::GetInstance()->listeners();
      delete listeners.Release(listeners.default_result_printer());
      listeners.Append(new heed::test::FailuresAlone);
    }
    heed::Index mine = RUN_ALL_TESTS();
    if (__lsan_do_recoverable_leak_check != nullptr && __lsan_do_recoverable_leak_check() != 0) {
      ++mine;
    }
    heed::Tensor<heed::Index, 1> failed({heed::Index{1}});
    failed(0) = mine;
    heed::Tensor<heed::Index, 2> all_failed({all.size(), 1});
    all.all_gather(failed, all_failed);
    int status = 0;
    for (const heed::Index each : all_failed) status = each != 0 ? 1 : status;
    return status;
  });
}
