#include "tiers/dram/eviction_order.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstdio>
#include <memory>
#include <vector>

#include "tests/support/events.h"
#include "tests/support/random.h"
#include "tests/tiers/eviction_slots_in_test.h"

namespace embank::test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr EvictionPolicy kPolicies[] = {EvictionPolicy::kLru, EvictionPolicy::kClock,
                                        EvictionPolicy::kLfu};

// All slots in the order in which they leave.
template <typename Slots>
std::vector<uint32_t> Drain(EvictionOrder<Slots>* order) {
  std::vector<uint32_t> left;
  for (uint32_t slot; (slot = order->Victim()) != kNoVictim;) {
    order->Remove(slot);
    left.push_back(slot);
  }
  EXPECT_EQ(order->count(), 0u);
  return left;
}

TEST(EvictionOrder, AnEmptyOneHasNoVictim) {
  for (const EvictionPolicy policy : kPolicies) {
    SlotsInTest slots(1);
    EvictionOrder order(policy, &slots);
    EXPECT_EQ(order.Victim(), kNoVictim);
    EXPECT_EQ(order.count(), 0u);
    order.Add(0);
    EXPECT_EQ(order.Victim(), 0u);
    order.Remove(0);
    EXPECT_EQ(order.Victim(), kNoVictim);
  }
}

TEST(EvictionOrder, AVictimStaysUntilItIsRemovedOrUsed) {
  for (const EvictionPolicy policy : kPolicies) {
    SlotsInTest slots(3);
    EvictionOrder order(policy, &slots);
    for (const uint32_t slot : {0u, 1u, 2u}) order.Add(slot);
    EXPECT_EQ(order.Victim(), 0u);
    EXPECT_EQ(order.Victim(), 0u);
    slots.LookUp(0);
    order.Touch(0);
    EXPECT_EQ(order.Victim(), 1u);
    EXPECT_EQ(order.count(), 3u);
  }
}

TEST(EvictionOrder, WhatNobodyUsesLeavesAsItCame) {
  for (const EvictionPolicy policy : kPolicies) {
    SlotsInTest slots(6);
    EvictionOrder order(policy, &slots);
    for (const uint32_t slot : {3u, 1u, 5u, 0u}) order.Add(slot);
    EXPECT_THAT(Drain(&order), ElementsAre(3, 1, 5, 0));
    EXPECT_THAT(Drain(&order), IsEmpty());
  }
}

TEST(EvictionOrder, AnySlotCanBeRemoved) {
  for (const EvictionPolicy policy : kPolicies) {
    for (uint32_t removed = 0; removed < 5; ++removed) {
      SlotsInTest slots(5);
      EvictionOrder order(policy, &slots);
      std::vector<uint32_t> expected;
      for (uint32_t slot = 0; slot < 5; ++slot) {
        order.Add(slot);
        if (slot != removed) expected.push_back(slot);
      }
      order.Remove(removed);
      EXPECT_EQ(order.count(), 4u);
      order.Add(removed);
      expected.push_back(removed);
      EXPECT_EQ(Drain(&order), expected) << removed;
    }
  }
}

TEST(EvictionOrder, TheLargestSlotNumberIsASlot) {
  struct OneSlot {
    EvictionLinks& Links(uint32_t slot) {
      EXPECT_EQ(slot, kEvictionSlotsMax - 1);
      return links;
    }
    bool TakeReferenced(uint32_t) { return false; }
    uint32_t Heat(uint32_t) { return kHeatMax; }
    uint64_t HeatEpochs() { return 0; }
    EvictionLinks links;
  };
  for (const EvictionPolicy policy : kPolicies) {
    OneSlot slots;
    EvictionOrder order(policy, &slots);
    order.Add(kEvictionSlotsMax - 1);
    order.Touch(kEvictionSlotsMax - 1);
    EXPECT_THAT(Drain(&order), ElementsAre(kEvictionSlotsMax - 1));
  }
}

TEST(EvictionOrder, LruTouchesMoveFrontMiddleAndBack) {
  SlotsInTest slots(4);
  EvictionOrder order(EvictionPolicy::kLru, &slots);
  for (const uint32_t slot : {0u, 1u, 2u, 3u}) order.Add(slot);
  order.Touch(3);
  order.Touch(1);
  order.Touch(0);
  EXPECT_THAT(Drain(&order), ElementsAre(2, 3, 1, 0));
}

TEST(EvictionOrder, ClockGivesAReferencedRowOneMoreRound) {
  SlotsInTest slots(3);
  EvictionOrder order(EvictionPolicy::kClock, &slots);
  for (const uint32_t slot : {0u, 1u, 2u}) order.Add(slot);
  slots.LookUp(0);
  slots.LookUp(1);
  slots.LookUp(1);
  EXPECT_THAT(Drain(&order), ElementsAre(2, 0, 1));
}

TEST(EvictionOrder, ClockDoesNotCountTheLookupThatMadeTheRow) {
  SlotsInTest slots(2);
  EvictionOrder order(EvictionPolicy::kClock, &slots);
  slots.LookUp(0);
  order.Add(0);
  order.Add(1);
  EXPECT_EQ(order.Victim(), 0u);
}

TEST(EvictionOrder, ClockFindsAVictimWhenAllAreReferenced) {
  SlotsInTest slots(3);
  EvictionOrder order(EvictionPolicy::kClock, &slots);
  for (const uint32_t slot : {0u, 1u, 2u}) {
    order.Add(slot);
    slots.LookUp(slot);
  }
  EXPECT_THAT(Drain(&order), ElementsAre(0, 1, 2));
}

TEST(EvictionOrder, OneCallPassesOverABoundedNumberOfRows) {
  constexpr uint32_t kMany = 2 * kPassedOverMax + 8;
  for (const EvictionPolicy policy : {EvictionPolicy::kClock, EvictionPolicy::kLfu}) {
    SlotsInTest slots(kMany);
    EvictionOrder order(policy, &slots);
    for (uint32_t slot = 0; slot < kMany; ++slot) order.Add(slot);
    for (uint32_t slot = 0; slot < kMany; ++slot) slots.LookUp(slot, 2);
    slots.ResetAsked();
    EXPECT_EQ(order.Victim(), kPassedOverMax);
    EXPECT_LE(slots.asked(), kPassedOverMax + 1);
    order.Remove(kPassedOverMax);
    EXPECT_EQ(order.Victim(), 2 * kPassedOverMax + 1);
    EXPECT_EQ(Drain(&order).size(), kMany - 1);
  }
}

TEST(EvictionOrder, LfuEvictsTheColdestLevelTheOldestOfItFirst) {
  SlotsInTest slots(6);
  EvictionOrder order(EvictionPolicy::kLfu, &slots);
  const uint32_t heat[] = {9, 2, 0, 3, 1, kHeatMax};
  for (uint32_t slot = 0; slot < 6; ++slot) {
    slots.LookUp(slot, heat[slot]);
    order.Add(slot);
  }
  EXPECT_THAT(Drain(&order), ElementsAre(2, 4, 1, 3, 0, 5));
}

TEST(EvictionOrder, LfuFollowsHeatThatRises) {
  SlotsInTest slots(3);
  EvictionOrder order(EvictionPolicy::kLfu, &slots);
  for (const uint32_t slot : {0u, 1u, 2u}) {
    slots.LookUp(slot);
    order.Add(slot);
  }
  slots.LookUp(0, 100);
  slots.LookUp(1, 1);
  EXPECT_THAT(Drain(&order), ElementsAre(2, 1, 0));
}

TEST(EvictionOrder, LfuFollowsHeatThatAges) {
  SlotsInTest slots(3);
  EvictionOrder order(EvictionPolicy::kLfu, &slots);
  slots.LookUp(0, 64);
  order.Add(0);
  slots.EndEpochs(4);  // 64 -> 4
  slots.LookUp(1, 3);
  order.Add(1);
  slots.LookUp(2, 8);
  order.Add(2);
  EXPECT_EQ(order.Victim(), 1u);
  slots.EndEpochs(1);  // 2, 1, 4
  slots.LookUp(1, 4);  // 5
  EXPECT_THAT(Drain(&order), ElementsAre(0, 2, 1));
}

TEST(EvictionOrder, LfuHoldsAllRowsWhenTheyHaveCooledWholly) {
  for (const uint64_t epochs : {20, 21, 22, 100, 1000}) {
    SlotsInTest slots(5);
    EvictionOrder order(EvictionPolicy::kLfu, &slots);
    const uint32_t heat[] = {kHeatMax, 700, 5, 0};
    for (uint32_t slot = 0; slot < 4; ++slot) {
      slots.LookUp(slot, heat[slot]);
      order.Add(slot);
    }
    slots.EndEpochs(epochs);
    order.Add(4);
    EXPECT_THAT(Drain(&order), ElementsAre(3, 2, 1, 0, 4)) << epochs;
  }
}

TEST(EvictionOrder, LfuTakesRowsInOnTheLevelsOfNow) {
  SlotsInTest slots(1);
  EvictionOrder order(EvictionPolicy::kLfu, &slots);
  slots.EndEpochs(5);
  slots.LookUp(0, 8);
  order.Add(0);
  slots.ResetAsked();
  EXPECT_EQ(order.Victim(), 0u);
  EXPECT_EQ(slots.asked(), 1u) << "it was moved";
}

// CLOCK in its plainest form: a line whose last element goes back to the front while it is
// referenced.
class ClockModel {
 public:
  explicit ClockModel(std::vector<bool>* referenced) : referenced_(referenced) {}

  void Add(uint32_t slot) {
    (*referenced_)[slot] = false;
    line_.insert(line_.begin(), slot);
  }
  void Remove(uint32_t slot) { std::erase(line_, slot); }
  uint32_t Victim() {
    if (line_.empty()) return kNoVictim;
    while ((*referenced_)[line_.back()]) {
      (*referenced_)[line_.back()] = false;
      line_.insert(line_.begin(), line_.back());
      line_.pop_back();
    }
    return line_.back();
  }

 private:
  std::vector<bool>* const referenced_;
  std::vector<uint32_t> line_;
};

TEST(EvictionOrder, ClockAgreesWithItsModel) {
  constexpr uint32_t kSlots = 60;
  SlotsInTest slots(kSlots);
  EvictionOrder order(EvictionPolicy::kClock, &slots);
  std::vector<bool> referenced(kSlots, false);
  ClockModel model(&referenced);
  std::vector<bool> inside(kSlots, false);
  Random random(1);
  for (int step = 0; step < 200'000; ++step) {
    const auto slot = static_cast<uint32_t>(random.Below(kSlots));
    if (!inside[slot]) {
      order.Add(slot);
      model.Add(slot);
      inside[slot] = true;
    } else if (random.OneIn(8)) {
      order.Remove(slot);
      model.Remove(slot);
      inside[slot] = false;
    } else {
      slots.LookUp(slot);
      order.Touch(slot);
      referenced[slot] = true;
    }
    if (!random.OneIn(3)) continue;
    const uint32_t victim = model.Victim();
    ASSERT_EQ(order.Victim(), victim) << "step " << step;
    if (victim == kNoVictim) continue;
    order.Remove(victim);
    model.Remove(victim);
    inside[victim] = false;
  }
}

// Several orders of one slot space, as the shards and slot classes of a store have them.
TEST(EvictionOrder, LfuEvictsFromTheColdestLevelThroughAllAges) {
  constexpr uint32_t kSlots = 200;  // fewer than are passed over, so that each victim is exact
  constexpr size_t kOrders = 3;
  Events events;
  for (const char* event : {"victim was the only one", "victim of level 0", "victim of level 1..3",
                            "victim of level 4 and more", "epoch ended", "many epochs ended"}) {
    events.Expect(event);
  }
  SlotsInTest slots(kSlots);
  std::vector<std::unique_ptr<EvictionOrder<SlotsInTest>>> orders;
  for (size_t i = 0; i < kOrders; ++i) {
    orders.push_back(std::make_unique<EvictionOrder<SlotsInTest>>(EvictionPolicy::kLfu, &slots));
  }
  std::vector<size_t> order_of(kSlots, kOrders);  // kOrders: in none
  const auto level_of = [&](uint32_t slot) {
    return static_cast<uint32_t>(std::bit_width(slots.Heat(slot)));
  };
  Random random(2);
  for (int step = 0; step < 300'000; ++step) {
    const auto slot = static_cast<uint32_t>(random.Below(kSlots));
    // Some slots are looked up far more often than others.
    slots.LookUp(slot, random.Below(slot + 1) < 5 ? 1 + static_cast<uint32_t>(random.Below(9)) : 0);
    if (order_of[slot] == kOrders) {
      order_of[slot] = random.Below(kOrders);
      orders[order_of[slot]]->Add(slot);
    } else if (random.OneIn(20)) {
      orders[order_of[slot]]->Remove(slot);
      order_of[slot] = kOrders;
    }
    if (random.OneIn(5000)) {
      const bool many = random.OneIn(10);
      slots.EndEpochs(many ? 5 + random.Below(30) : 1);
      events.Count(many ? "many epochs ended" : "epoch ended");
    }
    if (!random.OneIn(3)) continue;
    const size_t chosen = random.Below(kOrders);
    const uint32_t victim = orders[chosen]->Victim();
    uint64_t count = 0;
    uint32_t coldest = kHeatLevels;
    for (uint32_t other = 0; other < kSlots; ++other) {
      if (order_of[other] != chosen) continue;
      ++count;
      coldest = std::min(coldest, level_of(other));
    }
    ASSERT_EQ(orders[chosen]->count(), count);
    if (count == 0) {
      ASSERT_EQ(victim, kNoVictim);
      continue;
    }
    ASSERT_EQ(order_of[victim], chosen) << "step " << step;
    ASSERT_EQ(level_of(victim), coldest) << "step " << step;
    events.Count(coldest == 0  ? "victim of level 0"
                 : coldest < 4 ? "victim of level 1..3"
                               : "victim of level 4 and more");
    if (count == 1) events.Count("victim was the only one");
    orders[chosen]->Remove(victim);
    order_of[victim] = kOrders;
  }
  std::fputs(events.Table().c_str(), stdout);
  EXPECT_EQ(events.Missing(), "");
}

TEST(EvictionOrder, LfuMovesNoMoreThanLookupsHaveDoubledHeats) {
  constexpr uint32_t kSlots = 1000;
  SlotsInTest slots(kSlots);
  EvictionOrder order(EvictionPolicy::kLfu, &slots);
  for (uint32_t slot = 0; slot < kSlots; ++slot) order.Add(slot);
  slots.ResetAsked();
  Random random(3);
  uint64_t lookups = 0;
  uint64_t victims = 0;
  for (int step = 0; step < 100'000; ++step) {
    slots.LookUp(static_cast<uint32_t>(random.Below(kSlots)));
    ++lookups;
    if (random.OneIn(3000)) slots.EndEpochs(1);
    if (!random.OneIn(10)) continue;
    const uint32_t victim = order.Victim();
    order.Remove(victim);
    order.Add(victim);
    ++victims;
  }
  // Each victim is asked for its heat twice, when it leaves and when it returns; each move once.
  EXPECT_LE(slots.asked(), 2 * victims + lookups);
  EXPECT_GT(slots.asked(), 2 * victims);
}

}  // namespace
}  // namespace embank::test
