// The transport between roles of one process, each on a thread: a message changes hands, and none
// of its bytes is copied.
#ifndef EMBANK_TRAIN_ROLES_MAILBOXES_H_
#define EMBANK_TRAIN_ROLES_MAILBOXES_H_

#include <cstdint>
#include <deque>
#include <map>
#include <span>

#include "base/status.h"
#include "base/threads/clock.h"
#include "base/threads/mutex.h"
#include "train/roles/message.h"
#include "train/roles/role.h"

namespace embank {

// Thread-safe.
class Mailboxes final : public Transport {
 public:
  // A role that does not look for messages within the time limit has disappeared, and the job ends.
  // The limit counts from the first call of Run on, and not while a role waits for something that
  // is no role, or while the whole process is stopped. The clock outlives it.
  Mailboxes(std::span<const RoleAddress> roles, uint64_t time_limit_ns,
            const Clock* clock = SteadyClock());

  // Runs a role, which has a box, until it is done or the job has failed. Returns the status of the
  // job: the first failure of any role, with its name. UNAVAILABLE: a role has disappeared, or its
  // thread has thrown.
  Status Run(Role* role);
  // Ends the job: a role has failed. Its name is in the message.
  void Fail(RoleAddress role, const Status& status);

  void SetWaitsOutside(RoleAddress role, bool waits) override;

 private:
  struct Box {
    std::deque<Message> messages;
    ConditionVariable changed;
    uint64_t looked_ns = 0;
    uint64_t checked_ns = 0;  // when its role looked at the others
    bool waits_outside = false;
    bool has_ended = false;
  };

  void Deliver(Message message) override;
  // Takes the next message, or none where there is none for a while. The status of the job.
  StatusOr<Message> Next(RoleAddress role);
  Status RunToEnd(Role* role);
  void LookAtOthers(uint64_t waited_ns, uint64_t now_ns) EMBANK_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void SetLooked(uint64_t now_ns) EMBANK_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void SetFailure(const Status& status) EMBANK_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const uint64_t time_limit_ns_;
  const Clock* const clock_;
  Mutex mutex_;
  std::map<RoleAddress, Box> boxes_ EMBANK_GUARDED_BY(mutex_);
  Status failure_ EMBANK_GUARDED_BY(mutex_);
  bool has_begun_ EMBANK_GUARDED_BY(mutex_) = false;
};

}  // namespace embank

#endif  // EMBANK_TRAIN_ROLES_MAILBOXES_H_
