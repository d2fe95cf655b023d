// Packs: features of one dim whose rows are looked up and updated by one operation. PICASSO (Zhang
// et al. 2022), section III-B, D-Packing.
//
//   features by dim:   16: a b c d e f     8: g h
//   volume (Eq 1):     16: above the mean  8: below it
//   packs:             {a c e} {b d f}     {g h}
#ifndef EMBANK_TRAIN_PIPELINE_PACK_PLAN_H_
#define EMBANK_TRAIN_PIPELINE_PACK_PLAN_H_

#include <cstdint>
#include <span>
#include <vector>

namespace embank {

// The traffic of a feature, as warm-up steps have counted it.
struct FeatureTraffic {
  uint32_t dim = 1;
  uint64_t ids = 0;            // positions in all batches of the warm-up
  bool is_excluded = false;    // its pack waits for no other one (preset excluded embedding)
  bool is_replicated = false;  // each rank has all rows of its table
  bool is_pooled = false;      // owners of rows sum its bags
  // Features of one table, by any number, are in one pack, because a row makes one step for all of
  // them. They have one dim, and are excluded, replicated or pooled together. kOwnTable: no other
  // one has it.
  uint32_t table = kOwnTable;

  static constexpr uint32_t kOwnTable = UINT32_MAX;
};

struct Pack {
  uint32_t dim = 0;
  std::vector<uint32_t> features;  // rising
  double volume = 0.0;             // Eq 1
  bool is_excluded = false;
  bool is_replicated = false;
  bool is_pooled = false;
};

// How many shards a pack above the mean volume is split into. The paper names the trigger, and two
// results that no single rule has: the packs of its products, and its example of dims 8 and 32.
// kNone runs without packing.
enum class PackRule : uint8_t {
  kNone,   // each feature, or table, is a pack of its own
  kMean,   // so many that none is above 1.3 of the mean, where features allow it
  kLeast,  // its volume / that of the lightest pack: the paper's example has 1 + 4 packs
};

// Returns the volume of a pack (Eq 1): V(T) = N * sum over its features of dim * ids. N is the
// number of ids of all features.
double PackVolume(std::span<const FeatureTraffic> traffic, std::span<const uint32_t> features);

// Makes the packs: by dim, the lower first. Those above the mean are split evenly by volume, into
// as many shards as the rule says, and at most one for each table. Features that are excluded
// have packs of their own, by dim, which mean and lightest pack leave out. So have those that are
// replicated or pooled, which count among the others. Each feature is in one
// pack. Where there is no traffic yet, each dim is one pack.
std::vector<Pack> PlanPacks(std::span<const FeatureTraffic> traffic,
                            PackRule rule = PackRule::kMean);

}  // namespace embank

#endif  // EMBANK_TRAIN_PIPELINE_PACK_PLAN_H_
