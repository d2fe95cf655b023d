#include "tests/train/exchange_contract.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include "base/hash.h"
#include "tests/support/random.h"
#include "tests/train/rank_buffers.h"

namespace embank::test {
namespace {

// One call with parts of these sizes, which must succeed.
void ExchangeUnits(const ContractRank& rank, uint64_t round, const UnitsOf& units) {
  RankBuffers buffers(*rank.exchange, round, units);
  const Status status = buffers.Run(rank.exchange);
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(buffers.Wrong(), "");
}

void SendsPartsOfUnevenSizes(const ContractRank& rank) {
  ExchangeUnits(rank, 1,
                [](uint32_t sender, uint32_t receiver) { return 1 + sender * 17 + receiver * 5; });
  ExchangeUnits(rank, 2, [](uint32_t sender, uint32_t receiver) {
    return uint64_t{1} << (sender * 7 + receiver * 3) % 13;
  });
}

void SendsNothing(const ContractRank& rank) {
  for (uint64_t round = 0; round < 3; ++round) {
    ExchangeUnits(rank, round, [](uint32_t, uint32_t) { return 0; });
  }
  const std::vector<ExchangePart> parts(rank.exchange->ranks());
  const Status status = rank.exchange->Run({nullptr, parts}, {nullptr, parts});
  EXPECT_TRUE(status.ok()) << status;
}

void SendsNothingFromOrToARank(const ContractRank& rank) {
  for (uint32_t empty = 0; empty < rank.exchange->ranks(); ++empty) {
    ExchangeUnits(rank, empty, [empty](uint32_t sender, uint32_t receiver) {
      return sender == empty ? 0 : 3 + receiver;
    });
    ExchangeUnits(rank, 100 + empty, [empty](uint32_t sender, uint32_t receiver) {
      return receiver == empty ? 0 : 3 + sender;
    });
  }
}

void SendsOnePartAlone(const ContractRank& rank) {
  const uint32_t ranks = rank.exchange->ranks();
  for (uint32_t pair = 0; pair < ranks * ranks; ++pair) {
    ExchangeUnits(rank, pair, [pair, ranks](uint32_t sender, uint32_t receiver) {
      return sender * ranks + receiver == pair ? 5 : 0;
    });
  }
}

// The bytes around the largest message.
void SendsPartsAboutAsLongAsAMessage(const ContractRank& rank) {
  const uint64_t units = rank.message_units;
  const uint64_t sizes[] = {units - 1, units, units + 1, 2 * units, 3 * units - 1, 0};
  for (uint64_t round = 0; round < std::size(sizes); ++round) {
    ExchangeUnits(rank, round, [&](uint32_t sender, uint32_t receiver) {
      return sizes[(round + sender + 2 * receiver) % std::size(sizes)];
    });
  }
}

void SendsTheSameBytesToAll(const ContractRank& rank) {
  constexpr uint64_t kUnits = 9;
  const uint32_t ranks = rank.exchange->ranks();
  std::vector<std::array<uint64_t, 2>> sent(kUnits), received(kUnits * ranks + 1);
  for (uint64_t at = 0; at < kUnits; ++at) sent[at] = {rank.exchange->rank(), at};
  std::vector<ExchangePart> from(ranks, {0, kUnits * kExchangeUnitBytes}), to;
  for (uint64_t peer = 0; peer < ranks; ++peer) {
    to.push_back({peer * kUnits * kExchangeUnitBytes, kUnits * kExchangeUnitBytes});
  }
  // A vector's memory is aligned to the unit.
  const Status status = rank.exchange->Run({reinterpret_cast<std::byte*>(sent.data()), from},
                                           {reinterpret_cast<std::byte*>(received.data()), to});
  EXPECT_TRUE(status.ok()) << status;
  for (uint64_t at = 0; at < kUnits * ranks; ++at) {
    EXPECT_EQ(received[at][0], at / kUnits);
    EXPECT_EQ(received[at][1], at % kUnits);
  }
}

// Some work of about 2 ns for each step.
void Work(uint64_t steps) {
  uint64_t x = 1;
  for (uint64_t i = 0; i < steps; ++i) x = Mix(x);
  EXPECT_NE(x, 0u);
}

// Each rank is late once: it comes after all others said that they do, and a while after.
void WaitsForALateRank(const ContractRank& rank) {
  const uint32_t ranks = rank.exchange->ranks();
  std::array<std::atomic<uint64_t>, 16>& marks = rank.marks->of_rank;
  for (uint32_t late = 0; late < ranks; ++late) {
    // A mark is the number of calls to which its rank has come.
    if (rank.exchange->rank() == late) {
      for (uint32_t other = 0; other < ranks; ++other) {
        while (other != late && marks[other] < late + 1) std::this_thread::yield();
      }
      Work(3'000'000);
    }
    marks[rank.exchange->rank()] = late + 1;
    ExchangeUnits(rank, late,
                  [](uint32_t sender, uint32_t receiver) { return (sender + receiver) % 3; });
    EXPECT_EQ(marks[late], late + 1) << "a call ended before rank " << late << " came";
    // A rank that is not late must not be ahead by a call, or its mark would say too much.
    EXPECT_TRUE(rank.exchange->Barrier().ok());
  }
}

void BarrierWaitsForAll(const ContractRank& rank) {
  const uint32_t ranks = rank.exchange->ranks();
  for (uint64_t round = 1; round <= 100; ++round) {
    // Another rank is last each time.
    if (round % ranks == rank.exchange->rank()) Work(20'000);
    rank.marks->of_rank[rank.exchange->rank()] = round;
    const Status status = rank.exchange->Barrier();
    EXPECT_TRUE(status.ok()) << status;
    for (uint32_t other = 0; other < ranks; ++other) {
      EXPECT_GE(rank.marks->of_rank[other], round) << "rank " << other;
    }
  }
}

// Sizes of all scales, and calls of both kinds.
void SendsWhatARandomModelSays(const ContractRank& rank) {
  for (uint64_t round = 0; round < 150; ++round) {
    const auto units = [round](uint32_t sender, uint32_t receiver) -> uint64_t {
      Random random(Mix(round << 16 | sender << 8 | receiver));
      if (random.OneIn(4)) return 0;
      return random.Below(uint64_t{1} << random.Below(round % 30 == 0 ? 15 : 8)) + 1;
    };
    ExchangeUnits(rank, round, units);
    if (Mix(round) % 3 != 0) continue;
    EXPECT_TRUE(rank.exchange->Barrier().ok());
  }
}

// The first rank waits in a call of the duplicate, and meanwhile all ranks make calls of the
// exchange itself.
void DuplicatesHaveAnOrderOfTheirOwn(const ContractRank& rank) {
  const std::unique_ptr<Exchange> duplicate = rank.exchange->Duplicate();
  EXPECT_EQ(duplicate->rank(), rank.exchange->rank());
  EXPECT_EQ(duplicate->ranks(), rank.exchange->ranks());
  const auto run = [&](Exchange* exchange, uint64_t round) {
    ExchangeUnits({exchange, rank.marks, rank.message_units}, round,
                  [](uint32_t sender, uint32_t receiver) { return 1 + sender + 2 * receiver; });
  };
  std::thread waiting;
  if (rank.exchange->rank() == 0) waiting = std::thread([&] { run(duplicate.get(), 100); });
  for (uint64_t round = 0; round < 20; ++round) run(rank.exchange, round);
  if (waiting.joinable()) {
    waiting.join();
  } else {
    run(duplicate.get(), 100);
  }
}

constexpr ExchangeCase kCases[] = {
    {"SendsPartsOfUnevenSizes", SendsPartsOfUnevenSizes},
    {"SendsNothing", SendsNothing},
    {"SendsNothingFromOrToARank", SendsNothingFromOrToARank},
    {"SendsOnePartAlone", SendsOnePartAlone},
    {"SendsPartsAboutAsLongAsAMessage", SendsPartsAboutAsLongAsAMessage},
    {"SendsTheSameBytesToAll", SendsTheSameBytesToAll},
    {"WaitsForALateRank", WaitsForALateRank},
    {"BarrierWaitsForAll", BarrierWaitsForAll},
    {"DuplicatesHaveAnOrderOfTheirOwn", DuplicatesHaveAnOrderOfTheirOwn},
    {"SendsWhatARandomModelSays", SendsWhatARandomModelSays},
};

// A range of addresses that shows the same memory again and again, so that it takes none of its
// size.
class RepeatedMemory {
 public:
  RepeatedMemory(uint64_t bytes, uint64_t period_bytes) : bytes_(bytes) {
    const int file = memfd_create("repeated", 0);
    EXPECT_EQ(ftruncate(file, static_cast<off_t>(period_bytes)), 0);
    base_ = static_cast<std::byte*>(
        mmap(nullptr, bytes_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
    for (uint64_t at = 0; at < bytes_; at += period_bytes) {
      EXPECT_NE(mmap(base_ + at, std::min(period_bytes, bytes_ - at), PROT_READ | PROT_WRITE,
                     MAP_SHARED | MAP_FIXED, file, 0),
                MAP_FAILED);
    }
    close(file);
  }
  ~RepeatedMemory() { munmap(base_, bytes_); }
  RepeatedMemory(const RepeatedMemory&) = delete;
  RepeatedMemory& operator=(const RepeatedMemory&) = delete;

  std::byte* base() const { return base_; }

 private:
  const uint64_t bytes_;
  std::byte* base_;
};

}  // namespace

std::span<const ExchangeCase> ExchangeContract() { return kCases; }

void SendALargePart(const ContractRank& rank) {
  // The periods differ by 4 KiB: the memory of the receiver ends with the last bytes of the part,
  // and those of any other place of it are others.
  constexpr uint64_t kBytes = (uint64_t{1} << 31) + (3 << 20) + kExchangeUnitBytes;
  constexpr uint64_t kSentPeriod = 64 << 20;
  constexpr uint64_t kReceivedPeriod = kSentPeriod + 4096;
  const uint32_t last = rank.exchange->ranks() - 1;
  const RepeatedMemory sent(kBytes, kSentPeriod);
  const RepeatedMemory received(kBytes, kReceivedPeriod);
  for (uint64_t at = 0; at < kSentPeriod; at += sizeof(uint64_t)) {
    const uint64_t word = Mix(at);
    std::memcpy(sent.base() + at, &word, sizeof(word));
  }
  std::vector<ExchangePart> from(last + 1), to(last + 1);
  if (rank.exchange->rank() == 0) from[last].bytes = kBytes;
  if (rank.exchange->rank() == last) to[0].bytes = kBytes;
  const Status status = rank.exchange->Run({sent.base(), from}, {received.base(), to});
  EXPECT_TRUE(status.ok()) << status;
  if (rank.exchange->rank() != last) return;
  uint64_t wrong = 0;
  for (uint64_t at = kBytes - kReceivedPeriod; at < kBytes; at += sizeof(uint64_t)) {
    uint64_t word = 0;
    std::memcpy(&word, received.base() + at, sizeof(word));
    wrong += word != Mix(at % kSentPeriod) ? 1 : 0;
  }
  EXPECT_EQ(wrong, 0u);
}

}  // namespace embank::test
