#include "train/batch_pass.h"

#include <utility>

#include "base/check.h"
#include "base/status_macros.h"
#include "base/threads/clock.h"
#include "train/dense/slices.h"

namespace embank {
namespace {

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

// The bytes of the vectors of a rank's samples, in all features.
uint64_t VectorBytes(std::span<const EmbeddingFeature> features, uint32_t slices, SliceRange own,
                     uint32_t samples) {
  const uint64_t of_rank =
      SliceOf(samples, slices, own.end - 1).end - SliceOf(samples, slices, own.begin).begin;
  uint64_t floats = 0;
  for (const EmbeddingFeature& feature : features) floats += feature.dim;
  return of_rank * floats * sizeof(float);
}

}  // namespace

SliceRange OwnSlices(uint32_t slices, const RankTeam* team) {
  if (team == nullptr) return {0, slices};
  const SampleRange own = SliceOf(slices, team->exchange()->ranks(), team->exchange()->rank());
  return {own.begin, own.end};
}

BatchPass::BatchPass(const TrainerOptions& options, std::span<const FeatureTable> tables,
                     const std::vector<EmbeddingFeature>& features, DensePass dense_pass,
                     std::unique_ptr<RankTeam> team, std::unique_ptr<Executor> executor)
    : slices_(options.slices),
      sums_after_backward_(options.ranks.sums_after_backward),
      hook_(options.experiments.before_operation),
      executor_(std::move(executor)),
      team_(std::move(team)),
      dense_pass_(std::move(dense_pass)),
      plan_(options, tables, OwnSlices(options.slices, team_.get())),
      device_link_(options.experiments.link),
      rows_(options, features, OwnSlices(options.slices, team_.get()), executor_.get(), team_.get(),
            &device_link_, &trace_) {
  running_.losses.resize(options.slices);
}

// The rows of all packs, unless they are there, then the slices.
OperationGraph::Id BatchPass::AddForward(const RowBatch& batch, uint32_t micro_batch, bool trains,
                                         bool has_rows, OperationGraph* graph) {
  const SliceRange slices = batch.layout->micro_batches[micro_batch];
  const std::span<const Pack> packs = batch.layout->packs;
  const auto add_stitch = [&](size_t i, std::span<const OperationGraph::Id> rows) {
    return graph->Add(
        batch.LabelOf(OperationKind::kStitchReduce, i, micro_batch), slices.size(), rows,
        KeptBy(team_.get(), [pass = batch.pass, &pack = packs[i], slices](uint32_t part, uint32_t) {
          pass->StitchReduce(pack, slices.begin + part);
          return OkStatus();
        }));
  };
  std::vector<OperationGraph::Id> last;
  if (has_rows) {
    for (size_t i = 0; i < packs.size(); ++i) last.push_back(add_stitch(i, {}));
  } else {
    last = rows_.AddLookup(
        batch, micro_batch, trains ? MissingRule::kCreate : MissingRule::kDefault,
        [&](size_t i, OperationGraph::Id rows) { return add_stitch(i, {{rows}}); }, graph);
  }
  DensePass::BucketDone done;
  if (trains && team_ != nullptr && !sums_after_backward_) {
    done = [this, graph](uint32_t bucket) { graph->Arrive(running_.buckets[bucket]); };
  }
  // A rank cannot go on to the vote where a bucket of gradients would never be there.
  return graph->Add(
      {.kind = OperationKind::kDense, .micro_batch = micro_batch, .batch = batch.number},
      slices.size(), last, [this, slices, trains, done](uint32_t part, uint32_t thread) {
        const uint32_t slice = slices.begin + part;
        running_.losses[slice] = RunSlice(slice, thread, trains, done);
        running_.slices_left.fetch_sub(1, std::memory_order_relaxed);
        return OkStatus();
      });
}

// Buckets are summed over ranks as soon as all slices of this one have their gradients; the last
// layers have theirs first.
void BatchPass::AddBuckets(const RowBatch& batch, std::span<const OperationGraph::Id> dense,
                           OperationGraph* graph) {
  running_.buckets.resize(dense_pass_.buckets());
  for (uint32_t bucket = dense_pass_.buckets(); bucket-- > 0;) {
    const OperationLabel label = {.kind = OperationKind::kAllReduce, .batch = batch.number};
    const auto sum = [this, bucket](uint32_t, uint32_t) {
      return team_->SumDense(dense_pass_.SumBucket(bucket), running_.slices_left);
    };
    running_.buckets[bucket] = sums_after_backward_
                                   ? graph->Add(label, 1, dense, sum)
                                   : graph->AddAwaiting(label, rows_.slices().size(), sum);
  }
}

void BatchPass::AddBackward(const RowBatch& batch, uint32_t micro_batch, OperationGraph::Id dense,
                            OperationGraph* graph) {
  const SliceRange slices = batch.layout->micro_batches[micro_batch];
  for (size_t i = 0; i < batch.layout->packs.size(); ++i) {
    const Pack& pack = batch.layout->packs[i];
    const OperationGraph::Id sums = graph->Add(
        batch.LabelOf(OperationKind::kSumGradients, i, micro_batch), slices.size(), {{dense}},
        KeptBy(team_.get(), [pass = batch.pass, &pack, slices](uint32_t part, uint32_t) {
          pass->SumGradients(pack, slices.begin + part);
          return OkStatus();
        }));
    if (!batch.rows->has_link()) continue;
    graph->Add(batch.LabelOf(OperationKind::kShuffleSums, i, micro_batch), 1, {{sums}},
               [rows = batch.rows, &pack, slices](uint32_t, uint32_t) {
                 return rows->ShuffleSums(pack, slices);
               });
  }
}

Status BatchPass::Swap() {
  const Timing timing(&device_link_seconds_);
  return rows_.Swap();
}

Status BatchPass::WriteBack() {
  const Timing timing(&device_link_seconds_);
  return rows_.WriteBack();
}

void BatchPass::SendVectors(uint64_t bytes, void (DeviceLink::*send)(uint64_t)) {
  const Timing timing(&device_link_seconds_);
  (device_link_.*send)(bytes);
}

StatusOr<double> BatchPass::Run(uint64_t step, std::vector<float>* logits) {
  EMBANK_RETURN_IF_ERROR(rows_.WaitForLookup());
  EMBANK_RETURN_IF_ERROR(Swap());
  RowBatch* const batch = rows_.oldest();
  if (!rows_.has_ring()) {
    rows_.GiveMemory(batch);
    batch->pass->Begin(batch->batch);
  }
  // The dense part is on the device, and so are the rows of hot batches. Those of others are on the
  // host: vectors go to the device, and their gradients come back.
  const uint64_t bytes =
      batch->is_hot ? 0
                    : VectorBytes(rows_.features(), slices_, rows_.slices(), batch->batch->samples);
  SendVectors(bytes, &DeviceLink::ToDevice);
  EMBANK_ASSIGN_OR_RETURN(const double sum,
                          RunSlices(*batch, /*trains=*/true, rows_.has_ring(), step, logits));
  SendVectors(bytes, &DeviceLink::ToHost);
  batch->update.step = step;
  batch->update.are_sums_finite =
      team_ == nullptr ? batch->pass->AreSumsFinite() : team_->verdict().are_sums_finite;
  return sum;
}

Status BatchPass::Predict(const ClickBatch& batch, uint64_t step, std::vector<float>* logits) {
  EMBANK_CHECK(rows_.under_way() == 0);
  EMBANK_RETURN_IF_ERROR(WriteBack());
  RowBatch alone = {.number = 0, .batch = &batch, .layout = plan_.layout()};
  rows_.GiveMemory(&alone);
  alone.pass->Begin(&batch);
  return RunSlices(alone, /*trains=*/false, /*has_rows=*/false, step, logits).status();
}

StatusOr<double> BatchPass::RunSlices(const RowBatch& batch, bool trains, bool has_rows,
                                      uint64_t step, std::vector<float>* logits) {
  logits->resize(batch.batch->samples);
  running_.batch = batch.batch;
  running_.pass = batch.pass;
  running_.logits = *logits;
  running_.slices_left = rows_.slices().size();
  OperationGraph graph;
  AddStep(batch, trains, has_rows, &graph);
  const Status done =
      graph.Run(executor_.get(), {.trace = &trace_, .first_thread = 0, .hook = &hook_});
  if (!done.ok() && team_ != nullptr) team_->Abort(done);
  EMBANK_RETURN_IF_ERROR(done);
  if (team_ != nullptr) {
    const Status voted = Vote(step);
    // Lookups of later batches may wait for ranks that have not begun them.
    if (!voted.ok() && rows_.has_ring()) team_->Abort(voted);
    EMBANK_RETURN_IF_ERROR(voted);
  }
  return SumSlices(running_.losses);
}

Status BatchPass::Vote(uint64_t step) {
  return team_
      ->Vote({.status = {},
              .step = step,
              .samples = running_.batch->samples,
              .batch_crc32c = Crc32cOf(*running_.batch),
              .hot_rows_crc32c = rows_.bag() == nullptr ? 0 : rows_.bag()->Crc32c(),
              .are_sums_finite = running_.pass->AreSumsFinite(),
              .left_out = rows_.counts().left_out,
              .lost_updates = rows_.counts().lost},
             {running_.losses, running_.logits}, rows_.slices())
      .status();
}

void BatchPass::AddBatch(OperationGraph* graph) {
  RowBatch batch = {.number = 0, .layout = plan_.layout()};
  rows_.GiveMemory(&batch);
  AddStep(batch, /*trains=*/true, /*has_rows=*/false, graph);
}

// The exchanges of a step have one order: ids and rows of all micro-batches, then sums of rows, but
// those of the last micro-batch behind the buckets, which are ready before.
void BatchPass::AddStep(const RowBatch& batch, bool trains, bool has_rows, OperationGraph* graph) {
  const auto micro_batches = static_cast<uint32_t>(batch.layout->micro_batches.size());
  std::vector<OperationGraph::Id> dense;
  for (uint32_t i = 0; i < micro_batches; ++i) {
    dense.push_back(AddForward(batch, i, trains, has_rows, graph));
  }
  for (uint32_t i = 0; trains && i < micro_batches; ++i) {
    if (team_ != nullptr && i + 1 == micro_batches) AddBuckets(batch, dense, graph);
    AddBackward(batch, i, dense[i], graph);
  }
}

double BatchPass::RunSlice(uint32_t slice, uint32_t thread, bool trains,
                           const DensePass::BucketDone& done) {
  const ClickBatch& batch = *running_.batch;
  const SampleRange range = SliceOf(batch.samples, slices_, slice);
  std::vector<ConstMatrix> vectors;
  std::vector<Matrix> vector_gradients;
  for (size_t i = 0; i < rows_.features().size(); ++i) {
    vectors.push_back(running_.pass->Vectors(i, slice));
    if (trains) vector_gradients.push_back(running_.pass->Gradients(i, slice));
  }
  const uint32_t samples = range.end - range.begin;
  const DenseSlice input = {
      .number = slice - rows_.slices().begin,
      .batch_samples = batch.samples,
      .input = {.dense = ConstMatrix(batch.dense.data(), batch.samples,
                                     static_cast<uint32_t>(batch.dense.size() / batch.samples))
                             .RowsFrom(range.begin, range.end),
                .features = vectors},
      .labels = batch.labels.empty() ? std::span<const float>()
                                     : std::span(batch.labels).subspan(range.begin, samples),
      .vector_gradients = vector_gradients,
      .logits = running_.logits.subspan(range.begin, samples)};
  return dense_pass_.RunSlice(input, thread, done);
}

// Returns whether all sums are finite, on all ranks.
bool BatchPass::SumDenseGradients() {
  const Timing timing(&optimizer_seconds_);
  return team_ == nullptr ? dense_pass_.SumGradients(executor_.get())
                          : dense_pass_.AreSumsFinite(executor_.get());
}

Status BatchPass::UpdateRows(float learning_rate) {
  rows_.oldest()->learning_rate = learning_rate;
  return rows_.Update();
}

void BatchPass::StepDense() {
  const Timing timing(&optimizer_seconds_);
  dense_pass_.Step(executor_.get());
}

uint64_t BatchPass::left_out() const {
  return team_ == nullptr ? rows_.counts().left_out : team_->verdict().left_out;
}

uint64_t BatchPass::lost_updates() const {
  return team_ == nullptr ? rows_.counts().lost : team_->verdict().lost_updates;
}

StepSeconds BatchPass::seconds() const {
  const auto of = [&](OperationKind kind) { return trace_.seconds(kind); };
  return {.lookup = of(OperationKind::kUniquePartition) + of(OperationKind::kGather) +
                    of(OperationKind::kStitchReduce),
          .dense = of(OperationKind::kDense) + optimizer_seconds_,
          .gradients = of(OperationKind::kSumGradients) + of(OperationKind::kUpdate),
          .link = of(OperationKind::kShuffleIds) + of(OperationKind::kShuffleRows) +
                  of(OperationKind::kShuffleSums) + of(OperationKind::kAllReduce),
          .device_link = device_link_seconds_};
}

}  // namespace embank
