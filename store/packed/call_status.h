// The one status of a packed call, of all those of its features.
#ifndef EMBANK_STORE_PACKED_CALL_STATUS_H_
#define EMBANK_STORE_PACKED_CALL_STATUS_H_

#include <cstddef>

#include "base/status.h"

namespace embank {

// Keeps the status that comes first in this order, and of equal ones the one that is there: any
// failure of the call, kDataLoss, kResourceExhausted, kOutOfRange, kNotFound, OK.
void KeepGraver(Status* status, const Status& other);

// The status of a feature, with its number in front of the message.
Status OfFeature(size_t feature, const Status& status);

}  // namespace embank

#endif  // EMBANK_STORE_PACKED_CALL_STATUS_H_
