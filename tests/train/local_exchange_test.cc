// Ranks that are threads of one process: the contract of exchanges, and how calls fail.
#include "train/ranks/local_exchange.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "base/str_cat.h"
#include "tests/support/manual_clock.h"
#include "tests/support/threads.h"
#include "tests/train/exchange_contract.h"
#include "tests/train/rank_buffers.h"

namespace embank::test::local_exchange_test {
namespace {

using ::testing::ElementsAre;

using Exchanges = std::vector<std::unique_ptr<Exchange>>;

// A message for a hang in place of ctest's limit.
const LocalExchangeOptions kLimit = {.time_limit_ns = 20'000'000'000};

Exchanges DuplicatesOf(const Exchanges& exchanges) {
  Exchanges duplicates;
  for (const std::unique_ptr<Exchange>& exchange : exchanges) {
    duplicates.push_back(exchange->Duplicate());
  }
  return duplicates;
}

// The statuses of all ranks' calls, in the order of ranks.
template <typename Call>
std::vector<std::string> StatusesOf(const Exchanges& exchanges, const Call& call) {
  std::vector<std::string> statuses(exchanges.size());
  OnThreads(exchanges.size(),
            [&](uint64_t rank) { statuses[rank] = call(exchanges[rank].get()).ToString(); });
  return statuses;
}

Status ExchangeOneUnit(Exchange* exchange) {
  return RankBuffers(*exchange, 1, [](uint32_t, uint32_t) { return 1; }).Run(exchange);
}

class LocalExchangeContract : public testing::TestWithParam<std::tuple<ExchangeCase, uint32_t>> {};

TEST_P(LocalExchangeContract, IsKept) {
  const ExchangeCase& one = std::get<0>(GetParam());
  const uint32_t ranks = std::get<1>(GetParam());
  const Exchanges exchanges = MakeLocalExchanges(ranks, kLimit);
  RankMarks marks = {};
  OnThreads(ranks, [&](uint64_t rank) { one.run({exchanges[rank].get(), &marks, 64}); });
}

INSTANTIATE_TEST_SUITE_P(Threads, LocalExchangeContract,
                         testing::Combine(testing::ValuesIn(ExchangeContract().begin(),
                                                            ExchangeContract().end()),
                                          testing::Values(1, 2, 3, 4, 8)),
                         [](const auto& param) {
                           return StrCat(std::get<0>(param.param).name, "Of",
                                         std::get<1>(param.param));
                         });

TEST(LocalExchange, SendsMoreThan2To31Bytes) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "ThreadSanitizer has four bytes of its own for each byte";
#endif
  const Exchanges exchanges = MakeLocalExchanges(2, kLimit);
  OnThreads(2, [&](uint64_t rank) { SendALargePart({exchanges[rank].get(), nullptr, 0}); });
}

TEST(LocalExchange, AnAbortFailsCallsThatWaitAndLaterOnes) {
  const Exchanges exchanges = MakeLocalExchanges(4, kLimit);
  std::atomic<uint32_t> coming = 0;
  const auto statuses = StatusesOf(exchanges, [&](Exchange* exchange) {
    if (exchange->rank() != 2) {
      ++coming;
      return exchange->rank() == 0 ? exchange->Barrier() : ExchangeOneUnit(exchange);
    }
    while (coming < 3) std::this_thread::yield();
    exchange->Abort("no such file");
    exchange->Abort("a second reason");
    return exchange->Barrier();
  });
  const std::string expected = "CANCELLED: rank 2: no such file";
  EXPECT_THAT(statuses, ElementsAre(expected, expected, expected, expected));
  EXPECT_THAT(StatusesOf(exchanges, ExchangeOneUnit),
              ElementsAre(expected, expected, expected, expected));
}

TEST(LocalExchange, AnAbortEndsTheDuplicatesAndTheOriginal) {
  for (const bool of_duplicate : {false, true}) {
    const Exchanges exchanges = MakeLocalExchanges(2, kLimit);
    const Exchanges duplicates = DuplicatesOf(exchanges);
    (of_duplicate ? duplicates : exchanges)[1]->Abort("no disk");
    for (Exchange* const exchange : {exchanges[0].get(), duplicates[0].get()}) {
      EXPECT_EQ(exchange->Barrier(), CancelledError("rank 1: no disk"));
    }
    // One that is made afterwards, too.
    EXPECT_EQ(exchanges[0]->Duplicate()->Barrier(), CancelledError("rank 1: no disk"));
  }
}

TEST(LocalExchange, AnAbortReachesTheCallOfItsOwnRankFromAnotherThread) {
  const Exchanges exchanges = MakeLocalExchanges(2, kLimit);
  std::thread other([&] { exchanges[0]->Abort("the loss is not finite"); });
  EXPECT_EQ(exchanges[0]->Barrier().ToString(), "CANCELLED: rank 0: the loss is not finite");
  other.join();
}

TEST(LocalExchange, CallsFailOnceARankHasEnded) {
  Exchanges exchanges = MakeLocalExchanges(3, kLimit);
  OnThreads(3, [&](uint64_t rank) {
    EXPECT_TRUE(ExchangeOneUnit(exchanges[rank].get()).ok());
    if (rank == 1) {
      exchanges[rank].reset();
    } else {
      EXPECT_EQ(exchanges[rank]->Barrier().ToString(), "CANCELLED: rank 1: the rank ended");
    }
  });
}

TEST(LocalExchange, RanksMayEndBehindACallThatOthersAreStillIn) {
  for (int round = 0; round < 300; ++round) {
    Exchanges exchanges = MakeLocalExchanges(3, kLimit);
    OnThreads(3, [&](uint64_t rank) {
      const std::unique_ptr<Exchange> exchange = std::move(exchanges[rank]);
      const Status status = round % 2 == 0 ? ExchangeOneUnit(exchange.get()) : exchange->Barrier();
      EXPECT_TRUE(status.ok()) << status;
    });
  }
}

TEST(LocalExchange, NamesTheRanksThatDoNotComeInTime) {
  const ManualClock clock(/*tick_ns=*/61'000'000'000);
  const Exchanges exchanges = MakeLocalExchanges(3, {.clock = &clock});
  const std::string expected = "UNAVAILABLE: rank 1 waited 60 s for ranks 0, 2";
  EXPECT_EQ(ExchangeOneUnit(exchanges[1].get()).ToString(), expected);
  EXPECT_EQ(exchanges[0]->Barrier().ToString(), expected) << "it comes too late";
  EXPECT_EQ(exchanges[1]->Barrier().ToString(), expected);
}

TEST(LocalExchange, AllWhoWaitFailAtTheTimeLimit) {
  const Exchanges exchanges = MakeLocalExchanges(3, {.time_limit_ns = 20'000'000});
  const auto statuses = StatusesOf(exchanges, [](Exchange* exchange) {
    return exchange->rank() == 1 ? OkStatus() : exchange->Barrier();
  });
  EXPECT_THAT(statuses[0], testing::EndsWith(" waited 0.02 s for rank 1"));
  EXPECT_EQ(statuses[2], statuses[0]);
}

TEST(LocalExchange, RefusesAPartOfOneSizeHereAndAnotherThere) {
  const Exchanges exchanges = MakeLocalExchanges(3, kLimit);
  const auto statuses = StatusesOf(exchanges, [](Exchange* exchange) {
    const uint32_t rank = exchange->rank();
    // Rank 2 expects two units of rank 0, which sends three.
    return RankBuffers(*exchange, 1,
                       [rank](uint32_t sender, uint32_t receiver) {
                         return sender != 0 || receiver != 2 ? 1 : rank == 2 ? 2 : 3;
                       })
        .Run(exchange);
  });
  const std::string expected = "INTERNAL: rank 0 sends 48 bytes to rank 2, which expects 32";
  EXPECT_THAT(statuses, ElementsAre(expected, expected, expected));
}

// With the limit of time, a message comes in place of a hang.
TEST(LocalExchange, ARankThatSendsNothingComesToo) {
  const Exchanges exchanges = MakeLocalExchanges(2, {.time_limit_ns = 5'000'000'000});
  const auto statuses = StatusesOf(exchanges, [](Exchange* exchange) {
    RankBuffers buffers(*exchange, 1,
                        [](uint32_t sender, uint32_t) { return sender == 1 ? 0 : 2; });
    const Status status = buffers.Run(exchange);
    EXPECT_TRUE(!status.ok() || buffers.Wrong().empty()) << buffers.Wrong();
    return status;
  });
  EXPECT_THAT(statuses, ElementsAre("OK", "OK"));
}

TEST(LocalExchange, RefusesABarrierBesideAnExchange) {
  const Exchanges exchanges = MakeLocalExchanges(2, kLimit);
  const auto statuses = StatusesOf(exchanges, [](Exchange* exchange) {
    return exchange->rank() == 0 ? exchange->Barrier() : ExchangeOneUnit(exchange);
  });
  EXPECT_EQ(statuses[0], statuses[1]);
  EXPECT_THAT(statuses[0], testing::StartsWith("INTERNAL: rank "));
}

TEST(LocalExchange, StopsAtPartsThatAreNoUnits) {
  const Exchanges exchanges = MakeLocalExchanges(1);
  alignas(kExchangeUnitBytes) std::array<uint64_t, 8> buffer = {};
  auto* const bytes = reinterpret_cast<std::byte*>(buffer.data());
  const std::vector<ExchangePart> right = {{0, 16}}, short_part = {{0, 8}}, odd = {{8, 16}};
  const auto run = [&](std::span<const ExchangePart> from, std::span<const ExchangePart> to) {
    exchanges[0]->Run({bytes, from}, {bytes, to}).IgnoreError();
  };
  EXPECT_DEATH(run(short_part, right), "broken");
  EXPECT_DEATH(run(right, odd), "broken");
  EXPECT_DEATH(run({}, {}), "broken");
}

}  // namespace
}  // namespace embank::test::local_exchange_test
