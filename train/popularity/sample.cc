#include "train/popularity/sample.h"

#include "base/check.h"
#include "base/hash.h"

namespace embank {
namespace {

// A log may be generated from the same seed, and a sample must not depend on its values.
constexpr uint64_t kSalt = 0x6A09E667F3BCC908u;  // the fraction of sqrt(2), times 2^64

}  // namespace

InputSample::InputSample(double share, uint64_t seed)
    : share_(share),
      random_(Mix(seed ^ kSalt)),
      last_(share < 1.0 ? static_cast<uint64_t>(share * 0x1p64) : UINT64_MAX) {
  EMBANK_CHECK(share > 0.0 && share <= 1.0);
}

}  // namespace embank
