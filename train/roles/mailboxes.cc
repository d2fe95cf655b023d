#include "train/roles/mailboxes.h"

#include <utility>

#include "base/status_macros.h"
#include "base/str_cat.h"

namespace embank {
namespace {

// A role looks at the time at least every 10 ms.
constexpr uint64_t kTickNs = 10'000'000;
// Windows and progress bound the messages between workers. Only a trainer that waits, as for a
// terminal, gets more and more results.
constexpr size_t kMessagesMax = size_t{1} << 20;

}  // namespace

Mailboxes::Mailboxes(std::span<const RoleAddress> roles, uint64_t time_limit_ns, const Clock* clock)
    : time_limit_ns_(time_limit_ns), clock_(clock) {
  const MutexLock lock(&mutex_);
  for (const RoleAddress role : roles) boxes_[role];
}

void Mailboxes::Deliver(Message message) {
  const MutexLock lock(&mutex_);
  Box& box = boxes_.at(message.header().to);
  if (box.has_ended) return;
  if (box.messages.size() >= kMessagesMax) {
    SetFailure(ResourceExhaustedError(StrCat(TextOf(message.header().to), " has ", kMessagesMax,
                                             " messages that it has not read")));
    return;
  }
  box.messages.push_back(std::move(message));
  box.changed.NotifyAll();
}

void Mailboxes::SetWaitsOutside(RoleAddress role, bool waits) {
  const MutexLock lock(&mutex_);
  Box& box = boxes_.at(role);
  box.waits_outside = waits;
  box.looked_ns = clock_->NowNs();
}

StatusOr<Message> Mailboxes::Next(RoleAddress role) {
  const MutexLock lock(&mutex_);
  Box& box = boxes_.at(role);
  const uint64_t looked_ns = std::exchange(box.looked_ns, clock_->NowNs());
  if (box.messages.empty() && failure_.ok()) box.changed.WaitFor(&mutex_, kTickNs);
  box.looked_ns = clock_->NowNs();
  if (box.looked_ns - box.checked_ns >= kTickNs) {
    box.checked_ns = box.looked_ns;
    LookAtOthers(box.looked_ns - looked_ns, box.looked_ns);
  }
  EMBANK_RETURN_IF_ERROR(failure_);
  if (box.messages.empty()) return Message();
  Message message = std::move(box.messages.front());
  box.messages.pop_front();
  return message;
}

// A role that was late itself blames nobody: the process may have been stopped.
void Mailboxes::LookAtOthers(uint64_t waited_ns, uint64_t now_ns) {
  if (waited_ns > time_limit_ns_ / 2) return SetLooked(now_ns);
  for (const auto& [role, box] : boxes_) {
    if (box.has_ended || box.waits_outside || now_ns - box.looked_ns <= time_limit_ns_) continue;
    SetFailure(
        UnavailableError(StrCat(TextOf(role), " has disappeared: it looked for no message for ",
                                static_cast<double>(time_limit_ns_) * 1e-9, " s")));
  }
}

void Mailboxes::SetLooked(uint64_t now_ns) {
  for (auto& [role, box] : boxes_) box.looked_ns = now_ns;
}

void Mailboxes::SetFailure(const Status& status) {
  failure_.Update(status);
  for (auto& [role, box] : boxes_) box.changed.NotifyAll();
}

void Mailboxes::Fail(RoleAddress role, const Status& status) {
  const MutexLock lock(&mutex_);
  SetFailure(Status(status.code(), StrCat(TextOf(role), ": ", status.message())));
}

Status Mailboxes::RunToEnd(Role* role) {
  EMBANK_RETURN_IF_ERROR(role->Start());
  uint64_t ticked_ns = clock_->NowNs();
  while (!role->is_done()) {
    EMBANK_ASSIGN_OR_RETURN(Message message, Next(role->address()));
    if (message) EMBANK_RETURN_IF_ERROR(role->Receive(std::move(message)));
    const uint64_t now_ns = clock_->NowNs();
    if (now_ns - ticked_ns < kTickNs) continue;
    ticked_ns = now_ns;
    EMBANK_RETURN_IF_ERROR(role->Tick());
  }
  return OkStatus();
}

Status Mailboxes::Run(Role* role) {
  {
    const MutexLock lock(&mutex_);
    if (!std::exchange(has_begun_, true)) SetLooked(clock_->NowNs());
  }
  const Status status = CallRole(*role, [&] { return RunToEnd(role); });
  const MutexLock lock(&mutex_);
  boxes_.at(role->address()).has_ended = true;
  if (!status.ok()) SetFailure(status);
  return failure_;
}

}  // namespace embank
