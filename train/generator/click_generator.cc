#include "train/generator/click_generator.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/hash.h"
#include "base/numeric.h"
#include "base/status_macros.h"
#include "base/str_cat.h"
#include "train/data/log_value.h"

namespace embank {
namespace {

// The share of clicks and the AUC of so many samples are within 0.01 of those of all.
constexpr uint32_t kPilotSamples = 8192;
// Samples that a thread does at a time.
constexpr uint32_t kPartSamples = 256;

constexpr double kMissingIntegerShare = 0.1;
// Integers are e^(mean + deviation * normal), rounded down: counts with a long tail.
constexpr double kIntegerLogDeviation = 1.5;
constexpr double kIntegerMax = 2e9;

CounterRandom Stream(uint64_t seed, const char* name) {
  return CounterRandom(Mix(Mix(seed + kGoldenRatio) ^ TableHash(name)));
}

// Runs body(0) .. body(tasks - 1) on an executor, or here if there is none.
void ForEach(Executor* executor, uint32_t tasks, FunctionRef<void(uint32_t)> body) {
  if (executor != nullptr) return executor->ParallelFor(tasks, body);
  for (uint32_t task = 0; task < tasks; ++task) body(task);
}

bool IsShare(double x) { return x >= 0.0 && x <= 1.0; }

Status CheckOptions(const ClickSchema& schema, const ClickGeneratorOptions& options) {
  bool are_shares = IsShare(options.ids.correlation) && IsShare(options.ids.drift.share);
  for (const IdFieldSchema& field : schema.fields) are_shares &= IsShare(field.missing_share);
  if (!are_shares || !(schema.click_share > 0.0 && schema.click_share < 1.0)) {
    return InvalidArgumentError("a share is between 0 and 1");
  }
  if (!(options.auc >= 0.5 && options.auc <= 0.99)) {
    return InvalidArgumentError(StrCat("AUC ", options.auc, ": must be 0.5 to 0.99"));
  }
  return OkStatus();
}

}  // namespace

StatusOr<std::unique_ptr<ClickGenerator>> ClickGenerator::Create(
    const ClickSchema& schema, const ClickGeneratorOptions& options, Executor* executor) {
  EMBANK_RETURN_IF_ERROR(CheckOptions(schema, options));
  std::vector<IdField> fields;
  for (const IdFieldSchema& field : schema.fields) {
    EMBANK_ASSIGN_OR_RETURN(const IdField made, IdField::Create(field, options.ids));
    fields.push_back(made);
  }
  std::unique_ptr<ClickGenerator> generator(
      new ClickGenerator(schema, options, std::move(fields), executor));
  generator->Calibrate();
  return generator;
}

ClickGenerator::ClickGenerator(const ClickSchema& schema, const ClickGeneratorOptions& options,
                               std::vector<IdField> fields, Executor* executor)
    : schema_(schema),
      options_(options),
      fields_(std::move(fields)),
      executor_(executor),
      popularities_(Stream(options.ids.seed, "popularities")),
      integers_(Stream(options.ids.seed, "integers")),
      labels_(Stream(options.ids.seed, "labels")),
      model_(Stream(options.ids.seed, "planted model").Bits(0)) {
  for (uint32_t i = 1; i <= schema.dense; ++i) columns_.dense.push_back(StrCat("I", i));
  for (const IdFieldSchema& field : schema.fields) columns_.ids.push_back(field.name);
  for (uint32_t f = 0; f < fields_.size(); ++f) {
    if (!fields_[f].has_bags() && planted_fields_.size() < PlantedModel::kFieldsMax) {
      planted_fields_.push_back(f);
    }
  }
}

void ClickGenerator::Calibrate() {
  ClickBatch pilot;
  Generate(0, kPilotSamples, executor_, &pilot);
  std::vector<double> scores(kPilotSamples);
  for (uint32_t s = 0; s < kPilotSamples; ++s) scores[s] = Score(s, pilot);
  model_.Calibrate(std::move(scores), schema_.click_share, options_.auc);
}

StatusOr<uint32_t> ClickGenerator::Next(uint32_t samples_max, ClickBatch* batch) {
  const uint64_t left = options_.samples - position_;
  const auto samples = static_cast<uint32_t>(std::min<uint64_t>(samples_max, left));
  Generate(position_, samples, executor_, batch);
  position_ += samples;
  return samples;
}

Status ClickGenerator::SkipTo(DataPosition position) {
  EMBANK_CHECK(position.place >= position_);
  if (position.place > options_.samples) {
    return OutOfRangeError(StrCat("the log has ", options_.samples, " samples"));
  }
  position_ = position.place;
  return OkStatus();
}

double ClickGenerator::FractionRead() const {
  if (options_.samples == 0) return 1.0;
  return static_cast<double>(position_) / static_cast<double>(options_.samples);
}

void ClickGenerator::Generate(uint64_t first, uint32_t samples, Executor* executor,
                              ClickBatch* batch) const {
  batch->Clear(fields_.size());
  batch->samples = samples;
  batch->labels.resize(samples);
  batch->dense.resize(uint64_t{samples} * schema_.dense);
  ForEach(executor, static_cast<uint32_t>(fields_.size()),
          [&](uint32_t field) { FillField(first, field, batch); });
  const uint32_t parts = samples / kPartSamples + (samples % kPartSamples > 0 ? 1 : 0);
  ForEach(executor, parts, [&](uint32_t part) {
    const uint32_t begin = part * kPartSamples;
    FillSamples(first, begin, begin + std::min(kPartSamples, samples - begin), batch);
  });
}

void ClickGenerator::FillField(uint64_t first, uint32_t field, ClickBatch* batch) const {
  const IdField& ids = fields_[field];
  FeatureIds& feature = batch->features[field];
  if (!ids.has_bags()) {
    feature.ids.resize(batch->samples);
    for (uint32_t s = 0; s < batch->samples; ++s) {
      feature.ids[s] = ids.Id(first + s, Popularity(first + s));
    }
    return;
  }
  feature.offsets.resize(batch->samples + 1);
  for (uint32_t s = 0; s < batch->samples; ++s) {
    feature.offsets[s + 1] = feature.offsets[s] + ids.BagSize(first + s);
  }
  feature.ids.resize(feature.offsets.back());
  const std::span<uint64_t> all(feature.ids);
  for (uint32_t s = 0; s < batch->samples; ++s) {
    const uint32_t begin = feature.offsets[s];
    ids.FillBag(first + s, Popularity(first + s),
                all.subspan(begin, feature.offsets[s + 1] - begin));
  }
}

void ClickGenerator::FillSamples(uint64_t first, uint32_t begin, uint32_t end,
                                 ClickBatch* batch) const {
  for (uint32_t s = begin; s < end; ++s) {
    for (uint32_t d = 0; d < schema_.dense; ++d) {
      // The smallest integer, which stands for an empty field, becomes 0 as an empty field does.
      batch->dense[uint64_t{s} * schema_.dense + d] = LogOfCount(Integer(first + s, d));
    }
    const double probability = ClickProbability(model_.Logit(Score(s, *batch)));
    batch->labels[s] = labels_.UnitDouble(first + s) < probability ? 1.0f : 0.0f;
  }
}

int64_t ClickGenerator::Integer(uint64_t sample, uint32_t feature) const {
  const CounterRandom random(integers_.Bits(sample * schema_.dense + feature));
  if (random.UnitDouble(0) < kMissingIntegerShare) return kMissingInteger;
  // Means differ from feature to feature; the second one has negative numbers, as Criteo's has.
  const double mean = static_cast<double>(feature * 7 % 6);
  const double normal = NormalQuantile(random.UnitDouble(1));
  const double value = std::min(Exponential(mean + kIntegerLogDeviation * normal), kIntegerMax);
  return static_cast<int64_t>(value) - (feature == 1 ? 2 : 0);
}

double ClickGenerator::Score(uint32_t sample, const ClickBatch& batch) const {
  uint64_t ids[PlantedModel::kFieldsMax];
  for (size_t i = 0; i < planted_fields_.size(); ++i) {
    ids[i] = batch.features[planted_fields_[i]].ids[sample];
  }
  const std::span<const float> dense(batch.dense);
  return model_.Score({ids, planted_fields_.size()},
                      dense.subspan(uint64_t{sample} * schema_.dense, schema_.dense));
}

double ClickGenerator::BestAuc(uint64_t first, uint32_t samples) const {
  ClickBatch batch;
  Generate(first, samples, nullptr, &batch);
  std::vector<double> logits(samples);
  for (uint32_t s = 0; s < samples; ++s) logits[s] = model_.Logit(Score(s, batch));
  return ExpectedAuc(logits);
}

}  // namespace embank
