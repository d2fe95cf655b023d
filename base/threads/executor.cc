#include "base/threads/executor.h"

#include <signal.h>

#include <atomic>
#include <new>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/float_mode.h"
#include "base/threads/mutex.h"

namespace embank {
namespace {

// While it lives, the thread and those that it starts take no signal that another thread could
// take. Signals of a thread's own faults stay unblocked: blocked, they would end the process
// without a report.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t signals;
    sigfillset(&signals);
    for (const int own_fault : {SIGILL, SIGTRAP, SIGBUS, SIGFPE, SIGSEGV, SIGSYS}) {
      sigdelset(&signals, own_fault);
    }
    pthread_sigmask(SIG_BLOCK, &signals, &callers_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &callers_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t callers_;
};

// Every thread of the library runs this. It takes no signals, and computes in the default mode; a
// new thread inherits its maker's mask and mode. Throws like std::thread.
template <typename Body>
std::thread StartThread(Body body) {
  const SignalsBlocked blocked;
  return std::thread([body] {
    const DefaultFloatMode mode;
    body();
  });
}

// One ParallelFor: lives on its caller's stack until no worker holds it.
struct Job {
  FunctionRef<void(uint32_t)> body;
  uint32_t tasks = 0;
  std::atomic<uint32_t> next{0};
  // Guarded by the pool's mutex. The jobs are linked through themselves: no allocation can fail.
  uint32_t workers_inside = 0;
  Job* next_job = nullptr;

  // A body that throws is a defect of ours: the job would stay with other threads.
  void RunTasks() noexcept {
    for (uint32_t i = next.fetch_add(1, std::memory_order_relaxed); i < tasks;
         i = next.fetch_add(1, std::memory_order_relaxed)) {
      body(i);
    }
  }
};

// A background task: a thread that sleeps between steps.
class BackgroundThread final : public BackgroundTask {
 public:
  explicit BackgroundThread(BackgroundStep step) : step_(std::move(step)) {
    try {
      thread_ = StartThread([this] { Loop(); });
    } catch (const std::system_error&) {  // no steps: slower, correct
    } catch (const std::bad_alloc&) {
    }
  }

  ~BackgroundThread() override {
    {
      MutexLock lock(&mutex_);
      stopping_ = true;
    }
    woken_or_stop_.NotifyAll();
    if (thread_.joinable()) thread_.join();
  }

  void Wake() override {
    {
      MutexLock lock(&mutex_);
      if (woken_) return;
      woken_ = true;
    }
    woken_or_stop_.NotifyAll();
  }

 private:
  void Loop() noexcept {
    MutexLock lock(&mutex_);
    while (true) {
      while (!woken_ && !stopping_) woken_or_stop_.Wait(&mutex_);
      if (stopping_) return;
      woken_ = false;
      mutex_.Unlock();
      const bool again = step_();
      mutex_.Lock();
      woken_ |= again;
    }
  }

  BackgroundStep step_;  // the thread's
  Mutex mutex_;
  ConditionVariable woken_or_stop_;
  bool woken_ EMBANK_GUARDED_BY(mutex_) = false;
  bool stopping_ EMBANK_GUARDED_BY(mutex_) = false;
  std::thread thread_;  // constant after construction
};

class ThreadOfWork final : public JoinedThread {
 public:
  explicit ThreadOfWork(std::function<void()> body)
      : body_(std::move(body)), thread_(StartThread([this]() noexcept { body_(); })) {}
  ~ThreadOfWork() override { thread_.join(); }

 private:
  const std::function<void()> body_;
  std::thread thread_;
};

class ThreadPool final : public Executor {
 public:
  explicit ThreadPool(uint32_t threads) {
    workers_.reserve(threads);
    for (uint32_t i = 1; i < threads; ++i) {
      try {
        workers_.push_back(StartThread([this] { WorkerLoop(); }));
      } catch (const std::system_error&) {
        break;  // fewer workers: slower, correct
      } catch (const std::bad_alloc&) {
        break;
      }
    }
  }

  ~ThreadPool() override {
    {
      MutexLock lock(&mutex_);
      stopping_ = true;
    }
    work_or_stop_.NotifyAll();
    for (std::thread& worker : workers_) worker.join();
  }

  void ParallelFor(uint32_t tasks, FunctionRef<void(uint32_t)> body) override {
    if (tasks <= 1 || workers_.empty()) {
      for (uint32_t i = 0; i < tasks; ++i) body(i);
      return;
    }
    Job job{.body = body, .tasks = tasks};
    {
      MutexLock lock(&mutex_);
      job.next_job = jobs_;
      jobs_ = &job;
    }
    work_or_stop_.NotifyAll();
    job.RunTasks();
    MutexLock lock(&mutex_);
    Unlink(&job);
    while (job.workers_inside > 0) worker_left_.Wait(&mutex_);
  }

  std::unique_ptr<BackgroundTask> MakeBackgroundTask(BackgroundStep step) override {
    return std::make_unique<BackgroundThread>(std::move(step));
  }

  std::unique_ptr<JoinedThread> MakeThread(std::function<void()> body) override {
    try {
      return std::make_unique<ThreadOfWork>(std::move(body));
    } catch (const std::system_error&) {
      return nullptr;
    } catch (const std::bad_alloc&) {
      return nullptr;
    }
  }

  uint32_t concurrency() const override { return static_cast<uint32_t>(workers_.size()) + 1; }

 private:
  void WorkerLoop() {
    MutexLock lock(&mutex_);
    while (true) {
      while (!stopping_ && jobs_ == nullptr) work_or_stop_.Wait(&mutex_);
      if (stopping_) return;
      Job* const job = NextJob();
      ++job->workers_inside;
      mutex_.Unlock();
      job->RunTasks();
      mutex_.Lock();
      EMBANK_CHECK(job->workers_inside > 0);
      if (--job->workers_inside == 0) worker_left_.NotifyAll();
      // All its tasks are taken, so no other thread need look at it.
      Unlink(job);
    }
  }

  // Returns the job with the fewest workers, the oldest of several: newer ones must not leave it to
  // its caller alone.
  Job* NextJob() const EMBANK_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    Job* fewest = jobs_;
    for (Job* job = jobs_; job != nullptr; job = job->next_job) {
      if (job->workers_inside <= fewest->workers_inside) fewest = job;
    }
    return fewest;
  }

  // Takes a job out of the list, if it is still there.
  void Unlink(const Job* job) EMBANK_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    for (Job** link = &jobs_; *link != nullptr; link = &(*link)->next_job) {
      if (*link == job) {
        *link = job->next_job;
        return;
      }
    }
  }

  Mutex mutex_;
  ConditionVariable work_or_stop_;
  ConditionVariable worker_left_;
  Job* jobs_ EMBANK_GUARDED_BY(mutex_) = nullptr;  // the newest first
  bool stopping_ EMBANK_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> workers_;  // constant after construction
};

}  // namespace

std::unique_ptr<Executor> MakeThreadPool(uint32_t threads) {
  return std::make_unique<ThreadPool>(threads);
}

}  // namespace embank
