// Collects the library's warnings, for tests that expect one or none.
#ifndef EMBANK_TESTS_SUPPORT_WARNINGS_H_
#define EMBANK_TESTS_SUPPORT_WARNINGS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "base/threads/log.h"
#include "base/threads/mutex.h"

namespace embank::test {

// The warnings while one lives.
class Warnings {
 public:
  Warnings() { SetLogSink(&Warnings::Take, this); }
  ~Warnings() { SetLogSink(nullptr, nullptr); }
  Warnings(const Warnings&) = delete;
  Warnings& operator=(const Warnings&) = delete;

  std::vector<std::string> lines() const {
    MutexLock lock(&mutex_);
    return lines_;
  }

 private:
  static void Take(int32_t level, const char* message, void* user) {
    if (level < static_cast<int32_t>(LogLevel::kWarning)) return;
    auto* const warnings = static_cast<Warnings*>(user);
    MutexLock lock(&warnings->mutex_);
    warnings->lines_.emplace_back(message);
  }

  mutable Mutex mutex_;
  std::vector<std::string> lines_ EMBANK_GUARDED_BY(mutex_);
};

}  // namespace embank::test

#endif  // EMBANK_TESTS_SUPPORT_WARNINGS_H_
