// Where a row is: 16-byte units from the start of its tier. 38 bits of them are 4 TiB.
#ifndef EMBANK_TIERS_LOCATION_H_
#define EMBANK_TIERS_LOCATION_H_

#include <cstdint>

namespace embank {

struct Location {
  uint64_t units = 0;
  bool operator==(const Location&) const = default;
};

inline constexpr uint32_t kLocationBits = 38;
inline constexpr uint64_t kLocationUnitBytes = 16;
inline constexpr Location kNoLocation{(uint64_t{1} << kLocationBits) - 1};

}  // namespace embank

#endif  // EMBANK_TIERS_LOCATION_H_
