#include "base/threads/log.h"

#include <cstddef>
#include <new>

#include "base/threads/mutex.h"

namespace embank {
namespace {

struct SinkHolder {
  Mutex mutex;
  LogSink sink EMBANK_GUARDED_BY(mutex) = nullptr;
  void* user EMBANK_GUARDED_BY(mutex) = nullptr;
};

SinkHolder& Holder() {
  // Never destroyed, since threads may log until the process ends; no allocation can fail.
  alignas(SinkHolder) static std::byte storage[sizeof(SinkHolder)];
  static SinkHolder* const holder = new (storage) SinkHolder;
  return *holder;
}

}  // namespace

void SetLogSink(LogSink sink, void* user) {
  SinkHolder& holder = Holder();
  MutexLock lock(&holder.mutex);
  holder.sink = sink;
  holder.user = user;
}

void ClearLogSinkAfterFork() {
  SinkHolder& holder = Holder();
  // A thread that the child does not have may have held the lock.
  new (&holder) SinkHolder;
}

void Log(LogLevel level, const std::string& message) {
  SinkHolder& holder = Holder();
  MutexLock lock(&holder.mutex);
  if (holder.sink != nullptr) {
    holder.sink(static_cast<int32_t>(level), message.c_str(), holder.user);
  }
}

}  // namespace embank
