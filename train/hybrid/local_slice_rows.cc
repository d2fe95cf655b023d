#include "train/hybrid/local_slice_rows.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "base/status_macros.h"
#include "train/pipeline/embedding_pass.h"
#include "train/pipeline/local_rows.h"
#include "train/pipeline/row_steps.h"
#include "train/rate_schedule.h"
#include "train/step_plan.h"

namespace embank {
namespace {

constexpr SliceRange kOneSlice = {0, 1};

std::vector<Pack> PlanOneSlice(TrainerOptions options, std::span<const FeatureTable> features) {
  options.slices = options.micro_batches = 1;
  const StepPlan plan(options, features, kOneSlice);
  return {plan.packs().begin(), plan.packs().end()};
}

}  // namespace

// The embedding layer of a slice, as if it were a batch of one slice: its sums have the same bits.
// It keeps its memory from slice to slice.
class LocalSliceRows::SlicePass {
 public:
  SlicePass(const std::vector<EmbeddingFeature>& features, std::span<const Pack> packs)
      : packs_(packs), rows_(features, kOneSlice), pass_(features, 1, kOneSlice, &rows_) {}

  Status Pool(ClickBatch samples) {
    samples_ = std::move(samples);
    EMBANK_RETURN_IF_ERROR(FindRows(MissingRule::kCreate));
    for (const Pack& pack : packs_) pass_.StitchReduce(pack, 0);
    return OkStatus();
  }

  ConstMatrix Vectors(size_t feature) const { return pass_.Vectors(feature, 0); }

  // Sums the gradients of the samples that are kept; without those of the others, their ids have
  // no part in the step.
  Status Sum(std::span<const KeptSample> kept, std::span<const ConstMatrix> gradients) {
    if (kept.size() < samples_.samples) {
      ClickBatch all = std::exchange(samples_, ClickBatch());
      all.labels.clear();
      samples_.Clear(all.features.size());
      for (const KeptSample& sample : kept) AppendSample(all, sample.sample, &samples_);
      EMBANK_RETURN_IF_ERROR(FindRows(MissingRule::kDefault));
    }
    for (size_t i = 0; i < gradients.size(); ++i) {
      const Matrix to = pass_.Gradients(i, 0);
      EMBANK_CHECK(to.rows == kept.size());
      for (uint32_t row = 0; row < to.rows; ++row) {
        std::ranges::copy(gradients[i].Row(kept[row].row), to.Row(row).begin());
      }
    }
    for (const Pack& pack : packs_) pass_.SumGradients(pack, 0);
    return OkStatus();
  }

  bool AreSumsFinite() const { return pass_.AreSumsFinite(); }
  SumRun RunOf(uint32_t feature) {
    const SliceIds& ids = pass_.ids()->Of(feature, 0);
    return {.feature = feature, .ids = ids.ids, .sums = ids.sums[0]};
  }

 private:
  Status FindRows(MissingRule rule) {
    pass_.Begin(&samples_);
    for (const Pack& pack : packs_) {
      pass_.MakeUnique(pack, 0);
      EMBANK_RETURN_IF_ERROR(rows_.Gather(pack, kOneSlice, rule, pass_.ids()));
    }
    return OkStatus();
  }

  const std::span<const Pack> packs_;
  LocalRows rows_;
  EmbeddingPass pass_;
  ClickBatch samples_;
};

LocalSliceRows::LocalSliceRows(const TrainerOptions& options,
                               std::span<const FeatureTable> features,
                               std::span<Table* const> tables, uint64_t steps)
    : options_(options),
      tables_(tables.begin(), tables.end()),
      steps_(steps),
      packs_(PlanOneSlice(options, features)) {
  for (const FeatureTable& feature : features) {
    const auto table = std::ranges::find_if(
        tables_, [&](const Table* one) { return one->name() == feature.name; });
    EMBANK_CHECK(table != tables_.end());
    features_.push_back({.table = *table, .column = feature.column, .dim = feature.dim});
    pooled_.push_back({.column = feature.column, .dim = feature.dim});
  }
}

LocalSliceRows::~LocalSliceRows() = default;

std::unique_ptr<LocalSliceRows::SlicePass> LocalSliceRows::TakeFree() {
  const MutexLock lock(&mutex_);
  if (free_.empty()) return std::make_unique<SlicePass>(features_, packs_);
  std::unique_ptr<SlicePass> pass = std::move(free_.back());
  free_.pop_back();
  return pass;
}

LocalSliceRows::Batch* LocalSliceRows::BatchOf(uint64_t batch) {
  const uint64_t first = stepped() + (is_stepping_ ? 1 : 0);
  EMBANK_CHECK(batch >= first);
  while (batches_.size() <= batch - first) {
    Batch& added = batches_.emplace_back();
    added.passes.resize(options_.slices);
    added.has_ended.resize(options_.slices);
    added.open = options_.slices;
  }
  return &batches_[batch - first];
}

Status LocalSliceRows::Pool(SliceKey key, ClickBatch samples, std::span<const Matrix> vectors) {
  std::unique_ptr<SlicePass> pass = TakeFree();
  EMBANK_RETURN_IF_ERROR(pass->Pool(std::move(samples)));
  for (size_t i = 0; i < vectors.size(); ++i) {
    const ConstMatrix from = pass->Vectors(i);
    EMBANK_CHECK(from.HasShapeOf(vectors[i]) && from.stride == from.columns);
    std::memcpy(vectors[i].data, from.data, uint64_t{from.rows} * from.columns * sizeof(float));
  }
  const MutexLock lock(&mutex_);
  BatchOf(key.batch)->passes[key.slice] = std::move(pass);
  return OkStatus();
}

Status LocalSliceRows::End(SliceKey key, std::span<const KeptSample> kept,
                           std::span<const ConstMatrix> gradients) {
  std::unique_ptr<SlicePass> pass;
  {
    const MutexLock lock(&mutex_);
    pass = std::move(BatchOf(key.batch)->passes[key.slice]);
  }
  EMBANK_CHECK(pass != nullptr || kept.empty());
  if (!kept.empty()) EMBANK_RETURN_IF_ERROR(pass->Sum(kept, gradients));
  {
    const MutexLock lock(&mutex_);
    Batch* const batch = BatchOf(key.batch);
    EMBANK_CHECK(!batch->has_ended[key.slice]);
    batch->has_ended[key.slice] = true;
    --batch->open;
    if (!kept.empty()) batch->passes[key.slice] = std::move(pass);
    if (pass != nullptr) free_.push_back(std::move(pass));
  }
  return StepEnded();
}

// Takes the first batch, if all of its slices have ended and no other thread steps one.
bool LocalSliceRows::TakeEnded(Batch* batch) {
  const MutexLock lock(&mutex_);
  if (is_stepping_ || batches_.empty() || batches_.front().open > 0) return false;
  is_stepping_ = true;
  *batch = std::move(batches_.front());
  batches_.pop_front();
  return true;
}

Status LocalSliceRows::StepEnded() {
  for (Batch batch; TakeEnded(&batch);) {
    EMBANK_RETURN_IF_ERROR(Step(stepped(), batch));
    const MutexLock lock(&mutex_);
    for (std::unique_ptr<SlicePass>& pass : batch.passes) {
      if (pass != nullptr) free_.push_back(std::move(pass));
    }
    stepped_.fetch_add(1, std::memory_order_release);
    is_stepping_ = false;
  }
  return OkStatus();
}

Status LocalSliceRows::Step(uint64_t number, const Batch& batch) {
  EMBANK_RETURN_IF_ERROR(SetRates(steps_ + number));
  std::vector<SumRun> runs;
  bool are_finite = true;
  for (uint32_t feature = 0; feature < features_.size(); ++feature) {
    for (const std::unique_ptr<SlicePass>& pass : batch.passes) {
      if (pass != nullptr) runs.push_back(pass->RunOf(feature));
    }
  }
  for (const std::unique_ptr<SlicePass>& pass : batch.passes) {
    are_finite &= pass == nullptr || pass->AreSumsFinite();
  }
  const RowUpdate update = {.are_sums_finite = are_finite, .step = steps_ + number};
  IdsLeftOut left_out;
  Status stepped = StepRows(features_, std::move(runs), update, &left_out);
  left_out_.fetch_add(left_out.not_finite, std::memory_order_relaxed);
  return stepped;
}

// The rates of a trainer's step (Trainer::SetRates).
Status LocalSliceRows::SetRates(uint64_t step) {
  if (options_.schedule == RateSchedule{}) return OkStatus();
  UpdateRule rule = options_.row.rule;
  rule.learning_rate *= RateFactor(options_.schedule, step);
  for (Table* const table : tables_) {
    EMBANK_RETURN_IF_ERROR(table->ChangeRule([&](UpdateRule* of_table) { *of_table = rule; }));
  }
  return OkStatus();
}

}  // namespace embank
