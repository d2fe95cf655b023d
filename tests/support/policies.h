// The eviction policies with which suites run that differ in nothing else.
#ifndef EMBANK_TESTS_SUPPORT_POLICIES_H_
#define EMBANK_TESTS_SUPPORT_POLICIES_H_

#include <gtest/gtest.h>

#include "tiers/dram/eviction_order.h"

namespace embank::test {

// All of them; with sanitizers the one that the suite names. Threads that forget rows, and random
// operations, have all policies in those builds, too.
inline auto PoliciesOfSuite([[maybe_unused]] EvictionPolicy one) {
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
  return testing::Values(one);
#else
  return testing::Values(EvictionPolicy::kLru, EvictionPolicy::kClock, EvictionPolicy::kLfu);
#endif
}

}  // namespace embank::test

#endif  // EMBANK_TESTS_SUPPORT_POLICIES_H_
