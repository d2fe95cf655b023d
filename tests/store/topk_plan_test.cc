#include "store/payload/topk_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/events.h"
#include "tests/support/random.h"
#include "tests/support/seeds.h"

namespace embank::topk_plan_test {
namespace {

using test::Random;

using Rows = std::vector<TopkCandidate>;

TopkPlan PlanOf(const Rows& rows, uint64_t budget_bytes, bool hysteresis = true) {
  const auto source = [&rows](TopkVisit visit) {
    for (const TopkCandidate& row : rows) visit(row);
  };
  StatusOr<TopkPlan> plan = PlanTopk(source, {budget_bytes, hysteresis});
  EXPECT_TRUE(plan.ok());
  return plan.ok() ? *std::move(plan) : TopkPlan();
}

TopkCandidate Row(uint64_t units, uint32_t heat, bool in_hbm, uint32_t payload_bytes = 100) {
  return {.location = Location{units},
          .heat = heat,
          .payload_bytes = payload_bytes,
          .table = 1,
          .key = 1000 + units,
          .in_hbm = in_hbm};
}

std::vector<uint64_t> UnitsOf(const std::vector<PlannedRow>& rows) {
  std::vector<uint64_t> units;
  for (const PlannedRow& row : rows) units.push_back(row.location.units);
  return units;
}

using Units = std::vector<uint64_t>;

// The oracle: sorts all rows, and takes them from the front for as long as they fit.
struct OraclePlan {
  Units leavers;
  Units arrivals;
  uint64_t hbm_bytes = 0;
};

OraclePlan SortedPlan(Rows rows, uint64_t budget_bytes, bool hysteresis) {
  const auto weight = [&](const TopkCandidate& row) -> uint64_t {
    if (!hysteresis) return row.heat;
    return row.in_hbm ? uint64_t{row.heat} * 5 : uint64_t{row.heat} * 4;
  };
  std::sort(rows.begin(), rows.end(), [&](const TopkCandidate& a, const TopkCandidate& b) {
    const uint64_t left = weight(a) * b.payload_bytes;
    const uint64_t right = weight(b) * a.payload_bytes;
    if (left != right) return left > right;
    if (hysteresis && a.in_hbm != b.in_hbm) return a.in_hbm;
    if (a.heat != b.heat) return a.heat > b.heat;
    if (a.table != b.table) return a.table < b.table;
    return a.key < b.key;
  });
  OraclePlan plan;
  bool fits = true;
  for (const TopkCandidate& row : rows) {
    const bool is_left_out = row.payload_bytes > budget_bytes;
    if (!is_left_out) fits = fits && plan.hbm_bytes + row.payload_bytes <= budget_bytes;
    const bool is_chosen = fits && !is_left_out;
    if (is_chosen) plan.hbm_bytes += row.payload_bytes;
    if (is_chosen && !row.in_hbm) plan.arrivals.push_back(row.location.units);
    if (!is_chosen && row.in_hbm) plan.leavers.push_back(row.location.units);
  }
  std::sort(plan.arrivals.begin(), plan.arrivals.end());
  std::sort(plan.leavers.begin(), plan.leavers.end());
  return plan;
}

uint32_t RandomHeat(Random* random) {
  switch (random->Below(5)) {
    case 0:
      return 0;
    case 1:
      return static_cast<uint32_t>(random->Below(4));
    case 2:
      return static_cast<uint32_t>(random->Below(600));
    case 3:
      return kHeatMax - static_cast<uint32_t>(random->Below(3));
    default:
      return static_cast<uint32_t>(random->Below(uint64_t{kHeatMax} + 1));
  }
}

Rows RandomRows(Random* random) {
  const uint64_t count = random->OneIn(4) ? random->Below(4) : random->Below(400);
  const bool has_one_size = random->OneIn(2);
  const bool has_one_heat = random->OneIn(5);
  const uint32_t heat = RandomHeat(random);
  Rows rows;
  for (uint64_t i = 0; i < count; ++i) {
    TopkCandidate row = Row(i, has_one_heat ? heat : RandomHeat(random), random->OneIn(3));
    if (!has_one_size) {
      row.payload_bytes = static_cast<uint32_t>(
          random->OneIn(20) ? random->Between(1, kPlannedBytesMax) : random->Between(1, 50));
    }
    row.table = static_cast<TableId>(random->Below(3));
    // A key is unique in its table, and in no order of memory.
    row.key = i * 0x9E3779B97F4A7C15u;
    rows.push_back(row);
  }
  return rows;
}

uint64_t RandomBudget(const Rows& rows, Random* random) {
  uint64_t all_bytes = 0;
  for (const TopkCandidate& row : rows) all_bytes += row.payload_bytes;
  switch (random->Below(6)) {
    case 0:
      return 0;
    case 1:
      return all_bytes;
    case 2:
      return all_bytes - std::min<uint64_t>(all_bytes, 1);
    case 3:
      return std::numeric_limits<uint64_t>::max();
    default:
      return random->Below(all_bytes + 2);
  }
}

std::string Difference(const TopkPlan& plan, const OraclePlan& expected) {
  if (UnitsOf(plan.leavers) != expected.leavers) return "leavers";
  if (UnitsOf(plan.arrivals) != expected.arrivals) return "arrivals";
  if (plan.hbm_bytes != expected.hbm_bytes) return "HBM bytes";
  return "";
}

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr uint64_t kSeeds = 1500;
#else
constexpr uint64_t kSeeds = 6000;
#endif

TEST(TopkPlan, IsThatOfAPlainSort) {
  test::Events events;
  test::RunSeeds("topk_plan_test", kSeeds, &events,
                 [](uint64_t seed, test::Events*) -> std::string {
                   Random random(seed);
                   Rows rows = RandomRows(&random);
                   const uint64_t budget_bytes = RandomBudget(rows, &random);
                   const bool hysteresis = random.OneIn(2);
                   const OraclePlan expected = SortedPlan(rows, budget_bytes, hysteresis);
                   const TopkPlan plan = PlanOf(rows, budget_bytes, hysteresis);
                   const std::string difference = Difference(plan, expected);
                   if (!difference.empty()) return difference;
                   uint64_t all_bytes = 0;
                   for (const TopkCandidate& row : rows) all_bytes += row.payload_bytes;
                   if (plan.candidate_rows != rows.size()) return "candidate rows";
                   if (plan.candidate_bytes != all_bytes) return "candidate bytes";
                   if (plan.fits_all != (all_bytes <= budget_bytes)) return "fits all";
                   // The order of the walk does not count.
                   std::reverse(rows.begin(), rows.end());
                   return Difference(PlanOf(rows, budget_bytes, hysteresis), expected);
                 });
}

TEST(TopkPlan, NoRowsMeanNoMoves) {
  const TopkPlan plan = PlanOf({}, 1000);
  EXPECT_TRUE(plan.leavers.empty());
  EXPECT_TRUE(plan.arrivals.empty());
  EXPECT_TRUE(plan.fits_all);
  EXPECT_EQ(plan.hbm_bytes, 0u);
}

TEST(TopkPlan, TakesAllRowsWhenTheyFitAlsoThoseOfNoHeat) {
  const TopkPlan plan = PlanOf({Row(1, 0, false), Row(2, 7, true), Row(3, 0, false)}, 300);
  EXPECT_TRUE(plan.fits_all);
  EXPECT_EQ(UnitsOf(plan.arrivals), (Units{1, 3}));
  EXPECT_TRUE(plan.leavers.empty());
  EXPECT_EQ(plan.hbm_bytes, 300u);
}

TEST(TopkPlan, SaysTableKeyAndBytesOfARow) {
  TopkCandidate row = Row(5, 3, false, 64);
  row.table = 17;
  row.key = 0xFFFFFFFFFFFFFFFF;
  const TopkPlan plan = PlanOf({row}, 64);
  ASSERT_EQ(plan.arrivals.size(), 1u);
  EXPECT_EQ(plan.arrivals[0].location, row.location);
  EXPECT_EQ(plan.arrivals[0].table, row.table);
  EXPECT_EQ(plan.arrivals[0].key, row.key);
  EXPECT_EQ(plan.arrivals[0].payload_bytes, row.payload_bytes);
}

TEST(TopkPlan, RanksByHeatPerByte) {
  // 30 / 100 is more than 50 / 200.
  const TopkPlan plan = PlanOf({Row(1, 50, false, 200), Row(2, 30, false, 100)}, 200);
  EXPECT_EQ(UnitsOf(plan.arrivals), Units{2});
}

TEST(TopkPlan, KeepsAnHbmRowUpToFiveQuartersOfItsHeat) {
  EXPECT_TRUE(PlanOf({Row(1, 80, true), Row(2, 100, false)}, 100).arrivals.empty());
  const TopkPlan plan = PlanOf({Row(1, 80, true), Row(2, 101, false)}, 100);
  EXPECT_EQ(UnitsOf(plan.arrivals), Units{2});
  EXPECT_EQ(UnitsOf(plan.leavers), Units{1});
}

TEST(TopkPlan, WithoutHysteresisTakesTheHotterRow) {
  const TopkPlan plan = PlanOf({Row(1, 100, true), Row(2, 101, false)}, 100, false);
  EXPECT_EQ(UnitsOf(plan.arrivals), Units{2});
  EXPECT_EQ(UnitsOf(plan.leavers), Units{1});
}

TEST(TopkPlan, LeavesOutARowLargerThanTheBudget) {
  const TopkPlan plan = PlanOf({Row(1, 1000, true, 301), Row(2, 1, false, 100)}, 300);
  EXPECT_EQ(UnitsOf(plan.leavers), Units{1});
  EXPECT_EQ(UnitsOf(plan.arrivals), Units{2});
  EXPECT_FALSE(plan.fits_all);
}

TEST(TopkPlan, AnEmptyBudgetHasOnlyLeavers) {
  const TopkPlan plan = PlanOf({Row(1, 9, true), Row(2, 9, false)}, 0);
  EXPECT_EQ(UnitsOf(plan.leavers), Units{1});
  EXPECT_TRUE(plan.arrivals.empty());
}

// With rows of several sizes a smaller row may fit where a leaver did not.
TEST(TopkPlan, RowsOfOneSizeDoNotMoveAgainAfterTheirMoves) {
  Random random(7);
  for (int i = 0; i < 200; ++i) {
    Rows rows = RandomRows(&random);
    for (TopkCandidate& row : rows) row.payload_bytes = 100;
    const uint64_t budget_bytes = RandomBudget(rows, &random);
    const TopkPlan first = PlanOf(rows, budget_bytes);
    for (const PlannedRow& row : first.leavers) rows[row.location.units].in_hbm = false;
    for (const PlannedRow& row : first.arrivals) rows[row.location.units].in_hbm = true;
    const TopkPlan second = PlanOf(rows, budget_bytes);
    EXPECT_TRUE(second.leavers.empty());
    EXPECT_TRUE(second.arrivals.empty());
  }
}

// Rows change between the two walks: heats, sizes, whether they are in HBM, and their number.
TEST(TopkPlan, StaysInItsBudgetWhileRowsChange) {
  Random random(11);
  uint64_t moves = 0;
  for (int i = 0; i < 2000; ++i) {
    const Rows before = RandomRows(&random);
    Rows after = before;
    for (TopkCandidate& row : after) {
      if (random.OneIn(3)) row.heat = RandomHeat(&random);
    }
    for (uint64_t n = random.Below(50); n > 0; --n) {
      after.push_back(Row(1000 + n, RandomHeat(&random), false));
    }
    const uint64_t budget_bytes = RandomBudget(before, &random);
    int walks = 0;
    const auto source = [&](TopkVisit visit) {
      for (const TopkCandidate& row : walks == 0 ? before : after) visit(row);
      ++walks;
    };
    const StatusOr<TopkPlan> plan = PlanTopk(source, {.budget_bytes = budget_bytes});
    ASSERT_TRUE(plan.ok());
    std::set<uint64_t> moved;
    uint64_t arrival_bytes = 0;
    uint64_t hbm_bytes = 0;
    for (const TopkCandidate& row : after) hbm_bytes += row.in_hbm ? row.payload_bytes : 0;
    for (const PlannedRow& row : plan->leavers) {
      EXPECT_TRUE(moved.insert(row.location.units).second);
      hbm_bytes -= row.payload_bytes;
    }
    for (const PlannedRow& row : plan->arrivals) {
      EXPECT_TRUE(moved.insert(row.location.units).second);
      arrival_bytes += row.payload_bytes;
    }
    EXPECT_EQ(plan->hbm_bytes, hbm_bytes + arrival_bytes);
    EXPECT_TRUE(plan->hbm_bytes <= budget_bytes || arrival_bytes == 0);
    moves += moved.size();
  }
  EXPECT_GT(moves, 10000u);
}

}  // namespace
}  // namespace embank::topk_plan_test
