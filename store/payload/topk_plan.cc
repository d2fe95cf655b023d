#include "store/payload/topk_plan.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <new>
#include <utility>

#include "base/check.h"
#include "base/memory/memory.h"

namespace embank {
namespace {

// The score of an HBM row counts 5/4: scores of rows in DRAM are multiplied by 4, its own by 5.
constexpr uint32_t kDramFactor = 4;
constexpr uint32_t kHbmFactor = 5;

// A bucket is the exponent (8 bits) and the first 8 bits behind the leading one of a score as f32.
// Heats below 512 of rows of one size have buckets of their own.
constexpr uint32_t kBucketShift = 15;
constexpr uint32_t kBuckets = 1u << 16;
constexpr uint32_t kNoBucket = kBuckets;
static_assert(uint64_t{kHbmFactor} * kHeatMax < (1u << 24),
              "a factor times a heat is exact in f32");

uint32_t ScaledHeat(const TopkCandidate& row, bool hysteresis) {
  if (!hysteresis) return row.heat;
  return row.heat * (row.in_hbm ? kHbmFactor : kDramFactor);
}

// A higher score is never in a lower bucket: both operands are exact, and division is monotone.
uint32_t BucketOf(uint32_t scaled_heat, uint32_t payload_bytes) {
  const float score = static_cast<float>(scaled_heat) / static_cast<float>(payload_bytes);
  return std::bit_cast<uint32_t>(score) >> kBucketShift;
}

// The rows of a bucket.
struct ScoreBucket {
  uint64_t bytes;
  uint32_t rows;
  uint32_t other_rows;
};

// A row of the threshold's bucket.
struct RankedRow {
  PlannedRow row;
  uint32_t scaled_heat;
  // heat 20 | in HBM 1: the scaled heats of an HBM row and of another may be equal.
  uint32_t heat_and_place;
  bool in_hbm() const { return (heat_and_place & 1) != 0; }
};

class Ranking {
 public:
  explicit Ranking(bool hysteresis) : hysteresis_(hysteresis) {}

  // Whether `a` comes before `b`. A strict order of all rows, as table and key tell them apart.
  bool operator()(const RankedRow& a, const RankedRow& b) const {
    const uint64_t a_score = uint64_t{a.scaled_heat} * b.row.payload_bytes;
    const uint64_t b_score = uint64_t{b.scaled_heat} * a.row.payload_bytes;
    if (a_score != b_score) return a_score > b_score;
    if (hysteresis_ && a.in_hbm() != b.in_hbm()) return a.in_hbm();
    const uint32_t a_heat = a.heat_and_place >> 1;
    const uint32_t b_heat = b.heat_and_place >> 1;
    if (a_heat != b_heat) return a_heat > b_heat;
    if (a.row.table != b.row.table) return a.row.table < b.row.table;
    return a.row.key < b.row.key;
  }

 private:
  bool hysteresis_;
};

// Reorders the rows. Behind the longest beginning of the ranking that fits in `bytes` the first row
// is the end of the HBM rows, and is returned; rows->end(): all rows fit. Each step halves the
// rows in question, so the time is linear.
std::vector<RankedRow>::iterator FindEnd(std::vector<RankedRow>* rows, uint64_t bytes,
                                         const Ranking& ranking) {
  auto begin = rows->begin();
  auto end = rows->end();
  while (begin != end) {
    const auto middle = begin + (end - begin) / 2;
    std::nth_element(begin, middle, end, ranking);
    uint64_t half_bytes = 0;
    for (auto row = begin; row <= middle; ++row) half_bytes += row->row.payload_bytes;
    if (half_bytes <= bytes) {
      bytes -= half_bytes;
      begin = middle + 1;
    } else {
      end = middle;
    }
  }
  return begin;
}

bool IsBefore(const PlannedRow& a, const PlannedRow& b) {
  return a.location.units < b.location.units;
}

// The first `sorted` rows come from one walk and the others from another one.
void SortByLocation(std::vector<PlannedRow>* rows, size_t sorted) {
  EMBANK_CHECK(sorted <= rows->size());
  const auto middle = rows->begin() + static_cast<ptrdiff_t>(sorted);
  if (std::is_sorted(rows->begin(), middle, IsBefore) &&
      std::is_sorted(middle, rows->end(), IsBefore)) {
    std::inplace_merge(rows->begin(), middle, rows->end(), IsBefore);
  } else {
    std::sort(rows->begin(), rows->end(), IsBefore);
  }
}

class Planner {
 public:
  explicit Planner(const TopkPlanOptions& options)
      : options_(options), ranking_(options.hysteresis), buckets_(kBuckets) {}

  TopkPlan Plan(TopkSource source) {
    source([this](const TopkCandidate& row) { Count(row); });
    FindThreshold();
    source([this](const TopkCandidate& row) { Divide(row); });
    const size_t leavers = plan_.leavers.size();
    const size_t arrivals = plan_.arrivals.size();
    DivideTies();
    SortByLocation(&plan_.leavers, leavers);
    SortByLocation(&plan_.arrivals, arrivals);
    DropArrivalsBeyondBudget();
    EMBANK_CHECK(plan_.hbm_bytes <= std::max(options_.budget_bytes, kept_bytes_));
    return std::move(plan_);
  }

 private:
  void Count(const TopkCandidate& row) {
    EMBANK_CHECK(row.heat <= kHeatMax);
    EMBANK_CHECK(row.payload_bytes - 1 < kPlannedBytesMax);
    ++plan_.candidate_rows;
    plan_.candidate_bytes += row.payload_bytes;
    if (row.payload_bytes > options_.budget_bytes) return;
    ScoreBucket& bucket =
        buckets_[BucketOf(ScaledHeat(row, options_.hysteresis), row.payload_bytes)];
    bucket.bytes += row.payload_bytes;
    ++bucket.rows;
    bucket.other_rows += row.in_hbm ? 0 : 1;
  }

  // The threshold's bucket is the highest one that does not fit behind those above it.
  void FindThreshold() {
    plan_.fits_all = plan_.candidate_bytes <= options_.budget_bytes;
    uint64_t bytes = 0;
    uint64_t arrivals = 0;
    for (uint32_t i = kBuckets; i-- > 0 && threshold_ == kNoBucket;) {
      const uint64_t left_bytes = options_.budget_bytes - bytes;
      bytes += buckets_[i].bytes;
      if (bytes <= options_.budget_bytes) {
        arrivals += buckets_[i].other_rows;
      } else {
        threshold_ = i;
        EMBANK_CHECK(buckets_[i].rows > 0 && buckets_[i].other_rows <= buckets_[i].rows);
        ties_.reserve(buckets_[i].rows);
        arrivals += left_bytes / (buckets_[i].bytes / buckets_[i].rows);
      }
    }
    plan_.arrivals.reserve(arrivals);
  }

  void Divide(const TopkCandidate& row) {
    EMBANK_CHECK(row.heat <= kHeatMax);
    EMBANK_CHECK(row.payload_bytes - 1 < kPlannedBytesMax);
    const PlannedRow planned{row.location, row.table, row.payload_bytes, row.key};
    if (row.payload_bytes > options_.budget_bytes) return Place(planned, row.in_hbm, false);
    const uint32_t scaled_heat = ScaledHeat(row, options_.hysteresis);
    const uint32_t bucket = BucketOf(scaled_heat, row.payload_bytes);
    if (bucket == threshold_) {
      ties_.push_back({planned, scaled_heat, row.heat << 1 | (row.in_hbm ? 1u : 0u)});
    } else {
      Place(planned, row.in_hbm, threshold_ == kNoBucket || bucket > threshold_);
    }
  }

  void Place(const PlannedRow& row, bool in_hbm, bool is_chosen) {
    if (is_chosen) {
      plan_.hbm_bytes += row.payload_bytes;
      if (in_hbm) {
        kept_bytes_ += row.payload_bytes;
      } else {
        plan_.arrivals.push_back(row);
      }
    } else if (in_hbm) {
      plan_.leavers.push_back(row);
    }
  }

  // Selects in a copy, so that both lists stay in the order of the walk: sorting costs more.
  void DivideTies() {
    std::vector<RankedRow> ranked = ties_;
    const uint64_t taken_bytes = std::min(options_.budget_bytes, plan_.hbm_bytes);
    const auto end = FindEnd(&ranked, options_.budget_bytes - taken_bytes, ranking_);
    for (const RankedRow& tie : ties_) {
      Place(tie.row, tie.in_hbm(), end == ranked.end() || ranking_(tie, *end));
    }
  }

  // Rows became hotter, or new ones were created, between the two walks.
  void DropArrivalsBeyondBudget() {
    while (plan_.hbm_bytes > options_.budget_bytes && !plan_.arrivals.empty()) {
      EMBANK_CHECK(plan_.hbm_bytes - kept_bytes_ >= plan_.arrivals.back().payload_bytes);
      plan_.hbm_bytes -= plan_.arrivals.back().payload_bytes;
      plan_.arrivals.pop_back();
      plan_.fits_all = false;
    }
  }

  const TopkPlanOptions options_;
  const Ranking ranking_;
  std::vector<ScoreBucket> buckets_;  // of the first walk
  uint32_t threshold_ = kNoBucket;    // kNoBucket: every row that the ranking has fits
  std::vector<RankedRow> ties_;
  uint64_t kept_bytes_ = 0;  // of HBM rows that stay
  TopkPlan plan_;
};

}  // namespace

StatusOr<TopkPlan> PlanTopk(TopkSource source, const TopkPlanOptions& options) {
  try {
    return Planner(options).Plan(source);
  } catch (const std::bad_alloc&) {
    return NoMemory();
  }
}

}  // namespace embank
