#include "tools/gpu_rates.h"

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/random.h"
#include "tools/gpu_memory.h"

namespace embank {
namespace {

constexpr uint32_t kDim = 128;
constexpr uint32_t kVectorBytes = kDim * sizeof(float);
constexpr uint64_t kPayloadBytes = 2 * kVectorBytes;  // vector and Adagrad's state

// Returns the median seconds of one work() of some that are enqueued together.
template <typename Work>
double MedianSeconds(GpuMemory* memory, uint32_t together, Work work) {
  constexpr uint32_t kWarmUps = 3;
  constexpr uint32_t kSamples = 15;
  std::vector<double> seconds;
  for (uint32_t sample = 0; sample < kWarmUps + kSamples; ++sample) {
    const auto begin = std::chrono::steady_clock::now();
    for (uint32_t i = 0; i < together; ++i) work();
    memory->Wait();
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    if (sample >= kWarmUps) seconds.push_back(took.count() / together);
  }
  std::ranges::nth_element(seconds, seconds.begin() + kSamples / 2);
  return seconds[kSamples / 2];
}

double Giga(double bytes, double seconds) { return bytes / seconds / 1e9; }

// Rows at random places; each has the next row of the other array.
std::vector<DeviceRow> AnyRows(uint32_t rows) {
  std::vector<DeviceRow> list(rows);
  for (uint32_t i = 0; i < rows; ++i) list[i] = {i * kPayloadBytes, i};
  const CounterRandom random(3);
  for (uint32_t i = rows; i > 1; --i) {
    std::swap(list[i - 1].offset_bytes, list[random.Bits(i) % i].offset_bytes);
  }
  return list;
}

// The list is in device memory, as the bytes of a large batch should be.
std::span<DeviceRow> Upload(GpuMemory* memory, const std::vector<DeviceRow>& list) {
  auto* const rows = memory->Upload(std::as_bytes(std::span(list)));
  return {reinterpret_cast<DeviceRow*>(rows), list.size()};
}

// Lookups whose lists and missed rows are in pinned memory, as a store has them.
LookupRates MeasureLookups(GpuMemory* memory, std::byte* payloads, uint32_t payload_rows,
                           uint32_t batch) {
  const uint32_t hits = batch * 95 / 100;
  const uint64_t batch_bytes = uint64_t{batch} * kVectorBytes;
  std::vector<DeviceRow> hit_list = AnyRows(payload_rows);
  hit_list.resize(batch);
  for (uint32_t i = 0; i < batch; ++i) hit_list[i].index = i;
  std::vector<DeviceRow> missed_list(batch);
  for (uint32_t i = 0; i < batch; ++i) missed_list[i] = {uint64_t{i} * kVectorBytes, i};
  const std::span<const DeviceRow> hit = memory->PinList(hit_list);
  const std::span<const DeviceRow> missed = memory->PinList(missed_list);
  std::byte* const staged = memory->Pinned(batch_bytes);
  const DeviceArray answer = {memory->OnDevice(batch_bytes), kVectorBytes};
  Device* const device = memory->device();
  const PayloadPart vector = {0, kVectorBytes};
  const auto microseconds = [&](auto work) { return 1e6 * MedianSeconds(memory, 1, work); };
  return {
      .rows = batch,
      .copied_us = microseconds([&] { device->Copy(answer.rows, staged, batch_bytes); }),
      .all_missed_us = microseconds([&] {
        device->Gather({staged, missed}, {}, vector, answer);
      }),
      .most_hit_us = microseconds([&] {
        device->Gather({staged, missed.subspan(hits)}, {payloads, hit.first(hits)}, vector, answer);
      }),
      .all_hit_us = microseconds([&] {
        device->Gather({}, {payloads, hit}, vector, answer);
      })};
}

}  // namespace

GpuRates MeasureRates(Device* device, uint32_t rows) {
  constexpr uint32_t kTogether = 10;
  GpuRates rates;
  rates.rows = rows;
  GpuMemory memory(device);
  const uint64_t payload_rows = std::max(rows, 8192u);
  const uint64_t array_bytes = uint64_t{rows} * kVectorBytes;
  std::byte* const payloads = memory.Upload(std::vector<std::byte>(payload_rows * kPayloadBytes));
  std::byte* const array = memory.Upload(std::vector<std::byte>(array_bytes));
  std::byte* const pinned = memory.Pinned(array_bytes);
  const std::span<DeviceRow> list = Upload(&memory, AnyRows(rows));
  const double bytes = static_cast<double>(array_bytes);
  rates.copy = Giga(2 * bytes, MedianSeconds(&memory, kTogether,
                                             [&] { device->Copy(payloads, array, array_bytes); }));
  rates.gather =
      Giga(2 * bytes, MedianSeconds(&memory, kTogether, [&] {
             device->Gather({payloads, list}, {}, {0, kVectorBytes}, {array, kVectorBytes});
           }));
  const RowLayout layout = MakeRowLayout(kDim, ValueType::kF32, Optimizer::kAdagrad);
  EMBANK_CHECK(layout.payload_bytes() == kPayloadBytes);
  // Vector and state are read and written, gradients read.
  rates.adagrad_step =
      Giga(5 * bytes, MedianSeconds(&memory, kTogether, [&] {
             device->StepRows(payloads, list, layout, {}, {array, kVectorBytes}, {});
           }));
  rates.to_device =
      Giga(bytes, MedianSeconds(&memory, 2, [&] { device->Copy(array, pinned, array_bytes); }));
  rates.to_host =
      Giga(bytes, MedianSeconds(&memory, 2, [&] { device->Copy(pinned, array, array_bytes); }));
  for (const uint32_t batch : {8'192u, 65'536u, 524'288u}) {
    if (batch > payload_rows) break;
    rates.lookups.push_back(
        MeasureLookups(&memory, payloads, static_cast<uint32_t>(payload_rows), batch));
  }
  return rates;
}

}  // namespace embank
