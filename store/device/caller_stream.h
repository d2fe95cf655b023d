// The stream on which a caller uses its device memory, and the order of one call in it.
//
//   caller's stream:   work before   ............   work behind
//                                 \  Join         ^ Release
//   store's stream:                >  the call's  /
#ifndef EMBANK_STORE_DEVICE_CALLER_STREAM_H_
#define EMBANK_STORE_DEVICE_CALLER_STREAM_H_

#include "base/status.h"
#include "gpu/device.h"

namespace embank {

// For one thread. The device outlives it. nullptr is the default stream.
class CallerStream {
 public:
  CallerStream(Device* device, void* stream) : device_(*device), stream_(stream) {}

  // Says whether the stream can be joined.
  // kInvalidArgument: it is a stream of another device.
  // kFailedPrecondition: it is capturing.
  // kUnavailable: the device is lost.
  Status Check();
  // Makes the work that the call enqueues wait for all that is on the stream now. From then on the
  // store's waits for its device wait for that, too. Statuses are those of Check.
  Status Join();
  // Makes the stream wait for all that the call has enqueued. Statuses are those of Check.
  Status Release();

 private:
  Device& device_;
  void* const stream_;
};

}  // namespace embank

#endif  // EMBANK_STORE_DEVICE_CALLER_STREAM_H_
