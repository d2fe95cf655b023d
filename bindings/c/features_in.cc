#include "bindings/c/features_in.h"

#include <cmath>
#include <cstddef>

#include "base/status_macros.h"
#include "base/str_cat.h"
#include "bindings/c/arguments_in.h"
#include "bindings/c/handles.h"
#include "bindings/c/options_in.h"

namespace embank {
namespace {

// The status of a feature, with its number in front. The message begins with the name of a field,
// or is a sentence about the store.
Status InFeature(uint64_t i, const Status& status) {
  if (status.ok()) return status;
  const char* const joint = IsFailedPrecondition(status) ? ": " : ".";
  return Status(status.code(), StrCat("features[", i, "]", joint, status.message()));
}

StatusOr<Feature> EnterTableAndKeys(const embank_feature& feature) {
  Feature entered;
  EMBANK_ASSIGN_OR_RETURN(entered.keys, EnterKeys(feature.table, feature.keys, feature.n));
  entered.table = TableOfHandle(feature.table);
  return entered;
}

Status EnterBags(const embank_feature& feature, Feature* entered) {
  if (feature.pooling < EMBANK_POOL_NONE || feature.pooling > EMBANK_POOL_SQRT_N) {
    return InvalidArgumentError(
        StrCat("pooling is ", feature.pooling, "; it must be an EMBANK_POOL_* (0 to 3)"));
  }
  entered->pooling = static_cast<Pooling>(feature.pooling);
  if (feature.weights != nullptr && feature.pooling != EMBANK_POOL_SUM) {
    return InvalidArgumentError("weights is not NULL; weights need EMBANK_POOL_SUM");
  }
  entered->weights = feature.weights;
  for (uint64_t i = 0; feature.weights != nullptr && i < feature.n; ++i) {
    if (std::isfinite(feature.weights[i])) continue;
    return InvalidArgumentError(StrCat("weights[", i, "] is NaN or infinite"));
  }
  if (feature.pooling == EMBANK_POOL_NONE) {
    if (feature.offsets != nullptr) {
      return InvalidArgumentError("offsets is not NULL; EMBANK_POOL_NONE has no bags");
    }
    if (feature.bags == 0) return OkStatus();
    return InvalidArgumentError(StrCat("bags is ", feature.bags, "; EMBANK_POOL_NONE has none"));
  }
  if (feature.bags >= kBatchKeysMax) {
    return InvalidArgumentError(
        StrCat("bags is ", feature.bags, "; a feature has fewer than ", kBatchKeysMax));
  }
  EMBANK_RETURN_IF_ERROR(CheckNotNull(feature.offsets, "offsets"));
  const std::span<const uint64_t> offsets(feature.offsets, feature.bags + 1);
  for (uint64_t bag = 0; bag <= feature.bags; ++bag) {
    const bool is_last = bag == feature.bags;
    const uint64_t least = bag == 0 ? 0 : offsets[bag - 1];
    const bool is_right = bag == 0 ? offsets[0] == 0 : offsets[bag] >= least;
    if (!is_right || offsets[bag] > feature.n || (is_last && offsets[bag] != feature.n)) {
      return InvalidArgumentError(
          StrCat("offsets[", bag, "] is ", offsets[bag],
                 "; offsets begin with 0, never fall, and end with n, which is ", feature.n));
    }
  }
  entered->offsets = offsets;
  return OkStatus();
}

// Enters the rows of a feature into the one of the store.
Status EnterFeatureRows(const embank_feature& feature, LookupFeature* entered) {
  const RowLayout& layout = entered->table->layout();
  const bool is_pooled = entered->pooling != Pooling::kNone;
  const uint64_t rows = is_pooled ? feature.bags : feature.n;
  const uint64_t bytes = is_pooled ? uint64_t{layout.dim} * sizeof(float) : layout.vector_bytes;
  EMBANK_ASSIGN_OR_RETURN(entered->rows, EnterRows(*entered->table, feature.rows, "rows", rows,
                                                   bytes, feature.row_stride));
  return OkStatus();
}

Status EnterFeatureRows(const embank_feature& feature, GradientFeature* entered) {
  const bool is_pooled = entered->pooling != Pooling::kNone;
  const uint64_t rows = is_pooled ? feature.bags : feature.n;
  const uint64_t bytes = uint64_t{entered->table->layout().dim} * sizeof(float);
  const void* const gradients = feature.rows;
  EMBANK_ASSIGN_OR_RETURN(entered->gradients, EnterRows(*entered->table, gradients, "rows", rows,
                                                        bytes, feature.row_stride));
  return OkStatus();
}

Status CheckTotals(embank_table* first, embank_table* table, uint64_t keys) {
  if (TableOfHandle(table)->parts().index != TableOfHandle(first)->parts().index) {
    return InvalidArgumentError("table is of another store than that of features[0]");
  }
  if (keys <= kBatchKeysMax) return OkStatus();
  return InvalidArgumentError(StrCat("n makes ", keys,
                                     " keys of all features up to here; a call has ", "at most ",
                                     kBatchKeysMax));
}

// Calls enter(feature, key) for each feature, with the number of keys before it. The structs in the
// caller's array have the caller's size.
template <typename Enter>
Status ForEachFeature(const embank_feature* features, uint64_t count, Enter enter) {
  if (count > 0) EMBANK_RETURN_IF_ERROR(CheckNotNull(features, "features"));
  const auto* next = reinterpret_cast<const std::byte*>(features);
  embank_table* first = nullptr;
  uint64_t keys = 0;
  for (uint64_t i = 0; i < count; ++i) {
    const StatusOr<embank_feature> read =
        ReadFeature(reinterpret_cast<const embank_feature*>(next));
    EMBANK_RETURN_IF_ERROR(InFeature(i, read.status()));
    EMBANK_RETURN_IF_ERROR(InFeature(i, enter(*read, keys)));
    if (i == 0) first = read->table;
    keys += read->n;
    EMBANK_RETURN_IF_ERROR(InFeature(i, CheckTotals(first, read->table, keys)));
    next += read->struct_size;
  }
  return OkStatus();
}

template <typename FeatureType>
Status EnterFeature(const embank_feature& feature, uint8_t* outcomes,
                    std::vector<FeatureType>* entered) {
  FeatureType one;
  EMBANK_ASSIGN_OR_RETURN(static_cast<Feature&>(one), EnterTableAndKeys(feature));
  EMBANK_RETURN_IF_ERROR(EnterBags(feature, &one));
  EMBANK_RETURN_IF_ERROR(EnterFeatureRows(feature, &one));
  if (outcomes != nullptr) one.outcomes = EnterOutcomes(outcomes, feature.n);
  entered->push_back(one);
  return OkStatus();
}

template <typename FeatureType>
StatusOr<std::vector<FeatureType>> EnterFeatures(const embank_feature* features, uint64_t count,
                                                 uint8_t* outcomes) {
  std::vector<FeatureType> entered;
  const auto enter = [&](const embank_feature& feature, uint64_t first_key) {
    return EnterFeature(feature, outcomes == nullptr ? nullptr : outcomes + first_key, &entered);
  };
  EMBANK_RETURN_IF_ERROR(ForEachFeature(features, count, enter));
  return entered;
}

}  // namespace

StatusOr<std::vector<LookupFeature>> EnterLookups(const embank_feature* features, uint64_t count,
                                                  uint8_t* outcomes) {
  return EnterFeatures<LookupFeature>(features, count, outcomes);
}

StatusOr<std::vector<GradientFeature>> EnterGradients(const embank_feature* features,
                                                      uint64_t count, uint8_t* outcomes) {
  return EnterFeatures<GradientFeature>(features, count, outcomes);
}

StatusOr<std::vector<Feature>> EnterKeyFeatures(const embank_feature* features, uint64_t count) {
  std::vector<Feature> entered;
  const auto enter = [&](const embank_feature& feature, uint64_t) {
    const StatusOr<Feature> one = EnterTableAndKeys(feature);
    if (one.ok()) entered.push_back(*one);
    return one.status();
  };
  EMBANK_RETURN_IF_ERROR(ForEachFeature(features, count, enter));
  return entered;
}

}  // namespace embank
