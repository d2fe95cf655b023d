#include "store/gradients.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "store/batch.h"
#include "tiers/row_update.h"

namespace embank {
namespace {

// Gradients of a key are summed in runs of so many occurrences, then the runs (docs/arithmetic.md).
constexpr size_t kSumRun = 32;

float LoadFloat(const std::byte* from) {
  float value = 0;
  std::memcpy(&value, from, sizeof value);
  return value;
}

bool AllFinite(const std::byte* gradient, uint32_t dim) {
  constexpr uint32_t kExponentMask = 0x7F800000;
  uint32_t not_finite = 0;
  for (uint32_t i = 0; i < dim; ++i) {
    uint32_t bits = 0;
    std::memcpy(&bits, gradient + i * sizeof bits, sizeof bits);
    not_finite |= static_cast<uint32_t>((bits & kExponentMask) == kExponentMask);
  }
  return not_finite == 0;
}

absl::Status CheckFinite(const Table& table, KeySpan keys, ConstRowSpan gradients) {
  for (size_t i = 0; i < keys.size(); ++i) {
    if (AllFinite(gradients.Row(i), table.layout().dim)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("gradients: that of key ", keys[i], " at position ", i,
                     " is NaN or infinite; no gradient of the batch was applied"));
  }
  return absl::OkStatus();
}

// Sums the gradients of one key's positions, in order.
class GradientSum {
 public:
  explicit GradientSum(uint32_t dim) : dim_(dim) {}

  // The sum, valid until the next call; the caller may overwrite it.
  float* Sum(std::span<const uint32_t> positions, ConstRowSpan gradients) {
    SumRun(positions.first(std::min(kSumRun, positions.size())), gradients, total_);
    for (size_t begin = kSumRun; begin < positions.size(); begin += kSumRun) {
      SumRun(positions.subspan(begin, std::min(kSumRun, positions.size() - begin)), gradients,
             run_);
      for (uint32_t i = 0; i < dim_; ++i) total_[i] += run_[i];
    }
    return total_;
  }

 private:
  void SumRun(std::span<const uint32_t> positions, ConstRowSpan gradients, float* sum) const {
    std::memcpy(sum, gradients.Row(positions[0]), dim_ * sizeof(float));
    for (const uint32_t position : positions.subspan(1)) {
      const std::byte* const gradient = gradients.Row(position);
      for (uint32_t i = 0; i < dim_; ++i) sum[i] += LoadFloat(gradient + i * sizeof(float));
    }
  }

  const uint32_t dim_;
  float total_[kDimMax];
  float run_[kDimMax];
};

void StepGroup(const Batch& batch, const ShardGroup& group, const UpdateRule& rule,
               ConstRowSpan gradients) {
  Table& table = batch.table();
  const std::span<uint32_t> positions = group.positions;
  // Hashes part the keys of a table, so equal keys come to stand together, in position order.
  std::sort(positions.begin(), positions.end(), [&](uint32_t a, uint32_t b) {
    const KeyHash hash_a = batch.IdAt(a).hash;
    const KeyHash hash_b = batch.IdAt(b).hash;
    return hash_a != hash_b ? hash_a < hash_b : a < b;
  });
  GradientSum sum(table.layout().dim);
  MutexLock lock(&group.shard->mutex);
  for (size_t begin = 0, end = 0; begin < positions.size(); begin = end) {
    const RowId id = batch.IdAt(positions[begin]);
    for (end = begin; end < positions.size() && batch.IdAt(positions[end]).hash == id.hash;) ++end;
    const std::span<const uint32_t> same_key = positions.subspan(begin, end - begin);
    const Location location = table.parts().index->Find(*group.shard, id);
    const bool found = location != kNoLocation;
    if (found) {
      StepRow(table.layout(), rule, sum.Sum(same_key, gradients),
              table.parts().tier->Row(location));
    }
    for (const uint32_t position : same_key) {
      batch.Answer(group, position, found ? Outcome::kFound : Outcome::kAbsent);
    }
  }
}

}  // namespace

absl::Status ApplyGradients(Table* table, KeySpan keys, ConstRowSpan gradients,
                            OutcomeSpan outcomes) {
  EMBANK_RETURN_IF_ERROR(table->CheckAlive());
  if (table->layout().optimizer == Optimizer::kNone) {
    return absl::FailedPreconditionError(absl::StrCat(
        "table \"", table->name(), "\" has no optimizer; create it with one to apply gradients"));
  }
  const uint64_t begin_ns = table->parts().clock->NowNs();
  EMBANK_RETURN_IF_ERROR(CheckFinite(*table, keys, gradients));
  const UpdateRule rule = table->rule();
  Batch batch(table, keys, outcomes);
  EMBANK_RETURN_IF_ERROR(batch.Plan());
  batch.ForEachShard([&](const ShardGroup& group) { StepGroup(batch, group, rule, gradients); });
  batch.Publish(TableVerb::kGradients, begin_ns);
  return batch.AbsentStatus();
}

}  // namespace embank
