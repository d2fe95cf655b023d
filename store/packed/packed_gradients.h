// Gradients of many features at once.
#ifndef EMBANK_STORE_PACKED_PACKED_GRADIENTS_H_
#define EMBANK_STORE_PACKED_PACKED_GRADIENTS_H_

#include <span>

#include "base/status.h"
#include "store/packed/feature.h"

namespace embank {

// Makes one optimizer step for each distinct key of each table, with the sum of the gradients of
// its positions in all features of the table, in their order (store/batch/gradients.h). A position
// in a bag has the gradient of the bag, times its weight, or divided as the pooling says
// (docs/arithmetic.md). No barrier of a checkpoint comes between two tables. All tables are of one
// store. Thread-safe.
// kInvalidArgument: a gradient is not finite; nothing was done.
// kFailedPrecondition: a table was dropped, or has no optimizer; nothing was done.
// kResourceExhausted: no memory for scratch, and nothing was done; or keys are refused of a table
// without outcomes, and the rest was done.
// kNotFound, kDataLoss, kUnavailable: keys are absent of a table without outcomes, or cannot be
// read, or cannot be read now; the rest
// was done. The gravest status of all tables is returned (call_status.h).
// kUnavailable: the device of the store is lost.
Status ApplyGradientsPacked(std::span<const GradientFeature> features);

// Does the same with all gradients in memory of the store's device, of which the tables' store has
// one: fetches them, and waits. Work behind it on the stream may change them. Statuses are those of
// ApplyGradientsPacked, and: kInvalidArgument, kFailedPrecondition: the stream cannot be joined;
// nothing was done.
Status ApplyGradientsPackedFromDevice(std::span<const GradientFeature> features, void* stream);

}  // namespace embank

#endif  // EMBANK_STORE_PACKED_PACKED_GRADIENTS_H_
