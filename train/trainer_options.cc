#include "train/trainer_options.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include "base/exact_text.h"
#include "base/status_macros.h"
#include "base/str_cat.h"
#include "store/table/options.h"
#include "train/models/deep_fm.h"
#include "train/models/dlrm.h"
#include "train/models/ffnn.h"
#include "train/models/mmoe.h"
#include "train/models/wide_deep.h"

namespace embank {
namespace {

constexpr uint32_t kBatchMax = 1u << 20;
constexpr uint32_t kSlicesMax = 1024;
constexpr std::array<uint32_t, 2> kDeepWidths = {64, 32};

uint32_t DimOf(const TrainerOptions& options, size_t feature) {
  return options.dims.empty() ? options.dim : options.dims[feature];
}

// Whether the linear part of a model has weights of its own, in tables of dim 1.
bool HasWeights(const TrainerOptions& options) {
  return options.model == "wide-deep" || options.model == "deep-fm";
}

bool IsExcluded(const TrainerOptions& options, std::string_view feature) {
  return std::ranges::find(options.excluded, feature) != options.excluded.end();
}

Status CheckDims(const TrainerOptions& options) {
  std::vector<uint32_t> dims = options.dims;
  dims.push_back(options.dim);
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
  const Status status = Validate(table);
  if (status.ok()) return status;
  return InvalidArgumentError(StrCat("the rule of ", of, ": ", status.message()));
}

// All names and numbers that go with the features of the data.
Status CheckFeatures(const TrainerOptions& options, const ClickColumns& columns) {
  if (columns.ids.empty()) return InvalidArgumentError("the data have no id features");
  if (!options.dims.empty() && options.dims.size() != columns.ids.size()) {
    return InvalidArgumentError(StrCat("there are ", options.dims.size(),
                                       " dims, and the data have ", columns.ids.size(),
                                       " id features"));
  }
  for (const std::string& name : options.excluded) {
    if (std::ranges::find(columns.ids, name) != columns.ids.end()) continue;
    return InvalidArgumentError(StrCat("excluded: the data have no id feature \"", name, "\""));
  }
  // Models but dlrm take features of dim 1 for the weights of a linear part.
  for (size_t i = 0; i < columns.ids.size() && options.model != "dlrm"; ++i) {
    if (DimOf(options, i) > 1) continue;
    return InvalidArgumentError(StrCat("the dim of id feature \"", columns.ids[i],
                                       "\" is 1; model ", options.model,
                                       " needs vectors of at least 2"));
  }
  const bool is_one_dim =
      std::ranges::all_of(options.dims, [&](uint32_t dim) { return dim == options.dims[0]; });
  if (is_one_dim || (options.model != "dlrm" && options.model != "deep-fm")) return OkStatus();
  return InvalidArgumentError(
      StrCat("model is ", options.model, ", which needs one dim for all id features"));
}

void AppendRule(const char* of, Optimizer optimizer, const UpdateRule& rule, std::string* text) {
  StrAppend(text, of, " optimizer ", static_cast<int>(optimizer), "\n");
  const auto append = [&](const char* name, float value) {
    StrAppend(text, of, " ", name, " ", ExactText(value), "\n");
  };
  append("learning rate", rule.learning_rate);
  append("beta1", rule.beta1);
  append("beta2", rule.beta2);
  append("epsilon", rule.epsilon);
  append("weight decay", rule.weight_decay);
  append("initial accumulator", rule.initial_accumulator);
}

}  // namespace

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
  if (options.groups == 0) return InvalidArgumentError("groups is 0; it must be at least 1");
  if (options.row_optimizer == Optimizer::kNone) {
    return InvalidArgumentError("the rows need an optimizer");
  }
  EMBANK_RETURN_IF_ERROR(CheckRule("rows", options.row_optimizer, options.row_rule));
  EMBANK_RETURN_IF_ERROR(
      CheckRule("dense parameters", options.dense_optimizer, options.dense_rule));
  return Validate(options.store);
}

std::vector<FeatureTable> TablesOf(const TrainerOptions& options, const ClickColumns& columns) {
  std::vector<FeatureTable> tables;
  const auto add = [&](const char* kind, uint32_t column, uint32_t dim) {
    const std::string& name = columns.ids[column];
    tables.push_back({.name = StrCat(kind, " ", name),
                      .column = column,
                      .dim = dim,
                      .is_excluded = IsExcluded(options, name)});
  };
  for (uint32_t i = 0; i < columns.ids.size(); ++i) add("id", i, DimOf(options, i));
  for (uint32_t i = 0; HasWeights(options) && i < columns.ids.size(); ++i) add("wide", i, 1);
  return tables;
}

StatusOr<LayerGraph> MakeModel(const TrainerOptions& options, const ClickColumns& columns) {
  EMBANK_RETURN_IF_ERROR(CheckFeatures(options, columns));
  ModelInputs inputs = {.dense = static_cast<uint32_t>(columns.dense.size()), .feature_dims = {}};
  for (const FeatureTable& table : TablesOf(options, columns)) {
    inputs.feature_dims.push_back(table.dim);
  }
  if (options.model == "dlrm") {
    if (columns.dense.empty()) {
      return InvalidArgumentError("model is dlrm, which needs dense features; the data have none");
    }
    return MakeDlrm(inputs, {{512, 256, 64, DimOf(options, 0)}, {512, 256}});
  }
  if (options.model == "wide-deep") return MakeWideDeep(inputs, kDeepWidths);
  if (options.model == "deep-fm") return MakeDeepFm(inputs, kDeepWidths);
  if (options.model == "ffnn") return MakeFfnn(inputs, kDeepWidths);
  if (options.model == "mmoe") {
    return MakeMmoe(inputs, {.experts = 4, .tasks = 1, .expert = {64, 32}, .tower = {16}});
  }
  return InvalidArgumentError(StrCat("model is \"", options.model,
                                     "\"; it must be dlrm, wide-deep, deep-fm, ffnn or mmoe"));
}

std::string ModelText(const TrainerOptions& options, const ClickColumns& columns) {
  std::string text =
      StrCat("model ", options.model, "\ndim ", options.dim, "\nbatch ", options.batch, "\nslices ",
             options.slices, "\nseed ", options.seed, "\n");
  AppendRule("row", options.row_optimizer, options.row_rule, &text);
  StrAppend(&text, "row range ", ExactText(options.row_range), "\n");
  AppendRule("dense", options.dense_optimizer, options.dense_rule, &text);
  StrAppend(&text, "dense features ", columns.dense.size(), "\nid features ", columns.ids.size(),
            "\n");
  for (const std::string& name : columns.dense) StrAppend(&text, "dense feature ", name, "\n");
  for (size_t i = 0; i < columns.ids.size(); ++i) {
    StrAppend(&text, "id feature ", columns.ids[i], " dim ", DimOf(options, i), "\n");
  }
  if (!columns.data.empty()) StrAppend(&text, "data ", columns.data, "\n");
  return text;
}

}  // namespace embank
