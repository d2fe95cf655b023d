#include "tools/stop_signals.h"

#include <atomic>
#include <cstddef>

namespace embank {
namespace {

std::atomic<int> last_signal = 0;
std::atomic<void (*)(bool)> end_waits_of_program = nullptr;
static_assert(std::atomic<int>::is_always_lock_free);
static_assert(std::atomic<void (*)(bool)>::is_always_lock_free);

void EndWaitsOfProgram(bool end) {
  void (*const end_waits)(bool) = end_waits_of_program.load(std::memory_order_relaxed);
  if (end_waits != nullptr) end_waits(end);
}

void Note(int number) {
  EndWaitsOfProgram(true);
  if (last_signal.exchange(number, std::memory_order_relaxed) == 0) return;
  signal(number, SIG_DFL);
  raise(number);
}

}  // namespace

StopSignals::StopSignals(void (*end_waits)(bool)) {
  last_signal = 0;
  end_waits_of_program = end_waits;
  EndWaitsOfProgram(false);
  struct sigaction noted = {};
  noted.sa_handler = Note;
  // Reads of a log go on behind a signal.
  noted.sa_flags = SA_RESTART;
  for (size_t i = 0; i < kSignals.size(); ++i) {
    sigaction(kSignals[i], nullptr, &before_[i]);
    if (before_[i].sa_handler != SIG_IGN) sigaction(kSignals[i], &noted, nullptr);
  }
  struct sigaction ignored = {};
  ignored.sa_handler = SIG_IGN;
  sigaction(SIGPIPE, &ignored, &pipe_before_);
}

StopSignals::~StopSignals() {
  for (size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &before_[i], nullptr);
  sigaction(SIGPIPE, &pipe_before_, nullptr);
  EndWaitsOfProgram(false);
}

const char* StopSignals::received() const {
  const int number = last_signal.load(std::memory_order_relaxed);
  if (number == 0) return nullptr;
  return number == SIGINT ? "SIGINT" : number == SIGTERM ? "SIGTERM" : "SIGHUP";
}

}  // namespace embank
