#include "store/packed/packed_gradients.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <optional>
#include <vector>

#include "base/check.h"
#include "base/memory/scratch.h"
#include "base/no_throw_status.h"
#include "base/seeded_bug.h"
#include "base/status_macros.h"
#include "base/str_cat.h"
#include "store/batch/gradients.h"
#include "store/packed/bag_sums.h"
#include "store/packed/call_status.h"
#include "store/packed/table_groups.h"
#include "store/placement/row_mover.h"
#include "tiers/row/row_update.h"

namespace embank {
namespace {

// The gradients of a feature's positions: addresses, and the scaled rows at which they point.
class PositionGradients {
 public:
  explicit PositionGradients(const GradientFeature& feature)
      : feature_(feature), dim_(feature.table->layout().dim) {}

  // kResourceExhausted.
  Status Allocate() { return scaled_.Allocate(ScaledRows() * dim_); }

  // Checks that the gradients are finite. kInvalidArgument.
  Status Check() const {
    const bool is_pooled = feature_.pooling != Pooling::kNone;
    const uint64_t rows = is_pooled ? feature_.bags() : feature_.keys.size();
    for (uint64_t row = 0; row < rows; ++row) {
      if (AllFinite(feature_.gradients.Row(row), dim_)) continue;
      return NotFinite("row", row, "has a NaN or an infinity");
    }
    return OkStatus();
  }

  // Writes an address for each position. kInvalidArgument: a product with a weight is not finite.
  Status Write(const std::byte** addresses) {
    if (feature_.pooling == Pooling::kNone) {
      for (uint64_t i = 0; i < feature_.keys.size(); ++i) addresses[i] = feature_.gradients.Row(i);
      return OkStatus();
    }
    for (uint64_t bag = 0; bag < feature_.bags(); ++bag) {
      const uint64_t begin = feature_.offsets[bag];
      const uint64_t end = feature_.offsets[bag + 1];
      if (begin == end) continue;
      const std::byte* const shared = BagGradient(bag);
      for (uint64_t i = begin; i < end; ++i) {
        addresses[i] = feature_.weights == nullptr ? shared : Weighted(shared, i);
        if (feature_.weights == nullptr || AllFinite(addresses[i], dim_)) continue;
        return NotFinite("that of position", i, "is infinite times its weight");
      }
    }
    return OkStatus();
  }

 private:
  // Threads check gradients, and throw nothing.
  Status NotFinite(const char* what, uint64_t number, const char* is) const {
    return NoThrowStatus(StatusCode::kInvalidArgument, [&] {
      return StrCat("gradients: ", what, " ", number, " of a feature of table \"",
                    feature_.table->name(), "\" ", is, "; no gradient of the call was applied");
    });
  }

  // With weights, each position has a row of its own.
  uint64_t ScaledRows() const {
    if (feature_.weights != nullptr) return feature_.keys.size();
    const bool divides = feature_.pooling == Pooling::kMean || feature_.pooling == Pooling::kSqrtN;
    return divides ? feature_.bags() : 0;
  }

  float* Scaled(uint64_t row) { return scaled_.values().data() + row * dim_; }

  const std::byte* BagGradient(uint64_t bag) {
    const std::byte* const gradient = feature_.gradients.Row(bag);
    const float divisor = PoolingDivisor(feature_.pooling, feature_.bag_size(bag));
    if (feature_.weights != nullptr || ScaledRows() == 0) return gradient;
    float* const scaled = Scaled(bag);
    std::memcpy(scaled, gradient, dim_ * sizeof(float));
    for (uint32_t i = 0; i < dim_; ++i) scaled[i] /= divisor;
    return reinterpret_cast<const std::byte*>(scaled);
  }

  const std::byte* Weighted(const std::byte* gradient, uint64_t position) {
    float* const scaled = Scaled(position);
    std::memcpy(scaled, gradient, dim_ * sizeof(float));
    for (uint32_t i = 0; i < dim_; ++i) scaled[i] *= feature_.weights[position];
    return reinterpret_cast<const std::byte*>(scaled);
  }

  const GradientFeature& feature_;
  const uint32_t dim_;
  Scratch<float, 1> scaled_;
};

// The features of one table, as one batch.
class TableGradients {
 public:
  TableGradients(const TableGroup& group, std::span<const GradientFeature> features)
      : group_(group), features_(features) {
    for (const size_t i : group.features) {
      if (!features[i].keys.empty() && features[i].outcomes.empty()) has_outcomes_ = false;
      positions_.emplace_back(features[i]);
    }
  }

  // kResourceExhausted.
  Status Allocate() {
    const bool is_one = group_.features.size() == 1;
    const GradientFeature& first = features_[group_.features[0]];
    has_addresses_ = !is_one || first.pooling != Pooling::kNone;
    EMBANK_RETURN_IF_ERROR(addresses_.Allocate(has_addresses_ ? group_.keys : 0));
    EMBANK_RETURN_IF_ERROR(keys_.Allocate(is_one ? 0 : group_.keys));
    EMBANK_RETURN_IF_ERROR(outcomes_.Allocate(is_one || !has_outcomes_ ? 0 : group_.keys));
    for (PositionGradients& positions : positions_) EMBANK_RETURN_IF_ERROR(positions.Allocate());
    const KeySpan keys = is_one ? first.keys : KeySpan(keys_.values());
    const OutcomeSpan outcomes = !has_outcomes_ ? OutcomeSpan()
                                 : is_one       ? first.outcomes
                                                : OutcomeSpan(outcomes_.values());
    const GradientRows gradients =
        has_addresses_ ? GradientRows(addresses_.values().data()) : GradientRows(first.gradients);
    batch_.emplace(group_.table, keys, gradients, outcomes);
    return batch_->Allocate();
  }

  // Checks the gradients of all positions, and sets keys and gradients. Nothing has changed then.
  void Prepare() {
    uint64_t next = 0;
    for (size_t i = 0; i < group_.features.size() && prepared_.ok(); ++i) {
      const KeySpan keys = features_[group_.features[i]].keys;
      prepared_ = positions_[i].Check();
      if (prepared_.ok() && has_addresses_) {
        prepared_ = positions_[i].Write(addresses_.values().data() + next);
      }
      if (!keys_.values().empty()) std::ranges::copy(keys, keys_.values().begin() + next);
      next += keys.size();
    }
    EMBANK_CHECK(!prepared_.ok() || next == group_.keys);
  }
  const Status& prepared() const { return prepared_; }

  // Space in the log for rows of all positions.
  uint64_t LogBytes() const { return group_.keys * group_.table->mover()->rows().record_bytes(); }

  void Admit(uint64_t others_bytes) { batch_->Admit(others_bytes); }

  bool IsInPieces() const { return batch_->IsInPieces(); }

  void Step() { batch_->Step(); }

  // Counts the batch, which took so long.
  Status Finish(uint64_t nanoseconds) {
    Status status = batch_->Finish(nanoseconds);
    std::span<const uint8_t> outcomes = outcomes_.values();
    for (const size_t i : group_.features) {
      if (outcomes.empty()) break;
      const OutcomeSpan to = features_[i].outcomes;
      std::ranges::copy(outcomes.first(to.size()), to.begin());
      outcomes = outcomes.subspan(to.size());
    }
    return status;
  }

 private:
  const TableGroup& group_;
  const std::span<const GradientFeature> features_;
  Status prepared_;
  bool has_outcomes_ = true;
  bool has_addresses_ = true;                // or the one feature has its gradients in rows
  std::deque<PositionGradients> positions_;  // of each feature of the group
  Scratch<const std::byte*, 64> addresses_;
  Scratch<Key, 64> keys_;  // of all features, where there are several
  Scratch<uint8_t, 64> outcomes_;
  std::optional<GradientBatch> batch_;
};

}  // namespace

Status ApplyGradientsPacked(std::span<const GradientFeature> features) {
  for (const GradientFeature& feature : features) {
    EMBANK_RETURN_IF_ERROR(CheckTakesGradients(*feature.table));
  }
  if (features.empty()) return OkStatus();
  const Clock& clock = *features[0].table->parts().clock;
  const uint64_t begin_ns = clock.NowNs();
  const std::vector<TableGroup> groups = GroupByTable(features);
  std::deque<TableGradients> tables;
  for (const TableGroup& group : groups) {
    EMBANK_RETURN_IF_ERROR(tables.emplace_back(group, features).Allocate());
  }
  ForEachTable(groups, [&](size_t i) { tables[i].Prepare(); });
  uint64_t log_bytes = 0;
  for (const TableGradients& table : tables) {
    EMBANK_RETURN_IF_ERROR(table.prepared());
    log_bytes += table.LogBytes();
  }
  // Admission may wait for a checkpoint, which waits for guards.
  ForEachTable(groups, [&](size_t i) { tables[i].Admit(log_bytes - tables[i].LogBytes()); });
  if (Seeded(SeededBug::kBarrierInsideStep)) {
    ForEachTable(groups, [&](size_t i) {
      const ChangeGuard guard(groups[i].table->parts(), tables[i].IsInPieces());
      tables[i].Step();
    });
  } else {
    const bool in_pieces = std::ranges::any_of(tables, &TableGradients::IsInPieces);
    const ChangeGuard guard(groups[0].table->parts(), in_pieces);
    ForEachTable(groups, [&](size_t i) { tables[i].Step(); });
  }
  const uint64_t call_ns = clock.NowNs() - begin_ns;
  Status status;
  for (size_t i = 0; i < groups.size(); ++i) {
    KeepGraver(&status, tables[i].Finish(ShareNs(call_ns, groups[i], groups)));
  }
  return status;
}

}  // namespace embank
