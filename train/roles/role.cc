#include "train/roles/role.h"

#include <exception>
#include <new>
#include <numeric>
#include <utility>

#include "base/no_throw_status.h"
#include "base/str_cat.h"

namespace embank {

uint64_t MessageCounts::all_messages() const {
  return std::accumulate(messages.begin(), messages.end(), uint64_t{0});
}

uint64_t MessageCounts::all_bytes() const {
  return std::accumulate(bytes.begin(), bytes.end(), uint64_t{0});
}

MessageCounts& MessageCounts::operator+=(const MessageCounts& other) {
  for (size_t i = 0; i < messages.size(); ++i) {
    messages[i] += other.messages[i];
    bytes[i] += other.bytes[i];
  }
  copied_bytes += other.copied_bytes;
  return *this;
}

void Transport::Send(Message message) {
  const auto kind = static_cast<size_t>(message.header().kind);
  messages_[kind].fetch_add(1, std::memory_order_relaxed);
  bytes_[kind].fetch_add(message.header().bytes, std::memory_order_relaxed);
  copied_bytes_.fetch_add(message.copied_bytes(), std::memory_order_relaxed);
  Deliver(std::move(message));
}

MessageCounts Transport::counts() const {
  MessageCounts counts;
  for (size_t i = 0; i < kKinds; ++i) {
    counts.messages[i] = messages_[i].load(std::memory_order_relaxed);
    counts.bytes[i] = bytes_[i].load(std::memory_order_relaxed);
  }
  counts.copied_bytes = copied_bytes_.load(std::memory_order_relaxed);
  return counts;
}

Status CallRole(const Role& role, FunctionRef<Status()> call) {
  Status status;
  try {
    status = call();
  } catch (const std::bad_alloc&) {
    status = NoThrowStatus(StatusCode::kResourceExhausted, [] { return "no memory"; });
  } catch (const std::exception& error) {
    status = NoThrowStatus(StatusCode::kUnavailable, [&] { return error.what(); });
  }
  if (status.ok()) return status;
  return NoThrowStatus(status.code(),
                       [&] { return StrCat(TextOf(role.address()), ": ", status.message()); });
}

}  // namespace embank
