#include "bindings/c/last_error.h"

#include <algorithm>
#include <cstring>

namespace embank {
namespace {

// Room for a 255-byte table name and the rest of any message; no allocation, which could fail.
constexpr size_t kMessageBytesMax = 1024;
thread_local char last_message[kMessageBytesMax] = "";

}  // namespace

embank_status ReportFailure(embank_status code, std::string_view message) {
  // Empty when there was no memory for a message.
  if (message.empty()) message = embank_status_name(code);
  const size_t bytes = std::min(message.size(), kMessageBytesMax - 1);
  std::memcpy(last_message, message.data(), bytes);
  last_message[bytes] = '\0';
  return code;
}

embank_status ReportStatus(const absl::Status& status) {
  if (status.ok()) return EMBANK_OK;
  const absl::string_view message = status.message();
  // The canonical codes are the same numbers on both sides; UNAUTHENTICATED (16) is never made.
  return ReportFailure(static_cast<embank_status>(status.code()),
                       std::string_view(message.data(), message.size()));
}

const char* LastError() { return last_message; }

}  // namespace embank
