// A generated click log: every value is a function of the seed and of the sample's number. So any
// part of it can be made anywhere, by any number of threads, and is the same on every machine.
#ifndef EMBANK_TRAIN_GENERATOR_CLICK_GENERATOR_H_
#define EMBANK_TRAIN_GENERATOR_CLICK_GENERATOR_H_

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/status_or.h"
#include "base/threads/executor.h"
#include "train/generator/click_schema.h"
#include "train/generator/id_field.h"
#include "train/generator/planted_model.h"
#include "train/samples/click_source.h"

namespace embank {

struct ClickGeneratorOptions {
  IdFieldOptions ids = {};  // the seed is that of all values
  uint64_t samples = ~uint64_t{0};
  double auc = 0.80;  // the best AUC
};

// Generate, Integer and BestAuc are thread-safe; the rest is for one thread at a time. A position
// is a number of samples.
class ClickGenerator final : public ClickSource {
 public:
  // An empty dense feature in a file; it is 0 in a batch.
  static constexpr int64_t kMissingInteger = INT64_MIN;

  // Makes a generator. `executor` outlives it; nullptr: Next uses the calling thread alone.
  // INVALID_ARGUMENT: a share is not between 0 and 1, the AUC not in 0.5 .. 0.99, or a field's
  // numbers are out of range.
  static StatusOr<std::unique_ptr<ClickGenerator>> Create(const ClickSchema& schema,
                                                          const ClickGeneratorOptions& options,
                                                          Executor* executor);

  const ClickColumns& columns() const override { return columns_; }
  StatusOr<uint32_t> Next(uint32_t samples_max, ClickBatch* batch) override;
  DataPosition position() const override { return position_; }
  Status SkipTo(DataPosition position) override;
  double FractionRead() const override;

  const ClickSchema& schema() const { return schema_; }

  // Replaces the contents of `batch` by the samples from `first` on. `executor` may be nullptr.
  void Generate(uint64_t first, uint32_t samples, Executor* executor, ClickBatch* batch) const;

  // Returns a dense feature as it stands in a file: kMissingInteger, or a number, maybe negative.
  int64_t Integer(uint64_t sample, uint32_t feature) const;

  // Returns the best AUC on the samples from `first` on, at least two.
  double BestAuc(uint64_t first, uint32_t samples) const;

 private:
  ClickGenerator(const ClickSchema& schema, const ClickGeneratorOptions& options,
                 std::vector<IdField> fields, Executor* executor);
  void Calibrate();
  double Popularity(uint64_t sample) const { return popularities_.UnitDouble(sample); }
  void FillField(uint64_t first, uint32_t field, ClickBatch* batch) const;
  void FillSamples(uint64_t first, uint32_t begin, uint32_t end, ClickBatch* batch) const;
  double Score(uint32_t sample, const ClickBatch& batch) const;

  const ClickSchema schema_;
  const ClickGeneratorOptions options_;
  const std::vector<IdField> fields_;
  Executor* const executor_;
  ClickColumns columns_;
  std::vector<uint32_t> planted_fields_;
  CounterRandom popularities_;
  CounterRandom integers_;
  CounterRandom labels_;
  PlantedModel model_;
  uint64_t position_ = 0;
};

}  // namespace embank

#endif  // EMBANK_TRAIN_GENERATOR_CLICK_GENERATOR_H_
