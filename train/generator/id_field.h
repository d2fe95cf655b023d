// The ids of one feature of a generated click log: a function of seed, field and sample.
#ifndef EMBANK_TRAIN_GENERATOR_ID_FIELD_H_
#define EMBANK_TRAIN_GENERATOR_ID_FIELD_H_

#include <cstdint>
#include <span>

#include "base/random.h"
#include "base/status_or.h"
#include "train/generator/click_schema.h"
#include "train/generator/permutation.h"
#include "train/generator/zipf.h"

namespace embank {

// How an id follows from the rank of its popularity. All ids are below 2^32.
enum class IdOrder {
  kHashed,        // all of 32 bits, scattered, as in Criteo's logs
  kPermuted,      // 0 up to the cardinality, scattered
  kByPopularity,  // 0 is the most popular id
};

// Ids of popular ranks change places with others, so that popularity drifts.
struct Drift {
  uint64_t interval = 0;  // samples; 0: there is no drift
  double share = 0.5;     // of the ranks in the top fifth that change places in each interval
};

struct IdFieldOptions {
  uint64_t seed = 1;
  IdOrder order = IdOrder::kHashed;
  // The share of ids whose rank follows the popularity of the sample instead of chance alone.
  double correlation = 0.0;
  Drift drift = {};
};

// Thread-safe.
class IdField {
 public:
  // INVALID_ARGUMENT: the cardinality is not in 1 .. 2^32 - 1, or the exponent not in Zipf's range.
  static StatusOr<IdField> Create(const IdFieldSchema& schema, const IdFieldOptions& options);

  bool has_bags() const { return bag_max_ > 1; }

  // Returns the id of a sample, or kMissingId. `popularity` in (0, 1) is the sample's: ids of
  // correlated fields are popular in the same samples.
  uint64_t Id(uint64_t sample, double popularity) const;

  // Returns the size of a sample's bag: 0, or 1 plus a geometric number with the mean 19, and at
  // most bag_max.
  uint32_t BagSize(uint64_t sample) const;
  // Fills a bag of that size. An id repeats one of the 20 before it as often as it is drawn.
  void FillBag(uint64_t sample, double popularity, std::span<uint64_t> bag) const;

  // Returns the id of the rank that has the popularity `rank`, which begins at 0, for a sample.
  uint64_t IdOfRank(uint64_t sample, uint64_t rank) const;

 private:
  IdField(const IdFieldSchema& schema, const IdFieldOptions& options, const ZipfSampler& zipf);
  uint64_t DriftedRank(uint64_t interval, uint64_t rank) const;
  bool ChangesPlaces(uint64_t interval, uint64_t rank) const;
  uint64_t Draw(uint64_t sample, double popularity, CounterRandom random) const;

  uint64_t cardinality_;
  uint64_t top_;  // ranks of the top fifth
  uint32_t bag_max_;
  double missing_share_;
  IdOrder order_;
  double correlation_;
  Drift drift_;
  CounterRandom samples_;
  CounterRandom drifts_;
  ZipfSampler zipf_;
  Permutation permutation_;
};

}  // namespace embank

#endif  // EMBANK_TRAIN_GENERATOR_ID_FIELD_H_
