// Common parts of failure and crash trials: the disk that each begins with, and the ways in which a
// crash can leave it.
#ifndef EMBANK_TESTS_SUPPORT_TRIAL_BEGIN_H_
#define EMBANK_TESTS_SUPPORT_TRIAL_BEGIN_H_

#include <memory>

#include "tests/support/simulated_disk.h"
#include "tests/support/store_contents.h"

namespace embank::test {

inline constexpr Persistence kPersistences[] = {Persistence::kNone, Persistence::kAll,
                                                Persistence::kAllButOne, Persistence::kSome,
                                                Persistence::kTorn};

// A closed store's disk, and the contents of its last checkpoint.
struct TrialBegin {
  std::unique_ptr<SimulatedDisk> disk;
  Tables last;

  std::unique_ptr<SimulatedDisk> Copy() const {
    return disk->AfterCrash(disk->changes(), Persistence::kAll, 0);
  }
};

}  // namespace embank::test

#endif  // EMBANK_TESTS_SUPPORT_TRIAL_BEGIN_H_
