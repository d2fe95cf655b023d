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
#include "store/device/caller_stream.h"
#include "store/device/row_transfer.h"
#include "store/packed/bag_sums.h"
#include "store/packed/call_status.h"
#include "store/packed/table_groups.h"
#include "store/payload/payload_rows.h"
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
    if (feature_.has_padding()) {
      return CheckRows(feature_.keys.size(), [&](uint64_t i) { return feature_.row_numbers[i]; });
    }
    const bool is_pooled = feature_.pooling != Pooling::kNone;
    return CheckRows(is_pooled ? feature_.bags() : feature_.keys.size(),
                     [](uint64_t i) { return i; });
  }

  // Writes an address for each position. kInvalidArgument: a product with a weight is not finite.
  Status Write(const std::byte** addresses) {
    if (feature_.pooling == Pooling::kNone) {
      for (uint64_t i = 0; i < feature_.keys.size(); ++i) {
        addresses[i] = feature_.gradients.Row(feature_.row_number(i));
      }
      return OkStatus();
    }
    uint64_t position = 0;
    for (uint64_t bag = 0; bag < feature_.bags(); ++bag) {
      const uint64_t end = position + feature_.bag_size(bag);
      if (position == end) continue;
      const float divisor = PoolingDivisor(feature_, bag);
      const std::byte* const shared = BagGradient(bag, divisor);
      for (; position < end; ++position) {
        const std::byte*& address = addresses[position];
        address = feature_.weights == nullptr ? shared : Weighted(shared, divisor, position);
        if (feature_.weights == nullptr || AllFinite(address, dim_)) continue;
        return NotFinite("that of position", position, "is infinite times its weight");
      }
    }
    return OkStatus();
  }

 private:
  template <typename RowOf>
  Status CheckRows(uint64_t count, RowOf row_of) const {
    for (uint64_t i = 0; i < count; ++i) {
      const uint64_t row = row_of(i);
      if (AllFinite(feature_.gradients.Row(row), dim_)) continue;
      return NotFinite("row", row, "has a NaN or an infinity");
    }
    return OkStatus();
  }

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

  // The gradient of a bag's positions, or with weights the one that they multiply.
  const std::byte* BagGradient(uint64_t bag, float divisor) {
    const std::byte* const gradient = feature_.gradients.Row(bag);
    if (feature_.weights != nullptr || ScaledRows() == 0) return gradient;
    float* const scaled = Scaled(bag);
    std::memcpy(scaled, gradient, dim_ * sizeof(float));
    for (uint32_t i = 0; i < dim_; ++i) scaled[i] /= divisor;
    return reinterpret_cast<const std::byte*>(scaled);
  }

  const std::byte* Weighted(const std::byte* gradient, float divisor, uint64_t position) {
    float* const scaled = Scaled(position);
    if (divisor == 0.0f) {
      std::memset(scaled, 0, dim_ * sizeof(float));
      return reinterpret_cast<const std::byte*>(scaled);
    }
    std::memcpy(scaled, gradient, dim_ * sizeof(float));
    if (feature_.pooling == Pooling::kMean) {
      for (uint32_t i = 0; i < dim_; ++i) scaled[i] /= divisor;
    }
    const float weight = feature_.weights[feature_.offsets[0] + position];
    for (uint32_t i = 0; i < dim_; ++i) scaled[i] *= weight;
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
    has_addresses_ = !is_one || first.pooling != Pooling::kNone || first.has_padding();
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

  void Step(const ChangeGuard& guard) { batch_->Step(guard); }

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
  Scratch<const std::byte*, kInlineKeys> addresses_;
  Scratch<Key, kInlineKeys> keys_;  // of all features, where there are several
  Scratch<uint8_t, kInlineKeys> outcomes_;
  std::optional<GradientBatch> batch_;
};

Status CheckAllTakeGradients(std::span<const GradientFeature> features) {
  for (const GradientFeature& feature : features) {
    EMBANK_RETURN_IF_ERROR(CheckTakesGradients(*feature.table));
  }
  return OkStatus();
}

uint64_t NowNs(std::span<const GradientFeature> features) {
  return features[0].table->store().clock->NowNs();
}

// A feature whose gradients are on the device, and the same in host memory, without the bytes of
// padding keys.
class FetchedGradients {
 public:
  explicit FetchedGradients(const GradientFeature& feature)
      : feature_(feature), dim_(feature.table->layout().dim) {}

  // kResourceExhausted.
  Status Allocate() {
    return memory_.Allocate((feature_.has_padding() ? feature_.padded_rows : Rows()) * dim_);
  }

  // kUnavailable: the device is lost.
  Status Fetch() {
    auto* const first = reinterpret_cast<std::byte*>(memory_.values().data());
    const ConstRowSpan from = feature_.gradients;
    const uint32_t row_bytes = dim_ * sizeof(float);
    EMBANK_RETURN_IF_ERROR(
        FetchRows(&feature_.table->store().payloads->memory(),
                  {const_cast<std::byte*>(from.data), from.stride_bytes}, row_bytes, Rows(),
                  [&](uint64_t row) { return static_cast<uint32_t>(feature_.row_number(row)); },
                  {first, row_bytes}));
    // To their numbers, which messages name: the last first, as no number is less than its row.
    for (uint64_t row = feature_.row_numbers.size(); row-- > 0;) {
      std::memmove(first + feature_.row_numbers[row] * uint64_t{row_bytes}, first + row * row_bytes,
                   row_bytes);
    }
    return OkStatus();
  }

  GradientFeature OnHost() const {
    GradientFeature on_host = feature_;
    on_host.gradients = {reinterpret_cast<const std::byte*>(memory_.values().data()),
                         dim_ * sizeof(float)};
    return on_host;
  }

 private:
  uint64_t Rows() const {
    return feature_.pooling == Pooling::kNone ? feature_.keys.size() : feature_.bags();
  }

  const GradientFeature& feature_;
  const uint32_t dim_;
  Scratch<float, 1> memory_;
};

// Applies the gradients of a call that has begun at `begin_ns`. There are features.
Status ApplyAll(std::span<const GradientFeature> features, uint64_t begin_ns) {
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
      {
        const ChangeGuard guard(groups[i].table->store(), tables[i].IsInPieces());
        tables[i].Step(guard);
      }
      GiveSeededBugTime();
    });
  } else {
    const bool in_pieces = std::ranges::any_of(tables, &TableGradients::IsInPieces);
    const ChangeGuard guard(groups[0].table->store(), in_pieces);
    ForEachTable(groups, [&](size_t i) { tables[i].Step(guard); });
  }
  const uint64_t call_ns = NowNs(features) - begin_ns;
  Status status;
  for (size_t i = 0; i < groups.size(); ++i) {
    KeepGraver(&status, tables[i].Finish(ShareNs(call_ns, groups[i], groups)));
  }
  return status;
}

}  // namespace

Status ApplyGradientsPacked(std::span<const GradientFeature> features) {
  EMBANK_RETURN_IF_ERROR(CheckAllTakeGradients(features));
  return features.empty() ? OkStatus() : ApplyAll(features, NowNs(features));
}

Status ApplyGradientsPackedFromDevice(std::span<const GradientFeature> features, void* stream) {
  EMBANK_RETURN_IF_ERROR(CheckAllTakeGradients(features));
  if (features.empty()) return OkStatus();
  const uint64_t begin_ns = NowNs(features);
  std::deque<FetchedGradients> fetched;
  std::vector<GradientFeature> on_host;
  for (const GradientFeature& feature : features) {
    EMBANK_RETURN_IF_ERROR(fetched.emplace_back(feature).Allocate());
    on_host.push_back(fetched.back().OnHost());
  }
  CallerStream callers(&features[0].table->store().payloads->memory().device(), stream);
  EMBANK_RETURN_IF_ERROR(callers.Join());
  for (FetchedGradients& each : fetched) EMBANK_RETURN_IF_ERROR(each.Fetch());
  EMBANK_RETURN_IF_ERROR(callers.Release());
  return ApplyAll(on_host, begin_ns);
}

}  // namespace embank
