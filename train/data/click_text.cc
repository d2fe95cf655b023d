#include "train/data/click_text.h"

#include "base/str_cat.h"

namespace embank {

std::string TextOf(const ClickBatch& batch) {
  std::string text;
  const size_t dense = batch.dense.size() / batch.samples;
  for (uint32_t i = 0; i < batch.samples; ++i) {
    StrAppend(&text, batch.labels[i]);
    for (size_t d = 0; d < dense; ++d) StrAppend(&text, "\t", batch.dense[i * dense + d]);
    for (const FeatureIds& feature : batch.features) {
      const uint32_t begin = feature.offsets.empty() ? i : feature.offsets[i];
      const uint32_t end = feature.offsets.empty() ? i + 1 : feature.offsets[i + 1];
      text += '\t';
      for (uint32_t k = begin; k < end; ++k) {
        StrAppend(&text, k == begin ? "" : ",", feature.ids[k]);
      }
    }
    text += '\n';
  }
  return text;
}

}  // namespace embank
