// An error of the system about a file, as a status.
#ifndef EMBANK_TRAIN_BYTES_ERRNO_STATUS_H_
#define EMBANK_TRAIN_BYTES_ERRNO_STATUS_H_

#include <cerrno>
#include <string>
#include <string_view>
#include <system_error>

#include "base/status.h"
#include "base/str_cat.h"

namespace embank {

// A status for errno after a failed call; `what` failed.
inline Status ErrnoStatus(int error, std::string_view what) {
  const std::string message =
      StrCat(std::string(what), ": ", std::generic_category().message(error));
  switch (error) {
    case ENOENT:
      return NotFoundError(message);
    case EACCES:
    case EPERM:
      return PermissionDeniedError(message);
    case ENOSPC:
      return ResourceExhaustedError(message);
    default:
      return UnknownError(message);
  }
}

}  // namespace embank

#endif  // EMBANK_TRAIN_BYTES_ERRNO_STATUS_H_
