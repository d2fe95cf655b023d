#include "train/roles/mailboxes.h"

#include <exception>
#include <new>
#include <utility>

#include "base/check.h"
#include "base/status_macros.h"
#include "base/str_cat.h"

namespace embank {
namespace {

// A role looks at the time so often where no message comes.
constexpr uint64_t kTickNs = 10'000'000;
// Windows and progress bound the messages under way: a box with more is a defect.
constexpr size_t kMessagesMax = size_t{1} << 20;

}  // namespace

Mailboxes::Mailboxes(std::span<const RoleAddress> roles, uint64_t time_limit_ns, const Clock* clock)
    : time_limit_ns_(time_limit_ns), clock_(clock) {
  const MutexLock lock(&mutex_);
  for (const RoleAddress role : roles) boxes_[role].looked_ns = clock->NowNs();
}

void Mailboxes::Deliver(Message message) {
  const MutexLock lock(&mutex_);
  Box& box = boxes_.at(message.header().to);
  if (box.has_ended) return;
  EMBANK_CHECK(box.messages.size() < kMessagesMax);
  box.messages.push_back(std::move(message));
  box.changed.NotifyAll();
}

StatusOr<Message> Mailboxes::Next(RoleAddress role) {
  const MutexLock lock(&mutex_);
  Box& box = boxes_.at(role);
  box.looked_ns = clock_->NowNs();
  if (box.messages.empty() && failure_.ok()) box.changed.WaitFor(&mutex_, kTickNs);
  box.looked_ns = clock_->NowNs();
  CheckOthers(box.looked_ns);
  EMBANK_RETURN_IF_ERROR(failure_);
  if (box.messages.empty()) return Message();
  Message message = std::move(box.messages.front());
  box.messages.pop_front();
  return message;
}

void Mailboxes::CheckOthers(uint64_t now_ns) {
  for (const auto& [role, box] : boxes_) {
    if (box.has_ended || now_ns - box.looked_ns <= time_limit_ns_) continue;
    Fail(UnavailableError(StrCat(TextOf(role), " has disappeared: it looked for no message for ",
                                 static_cast<double>(time_limit_ns_) * 1e-9, " s")));
  }
}

void Mailboxes::Fail(const Status& status) {
  failure_.Update(status);
  for (auto& [role, box] : boxes_) box.changed.NotifyAll();
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
  Status status;
  try {
    status = RunToEnd(role);
  } catch (const std::bad_alloc&) {
    status = ResourceExhaustedError("no memory");
  } catch (const std::exception& error) {
    status = UnavailableError(error.what());
  }
  const MutexLock lock(&mutex_);
  boxes_.at(role->address()).has_ended = true;
  if (!status.ok() && failure_.ok()) {
    Fail(Status(status.code(), StrCat(TextOf(role->address()), ": ", status.message())));
  }
  return failure_;
}

}  // namespace embank
