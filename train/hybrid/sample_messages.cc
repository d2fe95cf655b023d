#include "train/hybrid/sample_messages.h"

#include "base/check.h"
#include "base/str_cat.h"
#include "train/hybrid/sample_id.h"

namespace embank {
namespace {

// The arrays of an id feature in kIds.
constexpr uint32_t kArrays = 3;

struct FeatureView {
  FeatureView(const Message& ids, uint32_t column)
      : values(ids.View<uint64_t>(kArrays * column)),
        offsets(ids.View<uint32_t>(kArrays * column + 1)),
        weights(ids.View<float>(kArrays * column + 2)) {}

  std::span<const uint64_t> values;
  std::span<const uint32_t> offsets;
  std::span<const float> weights;
};

void AppendTo(const FeatureView& from, uint32_t place, FeatureIds* to) {
  if (from.offsets.empty()) {
    to->ids.push_back(from.values[place]);
    return;
  }
  if (to->offsets.empty()) to->offsets.push_back(0);
  const uint32_t begin = from.offsets[place];
  const uint32_t size = from.offsets[place + 1] - begin;
  const auto append = [&](const auto& values, auto* all) {
    if (values.empty()) return;
    const auto run = values.subspan(begin, size);
    all->insert(all->end(), run.begin(), run.end());
  };
  append(from.values, &to->ids);
  append(from.weights, &to->weights);
  to->offsets.push_back(static_cast<uint32_t>(to->ids.size()));
}

}  // namespace

Message MakeIds(MessageHeader header, const ClickBatch& batch, SampleRange range) {
  const uint32_t samples = range.end - range.begin;
  header.samples = samples;
  header.batch_samples = batch.samples;
  std::vector<uint64_t> bytes;
  std::vector<SampleRange> runs;
  for (const FeatureIds& feature : batch.features) {
    const bool is_bag = !feature.offsets.empty();
    const SampleRange run =
        is_bag ? SampleRange{feature.offsets[range.begin], feature.offsets[range.end]} : range;
    const uint64_t ids = run.end - run.begin;
    runs.push_back(run);
    bytes.insert(bytes.end(),
                 {ids * sizeof(uint64_t), is_bag ? (uint64_t{samples} + 1) * sizeof(uint32_t) : 0,
                  feature.weights.empty() ? 0 : ids * sizeof(float)});
  }
  Message message = Message::Make(header, bytes);
  for (uint32_t i = 0; i < batch.features.size(); ++i) {
    const FeatureIds& feature = batch.features[i];
    const SampleRange run = runs[i];
    const uint64_t ids = run.end - run.begin;
    message.Place(kArrays * i, std::span(feature.ids).subspan(run.begin, ids));
    const std::span<uint32_t> offsets = message.Array<uint32_t>(kArrays * i + 1);
    for (uint32_t k = 0; k < offsets.size(); ++k) {
      offsets[k] = feature.offsets[range.begin + k] - run.begin;
    }
    message.add_copied_bytes(offsets.size_bytes());
    if (feature.weights.empty()) continue;
    message.Place(kArrays * i + 2, std::span(feature.weights).subspan(run.begin, ids));
  }
  return message;
}

ClickBatch SamplesAt(const Message& ids, std::span<const uint32_t> places) {
  ClickBatch batch;
  batch.samples = static_cast<uint32_t>(places.size());
  batch.features.resize(ids.header().arrays / kArrays);
  for (uint32_t i = 0; i < batch.features.size(); ++i) {
    const FeatureView from(ids, i);
    FeatureIds& to = batch.features[i];
    // Places rise: as many as there are samples are all of them.
    if (places.size() == ids.header().samples) {
      to.ids.assign(from.values.begin(), from.values.end());
      to.offsets.assign(from.offsets.begin(), from.offsets.end());
      to.weights.assign(from.weights.begin(), from.weights.end());
      continue;
    }
    for (const uint32_t place : places) AppendTo(from, place, &to);
  }
  return batch;
}

uint64_t IdBytesOf(const ClickBatch& batch) {
  uint64_t bytes = 0;
  for (const FeatureIds& feature : batch.features) {
    bytes += std::span(feature.ids).size_bytes() + std::span(feature.offsets).size_bytes() +
             std::span(feature.weights).size_bytes();
  }
  return bytes;
}

Message MakeVectors(MessageHeader header, std::span<const PooledFeature> features) {
  std::vector<uint64_t> bytes = {header.samples * sizeof(SampleId)};
  for (const PooledFeature& feature : features) {
    bytes.push_back(uint64_t{header.samples} * feature.dim * sizeof(float));
  }
  return Message::Make(header, bytes);
}

std::vector<Matrix> VectorsOf(Message* message, std::span<const PooledFeature> features) {
  std::vector<Matrix> matrices;
  for (uint32_t i = 0; i < features.size(); ++i) {
    matrices.emplace_back(message->Array<float>(i + 1).data(), message->header().samples,
                          features[i].dim);
  }
  return matrices;
}

std::vector<ConstMatrix> GradientsOf(const Message& message,
                                     std::span<const PooledFeature> features) {
  EMBANK_CHECK(message.header().arrays == features.size() + 1);
  std::vector<ConstMatrix> matrices;
  for (uint32_t i = 0; i < features.size(); ++i) {
    matrices.emplace_back(message.View<float>(i + 1).data(), message.header().samples,
                          features[i].dim);
  }
  return matrices;
}

Status UnexpectedMessage(const MessageHeader& header) {
  return InternalError(StrCat(TextOf(header.to), " got a message of kind ",
                              static_cast<uint32_t>(header.kind), " from ", TextOf(header.from)));
}

}  // namespace embank
