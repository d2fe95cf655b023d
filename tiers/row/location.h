// The place of a row: its tier, and 16-byte units from the start of the tier.
//
//   | tier 2 | units 38 |    38 bits of units are 4 TiB
//
//   tier         the units name
//   DRAM         the row's slot: header, vector and state
//   PMem, SSD    the row's record in the log of that tier
//   HBM          a slot of DRAM with the row's header; vector and state are in device memory
#ifndef EMBANK_TIERS_ROW_LOCATION_H_
#define EMBANK_TIERS_ROW_LOCATION_H_

#include <array>
#include <cstddef>
#include <cstdint>

namespace embank {

enum class Tier : uint32_t { kDram = 0, kPmem = 1, kSsd = 2, kHbm = 3 };
inline constexpr Tier kLogTiers[] = {Tier::kPmem, Tier::kSsd};  // that have a log, from the highest

inline constexpr uint32_t kLocationBits = 38;
inline constexpr uint32_t kTierBits = 2;
inline constexpr uint32_t kTiers = 1u << kTierBits;
inline constexpr uint64_t kLocationUnitBytes = 16;

// A value for each tier.
template <typename T>
struct ByTier {
  std::array<T, kTiers> values = {};

  constexpr T& operator[](Tier tier) { return values[static_cast<size_t>(tier)]; }
  constexpr const T& operator[](Tier tier) const { return values[static_cast<size_t>(tier)]; }
};

struct Location {
  uint64_t units;  // with the number of the tier in front, which is 0 for DRAM

  constexpr Tier tier() const { return static_cast<Tier>(units >> kLocationBits); }
  // Whether the host reads the row's bytes in its slot.
  constexpr bool IsInDram() const { return tier() == Tier::kDram; }
  // Whether this is an HBM row: its vector and state are in device memory.
  constexpr bool HasDevicePayload() const { return tier() == Tier::kHbm; }
  // Whether a log has the row: its bytes are a record there. Other rows have a header in memory.
  constexpr bool IsInLog() const { return tier() == Tier::kPmem || tier() == Tier::kSsd; }
  bool operator==(const Location&) const = default;
};

constexpr Location LocationIn(Tier tier, uint64_t units) {
  return {uint64_t{static_cast<uint32_t>(tier)} << kLocationBits | units};
}

inline constexpr uint64_t kUnitsMask = (uint64_t{1} << kLocationBits) - 1;
inline constexpr uint64_t kTierAndUnitsMask = (uint64_t{1} << (kTierBits + kLocationBits)) - 1;
inline constexpr Location kNoLocation{kUnitsMask};

// The slot of DRAM that a row with a header has: its own, or that of its header alone.
constexpr Location DramSlotOf(Location location) { return {location.units & kUnitsMask}; }

}  // namespace embank

#endif  // EMBANK_TIERS_ROW_LOCATION_H_
