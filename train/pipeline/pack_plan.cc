#include "train/pipeline/pack_plan.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>

#include "base/check.h"

namespace embank {
namespace {

// A pack is at most this much above the mean, where features allow it.
constexpr double kAboveMean = 1.3;

Pack MakePack(std::span<const FeatureTraffic> traffic, std::vector<uint32_t> features) {
  EMBANK_CHECK(!features.empty());
  std::ranges::sort(features);
  const FeatureTraffic& first = traffic[features[0]];
  return {.dim = first.dim,
          .features = features,
          .volume = PackVolume(traffic, features),
          .is_excluded = first.is_excluded,
          .is_replicated = first.is_replicated,
          .is_pooled = first.is_pooled};
}

// The features of a table, which stay together.
using Unit = std::vector<uint32_t>;

std::vector<Unit> UnitsOf(std::span<const FeatureTraffic> traffic,
                          std::span<const uint32_t> features) {
  std::vector<Unit> units;
  std::map<uint32_t, size_t> unit_of_table;
  for (const uint32_t feature : features) {
    const uint32_t table = traffic[feature].table;
    const bool is_new =
        table == FeatureTraffic::kOwnTable || unit_of_table.emplace(table, units.size()).second;
    if (is_new) {
      units.push_back({feature});
    } else {
      units[unit_of_table.at(table)].push_back(feature);
    }
  }
  return units;
}

uint64_t IdsOf(std::span<const FeatureTraffic> traffic, const Unit& unit) {
  uint64_t ids = 0;
  // A feature without traffic counts as one id, so that such features spread, too.
  for (const uint32_t feature : unit) ids += std::max<uint64_t>(1, traffic[feature].ids);
  return ids;
}

// The heaviest table goes first, each to the lightest shard.
std::vector<Pack> Split(std::span<const FeatureTraffic> traffic, const Pack& pack,
                        uint32_t shards) {
  std::vector<Unit> heavy_first = UnitsOf(traffic, pack.features);
  std::ranges::stable_sort(heavy_first, [&](const Unit& a, const Unit& b) {
    return IdsOf(traffic, a) > IdsOf(traffic, b);
  });
  std::vector<std::vector<uint32_t>> features(shards);
  std::vector<uint64_t> ids(shards);
  for (const Unit& unit : heavy_first) {
    const auto lightest = static_cast<size_t>(std::ranges::min_element(ids) - ids.begin());
    features[lightest].insert(features[lightest].end(), unit.begin(), unit.end());
    ids[lightest] += IdsOf(traffic, unit);
  }
  std::vector<Pack> packs;
  packs.reserve(shards);
  for (std::vector<uint32_t>& shard : features) {
    packs.push_back(MakePack(traffic, std::move(shard)));
  }
  return packs;
}

// The volumes of the packs that may be split.
struct Volumes {
  double sum = 0.0;
  double least = 0.0;  // above 0; 0: no pack has traffic
  size_t packs = 0;

  void Add(double volume) {
    sum += volume;
    ++packs;
    if (volume > 0.0 && (least == 0.0 || volume < least)) least = volume;
  }
  double mean() const { return sum / static_cast<double>(std::max<size_t>(1, packs)); }
};

uint32_t ShardsOf(const Pack& pack, size_t units, const Volumes& volumes, PackRule rule) {
  const double mean = volumes.mean();
  if (pack.is_excluded || pack.volume <= mean) return 1;
  const double shards = rule == PackRule::kMean ? std::ceil(pack.volume / (kAboveMean * mean))
                                                : std::round(pack.volume / volumes.least);
  return static_cast<uint32_t>(std::min(shards, static_cast<double>(units)));
}

std::vector<Pack> EachAPack(std::span<const FeatureTraffic> traffic) {
  std::vector<Pack> packs;
  std::vector<uint32_t> features(traffic.size());
  std::iota(features.begin(), features.end(), 0u);
  for (Unit& unit : UnitsOf(traffic, features)) {
    packs.push_back(MakePack(traffic, std::move(unit)));
  }
  return packs;
}

}  // namespace

double PackVolume(std::span<const FeatureTraffic> traffic, std::span<const uint32_t> features) {
  double all_ids = 0.0;
  for (const FeatureTraffic& feature : traffic) all_ids += static_cast<double>(feature.ids);
  double floats = 0.0;
  for (const uint32_t feature : features) {
    floats += static_cast<double>(traffic[feature].dim) * static_cast<double>(traffic[feature].ids);
  }
  return all_ids * floats;
}

std::vector<Pack> PlanPacks(std::span<const FeatureTraffic> traffic, PackRule rule) {
  if (rule == PackRule::kNone) return EachAPack(traffic);
  std::map<std::tuple<uint32_t, bool, bool, bool>, std::vector<uint32_t>> by_dim;
  for (uint32_t i = 0; i < traffic.size(); ++i) {
    const FeatureTraffic& of = traffic[i];
    by_dim[{of.dim, of.is_excluded, of.is_replicated, of.is_pooled}].push_back(i);
  }
  std::vector<Pack> whole;
  Volumes volumes;
  for (auto& [dim, features] : by_dim) {
    whole.push_back(MakePack(traffic, std::move(features)));
    if (!whole.back().is_excluded) volumes.Add(whole.back().volume);
  }
  std::vector<Pack> packs;
  for (Pack& pack : whole) {
    const size_t units = UnitsOf(traffic, pack.features).size();
    const uint32_t shards = ShardsOf(pack, units, volumes, rule);
    if (shards < 2) {
      packs.push_back(std::move(pack));
      continue;
    }
    for (Pack& shard : Split(traffic, pack, shards)) packs.push_back(std::move(shard));
  }
  return packs;
}

}  // namespace embank
