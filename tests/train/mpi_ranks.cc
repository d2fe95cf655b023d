// A rank of a job that mpirun starts for mpi_exchange_test:
//   mpi_ranks CASE MARKS MESSAGE_UNITS TIME_LIMIT_MS
// runs a case, whose name is one of those below or "contract". MARKS is a file of zeros. A rank
// whose expectations fail exits with 1.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <thread>

#include "tests/train/exchange_contract.h"
#include "tests/train/rank_buffers.h"
#include "train/ranks/mpi_module.h"

namespace embank::test::mpi_ranks {
namespace {

// The memory that the ranks of a job share: a file of so many marks.
RankMarks* MapMarks(const char* path) {
  const int file = open(path, O_RDWR | O_CLOEXEC);
  const size_t bytes = sizeof(RankMarks) * ExchangeContract().size();
  EXPECT_EQ(lseek(file, 0, SEEK_END), static_cast<off_t>(bytes));
  void* const base = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  EXPECT_NE(base, MAP_FAILED);
  close(file);
  return static_cast<RankMarks*>(base);
}

void Contract(const ContractRank& rank) {
  ContractRank with_marks = rank;
  for (const ExchangeCase& one : ExchangeContract()) {
    one.run(with_marks);
    ++with_marks.marks;
  }
  EXPECT_TRUE(rank.exchange->Barrier().ok());
  if (rank.exchange->rank() == 0) std::printf("%zu cases\n", ExchangeContract().size());
}

Status ExchangeUnits(Exchange* exchange, uint64_t units) {
  return RankBuffers(*exchange, 1, [units](uint32_t, uint32_t) { return units; }).Run(exchange);
}

// Comes after all others are about to, and ends the process or the job by `end`.
template <typename End>
void LastRankEnds(const ContractRank& rank, const End& end) {
  Exchange* const exchange = rank.exchange;
  const uint32_t last = exchange->ranks() - 1;
  EXPECT_TRUE(ExchangeUnits(exchange, 3).ok());
  if (exchange->rank() == last) {
    for (uint32_t other = 0; other < last; ++other) {
      while (rank.marks->of_rank[other] == 0) std::this_thread::yield();
    }
    end();
  }
  rank.marks->of_rank[exchange->rank()] = 1;
  std::printf("rank %u goes on: %s\n", exchange->rank(), exchange->Barrier().ToString().c_str());
}

void Abort(const ContractRank& rank) {
  LastRankEnds(rank, [&] { rank.exchange->Abort("no such file"); });
}

// The last rank aborts on a thread beside the one that waits for the others.
void AbortBesideACall(const ContractRank& rank) {
  if (rank.exchange->rank() != rank.exchange->ranks() - 1) pause();
  std::thread other([&] { rank.exchange->Abort("the loss is not finite"); });
  std::printf("rank goes on: %s\n", rank.exchange->Barrier().ToString().c_str());
  other.join();
}

void Kill(const ContractRank& rank) {
  LastRankEnds(rank, [] { raise(SIGKILL); });
}

// A rank that returns from main, where others wait for it.
void End(const ContractRank& rank) {
  LastRankEnds(rank, [] { _exit(0); });
}

// Ends the job with the status of a call, which the next call says again. The buffers still stand,
// since other ranks may read them.
void RunAndAbort(Exchange* exchange, const UnitsOf& units) {
  RankBuffers buffers(*exchange, 1, units);
  const Status status = buffers.Run(exchange);
  EXPECT_FALSE(status.ok());
  EXPECT_EQ(exchange->Barrier(), status);
  exchange->Abort(status.ToString());
}

// All but the last rank wait for it, which does not come. Small messages are sent at once, others
// wait for their receiver.
void Late(const ContractRank& rank) {
  Exchange* const exchange = rank.exchange;
  if (exchange->rank() == exchange->ranks() - 1) pause();
  RunAndAbort(exchange, [](uint32_t sender, uint32_t) { return sender == 0 ? 1 : 100'000; });
}

// The last rank leaves out a call for which it has nothing, and is one call ahead then.
void SkipsNothing(const ContractRank& rank) {
  Exchange* const exchange = rank.exchange;
  if (exchange->rank() < exchange->ranks() - 1) {
    RunAndAbort(exchange, [](uint32_t, uint32_t) { return 0; });
  }
  ExchangeUnits(exchange, 3).IgnoreError();
  pause();
}

// Rank 1 expects `expected` units of rank 0, which sends `sent`.
void Differ(const ContractRank& rank, uint64_t sent, uint64_t expected) {
  Exchange* const exchange = rank.exchange;
  const UnitsOf units = [&](uint32_t sender, uint32_t receiver) -> uint64_t {
    if (sender != 0 || receiver != 1) return 2;
    return exchange->rank() == 0 ? sent : expected;
  };
  if (exchange->rank() == 1) RunAndAbort(exchange, units);
  RankBuffers buffers(*exchange, 1, units);
  buffers.Run(exchange).IgnoreError();
  pause();
}

void SendsMore(const ContractRank& rank) { Differ(rank, 3, 2); }
void SendsFewer(const ContractRank& rank) { Differ(rank, 2, 3); }
void SendsNone(const ContractRank& rank) { Differ(rank, 0, 3); }
void SendsMoreMessages(const ContractRank& rank) { Differ(rank, 64, 12); }
void SendsFewerMessages(const ContractRank& rank) { Differ(rank, 12, 64); }

int Main(int count, char** arguments) {
  const std::map<std::string, void (*)(const ContractRank&)> cases = {
      {"contract", Contract},
      {"large", SendALargePart},
      {"abort", Abort},
      {"abort_beside_a_call", AbortBesideACall},
      {"kill", Kill},
      {"end", End},
      {"late", Late},
      {"more", SendsMore},
      {"fewer", SendsFewer},
      {"none", SendsNone},
      {"skip", SkipsNothing},
      {"more_messages", SendsMoreMessages},
      {"fewer_messages", SendsFewerMessages},
  };
  if (count != 5 || !cases.contains(arguments[1])) return 2;
  const uint64_t message_units = std::strtoull(arguments[3], nullptr, 10);
  MpiExchangeOptions options;
  options.time_limit_ns = std::strtoull(arguments[4], nullptr, 10) * 1'000'000;
  if (message_units != 0) options.message_bytes_max = message_units * kExchangeUnitBytes;
  const auto exchange = OpenMpiExchange(options);
  if (!exchange.ok()) {
    std::fprintf(stderr, "%s\n", exchange.status().ToString().c_str());
    return 1;
  }
  cases.at(arguments[1])(
      {exchange->get(), MapMarks(arguments[2]), message_units == 0 ? 64 : message_units});
  return testing::UnitTest::GetInstance()->Passed() ? 0 : 1;
}

}  // namespace
}  // namespace embank::test::mpi_ranks

int main(int count, char** arguments) {
  testing::InitGoogleTest(&count, arguments);
  return embank::test::mpi_ranks::Main(count, arguments);
}
