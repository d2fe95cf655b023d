#include "base/threads/thread_number.h"

#include <atomic>

namespace embank {

uint64_t ThreadNumber() {
  static std::atomic<uint64_t> threads_seen{0};
  thread_local const uint64_t number = threads_seen.fetch_add(1, std::memory_order_relaxed);
  return number;
}

}  // namespace embank
