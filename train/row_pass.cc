#include "train/row_pass.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/check.h"
#include "base/hash.h"
#include "base/no_throw_status.h"
#include "base/status_macros.h"
#include "store/packed/packed_prefetch.h"
#include "train/pipeline/local_rows.h"
#include "train/ranks/sharded_rows.h"

namespace embank {
namespace {

std::unique_ptr<Executor> ExecutorOfRing(const TrainerOptions& options, const Executor& executor) {
  return options.hybrid.staleness == 0 ? nullptr : MakeThreadPool(executor.concurrency());
}

std::unique_ptr<SparseRows> MakeRows(const std::vector<EmbeddingFeature>& features, SliceRange own,
                                     const RankTeam* team, ValueType wire) {
  if (team == nullptr) return std::make_unique<LocalRows>(features, own);
  const RowExchanges exchanges = {.lookups = team->lookups(), .sums = team->exchange()};
  return std::make_unique<ShardedRows>(features, own, exchanges, wire);
}

}  // namespace

RowPass::RowPass(const TrainerOptions& options, const std::vector<EmbeddingFeature>& features,
                 SliceRange own, Executor* executor, RankTeam* team, DeviceLink* link,
                 OperationTrace* trace)
    : hook_(options.experiments.before_operation),
      rule_(options.row.rule),
      lost_updates_(options.hybrid.drop_updates, options.seed),
      own_executor_(ExecutorOfRing(options, *executor)),
      executor_(own_executor_ == nullptr ? executor : own_executor_.get()),
      team_(team),
      trace_(trace),
      places_(2 * (uint64_t{options.hybrid.staleness} + 1)),
      learning_rate_(options.row.rule.learning_rate) {
  for (uint32_t i = 0; i <= options.hybrid.staleness; ++i) {
    Embedding& embedding = embeddings_.emplace_back();
    embedding.rows = MakeRows(features, own, team, options.ranks.wire);
    embedding.pass =
        std::make_unique<EmbeddingPass>(features, options.slices, own, embedding.rows.get());
  }
  if (options.hot_ids != nullptr) {
    bag_ = std::make_unique<HotBag>(features, own, options.hot_ids, team, options.ranks.wire, link);
    hot_pass_ = std::make_unique<EmbeddingPass>(features, options.slices, own, bag_.get());
  }
  if (options.hybrid.staleness == 0) return;
  ring_ = std::make_unique<RowRing>(
      RowRingOptions{.staleness = options.hybrid.staleness,
                     .is_deterministic = options.hybrid.deterministic},
      executor_,
      [this](uint64_t number) {
        Status status = CatchNoMemory([&] { return LookUp(&PlaceOf(number)); });
        if (!status.ok() && team_ != nullptr) team_->Abort(status);
        return status;
      },
      [this](uint64_t number) {
        return KeptByTeam(CatchNoMemory([&] { return MakeSteps(PlaceOf(number)); }));
      });
}

RowBatch* RowPass::Begin(const ClickBatch& batch, std::shared_ptr<const StepLayout> layout) {
  EMBANK_CHECK(under_way() < embeddings_.size());
  RowBatch* const place = &PlaceOf(begun_);
  *place = {.number = begun_++, .batch = &batch, .layout = std::move(layout)};
  place->is_hot = bag_ != nullptr && batch.is_hot;
  if (place->is_hot) place->layout = HotLayout(place->layout);
  if (has_ring()) ring_->BeginLookup();
  return place;
}

std::shared_ptr<const StepLayout> RowPass::HotLayout(
    const std::shared_ptr<const StepLayout>& layout) {
  if (cold_layout_ == layout) return hot_layout_;
  auto hot = std::make_shared<StepLayout>(*layout);
  hot->packs = AsReplicated(layout->packs);
  cold_layout_ = layout;
  hot_layout_ = std::move(hot);
  return hot_layout_;
}

Status RowPass::Swap() {
  if (bag_ == nullptr) return OkStatus();
  return oldest()->is_hot ? bag_->SwapToHot() : bag_->SwapToCold();
}

void RowPass::GiveMemory(RowBatch* batch) {
  if (batch->is_hot) {
    batch->rows = bag_.get();
    batch->pass = hot_pass_.get();
    return;
  }
  Embedding& embedding = embeddings_[batch->number % embeddings_.size()];
  batch->rows = embedding.rows.get();
  batch->pass = embedding.pass.get();
}

Status RowPass::WaitForLookup() { return has_ring() ? ring_->WaitForLookup() : OkStatus(); }

Status RowPass::Update() {
  RowBatch* const batch = oldest();
  ++updated_;
  if (!has_ring()) return KeptByTeam(MakeSteps(*batch));
  ring_->BeginUpdate();
  return OkStatus();
}

void RowPass::Drop() {
  if (has_ring()) ring_->Drop();
  updated_ = begun_;
}

Status RowPass::WaitForUpdates() { return has_ring() ? ring_->WaitForUpdates() : OkStatus(); }

// The threads of a lane of the ring stand in the trace behind those of the slices and of the lanes
// before it; each lane also has a thread of the link.
GraphWatch RowPass::WatchOf(uint32_t lane) const {
  return {.trace = trace_,
          .first_thread = has_ring() ? (lane + 1) * (executor_->concurrency() + 1) : 0,
          .hook = &hook_};
}

Status RowPass::LookUp(RowBatch* batch) {
  OperationGraph graph;
  GiveMemory(batch);
  batch->pass->Begin(batch->batch);
  for (uint32_t i = 0; i < batch->layout->micro_batches.size(); ++i) {
    AddLookup(
        *batch, i, MissingRule::kCreate, [](size_t, OperationGraph::Id rows) { return rows; },
        &graph);
  }
  return graph.Run(executor_, WatchOf(0));
}

// With several ranks a failure is in their next vote: they are at one step then.
Status RowPass::KeptByTeam(const Status& status) const {
  if (team_ == nullptr) return status;
  team_->Keep(status);
  return OkStatus();
}

// The rows of all packs. All ids go before the first rows: owners look them up meanwhile. What
// fails is kept: the other ranks wait for the exchanges of this one.
std::vector<OperationGraph::Id> RowPass::AddLookup(const RowBatch& batch, uint32_t micro_batch,
                                                   MissingRule rule, AddAfter add_after,
                                                   OperationGraph* graph) {
  const SliceRange slices = batch.layout->micro_batches[micro_batch];
  const std::span<const Pack> packs = batch.layout->packs;
  SparseRows* const rows = batch.rows;
  EmbeddingPass* const pass = batch.pass;
  const auto label = [&](OperationKind kind, size_t i) {
    return batch.LabelOf(kind, i, micro_batch);
  };
  const auto add_shuffle = [&](OperationKind kind, size_t i, OperationGraph::Id before, auto body) {
    return rows->has_link() ? graph->Add(label(kind, i), 1, {{before}},
                                         [=](uint32_t, uint32_t) { return body(); })
                            : before;
  };
  std::vector<OperationGraph::Id> last(packs.size());
  for (size_t i = 0; i < packs.size(); ++i) {
    const Pack& pack = packs[i];
    // Without the places that it writes a rank cannot go on to the vote.
    last[i] = graph->Add(label(OperationKind::kUniquePartition, i), slices.size(), {},
                         [pass, &pack, slices](uint32_t part, uint32_t) {
                           pass->MakeUnique(pack, slices.begin + part);
                           return OkStatus();
                         });
    last[i] = add_shuffle(OperationKind::kShuffleIds, i, last[i], [rows, pass, &pack, slices] {
      return rows->ShuffleIds(pack, slices, pass->ids());
    });
  }
  for (size_t i = 0; i < packs.size(); ++i) {
    const Pack& pack = packs[i];
    last[i] = graph->Add(label(OperationKind::kGather, i), 1, {{last[i]}},
                         KeptBy(team_, [rows, pass, &pack, slices, rule](uint32_t, uint32_t) {
                           return rows->Gather(pack, slices, rule, pass->ids());
                         }));
    last[i] = add_shuffle(OperationKind::kShuffleRows, i, last[i],
                          [rows, &pack, slices] { return rows->ShuffleRows(pack, slices); });
    last[i] = add_after(i, last[i]);
  }
  return last;
}

Status RowPass::SetRate(float learning_rate) {
  if (learning_rate_ == learning_rate) return OkStatus();
  UpdateRule rule = rule_;
  rule.learning_rate = learning_rate;
  for (const EmbeddingFeature& feature : features()) {
    EMBANK_RETURN_IF_ERROR(
        feature.table->ChangeRule([&](UpdateRule* of_table) { *of_table = rule; }));
  }
  learning_rate_ = learning_rate;
  return OkStatus();
}

Status RowPass::MakeSteps(const RowBatch& batch) {
  EMBANK_RETURN_IF_ERROR(SetRate(batch.learning_rate));
  RowUpdate update = batch.update;
  if (lost_updates_.has_any()) update.lost = &lost_updates_;
  if (!batch.is_hot) update.updated = bag_.get();
  OperationGraph graph;
  for (size_t i = 0; i < batch.layout->packs.size(); ++i) {
    graph.Add(batch.LabelOf(OperationKind::kUpdate, i, 0), 1, {},
              KeptBy(team_, [rows = batch.rows, update, &pack = batch.layout->packs[i]](
                                uint32_t, uint32_t) { return rows->Update(pack, update); }));
  }
  return graph.Run(executor_, WatchOf(1));
}

// Each rank has the whole batch, and so the ids of all ranks that it owns.
Status RowPass::Prefetch(const ClickBatch& batch) const {
  if (bag_ != nullptr && batch.is_hot) return OkStatus();
  std::vector<std::vector<Key>> owned(features().size());
  std::vector<Feature> prefetched;
  for (const EmbeddingFeature& feature : features()) {
    const std::vector<uint64_t>& ids = batch.features[feature.column].ids;
    std::vector<Key>& own = owned[prefetched.size()];
    const bool is_sharded = team_ != nullptr && !feature.is_replicated;
    if (is_sharded) {
      const Exchange& exchange = *team_->exchange();
      std::ranges::copy_if(ids, std::back_inserter(own), [&](Key id) {
        return OwnerOf(feature.table->HashOf(id), exchange.ranks()) == exchange.rank();
      });
    }
    Feature& keys = prefetched.emplace_back();
    keys.table = feature.table;
    keys.keys = is_sharded ? KeySpan(own) : KeySpan(ids);
  }
  return PrefetchPacked(prefetched);
}

RowCounts RowPass::counts() const {
  const EmbeddingPass& pass = *embeddings_[0].pass;
  RowCounts counts = {.left_out = pass.StepsWith(Outcome::kNotFinite),
                      .forgotten = pass.StepsWith(Outcome::kAbsent),
                      .lost = lost_updates_.count()};
  for (const Embedding& embedding : embeddings_) counts.left_out += embedding.rows->left_out();
  if (bag_ != nullptr) counts.left_out += bag_->left_out();
  return counts;
}

}  // namespace embank
