#include "train/pipeline/trace_picture.h"

#include <algorithm>

#include "base/str_cat.h"
#include "train/pipeline/lane_picture.h"

namespace embank {

static_assert(kOperationKinds <= kBarKindsMax);

std::string TracePicture(std::span<const OperationInterval> intervals) {
  LanePicture picture;
  picture.none = "no operation ran";
  for (size_t i = 0; i < kOperationKinds; ++i) {
    const auto kind = static_cast<OperationKind>(i);
    picture.kinds.push_back({NameOf(kind), NameOf(ClassOf(kind))});
  }
  uint32_t threads = 1;
  for (const OperationInterval& interval : intervals) {
    threads = std::max(threads, interval.thread + 1);
    picture.bars.push_back(
        {.lane = interval.thread,
         .kind = static_cast<size_t>(interval.label.kind),
         .begin_ns = interval.begin_ns,
         .end_ns = interval.end_ns,
         .title = StrCat(NameOf(interval.label.kind), ", batch ", interval.label.batch, ", pack ",
                         interval.label.pack, ", micro-batch ", interval.label.micro_batch)});
  }
  for (uint32_t thread = 0; thread < threads; ++thread) {
    picture.lanes.push_back(StrCat("thread ", thread));
  }
  return SvgText(picture);
}

}  // namespace embank
