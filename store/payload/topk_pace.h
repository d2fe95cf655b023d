// The pace of top-k flushes: a drift of the traffic ends heat epochs early, and flushes early.
//
//   drift              v
//   looks    ....|....|....|....|....|....|....|....|....|....|....|....|....|....|....|
//   flushes      F         *    F         F                   F                        F
//                          epochs end; the next flushes are 1, 2, 4, .. looks apart
//
// The pace compares the hit ratio since the last look with the one that the HBM rows had before. In
// steady traffic no epoch ends early, so heat is as good an estimate as counters that never age.
// Where the hit ratio falls, old heat is halved for each tenth of the hits that are gone. Flushes
// follow each other closely at first, because each new batch tells much then.
#ifndef EMBANK_STORE_PAYLOAD_TOPK_PACE_H_
#define EMBANK_STORE_PAYLOAD_TOPK_PACE_H_

#include <cstdint>

namespace embank {

// The figures of the batches since the last look: positions of lookups, and those of HBM rows.
struct HitFigures {
  uint64_t lookups;
  uint64_t hits;  // at most `lookups`
};

// The caller ends this many epochs first, and makes a top-k flush then.
struct TopkStep {
  uint32_t epochs = 0;
  bool flush = false;  // false: no epoch ends either
};

// It has no clock, takes no lock, and touches no row. One thread.
class TopkPace {
 public:
  // Looks between two flushes of steady traffic, where there are as many batches.
  static constexpr uint64_t kLooksPerFlush = 10;
  // Fewer lookups than these say nothing: the look is joined with the next one.
  static constexpr uint64_t kLookupsMin = 2048;
  // At most so many epochs end at once: what 64 flushes counted is as much as one new flush then.
  static constexpr uint32_t kEpochsMax = 6;

  // `flush_batches`, at least 1: lookup batches between two flushes of steady traffic.
  explicit TopkPace(uint64_t flush_batches);

  // The caller looks after so many batches.
  uint64_t look_batches() const { return look_batches_; }

  // Says what the caller does now. Call it after each look's batches, from the first flush on.
  TopkStep Look(HitFigures figures);

 private:
  uint32_t EpochsFor(double hit_ratio, uint64_t lookups) const;
  void Remember(double hit_ratio);

  const uint64_t look_batches_;
  const uint64_t flush_looks_;  // of steady traffic
  HitFigures pending_{};        // of looks that had too few lookups
  double usual_ratio_ = 0.0;    // a mean of the last looks' hit ratios
  uint64_t usual_looks_ = 0;    // looks that it knows
  uint64_t looks_ = 0;          // since the last flush
  uint64_t looks_to_flush_;     // from the last flush
};

}  // namespace embank

#endif  // EMBANK_STORE_PAYLOAD_TOPK_PACE_H_
