// Statuses that are made where an exception would undo what is done, or end the process.
#ifndef EMBANK_BASE_STATUS_WITH_ROOM_H_
#define EMBANK_BASE_STATUS_WITH_ROOM_H_

#include <new>

#include "base/status.h"

namespace embank {

// A status with what message() says, or without it where there is no memory for one.
template <typename Message>
Status StatusWithRoom(StatusCode code, Message message) {
  try {
    return Status(code, message());
  } catch (const std::bad_alloc&) {
    return Status(code, "");
  }
}

}  // namespace embank

#endif  // EMBANK_BASE_STATUS_WITH_ROOM_H_
