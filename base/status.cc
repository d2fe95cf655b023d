#include "base/status.h"

#include <ostream>

namespace embank {

std::string StatusCodeToString(StatusCode code) {
  switch (code) {
    case StatusCode::kOk:
      return "OK";
    case StatusCode::kCancelled:
      return "CANCELLED";
    case StatusCode::kUnknown:
      return "UNKNOWN";
    case StatusCode::kInvalidArgument:
      return "INVALID_ARGUMENT";
    case StatusCode::kDeadlineExceeded:
      return "DEADLINE_EXCEEDED";
    case StatusCode::kNotFound:
      return "NOT_FOUND";
    case StatusCode::kAlreadyExists:
      return "ALREADY_EXISTS";
    case StatusCode::kPermissionDenied:
      return "PERMISSION_DENIED";
    case StatusCode::kResourceExhausted:
      return "RESOURCE_EXHAUSTED";
    case StatusCode::kFailedPrecondition:
      return "FAILED_PRECONDITION";
    case StatusCode::kAborted:
      return "ABORTED";
    case StatusCode::kOutOfRange:
      return "OUT_OF_RANGE";
    case StatusCode::kUnimplemented:
      return "UNIMPLEMENTED";
    case StatusCode::kInternal:
      return "INTERNAL";
    case StatusCode::kUnavailable:
      return "UNAVAILABLE";
    case StatusCode::kDataLoss:
      return "DATA_LOSS";
    case StatusCode::kUnauthenticated:
      return "UNAUTHENTICATED";
  }
  return "";
}

Status::Status(StatusCode code, std::string_view message) : code_(code) {
  if (!ok() && !message.empty()) message_ = std::make_shared<const std::string>(message);
}

std::string Status::ToString() const {
  std::string text = StatusCodeToString(code_);
  if (ok()) return text;
  text += ": ";
  text += message();
  return text;
}

std::ostream& operator<<(std::ostream& out, const Status& status) {
  return out << status.ToString();
}

Status AlreadyExistsError(std::string_view message) {
  return {StatusCode::kAlreadyExists, message};
}
Status CancelledError(std::string_view message) { return {StatusCode::kCancelled, message}; }
Status DataLossError(std::string_view message) { return {StatusCode::kDataLoss, message}; }
Status FailedPreconditionError(std::string_view message) {
  return {StatusCode::kFailedPrecondition, message};
}
Status InternalError(std::string_view message) { return {StatusCode::kInternal, message}; }
Status InvalidArgumentError(std::string_view message) {
  return {StatusCode::kInvalidArgument, message};
}
Status NotFoundError(std::string_view message) { return {StatusCode::kNotFound, message}; }
Status OutOfRangeError(std::string_view message) { return {StatusCode::kOutOfRange, message}; }
Status PermissionDeniedError(std::string_view message) {
  return {StatusCode::kPermissionDenied, message};
}
Status ResourceExhaustedError(std::string_view message) {
  return {StatusCode::kResourceExhausted, message};
}
Status UnavailableError(std::string_view message) { return {StatusCode::kUnavailable, message}; }
Status UnimplementedError(std::string_view message) {
  return {StatusCode::kUnimplemented, message};
}
Status UnknownError(std::string_view message) { return {StatusCode::kUnknown, message}; }

}  // namespace embank
