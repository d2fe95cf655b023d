// Statuses that are made where an exception would undo what is done, or end the process.
#ifndef EMBANK_BASE_NO_THROW_STATUS_H_
#define EMBANK_BASE_NO_THROW_STATUS_H_

#include <new>

#include "base/status.h"

namespace embank {

// A status with what message() says, or without it where there is no memory for one.
template <typename Message>
Status NoThrowStatus(StatusCode code, Message message) {
  try {
    return Status(code, message());
  } catch (const std::bad_alloc&) {
    return Status(code, "");
  }
}

}  // namespace embank

#endif  // EMBANK_BASE_NO_THROW_STATUS_H_
