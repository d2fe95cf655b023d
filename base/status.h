// The result of an operation that can fail: a code, and a message for people. Our own type, and not
// absl::Status: Debian's static Abseil cannot go into a shared library
// (docs/decisions/0030-no-abseil-in-the-library.md).
#ifndef EMBANK_BASE_STATUS_H_
#define EMBANK_BASE_STATUS_H_

#include <iosfwd>
#include <memory>
#include <string>
#include <string_view>

namespace embank {

// The causes of failure. The numbers are those of gRPC and of absl::StatusCode.
enum class StatusCode {
  kOk = 0,
  kCancelled = 1,
  kUnknown = 2,
  kInvalidArgument = 3,
  kDeadlineExceeded = 4,
  kNotFound = 5,
  kAlreadyExists = 6,
  kPermissionDenied = 7,
  kResourceExhausted = 8,
  kFailedPrecondition = 9,
  kAborted = 10,
  kOutOfRange = 11,
  kUnimplemented = 12,
  kInternal = 13,
  kUnavailable = 14,
  kDataLoss = 15,
  kUnauthenticated = 16,
};

// "NOT_FOUND", or "" for a number that is no code.
std::string StatusCodeToString(StatusCode code);

// OK, or a code with a message. Copies share the message.
class [[nodiscard]] Status {
 public:
  // OK.
  Status() = default;
  // OK has no message: it is dropped. Without a message nothing is allocated.
  Status(StatusCode code, std::string_view message);

  bool ok() const { return code_ == StatusCode::kOk; }
  StatusCode code() const { return code_; }
  std::string_view message() const {
    return message_ == nullptr ? std::string_view() : std::string_view(*message_);
  }
  // "OK", or "NOT_FOUND: the message".
  std::string ToString() const;
  // Ignores a result on purpose.
  void IgnoreError() const {}
  // Becomes `other` if this is OK: the first error is kept.
  void Update(const Status& other) {
    if (ok()) *this = other;
  }

  friend bool operator==(const Status& a, const Status& b) {
    return a.code_ == b.code_ && a.message() == b.message();
  }

 private:
  StatusCode code_ = StatusCode::kOk;
  std::shared_ptr<const std::string> message_;
};

// ToString() for test reports.
std::ostream& operator<<(std::ostream& out, const Status& status);

inline Status OkStatus() { return {}; }

// A status of each code, with a message.
Status AlreadyExistsError(std::string_view message);
Status CancelledError(std::string_view message);
Status DataLossError(std::string_view message);
Status FailedPreconditionError(std::string_view message);
Status InternalError(std::string_view message);
Status InvalidArgumentError(std::string_view message);
Status NotFoundError(std::string_view message);
Status OutOfRangeError(std::string_view message);
Status PermissionDeniedError(std::string_view message);
Status ResourceExhaustedError(std::string_view message);
Status UnavailableError(std::string_view message);
Status UnimplementedError(std::string_view message);
Status UnknownError(std::string_view message);

// Whether a status has this code.
inline bool IsAlreadyExists(const Status& status) {
  return status.code() == StatusCode::kAlreadyExists;
}
inline bool IsCancelled(const Status& status) { return status.code() == StatusCode::kCancelled; }
inline bool IsDataLoss(const Status& status) { return status.code() == StatusCode::kDataLoss; }
inline bool IsFailedPrecondition(const Status& status) {
  return status.code() == StatusCode::kFailedPrecondition;
}
inline bool IsInvalidArgument(const Status& status) {
  return status.code() == StatusCode::kInvalidArgument;
}
inline bool IsNotFound(const Status& status) { return status.code() == StatusCode::kNotFound; }
inline bool IsOutOfRange(const Status& status) { return status.code() == StatusCode::kOutOfRange; }
inline bool IsPermissionDenied(const Status& status) {
  return status.code() == StatusCode::kPermissionDenied;
}
inline bool IsResourceExhausted(const Status& status) {
  return status.code() == StatusCode::kResourceExhausted;
}
inline bool IsUnavailable(const Status& status) {
  return status.code() == StatusCode::kUnavailable;
}
inline bool IsUnimplemented(const Status& status) {
  return status.code() == StatusCode::kUnimplemented;
}

}  // namespace embank

#endif  // EMBANK_BASE_STATUS_H_
