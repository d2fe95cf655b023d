// Finds the entries of a bucket that have a tag, by the widest instructions of the machine, chosen
// at run time.
#ifndef EMBANK_STORE_INDEX_TAG_MATCH_H_
#define EMBANK_STORE_INDEX_TAG_MATCH_H_

#include <cstdint>
#include <span>

#include "store/index/bucket.h"

namespace embank {

// A bucket to search, and the tag to search for.
struct Probe {
  const Bucket* bucket;
  uint32_t tag;
};

// Sets, for each probe, bit s if entry s of its bucket has its tag (an empty entry may match).
using TagMatcher = void (*)(std::span<const Probe> probes, uint8_t* matches);

struct TagMatcherChoice {
  const char* name;
  TagMatcher match;
};

// The matcher for this machine: "avx512", "avx2", "neon" or "scalar".
const TagMatcherChoice& BestTagMatcher();

// All matchers that this machine can run, the scalar one first; for tests.
std::span<const TagMatcherChoice> TagMatchers();

}  // namespace embank

#endif  // EMBANK_STORE_INDEX_TAG_MATCH_H_
