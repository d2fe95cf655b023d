#include "train/roles/long_work.h"

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/no_throw_status.h"
#include "base/status_macros.h"
#include "base/threads/executor.h"
#include "base/threads/mutex.h"
#include "train/ranks/gathered_texts.h"

namespace embank {
namespace {

constexpr std::string_view kDone = "done";

// Returns whether the worker is done.
StatusOr<bool> Meet(Exchange* exchange, uint32_t worker, bool is_done) {
  EMBANK_ASSIGN_OR_RETURN(const std::vector<std::string> texts,
                          GatherTexts(exchange, is_done ? kDone : ""));
  return texts[worker] == kDone;
}

// Work on a thread of its own.
class Work {
 public:
  explicit Work(FunctionRef<Status()> work)
      : executor_(MakeThreadPool(1)), thread_(executor_->MakeThread([this, work] { Run(work); })) {
    if (thread_ == nullptr) Run(work);
  }

  // Waits until it is done, or for a time. Returns whether it is done.
  bool WaitFor(uint64_t ns) {
    const MutexLock lock(&mutex_);
    if (!is_done_) changed_.WaitFor(&mutex_, ns);
    return is_done_;
  }
  Status Join() {
    thread_.reset();
    const MutexLock lock(&mutex_);
    return status_;
  }

 private:
  void Run(FunctionRef<Status()> work) {
    Status status = CatchNoMemory([&] { return work(); });
    const MutexLock lock(&mutex_);
    status_ = std::move(status);
    is_done_ = true;
    changed_.NotifyAll();
  }

  Mutex mutex_;
  ConditionVariable changed_;
  Status status_ EMBANK_GUARDED_BY(mutex_);
  bool is_done_ EMBANK_GUARDED_BY(mutex_) = false;
  const std::unique_ptr<Executor> executor_;
  std::unique_ptr<JoinedThread> thread_;
};

}  // namespace

Status RunLongWork(Exchange* exchange, uint32_t worker, uint64_t interval_ns,
                   FunctionRef<Status()> work) {
  if (exchange->rank() != worker) {
    for (bool is_done = false; !is_done;) {
      EMBANK_ASSIGN_OR_RETURN(is_done, Meet(exchange, worker, false));
    }
    return Agree(exchange, OkStatus());
  }
  Work running(work);
  Status met;
  for (bool is_done = false; !is_done && met.ok();) {
    is_done = running.WaitFor(interval_ns);
    met = Meet(exchange, worker, is_done).status();
  }
  const Status status = running.Join();
  return met.ok() ? Agree(exchange, status) : met;
}

}  // namespace embank
