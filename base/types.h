// The types of all layers: keys, batches of keys and rows, and the outcome of each key.
#ifndef EMBANK_BASE_TYPES_H_
#define EMBANK_BASE_TYPES_H_

#include <cstddef>
#include <cstdint>
#include <span>

namespace embank {

using Key = uint64_t;
using KeySpan = std::span<const Key>;

// A key's hash in its table (base/hash.h): equal for two keys of one table only if they are equal.
using KeyHash = uint64_t;

// The values are those of the C API (bindings/c/embank.h), which never change.
enum class Outcome : uint8_t {
  kFound = 1,
  kCreated = 2,
  kAbsent = 3,
  kRefused = 4,
  kDataLoss = 5,
  kNotFinite = 6,
  kUnavailable = 7
};
// The greatest of their numbers.
inline constexpr size_t kOutcomes = 7;

// Whether the row could not be read: its record is damaged, or cannot be read now.
constexpr bool IsUnread(Outcome outcome) {
  return outcome == Outcome::kDataLoss || outcome == Outcome::kUnavailable;
}
enum class ValueType : int32_t { kF32 = 0, kF16 = 1, kBf16 = 2 };
enum class Optimizer : int32_t {
  kNone = 0,
  kSgd = 1,
  kAdagrad = 2,
  kRowwiseAdagrad = 3,
  kAdam = 4,
  kFtrl = 5
};
enum class InitializerKind : int32_t { kZero = 0, kConstant = 1, kUniform = 2, kNormal = 3 };
// How the values of 16-bit rows are rounded at the end of a step.
enum class Rounding : int32_t { kNearest = 0, kStochastic = 1 };
enum class MissingRule : int32_t { kCreate = 0, kDefault = 1, kZero = 2, kSkip = 3 };

// Outcomes of a batch, one per key; empty when the caller does not want them.
using OutcomeSpan = std::span<uint8_t>;

// Rows of a batch, in the caller's memory: row i begins at data + i * stride_bytes, unaligned.
struct RowSpan {
  std::byte* data = nullptr;
  uint64_t stride_bytes = 0;
  std::byte* Row(uint64_t i) const { return data + i * stride_bytes; }
};
struct ConstRowSpan {
  const std::byte* data = nullptr;
  uint64_t stride_bytes = 0;
  const std::byte* Row(uint64_t i) const { return data + i * stride_bytes; }
};

// Positions of a batch are 32 bits wide: twelve bytes of scratch per key instead of sixteen.
inline constexpr uint64_t kBatchKeysMax = 0xFFFFFFFF;
// Batches of at most this many keys allocate nothing.
inline constexpr size_t kInlineKeys = 64;
inline constexpr uint32_t kDimMax = 4096;

}  // namespace embank

#endif  // EMBANK_BASE_TYPES_H_
