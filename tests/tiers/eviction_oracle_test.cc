// LRU against std::list: a million random operations, and as many times more as EMBANK_TEST_SCALE
// says, on several orders that share one space of slots. The orders allocate nothing.
#include <gtest/gtest.h>

#include <cstdio>
#include <list>
#include <memory>
#include <vector>

#include "tests/support/allocation_faults.h"
#include "tests/support/environment.h"
#include "tests/support/events.h"
#include "tests/support/random.h"
#include "tests/tiers/eviction_slots_in_test.h"

namespace embank::test::eviction_oracle_test {
namespace {

constexpr uint64_t kOperationsPerScale = 1'000'000;
constexpr uint32_t kSlots = 2000;
constexpr size_t kOrders = 4;
constexpr size_t kNowhere = kOrders;

class LruBesideLists {
 public:
  explicit LruBesideLists(Events* events)
      : events_(events), slots_(kSlots), place_(kSlots), order_of_(kSlots, kNowhere) {
    for (size_t i = 0; i < kOrders; ++i) {
      orders_.push_back(
          std::make_unique<EvictionOrder<SlotsInTest>>(EvictionPolicy::kLru, &slots_));
    }
  }

  void Step(Random* random) {
    const auto slot = static_cast<uint32_t>(random->Below(kSlots));
    const size_t order = order_of_[slot];
    if (order == kNowhere) {
      // The first order is nearly empty at all times.
      Add(slot, random->OneIn(20) ? 0 : random->Between(1, kOrders - 1));
    } else if (random->OneIn(6)) {
      Remove(slot);
    } else {
      Touch(slot);
    }
    if (random->OneIn(4)) Evict(random->Below(kOrders));
    if (random->OneIn(50'000)) EvictAll(random->Below(kOrders));
  }
  void EvictAll(size_t order) {
    while (!lists_[order].empty()) {
      Evict(order);
      ASSERT_FALSE(testing::Test::HasFatalFailure());
    }
    ASSERT_EQ(orders_[order]->Victim(), kNoVictim);
    events_->Count("an order emptied");
  }

 private:
  void Add(uint32_t slot, size_t order) {
    orders_[order]->Add(slot);
    order_of_[slot] = order;
    place_[slot] = lists_[order].insert(lists_[order].begin(), slot);
    events_->Count("added");
  }
  void Remove(uint32_t slot) {
    std::list<uint32_t>& list = lists_[order_of_[slot]];
    events_->Count(list.size() == 1                        ? "removed the only one"
                   : place_[slot] == list.begin()          ? "removed the newest"
                   : std::next(place_[slot]) == list.end() ? "removed the oldest"
                                                           : "removed from the middle");
    orders_[order_of_[slot]]->Remove(slot);
    list.erase(place_[slot]);
    order_of_[slot] = kNowhere;
  }
  void Touch(uint32_t slot) {
    std::list<uint32_t>& list = lists_[order_of_[slot]];
    orders_[order_of_[slot]]->Touch(slot);
    list.splice(list.begin(), list, place_[slot]);
    events_->Count("touched");
  }
  void Evict(size_t order) {
    std::list<uint32_t>& list = lists_[order];
    ASSERT_EQ(orders_[order]->count(), list.size());
    const uint32_t victim = orders_[order]->Victim();
    ASSERT_EQ(victim, list.empty() ? kNoVictim : list.back());
    if (list.empty()) return;
    orders_[order]->Remove(victim);
    list.pop_back();
    order_of_[victim] = kNowhere;
    events_->Count("evicted");
  }

  Events* const events_;
  SlotsInTest slots_;
  std::vector<std::unique_ptr<EvictionOrder<SlotsInTest>>> orders_;
  std::list<uint32_t> lists_[kOrders];
  std::vector<std::list<uint32_t>::iterator> place_;
  std::vector<size_t> order_of_;
};

TEST(EvictionOracle, LruEvictsAsAListDoes) {
  Events events;
  for (const char* event :
       {"added", "touched", "evicted", "removed the only one", "removed the newest",
        "removed the oldest", "removed from the middle", "an order emptied"}) {
    events.Expect(event);
  }
  const uint64_t seed = NumberFromEnvironment("EMBANK_TEST_SEED", FirstSeed());
  Random random(seed);
  LruBesideLists world(&events);
  for (uint64_t step = 0; step < kOperationsPerScale * TestScale(); ++step) {
    world.Step(&random);
    ASSERT_FALSE(testing::Test::HasFatalFailure()) << "seed " << seed << ", step " << step;
  }
  for (size_t order = 0; order < kOrders; ++order) world.EvictAll(order);
  std::fputs(events.Table().c_str(), stdout);
  EXPECT_EQ(events.Missing(), "");
}

// Half of the slots in the order: each step adds or uses one, or evicts.
void UseWithoutMemory(EvictionOrder<SlotsInTest>* order, SlotsInTest* slots,
                      std::vector<bool>* inside) {
  Random random(4);
  const AllocationFaults faults(1, FaultKind::kSince);
  for (int step = 0; step < 100'000; ++step) {
    const auto slot = static_cast<uint32_t>(random.Below(kSlots));
    slots->LookUp(slot);
    (*inside)[slot] ? order->Touch(slot) : order->Add(slot);
    (*inside)[slot] = true;
    if (random.OneIn(1000)) slots->EndEpochs(1);
    if (order->count() <= kSlots / 2) continue;
    const uint32_t victim = order->Victim();
    order->Remove(victim);
    (*inside)[victim] = false;
  }
}

TEST(EvictionOracle, NoPolicyAllocates) {
  for (const EvictionPolicy policy :
       {EvictionPolicy::kLru, EvictionPolicy::kClock, EvictionPolicy::kLfu}) {
    SlotsInTest slots(kSlots);
    std::vector<bool> inside(kSlots, false);
    EvictionOrder order(policy, &slots);
    UseWithoutMemory(&order, &slots, &inside);
    EXPECT_EQ(AllocationFaults::Failed(), 0u);
    EXPECT_EQ(order.count(), kSlots / 2);
  }
}

}  // namespace
}  // namespace embank::test::eviction_oracle_test
