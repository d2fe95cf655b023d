// Keeps the last failure of each thread.
#ifndef EMBANK_BINDINGS_C_LAST_ERROR_H_
#define EMBANK_BINDINGS_C_LAST_ERROR_H_

#include <new>
#include <string_view>

#include "base/float_mode.h"
#include "base/status.h"
#include "bindings/c/embank.h"

namespace embank {

// Keeps the message for the thread's embank_last_error and returns the code. Never throws; a
// message too long for its buffer is cut.
embank_status ReportStatus(const Status& status);
embank_status ReportFailure(embank_status code, std::string_view message);

// The message of the calling thread's last failure, "" before the first.
const char* LastError();

// Runs the body of a C function, which returns a Status. It runs in the default floating-point
// mode, and no exception leaves it.
template <typename Body>
embank_status Guard(Body body) {
  const DefaultFloatMode mode;
  try {
    return ReportStatus(body());
  } catch (const std::bad_alloc&) {
    return ReportFailure(EMBANK_RESOURCE_EXHAUSTED, "the process is out of memory");
  } catch (...) {
    return ReportFailure(EMBANK_INTERNAL, "an unexpected exception; please report it");
  }
}

}  // namespace embank

#endif  // EMBANK_BINDINGS_C_LAST_ERROR_H_
