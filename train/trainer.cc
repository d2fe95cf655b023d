#include "train/trainer.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
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

Status SetRule(const UpdateRule& rule, Table* table) {
  return table->ChangeRule([&](UpdateRule* of_table) { *of_table = rule; });
}

// Opens a table, which gets the rule of the options, or makes it. The weights of a wide part begin
// with 0.
StatusOr<Table*> OpenTable(const TrainerOptions& options, const FeatureTable& feature,
                           Store* store) {
  StatusOr<Table*> table = store->catalog().Open(feature.name);
  if (table.ok()) {
    EMBANK_RETURN_IF_ERROR(SetRule(options.row.rule, *table));
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
                       .b = range},
       .on_full = options.on_full});
}

// Returns what the last checkpoint says, if the store has one.
StatusOr<std::optional<ModelText>> ReadCheckpoint(const Store& store) {
  if (store.checkpoints() == nullptr) return std::optional<ModelText>();
  const StatusOr<std::vector<std::byte>> blob = store.checkpoints()->Blob();
  if (IsNotFound(blob.status())) return std::optional<ModelText>();
  EMBANK_RETURN_IF_ERROR(blob.status());
  EMBANK_ASSIGN_OR_RETURN(
      ModelText text, ParseModelText({reinterpret_cast<const char*>(blob->data()), blob->size()}));
  return std::optional(std::move(text));
}

std::vector<EmbeddingFeature> EmbeddingFeatures(std::span<const FeatureTable> features,
                                                std::span<Table* const> tables) {
  std::vector<EmbeddingFeature> all;
  for (const FeatureTable& feature : features) {
    const auto table =
        std::ranges::find_if(tables, [&](const Table* one) { return one->name() == feature.name; });
    EMBANK_CHECK(table != tables.end());
    all.push_back({.table = *table, .column = feature.column, .dim = feature.dim});
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
  ModelText text = DescribeModel(options, columns, *graph);
  EMBANK_ASSIGN_OR_RETURN(const std::optional<ModelText> last, ReadCheckpoint(*store));
  if (!last && options.store.read_only) {
    return FailedPreconditionError(
        StrCat("path: ", options.store.path, " has no checkpoint of a trainer"));
  }
  // Before tables and memory of this model: they may not fit beside those of another one.
  if (last) EMBANK_RETURN_IF_ERROR(CheckSameModel(*last, text));
  std::unique_ptr<Executor> executor = MakeThreadPool(
      WorkerThreads({.worker_threads = options.threads, .path = {}, .pmem_path = {}}));
  std::vector<Table*> tables;
  for (const FeatureTable& feature : TablesOf(options, columns)) {
    EMBANK_ASSIGN_OR_RETURN(Table* const table, OpenTable(options, feature, store.get()));
    if (std::ranges::find(tables, table) == tables.end()) tables.push_back(table);
  }
  EMBANK_ASSIGN_OR_RETURN(DenseRows dense_rows, DenseRows::Open(store.get()));
  EMBANK_ASSIGN_OR_RETURN(DensePass dense_pass,
                          DensePass::Create(options, graph.get(), executor->concurrency()));
  std::unique_ptr<Trainer> trainer(
      new Trainer(std::move(text), options, std::move(graph), std::move(store), std::move(executor),
                  std::move(dense_pass), std::move(dense_rows), std::move(tables)));
  if (last) EMBANK_RETURN_IF_ERROR(trainer->GoOnAt(*last));
  return trainer;
}

Trainer::Trainer(ModelText text, const TrainerOptions& options,
                 std::unique_ptr<const LayerGraph> graph, std::unique_ptr<Store> store,
                 std::unique_ptr<Executor> executor, DensePass dense_pass, DenseRows dense_rows,
                 std::vector<Table*> tables)
    : options_(options),
      text_(std::move(text)),
      graph_(std::move(graph)),
      store_(std::move(store)),
      executor_(std::move(executor)),
      tables_(std::move(tables)),
      dense_pass_(std::move(dense_pass)),
      dense_rows_(std::move(dense_rows)),
      rows_(EmbeddingFeatures(TablesOf(options, text_.columns), tables_), {0, options.slices}),
      embedding_pass_(EmbeddingFeatures(TablesOf(options, text_.columns), tables_), options.slices,
                      {0, options.slices}, &rows_),
      plan_(options, TablesOf(options, text_.columns)),
      running_{.batch = nullptr, .logits = {}, .losses = std::vector<double>(options.slices)} {}

// Other data begin anew.
Status Trainer::GoOnAt(const ModelText& checkpoint) {
  EMBANK_RETURN_IF_ERROR(dense_rows_.Read(
      std::vector<std::span<float>>{dense_pass_.weights(), dense_pass_.optimizer_state()}));
  steps_ = checkpoint.steps;
  const bool has_same_data = BeginWith(text_.columns.data, checkpoint.columns.data);
  position_ = has_same_data ? checkpoint.position : DataPosition();
  text_.other_steps = has_same_data ? checkpoint.other_steps : checkpoint.steps;
  changes_ = ChangedSettings(checkpoint, text_);
  return OkStatus();
}

Status Trainer::StartCheckpoint(DataPosition position) {
  if (store_->checkpoints() == nullptr) {
    return FailedPreconditionError("the store has no path: it is in memory only");
  }
  EMBANK_RETURN_IF_ERROR(FinishCheckpoint());
  EMBANK_RETURN_IF_ERROR(dense_rows_.Write(
      std::vector<std::span<const float>>{dense_pass_.weights(), dense_pass_.optimizer_state()}));
  if (Seeded(SeededBug::kPositionLate)) std::swap(position, position_);
  text_.steps = steps_;
  text_.position = position;
  const std::string blob = WriteModelText(text_);
  EMBANK_RETURN_IF_ERROR(
      store_->started_checkpoint()->Start(std::as_bytes(std::span(blob.data(), blob.size()))));
  started_position_ = position;
  return OkStatus();
}

Status Trainer::FinishCheckpoint() {
  const std::optional<DataPosition> position = std::exchange(started_position_, std::nullopt);
  if (!position) return OkStatus();
  EMBANK_RETURN_IF_ERROR(store_->started_checkpoint()->Finish().status());
  position_ = *position;
  return OkStatus();
}

Status Trainer::Checkpoint(DataPosition position) {
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
    const OperationGraph::Id gather = graph->Add(
        label(OperationKind::kGather, i), 1, {{unique}},
        [this, &pack, slices, trains](uint32_t, uint32_t) {
          return rows_.Gather(pack, slices, trains ? MissingRule::kCreate : MissingRule::kDefault,
                              embedding_pass_.ids());
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
                   running_.losses[slice] = RunSlice(slice, thread, trains);
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
  return CheckBatch(batch, text_.columns);
}

StatusOr<double> Trainer::RunBatch(const ClickBatch& batch, bool trains,
                                   std::vector<float>* logits) {
  EMBANK_RETURN_IF_ERROR(CheckSamples(batch));
  if (trains && batch.labels.empty()) {
    return InvalidArgumentError("the batch has no labels, and a step needs them");
  }
  logits->resize(batch.samples);
  running_.batch = &batch;
  running_.logits = *logits;
  embedding_pass_.Begin(&batch);
  OperationGraph graph;
  AddBatch(trains, &graph);
  EMBANK_RETURN_IF_ERROR(graph.Run(executor_.get(), &trace_));
  return SumSlices(running_.losses);
}

void Trainer::AddBatch(bool trains, OperationGraph* graph) {
  for (uint32_t i = 0; i < plan_.micro_batches().size(); ++i) AddMicroBatch(i, trains, graph);
}

double Trainer::RunSlice(uint32_t slice, uint32_t thread, bool trains) {
  const SampleRange range = SliceOf(running_.batch->samples, options_.slices, slice);
  std::vector<ConstMatrix> vectors;
  std::vector<Matrix> vector_gradients;
  for (size_t i = 0; i < embedding_pass_.features().size(); ++i) {
    vectors.push_back(embedding_pass_.Vectors(i, slice));
    if (trains) vector_gradients.push_back(embedding_pass_.Gradients(i, slice));
  }
  const uint32_t samples = range.end - range.begin;
  const DenseSlice input = {
      .number = slice,
      .batch_samples = running_.batch->samples,
      .input = {.dense = ConstMatrix(running_.batch->dense.data(), running_.batch->samples,
                                     static_cast<uint32_t>(text_.columns.dense.size()))
                             .RowsFrom(range.begin, range.end),
                .features = vectors},
      .labels = running_.batch->labels.empty()
                    ? std::span<const float>()
                    : std::span(running_.batch->labels).subspan(range.begin, samples),
      .vector_gradients = vector_gradients,
      .logits = running_.logits.subspan(range.begin, samples)};
  return dense_pass_.RunSlice(input, thread);
}

Status Trainer::UpdateRows() {
  const bool are_finite = embedding_pass_.AreSumsFinite();
  OperationGraph graph;
  for (size_t i = 0; i < plan_.packs().size(); ++i) {
    graph.Add({.kind = OperationKind::kUpdate,
               .pack = static_cast<uint32_t>(i),
               .group = plan_.groups()[i]},
              1, {}, [this, are_finite, &pack = plan_.packs()[i]](uint32_t, uint32_t) {
                return rows_.Update(pack, are_finite);
              });
  }
  return graph.Run(executor_.get(), &trace_);
}

// The number of steps is that of the whole training, so that a resumed one goes on in its schedule.
Status Trainer::SetRates() {
  if (options_.schedule == RateSchedule{}) return OkStatus();
  const float factor = RateFactor(options_.schedule, steps_);
  dense_pass_.set_learning_rate(options_.dense.rule.learning_rate * factor);
  UpdateRule rule = options_.row.rule;
  rule.learning_rate *= factor;
  for (Table* const table : tables_) EMBANK_RETURN_IF_ERROR(SetRule(rule, table));
  return OkStatus();
}

StatusOr<double> Trainer::Step(const ClickBatch& batch, std::vector<float>* logits) {
  if (options_.store.read_only) {
    return FailedPreconditionError("the store is read-only: the trainer predicts alone");
  }
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
