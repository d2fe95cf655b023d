// Maps the rank of a generated key to the key itself. The order of popularity in the key space
// matters for caches and hash tables.
//
//   permuted           0..n-1, popularity scattered (a bijection)
//   first-appearance   0..n-1 in the order in which a stream meets them: popular keys are small
//   hashed             all 64 bits, scattered (a bijection)
#ifndef EMBANK_BENCH_ID_MODE_H_
#define EMBANK_BENCH_ID_MODE_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/status_or.h"
#include "base/types.h"
#include "train/generator/permutation.h"

namespace embank {

enum class IdMode { kPermuted, kFirstAppearance, kHashed };

// INVALID_ARGUMENT lists the names above.
StatusOr<IdMode> ParseIdMode(const std::string& name);

// "permuted", ...
const char* IdModeName(IdMode mode);

// Turns ranks 1..n into keys. Not thread-safe where MapIsStateless is false.
class IdMapper {
 public:
  // Appearances take 4 bytes per rank, so there are fewer of them.
  static constexpr uint64_t kAppearancesMax = 0xFFFFFFFF;

  // INVALID_ARGUMENT: n == 0, or above kAppearancesMax where appearances are kept.
  static StatusOr<IdMapper> Create(IdMode mode, uint64_t n, uint64_t seed);

  // Whether a key depends on its rank only, so that any thread may map any part of a stream.
  bool MapIsStateless() const { return mode_ != IdMode::kFirstAppearance; }

  // Replaces ranks by keys; with first-appearance, the next ranks of the one stream.
  void Map(std::span<uint64_t> ranks);

  // Key number i < n of the set of all keys, in no popularity order except first-appearance.
  Key KeyOf(uint64_t i) const;

 private:
  IdMapper(IdMode mode, uint64_t n, uint64_t seed);

  IdMode mode_;
  uint64_t seed_;
  Permutation permutation_;
  std::vector<uint32_t> appearances_;  // by rank: 0, or 1 + the key given at its first appearance
  uint32_t appeared_ = 0;
};

}  // namespace embank

#endif  // EMBANK_BENCH_ID_MODE_H_
