#include "store/started_checkpoint.h"

#include <new>
#include <utility>

#include "base/check.h"
#include "base/memory/memory.h"
#include "base/seeded_bug.h"
#include "base/status_macros.h"
#include "base/threads/log.h"

namespace embank {

StartedCheckpoint::~StartedCheckpoint() {
  EMBANK_CHECK(stage_ == Stage::kNone || stage_ == Stage::kStarted);
  if (stage_ == Stage::kNone) return;
  {
    const FlushPace::Hurry hurry(store_.gate->pace());
    thread_.reset();
  }
  EMBANK_CHECK(result_.has_value());
  if (result_->ok()) return;
  try {
    Log(LogLevel::kError,
        "a started checkpoint that nobody has finished failed: " + result_->status().ToString());
  } catch (const std::bad_alloc&) {  // The log is best effort.
  }
}

Status StartedCheckpoint::Start(std::span<const std::byte> blob) {
  EMBANK_RETURN_IF_ERROR(Claim(blob));
  std::unique_ptr<JoinedThread> thread = store_.executor->MakeThread([this] { MakeOnThread(); });
  if (thread == nullptr) {
    {
      MutexLock lock(&mutex_);
      stage_ = Stage::kNone;
    }
    return ResourceExhaustedError("the system refuses a thread for the checkpoint");
  }
  if (!WaitForBarrier()) {
    thread.reset();
    return TakeResult().status();
  }
  MutexLock lock(&mutex_);
  EMBANK_CHECK(stage_ == Stage::kStarting);
  stage_ = Stage::kStarted;
  thread_ = std::move(thread);
  return OkStatus();
}

Status StartedCheckpoint::Claim(std::span<const std::byte> blob) {
  MutexLock lock(&mutex_);
  if (stage_ != Stage::kNone) {
    return FailedPreconditionError(
        stage_ == Stage::kStarted
            ? "a checkpoint is started and not finished; call embank_checkpoint_finish first"
            : "another call starts or finishes a checkpoint; wait for it first");
  }
  EMBANK_CHECK(thread_ == nullptr && !result_.has_value());
  stage_ = Stage::kStarting;
  blob_ = blob;
  is_behind_barrier_ = false;
  return OkStatus();
}

// False: the checkpoint has failed before its barrier.
bool StartedCheckpoint::WaitForBarrier() {
  MutexLock lock(&mutex_);
  EMBANK_CHECK(stage_ == Stage::kStarting);
  if (Seeded(SeededBug::kStartBeforeBarrier)) return true;
  while (!is_behind_barrier_ && !result_.has_value()) has_moved_on_.Wait(&mutex_);
  EMBANK_CHECK(is_behind_barrier_ || !result_->ok());
  return is_behind_barrier_;
}

StatusOr<uint32_t> StartedCheckpoint::Finish() {
  std::unique_ptr<JoinedThread> thread;
  {
    MutexLock lock(&mutex_);
    if (stage_ != Stage::kStarted) {
      return FailedPreconditionError(
          stage_ == Stage::kFinishing
              ? "another call finishes the started checkpoint"
              : "no checkpoint is started; embank_checkpoint_start starts one");
    }
    stage_ = Stage::kFinishing;
    thread = std::move(thread_);
  }
  {
    const FlushPace::Hurry hurry(store_.gate->pace());
    thread.reset();
  }
  return TakeResult();
}

// The thread has ended.
StatusOr<uint32_t> StartedCheckpoint::TakeResult() {
  MutexLock lock(&mutex_);
  EMBANK_CHECK(stage_ == Stage::kStarting || stage_ == Stage::kFinishing);
  EMBANK_CHECK(result_.has_value());
  StatusOr<uint32_t> result = *std::move(result_);
  result_.reset();
  stage_ = Stage::kNone;
  return result;
}

void StartedCheckpoint::MakeOnThread() {
  std::span<const std::byte> blob;
  {
    MutexLock lock(&mutex_);
    blob = blob_;
  }
  StatusOr<uint32_t> made;
  try {
    made = checkpoints_.Make(blob, [this] {
      {
        MutexLock lock(&mutex_);
        is_behind_barrier_ = true;
      }
      has_moved_on_.NotifyAll();
    });
  } catch (const std::bad_alloc&) {
    made = NoMemory();
  }
  {
    MutexLock lock(&mutex_);
    result_ = std::move(made);
  }
  has_moved_on_.NotifyAll();
}

}  // namespace embank
