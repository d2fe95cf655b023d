// All crashes of a workload: what one may have left at each change of the disk, opened, compared
// with the checkpoints, and crashed again while it was opened.
#ifndef EMBANK_TESTS_BINDINGS_CRASH_IMAGES_H_
#define EMBANK_TESTS_BINDINGS_CRASH_IMAGES_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/bindings/random_run.h"
#include "tests/support/events.h"
#include "tests/support/random.h"
#include "tests/support/simulated_disk.h"

namespace embank::test {

// Events of the quantities.
inline constexpr const char* kCrashImages = "crash images";
inline constexpr const char* kRecoveriesCrashed = "recoveries crashed again";

class CrashImages {
 public:
  CrashImages(const CrashedWorkload& workload, Events* events)
      : workload_(workload), events_(events), random_(workload.plan.seed) {}

  // The events that a whole suite must have met.
  static void ExpectAll(Events* events);

  // Crashes before every `stride`-th change of the disk, ten images of each. "" or what was found
  // that is no checkpoint, and where.
  std::string Try(size_t stride);

 private:
  using Candidates = std::vector<const KeptCheckpoint*>;

  // The checkpoints that may be there after a crash before this change: the last one, and the one
  // under way.
  Candidates CandidatesAt(size_t change) const;
  // Opens the image, and then `depth` times what a crash leaves of the opening.
  std::string TryImage(SimulatedDisk* image, const Candidates& candidates, uint64_t depth);

  const CrashedWorkload& workload_;
  Events* const events_;
  Random random_;
};

}  // namespace embank::test

#endif  // EMBANK_TESTS_BINDINGS_CRASH_IMAGES_H_
