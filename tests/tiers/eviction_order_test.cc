#include "tiers/dram/eviction_order.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <vector>

#include "tests/support/random.h"
#include "tests/tiers/eviction_slots_in_test.h"

namespace embank::test::eviction_order_test {
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

TEST(EvictionOrder, APeekChangesNothing) {
  for (const EvictionPolicy policy : kPolicies) {
    SlotsInTest slots(4);
    EvictionOrder order(policy, &slots);
    EXPECT_EQ(order.Peek(), kNoVictim);
    for (const uint32_t slot : {0u, 1u, 2u, 3u}) order.Add(slot);
    slots.LookUp(0);
    order.Touch(0);
    slots.LookUp(1);
    order.Touch(1);
    slots.ResetAsked();
    EXPECT_EQ(order.Peek(), 2u);
    EXPECT_EQ(order.Peek(), 2u);
    EXPECT_EQ(slots.asked(), 0u) << "no second chance was taken";
    EXPECT_EQ(order.Victim(), 2u);
    if (policy == EvictionPolicy::kLru) continue;
    slots.LookUp(2);
    slots.LookUp(3);
    EXPECT_NE(order.Peek(), kNoVictim) << "all were looked up";
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

TEST(EvictionOrder, UnusedSlotsLeaveInTheOrderOfTheirArrival) {
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
    // LFU asks each of them for its heat, too.
    EXPECT_LE(slots.asked(), 2 * kPassedOverMax);
    order.Remove(kPassedOverMax);
    EXPECT_EQ(order.Victim(), 2 * kPassedOverMax + 1);
    EXPECT_EQ(Drain(&order).size(), kMany - 1);
  }
}

TEST(EvictionOrder, LfuGivesAsManyRoundsAsARowHasHeatTheOldestGoesFirst) {
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

TEST(EvictionOrder, LfuTurnsGoByTheHeatOfThen) {
  SlotsInTest slots(3);
  EvictionOrder order(EvictionPolicy::kLfu, &slots);
  for (const uint32_t slot : {0u, 1u, 2u}) order.Add(slot);
  slots.LookUp(0, 64);
  slots.EndEpochs(5);  // 64 -> 2
  slots.LookUp(1, 3);
  slots.LookUp(2, 2);
  EXPECT_THAT(Drain(&order), ElementsAre(0, 2, 1));
}

TEST(EvictionOrder, LfuLetsARowGoThatWasHotAndIsNotUsedAnyMore) {
  constexpr uint32_t kHot = 0;
  SlotsInTest slots(2 * kRoundsAheadMax);
  EvictionOrder order(EvictionPolicy::kLfu, &slots);
  slots.LookUp(kHot, kHeatMax);
  order.Add(kHot);
  uint32_t rounds = 0;
  for (uint32_t cold = 1;; ++cold, ++rounds) {
    order.Add(cold);
    const uint32_t victim = order.Victim();
    order.Remove(victim);
    if (victim == kHot) break;
    ASSERT_EQ(victim, cold);
  }
  EXPECT_EQ(rounds, kRoundsAheadMax - 1);
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

// A model of LFU: lists by the number of a round. A row whose turn comes and that was looked up
// goes as many rounds on as it has heat, at least one and at most kRoundsAheadMax.
class LfuModel {
 public:
  LfuModel(const std::vector<bool>* looked_up, SlotsInTest* slots)
      : looked_up_(*looked_up), slots_(*slots) {}

  void Add(uint32_t slot) {
    const uint64_t heat = std::min(slots_.Heat(slot), kRoundsAheadMax);
    lists_[round_ + std::max<uint64_t>(heat, 1)].push_back(slot);
  }
  void Remove(uint32_t slot) {
    for (auto& [round, list] : lists_) std::erase(list, slot);
  }
  // `forget(slot)`: it was not looked up since.
  template <typename Forget>
  uint32_t Victim(Forget forget) {
    while (!lists_.empty()) {
      const auto first = lists_.begin();
      if (first->second.empty()) {
        lists_.erase(first);
        continue;
      }
      round_ = first->first;
      const uint32_t slot = first->second.front();
      if (!looked_up_[slot]) return slot;
      first->second.erase(first->second.begin());
      forget(slot);
      Add(slot);
    }
    return kNoVictim;
  }
  uint64_t round() const { return round_; }

 private:
  const std::vector<bool>& looked_up_;
  SlotsInTest& slots_;
  uint64_t round_ = 0;
  std::map<uint64_t, std::vector<uint32_t>> lists_;
};

// Several orders of one slot space, as the shards and slot classes of a store have them.
TEST(EvictionOrder, LfuAgreesWithItsModelThroughAllAges) {
  constexpr uint32_t kSlots = 200;  // fewer than are passed over, so that each victim is exact
  constexpr size_t kOrders = 3;
  SlotsInTest slots(kSlots);
  std::vector<bool> looked_up(kSlots, false);
  std::vector<std::unique_ptr<EvictionOrder<SlotsInTest>>> orders;
  std::vector<LfuModel> models(kOrders, LfuModel(&looked_up, &slots));
  for (size_t i = 0; i < kOrders; ++i) {
    orders.push_back(std::make_unique<EvictionOrder<SlotsInTest>>(EvictionPolicy::kLfu, &slots));
  }
  std::vector<size_t> order_of(kSlots, kOrders);  // kOrders: in none
  const auto remove = [&](uint32_t slot) {
    orders[order_of[slot]]->Remove(slot);
    models[order_of[slot]].Remove(slot);
    order_of[slot] = kOrders;
  };
  Random random(2);
  uint64_t victims = 0;
  for (int step = 0; step < 300'000; ++step) {
    const auto slot = static_cast<uint32_t>(random.Below(kSlots));
    // Some slots are looked up far more often than others.
    if (random.Below(slot + 1) < 5) {
      slots.LookUp(slot, 1 + static_cast<uint32_t>(random.Below(9)));
      looked_up[slot] = true;
    }
    if (order_of[slot] == kOrders) {
      order_of[slot] = random.Below(kOrders);
      orders[order_of[slot]]->Add(slot);
      looked_up[slot] = false;
      models[order_of[slot]].Add(slot);
    } else if (random.OneIn(20)) {
      remove(slot);
    }
    if (random.OneIn(5000)) slots.EndEpochs(random.OneIn(10) ? 5 + random.Below(30) : 1);
    if (!random.OneIn(3)) continue;
    const size_t chosen = random.Below(kOrders);
    const uint32_t victim =
        models[chosen].Victim([&](uint32_t passed) { looked_up[passed] = false; });
    ASSERT_EQ(orders[chosen]->Victim(), victim) << "step " << step;
    if (victim == kNoVictim) continue;
    remove(victim);
    ++victims;
  }
  EXPECT_GT(victims, 10'000u);
  for (const LfuModel& model : models) EXPECT_GT(model.round(), 1000u);
}

TEST(EvictionOrder, ASlotAsideIsNoVictimUntilItIsPutBack) {
  for (const EvictionPolicy policy : kPolicies) {
    SlotsInTest slots(5);
    EvictionOrder order(policy, &slots);
    for (uint32_t slot = 0; slot < 5; ++slot) order.Add(slot);
    order.PutAside(0);
    order.PutAside(1);
    EXPECT_EQ(order.count(), 5u);
    EXPECT_EQ(order.Victim(), 2u);
    order.Remove(2);
    EXPECT_EQ(order.RemoveAside(), 0u);
    order.PutBack();
    EXPECT_EQ(order.RemoveAside(), kNoVictim);
    EXPECT_EQ(order.count(), 3u);
    if (policy == EvictionPolicy::kLru) {
      EXPECT_THAT(Drain(&order), ElementsAre(1, 3, 4)) << "its former place";
    } else {
      EXPECT_THAT(Drain(&order), ElementsAre(3, 4, 1)) << "as one just looked up";
    }
  }
}

TEST(EvictionOrder, LruTakesBackARowThatIsTouchedWhileItStandsAside) {
  SlotsInTest slots(4);
  EvictionOrder order(EvictionPolicy::kLru, &slots);
  for (uint32_t slot = 0; slot < 4; ++slot) order.Add(slot);
  for (const uint32_t slot : {0u, 1u, 2u}) order.PutAside(slot);
  order.Touch(1);
  order.PutBack();
  EXPECT_THAT(Drain(&order), ElementsAre(0, 2, 3, 1));
}

TEST(EvictionOrder, LfuMovesNoMoreThanLookupsHavePaidFor) {
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
  // A victim is asked when it leaves, and twice when it returns; a row that is passed over twice.
  EXPECT_LE(slots.asked(), 3 * victims + 2 * lookups);
  EXPECT_GT(slots.asked(), 3 * victims);
}

}  // namespace
}  // namespace embank::test::eviction_order_test
