// The operations of a step, each with the resource that limits it.
//
//   Unique&Partition ─▶ Gather ─▶ Stitch&Reduce ─▶ Dense ─▶ SumGradients ─▶ Update
//   memory              I/O       memory           compute  memory          I/O
//
// Between ranks there are also operations of the link: ShuffleIds before Gather, ShuffleRows behind
// it, ShuffleSums before Update, and AllReduce of dense sums beside Dense. Primitives are fused
// where they share a resource, and nowhere else: PICASSO (Zhang et al. 2022), section III-B,
// K-Packing. Rows are received where Stitch wants them.
#ifndef EMBANK_TRAIN_PIPELINE_OPERATION_H_
#define EMBANK_TRAIN_PIPELINE_OPERATION_H_

#include <array>
#include <cstdint>
#include <span>

namespace embank {

enum class ResourceClass : uint8_t { kMemory, kIo, kLink, kCompute };
inline constexpr size_t kResourceClasses = 4;

// The primitives of an embedding layer, forward and backward.
enum class Primitive : uint8_t {
  kUnique,
  kPartition,
  kGather,
  kShuffle,
  kStitch,
  kSegmentReduction,
  kDense,
  kAllReduce,
  kSumGradients,
  kUpdate,
};

enum class OperationKind : uint8_t {
  kUniquePartition,
  kGather,
  kStitchReduce,
  kDense,
  kSumGradients,
  kUpdate,
  kShuffleIds,
  kShuffleRows,
  kShuffleSums,
  kAllReduce,
};
inline constexpr size_t kOperationKinds = 10;

// Returns the resource that limits a primitive.
constexpr ResourceClass ClassOf(Primitive primitive) {
  switch (primitive) {
    case Primitive::kGather:
    case Primitive::kUpdate:
      return ResourceClass::kIo;
    case Primitive::kShuffle:
    case Primitive::kAllReduce:
      return ResourceClass::kLink;
    case Primitive::kDense:
      return ResourceClass::kCompute;
    default:
      return ResourceClass::kMemory;
  }
}

// Returns the primitives that an operation does.
std::span<const Primitive> PrimitivesOf(OperationKind kind);
// Returns the resource of an operation: that of all its primitives.
ResourceClass ClassOf(OperationKind kind);
// Returns the name of an operation, "Gather" for example.
const char* NameOf(OperationKind kind);
const char* NameOf(ResourceClass resource);

}  // namespace embank

#endif  // EMBANK_TRAIN_PIPELINE_OPERATION_H_
