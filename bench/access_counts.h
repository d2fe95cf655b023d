// How the accesses of a stream spread over its keys.
#ifndef EMBANK_BENCH_ACCESS_COUNTS_H_
#define EMBANK_BENCH_ACCESS_COUNTS_H_

#include <cstdint>

#include "absl/container/flat_hash_map.h"
#include "base/types.h"

namespace embank {

// One thread.
class AccessCounts {
 public:
  // Counts one access per key.
  void Add(KeySpan keys);

  // Accesses counted.
  uint64_t accesses() const { return accesses_; }
  // Different keys among them.
  uint64_t distinct() const { return counts_.size(); }

  // Share (0..1) of all accesses that go to the most frequent `fraction` of the distinct keys,
  // rounded up to a whole key. 0 when nothing was counted.
  double ShareOfTop(double fraction) const;

 private:
  absl::flat_hash_map<Key, uint64_t> counts_;
  uint64_t accesses_ = 0;
};

}  // namespace embank

#endif  // EMBANK_BENCH_ACCESS_COUNTS_H_
