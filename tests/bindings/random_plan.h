// The plan of one seed of the random operations suite: a store, a universe of keys, a subset of the
// verbs, and the kinds of tables. Subsets matter: a suite that always does everything never fills a
// table without erasing, and never ages a row without touching it.
#ifndef EMBANK_TESTS_BINDINGS_RANDOM_PLAN_H_
#define EMBANK_TESTS_BINDINGS_RANDOM_PLAN_H_

#include <cstdint>
#include <vector>

#include "bindings/c/embank.h"
#include "tests/support/random.h"

namespace embank::test {

enum class Verb {
  kLookup,
  kUpsert,
  kGradients,
  kBadGradients,
  kErase,
  kContains,
  kGetState,
  kSetState,
  kGetHeat,
  kLearningRate,
  kScan,
  kOpenScan,
  kContinueScan,
  kDrop,
  kCheckpoint,
  kStartCheckpoint,
  kFinishCheckpoint,
  kReopen,
  kPrefetch,
  kFlushHot,
  kUpsertFull,
  kScanFull,
  kSetOptions,
};

struct Plan {
  uint64_t seed = 0;
  embank_store_options store = {};
  std::vector<Verb> verbs;     // one is drawn per step; frequent ones stand in it several times
  std::vector<uint64_t> keys;  // the universe
  uint64_t tables = 1;
  uint64_t steps = 0;
  uint64_t batch_max = 0;  // positions
  uint64_t batch_elements_max = 0;
  bool tight = false;    // the budget will be used up
  bool hot = false;      // lookups enough to age the heat
  bool on_disk = false;  // more rows than memory has space for, checkpoints, crashes
  bool reopens_early =
      false;  // on disk: the first step opens the store again, without a checkpoint
  // On disk: few bytes, one thread, and every checkpoint is kept, for all crashes of the disk.
  bool crashes = false;
};

Plan MakePlan(uint64_t seed);
// The plan of a workload with a few hundred changes of the disk: evictions, compaction,
// checkpoints, drops.
Plan MakeCrashPlan(uint64_t seed);

// The options of a table for this plan, all of them legal.
embank_table_options RandomTableOptions(const Plan& plan, Random* random);

// A learning rate that is legal for the optimizer.
// Limits of gradients, penalties and rounding that the table's type and optimizer allow.
void RandomRule(Random* random, embank_table_options* options);
float RandomLearningRate(int32_t optimizer, Random* random);

}  // namespace embank::test

#endif  // EMBANK_TESTS_BINDINGS_RANDOM_PLAN_H_
