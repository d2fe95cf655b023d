// Slots for the tests of eviction orders: links, lookups and heat in plain arrays.
#ifndef EMBANK_TESTS_TIERS_EVICTION_SLOTS_IN_TEST_H_
#define EMBANK_TESTS_TIERS_EVICTION_SLOTS_IN_TEST_H_

#include <algorithm>
#include <cstdint>
#include <vector>

#include "tiers/dram/eviction_order.h"

namespace embank::test {

class SlotsInTest {
 public:
  explicit SlotsInTest(uint32_t count) : links_(count), referenced_(count), heat_(count) {}

  EvictionLinks& Links(uint32_t slot) { return links_.at(slot); }
  bool TakeReferenced(uint32_t slot) {
    ++asked_;
    const bool was = referenced_.at(slot);
    referenced_[slot] = false;
    return was;
  }
  bool IsReferenced(uint32_t slot) const { return referenced_.at(slot); }
  uint32_t Heat(uint32_t slot) {
    ++asked_;
    return heat_.at(slot);
  }

  // A lookup of a reader.
  void LookUp(uint32_t slot, uint32_t times = 1) {
    referenced_.at(slot) = true;
    heat_.at(slot) = std::min(heat_[slot] + times, kHeatMax);
  }
  void EndEpochs(uint64_t epochs) {
    for (uint32_t& heat : heat_) heat = epochs < kHeatBits ? heat >> epochs : 0;
  }

  // How often the order has asked for a reference or a heat.
  uint64_t asked() const { return asked_; }
  void ResetAsked() { asked_ = 0; }

 private:
  std::vector<EvictionLinks> links_;
  std::vector<bool> referenced_;
  std::vector<uint32_t> heat_;
  uint64_t asked_ = 0;
};

}  // namespace embank::test

#endif  // EMBANK_TESTS_TIERS_EVICTION_SLOTS_IN_TEST_H_
