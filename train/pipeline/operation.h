// The operations of a step, each with the resource that limits it.
//
//   Unique&Partition ─▶ Gather ─▶ Stitch&Reduce ─▶ Dense ─▶ SumGradients ─▶ Update
//   memory              I/O       memory           compute  memory          I/O
//
// Primitives are fused where they share a resource, and nowhere else: PICASSO (Zhang et al. 2022),
// section III-B, K-Packing. One process has no Shuffle: Gather writes rows where Stitch wants them.
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
};
inline constexpr size_t kOperationKinds = 6;

// Returns the resource that limits a primitive.
constexpr ResourceClass ClassOf(Primitive primitive) {
  switch (primitive) {
    case Primitive::kGather:
    case Primitive::kUpdate:
      return ResourceClass::kIo;
    case Primitive::kShuffle:
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
