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
  // Empty with kNone. Otherwise the bags' begins and the end of the last one, never falling; the
  // first key is at offsets[0].
  std::span<const uint64_t> offsets;
  // Finite numbers at the places of which offsets speak, with kSum, and with kMean if the sum of a
  // bag's is finite; nullptr: all are 1.
  const float* weights = nullptr;
  Pooling pooling = Pooling::kNone;
  OutcomeSpan outcomes;  // one for each key, or empty
  // With kNone, where padding keys were left out: the number of the caller's rows, and those of the
  // keys, rising. 0: there were none, and each key has the row of its own number.
  uint64_t padded_rows = 0;
  std::span<const uint32_t> row_numbers;

  uint64_t bags() const { return offsets.empty() ? 0 : offsets.size() - 1; }
  uint64_t bag_size(uint64_t bag) const { return offsets[bag + 1] - offsets[bag]; }
  bool has_padding() const { return padded_rows > 0; }
  uint64_t row_number(uint64_t key) const { return has_padding() ? row_numbers[key] : key; }
};

// The rows of a lookup: vectors as the table has them, or dim floats for each bag.
struct LookupFeature : Feature {
  RowSpan rows;
  // How often each key counts as looked up, where a key stands for several positions of the caller;
  // with kNone, without padding, in host memory. Empty: once.
  std::span<const uint16_t> touches;
  bool is_on_device = false;  // whether `rows` are in memory of the store's device
};

// dim floats for each key, or for each bag.
struct GradientFeature : Feature {
  ConstRowSpan gradients;  // of ApplyGradientsPackedFromDevice: in memory of the store's device
};

}  // namespace embank

#endif  // EMBANK_STORE_PACKED_FEATURE_H_
