// The options of a trainer: the model, its optimizers, and the store of its rows.
#ifndef EMBANK_TRAIN_TRAINER_OPTIONS_H_
#define EMBANK_TRAIN_TRAINER_OPTIONS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/status_or.h"
#include "base/types.h"
#include "gpu/device_link.h"
#include "store/table/options.h"
#include "tiers/row/update_rule.h"
#include "train/dense/slices.h"
#include "train/models/click_model.h"
#include "train/models/layer_graph.h"
#include "train/pipeline/operation_graph.h"
#include "train/pipeline/pack_plan.h"
#include "train/pipeline/row_ring.h"
#include "train/popularity/id_places.h"
#include "train/rate_schedule.h"
#include "train/samples/click_batch.h"

namespace embank {

inline constexpr uint32_t kMicroBatchesMax = 4;

// The dim of id features where neither the options nor the model have one.
inline constexpr uint32_t kDimDefault = 16;

// An optimizer with its numbers.
struct RuleOptions {
  Optimizer optimizer;
  UpdateRule rule;
};

struct PackOptions {
  PackRule rule = PackRule::kMean;
  std::vector<std::string> excluded;  // id features whose packs wait for no group
  uint32_t groups = 1;                // of packs, at most
  uint64_t group_bytes = 0;           // above 0: groups follow from Eq 3 after the warm-up
  uint32_t warmup_steps = 100;        // that count ids before packs are split
};

// Rows that are not in step with dense parameters (train/pipeline/row_ring.h).
struct HybridOptions {
  // The most steps whose updates of rows a lookup may miss: rows are looked up and updated beside
  // the dense part of other steps. At most kStalenessMax.
  uint32_t staleness = 0;
  // Whether the updates that a lookup misses follow from the order of calls alone, so that results
  // are the same in each run: those of steps that had not ended when its own was begun. Else it may
  // miss fewer.
  bool deterministic = false;
  // The share of the updates of rows that is lost on purpose (train/pipeline/lost_updates.h), at
  // least 0 and below 1.
  double drop_updates = 0.0;
};

// How tables are spread over ranks, where there are several.
struct RankOptions {
  // Tables of which each rank has all rows, in place of those it owns. They never forget.
  std::vector<std::string> replicated;
  // Tables whose bags are summed by the owners of the rows: less travels where bags are long. Their
  // vectors are sums of sums.
  std::vector<std::string> pooled;
  // The type in which rows and their gradients travel: kF32, or kF16 with a factor for each block,
  // which rounds them (train/ranks/half_blocks.h).
  ValueType wire = ValueType::kF32;
  // Whether dense sums travel after the backward pass, in place of beside it.
  bool sums_after_backward = false;
};

// A slower machine, or one with a device, than there is.
struct ExperimentOptions {
  OperationHook before_operation;  // may be empty
  // The link over which vectors and their gradients go in cold batches, and hot rows at swaps.
  // Without a rate their bytes are counted alone.
  DeviceLinkModel link;
};

struct TrainerOptions {
  ClickModel model;            // of train/models/model_table.h, or one of your own
  uint32_t dim = 0;            // of all id features; 0: that of the model, or kDimDefault
  std::vector<uint32_t> dims;  // of each id feature, in place of `dim`; empty: none differs
  RuleOptions row = {Optimizer::kAdagrad, {.learning_rate = 0.02f}};
  RuleOptions dense = {Optimizer::kAdagrad, {.learning_rate = 0.01f}};  // SGD, Adagrad or Adam
  RateSchedule schedule;             // of the learning rates of both rules
  OnFull on_full = OnFull::kRefuse;  // new rows for which there is no space
  float row_range = 0.05f;           // the first values of rows are in [-row_range, row_range)
  uint32_t slices = kSlicesDefault;
  uint32_t batch = 1024;  // samples of a step, at most
  uint32_t threads = 0;   // of the dense part; 0: one per core
  uint64_t seed = 1;      // of the first weights; StoreOptions::seed is that of the rows
  // Where `pin_batches` is 0, the trainer chooses it.
  StoreOptions store;
  HybridOptions hybrid;
  RankOptions ranks;
  // The ids whose rows hot batches have in a bag (train/hot/hot_bag.h), for the id features of the
  // data. nullptr: all batches use the store. Then neither staleness, nor forgotten rows, nor bags
  // that owners sum.
  std::shared_ptr<const HotIds> hot_ids;

  // How a step is done; its results do not depend on these (train/pipeline/README.md).
  PackOptions packs;
  uint32_t micro_batches = 1;      // of a batch, 1 to kMicroBatchesMax, at most `slices`
  uint64_t micro_batch_bytes = 0;  // above 0: their number follows from Eq 2 after the warm-up
  ExperimentOptions experiments;
};

// INVALID_ARGUMENT names the option.
Status Validate(const TrainerOptions& options);

// The lookup batches of a table that pins outlast where the options do not say it: from the
// prefetch of a row to its update, and at least as many as in any store.
uint32_t PinBatchesOf(const TrainerOptions& options);

// A table of rows: those of an id feature of the data. Several features may have the same one.
struct FeatureTable {
  std::string name;
  uint32_t column;  // of the id features
  uint32_t dim;
  bool is_excluded = false;
  bool is_replicated = false;
  bool is_pooled = false;
};

// The tables of a model, in the order of its features. A model with a linear part has two for each
// id feature: vectors, and weights of that part.
std::vector<FeatureTable> TablesOf(const TrainerOptions& options, const ClickColumns& columns);

// Makes the graph of the model for samples with these features. INVALID_ARGUMENT: there is no
// model, it does not suit the features, or its graph has not one logit.
StatusOr<LayerGraph> MakeModel(const TrainerOptions& options, const ClickColumns& columns);

}  // namespace embank

#endif  // EMBANK_TRAIN_TRAINER_OPTIONS_H_
