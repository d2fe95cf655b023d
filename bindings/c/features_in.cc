#include "bindings/c/features_in.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>
#include <string>
#include <utility>

#include "base/status_macros.h"
#include "base/str_cat.h"
#include "bindings/c/arguments_in.h"
#include "bindings/c/handles.h"
#include "bindings/c/options_in.h"
#include "store/packed/bag_sums.h"

namespace embank {
namespace {

// The status of a feature, with its number in front. The message begins with the name of a field,
// or is a sentence about the store.
Status InFeature(uint64_t i, const Status& status) {
  if (status.ok()) return status;
  const char* const joint = IsFailedPrecondition(status) ? ": " : ".";
  return Status(status.code(), StrCat("features[", i, "]", joint, status.message()));
}

// A feature of a call on its way into the store: what was read, and what is converted for it.
struct Entry {
  const embank_feature& feature;
  std::unique_ptr<ConvertedFeature> converted = nullptr;

  ConvertedFeature& Converted() {
    if (converted == nullptr) converted = std::make_unique<ConvertedFeature>();
    return *converted;
  }
  bool has(uint32_t flag) const { return (feature.flags & flag) != 0; }
  const void* keys() const {
    return feature.key_type == EMBANK_INDEX_U64 ? feature.keys : feature.typed_keys;
  }
  const void* offsets() const {
    return feature.offset_type == EMBANK_INDEX_U64 ? feature.offsets : feature.typed_offsets;
  }
};

// Checks an array that has one of two fields, `plain` or `typed`: names "x", "x_type", "typed_x".
Status CheckTyped(const char* singular, int32_t type, const void* plain, const void* typed) {
  if (type == EMBANK_INDEX_U64 && typed == nullptr) return OkStatus();
  if (type < EMBANK_INDEX_U64 || type > EMBANK_INDEX_I32) {
    return InvalidArgumentError(
        StrCat(singular, "_type is ", type, "; it must be an EMBANK_INDEX_* (0 to 3)"));
  }
  if (type == EMBANK_INDEX_U64) {
    return InvalidArgumentError(StrCat("typed_", singular, "s is not NULL; it needs a ", singular,
                                       "_type other than EMBANK_INDEX_U64"));
  }
  if (plain == nullptr) return OkStatus();
  return InvalidArgumentError(StrCat(singular, "s is not NULL; with ", singular, "_type ", type,
                                     " the ", singular, "s are in typed_", singular, "s"));
}

Status CheckFlags(const embank_feature& feature) {
  constexpr uint32_t kKnownFlags = EMBANK_FEATURE_PADDING | EMBANK_FEATURE_ABSOLUTE;
  if ((feature.flags & ~kKnownFlags) != 0) {
    return InvalidArgumentError(
        StrCat("flags is ", feature.flags, "; it must be a sum of EMBANK_FEATURE_* (0 to 3)"));
  }
  if (feature.padding_key != 0 && (feature.flags & EMBANK_FEATURE_PADDING) == 0) {
    return InvalidArgumentError(
        StrCat("padding_key is ", feature.padding_key, "; it needs EMBANK_FEATURE_PADDING"));
  }
  if (feature.reserved == 0) return OkStatus();
  return InvalidArgumentError(StrCat("reserved is ", feature.reserved, "; it must be 0"));
}

// Checks the table, and the arrays of keys and offsets as far as NULL goes.
Status EnterTable(const Entry& entry, Feature* entered) {
  const embank_feature& feature = entry.feature;
  EMBANK_RETURN_IF_ERROR(CheckFlags(feature));
  EMBANK_RETURN_IF_ERROR(CheckTyped("key", feature.key_type, feature.keys, feature.typed_keys));
  EMBANK_RETURN_IF_ERROR(
      CheckTyped("offset", feature.offset_type, feature.offsets, feature.typed_offsets));
  const bool is_typed = feature.key_type != EMBANK_INDEX_U64;
  if (is_typed && feature.n > 0) {
    EMBANK_RETURN_IF_ERROR(CheckNotNull(feature.typed_keys, "typed_keys"));
  }
  EMBANK_RETURN_IF_ERROR(
      EnterKeys(feature.table, static_cast<const uint64_t*>(entry.keys()), feature.n).status());
  entered->table = TableOfHandle(feature.table);
  return OkStatus();
}

const char* OffsetsField(const embank_feature& feature) {
  return feature.offset_type == EMBANK_INDEX_U64 ? "offsets" : "typed_offsets";
}

// The place of the first key in the caller's arrays of keys and weights.
uint64_t FirstPlace(const Entry& entry) {
  if (!entry.has(EMBANK_FEATURE_ABSOLUTE)) return 0;
  return NumberAt(entry.offsets(), entry.feature.offset_type, 0);
}

// Absolute offsets are below this, so that 8 bytes for each key have addresses.
constexpr uint64_t kPlaceMax = uint64_t{1} << 60;

std::string Shown(uint64_t offset, int32_t type) {
  const bool is_signed = type == EMBANK_INDEX_I64 || type == EMBANK_INDEX_I32;
  return is_signed ? StrCat(static_cast<int64_t>(offset)) : StrCat(offset);
}

// Comes before anything is read at that place.
Status CheckFirstPlace(const Entry& entry) {
  const uint64_t first = FirstPlace(entry);
  if (first <= kPlaceMax) return OkStatus();
  return InvalidArgumentError(StrCat(OffsetsField(entry.feature), "[0] is ",
                                     Shown(first, entry.feature.offset_type), "; it must be 0 to ",
                                     kPlaceMax));
}

// The status of offsets of which one is wrong: names the first such.
Status WrongOffsets(const embank_feature& feature, std::span<const uint64_t> offsets,
                    uint64_t first) {
  const uint64_t n = feature.n;
  size_t i = 0;
  uint64_t least = first;
  const auto is_right = [&] {
    const bool is_last = i + 1 == offsets.size();
    return offsets[i] >= least && offsets[i] <= first + n && (i > 0 || offsets[0] == first) &&
           (!is_last || offsets[i] == first + n);
  };
  for (; is_right(); ++i) least = offsets[i];
  return InvalidArgumentError(StrCat(
      OffsetsField(feature), "[", i, "] is ", Shown(offsets[i], feature.offset_type),
      "; offsets begin with ", Shown(first, feature.offset_type), ", never fall, and end with ",
      first == 0 ? "n" : "that + n", ", which is ", first + n));
}

Status EnterOffsets(Entry* entry, Feature* entered) {
  const embank_feature& feature = entry->feature;
  if (feature.bags >= kBatchKeysMax) {
    return InvalidArgumentError(
        StrCat("bags is ", feature.bags, "; a feature has fewer than ", kBatchKeysMax));
  }
  EMBANK_RETURN_IF_ERROR(CheckNotNull(entry->offsets(), OffsetsField(feature)));
  EMBANK_RETURN_IF_ERROR(CheckFirstPlace(*entry));
  entered->offsets =
      IsNarrow(feature.offset_type)
          ? entry->Converted().WidenOffsets(entry->offsets(), feature.offset_type, feature.bags + 1)
          : std::span(static_cast<const uint64_t*>(entry->offsets()), feature.bags + 1);
  const std::span<const uint64_t> offsets = entered->offsets;
  const uint64_t first = FirstPlace(*entry);
  bool falls = false;
  for (size_t i = 1; i < offsets.size(); ++i) falls |= offsets[i] < offsets[i - 1];
  if (!falls && offsets[0] == first && offsets.back() == first + feature.n) return OkStatus();
  return WrongOffsets(feature, offsets, first);
}

Status EnterWeights(const embank_feature& feature, Feature* entered) {
  if (feature.weights == nullptr) return OkStatus();
  const uint64_t first = entered->offsets[0];
  for (uint64_t i = first; i < first + feature.n; ++i) {
    if (std::isfinite(feature.weights[i])) continue;
    return InvalidArgumentError(StrCat("weights[", i, "] is NaN or infinite"));
  }
  entered->weights = feature.weights;
  return OkStatus();
}

Status EnterBags(Entry* entry, Feature* entered) {
  const embank_feature& feature = entry->feature;
  if (feature.pooling < EMBANK_POOL_NONE || feature.pooling > EMBANK_POOL_SQRT_N) {
    return InvalidArgumentError(
        StrCat("pooling is ", feature.pooling, "; it must be an EMBANK_POOL_* (0 to 3)"));
  }
  entered->pooling = static_cast<Pooling>(feature.pooling);
  if (feature.weights != nullptr && feature.pooling != EMBANK_POOL_SUM &&
      feature.pooling != EMBANK_POOL_MEAN) {
    return InvalidArgumentError(
        "weights is not NULL; weights need EMBANK_POOL_SUM or EMBANK_POOL_MEAN");
  }
  if (feature.pooling != EMBANK_POOL_NONE) {
    EMBANK_RETURN_IF_ERROR(EnterOffsets(entry, entered));
    return EnterWeights(feature, entered);
  }
  if (entry->has(EMBANK_FEATURE_ABSOLUTE)) {
    return InvalidArgumentError(
        "flags: EMBANK_FEATURE_ABSOLUTE needs offsets; EMBANK_POOL_NONE has none");
  }
  if (entry->offsets() != nullptr) {
    return InvalidArgumentError(
        StrCat(OffsetsField(feature), " is not NULL; EMBANK_POOL_NONE has no bags"));
  }
  if (feature.bags == 0) return OkStatus();
  return InvalidArgumentError(StrCat("bags is ", feature.bags, "; EMBANK_POOL_NONE has none"));
}

// Enters the keys, as the last of the feature, after its table, offsets, weights and outcomes.
Status EnterKeyArray(Entry* entry, Feature* entered) {
  const embank_feature& feature = entry->feature;
  if (feature.n == 0) return OkStatus();
  const uint64_t first = FirstPlace(*entry);
  entered->keys =
      IsNarrow(feature.key_type)
          ? entry->Converted().WidenKeys(entry->keys(), feature.key_type, first, feature.n)
          : KeySpan(static_cast<const uint64_t*>(entry->keys()) + first, feature.n);
  if (entry->has(EMBANK_FEATURE_PADDING) &&
      std::ranges::find(entered->keys, feature.padding_key) != entered->keys.end()) {
    entry->Converted().RemovePadding(feature.padding_key, entered);
  }
  return OkStatus();
}

// The rows of a feature that a call writes or reads: their number and the bytes of their values.
struct RowShape {
  uint64_t rows;
  uint64_t row_bytes;
  uint32_t value_bytes;
};

RowShape ShapeOf(const embank_feature& feature, const LookupFeature& entered) {
  const RowLayout& layout = entered.table->layout();
  if (entered.pooling == Pooling::kNone) {
    return {feature.n, layout.vector_bytes, layout.vector_bytes / layout.dim};
  }
  return {feature.bags, uint64_t{layout.dim} * sizeof(float), sizeof(float)};
}

RowShape ShapeOf(const embank_feature& feature, const GradientFeature& entered) {
  const uint64_t rows = entered.pooling == Pooling::kNone ? feature.n : feature.bags;
  return {rows, uint64_t{entered.table->layout().dim} * sizeof(float), sizeof(float)};
}

// Enters the rows of a feature into the one of the store.
Status EnterFeatureRows(const embank_feature& feature, LookupFeature* entered) {
  const RowShape shape = ShapeOf(feature, *entered);
  EMBANK_ASSIGN_OR_RETURN(
      entered->rows, EnterRows(*entered->table, feature.rows, "rows", shape.rows, shape.row_bytes,
                               feature.row_stride));
  return OkStatus();
}

Status EnterFeatureRows(const embank_feature& feature, GradientFeature* entered) {
  const RowShape shape = ShapeOf(feature, *entered);
  const void* const gradients = feature.rows;
  EMBANK_ASSIGN_OR_RETURN(entered->gradients,
                          EnterRows(*entered->table, gradients, "rows", shape.rows, shape.row_bytes,
                                    feature.row_stride));
  return OkStatus();
}

void SetDeviceRows(const DeviceArray& rows, LookupFeature* entered) {
  entered->rows = {rows.rows, rows.stride_bytes};
  entered->is_on_device = true;
}

void SetDeviceRows(const DeviceArray& rows, GradientFeature* entered) {
  entered->gradients = {rows.rows, rows.stride_bytes};
}

// The same for a call whose rows are in device memory, and all else in host memory.
template <typename FeatureType>
Status EnterDeviceFeature(const Entry& entry, const uint8_t* outcomes, FeatureType* entered) {
  const embank_feature& feature = entry.feature;
  const Table& table = *entered->table;
  const bool is_typed = feature.key_type != EMBANK_INDEX_U64;
  EMBANK_RETURN_IF_ERROR(CheckOnHost(table, entry.keys(), is_typed ? "typed_keys" : "keys"));
  EMBANK_RETURN_IF_ERROR(CheckOnHost(table, entry.offsets(), OffsetsField(feature)));
  EMBANK_RETURN_IF_ERROR(CheckOnHost(table, feature.weights, "weights"));
  EMBANK_RETURN_IF_ERROR(CheckOnHost(table, outcomes, "outcomes"));
  entered->pooling = static_cast<Pooling>(feature.pooling);
  const RowShape shape = ShapeOf(feature, *entered);
  EMBANK_ASSIGN_OR_RETURN(const DeviceArray rows,
                          EnterDeviceRows(table, feature.rows, "rows", shape.rows, shape.row_bytes,
                                          feature.row_stride, shape.value_bytes));
  SetDeviceRows(rows, entered);
  return OkStatus();
}

Status CheckTotals(embank_table* first, embank_table* table, uint64_t keys) {
  if (TableOfHandle(table)->store().index != TableOfHandle(first)->store().index) {
    return InvalidArgumentError("table is of another store than that of features[0]");
  }
  if (keys <= kBatchKeysMax) return OkStatus();
  return InvalidArgumentError(StrCat("n makes ", keys,
                                     " keys of all features up to here; a call has ", "at most ",
                                     kBatchKeysMax));
}

// Calls enter(feature, key) for each feature, with the number of keys before it. The structs in the
// caller's array have the caller's size, which is one for all of them.
template <typename Enter>
Status ForEachFeature(const embank_feature* features, uint64_t count, Enter enter) {
  if (count > 0) EMBANK_RETURN_IF_ERROR(CheckNotNull(features, "features"));
  const auto* next = reinterpret_cast<const std::byte*>(features);
  embank_table* first = nullptr;
  uint64_t keys = 0;
  for (uint64_t i = 0; i < count; ++i) {
    const auto* const feature = reinterpret_cast<const embank_feature*>(next);
    EMBANK_RETURN_IF_ERROR(
        InFeature(i, CheckSizeInArray(feature->struct_size, features->struct_size, "features")));
    const StatusOr<embank_feature> read = ReadFeature(feature);
    EMBANK_RETURN_IF_ERROR(InFeature(i, read.status()));
    EMBANK_RETURN_IF_ERROR(InFeature(i, enter(*read, keys)));
    if (i == 0) first = read->table;
    keys += read->n;
    EMBANK_RETURN_IF_ERROR(InFeature(i, CheckTotals(first, read->table, keys)));
    next += read->struct_size;
  }
  return OkStatus();
}

// Checks the divisors of a mean with weights, of which padding has none.
Status CheckSumsOfWeights(const Feature& entered) {
  if (entered.weights == nullptr || entered.pooling != Pooling::kMean) return OkStatus();
  for (uint64_t bag = 0; bag < entered.bags(); ++bag) {
    if (std::isfinite(SumOfWeights(entered, bag))) continue;
    return InvalidArgumentError(StrCat("weights of bag ", bag, " have an infinite sum, by which ",
                                       "EMBANK_POOL_MEAN divides"));
  }
  return OkStatus();
}

template <typename FeatureType>
Status EnterFeature(Entry* entry, RowsIn rows_in, uint8_t* outcomes, FeatureType* entered) {
  EMBANK_RETURN_IF_ERROR(EnterTable(*entry, entered));
  if (rows_in == RowsIn::kDevice) {
    EMBANK_RETURN_IF_ERROR(EnterDeviceFeature(*entry, outcomes, entered));
  }
  EMBANK_RETURN_IF_ERROR(EnterBags(entry, entered));
  if (rows_in == RowsIn::kHost) EMBANK_RETURN_IF_ERROR(EnterFeatureRows(entry->feature, entered));
  if (outcomes != nullptr) entered->outcomes = EnterOutcomes(outcomes, entry->feature.n);
  EMBANK_RETURN_IF_ERROR(EnterKeyArray(entry, entered));
  return CheckSumsOfWeights(*entered);
}

// Keys alone.
Status EnterFeature(Entry* entry, RowsIn, uint8_t*, Feature* entered) {
  EMBANK_RETURN_IF_ERROR(EnterTable(*entry, entered));
  if (entry->has(EMBANK_FEATURE_ABSOLUTE)) {
    EMBANK_RETURN_IF_ERROR(CheckNotNull(entry->offsets(), OffsetsField(entry->feature)));
    EMBANK_RETURN_IF_ERROR(CheckFirstPlace(*entry));
  }
  return EnterKeyArray(entry, entered);
}

template <typename FeatureType>
StatusOr<EnteredFeatures<FeatureType>> EnterFeatures(const embank_feature* features, uint64_t count,
                                                     RowsIn rows_in, uint8_t* outcomes) {
  // Most calls have fewer.
  constexpr uint64_t kReserved = 64;
  EnteredFeatures<FeatureType> all;
  all.features.reserve(std::min(count, kReserved));
  const auto enter = [&](const embank_feature& feature, uint64_t first_key) {
    Entry entry{feature};
    EMBANK_RETURN_IF_ERROR(EnterFeature(&entry, rows_in,
                                        outcomes == nullptr ? nullptr : outcomes + first_key,
                                        &all.features.emplace_back()));
    if (entry.converted != nullptr) all.converted.push_back(std::move(entry.converted));
    return OkStatus();
  };
  EMBANK_RETURN_IF_ERROR(ForEachFeature(features, count, enter));
  return all;
}

}  // namespace

StatusOr<EnteredFeatures<LookupFeature>> EnterLookups(const embank_feature* features,
                                                      uint64_t count, RowsIn rows_in,
                                                      uint8_t* outcomes) {
  return EnterFeatures<LookupFeature>(features, count, rows_in, outcomes);
}

StatusOr<EnteredFeatures<GradientFeature>> EnterGradients(const embank_feature* features,
                                                          uint64_t count, RowsIn rows_in,
                                                          uint8_t* outcomes) {
  return EnterFeatures<GradientFeature>(features, count, rows_in, outcomes);
}

StatusOr<EnteredFeatures<Feature>> EnterKeyFeatures(const embank_feature* features,
                                                    uint64_t count) {
  return EnterFeatures<Feature>(features, count, RowsIn::kHost, nullptr);
}

}  // namespace embank
