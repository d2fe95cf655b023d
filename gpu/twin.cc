#include "gpu/twin.h"

#include <cstring>

#include "base/check.h"
#include "base/no_throw_status.h"
#include "gpu/copy_pieces.h"
#include "gpu/gradient_rows.h"
#include "gpu/payload_step.h"

namespace embank {
namespace {

// A list in the order of its rows, as work finds it when it runs.
struct TwinList {
  const DeviceRow* rows;
  uint64_t count;
  uint64_t link_bytes;
};

TwinList ResolveList(const TwinMemory& memory, std::span<const DeviceRow> list) {
  EMBANK_CHECK(reinterpret_cast<uintptr_t>(list.data()) % alignof(DeviceRow) == 0);
  const TwinRange range = memory.Resolve(list.data());
  auto* const rows = reinterpret_cast<const DeviceRow*>(range.At(0, list.size_bytes()));
  return {rows, list.size(), range.is_device ? 0 : list.size_bytes()};
}

// An array whose rows have a known size.
struct TwinArray {
  TwinRange range;
  uint64_t stride_bytes;
  uint32_t row_bytes;

  std::byte* Row(uint64_t index) const { return range.At(index * stride_bytes, row_bytes); }
  // The array that kernels see: every row that is used is checked by Row first.
  DeviceArray rows() const { return {range.begin, stride_bytes}; }
  uint64_t LinkBytes(uint64_t count) const { return range.is_device ? 0 : count * row_bytes; }
};

TwinArray ResolveArray(const TwinMemory& memory, const DeviceArray& array, uint32_t row_bytes,
                       uint32_t alignment) {
  EMBANK_CHECK(reinterpret_cast<uintptr_t>(array.rows) % alignment == 0);
  EMBANK_CHECK(array.stride_bytes % alignment == 0);
  return {memory.Resolve(array.rows), array.stride_bytes, row_bytes};
}

TwinArray ResolveFloats(const TwinMemory& memory, const DeviceArray& array, uint32_t dim) {
  return ResolveArray(memory, array, dim * uint32_t{sizeof(float)}, sizeof(float));
}

// Payloads are at multiples of 16 bytes.
std::byte* PayloadPartAt(const TwinRange& row_memory, const DeviceRow& row, PayloadPart part) {
  EMBANK_CHECK(row.offset_bytes % 16 == 0);
  return row_memory.At(row.offset_bytes + part.offset_bytes, part.bytes);
}

// The payloads of a list; none, if it is empty.
struct TwinPayloads {
  TwinList list = {};
  TwinRange memory = {};

  uint64_t LinkBytes(uint32_t part_bytes) const {
    return list.link_bytes + (memory.is_device ? 0 : list.count * part_bytes);
  }
};

TwinPayloads ResolvePayloads(const TwinMemory& memory, const DevicePayloads& payloads) {
  if (payloads.list.empty()) return {};
  EMBANK_CHECK(reinterpret_cast<uintptr_t>(payloads.memory) % 16 == 0);
  return {ResolveList(memory, payloads.list), memory.Resolve(payloads.memory)};
}

// One Gather or Scatter.
struct RowCopies {
  TwinPayloads first;
  TwinPayloads second;
  TwinArray array;
  PayloadPart part;
  bool is_gather;

  template <uint32_t kUnit>
  void CopyAll(const TwinPayloads& payloads) const {
    for (uint64_t k = 0; k < payloads.list.count; ++k) {
      const DeviceRow& at = payloads.list.rows[k];
      std::byte* const payload = PayloadPartAt(payloads.memory, at, part);
      std::byte* const row = array.Row(at.index);
      for (uint32_t piece = 0; piece < CopyPieces(part.bytes, kUnit); ++piece) {
        CopyPiece<kUnit>(is_gather ? row : payload, is_gather ? payload : row, piece, part.bytes);
      }
    }
  }

  void Copy(const TwinPayloads& payloads) const {
    if (payloads.list.count == 0) return;
    const CopySide parts = {payloads.memory.begin + part.offset_bytes, 16};
    switch (CopyUnitBytes(parts, {array.range.begin, array.stride_bytes})) {
      case 16:
        return CopyAll<16>(payloads);
      case 8:
        return CopyAll<8>(payloads);
      case 4:
        return CopyAll<4>(payloads);
      default:
        return CopyAll<2>(payloads);
    }
  }

  void operator()() const {
    Copy(first);
    Copy(second);
  }
};

// One SumRows.
struct RowSums {
  TwinList list;
  TwinRange positions;
  TwinArray gradients;
  TwinArray sums;
  uint32_t dim;
  float limit;  // of terms

  void operator()() const {
    for (uint64_t k = 0; k < list.count; ++k) {
      const DeviceRow& row = list.rows[k];
      EMBANK_CHECK(row.count != 0);
      auto* const numbers = reinterpret_cast<const uint32_t*>(
          positions.At(uint64_t{row.index} * sizeof(uint32_t), row.count * sizeof(uint32_t)));
      for (uint32_t term = 0; term < row.count; ++term) gradients.Row(numbers[term]);
      auto* const sum = reinterpret_cast<float*>(sums.Row(k));
      const GradientTerms terms = {reinterpret_cast<const uint32_t*>(positions.begin),
                                   gradients.rows(), limit};
      for (uint32_t i = 0; i < dim; ++i) sum[i] = SumElement(row, terms, i);
    }
  }
};

// One StepRows.
template <Optimizer kOptimizer, ValueType kType>
struct RowSteps {
  TwinRange list;
  uint64_t count;
  TwinRange row_memory;
  TwinArray gradients;
  TwinRange seeds;
  uint64_t seeds_stride_bytes;
  StepNumbers numbers;
  uint32_t payload_bytes;

  void operator()() const {
    auto* const rows = reinterpret_cast<DeviceRow*>(list.At(0, count * sizeof(DeviceRow)));
    for (uint64_t k = 0; k < count; ++k) {
      std::byte* const payload = PayloadPartAt(row_memory, rows[k], {0, payload_bytes});
      const bool is_made = PayloadStep<kOptimizer, kType>(
                               numbers, payload, gradients.Row(rows[k].index), RoundingSeed(k))
                               .Run(HostLanes{});
      if (!is_made) rows[k].count = 0;
    }
  }

  uint64_t RoundingSeed(uint64_t k) const {
    if (numbers.rule.rounding == Rounding::kNearest) return 0;
    seeds.At(k * seeds_stride_bytes, sizeof(uint64_t));
    return RoundingSeedAt(numbers.rule, {seeds.begin, seeds_stride_bytes}, k);
  }
};

// The gradients that a list of SumRows names, as far as the host can know: a list in device memory
// may not be there yet.
uint64_t TermsOf(std::span<const DeviceRow> list, const TwinList& resolved) {
  if (resolved.link_bytes == 0) return list.size();
  uint64_t terms = 0;
  for (const DeviceRow& row : list) terms += row.count;
  return terms;
}

// One FindNotFinite.
uint64_t FirstNotFinite(const TwinArray& gradients, uint32_t rows, uint32_t dim) {
  for (uint32_t row = 0; row < rows; ++row) {
    auto* const values = reinterpret_cast<const float*>(gradients.Row(row));
    for (uint32_t i = 0; i < dim; ++i) {
      if (IsNotFinite(values[i])) return row;
    }
  }
  return rows;
}

}  // namespace

std::unique_ptr<Device> MakeTwin(const TwinOptions& options) {
  return std::make_unique<Twin>(options);
}

Twin::Twin(const TwinOptions& options)
    : memory_(options.memory != nullptr ? options.memory : SystemMemorySource(),
              options.memory_bytes),
      link_(options.clock != nullptr ? options.clock : SteadyClock(), options.link_bytes_per_second,
            options.link_latency_ns),
      streams_(options.seed) {}

Twin::~Twin() {
  streams_.RunUntil(TwinStreams::kOwn, streams_.enqueued(TwinStreams::kOwn));
  callers_.WaitForAll();
}

DeviceFigures Twin::figures() const {
  return {"twin", true, memory_.total_bytes(), memory_.free_bytes()};
}

StatusOr<std::byte*> Twin::Allocate(uint64_t bytes) {
  if (Status status = LostStatus(); !status.ok()) return status;
  return memory_.Allocate(TwinMemoryKind::kDevice, bytes);
}

void Twin::Free(std::byte* memory) {
  if (memory == nullptr) return;
  streams_.RunUntil(TwinStreams::kOwn, Record());
  memory_.Free(TwinMemoryKind::kDevice, memory);
}

StatusOr<std::byte*> Twin::AllocatePinned(uint64_t bytes) {
  if (Status status = LostStatus(); !status.ok()) return status;
  return memory_.Allocate(TwinMemoryKind::kPinned, bytes);
}

void Twin::FreePinned(std::byte* memory) {
  if (memory == nullptr) return;
  streams_.RunUntil(TwinStreams::kOwn, Record());
  memory_.Free(TwinMemoryKind::kPinned, memory);
}

bool Twin::Owns(const void* address, uint64_t bytes) const { return memory_.Owns(address, bytes); }

bool Twin::BeginWork() {
  if (is_lost_.load(std::memory_order_relaxed)) return false;
  const uint64_t lost_in = lost_in_.load(std::memory_order_relaxed);
  if (lost_in == 0) return true;
  lost_in_.store(lost_in - 1, std::memory_order_relaxed);  // work runs one piece at a time
  is_lost_.store(lost_in == 1, std::memory_order_relaxed);
  return lost_in != 1;
}

template <typename Body>
void Twin::Enqueue(uint64_t link_bytes, const Body& body) {
  enqueued_work_.fetch_add(1, std::memory_order_relaxed);
  const TwinWork work([this, body] {
    if (BeginWork()) body();
  });
  streams_.EnqueueWork(TwinStreams::kOwn, work, link_.Send(link_bytes));
}

void Twin::CopyRows(const DevicePayloads& first, const DevicePayloads& second, PayloadPart part,
                    const DeviceArray& array, bool is_gather) {
  EMBANK_CHECK(part.offset_bytes % 2 == 0 && part.bytes % 2 == 0);
  EMBANK_CHECK(first.list.size() + second.list.size() <= kListRowsMax);
  if ((first.list.empty() && second.list.empty()) || part.bytes == 0) return;
  const RowCopies copies = {ResolvePayloads(memory_, first), ResolvePayloads(memory_, second),
                            ResolveArray(memory_, array, part.bytes, 2), part, is_gather};
  Enqueue(copies.first.LinkBytes(part.bytes) + copies.second.LinkBytes(part.bytes) +
              copies.array.LinkBytes(first.list.size() + second.list.size()),
          copies);
}

void Twin::Gather(const DevicePayloads& first, const DevicePayloads& second, PayloadPart part,
                  DeviceArray to) {
  CopyRows(first, second, part, to, true);
}

void Twin::Scatter(std::byte* row_memory, std::span<const DeviceRow> list, PayloadPart part,
                   DeviceArray from) {
  CopyRows({row_memory, list}, {}, part, from, false);
}

void Twin::SumRows(std::span<const DeviceRow> list, const uint32_t* positions, uint32_t dim,
                   float limit, DeviceArray gradients, DeviceArray sums) {
  EMBANK_CHECK(dim >= 1 && dim <= kDimMax);
  EMBANK_CHECK(list.size() <= kListRowsMax);
  if (list.empty()) return;
  const RowSums work = {ResolveList(memory_, list),
                        memory_.Resolve(positions),
                        ResolveFloats(memory_, gradients, dim),
                        ResolveFloats(memory_, sums, dim),
                        dim,
                        LimitOfTerms(limit)};
  const uint64_t terms = TermsOf(list, work.list);
  const uint64_t positions_bytes = work.positions.is_device ? 0 : terms * sizeof(uint32_t);
  Enqueue(work.list.link_bytes + positions_bytes + work.gradients.LinkBytes(terms) +
              work.sums.LinkBytes(list.size()),
          work);
}

void Twin::StepRows(std::byte* row_memory, std::span<DeviceRow> list, const RowLayout& layout,
                    const UpdateRule& rule, DeviceArray gradients, DeviceArray seeds) {
  EMBANK_CHECK(layout.optimizer != Optimizer::kNone && layout.dim <= kDimMax);
  EMBANK_CHECK(list.size() <= kListRowsMax);
  if (list.empty()) return;
  EMBANK_CHECK(reinterpret_cast<uintptr_t>(list.data()) % alignof(DeviceRow) == 0);
  const TwinRange rows = memory_.Resolve(list.data());
  const TwinRange payloads = memory_.Resolve(row_memory);
  const TwinArray steps = ResolveFloats(memory_, gradients, layout.dim);
  EMBANK_CHECK(payloads.is_device);
  TwinRange seed_memory = {};
  uint64_t link_bytes = (rows.is_device ? 0 : list.size_bytes()) + steps.LinkBytes(list.size());
  if (rule.rounding != Rounding::kNearest) {
    EMBANK_CHECK(reinterpret_cast<uintptr_t>(seeds.rows) % alignof(uint64_t) == 0);
    EMBANK_CHECK(seeds.stride_bytes % alignof(uint64_t) == 0);
    seed_memory = memory_.Resolve(seeds.rows);
    link_bytes += seed_memory.is_device ? 0 : list.size() * sizeof(uint64_t);
  }
  const bool has_rule =
      WithStepOf(layout.optimizer, layout.value_type, [&]<Optimizer kOptimizer, ValueType kType>() {
        Enqueue(link_bytes, RowSteps<kOptimizer, kType>{
                                rows, list.size(), payloads, steps, seed_memory, seeds.stride_bytes,
                                NumbersOf(layout, rule), layout.payload_bytes()});
      });
  EMBANK_CHECK(has_rule);
}

void Twin::FindNotFinite(DeviceArray gradients, uint32_t rows, uint32_t dim, uint64_t* first_bad) {
  const TwinRange result = memory_.Resolve(first_bad);
  EMBANK_CHECK(!result.is_device);
  if (rows == 0) {
    return Enqueue(0, [result] { std::memset(result.At(0, sizeof(uint64_t)), 0, 8); });
  }
  const TwinArray array = ResolveFloats(memory_, gradients, dim);
  Enqueue(array.LinkBytes(rows), [result, array, rows, dim] {
    const uint64_t first = FirstNotFinite(array, rows, dim);
    std::memcpy(result.At(0, sizeof first), &first, sizeof first);
  });
}

void Twin::Copy(std::byte* to, const std::byte* from, uint64_t bytes) {
  if (bytes == 0) return;
  const bool to_device = TwinMemory::IsToken(to);
  const bool from_device = TwinMemory::IsToken(from);
  std::byte* const target = to_device ? memory_.Resolve(to).At(0, bytes) : to;
  const std::byte* const source = from_device ? memory_.Resolve(from).At(0, bytes) : from;
  Enqueue(to_device != from_device ? bytes : 0,
          [target, source, bytes] { std::memmove(target, source, bytes); });
}

DeviceEvent Twin::Record() { return streams_.enqueued(TwinStreams::kOwn); }

Status Twin::LostStatus() const {
  if (!is_lost_.load(std::memory_order_relaxed)) return OkStatus();
  return NoThrowStatus(StatusCode::kUnavailable, [] { return "the device is lost"; });
}

Status Twin::Wait(DeviceEvent event) {
  streams_.RunUntil(TwinStreams::kOwn, event);
  link_.WaitUntil(streams_.ReadyNs(TwinStreams::kOwn, event));
  return LostStatus();
}

StatusOr<TwinStreams::Stream> Twin::NumberOf(void* stream) {
  if (Status status = LostStatus(); !status.ok()) return status;
  return callers_.NumberOf(stream);
}

Status Twin::Join(void* stream) {
  const StatusOr<TwinStreams::Stream> number = NumberOf(stream);
  if (number.ok()) streams_.EnqueueWait(TwinStreams::kOwn, *number);
  return number.status();
}

Status Twin::Release(void* stream) {
  const StatusOr<TwinStreams::Stream> number = NumberOf(stream);
  if (number.ok()) streams_.EnqueueWait(*number, TwinStreams::kOwn);
  return number.status();
}

}  // namespace embank
