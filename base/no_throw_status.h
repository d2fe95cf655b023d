// Statuses for code in which an exception would undo finished work, or end the process.
#ifndef EMBANK_BASE_NO_THROW_STATUS_H_
#define EMBANK_BASE_NO_THROW_STATUS_H_

#include <new>
#include <type_traits>

#include "base/status.h"

namespace embank {

// Returns a status with the text of message(), or without text if there is no memory for it.
template <typename Message>
Status NoThrowStatus(StatusCode code, Message message) {
  try {
    return Status(code, message());
  } catch (const std::bad_alloc&) {
    return Status(code, "");
  }
}

// Returns body(), a Status or a StatusOr; kResourceExhausted if it throws std::bad_alloc.
template <typename Body>
std::invoke_result_t<Body> CatchNoMemory(Body body) {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return NoThrowStatus(StatusCode::kResourceExhausted,
                         [] { return "the process is out of memory"; });
  }
}

}  // namespace embank

#endif  // EMBANK_BASE_NO_THROW_STATUS_H_
