// Checks the features of packed calls, and turns them into those of the store.
#ifndef EMBANK_BINDINGS_C_FEATURES_IN_H_
#define EMBANK_BINDINGS_C_FEATURES_IN_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "base/status_or.h"
#include "bindings/c/converted_feature.h"
#include "bindings/c/embank.h"
#include "store/packed/feature.h"

namespace embank {

// The features of one call, and what some of them borrow beside the caller's arrays.
template <typename FeatureType>
struct EnteredFeatures {
  std::vector<FeatureType> features;
  std::vector<std::unique_ptr<ConvertedFeature>> converted;

  // Gives the caller the outcomes of converted features, once the store has returned `status`.
  Status Finish(const Status& status) const {
    for (const auto& each : converted) each->GiveOutcomes(status.ok());
    return status;
  }
};

// Where the rows of a call's features are.
enum class RowsIn { kHost, kDevice };

// Each returns kInvalidArgument with a message that begins with "features[i]" and the field, and
// throws std::bad_alloc. kFailedPrecondition: the store has no device.
StatusOr<EnteredFeatures<LookupFeature>> EnterLookups(const embank_feature* features,
                                                      uint64_t count, RowsIn rows_in,
                                                      uint8_t* outcomes);
StatusOr<EnteredFeatures<GradientFeature>> EnterGradients(const embank_feature* features,
                                                          uint64_t count, RowsIn rows_in,
                                                          uint8_t* outcomes);
// Tables and keys alone.
StatusOr<EnteredFeatures<Feature>> EnterKeyFeatures(const embank_feature* features, uint64_t count);

}  // namespace embank

#endif  // EMBANK_BINDINGS_C_FEATURES_IN_H_
