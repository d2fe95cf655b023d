// The place of a row: its tier, and 16-byte units from the start of the tier.
//
//   | tier 2 | units 38 |    38 bits of units are 4 TiB
#ifndef EMBANK_TIERS_ROW_LOCATION_H_
#define EMBANK_TIERS_ROW_LOCATION_H_

#include <cstdint>

namespace embank {

enum class Tier : uint32_t { kDram = 0, kPmem = 1, kSsd = 2 };

inline constexpr uint32_t kLocationBits = 38;
inline constexpr uint32_t kTierBits = 2;
inline constexpr uint32_t kTiers = 1u << kTierBits;
inline constexpr uint64_t kLocationUnitBytes = 16;

struct Location {
  uint64_t units;  // of DRAM; of another tier with its number in front

  constexpr Tier tier() const { return static_cast<Tier>(units >> kLocationBits); }
  // Whether a log has the row: its bytes are a record there. Other rows have a header in memory.
  constexpr bool IsInLog() const { return tier() == Tier::kPmem || tier() == Tier::kSsd; }
  bool operator==(const Location&) const = default;
};

constexpr Location LocationIn(Tier tier, uint64_t units) {
  return {uint64_t{static_cast<uint32_t>(tier)} << kLocationBits | units};
}

inline constexpr Location kNoLocation{(uint64_t{1} << kLocationBits) - 1};

}  // namespace embank

#endif  // EMBANK_TIERS_ROW_LOCATION_H_
