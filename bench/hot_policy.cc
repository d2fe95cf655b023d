#include "bench/hot_policy.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "bench/exact_lru.h"
#include "store/payload/topk_pace.h"
#include "store/payload/topk_plan.h"
#include "store/placement/heat_clock.h"
#include "tests/support/algorithm1.h"
#include "tiers/row/row_header.h"

namespace embank {
namespace {

constexpr uint32_t kRowBytes = 1;  // of the plan's budget: all rows are equal

// Whether each id is hot.
class HotFlags {
 public:
  explicit HotFlags(uint32_t rows) : is_hot_(rows) {}

  bool operator[](uint32_t id) const { return is_hot_[id] != 0; }

  HotHits Count(const HotBatch& batch) const {
    HotHits hits{.lookups = batch.ids.size(), .distinct = batch.distinct.size()};
    for (size_t i = 0; i < batch.distinct.size(); ++i) {
      if (is_hot_[batch.distinct[i]] == 0) continue;
      hits.lookup_hits += batch.counts[i];
      ++hits.distinct_hits;
    }
    return hits;
  }

  // Plans with the heat that `heat_of` gives, and moves what the plan says. Returns how many rows
  // became hot. An id of which heat_of returns a negative number has no row.
  template <typename HeatOfId>
  uint64_t Flush(const TopkPlanOptions& options, const HeatOfId& heat_of) {
    const auto source = [&](TopkVisit visit) {
      for (uint32_t id = 0; id < is_hot_.size(); ++id) {
        const int64_t heat = heat_of(id);
        if (heat < 0) continue;
        visit({.location = Location{id},
               .heat = static_cast<uint32_t>(std::min<int64_t>(heat, kHeatMax)),
               .payload_bytes = kRowBytes,
               .table = 0,
               .key = id,
               .in_hbm = is_hot_[id] != 0});
      }
    };
    const StatusOr<TopkPlan> plan = PlanTopk(source, options);
    EMBANK_CHECK(plan.ok());
    for (const PlannedRow& row : plan->leavers) is_hot_[row.key] = 0;
    for (const PlannedRow& row : plan->arrivals) is_hot_[row.key] = 1;
    return plan->arrivals.size();
  }

  void Assign(std::span<const uint32_t> ids) {
    std::fill(is_hot_.begin(), is_hot_.end(), uint8_t{0});
    for (const uint32_t id : ids) is_hot_[id] = 1;
  }

 private:
  std::vector<uint8_t> is_hot_;
};

bool IsFlush(const HotShape& shape, uint64_t iteration) {
  return iteration >= shape.warmup_iters && iteration % shape.flush_iters == 0;
}

class AlgorithmPolicy final : public HotPolicy {
 public:
  explicit AlgorithmPolicy(const HotShape& shape)
      : algorithm_({shape.hot_rows, shape.warmup_iters, shape.flush_iters}) {}

  HotHits Lookup(const HotBatch& batch) override {
    HotHits hits{.lookups = batch.ids.size(), .distinct = batch.distinct.size()};
    for (const uint32_t id : batch.distinct) hits.distinct_hits += algorithm_.hot().count(id);
    ids_.assign(batch.ids.begin(), batch.ids.end());
    hits.lookup_hits = algorithm_.Iterate(ids_);
    return hits;
  }

 private:
  test::Algorithm1 algorithm_;
  std::vector<uint64_t> ids_;
};

class CounterPolicy final : public HotPolicy {
 public:
  CounterPolicy(const HotShape& shape, bool halves)
      : shape_(shape), halves_(halves), flags_(shape.rows), counts_(shape.rows) {}

  HotHits Lookup(const HotBatch& batch) override {
    const HotHits hits = flags_.Count(batch);
    for (size_t i = 0; i < batch.distinct.size(); ++i)
      counts_[batch.distinct[i]] += batch.counts[i];
    if (IsFlush(shape_, batch.iteration)) Flush();
    return hits;
  }
  uint64_t flushes() const override { return flushes_; }
  uint64_t moves() const override { return moves_; }

 private:
  void Flush() {
    ++flushes_;
    moves_ += flags_.Flush({uint64_t{kRowBytes} * shape_.hot_rows, false}, [&](uint32_t id) {
      return counts_[id] == 0 && !flags_[id] ? int64_t{-1} : int64_t{counts_[id]};
    });
    if (!halves_) return;
    for (uint32_t& count : counts_) count /= 2;
  }

  const HotShape shape_;
  const bool halves_;
  HotFlags flags_;
  std::vector<uint32_t> counts_;
  uint64_t flushes_ = 0;
  uint64_t moves_ = 0;
};

class LruPolicy final : public HotPolicy {
 public:
  explicit LruPolicy(const HotShape& shape) : lru_(shape.rows, shape.hot_rows), seen_(shape.rows) {}

  // A distinct id hits if its first position in the batch does.
  HotHits Lookup(const HotBatch& batch) override {
    HotHits hits{.lookups = batch.ids.size(), .distinct = batch.distinct.size()};
    for (const uint32_t id : batch.ids) {
      const bool hit = lru_.Access(id);
      hits.lookup_hits += hit ? 1 : 0;
      hits.distinct_hits += hit && seen_[id] != batch.iteration + 1 ? 1 : 0;
      seen_[id] = batch.iteration + 1;
    }
    return hits;
  }

 private:
  ExactLru lru_;
  std::vector<uint64_t> seen_;  // by id: 1 + its last iteration; 0: none
};

class EmbankPolicy final : public HotPolicy {
 public:
  explicit EmbankPolicy(const HotShape& shape)
      : shape_(shape),
        flags_(shape.rows),
        headers_(shape.rows, RowHeader{0, kNoTable, 0}),
        pace_(shape.flush_iters) {}

  HotHits Lookup(const HotBatch& batch) override {
    const HotHits hits = flags_.Count(batch);
    for (size_t i = 0; i < batch.distinct.size(); ++i) {
      RowHeader* const header = &headers_[batch.distinct[i]];
      if (header->identity == kNoTable) ++created_;
      header->identity = 0;
      header->usage = TouchedUsage(header->usage, Now(), batch.counts[i]);
    }
    positions_ += batch.ids.size();
    if (positions_ >= HeatEpochPositions(created_)) {
      positions_ = 0;
      EndEpochs(1);
    }
    if (batch.iteration < shape_.warmup_iters) return hits;
    if (flushes_ == 0) {
      Flush();
      return hits;
    }
    figures_.lookups += hits.lookups;
    figures_.hits += hits.lookup_hits;
    if (++batches_ % pace_.look_batches() == 0) Look();
    return hits;
  }
  uint64_t flushes() const override { return flushes_; }
  uint64_t moves() const override { return moves_; }
  uint64_t early_epochs() const override { return early_epochs_; }

 private:
  HeatEpoch Now() const { return static_cast<HeatEpoch>(epochs_); }

  void EndEpochs(uint32_t epochs) {
    epochs_ += epochs;
    // As the clock of a store does over 64 epochs.
    for (RowHeader& header : headers_) header.usage = TouchedUsage(header.usage, Now(), 0);
  }

  void Look() {
    const TopkStep step = pace_.Look(std::exchange(figures_, {}));
    if (step.epochs > 0) EndEpochs(step.epochs);
    early_epochs_ += step.epochs;
    if (step.flush) Flush();
  }

  void Flush() {
    ++flushes_;
    moves_ += flags_.Flush({uint64_t{kRowBytes} * shape_.hot_rows, true}, [&](uint32_t id) {
      const RowHeader& header = headers_[id];
      if (header.identity == kNoTable) return int64_t{-1};
      return int64_t{HeatOf(header.usage, Now())};
    });
  }

  const HotShape shape_;
  HotFlags flags_;
  std::vector<RowHeader> headers_;
  TopkPace pace_;
  HitFigures figures_{};
  uint64_t batches_ = 0;  // since the first flush
  uint64_t created_ = 0;
  uint64_t positions_ = 0;  // since the epoch began
  uint32_t epochs_ = 0;
  uint64_t flushes_ = 0;
  uint64_t moves_ = 0;
  uint64_t early_epochs_ = 0;
};

class IdealPolicy final : public HotPolicy {
 public:
  explicit IdealPolicy(const HotShape& shape) : shape_(shape), flags_(shape.rows) {}

  HotHits Lookup(const HotBatch& batch) override { return flags_.Count(batch); }
  void Learn(std::span<const uint32_t> order) override {
    flags_.Assign(order.first(std::min<size_t>(order.size(), shape_.hot_rows)));
  }

 private:
  const HotShape shape_;
  HotFlags flags_;
};

}  // namespace

void HotHits::Add(const HotHits& other) {
  lookups += other.lookups;
  lookup_hits += other.lookup_hits;
  distinct += other.distinct;
  distinct_hits += other.distinct_hits;
}

const char* HotPolicyName(HotPolicyKind kind) {
  constexpr std::array kNames = {"algorithm", "cumulative", "halving", "lru", "embank", "ideal"};
  static_assert(kNames.size() == kHotPolicyKinds.size());
  return kNames[static_cast<size_t>(kind)];
}

std::unique_ptr<HotPolicy> MakeHotPolicy(HotPolicyKind kind, const HotShape& shape) {
  switch (kind) {
    case HotPolicyKind::kAlgorithm:
      return std::make_unique<AlgorithmPolicy>(shape);
    case HotPolicyKind::kCumulative:
      return std::make_unique<CounterPolicy>(shape, false);
    case HotPolicyKind::kHalving:
      return std::make_unique<CounterPolicy>(shape, true);
    case HotPolicyKind::kLru:
      return std::make_unique<LruPolicy>(shape);
    case HotPolicyKind::kEmbank:
      return std::make_unique<EmbankPolicy>(shape);
    case HotPolicyKind::kIdeal:
      break;
  }
  return std::make_unique<IdealPolicy>(shape);
}

}  // namespace embank
