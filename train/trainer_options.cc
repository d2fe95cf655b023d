#include "train/trainer_options.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <vector>

#include "base/status_macros.h"
#include "base/str_cat.h"
#include "store/table/options.h"
#include "store/table/pins.h"

namespace embank {
namespace {

constexpr uint32_t kBatchMax = 1u << 20;
constexpr uint32_t kSlicesMax = 1024;

// The dim of id features that have none of their own.
uint32_t CommonDim(const TrainerOptions& options) {
  if (options.dim > 0) return options.dim;
  return options.model.dim > 0 ? options.model.dim : kDimDefault;
}

uint32_t DimOf(const TrainerOptions& options, size_t feature) {
  return options.dims.empty() ? CommonDim(options) : options.dims[feature];
}

ModelInputs InputsOf(const TrainerOptions& options, const ClickColumns& columns) {
  ModelInputs inputs = {.dense = static_cast<uint32_t>(columns.dense.size()), .feature_dims = {}};
  for (const FeatureTable& table : TablesOf(options, columns)) {
    inputs.feature_dims.push_back(table.dim);
  }
  return inputs;
}

const std::string& TableOf(const ClickColumns& columns, size_t feature) {
  return columns.table_names()[feature];
}

bool IsIn(const std::vector<std::string>& tables, const std::string& table) {
  return std::ranges::find(tables, table) != tables.end();
}

// Whether a feature of the table is.
bool IsExcluded(const TrainerOptions& options, const ClickColumns& columns,
                std::string_view table) {
  for (size_t i = 0; i < columns.ids.size(); ++i) {
    if (TableOf(columns, i) != table) continue;
    if (std::ranges::find(options.packs.excluded, columns.ids[i]) != options.packs.excluded.end())
      return true;
  }
  return false;
}

Status CheckTables(const TrainerOptions& options, const ClickColumns& columns) {
  if (columns.tables.empty()) return OkStatus();
  if (columns.tables.size() != columns.ids.size()) {
    return InvalidArgumentError(StrCat("there are ", columns.tables.size(), " tables for ",
                                       columns.ids.size(), " id features"));
  }
  std::map<std::string_view, size_t> first;
  for (size_t i = 0; i < columns.ids.size(); ++i) {
    const size_t other = first.emplace(columns.tables[i], i).first->second;
    if (DimOf(options, i) == DimOf(options, other)) continue;
    return InvalidArgumentError(StrCat("id features \"", columns.ids[other], "\" and \"",
                                       columns.ids[i], "\" share the table \"", columns.tables[i],
                                       "\", and have dims ", DimOf(options, other), " and ",
                                       DimOf(options, i), "; they must be equal"));
  }
  return OkStatus();
}

Status CheckDims(const TrainerOptions& options) {
  std::vector<uint32_t> dims = options.dims;
  dims.push_back(CommonDim(options));
  for (const uint32_t dim : dims) {
    if (dim > 0 && dim <= kDimMax) continue;
    return InvalidArgumentError(StrCat("dim is ", dim, "; it must be 1 to ", kDimMax));
  }
  return OkStatus();
}

Status CheckRule(const char* of, Optimizer optimizer, const UpdateRule& rule) {
  TableOptions table;
  table.dim = 1;
  table.optimizer = optimizer;
  table.rule = rule;
  Status status = Validate(table);
  if (status.ok()) return status;
  return InvalidArgumentError(StrCat("the rule of ", of, ": ", status.message()));
}

// All names and numbers that go with the features of the data.
Status CheckFeatures(const TrainerOptions& options, const ClickColumns& columns) {
  if (columns.ids.empty()) {
    return InvalidArgumentError(
        "the data have no id features; a column file has id or bag COLUMN decimal, hex or text");
  }
  if (!options.dims.empty() && options.dims.size() != columns.ids.size()) {
    return InvalidArgumentError(StrCat("there are ", options.dims.size(),
                                       " dims, and the data have ", columns.ids.size(),
                                       " id features"));
  }
  EMBANK_RETURN_IF_ERROR(CheckTables(options, columns));
  for (const std::string& name : options.packs.excluded) {
    if (std::ranges::find(columns.ids, name) != columns.ids.end()) continue;
    return InvalidArgumentError(StrCat("excluded: the data have no id feature \"", name, "\""));
  }
  const std::vector<std::string>& tables = columns.table_names();
  for (const std::string& name : options.ranks.replicated) {
    if (IsIn(tables, name)) continue;
    return InvalidArgumentError(
        StrCat("replicate: the data have no id feature with a table \"", name, "\""));
  }
  for (const std::string& name : options.ranks.pooled) {
    if (!IsIn(tables, name)) {
      return InvalidArgumentError(
          StrCat("pool at owner: the data have no id feature with a table \"", name, "\""));
    }
    if (IsIn(options.ranks.replicated, name)) {
      return InvalidArgumentError(StrCat("pool at owner: the table \"", name,
                                         "\" is replicated, and has no owners; name it once"));
    }
  }
  return OkStatus();
}

// Whether the features are those that the model needs. CheckFeatures has succeeded.
Status CheckModel(const TrainerOptions& options, const ClickColumns& columns) {
  const ClickModel& model = options.model;
  if (model.make == nullptr || model.name.empty()) {
    return InvalidArgumentError("there is no model, or it has no name");
  }
  if (model.name.find('\n') != std::string::npos) {
    return InvalidArgumentError("the name of the model has two lines");
  }
  if (model.needs_dense && columns.dense.empty()) {
    return InvalidArgumentError(
        StrCat("model is ", model.name, ", which needs dense features; the data have none"));
  }
  for (size_t i = 0; i < columns.ids.size(); ++i) {
    const uint32_t dim = DimOf(options, i);
    if (dim < model.dim_min) {
      return InvalidArgumentError(StrCat("the dim of id feature \"", columns.ids[i], "\" is ", dim,
                                         "; model ", model.name, " needs vectors of at least ",
                                         model.dim_min));
    }
    if (model.dim > 0 && dim != model.dim) {
      return InvalidArgumentError(StrCat("the dim of id feature \"", columns.ids[i], "\" is ", dim,
                                         "; model ", model.name, " has dim ", model.dim));
    }
  }
  const bool is_one_dim =
      std::ranges::all_of(options.dims, [&](uint32_t dim) { return dim == options.dims[0]; });
  if (is_one_dim || !model.needs_one_dim) return OkStatus();
  return InvalidArgumentError(
      StrCat("model is ", model.name, ", which needs one dim for all id features"));
}

uint32_t MicroBatchesAtMost(const TrainerOptions& options) {
  return options.micro_batch_bytes > 0 ? kMicroBatchesMax : options.micro_batches;
}

// The lookup batches of a table from the prefetch of a row to its update. While rows are slow, the
// lookups of staleness + 1 batches are pending at the prefetch, and those of as many more begin
// before the update; one more is that of the batch itself.
uint32_t LookupsOfPin(const TrainerOptions& options) {
  static_assert((2 * kStalenessMax + 3) * kMicroBatchesMax <= Pins::kBatchesMax);
  return (2 * options.hybrid.staleness + 3) * MicroBatchesAtMost(options);
}

Status CheckStaleness(const TrainerOptions& options) {
  const uint32_t staleness = options.hybrid.staleness;
  if (staleness > kStalenessMax) {
    return InvalidArgumentError(
        StrCat("staleness is ", staleness, "; it must be 0 to ", kStalenessMax,
               ": each step under way has memory of its own for rows and vectors"));
  }
  const uint32_t pins = options.store.pin_batches;
  if (pins == 0 || pins >= LookupsOfPin(options)) return OkStatus();
  return InvalidArgumentError(
      StrCat("staleness is ", staleness, " with ", MicroBatchesAtMost(options),
             " micro-batches: rows must stay pinned for ", LookupsOfPin(options),
             " lookup batches, and pin_batches is ", pins, "; leave it 0"));
}

// Rows of a bag are in step with the store at swaps alone.
Status CheckHotBatches(const TrainerOptions& options) {
  if (options.hot_ids == nullptr) return OkStatus();
  if (options.hybrid.staleness > 0) {
    return InvalidArgumentError(StrCat("staleness is ", options.hybrid.staleness,
                                       "; with hot batches it must be 0: their rows are in step"));
  }
  if (options.on_full == OnFull::kForget) {
    return InvalidArgumentError(
        "forget: a store that forgets rows has no hot batches, whose rows must stay; leave "
        "--forget out, or give --no-bag");
  }
  if (options.ranks.pooled.empty()) return OkStatus();
  return InvalidArgumentError(
      "pool at owner: with hot batches each rank has the hot rows and sums its own bags; leave it "
      "out");
}

}  // namespace

uint32_t PinBatchesOf(const TrainerOptions& options) {
  return std::max(Pins::kBatches, LookupsOfPin(options));
}

Status Validate(const TrainerOptions& options) {
  EMBANK_RETURN_IF_ERROR(CheckDims(options));
  if (options.batch == 0 || options.batch > kBatchMax) {
    return InvalidArgumentError(
        StrCat("batch is ", options.batch, "; it must be 1 to ", kBatchMax));
  }
  if (options.slices == 0 || options.slices > kSlicesMax) {
    return InvalidArgumentError(
        StrCat("slices is ", options.slices, "; it must be 1 to ", kSlicesMax));
  }
  if (options.micro_batches == 0 || options.micro_batches > kMicroBatchesMax) {
    return InvalidArgumentError(
        StrCat("micro_batches is ", options.micro_batches, "; it must be 1 to ", kMicroBatchesMax));
  }
  EMBANK_RETURN_IF_ERROR(CheckStaleness(options));
  if (options.ranks.wire != ValueType::kF32 && options.ranks.wire != ValueType::kF16) {
    return InvalidArgumentError("the wire type is bf16; it must be f32 or f16");
  }
  if (!(options.hybrid.drop_updates >= 0.0 && options.hybrid.drop_updates < 1.0)) {
    return InvalidArgumentError(StrCat("drop_updates is ", options.hybrid.drop_updates,
                                       "; it must be at least 0, and below 1"));
  }
  if (options.packs.groups == 0) return InvalidArgumentError("groups is 0; it must be at least 1");
  if (options.row.optimizer == Optimizer::kNone) {
    return InvalidArgumentError("the rows need an optimizer");
  }
  EMBANK_RETURN_IF_ERROR(CheckRule("rows", options.row.optimizer, options.row.rule));
  EMBANK_RETURN_IF_ERROR(
      CheckRule("dense parameters", options.dense.optimizer, options.dense.rule));
  EMBANK_RETURN_IF_ERROR(Validate(options.schedule));
  EMBANK_RETURN_IF_ERROR(CheckHotBatches(options));
  const RateSchedule& schedule = options.schedule;
  const bool changes = schedule.curve != RateCurve::kConstant || schedule.warmup_steps > 0;
  // Its weights follow from sums of gradients and the rate: a new rate scales all of them.
  if (changes && options.row.optimizer == Optimizer::kFtrl) {
    return InvalidArgumentError(
        "the rows have FTRL, which has one rate for all steps: give neither --schedule nor "
        "--rate-warmup, or another --row-optimizer");
  }
  return Validate(options.store);
}

std::vector<FeatureTable> TablesOf(const TrainerOptions& options, const ClickColumns& columns) {
  std::vector<FeatureTable> tables;
  const auto add = [&](const char* kind, uint32_t column, uint32_t dim) {
    const std::string& name = TableOf(columns, column);
    tables.push_back({.name = StrCat(kind, " ", name),
                      .column = column,
                      .dim = dim,
                      .is_excluded = IsExcluded(options, columns, name),
                      .is_replicated = IsIn(options.ranks.replicated, name),
                      .is_pooled = IsIn(options.ranks.pooled, name)});
  };
  for (uint32_t i = 0; i < columns.ids.size(); ++i) add("id", i, DimOf(options, i));
  for (uint32_t i = 0; options.model.has_linear_part && i < columns.ids.size(); ++i)
    add("wide", i, 1);
  return tables;
}

StatusOr<LayerGraph> MakeModel(const TrainerOptions& options, const ClickColumns& columns) {
  EMBANK_RETURN_IF_ERROR(CheckFeatures(options, columns));
  EMBANK_RETURN_IF_ERROR(CheckModel(options, columns));
  LayerGraph graph = options.model.make(InputsOf(options, columns));
  const uint32_t logits = graph.nodes().empty() ? 0 : graph.nodes().back().columns;
  const bool ends_in_layer = logits > 0 && !graph.nodes().back().inputs.empty();
  if (logits == 1 && ends_in_layer) return graph;
  if (logits == 1) {
    return InvalidArgumentError(
        StrCat("model ", options.model.name, " ends in a feature; its last node must be a layer"));
  }
  return InvalidArgumentError(StrCat("model ", options.model.name, " has ", logits,
                                     " logits for a sample; a trainer takes one"));
}

}  // namespace embank
