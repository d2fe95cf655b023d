#include "train/samples/click_batch.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
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

template <typename Number>
void AppendPart(const std::vector<Number>& from, size_t begin, size_t end,
                std::vector<Number>* numbers) {
  numbers->insert(numbers->end(), from.begin() + static_cast<ptrdiff_t>(begin),
                  from.begin() + static_cast<ptrdiff_t>(end));
}

}  // namespace

void FeatureIds::AppendIdsOf(std::span<const uint32_t> samples,
                             std::vector<uint64_t>* appended) const {
  if (offsets.empty()) {
    std::ranges::transform(samples, std::back_inserter(*appended),
                           [&](uint32_t sample) { return ids[sample]; });
    return;
  }
  for (const uint32_t sample : samples) {
    AppendPart(ids, offsets[sample], offsets[sample + 1], appended);
  }
}

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

void AppendSamples(const ClickBatch& from, uint32_t begin, uint32_t end, ClickBatch* batch) {
  EMBANK_CHECK(begin <= end && end <= from.samples);
  EMBANK_CHECK(batch->features.size() == from.features.size());
  EMBANK_CHECK(from.labels.empty() || from.labels.size() == from.samples);
  if (begin == end) return;
  batch->samples += end - begin;
  if (!from.labels.empty()) AppendPart(from.labels, begin, end, &batch->labels);
  const size_t dense = from.dense.size() / from.samples;
  AppendPart(from.dense, begin * dense, end * dense, &batch->dense);
  for (size_t i = 0; i < from.features.size(); ++i) {
    const FeatureIds& source = from.features[i];
    FeatureIds& feature = batch->features[i];
    if (source.offsets.empty()) {
      AppendPart(source.ids, begin, end, &feature.ids);
      continue;
    }
    if (feature.offsets.empty()) feature.offsets.push_back(0);
    const uint32_t first = source.offsets[begin];
    const size_t before = feature.ids.size();
    AppendPart(source.ids, first, source.offsets[end], &feature.ids);
    if (!source.weights.empty()) {
      AppendPart(source.weights, first, source.offsets[end], &feature.weights);
    }
    EMBANK_CHECK(feature.ids.size() <= UINT32_MAX);
    for (uint32_t sample = begin; sample < end; ++sample) {
      const uint32_t ids = source.offsets[sample + 1] - first;
      feature.offsets.push_back(static_cast<uint32_t>(before) + ids);
    }
  }
}

void AppendSample(const ClickBatch& from, uint32_t sample, ClickBatch* batch) {
  AppendSamples(from, sample, sample + 1, batch);
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
