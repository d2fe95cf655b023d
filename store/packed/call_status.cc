#include "store/packed/call_status.h"

#include "base/no_throw_status.h"
#include "base/str_cat.h"

namespace embank {
namespace {

int GravityOf(const Status& status) {
  switch (status.code()) {
    case StatusCode::kOk:
      return 0;
    case StatusCode::kNotFound:
      return 1;
    case StatusCode::kOutOfRange:
      return 2;
    case StatusCode::kResourceExhausted:
      return 3;
    case StatusCode::kDataLoss:
      return 4;
    default:
      return 5;
  }
}

}  // namespace

void KeepGraver(Status* status, const Status& other) {
  if (GravityOf(other) > GravityOf(*status)) *status = other;
}

Status OfFeature(size_t feature, const Status& status) {
  if (status.ok()) return status;
  return NoThrowStatus(status.code(),
                       [&] { return StrCat("features[", feature, "]: ", status.message()); });
}

}  // namespace embank
