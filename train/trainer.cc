#include "train/trainer.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "base/seeded_bug.h"
#include "base/status_macros.h"
#include "base/str_cat.h"
#include "base/threads/clock.h"
#include "store/packed/packed_prefetch.h"
#include "store/table/pins.h"
#include "train/dense/gemm.h"
#include "train/dense/slices.h"

namespace embank {
namespace {

constexpr std::string_view kBlobHead = "embank-train 1\n";

// A row that is prefetched before a step's lookups stays pinned until the update of the next step.
static_assert(2 * kMicroBatchesMax < Pins::kBatches);

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

Status SetRate(float learning_rate, Table* table) {
  return table->ChangeRule([&](UpdateRule* rule) { rule->learning_rate = learning_rate; });
}

// The weights of a wide part begin with 0. The rate of a table that is there is that of its last
// step.
StatusOr<Table*> OpenTable(const TrainerOptions& options, const FeatureTable& feature,
                           Store* store) {
  StatusOr<Table*> table = store->catalog().Open(feature.name);
  if (table.ok()) {
    EMBANK_RETURN_IF_ERROR(SetRate(options.row.rule.learning_rate, *table));
    return table;
  }
  const float range = feature.dim == 1 ? 0.0f : options.row_range;
  return store->CreateTable(
      feature.name,
      {.dim = feature.dim,
       .optimizer = options.row.optimizer,
       .rule = options.row.rule,
       .initializer = {.kind = range > 0.0f ? InitializerKind::kUniform : InitializerKind::kZero,
                       .a = -range,
                       .b = range}});
}

// Returns the moment of the last checkpoint, if the store has one, and checks its model.
StatusOr<std::optional<CheckpointedStep>> ReadCheckpoint(Store* store, std::string_view model) {
  if (store->checkpoints() == nullptr) return std::optional<CheckpointedStep>();
  const StatusOr<std::vector<std::byte>> blob = store->checkpoints()->Blob();
  if (IsNotFound(blob.status())) return std::optional<CheckpointedStep>();
  EMBANK_RETURN_IF_ERROR(blob.status());
  std::string_view text(reinterpret_cast<const char*>(blob->data()), blob->size());
  if (text.substr(0, kBlobHead.size()) != kBlobHead) {
    return FailedPreconditionError("the store is of no trainer: its checkpoint has another blob");
  }
  text.remove_prefix(kBlobHead.size());
  CheckpointedStep step;
  EMBANK_ASSIGN_OR_RETURN(step.steps, TakeNumber(&text, "steps"));
  EMBANK_ASSIGN_OR_RETURN(step.position, TakeNumber(&text, "position"));
  EMBANK_RETURN_IF_ERROR(CheckModel(text, model));
  return std::optional(step);
}

std::vector<EmbeddingFeature> EmbeddingFeatures(std::span<const FeatureTable> features,
                                                std::span<Table* const> tables) {
  std::vector<EmbeddingFeature> all;
  for (size_t i = 0; i < features.size(); ++i) {
    all.push_back({.table = tables[i], .column = features[i].column, .dim = features[i].dim});
  }
  return all;
}

}  // namespace

StatusOr<std::unique_ptr<Trainer>> Trainer::Open(const TrainerOptions& options,
                                                 const ClickColumns& columns) {
  EMBANK_RETURN_IF_ERROR(Validate(options));
  EMBANK_RETURN_IF_ERROR(PrepareGemm());
  EMBANK_ASSIGN_OR_RETURN(LayerGraph layers, MakeModel(options, columns));
  auto graph = std::make_unique<const LayerGraph>(std::move(layers));
  EMBANK_ASSIGN_OR_RETURN(std::unique_ptr<Store> store, Store::Open(options.store, {}));
  // Before tables and memory of this model: they may not fit beside those of another one.
  EMBANK_ASSIGN_OR_RETURN(const std::optional<CheckpointedStep> step,
                          ReadCheckpoint(store.get(), ModelText(options, columns)));
  std::unique_ptr<Executor> executor = MakeThreadPool(
      WorkerThreads({.worker_threads = options.threads, .path = {}, .pmem_path = {}}));
  std::vector<Table*> tables;
  for (const FeatureTable& feature : TablesOf(options, columns)) {
    EMBANK_ASSIGN_OR_RETURN(Table* const table, OpenTable(options, feature, store.get()));
    tables.push_back(table);
  }
  EMBANK_ASSIGN_OR_RETURN(DenseRows dense_rows, DenseRows::Open(store.get()));
  EMBANK_ASSIGN_OR_RETURN(DensePass dense_pass,
                          DensePass::Create(options, graph.get(), executor->concurrency()));
  std::unique_ptr<Trainer> trainer(new Trainer(options, columns, std::move(graph), std::move(store),
                                               std::move(executor), std::move(dense_pass),
                                               std::move(dense_rows), std::move(tables)));
  if (step) EMBANK_RETURN_IF_ERROR(trainer->ReadDenseRows(*step));
  return trainer;
}

Trainer::Trainer(const TrainerOptions& options, const ClickColumns& columns,
                 std::unique_ptr<const LayerGraph> graph, std::unique_ptr<Store> store,
                 std::unique_ptr<Executor> executor, DensePass dense_pass, DenseRows dense_rows,
                 std::vector<Table*> tables)
    : options_(options),
      model_text_(ModelText(options, columns)),
      columns_(columns),
      graph_(std::move(graph)),
      store_(std::move(store)),
      executor_(std::move(executor)),
      tables_(std::move(tables)),
      dense_pass_(std::move(dense_pass)),
      dense_rows_(std::move(dense_rows)),
      embedding_pass_(EmbeddingFeatures(TablesOf(options, columns), tables_), options.slices),
      plan_(options, TablesOf(options, columns)),
      losses_(options.slices) {}

Status Trainer::ReadDenseRows(const CheckpointedStep& step) {
  EMBANK_RETURN_IF_ERROR(dense_rows_.Read(
      std::vector<std::span<float>>{dense_pass_.weights(), dense_pass_.optimizer_state()}));
  steps_ = step.steps;
  position_ = step.position;
  return OkStatus();
}

Status Trainer::StartCheckpoint(uint64_t position) {
  if (store_->checkpoints() == nullptr) {
    return FailedPreconditionError("the store has no path: it is in memory only");
  }
  EMBANK_RETURN_IF_ERROR(FinishCheckpoint());
  EMBANK_RETURN_IF_ERROR(dense_rows_.Write(
      std::vector<std::span<const float>>{dense_pass_.weights(), dense_pass_.optimizer_state()}));
  if (Seeded(SeededBug::kPositionLate)) std::swap(position, position_);
  const std::string blob =
      StrCat(kBlobHead, "steps ", steps_, "\nposition ", position, "\n", model_text_);
  EMBANK_RETURN_IF_ERROR(
      store_->started_checkpoint()->Start(std::as_bytes(std::span(blob.data(), blob.size()))));
  started_position_ = position;
  return OkStatus();
}

Status Trainer::FinishCheckpoint() {
  const std::optional<uint64_t> position = std::exchange(started_position_, std::nullopt);
  if (!position) return OkStatus();
  EMBANK_RETURN_IF_ERROR(store_->started_checkpoint()->Finish().status());
  position_ = *position;
  return OkStatus();
}

Status Trainer::Checkpoint(uint64_t position) {
  EMBANK_RETURN_IF_ERROR(StartCheckpoint(position));
  return FinishCheckpoint();
}

// The rows of all packs, then the slices, then the sums of the packs' gradients.
void Trainer::AddMicroBatch(uint32_t number, bool trains, OperationGraph* graph) {
  const SliceRange slices = plan_.micro_batches()[number];
  const uint32_t parts = slices.end - slices.begin;
  const std::span<const Pack> packs = plan_.packs();
  const auto label = [&](OperationKind kind, size_t pack) {
    return OperationLabel{.kind = kind,
                          .pack = static_cast<uint32_t>(pack),
                          .group = plan_.groups()[pack],
                          .micro_batch = number};
  };
  std::vector<OperationGraph::Id> before_dense;
  for (size_t i = 0; i < packs.size(); ++i) {
    const Pack& pack = packs[i];
    const OperationGraph::Id unique =
        graph->Add(label(OperationKind::kUniquePartition, i), parts, {},
                   [this, &pack, slices](uint32_t part, uint32_t) {
                     embedding_pass_.MakeUnique(pack, slices.begin + part);
                     return OkStatus();
                   });
    const OperationGraph::Id gather =
        graph->Add(label(OperationKind::kGather, i), 1, {{unique}},
                   [this, &pack, slices, trains](uint32_t, uint32_t) {
                     return embedding_pass_.Gather(
                         pack, slices, trains ? MissingRule::kCreate : MissingRule::kDefault);
                   });
    before_dense.push_back(graph->Add(label(OperationKind::kStitchReduce, i), parts, {{gather}},
                                      [this, &pack, slices](uint32_t part, uint32_t) {
                                        embedding_pass_.StitchReduce(pack, slices.begin + part);
                                        return OkStatus();
                                      }));
  }
  const OperationGraph::Id dense =
      graph->Add({.kind = OperationKind::kDense, .micro_batch = number}, parts, before_dense,
                 [this, slices, trains](uint32_t part, uint32_t thread) {
                   const uint32_t slice = slices.begin + part;
                   losses_[slice] = RunSlice(slice, thread, trains);
                   return OkStatus();
                 });
  for (size_t i = 0; trains && i < packs.size(); ++i) {
    graph->Add(label(OperationKind::kSumGradients, i), parts, {{dense}},
               [this, &pack = packs[i], slices](uint32_t part, uint32_t) {
                 embedding_pass_.SumGradients(pack, slices.begin + part);
                 return OkStatus();
               });
  }
}

Status Trainer::CheckSamples(const ClickBatch& batch) const {
  if (batch.samples == 0 || batch.samples > options_.batch) {
    return InvalidArgumentError(
        StrCat("the batch has ", batch.samples, " samples; it must have 1 to ", options_.batch));
  }
  return CheckBatch(batch, columns_);
}

StatusOr<double> Trainer::RunBatch(const ClickBatch& batch, bool trains,
                                   std::vector<float>* logits) {
  EMBANK_RETURN_IF_ERROR(CheckSamples(batch));
  if (trains && batch.labels.empty()) {
    return InvalidArgumentError("the batch has no labels, and a step needs them");
  }
  logits->resize(batch.samples);
  batch_ = &batch;
  logits_ = *logits;
  embedding_pass_.Begin(&batch);
  OperationGraph graph;
  AddBatch(trains, &graph);
  EMBANK_RETURN_IF_ERROR(graph.Run(executor_.get(), &trace_));
  return SumSlices(losses_);
}

void Trainer::AddBatch(bool trains, OperationGraph* graph) {
  for (uint32_t i = 0; i < plan_.micro_batches().size(); ++i) AddMicroBatch(i, trains, graph);
}

double Trainer::RunSlice(uint32_t slice, uint32_t thread, bool trains) {
  const SampleRange range = SliceOf(batch_->samples, options_.slices, slice);
  std::vector<ConstMatrix> vectors;
  std::vector<Matrix> vector_gradients;
  for (size_t i = 0; i < tables_.size(); ++i) {
    vectors.push_back(embedding_pass_.Vectors(i, slice));
    if (trains) vector_gradients.push_back(embedding_pass_.Gradients(i, slice));
  }
  const uint32_t samples = range.end - range.begin;
  const DenseSlice input = {
      .number = slice,
      .batch_samples = batch_->samples,
      .input = {.dense = ConstMatrix(batch_->dense.data(), batch_->samples,
                                     static_cast<uint32_t>(columns_.dense.size()))
                             .RowsFrom(range.begin, range.end),
                .features = vectors},
      .labels = batch_->labels.empty() ? std::span<const float>()
                                       : std::span(batch_->labels).subspan(range.begin, samples),
      .vector_gradients = vector_gradients,
      .logits = logits_.subspan(range.begin, samples)};
  return dense_pass_.RunSlice(input, thread);
}

Status Trainer::UpdateRows() {
  OperationGraph graph;
  for (size_t i = 0; i < plan_.packs().size(); ++i) {
    graph.Add({.kind = OperationKind::kUpdate,
               .pack = static_cast<uint32_t>(i),
               .group = plan_.groups()[i]},
              1, {}, [this, &pack = plan_.packs()[i]](uint32_t, uint32_t) {
                return embedding_pass_.Update(pack);
              });
  }
  return graph.Run(executor_.get(), &trace_);
}

// The number of steps is that of the whole training, so that a resumed one goes on in its schedule.
Status Trainer::SetRates() {
  if (options_.schedule == RateSchedule{}) return OkStatus();
  const float factor = RateFactor(options_.schedule, steps_);
  dense_pass_.set_learning_rate(options_.dense.rule.learning_rate * factor);
  for (Table* const table : tables_) {
    EMBANK_RETURN_IF_ERROR(SetRate(options_.row.rule.learning_rate * factor, table));
  }
  return OkStatus();
}

StatusOr<double> Trainer::Step(const ClickBatch& batch, std::vector<float>* logits) {
  EMBANK_ASSIGN_OR_RETURN(const double sum, RunBatch(batch, /*trains=*/true, logits));
  const double loss = sum / batch.samples;
  if (!std::isfinite(loss)) {
    return OutOfRangeError(StrCat("the loss of step ", steps_ + 1, " is not finite"));
  }
  EMBANK_RETURN_IF_ERROR(SetRates());
  bool is_finite = true;
  {
    const Timing timing(&optimizer_seconds_);
    is_finite = dense_pass_.SumGradients(executor_.get());
  }
  EMBANK_RETURN_IF_ERROR(UpdateRows());
  const Timing timing(&optimizer_seconds_);
  if (is_finite) {
    dense_pass_.Step(executor_.get());
  } else {
    ++left_out_dense_steps_;
  }
  plan_.Count(embedding_pass_, batch.samples);
  ++steps_;
  return loss;
}

Status Trainer::Predict(const ClickBatch& batch, std::vector<float>* logits) {
  return RunBatch(batch, /*trains=*/false, logits).status();
}

Status Trainer::Prefetch(const ClickBatch& batch) const {
  EMBANK_RETURN_IF_ERROR(CheckSamples(batch));
  std::vector<Feature> features;
  for (const EmbeddingFeature& feature : embedding_pass_.features()) {
    Feature& keys = features.emplace_back();
    keys.table = feature.table;
    keys.keys = batch.features[feature.column].ids;
  }
  return PrefetchPacked(features);
}

StepSeconds Trainer::seconds() const {
  const auto of = [&](OperationKind kind) { return trace_.seconds(kind); };
  return {.lookup = of(OperationKind::kUniquePartition) + of(OperationKind::kGather) +
                    of(OperationKind::kStitchReduce),
          .dense = of(OperationKind::kDense) + optimizer_seconds_,
          .gradients = of(OperationKind::kSumGradients) + of(OperationKind::kUpdate)};
}

}  // namespace embank
