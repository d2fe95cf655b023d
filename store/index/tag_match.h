// Which entries of a bucket carry a tag: by the widest instructions of the machine, chosen at run
// time.
#ifndef EMBANK_STORE_INDEX_TAG_MATCH_H_
#define EMBANK_STORE_INDEX_TAG_MATCH_H_

#include <cstdint>
#include <span>

#include "store/index/bucket.h"

namespace embank {

// What a search looks for, and where.
struct Probe {
  const Bucket* bucket;
  uint32_t tag;
};

// For each probe, bit s set if entry s of its bucket carries its tag (an empty entry may match).
using TagMatcher = void (*)(std::span<const Probe> probes, uint8_t* matches);

struct TagMatcherChoice {
  const char* name;
  TagMatcher match;
};

// The matcher for this machine: "avx512", "avx2", "neon" or "scalar".
const TagMatcherChoice& BestTagMatcher();

// All that this machine can run, the scalar one first; for tests.
std::span<const TagMatcherChoice> TagMatchers();

}  // namespace embank

#endif  // EMBANK_STORE_INDEX_TAG_MATCH_H_
