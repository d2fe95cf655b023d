#include "train/samples/click_batch.h"

#include <algorithm>
#include <span>
#include <string_view>

#include "base/check.h"
#include "base/crc32c.h"
#include "base/status_macros.h"
#include "base/str_cat.h"

namespace embank {
namespace {

Status CheckCount(std::string_view what, uint64_t count, uint64_t expected) {
  if (count == expected) return OkStatus();
  return InvalidArgumentError(
      StrCat("the batch has ", count, " ", what, "; there must be ", expected));
}

Status CheckFeature(const FeatureIds& feature, uint32_t samples, const std::string& name) {
  const std::string of = StrCat(" of id feature \"", name, "\"");
  if (feature.offsets.empty()) {
    if (!feature.weights.empty()) {
      return InvalidArgumentError(StrCat("there are weights without offsets", of));
    }
    return CheckCount(StrCat("ids", of), feature.ids.size(), samples);
  }
  if (!feature.weights.empty()) {
    EMBANK_RETURN_IF_ERROR(
        CheckCount(StrCat("weights", of), feature.weights.size(), feature.ids.size()));
  }
  EMBANK_RETURN_IF_ERROR(
      CheckCount(StrCat("offsets", of), feature.offsets.size(), uint64_t{samples} + 1));
  const bool is_whole =
      feature.offsets.front() == 0 && feature.offsets.back() == feature.ids.size();
  if (is_whole && std::ranges::is_sorted(feature.offsets)) return OkStatus();
  return InvalidArgumentError(StrCat("the offsets", of, " must not fall from 0 to ",
                                     feature.ids.size(), ", the number of its ids"));
}

}  // namespace

void AppendRow(const ClickRow& row, ClickBatch* batch) {
  ++batch->samples;
  if (row.label) batch->labels.push_back(*row.label);
  batch->dense.insert(batch->dense.end(), row.dense.begin(), row.dense.end());
  auto bag = row.bags.begin();
  for (size_t i = 0; i < row.ids.size(); ++i) {
    FeatureIds& feature = batch->features[i];
    if (bag == row.bags.end() || bag->feature != i) {
      feature.ids.push_back(row.ids[i]);
      continue;
    }
    if (feature.offsets.empty()) feature.offsets.push_back(0);
    feature.ids.insert(feature.ids.end(), bag->ids.begin(), bag->ids.end());
    feature.weights.insert(feature.weights.end(), bag->weights.begin(), bag->weights.end());
    EMBANK_CHECK(feature.ids.size() <= UINT32_MAX);
    feature.offsets.push_back(static_cast<uint32_t>(feature.ids.size()));
    ++bag;
  }
}

void AppendSample(const ClickBatch& from, uint32_t sample, ClickBatch* batch) {
  EMBANK_CHECK(sample < from.samples && batch->features.size() == from.features.size());
  EMBANK_CHECK(from.labels.empty() || from.labels.size() == from.samples);
  const size_t dense = from.dense.size() / from.samples;
  ++batch->samples;
  if (!from.labels.empty()) batch->labels.push_back(from.labels[sample]);
  const auto numbers = from.dense.begin() + static_cast<ptrdiff_t>(sample * dense);
  batch->dense.insert(batch->dense.end(), numbers, numbers + static_cast<ptrdiff_t>(dense));
  for (size_t i = 0; i < from.features.size(); ++i) {
    const FeatureIds& source = from.features[i];
    FeatureIds& feature = batch->features[i];
    if (source.offsets.empty()) {
      feature.ids.push_back(source.ids[sample]);
      continue;
    }
    if (feature.offsets.empty()) feature.offsets.push_back(0);
    const uint32_t begin = source.offsets[sample];
    const uint32_t end = source.offsets[sample + 1];
    feature.ids.insert(feature.ids.end(), source.ids.begin() + begin, source.ids.begin() + end);
    if (!source.weights.empty()) {
      feature.weights.insert(feature.weights.end(), source.weights.begin() + begin,
                             source.weights.begin() + end);
    }
    EMBANK_CHECK(feature.ids.size() <= UINT32_MAX);
    feature.offsets.push_back(static_cast<uint32_t>(feature.ids.size()));
  }
}

uint32_t Crc32cOf(const ClickBatch& batch) {
  uint32_t crc = 0;
  const auto extend = [&](const auto& values) {
    crc = ExtendCrc32c(crc, std::as_bytes(std::span(values)));
  };
  extend(batch.labels);
  extend(batch.dense);
  for (const FeatureIds& feature : batch.features) {
    extend(feature.ids);
    extend(feature.offsets);
    extend(feature.weights);
  }
  return crc;
}

Status CheckBatch(const ClickBatch& batch, const ClickColumns& columns) {
  if (!batch.labels.empty()) {
    EMBANK_RETURN_IF_ERROR(CheckCount("labels", batch.labels.size(), batch.samples));
  }
  EMBANK_RETURN_IF_ERROR(CheckCount("dense numbers", batch.dense.size(),
                                    uint64_t{batch.samples} * columns.dense.size()));
  EMBANK_RETURN_IF_ERROR(CheckCount("id features", batch.features.size(), columns.ids.size()));
  for (size_t i = 0; i < batch.features.size(); ++i) {
    EMBANK_RETURN_IF_ERROR(CheckFeature(batch.features[i], batch.samples, columns.ids[i]));
  }
  return OkStatus();
}

}  // namespace embank
