// Checks the features of packed calls, and turns them into those of the store.
#ifndef EMBANK_BINDINGS_C_FEATURES_IN_H_
#define EMBANK_BINDINGS_C_FEATURES_IN_H_

#include <cstdint>
#include <vector>

#include "base/status_or.h"
#include "bindings/c/embank.h"
#include "store/packed/feature.h"

namespace embank {

// Each returns kInvalidArgument with a message that begins with "features[i]" and the field, and
// throws std::bad_alloc.
StatusOr<std::vector<LookupFeature>> EnterLookups(const embank_feature* features, uint64_t count,
                                                  uint8_t* outcomes);
StatusOr<std::vector<GradientFeature>> EnterGradients(const embank_feature* features,
                                                      uint64_t count, uint8_t* outcomes);
// Tables and keys alone.
StatusOr<std::vector<Feature>> EnterKeyFeatures(const embank_feature* features, uint64_t count);

}  // namespace embank

#endif  // EMBANK_BINDINGS_C_FEATURES_IN_H_
