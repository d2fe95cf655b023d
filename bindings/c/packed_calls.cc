// The calls of the C API that take many features at once.
#include "base/status_macros.h"
#include "bindings/c/arguments_in.h"
#include "bindings/c/embank.h"
#include "bindings/c/features_in.h"
#include "bindings/c/last_error.h"
#include "store/packed/packed_gradients.h"
#include "store/packed/packed_lookup.h"
#include "store/packed/packed_prefetch.h"

using embank::Guard;
using embank::RowsIn;

embank_status embank_lookup_packed(const embank_feature* features, uint64_t feature_count,
                                   int32_t missing, uint8_t* outcomes) {
  return Guard([&]() -> embank::Status {
    EMBANK_ASSIGN_OR_RETURN(const embank::MissingRule rule, embank::EnterMissing(missing));
    EMBANK_ASSIGN_OR_RETURN(const embank::EnteredFeatures<embank::LookupFeature> entered,
                            embank::EnterLookups(features, feature_count, RowsIn::kHost, outcomes));
    return entered.Finish(LookupPacked(entered.features, rule));
  });
}

embank_status embank_apply_gradients_packed(const embank_feature* features, uint64_t feature_count,
                                            uint8_t* outcomes) {
  return Guard([&]() -> embank::Status {
    EMBANK_ASSIGN_OR_RETURN(
        const embank::EnteredFeatures<embank::GradientFeature> entered,
        embank::EnterGradients(features, feature_count, RowsIn::kHost, outcomes));
    return entered.Finish(ApplyGradientsPacked(entered.features));
  });
}

embank_status embank_lookup_packed_device(const embank_feature* features, uint64_t feature_count,
                                          int32_t missing, uint8_t* outcomes, void* stream) {
  return Guard([&]() -> embank::Status {
    EMBANK_ASSIGN_OR_RETURN(const embank::MissingRule rule, embank::EnterMissing(missing));
    EMBANK_ASSIGN_OR_RETURN(
        const embank::EnteredFeatures<embank::LookupFeature> entered,
        embank::EnterLookups(features, feature_count, RowsIn::kDevice, outcomes));
    return entered.Finish(LookupPackedToDevice(entered.features, rule, stream));
  });
}

embank_status embank_apply_gradients_packed_device(const embank_feature* features,
                                                   uint64_t feature_count, uint8_t* outcomes,
                                                   void* stream) {
  return Guard([&]() -> embank::Status {
    EMBANK_ASSIGN_OR_RETURN(
        const embank::EnteredFeatures<embank::GradientFeature> entered,
        embank::EnterGradients(features, feature_count, RowsIn::kDevice, outcomes));
    return entered.Finish(ApplyGradientsPackedFromDevice(entered.features, stream));
  });
}

embank_status embank_prefetch_packed(const embank_feature* features, uint64_t feature_count) {
  return Guard([&]() -> embank::Status {
    EMBANK_ASSIGN_OR_RETURN(const embank::EnteredFeatures<embank::Feature> entered,
                            embank::EnterKeyFeatures(features, feature_count));
    return PrefetchPacked(entered.features);
  });
}
