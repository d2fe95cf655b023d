#include "train/models/model_table.h"

#include <array>
#include <cstdint>
#include <utility>

#include "base/status.h"
#include "base/str_cat.h"
#include "train/models/deep_fm.h"
#include "train/models/dlrm.h"
#include "train/models/ffnn.h"
#include "train/models/mmoe.h"
#include "train/models/wide_deep.h"

namespace embank {
namespace {

// The widths of a deep part that costs less than its embeddings.
constexpr std::array<uint32_t, 2> kDeepWidths = {64, 32};

// A DLRM as published: the last of its bottom layers is the dim of the id features.
ClickModel PublishedDlrm(std::string name, const DlrmLayers& layers) {
  return {.name = std::move(name),
          .make = [layers](const ModelInputs& inputs) { return MakeDlrm(inputs, layers); },
          .needs_dense = true,
          .needs_one_dim = true,
          .dim = layers.bottom.back()};
}

// RMC2 for any dim.
LayerGraph MakeAnyDlrm(const ModelInputs& inputs) {
  DlrmLayers layers = Rmc2Layers();
  layers.bottom.back() = inputs.feature_dims[0];
  return MakeDlrm(inputs, layers);
}

LayerGraph MakeSmallMmoe(const ModelInputs& inputs) {
  return MakeMmoe(inputs, {.experts = 4, .tasks = 1, .expert = {64, 32}, .tower = {16}});
}

}  // namespace

std::vector<ClickModel> AllModels() {
  return {{.name = "dlrm", .make = MakeAnyDlrm, .needs_dense = true, .needs_one_dim = true},
          PublishedDlrm("rmc2", Rmc2Layers()),
          PublishedDlrm("rmc3", Rmc3Layers()),
          PublishedDlrm("rmc4", Rmc4Layers()),
          PublishedDlrm("syn-m1", SynM1Layers()),
          PublishedDlrm("syn-m2", SynM2Layers()),
          PublishedDlrm("syn-m3", SynM3Layers()),
          PublishedDlrm("syn-m4", SynM4Layers()),
          {.name = "wide-deep",
           .make = [](const ModelInputs& inputs) { return MakeWideDeep(inputs, kDeepWidths); },
           .has_linear_part = true,
           .dim_min = 2},
          {.name = "deep-fm",
           .make = [](const ModelInputs& inputs) { return MakeDeepFm(inputs, kDeepWidths); },
           .has_linear_part = true,
           .needs_one_dim = true,
           .dim_min = 2},
          {.name = "ffnn",
           .make = [](const ModelInputs& inputs) { return MakeFfnn(inputs, kDeepWidths); },
           .dim_min = 2},
          {.name = "ffnn-persia",
           .make = [](const ModelInputs& inputs) { return MakeFfnn(inputs, PersiaWidths()); },
           .dim_min = 2},
          {.name = "mmoe", .make = MakeSmallMmoe, .dim_min = 2}};
}

std::string ModelNames() {
  const std::vector<ClickModel> models = AllModels();
  std::string names = models[0].name;
  for (size_t i = 1; i < models.size(); ++i) {
    StrAppend(&names, i + 1 < models.size() ? ", " : " or ", models[i].name);
  }
  return names;
}

StatusOr<ClickModel> FindModel(std::string_view name) {
  for (ClickModel& model : AllModels()) {
    if (model.name == name) return std::move(model);
  }
  return InvalidArgumentError(StrCat("model is \"", name, "\"; it must be ", ModelNames()));
}

}  // namespace embank
