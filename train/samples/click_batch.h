// A batch of samples of a click log, by features: the memory of a feature is contiguous, as lookups
// want it.
#ifndef EMBANK_TRAIN_SAMPLES_CLICK_BATCH_H_
#define EMBANK_TRAIN_SAMPLES_CLICK_BATCH_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "train/samples/data_name.h"

namespace embank {

// The id of an empty id field: a value of its own, as in DLRM. No id of 32 bits is equal to it.
inline constexpr uint64_t kMissingId = ~uint64_t{0};

// The names of the features, in the order of their columns.
struct ClickColumns {
  std::vector<std::string> dense;
  std::vector<std::string> ids;
  // The table of rows of each id feature, by a name that several features may have. Empty: each has
  // its own, of its name.
  std::vector<std::string> tables = {};
  DataName data = {};
  // The lines that say how those of the data are read (train/model_text.h). Empty: data that are no
  // log.
  std::string format = {};

  // Returns the name of the table of each id feature.
  const std::vector<std::string>& table_names() const { return tables.empty() ? ids : tables; }
};

// The ids of one id feature.
struct FeatureIds {
  std::vector<uint64_t> ids;
  // Sample i has ids[offsets[i]] up to ids[offsets[i + 1]], which is not included. Empty: each
  // sample has one id.
  std::vector<uint32_t> offsets;
  // The factor of each id in the sum of its bag. Empty: all are 1.
  std::vector<float> weights;

  // Returns the ids of a sample.
  std::span<const uint64_t> OfSample(uint32_t sample) const {
    if (offsets.empty()) return std::span(ids).subspan(sample, 1);
    return std::span(ids).subspan(offsets[sample], offsets[sample + 1] - offsets[sample]);
  }
  // Appends the ids of some samples, in their order.
  void AppendIdsOf(std::span<const uint32_t> samples, std::vector<uint64_t>* appended) const;
};

struct ClickBatch {
  uint32_t samples = 0;
  std::vector<float> labels;  // 0 or 1; empty: the samples have none
  std::vector<float> dense;   // sample after sample
  std::vector<FeatureIds> features;
  // Where batches are all hot or all cold (train/fae/hot_cold_samples.h): all ids are those of hot
  // rows.
  bool is_hot = false;
  bool ends_phase = false;  // the next batch depends on the loss after this one

  // Removes all samples, keeps the memory, and leaves `id_features` features.
  void Clear(size_t id_features) {
    samples = 0;
    is_hot = ends_phase = false;
    labels.clear();
    dense.clear();
    features.resize(id_features);
    for (FeatureIds& feature : features) {
      feature.ids.clear();
      feature.offsets.clear();
      feature.weights.clear();
    }
  }
};

// Checks that the parts of a batch go together: labels, if there are any, dense features and id
// features are those of its samples, of the columns; offsets begin at 0, do not fall, and end at
// the number of ids; there is a weight for each id of a bag, or for none. INVALID_ARGUMENT names
// the part.
Status CheckBatch(const ClickBatch& batch, const ClickColumns& columns);

// A checksum of all values of a batch.
uint32_t Crc32cOf(const ClickBatch& batch);

// The ids of a feature that has any number of them.
struct RowBag {
  uint32_t feature = 0;
  std::vector<uint64_t> ids = {};
  std::vector<float> weights = {};  // of each id; empty: all are 1
};

// One sample.
struct ClickRow {
  std::optional<float> label = 0.0f;  // nothing: it has none
  std::vector<float> dense = {};
  std::vector<uint64_t> ids = {};  // of each id feature; that of a feature with a bag is not read
  std::vector<RowBag> bags = {};   // ascending by feature
};

// Adds a sample to a batch that has a feature for each of its ids. All samples of a batch have bags
// for the same features, all or none of them with weights, and all or none of them have labels.
void AppendRow(const ClickRow& row, ClickBatch* batch);
// Adds the samples from `begin` up to `end`, which is not included, of another batch with the same
// features.
void AppendSamples(const ClickBatch& from, uint32_t begin, uint32_t end, ClickBatch* batch);
// Adds one of them.
void AppendSample(const ClickBatch& from, uint32_t sample, ClickBatch* batch);

}  // namespace embank

#endif  // EMBANK_TRAIN_SAMPLES_CLICK_BATCH_H_
