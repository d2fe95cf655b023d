#include "store/device/caller_stream.h"

#include "base/seeded_bug.h"

namespace embank {

Status CallerStream::Check() { return device_.CheckStream(stream_); }

Status CallerStream::Join() {
  if (Seeded(SeededBug::kCallerNotJoined)) return OkStatus();
  return device_.Join(stream_);
}

Status CallerStream::Release() {
  if (Seeded(SeededBug::kCallerNotReleased)) return OkStatus();
  return device_.Release(stream_);
}

}  // namespace embank
