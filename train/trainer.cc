#include "train/trainer.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "base/status_macros.h"
#include "base/str_cat.h"
#include "base/threads/clock.h"
#include "store/batch/prefetch.h"
#include "store/packed/packed_gradients.h"
#include "store/packed/packed_lookup.h"
#include "train/dense/gemm.h"
#include "train/dense/loss.h"
#include "train/dense/slices.h"

namespace embank {
namespace {

constexpr std::string_view kBlobHead = "embank-train 1\n";

// Adds the time of its scope.
class Timing {
 public:
  explicit Timing(double* seconds) : seconds_(seconds), begin_ns_(SteadyClock()->NowNs()) {}
  ~Timing() { *seconds_ += static_cast<double>(SteadyClock()->NowNs() - begin_ns_) * 1e-9; }
  Timing(const Timing&) = delete;
  Timing& operator=(const Timing&) = delete;

 private:
  double* const seconds_;
  const uint64_t begin_ns_;
};

std::string_view TakeLine(std::string_view* text) {
  const size_t end = std::min(text->find('\n'), text->size());
  const std::string_view line = text->substr(0, end);
  text->remove_prefix(std::min(end + 1, text->size()));
  return line;
}

// Takes a line "WORD NUMBER".
StatusOr<uint64_t> TakeNumber(std::string_view* text, std::string_view word) {
  std::string_view line = TakeLine(text);
  uint64_t number = 0;
  if (line.substr(0, word.size()) == word && line.size() > word.size()) {
    line.remove_prefix(word.size() + 1);
    const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), number);
    if (error == std::errc() && end == line.data() + line.size()) return number;
  }
  return DataLossError(StrCat("the checkpoint is of no trainer: it has no line \"", word, "\""));
}

Status CheckModel(std::string_view of_checkpoint, std::string_view of_trainer) {
  while (!of_checkpoint.empty() || !of_trainer.empty()) {
    const std::string_view theirs = TakeLine(&of_checkpoint);
    const std::string_view ours = TakeLine(&of_trainer);
    if (theirs == ours) continue;
    return FailedPreconditionError(StrCat("the checkpoint is of another model: it has \"", theirs,
                                          "\", and this one \"", ours, "\""));
  }
  return OkStatus();
}

}  // namespace

StatusOr<std::unique_ptr<Trainer>> Trainer::Open(const TrainerOptions& options,
                                                 const ClickColumns& columns) {
  EMBANK_RETURN_IF_ERROR(Validate(options));
  EMBANK_RETURN_IF_ERROR(PrepareGemm());
  EMBANK_ASSIGN_OR_RETURN(LayerGraph graph, MakeModel(options, columns));
  EMBANK_ASSIGN_OR_RETURN(std::unique_ptr<Store> store, Store::Open(options.store, {}));
  std::unique_ptr<Trainer> trainer(
      new Trainer(options, columns, std::move(graph), std::move(store)));
  EMBANK_RETURN_IF_ERROR(trainer->MakeParts());
  EMBANK_RETURN_IF_ERROR(trainer->Resume());
  return trainer;
}

Trainer::Trainer(const TrainerOptions& options, const ClickColumns& columns, LayerGraph graph,
                 std::unique_ptr<Store> store)
    : options_(options),
      model_text_(ModelText(options, columns)),
      dense_(static_cast<uint32_t>(columns.dense.size())),
      graph_(std::move(graph)),
      executor_(MakeThreadPool(
          WorkerThreads({.worker_threads = options.threads, .path = {}, .pmem_path = {}}))),
      store_(std::move(store)),
      features_(TablesOf(options, columns)),
      weights_(graph_.parameters()),
      weight_gradients_(options.slices * graph_.parameters()),
      vectors_(features_.size()),
      vector_gradients_(features_.size()),
      offsets_(features_.size()) {}

Status Trainer::MakeParts() {
  for (const FeatureTable& feature : features_) {
    EMBANK_ASSIGN_OR_RETURN(Table* const table, OpenTable(feature));
    tables_.push_back(table);
  }
  EMBANK_ASSIGN_OR_RETURN(dense_rows_, DenseRows::Open(store_.get()));
  EMBANK_ASSIGN_OR_RETURN(
      DenseOptimizer optimizer,
      DenseOptimizer::Create(options_.dense_optimizer, options_.dense_rule, graph_.parameters()));
  optimizer_.emplace(std::move(optimizer));
  const uint32_t samples_max = (options_.batch + options_.slices - 1) / options_.slices;
  for (uint32_t i = 0; i < options_.slices; ++i) runs_.emplace_back(&graph_, samples_max);
  graph_.Initialize(options_.seed, weights_);
  return OkStatus();
}

// The weights of a wide part begin with 0.
StatusOr<Table*> Trainer::OpenTable(const FeatureTable& feature) {
  StatusOr<Table*> table = store_->catalog().Open(feature.name);
  if (table.ok()) return table;
  const float range = feature.dim == 1 ? 0.0f : options_.row_range;
  return store_->CreateTable(
      feature.name,
      {.dim = feature.dim,
       .optimizer = options_.row_optimizer,
       .rule = options_.row_rule,
       .initializer = {.kind = range > 0.0f ? InitializerKind::kUniform : InitializerKind::kZero,
                       .a = -range,
                       .b = range}});
}

// Goes on at the last checkpoint, if the store has one.
Status Trainer::Resume() {
  if (store_->checkpoints() == nullptr) return OkStatus();
  const StatusOr<std::vector<std::byte>> blob = store_->checkpoints()->Blob();
  if (!blob.ok()) return IsNotFound(blob.status()) ? OkStatus() : blob.status();
  std::string_view text(reinterpret_cast<const char*>(blob->data()), blob->size());
  if (text.substr(0, kBlobHead.size()) != kBlobHead) {
    return FailedPreconditionError("the store is of no trainer: its checkpoint has another blob");
  }
  text.remove_prefix(kBlobHead.size());
  EMBANK_ASSIGN_OR_RETURN(const uint64_t steps, TakeNumber(&text, "steps"));
  EMBANK_ASSIGN_OR_RETURN(const uint64_t position, TakeNumber(&text, "position"));
  EMBANK_RETURN_IF_ERROR(CheckModel(text, model_text_));
  EMBANK_RETURN_IF_ERROR(
      dense_rows_->Read(std::vector<std::span<float>>{weights_, optimizer_->state()}));
  steps_ = steps;
  position_ = position;
  return OkStatus();
}

Status Trainer::Checkpoint(uint64_t position) {
  if (store_->checkpoints() == nullptr) {
    return FailedPreconditionError("the store has no path: it is in memory only");
  }
  EMBANK_RETURN_IF_ERROR(
      dense_rows_->Write(std::vector<std::span<const float>>{weights_, optimizer_->state()}));
  const std::string blob =
      StrCat(kBlobHead, "steps ", steps_, "\nposition ", position, "\n", model_text_);
  EMBANK_RETURN_IF_ERROR(
      store_->checkpoints()->Make(std::as_bytes(std::span(blob.data(), blob.size()))).status());
  position_ = position;
  return OkStatus();
}

// One id for each sample is a row for each; bags are sums.
void Trainer::SetFeature(const ClickBatch& batch, size_t i, Feature* feature) {
  const FeatureIds& ids = batch.features[features_[i].column];
  feature->table = tables_[i];
  feature->keys = ids.ids;
  if (ids.offsets.empty()) return;
  offsets_[i].assign(ids.offsets.begin(), ids.offsets.end());
  feature->offsets = offsets_[i];
  feature->pooling = Pooling::kSum;
}

Status Trainer::LookUp(const ClickBatch& batch, MissingRule rule) {
  EMBANK_CHECK(batch.samples <= options_.batch && batch.samples > 0);
  const Timing timing(&seconds_.lookup);
  std::vector<LookupFeature> features(tables_.size());
  for (size_t i = 0; i < features.size(); ++i) {
    vectors_[i].resize(uint64_t{batch.samples} * features_[i].dim);
    SetFeature(batch, i, &features[i]);
    features[i].rows = {reinterpret_cast<std::byte*>(vectors_[i].data()),
                        features_[i].dim * sizeof(float)};
  }
  return LookupPacked(features, rule);
}

// Returns the sum of the losses.
double Trainer::RunSlices(const ClickBatch& batch, bool trains, std::span<float> logits) {
  const Timing timing(&seconds_.dense);
  std::vector<double> losses(options_.slices);
  executor_->ParallelFor(options_.slices, [&](uint32_t slice) {
    losses[slice] = RunSlice(batch, slice, trains, logits);
  });
  return SumSlices(losses);
}

double Trainer::RunSlice(const ClickBatch& batch, uint32_t slice, bool trains,
                         std::span<float> logits) {
  const SampleRange range = SliceOf(batch.samples, options_.slices, slice);
  const uint32_t samples = range.end - range.begin;
  const std::span<float> gradients =
      std::span(weight_gradients_).subspan(slice * weights_.size(), weights_.size());
  if (samples == 0) {
    if (trains) std::ranges::fill(gradients, 0.0f);
    return 0.0;
  }
  std::vector<ConstMatrix> vectors;
  for (size_t i = 0; i < features_.size(); ++i) {
    const ConstMatrix all(vectors_[i].data(), batch.samples, features_[i].dim);
    vectors.push_back(all.RowsFrom(range.begin, range.end));
  }
  const SliceInput input = {
      .dense =
          ConstMatrix(batch.dense.data(), batch.samples, dense_).RowsFrom(range.begin, range.end),
      .features = vectors};
  const ConstMatrix output = runs_[slice].Forward(input, weights_);
  EMBANK_CHECK(output.rows == samples && output.columns == 1);
  const std::span<float> own = logits.subspan(range.begin, samples);
  for (uint32_t i = 0; i < samples; ++i) own[i] = output.Row(i)[0];
  const auto labels = std::span<const float>(batch.labels).subspan(range.begin, samples);
  if (!trains) return SumLogLoss(own, labels);
  std::vector<float> output_gradient(samples);
  const double loss =
      SumLogLossBackward(own, labels, 1.0f / static_cast<float>(batch.samples), output_gradient);
  std::vector<Matrix> vector_gradients;
  for (size_t i = 0; i < features_.size(); ++i) {
    const Matrix all(vector_gradients_[i].data(), batch.samples, features_[i].dim);
    vector_gradients.push_back(all.RowsFrom(range.begin, range.end));
  }
  runs_[slice].Backward(input, weights_, Matrix(output_gradient.data(), samples, 1),
                        {.weights = gradients, .features = vector_gradients});
  return loss;
}

Status Trainer::UpdateRows(const ClickBatch& batch) {
  const Timing timing(&seconds_.gradients);
  std::vector<GradientFeature> features(tables_.size());
  for (size_t i = 0; i < features.size(); ++i) {
    SetFeature(batch, i, &features[i]);
    features[i].gradients = {reinterpret_cast<const std::byte*>(vector_gradients_[i].data()),
                             features_[i].dim * sizeof(float)};
  }
  return ApplyGradientsPacked(features);
}

StatusOr<double> Trainer::Step(const ClickBatch& batch, std::vector<float>* logits) {
  EMBANK_CHECK(batch.samples > 0);
  EMBANK_RETURN_IF_ERROR(LookUp(batch, MissingRule::kCreate));
  logits->resize(batch.samples);
  for (size_t i = 0; i < tables_.size(); ++i) vector_gradients_[i].resize(vectors_[i].size());
  const double loss = RunSlices(batch, /*trains=*/true, *logits) / batch.samples;
  if (!std::isfinite(loss)) {
    return OutOfRangeError(StrCat("the loss of step ", steps_ + 1, " is not finite"));
  }
  EMBANK_RETURN_IF_ERROR(UpdateRows(batch));
  const Timing timing(&seconds_.dense);
  SumSlices(executor_.get(), options_.slices, weight_gradients_);
  optimizer_->Step(executor_.get(), std::span(weight_gradients_).first(weights_.size()), weights_);
  ++steps_;
  return loss;
}

Status Trainer::Predict(const ClickBatch& batch, std::vector<float>* logits) {
  EMBANK_CHECK(batch.samples > 0);
  EMBANK_RETURN_IF_ERROR(LookUp(batch, MissingRule::kDefault));
  logits->resize(batch.samples);
  RunSlices(batch, /*trains=*/false, *logits);
  return OkStatus();
}

Status Trainer::Prefetch(const ClickBatch& batch) const {
  for (size_t i = 0; i < tables_.size(); ++i) {
    EMBANK_RETURN_IF_ERROR(embank::Prefetch(tables_[i], batch.features[features_[i].column].ids));
  }
  return OkStatus();
}

}  // namespace embank
