#include "tools/stop_signals.h"

#include <atomic>
#include <cstddef>

#include "train/bytes/byte_source.h"

namespace embank {
namespace {

std::atomic<int> last_signal = 0;
static_assert(std::atomic<int>::is_always_lock_free);

void Note(int number) {
  EndWaits(true);
  if (last_signal.exchange(number, std::memory_order_relaxed) == 0) return;
  signal(number, SIG_DFL);
  raise(number);
}

}  // namespace

StopSignals::StopSignals() {
  last_signal = 0;
  EndWaits(false);
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
  EndWaits(false);
}

const char* StopSignals::received() const {
  const int number = last_signal.load(std::memory_order_relaxed);
  if (number == 0) return nullptr;
  return number == SIGINT ? "SIGINT" : number == SIGTERM ? "SIGTERM" : "SIGHUP";
}

}  // namespace embank
