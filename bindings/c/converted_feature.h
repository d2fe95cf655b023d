// A feature whose arrays are not as the store takes them: narrow numbers become 64 bits wide, and
// padding keys are left out.
//
//   keys      7 P 9 P P 4      offsets 0 3 6
//   to store  7 9 4                    0 2 3      places 0 2 5
//   outcomes  those of 7, 9 and 4 go back to their places; a padding key is ABSENT
#ifndef EMBANK_BINDINGS_C_CONVERTED_FEATURE_H_
#define EMBANK_BINDINGS_C_CONVERTED_FEATURE_H_

#include <cstdint>
#include <memory>
#include <span>

#include "base/types.h"
#include "store/packed/feature.h"

namespace embank {

// Whether numbers of a type (EMBANK_INDEX_*) are narrower than 64 bits.
bool IsNarrow(int32_t type);
// The i-th number of a type; signed ones extend.
uint64_t NumberAt(const void* numbers, int32_t type, uint64_t i);

// It owns what a feature of the store borrows. Methods throw std::bad_alloc.
class ConvertedFeature {
 public:
  // Return copies of `count` numbers of a narrow type, from the first-th on.
  KeySpan WidenKeys(const void* keys, int32_t type, uint64_t first, uint64_t count);
  std::span<const uint64_t> WidenOffsets(const void* offsets, int32_t type, uint64_t count);
  // Leaves the padding keys of the feature out, which borrows from the caller or from this.
  void RemovePadding(uint64_t padding_key, Feature* feature);

  // Gives the caller the outcomes that the store has set, and, when the call has succeeded, those
  // of padding keys.
  void GiveOutcomes(bool succeeded) const;

 private:
  void RemovePaddingOfBags(Feature* feature);

  std::unique_ptr<uint64_t[]> keys_;
  std::unique_ptr<uint64_t[]> offsets_;
  std::unique_ptr<float[]> weights_;
  // Without padding keys: the numbers of the keys in the caller's arrays.
  std::unique_ptr<uint32_t[]> places_;
  uint64_t kept_ = 0;
  std::unique_ptr<uint8_t[]> outcomes_;
  OutcomeSpan callers_outcomes_;
};

}  // namespace embank

#endif  // EMBANK_BINDINGS_C_CONVERTED_FEATURE_H_
