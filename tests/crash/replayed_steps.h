// Operations on one table that follow from a seed and their number alone: the number of finished
// operations determines the contents of the table.
#ifndef EMBANK_TESTS_CRASH_REPLAYED_STEPS_H_
#define EMBANK_TESTS_CRASH_REPLAYED_STEPS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "bindings/c/embank.h"
#include "tests/support/oracle.h"

namespace embank::test {

// Memory has space for 2,000 of them.
inline constexpr uint64_t kReplayedKeys = 6000;
inline constexpr char kReplayedTable[] = "t";
embank_store_options ReplayedStoreOptions(uint64_t seed);
embank_table_options ReplayedTableOptions();

// Steps are numbered from 1.
class ReplayedSteps {
 public:
  explicit ReplayedSteps(uint64_t seed) : seed_(seed) {}

  // Does a step to the oracle, and to the store's table if there is one; "" or what differs.
  std::string Do(uint64_t step, oracle::Table* oracle, embank_table* table) const;
  // Whether a checkpoint follows a step.
  bool HasCheckpoint(uint64_t step) const;
  // The first step behind another that has one.
  uint64_t NextCheckpoint(uint64_t step) const;
  // The caller's bytes of a checkpoint: its number and step, and random bytes.
  std::vector<uint64_t> Blob(uint64_t sequence, uint64_t step) const;

 private:
  const uint64_t seed_;
};

}  // namespace embank::test

#endif  // EMBANK_TESTS_CRASH_REPLAYED_STEPS_H_
