// Policies that choose which rows are hot, for simulations of a hot set of equal rows.
#ifndef EMBANK_BENCH_HOT_POLICY_H_
#define EMBANK_BENCH_HOT_POLICY_H_

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace embank {

// The ids of one iteration, in order, and its distinct ids with how often each occurs.
struct HotBatch {
  uint64_t iteration;
  std::span<const uint32_t> ids;
  std::span<const uint32_t> distinct;
  std::span<const uint32_t> counts;
};

// Lookups and distinct ids of some batches, and those of hot rows.
struct HotHits {
  uint64_t lookups = 0;
  uint64_t lookup_hits = 0;
  uint64_t distinct = 0;
  uint64_t distinct_hits = 0;

  // Adds those of other batches.
  void Add(const HotHits& other);
};

// algorithm: the reference interpreter of Algorithm 1. cumulative: the same by the planner.
// halving: counters are halved at each flush. lru: an exact LRU cache. embank: the planner with
// hysteresis, the pace, and heat. ideal: the ids of the highest true probability.
enum class HotPolicyKind { kAlgorithm, kCumulative, kHalving, kLru, kEmbank, kIdeal };
inline constexpr std::array kHotPolicyKinds = {
    HotPolicyKind::kAlgorithm, HotPolicyKind::kCumulative, HotPolicyKind::kHalving,
    HotPolicyKind::kLru,       HotPolicyKind::kEmbank,     HotPolicyKind::kIdeal};

// "algorithm", ...
const char* HotPolicyName(HotPolicyKind kind);

// Sizes of a simulation. Ids are below `rows`.
struct HotShape {
  uint32_t rows = 0;
  uint32_t hot_rows = 0;  // k
  uint64_t warmup_iters = 100;
  uint64_t flush_iters = 100;
};

class HotPolicy {
 public:
  virtual ~HotPolicy() = default;
  // Looks up a batch, and flushes behind it when it is time.
  virtual HotHits Lookup(const HotBatch& batch) = 0;
  // The true order of ids by probability, highest first, from the next batch on. Only `ideal` uses
  // it.
  virtual void Learn(std::span<const uint32_t> /*order*/) {}
  // Flushes, rows that became hot, and heat epochs that ended early, so far.
  virtual uint64_t flushes() const { return 0; }
  virtual uint64_t moves() const { return 0; }
  virtual uint64_t early_epochs() const { return 0; }
};

// Makes a policy.
std::unique_ptr<HotPolicy> MakeHotPolicy(HotPolicyKind kind, const HotShape& shape);

}  // namespace embank

#endif  // EMBANK_BENCH_HOT_POLICY_H_
