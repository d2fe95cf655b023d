// The ids of samples: an embedding worker gives one to each sample whose feature ids it gets.
//
//   63        48 47                                  0
//   | worker    | samples that it numbered before     |
#ifndef EMBANK_TRAIN_HYBRID_SAMPLE_ID_H_
#define EMBANK_TRAIN_HYBRID_SAMPLE_ID_H_

#include <cstdint>

namespace embank {

using SampleId = uint64_t;

// One thread.
class SampleIds {
 public:
  // A worker that numbers a million samples a second has ids for nine years.
  static constexpr uint32_t kCountBits = 48;

  explicit SampleIds(uint16_t worker) : next_(uint64_t{worker} << kCountBits) {}

  // Returns the first of `count` ids, which follow each other and are never given again.
  SampleId Take(uint64_t count);

 private:
  SampleId next_;
};

}  // namespace embank

#endif  // EMBANK_TRAIN_HYBRID_SAMPLE_ID_H_
