#include "train/trainer_options.h"

#include <array>
#include <vector>

#include "base/str_cat.h"
#include "train/models/deep_fm.h"
#include "train/models/dlrm.h"
#include "train/models/ffnn.h"
#include "train/models/wide_deep.h"

namespace embank {
namespace {

constexpr uint32_t kBatchMax = 1u << 20;
constexpr uint32_t kSlicesMax = 1024;
constexpr std::array<uint32_t, 2> kDeepWidths = {64, 32};

}  // namespace

Status Validate(const TrainerOptions& options) {
  if (options.dim == 0 || options.dim > kDimMax) {
    return InvalidArgumentError(StrCat("dim is ", options.dim, "; it must be 1 to ", kDimMax));
  }
  if (options.batch == 0 || options.batch > kBatchMax) {
    return InvalidArgumentError(
        StrCat("batch is ", options.batch, "; it must be 1 to ", kBatchMax));
  }
  if (options.slices == 0 || options.slices > kSlicesMax) {
    return InvalidArgumentError(
        StrCat("slices is ", options.slices, "; it must be 1 to ", kSlicesMax));
  }
  if (options.row_optimizer == Optimizer::kNone) {
    return InvalidArgumentError("the rows need an optimizer");
  }
  return Validate(options.store);
}

std::vector<FeatureTable> TablesOf(const TrainerOptions& options, const ClickColumns& columns) {
  std::vector<FeatureTable> tables;
  const auto add = [&](const char* kind, uint32_t dim) {
    for (uint32_t i = 0; i < columns.ids.size(); ++i) {
      tables.push_back({.name = StrCat(kind, " ", columns.ids[i]), .column = i, .dim = dim});
    }
  };
  add("id", options.dim);
  if (options.model == "wide-deep") add("wide", 1);
  return tables;
}

StatusOr<LayerGraph> MakeModel(const TrainerOptions& options, const ClickColumns& columns) {
  ModelInputs inputs = {.dense = static_cast<uint32_t>(columns.dense.size()), .feature_dims = {}};
  for (const FeatureTable& table : TablesOf(options, columns)) {
    inputs.feature_dims.push_back(table.dim);
  }
  if (columns.ids.empty()) return InvalidArgumentError("the data have no id features");
  if (options.model == "dlrm") {
    if (columns.dense.empty()) {
      return InvalidArgumentError("model is dlrm, which needs dense features; the data have none");
    }
    return MakeDlrm(inputs, {{512, 256, 64, options.dim}, {512, 256}});
  }
  if (options.model == "wide-deep" && options.dim == 1) {
    return InvalidArgumentError("dim is 1; a wide-deep model needs vectors beside its weights");
  }
  if (options.model == "wide-deep") return MakeWideDeep(inputs, kDeepWidths);
  if (options.model == "deep-fm") return MakeDeepFm(inputs, kDeepWidths);
  if (options.model == "ffnn") return MakeFfnn(inputs, kDeepWidths);
  return InvalidArgumentError(
      StrCat("model is \"", options.model, "\"; it must be dlrm, wide-deep, deep-fm or ffnn"));
}

std::string ModelText(const TrainerOptions& options, const ClickColumns& columns) {
  std::string text =
      StrCat("model ", options.model, "\ndim ", options.dim, "\nbatch ", options.batch, "\nslices ",
             options.slices, "\nseed ", options.seed, "\nrow optimizer ",
             static_cast<int>(options.row_optimizer), "\nrow learning rate ",
             options.row_rule.learning_rate, "\nrow range ", options.row_range,
             "\ndense optimizer ", static_cast<int>(options.dense_optimizer),
             "\ndense learning rate ", options.dense_rule.learning_rate, "\ndense features ",
             columns.dense.size(), "\nid features ", columns.ids.size(), "\n");
  for (const std::string& name : columns.ids) StrAppend(&text, "id feature ", name, "\n");
  return text;
}

}  // namespace embank
