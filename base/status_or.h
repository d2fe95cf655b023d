// A value, or the status that says why there is none.
#ifndef EMBANK_BASE_STATUS_OR_H_
#define EMBANK_BASE_STATUS_OR_H_

#include <concepts>
#include <optional>
#include <type_traits>
#include <utility>

#include "base/check.h"
#include "base/status.h"

namespace embank {

template <typename T>
class [[nodiscard]] StatusOr {
 public:
  using value_type = T;

  // Makes a failure of an unknown cause.
  StatusOr() : status_(StatusCode::kUnknown, "") {}
  // Implicit, so that a function returns a status or a value as it stands; the constraints keep the
  // template from hiding copies.
  // NOLINTBEGIN(google-explicit-constructor,bugprone-forwarding-reference-overload)
  // Stops the process if the status is OK: it is a reason for having no value.
  StatusOr(Status status) : status_(std::move(status)) { EMBANK_CHECK(!status_.ok()); }
  template <typename U = T>
  requires(std::convertible_to<U&&, T> && !std::same_as<std::remove_cvref_t<U>, StatusOr> &&
           !std::same_as<std::remove_cvref_t<U>, Status>) StatusOr(U&& value)
      : value_(std::forward<U>(value)) {}
  template <typename U>
  requires(std::convertible_to<U&&, T> && !std::same_as<U, T>) StatusOr(StatusOr<U>&& other)
      : status_(other.status()) {
    if (other.ok()) value_.emplace(*std::move(other));
  }
  // NOLINTEND(google-explicit-constructor,bugprone-forwarding-reference-overload)

  bool ok() const { return status_.ok(); }
  const Status& status() const { return status_; }

  // Returns the value. Stops the process if there is none.
  const T& value() const& { return Checked(*this); }
  T& value() & { return Checked(*this); }
  T&& value() && { return std::move(Checked(*this)); }
  const T& operator*() const& { return Checked(*this); }
  T& operator*() & { return Checked(*this); }
  T&& operator*() && { return std::move(Checked(*this)); }
  const T* operator->() const { return &Checked(*this); }
  T* operator->() { return &Checked(*this); }

  // Returns the value, or `other` if there is none.
  template <typename U>
  T value_or(U&& other) const& {
    return value_.value_or(std::forward<U>(other));
  }

 private:
  template <typename Self>
  static auto& Checked(Self& self) {
    EMBANK_CHECK(self.value_.has_value());
    return *self.value_;
  }

  Status status_;
  std::optional<T> value_;  // there if and only if the status is OK
};

}  // namespace embank

#endif  // EMBANK_BASE_STATUS_OR_H_
