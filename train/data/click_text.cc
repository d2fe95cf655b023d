#include "train/data/click_text.h"

#include <string_view>

#include "base/check.h"
#include "base/exact_text.h"
#include "base/str_cat.h"

namespace embank {
namespace {

constexpr char kWeightSign = ':';

}  // namespace

std::string TextOf(const ClickBatch& batch) {
  EMBANK_CHECK(batch.labels.size() == batch.samples);
  std::string text;
  const size_t dense = batch.dense.size() / batch.samples;
  for (uint32_t i = 0; i < batch.samples; ++i) {
    StrAppend(&text, batch.labels[i]);
    for (size_t d = 0; d < dense; ++d) {
      // As a double, as which the number is read.
      StrAppend(&text, "\t", ExactText(double{batch.dense[i * dense + d]}));
    }
    for (const FeatureIds& feature : batch.features) {
      if (feature.offsets.empty() && feature.ids[i] == kMissingId) {
        text += '\t';
        continue;
      }
      const uint32_t begin = feature.offsets.empty() ? i : feature.offsets[i];
      const uint32_t end = feature.offsets.empty() ? i + 1 : feature.offsets[i + 1];
      text += '\t';
      for (uint32_t k = begin; k < end; ++k) {
        if (k > begin) text += kBagSeparator;
        StrAppend(&text, feature.ids[k]);
        if (feature.weights.empty()) continue;
        StrAppend(&text, std::string_view(&kWeightSign, 1), ExactText(double{feature.weights[k]}));
      }
    }
    text += '\n';
  }
  return text;
}

ColumnFile ColumnsOf(const ClickBatch& batch) {
  uint32_t column = 1;
  ColumnFile columns;
  columns.separator = '\t';
  columns.has_header = false;
  columns.label = StrCat(column);
  const size_t dense = batch.dense.size() / batch.samples;
  for (size_t i = 0; i < dense; ++i) columns.dense.push_back({StrCat(++column), false});
  for (const FeatureIds& feature : batch.features) {
    IdColumn& id = columns.ids.emplace_back(
        IdColumn{.name = StrCat(++column), .is_bag = !feature.offsets.empty()});
    if (!feature.weights.empty()) id.weights = kWeightSign;
  }
  return columns;
}

}  // namespace embank
