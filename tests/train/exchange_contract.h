// The promises of an exchange, as cases that every implementation runs: local_exchange_test on
// threads, mpi_exchange_test in processes.
#ifndef EMBANK_TESTS_TRAIN_EXCHANGE_CONTRACT_H_
#define EMBANK_TESTS_TRAIN_EXCHANGE_CONTRACT_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <span>

#include "train/ranks/exchange.h"

namespace embank::test {

// Memory that all ranks of a case share, beside the exchange; zeros at first.
struct RankMarks {
  std::array<std::atomic<uint64_t>, 16> of_rank;
};

struct ContractRank {
  Exchange* exchange;
  RankMarks* marks;
  // About the size of parts that go in several messages.
  uint64_t message_units;
};

// All ranks call `run` at once. Failures are gtest's.
struct ExchangeCase {
  const char* name;
  void (*run)(const ContractRank& rank);
};

std::span<const ExchangeCase> ExchangeContract();

// One more case: the first rank sends more than 2^31 bytes to the last one. Takes 128 MiB of memory
// for each rank.
void SendALargePart(const ContractRank& rank);

}  // namespace embank::test

#endif  // EMBANK_TESTS_TRAIN_EXCHANGE_CONTRACT_H_
