// Ranks that are processes under MPI: the contract of exchanges, and how a job ends. Each test is a
// job of mpi_ranks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <string>

#include "base/str_cat.h"
#include "tests/support/scratch_directory.h"
#include "tests/train/exchange_contract.h"
#include "tests/train/mpi_job.h"
#include "tests/train/train_program.h"
#include "train/ranks/mpi_module.h"

namespace embank::test::mpi_exchange_test {
namespace {

using ::testing::HasSubstr;

struct Job {
  uint32_t ranks = 2;
  const char* name = "contract";
  uint64_t message_units = 0;  // 0: the longest messages
  uint64_t time_limit_ms = 15'000;
};

class MpiExchange : public MpiTest {
 protected:
  static Ended Run(const Job& job) {
    const ScratchDirectory directory;
    const std::string marks = directory.path() + "/marks";
    WriteFile(marks, std::string(sizeof(RankMarks) * ExchangeContract().size(), '\0'));
    const char* const program = std::getenv("EMBANK_MPI_RANKS");
    EXPECT_NE(program, nullptr) << "EMBANK_MPI_RANKS must name the program (ctest sets it)";
    if (program == nullptr) return {};
    return RunMpiJob(job.ranks, StrCat(program, " ", job.name, " ", marks, " ", job.message_units,
                                       " ", job.time_limit_ms));
  }

  using Seconds = std::chrono::duration<double>;

  // The time of a job that does nothing: mpirun looks its machine's name up, and a name server that
  // does not answer costs it 5 s each time.
  static Seconds EmptyJob(uint32_t ranks) {
    const auto begin = std::chrono::steady_clock::now();
    EXPECT_EQ(RunMpiJob(ranks, "true").exit_code, 0);
    return std::chrono::steady_clock::now() - begin;
  }

  // Expects that a job fails within 10 s and says `words`.
  static void ExpectToFail(const Job& job, const std::string& words) {
    const Seconds empty = EmptyJob(job.ranks);
    const auto begin = std::chrono::steady_clock::now();
    const Ended ended = Run(job);
    const Seconds taken = std::chrono::steady_clock::now() - begin;
    EXPECT_NE(ended.exit_code, 0);
    EXPECT_THAT(ended.output, HasSubstr(words));
    EXPECT_THAT(ended.output, testing::Not(HasSubstr("goes on")));
    EXPECT_LT(taken.count(), 10.0 + 2 * empty.count()) << ended.output;
  }
};

TEST_F(MpiExchange, KeepsTheContract) {
  for (const uint32_t ranks : {1, 2, 3, 4}) {
    const Ended ended = Run({.ranks = ranks});
    ASSERT_EQ(ended.exit_code, 0) << ended.output;
    EXPECT_THAT(ended.output, HasSubstr(StrCat(ExchangeContract().size(), " cases")));
  }
}

TEST_F(MpiExchange, KeepsTheContractWithPartsInSeveralMessages) {
  for (const uint32_t ranks : {2, 4}) {
    const Ended ended = Run({.ranks = ranks, .message_units = 64});
    ASSERT_EQ(ended.exit_code, 0) << ended.output;
  }
  const Ended ended = Run({.ranks = 3, .message_units = 1});
  EXPECT_EQ(ended.exit_code, 0) << ended.output;
}

TEST_F(MpiExchange, SendsMoreThan2To31Bytes) {
  for (const uint64_t message_units : {0, 1 << 20}) {
    const Ended ended = Run({.name = "large", .message_units = message_units});
    EXPECT_EQ(ended.exit_code, 0) << ended.output;
  }
}

TEST_F(MpiExchange, AnAbortEndsTheJobWithItsReason) {
  ExpectToFail({.ranks = 2, .name = "abort"}, "rank 1: no such file\n");
  ExpectToFail({.ranks = 4, .name = "abort"}, "rank 3: no such file\n");
  ExpectToFail({.name = "abort_beside_a_call"}, "rank 1: the loss is not finite\n");
}

TEST_F(MpiExchange, ARankThatIsGoneEndsTheJob) {
  ExpectToFail({.ranks = 2, .name = "kill"}, "signal 9");
  ExpectToFail({.ranks = 4, .name = "kill"}, "signal 9");
  ExpectToFail({.ranks = 3, .name = "end"}, "rank");
}

TEST_F(MpiExchange, NamesTheRankThatDoesNotComeInTime) {
  ExpectToFail({.ranks = 2, .name = "late", .time_limit_ms = 300},
               "rank 0: UNAVAILABLE: rank 0 waited 0.3 s for rank 1\n");
  ExpectToFail({.ranks = 4, .name = "late", .time_limit_ms = 300}, " waited 0.3 s for rank 3\n");
}

TEST_F(MpiExchange, RefusesAPartOfOneSizeHereAndAnotherThere) {
  ExpectToFail({.ranks = 3, .name = "more"},
               "INTERNAL: rank 0 sends more than 32 bytes to rank 1, which expects 32\n");
  ExpectToFail({.ranks = 3, .name = "fewer"},
               "INTERNAL: rank 0 sends 32 bytes to rank 1, which expects 48\n");
  ExpectToFail({.ranks = 2, .name = "none"},
               "INTERNAL: rank 0 sends 0 bytes to rank 1, which expects 48\n");
  ExpectToFail({.ranks = 2, .name = "skip"},
               "INTERNAL: rank 1 sends more than 0 bytes to rank 0, which expects 0\n");
  ExpectToFail({.ranks = 2, .name = "more_messages", .message_units = 4},
               "INTERNAL: rank 0 sends more than 192 bytes to rank 1, which expects 192\n");
  // The missing messages do not come: it is seen at the time limit.
  ExpectToFail({.ranks = 2, .name = "fewer_messages", .message_units = 4, .time_limit_ms = 300},
               "INTERNAL: rank 0 sends 192 bytes to rank 1, which expects 1024\n");
}

}  // namespace
}  // namespace embank::test::mpi_exchange_test
