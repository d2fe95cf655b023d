// A message of a tensor of 64 MiB between roles, beside an encoder that writes element by element.
#include <benchmark/benchmark.h>
#include <sys/mman.h>

#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <vector>

#include "base/check.h"
#include "train/roles/message.h"

namespace embank {
namespace {

constexpr uint64_t kTensorBytes = uint64_t{64} << 20;
constexpr uint64_t kFloats = kTensorBytes / sizeof(float);
// An element of protocol buffers' `repeated float` that is not packed: a tag of field 1, fixed32.
constexpr uint8_t kTag = 1 << 3 | 5;
constexpr uint64_t kElementBytes = 1 + sizeof(float);

// Pages of the system that are not huge.
class SmallPages final : public MemorySource {
 public:
  StatusOr<std::byte*> Map(uint64_t bytes) override {
    StatusOr<std::byte*> memory = SystemMemorySource()->Map(bytes);
    if (memory.ok()) EMBANK_CHECK(madvise(*memory, bytes, MADV_NOHUGEPAGE) == 0);
    return memory;
  }
  StatusOr<std::byte*> Reserve(uint64_t bytes) override {
    return SystemMemorySource()->Reserve(bytes);
  }
  Status Commit(std::byte* address, uint64_t bytes) override {
    return SystemMemorySource()->Commit(address, bytes);
  }
  void Decommit(std::byte* address, uint64_t bytes) override {
    SystemMemorySource()->Decommit(address, bytes);
  }
  void Unmap(std::byte* address, uint64_t bytes) override {
    SystemMemorySource()->Unmap(address, bytes);
  }
};

MemorySource* PagesOf(const benchmark::State& state) {
  static SmallPages small;
  return state.range(0) != 0 ? SystemMemorySource() : &small;
}

bool IsNewEachTime(const benchmark::State& state) { return state.range(1) != 0; }

// The work that all kernels begin with: a tensor is computed.
void Compute(std::span<float> values) {
  float* const to = values.data();
  for (int32_t i = 0; i < static_cast<int32_t>(kFloats); ++i) to[i] = static_cast<float>(i);
}

// Makes the message anew, or in the memory that it has.
void Begin(const benchmark::State& state, Message* message) {
  const uint64_t bytes[] = {kTensorBytes};
  if (*message && !IsNewEachTime(state)) return;
  *message = Message();
  *message = Message::Make({}, bytes, PagesOf(state));
}

void CheckRead(std::span<const float> read) {
  EMBANK_CHECK(read.size() == kFloats && read[kFloats - 1] == static_cast<float>(kFloats - 1));
  benchmark::ClobberMemory();
}

void SetBytes(benchmark::State& state, uint64_t copied_bytes) {
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations() * kTensorBytes));
  state.counters["copied_bytes"] = static_cast<double>(copied_bytes);
}

// The tensor is computed where it is sent from, and read where it is.
void TensorInPlace(benchmark::State& state) {
  Message message;
  for (auto _ : state) {
    Begin(state, &message);
    Compute(message.Array<float>(0));
    CheckRead(message.View<float>(0));
  }
  SetBytes(state, message.copied_bytes());
}

// The same with one copy.
void TensorCopied(benchmark::State& state) {
  std::vector<float> values(kFloats);
  Message message;
  for (auto _ : state) {
    Compute(values);
    Begin(state, &message);
    message.Place(0, std::span<const float>(values));
    CheckRead(message.View<float>(0));
  }
  SetBytes(state, kTensorBytes);
}

// The number of 7 bits in a byte, the least first.
uint8_t* WriteVarint(uint64_t value, uint8_t* to) {
  for (; value >= 0x80; value >>= 7) *to++ = static_cast<uint8_t>(value | 0x80);
  *to++ = static_cast<uint8_t>(value);
  return to;
}

const uint8_t* ReadVarint(const uint8_t* from, uint64_t* value) {
  *value = 0;
  for (uint32_t shift = 0;; shift += 7) {
    const uint8_t byte = *from++;
    *value |= uint64_t{byte & 0x7Fu} << shift;
    if (byte < 0x80) return from;
  }
}

// Element by element into bytes, and from them into a tensor.
void TensorElements(benchmark::State& state) {
  std::vector<float> values(kFloats);
  std::optional<MessageMemory> encoded, decoded;
  uint64_t tag = kTag;
  benchmark::DoNotOptimize(tag);
  for (auto _ : state) {
    Compute(values);
    if (!encoded || IsNewEachTime(state)) {
      encoded.reset();
      decoded.reset();
      encoded.emplace(kFloats * kElementBytes, PagesOf(state));
      decoded.emplace(kTensorBytes, PagesOf(state));
    }
    auto* to = reinterpret_cast<uint8_t*>(encoded->data());
    for (const float value : values) {
      to = WriteVarint(tag, to);
      std::memcpy(to, &value, sizeof(value));
      to += sizeof(value);
    }
    benchmark::ClobberMemory();
    const auto* from = reinterpret_cast<const uint8_t*>(encoded->data());
    auto* const read = reinterpret_cast<float*>(decoded->data());
    for (uint64_t i = 0; i < kFloats; ++i) {
      uint64_t read_tag = 0;
      from = ReadVarint(from, &read_tag);
      EMBANK_CHECK(read_tag == tag);
      std::memcpy(read + i, from, sizeof(float));
      from += sizeof(float);
    }
    CheckRead({read, kFloats});
  }
  SetBytes(state, kTensorBytes + kFloats * kElementBytes);
}

void PagesAndMemory(benchmark::internal::Benchmark* kernel) {
  kernel->ArgNames({"huge_pages", "new_memory"})
      ->ArgsProduct({{0, 1}, {0, 1}})
      ->Unit(benchmark::kMillisecond);
}

BENCHMARK(TensorInPlace)->Apply(PagesAndMemory);
BENCHMARK(TensorCopied)->Apply(PagesAndMemory);
BENCHMARK(TensorElements)->Apply(PagesAndMemory);

}  // namespace
}  // namespace embank
