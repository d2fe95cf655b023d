// Samples that know their number, for roles.
#ifndef EMBANK_TESTS_TRAIN_ROLE_SCENE_H_
#define EMBANK_TESTS_TRAIN_ROLE_SCENE_H_

#include <cstdint>

#include "base/hash.h"
#include "train/samples/click_source.h"

namespace embank::test {

// Sample k has dense feature k, id k, a bag of k % 4 ids with weights, and one of (k + 1) % 3 ids;
// both bags may be empty, and have rows of one table.
class NumberedSamples final : public ClickSource {
 public:
  // Ids are below `ids`, and dense features are divided by it.
  explicit NumberedSamples(uint64_t samples, uint64_t ids = 1) : samples_(samples), ids_(ids) {
    columns_.dense = {"number"};
    columns_.ids = {"id", "weighted", "bag"};
    columns_.tables = {"id", "shared", "shared"};
  }

  const ClickColumns& columns() const override { return columns_; }
  StatusOr<uint32_t> Next(uint32_t samples_max, ClickBatch* batch) override {
    batch->Clear(columns_.ids.size());
    for (; batch->samples < samples_max && next_ < samples_; ++next_) {
      AppendRow(RowOf(next_), batch);
    }
    return batch->samples;
  }
  DataPosition position() const override { return next_; }
  Status SkipTo(DataPosition position) override {
    next_ = position.place;
    return OkStatus();
  }
  double FractionRead() const override { return 0.0; }

  static float LabelOf(uint64_t k) { return static_cast<float>(Mix(k) & 1); }

 private:
  ClickRow RowOf(uint64_t k) const {
    const auto id = [&](uint64_t i) { return ids_ == 1 ? k + i : Mix(k + i) % ids_; };
    ClickRow row;
    row.label = LabelOf(k);
    row.dense = {static_cast<float>(k) / static_cast<float>(ids_)};
    row.ids = {id(0), 0, 0};
    row.bags = {{.feature = 1}, {.feature = 2}};
    for (uint64_t i = 0; i < k % 4; ++i) {
      row.bags[0].ids.push_back(id(i));
      row.bags[0].weights.push_back(0.5f + static_cast<float>(i));
    }
    for (uint64_t i = 0; i < (k + 1) % 3; ++i) row.bags[1].ids.push_back(id(7 * i));
    return row;
  }

  const uint64_t samples_;
  const uint64_t ids_;
  ClickColumns columns_;
  uint64_t next_ = 0;
};

}  // namespace embank::test

#endif  // EMBANK_TESTS_TRAIN_ROLE_SCENE_H_
