#include "tiers/space/segment_size.h"

#include <algorithm>
#include <bit>

#include "base/files/file_system.h"
#include "base/memory/memory.h"

namespace embank {
namespace {

// Records of a segment of the least size, whose header and footer are two blocks.
constexpr uint64_t kRecordsMin = 8;
constexpr uint64_t kWrittenPart = 2;
constexpr uint64_t kClassPart = 4;
constexpr uint64_t kFirstClassPart = 256;
constexpr uint64_t kStepPart = 8;
constexpr uint64_t kStepsMin = 4;
constexpr uint64_t kStepBytesMin = 8 * kBlockBytes;

// The size of the first segment of a session.
uint64_t FirstSegmentBytesFor(const SegmentLimits& limits, uint32_t record_bytes,
                              uint64_t class_bytes) {
  const uint64_t least = std::max(limits.least_bytes, std::bit_ceil(kRecordsMin * record_bytes));
  const uint64_t wanted = std::bit_floor(class_bytes / kFirstClassPart);
  return std::min(std::max(least, wanted), limits.most_bytes);
}

}  // namespace

uint64_t SegmentBytesFor(const SegmentLimits& limits, uint32_t record_bytes, uint64_t written_bytes,
                         uint64_t class_bytes) {
  const uint64_t wanted = std::min(written_bytes / kWrittenPart, class_bytes / kClassPart);
  const uint64_t first = FirstSegmentBytesFor(limits, record_bytes, class_bytes);
  return std::max(first, std::min(std::bit_floor(wanted), limits.most_bytes));
}

uint64_t StepBytesFor(uint64_t segment_bytes, uint64_t written_bytes) {
  const uint64_t most = std::max(RoundDown(segment_bytes / kStepsMin, kBlockBytes), kBlockBytes);
  const uint64_t wanted = RoundDown(written_bytes / kStepPart, kBlockBytes);
  return std::min(std::max(wanted, kStepBytesMin), most);
}

}  // namespace embank
