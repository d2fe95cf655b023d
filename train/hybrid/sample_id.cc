#include "train/hybrid/sample_id.h"

#include "base/seeded_bug.h"

namespace embank {

SampleId SampleIds::Take(uint64_t count) {
  const SampleId first = next_;
  if (!Seeded(SeededBug::kSampleIdUsedAgain)) next_ += count;
  return first;
}

}  // namespace embank
