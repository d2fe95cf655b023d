#include "bindings/c/last_error.h"

#include <algorithm>
#include <cstring>

namespace embank {
namespace {

// Space for a 255-byte table name and the rest of any message; no allocation, which could fail.
constexpr size_t kMessageBytesMax = 1024;
thread_local char last_message[kMessageBytesMax] = "";

// The message of a status that was made where nothing could be allocated.
std::string_view MessageOf(embank_status code) {
  if (code != EMBANK_RESOURCE_EXHAUSTED) return embank_status_name(code);
  return "out of memory: dram_bytes is used up, or the memory or address space of the machine "
         "(ulimit -v; without dram_bytes a store reserves addresses for twice the machine's "
         "memory)";
}

}  // namespace

embank_status ReportFailure(embank_status code, std::string_view message) {
  if (message.empty()) message = MessageOf(code);
  const size_t bytes = std::min(message.size(), kMessageBytesMax - 1);
  std::memcpy(last_message, message.data(), bytes);
  last_message[bytes] = '\0';
  return code;
}

embank_status ReportStatus(const Status& status) {
  if (status.ok()) return EMBANK_OK;
  const std::string_view message = status.message();
  // The canonical codes are the same numbers on both sides; UNAUTHENTICATED (16) is never made.
  return ReportFailure(static_cast<embank_status>(status.code()),
                       std::string_view(message.data(), message.size()));
}

const char* LastError() { return last_message; }

}  // namespace embank
