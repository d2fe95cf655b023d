// The features of a generated click log.
//
//   criteo-kaggle  13 dense features, 26 id features of dim 16, cardinalities of the Kaggle set
//   avazu          1 dense feature, 21 id features of dim 16, cardinalities of the Avazu set
//   product-1      10 dense features, 204 id features, dims 8 to 32
//   product-2      334 id features and 30 with bags of up to 50 ids, dims 8 to 200
//   product-3      84 id features and 10 with bags of up to 50 ids, dims 12 to 128
//
// For the last three the papers tell the numbers of features and the dims alone. Their
// cardinalities are drawn from 10 to 10 million, as many below as above 10,000.
#ifndef EMBANK_TRAIN_GENERATOR_CLICK_SCHEMA_H_
#define EMBANK_TRAIN_GENERATOR_CLICK_SCHEMA_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status_or.h"

namespace embank {

struct IdFieldSchema {
  std::string name;
  uint64_t cardinality = 0;
  uint32_t dim = 16;
  double exponent = 0.79;      // Zipf's, of the ids' popularity
  uint32_t bag_max = 1;        // 1: one id for each sample; more: bags
  double missing_share = 0.0;  // samples with an empty field or bag
};

struct ClickSchema {
  std::string name;
  uint32_t dense = 0;         // dense features
  double click_share = 0.25;  // samples with the label 1
  std::vector<IdFieldSchema> fields;
};

// No cardinality becomes smaller by division.
inline constexpr uint64_t kCardinalityMin = 3;

// How a schema differs from the one that its name stands for.
struct SchemaScale {
  uint32_t divisor = 1;        // divides cardinalities
  uint32_t field_divisor = 1;  // of n id features the first n / field_divisor remain, at least one
                               // if there are any; of those with bags, too
  uint32_t copies = 1;         // of each remaining id feature, under names of their own
};

// Makes the schema of a name above.
// NOT_FOUND: no schema has the name; the message lists them.
// INVALID_ARGUMENT: a number is 0.
StatusOr<ClickSchema> MakeClickSchema(std::string_view name, const SchemaScale& scale = {});

}  // namespace embank

#endif  // EMBANK_TRAIN_GENERATOR_CLICK_SCHEMA_H_
