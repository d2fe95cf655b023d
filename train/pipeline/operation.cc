#include "train/pipeline/operation.h"

#include <algorithm>

#include "base/seeded_bug.h"

namespace embank {
namespace {

constexpr std::array kUniquePartition = {Primitive::kUnique, Primitive::kPartition};
constexpr std::array kGather = {Primitive::kGather};
constexpr std::array kStitchReduce = {Primitive::kStitch, Primitive::kSegmentReduction};
constexpr std::array kGatherStitch = {Primitive::kGather, Primitive::kStitch};
constexpr std::array kDense = {Primitive::kDense};
constexpr std::array kSumGradients = {Primitive::kSumGradients};
constexpr std::array kUpdate = {Primitive::kUpdate};
constexpr std::array kShuffle = {Primitive::kShuffle};
constexpr std::array kAllReduce = {Primitive::kAllReduce};

template <typename Primitives>
constexpr bool ShareAResource(const Primitives& primitives) {
  return std::ranges::all_of(primitives, [&](Primitive primitive) {
    return ClassOf(primitive) == ClassOf(primitives[0]);
  });
}
static_assert(ShareAResource(kUniquePartition) && ShareAResource(kStitchReduce));

}  // namespace

std::span<const Primitive> PrimitivesOf(OperationKind kind) {
  switch (kind) {
    case OperationKind::kUniquePartition:
      return kUniquePartition;
    case OperationKind::kGather:
      return kGather;
    case OperationKind::kStitchReduce:
      if (Seeded(SeededBug::kFusedAcrossClasses)) return kGatherStitch;
      return kStitchReduce;
    case OperationKind::kDense:
      return kDense;
    case OperationKind::kSumGradients:
      return kSumGradients;
    case OperationKind::kUpdate:
      return kUpdate;
    case OperationKind::kAllReduce:
      return kAllReduce;
    default:
      return kShuffle;
  }
}

ResourceClass ClassOf(OperationKind kind) { return ClassOf(PrimitivesOf(kind)[0]); }

const char* NameOf(OperationKind kind) {
  static constexpr std::array<const char*, kOperationKinds> kNames = {
      "Unique&Partition", "Gather",     "Stitch&Reduce", "Dense",       "SumGradients",
      "Update",           "ShuffleIds", "ShuffleRows",   "ShuffleSums", "AllReduce"};
  return kNames[static_cast<size_t>(kind)];
}

const char* NameOf(ResourceClass resource) {
  static constexpr std::array<const char*, kResourceClasses> kNames = {"memory", "I/O", "link",
                                                                       "compute"};
  return kNames[static_cast<size_t>(resource)];
}

}  // namespace embank
