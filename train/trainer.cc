#include "train/trainer.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "base/check.h"
#include "base/seeded_bug.h"
#include "base/status_macros.h"
#include "base/str_cat.h"
#include "train/dense/gemm.h"
#include "train/dense/slices.h"
#include "train/pipeline/bag_map.h"
#include "train/rank_start.h"
#include "train/ranks/gathered_texts.h"
#include "train/ranks/mpi_module.h"

namespace embank {
namespace {

StatusOr<ModelText> TextOfTrainer(const TrainerOptions& options, const ClickColumns& columns) {
  EMBANK_RETURN_IF_ERROR(Validate(options));
  EMBANK_ASSIGN_OR_RETURN(const LayerGraph graph, MakeModel(options, columns));
  return DescribeModel(options, columns, graph);
}

Status CheckOneRank(const ModelText& last, bool has_team, const std::string& path) {
  if (has_team || last.rank.ranks == 1) return OkStatus();
  return FailedPreconditionError(StrCat(
      "path: ", path, " has the rows of rank ", last.rank.rank, " of ", last.rank.ranks,
      " alone: start as many ranks with the directory above it, or join them with embank reshard"));
}

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
       .on_full = feature.is_replicated ? OnFull::kRefuse : options.on_full});
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
    all.push_back({.table = *table,
                   .column = feature.column,
                   .dim = feature.dim,
                   .is_replicated = feature.is_replicated,
                   .is_pooled = feature.is_pooled});
  }
  return all;
}

Status CheckHotIds(const TrainerOptions& options, const ClickColumns& columns) {
  if (options.hot_ids == nullptr) return OkStatus();
  const auto table_of_column = HotIds::TablesOfColumns(columns.table_names());
  if (options.hot_ids->table_of_column == table_of_column) return OkStatus();
  return InvalidArgumentError(
      "hot_ids: the hot ids are those of other id features, or of other tables, than the data "
      "have");
}

// The bags of a rank have numbers of 16 bits on their way to owners.
Status CheckPooled(const TrainerOptions& options, uint32_t ranks) {
  const uint32_t of_slice = (options.batch + options.slices - 1) / options.slices;
  const uint64_t samples = uint64_t{of_slice} * (options.slices / ranks);
  if (options.ranks.pooled.empty() || samples <= BagMap::kBagsMax) return OkStatus();
  return InvalidArgumentError(StrCat("batch is ", options.batch, ": each of ", ranks, " ranks has ",
                                     samples, " samples of it, and may have ", BagMap::kBagsMax,
                                     " where owners of rows sum bags"));
}

// The settings of which the order of exchanges depends, and the build.
std::string HowText(const TrainerOptions& options) {
  std::string text = StrCat(
      "batch ", options.batch, "\npack rule ", static_cast<int>(options.packs.rule),
      "\nmicro-batches ", options.micro_batches, "\nmicro-batch bytes ", options.micro_batch_bytes,
      "\ngroups ", options.packs.groups, "\ngroup bytes ", options.packs.group_bytes,
      "\nwarm-up steps ", options.packs.warmup_steps, "\nseed of rows ", options.store.seed, "\n");
  for (const std::string& name : options.packs.excluded) StrAppend(&text, "excluded ", name, "\n");
  StrAppend(&text, "path ", options.store.path.empty() ? "none" : "given", "\nbuild ",
            BuildOfRank(), "\n");
  return text;
}

Status CheckSamples(const ClickBatch& batch, uint32_t samples_max, const ClickColumns& columns) {
  if (batch.samples == 0 || batch.samples > samples_max) {
    return InvalidArgumentError(
        StrCat("the batch has ", batch.samples, " samples; it must have 1 to ", samples_max));
  }
  return CheckBatch(batch, columns);
}

Status CheckNoneBegun(const RowPass& rows, const char* call) {
  if (rows.under_way() == 0) return OkStatus();
  return FailedPreconditionError(
      StrCat(rows.under_way(), " steps are begun: end or drop them before ", call));
}

}  // namespace

StatusOr<std::unique_ptr<Trainer>> Trainer::Open(const TrainerOptions& options,
                                                 const ClickColumns& columns, Exchange* exchange) {
  if (exchange == nullptr) return OpenOwn(options, columns, nullptr, {});
  StatusOr<ModelText> text = TextOfTrainer(options, columns);
  Status status = text.status();
  if (status.ok()) status = CheckRanks(options.slices, exchange->ranks());
  if (status.ok()) status = CheckPooled(options, exchange->ranks());
  EMBANK_RETURN_IF_ERROR(Agree(exchange, status));
  EMBANK_ASSIGN_OR_RETURN(const RankStart start,
                          AgreeOnStart(exchange, *text, HowText(options), options.store.path));
  TrainerOptions of_rank = options;
  of_rank.store.previous = start.previous;
  auto team = std::make_unique<RankTeam>(exchange, options.hybrid.staleness > 0);
  StatusOr<std::unique_ptr<Trainer>> trainer = OpenOwn(of_rank, columns, std::move(team),
                                                       {.rank = exchange->rank(),
                                                        .ranks = exchange->ranks(),
                                                        .job = start.job,
                                                        .start = start.start});
  EMBANK_RETURN_IF_ERROR(Agree(exchange, trainer.status()));
  return trainer;
}

StatusOr<std::unique_ptr<Trainer>> Trainer::OpenOwn(const TrainerOptions& options,
                                                    const ClickColumns& columns,
                                                    std::unique_ptr<RankTeam> team,
                                                    const RankOfJob& rank) {
  EMBANK_RETURN_IF_ERROR(Validate(options));
  EMBANK_RETURN_IF_ERROR(PrepareGemm());
  EMBANK_ASSIGN_OR_RETURN(LayerGraph layers, MakeModel(options, columns));
  auto graph = std::make_unique<const LayerGraph>(std::move(layers));
  StoreOptions of_store = options.store;
  if (of_store.pin_batches == 0) of_store.pin_batches = PinBatchesOf(options);
  EMBANK_ASSIGN_OR_RETURN(std::unique_ptr<Store> store, Store::Open(of_store, {}));
  ModelText text = DescribeModel(options, columns, *graph);
  text.rank = rank;
  EMBANK_ASSIGN_OR_RETURN(const std::optional<ModelText> last, ReadCheckpoint(*store));
  if (!last && options.store.read_only) {
    return FailedPreconditionError(
        StrCat("path: ", options.store.path, " has no checkpoint of a trainer"));
  }
  // Before tables and memory of this model: they may not fit beside those of another one.
  if (last) EMBANK_RETURN_IF_ERROR(CheckSameModel(*last, text));
  if (last) EMBANK_RETURN_IF_ERROR(CheckOneRank(*last, team != nullptr, options.store.path));
  std::unique_ptr<Executor> executor = MakeThreadPool(
      WorkerThreads({.worker_threads = options.threads, .path = {}, .pmem_path = {}}));
  const std::vector<FeatureTable> features = TablesOf(options, columns);
  EMBANK_RETURN_IF_ERROR(CheckHotIds(options, columns));
  std::vector<Table*> tables;
  for (const FeatureTable& feature : features) {
    EMBANK_ASSIGN_OR_RETURN(Table* const table, OpenTable(options, feature, store.get()));
    if (std::ranges::find(tables, table) == tables.end()) tables.push_back(table);
  }
  EMBANK_ASSIGN_OR_RETURN(DenseRows dense_rows, DenseRows::Open(store.get()));
  EMBANK_ASSIGN_OR_RETURN(
      DensePass dense_pass,
      DensePass::Create(options, graph.get(), OwnSlices(options.slices, team.get()).size(),
                        executor->concurrency()));
  auto pass =
      std::make_unique<BatchPass>(options, features, EmbeddingFeatures(features, tables),
                                  std::move(dense_pass), std::move(team), std::move(executor));
  std::unique_ptr<Trainer> trainer(new Trainer(std::move(text), options, std::move(graph),
                                               std::move(store), std::move(tables), std::move(pass),
                                               std::move(dense_rows)));
  if (last) EMBANK_RETURN_IF_ERROR(trainer->GoOnAt(*last));
  return trainer;
}

Trainer::Trainer(ModelText text, const TrainerOptions& options,
                 std::unique_ptr<const LayerGraph> graph, std::unique_ptr<Store> store,
                 std::vector<Table*> tables, std::unique_ptr<BatchPass> pass, DenseRows dense_rows)
    : options_(options),
      text_(std::move(text)),
      graph_(std::move(graph)),
      store_(std::move(store)),
      tables_(std::move(tables)),
      pass_(std::move(pass)),
      dense_rows_(std::move(dense_rows)) {}

// Other data begin anew.
Status Trainer::GoOnAt(const ModelText& checkpoint) {
  EMBANK_RETURN_IF_ERROR(dense_rows_.Read(
      std::vector<std::span<float>>{pass_->dense().weights(), pass_->dense().optimizer_state()}));
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
  EMBANK_RETURN_IF_ERROR(CheckNoneBegun(pass_->rows(), "a checkpoint"));
  Status finished = pass_->rows().WaitForUpdates();
  finished.Update(pass_->WriteBack());
  finished.Update(FinishOwnCheckpoint());
  // Behind the end of the former one on all ranks: they keep two each, of which one is common.
  EMBANK_RETURN_IF_ERROR(Seeded(SeededBug::kCheckpointWithoutBarrier) ? finished
                                                                      : Agreed(finished));
  Status started = StartOwnCheckpoint(position);
  if (team() == nullptr) return started;
  // All ranks come to the vote of the end, whether this one has started or not.
  started_position_ = position;
  team()->Keep(started);
  return OkStatus();
}

Status Trainer::StartOwnCheckpoint(DataPosition position) {
  EMBANK_RETURN_IF_ERROR(dense_rows_.Write(std::vector<std::span<const float>>{
      pass_->dense().weights(), pass_->dense().optimizer_state()}));
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
  if (!started_position_) return OkStatus();
  return Agreed(FinishOwnCheckpoint());
}

Status Trainer::FinishOwnCheckpoint() {
  const std::optional<DataPosition> position = std::exchange(started_position_, std::nullopt);
  if (!position) return OkStatus();
  EMBANK_RETURN_IF_ERROR(store_->started_checkpoint()->Finish().status());
  position_ = *position;
  return OkStatus();
}

// Returns what all ranks return: OK where all of them are, and kept nothing.
Status Trainer::Agreed(const Status& status) {
  if (team() == nullptr) return status;
  team()->Keep(status);
  return team()->AgreeOnSuccess();
}

Status Trainer::Checkpoint(DataPosition position) {
  EMBANK_RETURN_IF_ERROR(StartCheckpoint(position));
  return FinishCheckpoint();
}

// The number of steps is that of the whole training, so that a resumed one goes on in its schedule.
// Returns that of rows.
float Trainer::SetRates() {
  const float rate = options_.row.rule.learning_rate;
  if (options_.schedule == RateSchedule{}) return rate;
  const float factor = RateFactor(options_.schedule, steps_);
  pass_->dense().set_learning_rate(options_.dense.rule.learning_rate * factor);
  return rate * factor;
}

Status Trainer::BeginStep(const ClickBatch& batch) {
  if (options_.store.read_only) {
    return FailedPreconditionError("the store is read-only: the trainer predicts alone");
  }
  EMBANK_RETURN_IF_ERROR(CheckSamples(batch, options_.batch, text_.columns));
  if (batch.labels.empty()) {
    return InvalidArgumentError("the batch has no labels, and a step needs them");
  }
  if (pass_->rows().under_way() > options_.hybrid.staleness) {
    return FailedPreconditionError(StrCat("staleness is ", options_.hybrid.staleness, ", and ",
                                          pass_->rows().under_way(),
                                          " steps are begun: end one first"));
  }
  pass_->Begin(batch);
  return OkStatus();
}

Status Trainer::DropSteps() {
  pass_->rows().Drop();
  return pass_->rows().WaitForUpdates();
}

Status Trainer::WriteBack() {
  EMBANK_RETURN_IF_ERROR(CheckNoneBegun(pass_->rows(), "a write-back"));
  return pass_->WriteBack();
}

StatusOr<double> Trainer::Step(const ClickBatch& batch, std::vector<float>* logits) {
  EMBANK_RETURN_IF_ERROR(BeginStep(batch));
  return EndStep(logits);
}

StatusOr<double> Trainer::EndStep(std::vector<float>* logits) {
  if (pass_->rows().under_way() == 0) return FailedPreconditionError("no step is begun");
  StatusOr<double> loss = MakeStep(logits);
  if (!loss.ok()) pass_->rows().Drop();
  return loss;
}

StatusOr<double> Trainer::MakeStep(std::vector<float>* logits) {
  const ClickBatch& batch = *pass_->rows().oldest()->batch;
  EMBANK_ASSIGN_OR_RETURN(const double sum, pass_->Run(steps_, logits));
  const double loss = sum / batch.samples;
  if (!std::isfinite(loss)) {
    return OutOfRangeError(StrCat("the loss of step ", steps_ + 1, " is not finite"));
  }
  const float rate_of_rows = SetRates();
  const bool is_finite = pass_->SumDenseGradients();
  EMBANK_RETURN_IF_ERROR(pass_->UpdateRows(rate_of_rows));
  if (is_finite) {
    pass_->StepDense();
  } else {
    ++left_out_dense_steps_;
  }
  pass_->plan().Count(batch);
  ++steps_;
  return loss;
}

Status Trainer::Predict(const ClickBatch& batch, std::vector<float>* logits) {
  EMBANK_RETURN_IF_ERROR(CheckSamples(batch, options_.batch, text_.columns));
  EMBANK_RETURN_IF_ERROR(CheckNoneBegun(pass_->rows(), "a prediction"));
  EMBANK_RETURN_IF_ERROR(pass_->rows().WaitForUpdates());
  return pass_->Predict(batch, steps_, logits);
}

Status Trainer::Prefetch(const ClickBatch& batch) const {
  EMBANK_RETURN_IF_ERROR(CheckSamples(batch, options_.batch, text_.columns));
  return pass_->rows().Prefetch(batch);
}

}  // namespace embank
