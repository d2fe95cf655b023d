#include "train/batch_pass.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>

#include "base/hash.h"
#include "base/status_macros.h"
#include "base/threads/clock.h"
#include "store/packed/packed_prefetch.h"
#include "store/table/pins.h"
#include "train/dense/slices.h"
#include "train/pipeline/local_rows.h"
#include "train/ranks/sharded_rows.h"

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

std::unique_ptr<SparseRows> MakeRows(std::vector<EmbeddingFeature> features, SliceRange own,
                                     Exchange* exchange, ValueType wire) {
  if (exchange == nullptr) return std::make_unique<LocalRows>(std::move(features), own);
  return std::make_unique<ShardedRows>(std::move(features), own, exchange, wire);
}

}  // namespace

SliceRange OwnSlices(uint32_t slices, const Exchange* exchange) {
  if (exchange == nullptr) return {0, slices};
  const SampleRange own = SliceOf(slices, exchange->ranks(), exchange->rank());
  return {own.begin, own.end};
}

BatchPass::BatchPass(const TrainerOptions& options, std::span<const FeatureTable> tables,
                     const std::vector<EmbeddingFeature>& features, DensePass dense_pass,
                     Exchange* exchange, std::unique_ptr<Executor> executor)
    : slices_(options.slices),
      executor_(std::move(executor)),
      team_(exchange == nullptr ? nullptr : std::make_unique<RankTeam>(exchange)),
      rows_(MakeRows(features, OwnSlices(options.slices, exchange), exchange, options.ranks.wire)),
      embedding_pass_(features, options.slices, OwnSlices(options.slices, exchange), rows_.get()),
      dense_pass_(std::move(dense_pass)),
      plan_(options, tables, OwnSlices(options.slices, exchange)) {
  running_.losses.resize(options.slices);
}

// With several ranks the other ones wait for the exchanges of this one: what fails is kept.
OperationBody BatchPass::Kept(OperationBody body) {
  return team_ == nullptr ? std::move(body) : team_->Kept(std::move(body));
}

// The rows of all packs, then the slices. All ids go before the first rows: owners look them up
// meanwhile.
OperationGraph::Id BatchPass::AddForward(uint32_t number, bool trains, OperationGraph* graph) {
  const SliceRange slices = plan_.micro_batches()[number];
  const std::span<const Pack> packs = plan_.packs();
  const MissingRule rule = trains ? MissingRule::kCreate : MissingRule::kDefault;
  const auto label = [&](OperationKind kind, size_t pack) {
    return OperationLabel{.kind = kind,
                          .pack = static_cast<uint32_t>(pack),
                          .group = plan_.groups()[pack],
                          .micro_batch = number};
  };
  const auto add_shuffle = [&](OperationKind kind, size_t i, OperationGraph::Id before, auto body) {
    return rows_->has_link() ? graph->Add(label(kind, i), 1, {{before}},
                                          [=](uint32_t, uint32_t) { return body(); })
                             : before;
  };
  std::vector<OperationGraph::Id> last(packs.size());
  for (size_t i = 0; i < packs.size(); ++i) {
    const Pack& pack = packs[i];
    // Without the places that it writes a rank cannot go on to the vote.
    last[i] = graph->Add(label(OperationKind::kUniquePartition, i), slices.size(), {},
                         [this, &pack, slices](uint32_t part, uint32_t) {
                           embedding_pass_.MakeUnique(pack, slices.begin + part);
                           return OkStatus();
                         });
    last[i] = add_shuffle(OperationKind::kShuffleIds, i, last[i], [this, &pack, slices] {
      return rows_->ShuffleIds(pack, slices, embedding_pass_.ids());
    });
  }
  for (size_t i = 0; i < packs.size(); ++i) {
    const Pack& pack = packs[i];
    last[i] = graph->Add(label(OperationKind::kGather, i), 1, {{last[i]}},
                         Kept([this, &pack, slices, rule](uint32_t, uint32_t) {
                           return rows_->Gather(pack, slices, rule, embedding_pass_.ids());
                         }));
    last[i] = add_shuffle(OperationKind::kShuffleRows, i, last[i],
                          [this, &pack, slices] { return rows_->ShuffleRows(pack, slices); });
    last[i] = graph->Add(label(OperationKind::kStitchReduce, i), slices.size(), {{last[i]}},
                         Kept([this, &pack, slices](uint32_t part, uint32_t) {
                           embedding_pass_.StitchReduce(pack, slices.begin + part);
                           return OkStatus();
                         }));
  }
  DensePass::BucketDone done;
  if (trains && team_ != nullptr) {
    done = [this, graph](uint32_t bucket) { graph->Arrive(running_.buckets[bucket]); };
  }
  // Nor can it where a bucket of gradients would never be there.
  return graph->Add({.kind = OperationKind::kDense, .micro_batch = number}, slices.size(), last,
                    [this, slices, trains, done](uint32_t part, uint32_t thread) {
                      const uint32_t slice = slices.begin + part;
                      running_.losses[slice] = RunSlice(slice, thread, trains, done);
                      running_.slices_left.fetch_sub(1, std::memory_order_relaxed);
                      return OkStatus();
                    });
}

// Buckets are summed over ranks as soon as all slices of this one have their gradients; the last
// layers have theirs first.
void BatchPass::AddBuckets(OperationGraph* graph) {
  running_.buckets.resize(dense_pass_.buckets());
  for (uint32_t bucket = dense_pass_.buckets(); bucket-- > 0;) {
    running_.buckets[bucket] = graph->AddAwaiting(
        {.kind = OperationKind::kAllReduce}, embedding_pass_.slices().size(),
        [this, bucket](uint32_t, uint32_t) {
          return team_->SumDense(dense_pass_.SumBucket(bucket), running_.slices_left);
        });
  }
}

void BatchPass::AddBackward(uint32_t number, OperationGraph::Id dense, OperationGraph* graph) {
  const SliceRange slices = plan_.micro_batches()[number];
  for (size_t i = 0; i < plan_.packs().size(); ++i) {
    const Pack& pack = plan_.packs()[i];
    OperationLabel label = {.kind = OperationKind::kSumGradients,
                            .pack = static_cast<uint32_t>(i),
                            .group = plan_.groups()[i],
                            .micro_batch = number};
    const OperationGraph::Id sums = graph->Add(
        label, slices.size(), {{dense}}, Kept([this, &pack, slices](uint32_t part, uint32_t) {
          embedding_pass_.SumGradients(pack, slices.begin + part);
          return OkStatus();
        }));
    if (!rows_->has_link()) continue;
    label.kind = OperationKind::kShuffleSums;
    graph->Add(label, 1, {{sums}}, [this, &pack, slices](uint32_t, uint32_t) {
      return rows_->ShuffleSums(pack, slices);
    });
  }
}

StatusOr<double> BatchPass::Run(const ClickBatch& batch, uint64_t step, bool trains,
                                std::vector<float>* logits) {
  logits->resize(batch.samples);
  running_.batch = &batch;
  running_.logits = *logits;
  running_.slices_left = embedding_pass_.slices().size();
  embedding_pass_.Begin(&batch);
  OperationGraph graph;
  AddBatch(trains, &graph);
  const Status done = graph.Run(executor_.get(), &trace_);
  if (team_ == nullptr) {
    EMBANK_RETURN_IF_ERROR(done);
  } else {
    if (!done.ok()) team_->Abort(done);
    EMBANK_RETURN_IF_ERROR(done);
    EMBANK_RETURN_IF_ERROR(Vote(step));
  }
  return SumSlices(running_.losses);
}

Status BatchPass::Vote(uint64_t step) {
  return team_
      ->Vote({.status = {},
              .step = step,
              .samples = running_.batch->samples,
              .batch_crc32c = Crc32cOf(*running_.batch),
              .are_sums_finite = embedding_pass_.AreSumsFinite(),
              .left_out = embedding_pass_.left_out()},
             {running_.losses, running_.logits}, embedding_pass_.slices())
      .status();
}

// The exchanges of a step have one order: ids and rows of all micro-batches, then sums of rows, but
// those of the last micro-batch behind the buckets, which are ready before.
void BatchPass::AddBatch(bool trains, OperationGraph* graph) {
  const auto micro_batches = static_cast<uint32_t>(plan_.micro_batches().size());
  std::vector<OperationGraph::Id> dense;
  for (uint32_t i = 0; i < micro_batches; ++i) dense.push_back(AddForward(i, trains, graph));
  for (uint32_t i = 0; trains && i < micro_batches; ++i) {
    if (team_ != nullptr && i + 1 == micro_batches) AddBuckets(graph);
    AddBackward(i, dense[i], graph);
  }
}

double BatchPass::RunSlice(uint32_t slice, uint32_t thread, bool trains,
                           const DensePass::BucketDone& done) {
  const ClickBatch& batch = *running_.batch;
  const SampleRange range = SliceOf(batch.samples, slices_, slice);
  std::vector<ConstMatrix> vectors;
  std::vector<Matrix> vector_gradients;
  for (size_t i = 0; i < embedding_pass_.features().size(); ++i) {
    vectors.push_back(embedding_pass_.Vectors(i, slice));
    if (trains) vector_gradients.push_back(embedding_pass_.Gradients(i, slice));
  }
  const uint32_t samples = range.end - range.begin;
  const DenseSlice input = {
      .number = slice - embedding_pass_.slices().begin,
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

// With several ranks a failure is in their next vote: they are at one step then.
Status BatchPass::UpdateRows() {
  const bool are_finite =
      team_ == nullptr ? embedding_pass_.AreSumsFinite() : team_->verdict().are_sums_finite;
  OperationGraph graph;
  for (size_t i = 0; i < plan_.packs().size(); ++i) {
    graph.Add({.kind = OperationKind::kUpdate,
               .pack = static_cast<uint32_t>(i),
               .group = plan_.groups()[i]},
              1, {}, Kept([this, are_finite, &pack = plan_.packs()[i]](uint32_t, uint32_t) {
                return rows_->Update(pack, are_finite);
              }));
  }
  return graph.Run(executor_.get(), &trace_);
}

// Each rank has the whole batch, and so the ids of all ranks that it owns.
Status BatchPass::Prefetch(const ClickBatch& batch) const {
  std::vector<std::vector<Key>> owned(embedding_pass_.features().size());
  std::vector<Feature> features;
  for (const EmbeddingFeature& feature : embedding_pass_.features()) {
    const std::vector<uint64_t>& ids = batch.features[feature.column].ids;
    std::vector<Key>& own = owned[features.size()];
    if (team_ != nullptr && !feature.is_replicated) {
      const Exchange& exchange = *team_->exchange();
      std::ranges::copy_if(ids, std::back_inserter(own), [&](Key id) {
        return OwnerOf(feature.table->HashOf(id), exchange.ranks()) == exchange.rank();
      });
    }
    Feature& keys = features.emplace_back();
    keys.table = feature.table;
    keys.keys = team_ != nullptr && !feature.is_replicated ? KeySpan(own) : KeySpan(ids);
  }
  return PrefetchPacked(features);
}

void BatchPass::StepDense() {
  const Timing timing(&optimizer_seconds_);
  dense_pass_.Step(executor_.get());
}

uint64_t BatchPass::left_out() const {
  return team_ == nullptr ? embedding_pass_.left_out() : team_->verdict().left_out;
}

StepSeconds BatchPass::seconds() const {
  const auto of = [&](OperationKind kind) { return trace_.seconds(kind); };
  return {.lookup = of(OperationKind::kUniquePartition) + of(OperationKind::kGather) +
                    of(OperationKind::kStitchReduce),
          .dense = of(OperationKind::kDense) + optimizer_seconds_,
          .gradients = of(OperationKind::kSumGradients) + of(OperationKind::kUpdate),
          .link = of(OperationKind::kShuffleIds) + of(OperationKind::kShuffleRows) +
                  of(OperationKind::kShuffleSums) + of(OperationKind::kAllReduce)};
}

}  // namespace embank
