// The ids of a click log with fields of equal size, whose popularity follows Zipf's law.
#ifndef EMBANK_BENCH_RANK_IDS_H_
#define EMBANK_BENCH_RANK_IDS_H_

#include <cstdint>
#include <vector>

#include "base/types.h"
#include "train/generator/zipf.h"

namespace embank {

// Thread-safe.
class RankIds {
 public:
  static constexpr uint32_t kFields = 26;
  static constexpr uint64_t kCardinality = 1'000'000;
  static constexpr double kExponent = 1.05;

  RankIds();

  // The ids of a field in `samples` samples from `first` on.
  std::vector<Key> Of(uint32_t field, uint64_t first, uint64_t samples) const;
  // The hash of the table of a field.
  static uint64_t TableHashOf(uint32_t field);

 private:
  std::vector<ZipfSampler> samplers_;  // of each field
};

}  // namespace embank

#endif  // EMBANK_BENCH_RANK_IDS_H_
