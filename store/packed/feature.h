// One feature of a packed call: keys of a table, in bags whose rows are pooled, or each for itself.
//
//   keys      | a b c | d | (none) | e f |         offsets: 0 3 4 4 6
//   rows        one row for each bag, or, without pooling, one for each key
#ifndef EMBANK_STORE_PACKED_FEATURE_H_
#define EMBANK_STORE_PACKED_FEATURE_H_

#include <cstdint>
#include <span>

#include "base/types.h"
#include "store/table/table.h"

namespace embank {

// The values are those of the C API.
enum class Pooling : int32_t { kNone = 0, kSum = 1, kMean = 2, kSqrtN = 3 };

struct Feature {
  Table* table = nullptr;
  KeySpan keys;
  // Empty with kNone. Otherwise the bags' begins and the number of keys, rising from 0.
  std::span<const uint64_t> offsets;
  // One finite number for each key, with kSum alone; nullptr: all are 1.
  const float* weights = nullptr;
  Pooling pooling = Pooling::kNone;
  OutcomeSpan outcomes;  // one for each key, or empty

  uint64_t bags() const { return offsets.empty() ? 0 : offsets.size() - 1; }
  uint64_t bag_size(uint64_t bag) const { return offsets[bag + 1] - offsets[bag]; }
};

// The rows of a lookup: vectors as the table has them, or dim floats for each bag.
struct LookupFeature : Feature {
  RowSpan rows;
};

// dim floats for each key, or for each bag.
struct GradientFeature : Feature {
  ConstRowSpan gradients;
};

}  // namespace embank

#endif  // EMBANK_STORE_PACKED_FEATURE_H_
