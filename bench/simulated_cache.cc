#include "bench/simulated_cache.h"

#include <algorithm>
#include <queue>

#include "store/placement/heat_clock.h"
#include "tiers/row/row_header.h"

namespace embank {
namespace {

constexpr uint32_t kNowhere = 0xFFFFFFFF;
constexpr uint32_t kReferencedFlag = 1;  // of a usage word

class SimulatedCache {
 public:
  SimulatedCache(uint32_t distinct, uint32_t capacity, EvictionPolicy policy,
                 ReturningHeat returning)
      : returning_(returning),
        order_(policy, this),
        slot_of_(distinct, kNowhere),
        left_(distinct),
        key_of_(capacity),
        links_(capacity),
        usage_(capacity) {}

  // Whether the key was there; it is from now on.
  bool Access(uint32_t key) {
    uint32_t slot = slot_of_[key];
    const bool is_hit = slot != kNowhere;
    if (!is_hit) slot = Admit(key);
    usage_[slot] = TouchedUsage(usage_[slot], Now(), 1) | kReferencedFlag;
    if (is_hit) {
      order_.Touch(slot);
    } else {
      order_.Add(slot);
    }
    CountPosition(key);
    return is_hit;
  }

  // The functions of slots that order_ calls.
  EvictionLinks& Links(uint32_t slot) { return links_[slot]; }
  bool TakeReferenced(uint32_t slot) {
    const bool was = (usage_[slot] & kReferencedFlag) != 0;
    usage_[slot] &= ~kReferencedFlag;
    return was;
  }
  uint32_t Heat(uint32_t slot) { return HeatOf(usage_[slot], Now()); }

 private:
  struct Leaver {
    uint32_t heat = 0;
    uint32_t epochs = 0;  // that had ended when it left
  };

  HeatEpoch Now() const { return static_cast<HeatEpoch>(epochs_); }

  // A slot for a key: a fresh one, or that of the next to leave.
  uint32_t Admit(uint32_t key) {
    auto slot = static_cast<uint32_t>(order_.count());
    if (slot == key_of_.size()) {
      slot = order_.Victim();
      order_.Remove(slot);
      slot_of_[key_of_[slot]] = kNowhere;
      left_[key_of_[slot]] = {Heat(slot), epochs_};
    }
    const Leaver& left = left_[key];
    const uint32_t epochs = std::min(epochs_ - left.epochs, kHeatBits);
    const uint32_t heat = returning_ == ReturningHeat::kKept ? left.heat >> epochs : 0;
    usage_[slot] = PackUsage(0, heat, Now());
    key_of_[slot] = key;
    slot_of_[key] = slot;
    return slot;
  }

  // As HeatClock counts, for which rows outside of the cache are rows too.
  void CountPosition(uint32_t key) {
    rows_ = std::max(rows_, key + 1);
    if (++positions_ < HeatEpochPositions(rows_)) return;
    positions_ = 0;
    ++epochs_;
    for (uint32_t& usage : usage_) usage = TouchedUsage(usage, Now(), 0);
  }

  const ReturningHeat returning_;
  EvictionOrder<SimulatedCache> order_;
  std::vector<uint32_t> slot_of_;  // by key
  std::vector<Leaver> left_;       // by key
  std::vector<uint32_t> key_of_;   // by slot
  std::vector<EvictionLinks> links_;
  std::vector<uint32_t> usage_;
  uint32_t rows_ = 0;
  uint64_t positions_ = 0;  // since the epoch began
  uint32_t epochs_ = 0;
};

// Where each access's key is accessed next; kNowhere: not again.
std::vector<uint32_t> NextUses(const AccessStream& stream) {
  std::vector<uint32_t> next(stream.keys.size());
  std::vector<uint32_t> later(stream.distinct, kNowhere);
  for (size_t i = next.size(); i-- > 0;) {
    next[i] = later[stream.keys[i]];
    later[stream.keys[i]] = static_cast<uint32_t>(i);
  }
  return next;
}

}  // namespace

uint64_t SimulateHits(const AccessStream& stream, uint32_t capacity, EvictionPolicy policy,
                      ReturningHeat returning) {
  SimulatedCache cache(stream.distinct, capacity, policy, returning);
  uint64_t hits = 0;
  for (const uint32_t key : stream.keys) hits += cache.Access(key) ? 1 : 0;
  return hits;
}

uint64_t OptimalHits(const AccessStream& stream, uint32_t capacity) {
  const std::vector<uint32_t> next = NextUses(stream);
  std::vector<bool> is_cached(stream.distinct, false);
  // Next uses of what is cached. Those that have come lie deep below, behind all that will.
  std::priority_queue<uint32_t> next_uses;
  uint32_t unused = 0;  // cached rows that are not used again
  uint32_t cached = 0;
  uint64_t hits = 0;
  for (size_t i = 0; i < next.size(); ++i) {
    const uint32_t key = stream.keys[i];
    if (is_cached[key]) {
      ++hits;
    } else if (cached < capacity) {
      ++cached;
    } else if (unused > 0) {
      --unused;
    } else {
      is_cached[stream.keys[next_uses.top()]] = false;
      next_uses.pop();
    }
    is_cached[key] = true;
    if (next[i] == kNowhere) {
      ++unused;
    } else {
      next_uses.push(next[i]);
    }
  }
  return hits;
}

}  // namespace embank
