// Log lines go to the sink that the process has set, by default nowhere.
#ifndef EMBANK_BASE_THREADS_LOG_H_
#define EMBANK_BASE_THREADS_LOG_H_

#include <cstdint>
#include <string>

namespace embank {

enum class LogLevel : int32_t { kInfo = 1, kWarning = 2, kError = 3 };

using LogSink = void (*)(int32_t level, const char* message, void* user);

// Sets the sink; nullptr: none. Waits until a line that is being written has left the old sink.
// Thread-safe.
void SetLogSink(LogSink sink, void* user);

// Call it first in a child of fork(): it removes the sink and frees the lock.
void ClearLogSinkAfterFork();

// Writes a line to the sink. Never called per batch. Thread-safe.
void Log(LogLevel level, const std::string& message);

}  // namespace embank

#endif  // EMBANK_BASE_THREADS_LOG_H_
