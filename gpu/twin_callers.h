// The streams of a twin's callers. A test enqueues work on them as an application does on its
// streams of CUDA. That work is not work of the device: it is not counted, and does not get lost.
#ifndef EMBANK_GPU_TWIN_CALLERS_H_
#define EMBANK_GPU_TWIN_CALLERS_H_

#include <deque>
#include <functional>

#include "base/status_or.h"
#include "base/threads/mutex.h"
#include "gpu/twin_streams.h"

namespace embank {

// Thread-safe. A `stream` is a handle of Add, or nullptr, the default stream.
class TwinCallers {
 public:
  // The streams outlive this.
  explicit TwinCallers(TwinStreams* streams);

  // Makes a stream of a caller, which lives as long as the twin.
  void* Add();
  // Enqueues work of a caller, which calls no method of the twin.
  void Enqueue(void* stream, std::function<void()> work);
  // Waits for all that is on the stream now.
  void WaitFor(void* stream);
  // Waits for all that is on all streams now.
  void WaitForAll();
  // Makes NumberOf answer as for a stream that is being captured.
  void SetCapturing(void* stream, bool is_capturing);

  // Returns the number of a stream, for the device to wait for it, or to make it wait.
  // kInvalidArgument: it is not a stream of this twin. kFailedPrecondition: it is capturing.
  StatusOr<TwinStreams::Stream> NumberOf(void* stream);

 private:
  struct CallerStream {
    TwinStreams::Stream number;
    bool is_capturing = false;
  };

  // nullptr: it is no stream of this twin.
  CallerStream* Find(void* stream) EMBANK_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  TwinStreams::Stream KnownNumberOf(void* stream);

  TwinStreams* const streams_;
  Mutex mutex_;
  // Neither moves its elements. The first stream is the default one.
  std::deque<CallerStream> callers_ EMBANK_GUARDED_BY(mutex_);
  std::deque<std::function<void()>> work_ EMBANK_GUARDED_BY(mutex_);
};

}  // namespace embank

#endif  // EMBANK_GPU_TWIN_CALLERS_H_
