#include "tests/support/algorithm1.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "store/payload/topk_plan.h"
#include "tests/support/random.h"
#include "tiers/row/row_header.h"

namespace embank::algorithm1_test {
namespace {

using test::Algorithm1;
using test::Random;
using Ids = std::vector<uint64_t>;

TEST(Algorithm1, CountsAndMissesDuringWarmUp) {
  Algorithm1 algorithm({.k = 2, .warmup_iters = 3, .flush_iters = 1});
  for (int i = 0; i < 3; ++i) EXPECT_EQ(algorithm.Iterate(Ids{7, 7, 8}), 0u);
  EXPECT_TRUE(algorithm.hot().empty());
  EXPECT_EQ(algorithm.Iterate(Ids{7, 8}), 0u) << "the flush is behind the lookup";
  EXPECT_EQ(algorithm.hot(), (std::unordered_set<uint64_t>{7, 8}));
  EXPECT_EQ(algorithm.Iterate(Ids{7, 7, 9}), 2u);
}

TEST(Algorithm1, FlushesWhereTheIterationIsAMultiple) {
  Algorithm1 algorithm({.k = 1, .warmup_iters = 3, .flush_iters = 4});
  for (int i = 0; i < 4; ++i) {
    algorithm.Iterate(Ids{5});
    EXPECT_TRUE(algorithm.hot().empty()) << i;
  }
  algorithm.Iterate(Ids{6});
  EXPECT_EQ(algorithm.hot(), std::unordered_set<uint64_t>{5});
}

TEST(Algorithm1, PutsTheLowerIdOfEqualCountsFirst) {
  Algorithm1 algorithm({.k = 2, .warmup_iters = 0, .flush_iters = 1});
  algorithm.Iterate(Ids{4, 3, 9, 9, 2});
  EXPECT_EQ(algorithm.hot(), (std::unordered_set<uint64_t>{2, 9}));
}

// The HBM rows of the planner over row headers, with hysteresis and epochs switched off.
class PlannedHbmRows {
 public:
  explicit PlannedHbmRows(const Algorithm1::Options& options) : options_(options) {}

  uint64_t Iterate(const Ids& ids) {
    uint64_t hits = 0;
    for (const uint64_t id : ids) {
      hits += hot_.count(id);
      uint32_t& usage = usage_[id];
      usage = TouchedUsage(usage, 0, 1);
    }
    if (itr_ >= options_.warmup_iters && itr_ % options_.flush_iters == 0) Flush();
    ++itr_;
    return hits;
  }
  const std::set<uint64_t>& hot() const { return hot_; }

 private:
  static constexpr uint32_t kPayloadBytes = 48;

  void Flush() {
    const auto source = [this](TopkVisit visit) {
      uint64_t units = 0;
      for (const auto& [id, usage] : usage_) {
        visit({.location = Location{units++},
               .heat = HeatOf(usage, 0),
               .payload_bytes = kPayloadBytes,
               .table = 3,
               .key = id,
               .in_hbm = hot_.contains(id)});
      }
    };
    const StatusOr<TopkPlan> plan = PlanTopk(
        source, {.budget_bytes = uint64_t{kPayloadBytes} * options_.k, .hysteresis = false});
    ASSERT_TRUE(plan.ok());
    for (const PlannedRow& row : plan->leavers) EXPECT_EQ(hot_.erase(row.key), 1u);
    for (const PlannedRow& row : plan->arrivals) EXPECT_TRUE(hot_.insert(row.key).second);
  }

  const Algorithm1::Options options_;
  uint64_t itr_ = 0;
  std::map<uint64_t, uint32_t> usage_;
  std::set<uint64_t> hot_;
};

TEST(Algorithm1, PicksTheHotSetAndHitsOfThePlannerAtEveryIteration) {
  uint64_t hits = 0;
  uint64_t flushes_that_move = 0;
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    Random random(seed);
    const Algorithm1::Options options{.k = random.Below(200),
                                      .warmup_iters = random.Below(20),
                                      .flush_iters = random.Between(1, 12)};
    Algorithm1 algorithm(options);
    PlannedHbmRows planned(options);
    for (int itr = 0; itr < 80; ++itr) {
      Ids ids(random.Below(120));
      // The product of two draws is skewed; ids are scattered over all 64 bits.
      for (uint64_t& id : ids) id = random.Below(1 + random.Below(400)) * 0x9E3779B97F4A7C15u;
      const std::set<uint64_t> before = planned.hot();
      const uint64_t expected = algorithm.Iterate(ids);
      ASSERT_EQ(planned.Iterate(ids), expected) << "seed " << seed << ", iteration " << itr;
      ASSERT_EQ(planned.hot(), std::set<uint64_t>(algorithm.hot().begin(), algorithm.hot().end()))
          << "seed " << seed << ", iteration " << itr;
      hits += expected;
      flushes_that_move += planned.hot() != before ? 1 : 0;
    }
  }
  EXPECT_GT(hits, 10000u);
  EXPECT_GT(flushes_that_move, 500u);
}

}  // namespace
}  // namespace embank::algorithm1_test
