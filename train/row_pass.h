// The rows of the batches under way: looked up before the slices of a batch, updated after them.
//
// With a staleness above 0 several batches are under way at once, each with memory of its own: rows
// of later ones are looked up, and those of earlier ones updated, beside the slices of the oldest
// one (train/pipeline/row_ring.h).
#ifndef EMBANK_TRAIN_ROW_PASS_H_
#define EMBANK_TRAIN_ROW_PASS_H_

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/function_ref.h"
#include "base/status.h"
#include "base/status_or.h"
#include "base/threads/executor.h"
#include "gpu/device_link.h"
#include "tiers/row/update_rule.h"
#include "train/hot/hot_bag.h"
#include "train/pipeline/embedding_pass.h"
#include "train/pipeline/operation_graph.h"
#include "train/pipeline/operation_trace.h"
#include "train/pipeline/row_ring.h"
#include "train/pipeline/sparse_rows.h"
#include "train/ranks/rank_team.h"
#include "train/samples/click_batch.h"
#include "train/step_plan.h"
#include "train/trainer_options.h"

namespace embank {

// A batch under way.
struct RowBatch {
  uint64_t number = 0;  // batches are numbered from 0 on
  const ClickBatch* batch = nullptr;
  std::shared_ptr<const StepLayout> layout;
  // The lookup sets these. Batches whose numbers are equal modulo staleness + 1 share them.
  SparseRows* rows = nullptr;
  EmbeddingPass* pass = nullptr;
  // The update has these.
  RowUpdate update = {};
  bool is_hot = false;  // its rows are those of the bag
  float learning_rate = 0.0f;

  // The label of an operation of a pack.
  OperationLabel LabelOf(OperationKind kind, size_t pack, uint32_t micro_batch) const {
    return {.kind = kind,
            .pack = static_cast<uint32_t>(pack),
            .group = layout->groups[pack],
            .micro_batch = micro_batch,
            .batch = number};
  }
};

// Steps of rows that were not made, so far.
struct RowCounts {
  uint64_t left_out = 0;   // they would not have been finite
  uint64_t forgotten = 0;  // the table has forgotten the row since its lookup
  uint64_t lost = 0;       // on purpose (HybridOptions::drop_updates)
};

// One thread, but Prefetch may run beside the others.
class RowPass {
 public:
  // The tables of the features are open, with the rule of the options. The executor, the team, the
  // link and the trace outlive it; a team of nullptr: there is one rank.
  RowPass(const TrainerOptions& options, const std::vector<EmbeddingFeature>& features,
          SliceRange own, Executor* executor, RankTeam* team, DeviceLink* link,
          OperationTrace* trace);

  // Begins a batch, which stays until Update or Drop; at most `staleness` are under way. Its rows
  // are looked up from now on. Where the staleness is 0, nothing is: the caller adds the lookup to
  // a graph of its own.
  RowBatch* Begin(const ClickBatch& batch, std::shared_ptr<const StepLayout> layout);
  // Brings the rows of the bag up to date for the oldest batch, or those of the store, where a swap
  // lies between it and the batch before it. The statuses of HotBag::SwapToHot and SwapToCold.
  Status Swap();
  // Brings the rows of the store up to date, which hot batches have left behind. Statuses are those
  // of HotBag::WriteBack.
  Status WriteBack() { return bag_ == nullptr ? OkStatus() : bag_->WriteBack(); }
  // nullptr: all batches use the store.
  const HotBag* bag() const { return bag_.get(); }

  // Waits for the lookup of the oldest batch. The statuses of LookupPacked and Exchange::Run, and
  // those of earlier updates.
  Status WaitForLookup();
  // Makes the steps of the oldest batch's rows at the learning rate that it has, or begins to,
  // where the staleness is above 0: the batch is no longer under way. The statuses of
  // ApplyGradientsPacked. With several ranks a failure is kept until their next vote, and the
  // status is OK.
  Status Update();
  // Ends all batches under way without their updates.
  void Drop();
  // Waits for the updates that were begun. Their first status that is not OK.
  Status WaitForUpdates();
  // Reads the rows of a batch that comes soon into memory. The statuses of PrefetchPacked.
  Status Prefetch(const ClickBatch& batch) const;

  // Adds the lookup of a micro-batch to a graph, and what `add_after` adds behind the rows of each
  // pack, of which it returns the last operation. Returns those of all packs.
  using AddAfter = FunctionRef<OperationGraph::Id(size_t pack, OperationGraph::Id rows)>;
  std::vector<OperationGraph::Id> AddLookup(const RowBatch& batch, uint32_t micro_batch,
                                            MissingRule rule, AddAfter add_after,
                                            OperationGraph* graph);
  // Gives a batch the memory of its rows and vectors, for AddLookup; its pass must begin then. The
  // lookups of the ring do both themselves.
  void GiveMemory(RowBatch* batch);

  uint32_t under_way() const { return static_cast<uint32_t>(begun_ - updated_); }
  // The oldest batch under way.
  RowBatch* oldest() { return &PlaceOf(updated_); }
  bool has_ring() const { return ring_ != nullptr; }
  SliceRange slices() const { return embeddings_[0].pass->slices(); }
  std::span<const EmbeddingFeature> features() const { return embeddings_[0].pass->features(); }
  RowCounts counts() const;
  RowRingCounts ring_counts() const { return has_ring() ? ring_->counts() : RowRingCounts(); }

 private:
  struct Embedding {
    std::unique_ptr<SparseRows> rows;
    std::unique_ptr<EmbeddingPass> pass;
  };

  // The place of a batch is free again after as many batches as RowRing says.
  RowBatch& PlaceOf(uint64_t number) { return places_[number % places_.size()]; }
  Status LookUp(RowBatch* batch);
  Status MakeSteps(const RowBatch& batch);
  Status KeptByTeam(const Status& status) const;
  Status SetRate(float learning_rate);
  std::shared_ptr<const StepLayout> HotLayout(const std::shared_ptr<const StepLayout>& layout);
  GraphWatch WatchOf(uint32_t lane) const;

  const OperationHook hook_;
  const UpdateRule rule_;
  LostUpdates lost_updates_;
  const std::unique_ptr<Executor> own_executor_;  // of the ring
  Executor* const executor_;
  RankTeam* const team_;
  OperationTrace* const trace_;
  std::vector<Embedding> embeddings_;
  std::unique_ptr<HotBag> bag_;  // nullptr: all batches use the store
  std::unique_ptr<EmbeddingPass> hot_pass_;
  // The layout of the last hot batch, and the one that it is made of.
  std::shared_ptr<const StepLayout> hot_layout_, cold_layout_;
  std::vector<RowBatch> places_;
  uint64_t begun_ = 0;
  uint64_t updated_ = 0;  // or dropped
  float learning_rate_;   // of all tables
  // Last: its lookups and updates use all of the above. nullptr: the staleness is 0.
  std::unique_ptr<RowRing> ring_;
};

}  // namespace embank

#endif  // EMBANK_TRAIN_ROW_PASS_H_
