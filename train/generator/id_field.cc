#include "train/generator/id_field.h"

#include <algorithm>

#include "base/hash.h"
#include "base/numeric.h"
#include "base/status.h"
#include "base/status_macros.h"
#include "base/str_cat.h"
#include "train/samples/click_batch.h"

namespace embank {
namespace {

constexpr uint64_t kIdSpace = uint64_t{1} << 32;

// Numbers of a sample's sequence that Zipf does not use: it takes fewer than 128.
constexpr uint64_t kCorrelationDraw = 1 << 20;
constexpr uint64_t kMissingDraw = kCorrelationDraw + 1;
constexpr uint64_t kBagSizeDraw = kCorrelationDraw + 2;
constexpr uint64_t kBagDraws = 2 << 20;  // three for each place of a bag

constexpr double kBagSizeMean = 20.0;
constexpr uint64_t kRepeatedPlaces = 20;

uint64_t FieldSeed(const IdFieldSchema& schema, const IdFieldOptions& options) {
  return Mix(Mix(options.seed + kGoldenRatio) ^ TableHash(schema.name));
}

}  // namespace

StatusOr<IdField> IdField::Create(const IdFieldSchema& schema, const IdFieldOptions& options) {
  if (schema.cardinality == 0 || schema.cardinality >= kIdSpace) {
    return InvalidArgumentError(StrCat("field '", schema.name, "': cardinality ",
                                       schema.cardinality, ": must be 1 to 4294967295"));
  }
  EMBANK_ASSIGN_OR_RETURN(
      const ZipfSampler zipf,
      ZipfSampler::Create(schema.cardinality, schema.exponent, FieldSeed(schema, options)));
  return IdField(schema, options, zipf);
}

IdField::IdField(const IdFieldSchema& schema, const IdFieldOptions& options,
                 const ZipfSampler& zipf)
    : cardinality_(schema.cardinality),
      top_(std::max<uint64_t>(1, schema.cardinality / 5)),
      bag_max_(schema.bag_max),
      missing_share_(schema.missing_share),
      order_(options.order),
      correlation_(options.correlation),
      drift_(options.drift),
      samples_(FieldSeed(schema, options)),
      drifts_(Mix(FieldSeed(schema, options) + 1)),
      zipf_(zipf),
      permutation_(options.order == IdOrder::kHashed ? kIdSpace : schema.cardinality,
                   FieldSeed(schema, options)) {}

uint64_t IdField::Id(uint64_t sample, double popularity) const {
  const CounterRandom random(samples_.Bits(sample));
  if (random.UnitDouble(kMissingDraw) < missing_share_) return kMissingId;
  return Draw(sample, popularity, random);
}

uint64_t IdField::Draw(uint64_t sample, double popularity, CounterRandom random) const {
  const bool is_correlated = random.UnitDouble(kCorrelationDraw) < correlation_;
  const double first = is_correlated ? popularity : random.UnitDouble(0);
  return IdOfRank(sample, zipf_.Draw(first, random) - 1);
}

uint64_t IdField::IdOfRank(uint64_t sample, uint64_t rank) const {
  EMBANK_CHECK(rank < cardinality_);
  if (drift_.interval > 0) rank = DriftedRank(sample / drift_.interval, rank);
  return order_ == IdOrder::kByPopularity ? rank : permutation_(rank);
}

// In each interval a rank of the top fifth has one partner among the others, and both change places
// or neither does: a bijection, whatever the interval.
uint64_t IdField::DriftedRank(uint64_t interval, uint64_t rank) const {
  const uint64_t others = cardinality_ - top_;
  if (interval == 0 || others == 0) return rank;
  const uint64_t shift = interval % others * top_ % others;
  if (rank < top_) {
    return ChangesPlaces(interval, rank) ? top_ + (rank + shift) % others : rank;
  }
  const uint64_t partner = (rank - top_ + others - shift) % others;
  return partner < top_ && ChangesPlaces(interval, partner) ? partner : rank;
}

bool IdField::ChangesPlaces(uint64_t interval, uint64_t rank) const {
  return CounterRandom(drifts_.Bits(interval)).UnitDouble(rank) < drift_.share;
}

uint32_t IdField::BagSize(uint64_t sample) const {
  const CounterRandom random(samples_.Bits(sample));
  if (random.UnitDouble(kMissingDraw) < missing_share_) return 0;
  // The geometric number by inversion.
  const double ratio = NaturalLog(1.0 - 1.0 / kBagSizeMean);
  const double more = NaturalLog(random.UnitDouble(kBagSizeDraw)) / ratio;
  return 1 + static_cast<uint32_t>(std::min(more, static_cast<double>(bag_max_ - 1)));
}

void IdField::FillBag(uint64_t sample, double popularity, std::span<uint64_t> bag) const {
  const CounterRandom random(samples_.Bits(sample));
  for (uint64_t i = 0; i < bag.size(); ++i) {
    const uint64_t draws = kBagDraws + 3 * i;
    if (i > 0 && random.UnitDouble(draws) < 0.5) {
      const uint64_t back = 1 + random.Bits(draws + 1) % std::min(i, kRepeatedPlaces);
      bag[i] = bag[i - back];
    } else {
      bag[i] = Draw(sample, popularity, CounterRandom(random.Bits(draws + 2)));
    }
  }
}

}  // namespace embank
