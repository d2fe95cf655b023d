#include "tools/gpu_identity.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "base/check.h"
#include "base/random.h"
#include "base/str_cat.h"
#include "tools/gpu_memory.h"

namespace embank {
namespace {

using Bytes = std::vector<std::byte>;

// Draws of one case.
class Draws {
 public:
  explicit Draws(uint64_t seed) : random_(seed) {}

  uint64_t Below(uint64_t limit) { return random_.Bits(next_++) % limit; }
  float Signed() { return 2.0f * random_.UnitFloat(next_++) - 1.0f; }
  float Unit() { return random_.UnitFloat(next_++); }
  // Ordinary numbers, zeros, subnormal and large ones.
  float Any() {
    constexpr float kScales[] = {0.0f, -0.0f, 1e-40f, 1e15f, 1e-15f};
    const uint64_t kind = Below(16);
    return kind < std::size(kScales) ? kScales[kind] * Unit() : Signed();
  }
  // A permutation of 0 .. count - 1.
  std::vector<uint32_t> Permutation(uint32_t count) {
    std::vector<uint32_t> order(count);
    for (uint32_t i = 0; i < count; ++i) order[i] = i;
    for (uint32_t i = count; i > 1; --i) std::swap(order[i - 1], order[Below(i)]);
    return order;
  }

 private:
  const CounterRandom random_;
  uint64_t next_ = 0;
};

void PutFloat(Bytes* bytes, uint64_t offset_bytes, float value) {
  std::memcpy(bytes->data() + offset_bytes, &value, sizeof value);
}

// A list of rows in random order at random distances.
struct ListCase {
  ListCase(uint32_t rows, uint64_t payload_bytes, Draws* draws)
      : distance(RoundUp(payload_bytes, 16) + 16 * draws->Below(3)), payloads(rows * distance) {
    const std::vector<uint32_t> places = draws->Permutation(rows);
    const std::vector<uint32_t> indices = draws->Permutation(rows);
    for (uint32_t i = 0; i < rows; ++i) list.push_back({places[i] * distance, indices[i]});
    for (std::byte& byte : payloads) byte = static_cast<std::byte>(draws->Below(256));
  }

  uint64_t distance;
  Bytes payloads;
  std::vector<DeviceRow> list;
};

// ---- steps ----

struct StepCase : ListCase {
  StepCase(const RowLayout& row_layout, uint32_t rows, Draws* draws)
      : ListCase(rows, row_layout.payload_bytes(), draws),
        layout(row_layout),
        stride(layout.dim * sizeof(float) + 4 * draws->Below(3)),
        gradients(rows * stride) {
    rule = {.learning_rate = 0.5f * draws->Unit() + 1e-3f,
            .beta1 = draws->Unit(),
            .beta2 = draws->Unit(),
            .epsilon = draws->Below(4) == 0 ? 0.0f : 1e-8f,
            .weight_decay = draws->Below(2) == 0 ? 0.0f : 0.1f * draws->Unit(),
            .initial_accumulator = 0.0f,
            .max_gradient_norm = draws->Below(4) == 0 ? draws->Unit() : 0.0f};
    if (layout.optimizer == Optimizer::kFtrl) {
      rule.ftrl_l1 = draws->Below(2) == 0 ? 0.0f : 0.1f * draws->Unit();
      rule.ftrl_l2 = draws->Below(2) == 0 ? 0.0f : draws->Unit();
    } else if (draws->Below(4) == 0) {
      rule.decoupled_weight_decay = draws->Unit();
    }
    if (layout.value_type != ValueType::kF32 && draws->Below(2) == 0) {
      rule.rounding = Rounding::kStochastic;
    }
    for (uint32_t row = 0; row < rows; ++row) seeds.push_back(draws->Below(~uint64_t{0}));
    for (uint32_t row = 0; row < rows; ++row) {
      for (uint32_t i = 0; i < layout.dim; ++i) {
        PutFloat(&gradients, row * stride + i * sizeof(float), draws->Any());
      }
      // A step that is not made.
      if (draws->Below(8) == 0) PutFloat(&gradients, row * stride, 3e38f);
      FillPayload(row * distance, draws);
    }
  }

  Bytes RunOn(Device* device, bool is_pinned) const {
    GpuMemory memory(device);
    std::byte* const rows = memory.Upload(payloads);
    std::byte* const g = is_pinned ? memory.Pin(gradients, 4) : memory.Upload(gradients, 4);
    const std::span<DeviceRow> steps = memory.PinList(list);
    auto* const pinned_seeds = reinterpret_cast<std::byte*>(memory.PinList(seeds).data());
    device->StepRows(rows, steps, layout, rule, {g, stride}, {pinned_seeds, sizeof(uint64_t)});
    Bytes result = memory.Download(rows, payloads.size());
    for (const DeviceRow& step : steps) result.push_back(static_cast<std::byte>(step.count));
    return result;
  }

  RowLayout layout;
  UpdateRule rule;
  uint64_t stride;
  Bytes gradients;
  std::vector<uint64_t> seeds;

 private:
  // Finite weights, sums that are not negative, and any count of Adam's steps.
  void FillPayload(uint64_t offset_bytes, Draws* draws) {
    for (uint32_t i = 0; i < layout.dim; ++i) {
      if (layout.value_type == ValueType::kF32) {
        PutFloat(&payloads, offset_bytes + i * sizeof(float), draws->Any());
        continue;
      }
      // All bits but the highest of the exponent: below 2 in both types.
      const auto half = static_cast<uint16_t>(draws->Below(0x10000) & 0xBFFF);
      std::memcpy(payloads.data() + offset_bytes + i * sizeof half, &half, sizeof half);
    }
    const uint64_t state = offset_bytes + layout.state_offset_bytes - 16;
    for (uint32_t i = 0; i < layout.state_floats; ++i) {
      PutFloat(&payloads, state + i * sizeof(float), std::abs(draws->Any()));
    }
    if (layout.optimizer == Optimizer::kAdam) {
      constexpr float kCounts[] = {0, 1, 2, 1000, 123457, 0x1p24f - 1, 0x1p24f};
      PutFloat(&payloads, state + 8ull * layout.dim, kCounts[draws->Below(std::size(kCounts))]);
    }
  }
};

// ---- copies ----

struct CopyCase : ListCase {
  CopyCase(uint32_t rows, uint64_t payload_bytes, Draws* draws)
      : ListCase(rows, payload_bytes, draws), others(payloads) {
    part.offset_bytes = static_cast<uint32_t>(2 * draws->Below(distance / 2));
    part.bytes = static_cast<uint32_t>(2 * (1 + draws->Below((distance - part.offset_bytes) / 2)));
    stride = part.bytes + 2 * draws->Below(9);
    if (draws->Below(2) == 0) stride = RoundUp(stride, 16);
    array_offset = draws->Below(2) == 0 ? 0 : 2 * draws->Below(9);
    is_gather = draws->Below(2) == 0;
    pinned_rows = draws->Below(2) == 0 ? 0 : draws->Below(rows + 1);
    array.resize(rows * stride);
    for (std::byte& byte : array) byte = static_cast<std::byte>(draws->Below(256));
    for (std::byte& byte : others) byte = ~byte;
  }

  Bytes RunOn(Device* device, bool is_pinned) const {
    GpuMemory memory(device);
    std::byte* const rows = memory.Upload(payloads);
    std::byte* const other =
        is_pinned ? memory.Pin(array, array_offset) : memory.Upload(array, array_offset);
    if (is_gather) {
      // Two lists apart, whose payloads differ in all bytes.
      const std::span<const DeviceRow> first = memory.PinList(list).first(pinned_rows);
      const std::span<const DeviceRow> second = memory.PinList(list).subspan(pinned_rows);
      device->Gather({memory.Pin(others), first}, {rows, second}, part, {other, stride});
      return memory.Download(other, array.size());
    }
    device->Scatter(rows, memory.PinList(list), part, {other, stride});
    return memory.Download(rows, payloads.size());
  }

  PayloadPart part;
  uint64_t stride;
  uint64_t array_offset;
  bool is_gather;
  uint64_t pinned_rows;  // of Gather: the first ones of the list
  Bytes others;          // their payloads
  Bytes array;
};

// ---- gradients ----

struct SumCase {
  SumCase(uint32_t any_dim, Draws* draws)
      : dim(any_dim),
        limit(draws->Below(2) == 0 ? 0.0f : draws->Unit()),
        gradients(kGradients * dim * 4) {
    for (uint64_t i = 0; i < uint64_t{kGradients} * dim; ++i) {
      PutFloat(&gradients, i * sizeof(float), draws->Any());
    }
    for (const uint32_t count : {1u, 2u, 31u, 32u, 33u, 64u, 65u, 1000u}) {
      list.push_back({0, static_cast<uint32_t>(positions.size()), count});
      for (uint32_t k = 0; k < count; ++k) {
        positions.push_back(static_cast<uint32_t>(draws->Below(kGradients)));
      }
    }
  }

  Bytes RunOn(Device* device, bool is_pinned) const {
    GpuMemory memory(device);
    std::byte* const g = is_pinned ? memory.Pin(gradients) : memory.Upload(gradients);
    std::byte* const sums = memory.OnDevice(list.size() * dim * sizeof(float));
    const uint64_t stride = dim * sizeof(float);
    device->SumRows(memory.PinList(list), memory.PinList(positions).data(), dim, limit, {g, stride},
                    {sums, stride});
    return memory.Download(sums, list.size() * stride);
  }

  static constexpr uint32_t kGradients = 300;
  uint32_t dim;
  float limit;
  Bytes gradients;
  std::vector<DeviceRow> list;
  std::vector<uint32_t> positions;
};

struct SearchCase {
  SearchCase(uint32_t any_dim, Draws* draws)
      : dim(any_dim),
        rows(static_cast<uint32_t>(1 + draws->Below(3000))),
        gradients(rows * dim * 4) {
    const uint64_t bad = draws->Below(4);
    for (uint64_t i = 0; i < bad; ++i) {
      PutFloat(&gradients, draws->Below(uint64_t{rows} * dim) * 4,
               i % 2 == 0 ? std::numeric_limits<float>::infinity()
                          : std::numeric_limits<float>::quiet_NaN());
    }
  }

  Bytes RunOn(Device* device, bool is_pinned) const {
    GpuMemory memory(device);
    std::byte* const g = is_pinned ? memory.Pin(gradients) : memory.Upload(gradients);
    std::byte* const first = memory.Pinned(sizeof(uint64_t));
    device->FindNotFinite({g, dim * sizeof(float)}, rows, dim, reinterpret_cast<uint64_t*>(first));
    memory.Wait();
    return Bytes(first, first + sizeof(uint64_t));
  }

  uint32_t dim;
  uint32_t rows;
  Bytes gradients;
};

// Every length up to 130 and some beyond; few of them in short runs.
std::vector<uint32_t> Dims(bool is_short) {
  if (is_short) return {1, 2, 31, 33, 128, 500};
  std::vector<uint32_t> dims;
  for (uint32_t dim = 1; dim <= 130; ++dim) dims.push_back(dim);
  for (const uint32_t dim : {200, 255, 256, 257, 511, 512, 513, 1000, 2048, 4095, 4096}) {
    dims.push_back(dim);
  }
  return dims;
}

class Comparison {
 public:
  Comparison(Device* device, Device* twin, bool is_short)
      : device_(device), twin_(twin), is_short_(is_short) {}

  IdentityCounts Run() {
    for (int32_t optimizer = 1; optimizer <= 5; ++optimizer) {
      for (int32_t type = 0; type < 3; ++type) {
        CompareSteps(static_cast<Optimizer>(optimizer), static_cast<ValueType>(type));
      }
    }
    for (uint32_t i = 0; i < (is_short_ ? 40 : 2000); ++i) {
      const auto rows = static_cast<uint32_t>(1 + draws_.Below(i % 20 == 0 ? 20'000 : 200));
      Compare(CopyCase(rows, 2 * (1 + draws_.Below(600)), &draws_), &counts_.copies, "copy");
    }
    // Lists of which a warp reads up to 32 rows at once and comes back for more, and long rows.
    for (uint32_t i = 0; i < (is_short_ ? 2 : 20); ++i) {
      Compare(CopyCase(is_short_ ? 20'001 : 300'001, 16 + 2 * draws_.Below(40), &draws_),
              &counts_.copies, "copy");
      Compare(CopyCase(33, 16'384, &draws_), &counts_.copies, "copy");
    }
    for (const uint32_t dim : Dims(is_short_)) {
      Compare(SumCase(dim, &draws_), &counts_.sums, "sum");
      Compare(SearchCase(dim, &draws_), &counts_.searches, "search");
    }
    return counts_;
  }

 private:
  void CompareSteps(Optimizer optimizer, ValueType type) {
    for (const uint32_t dim : Dims(is_short_)) {
      Compare(StepCase(MakeRowLayout(dim, type, optimizer), 33, &draws_), &counts_.steps, "step");
    }
    // More rows than a device has warps at once.
    const uint32_t rows = is_short_ ? 500 : 20'000;
    Compare(StepCase(MakeRowLayout(16, type, optimizer), rows, &draws_), &counts_.steps, "step");
  }

  template <typename Case>
  void Compare(const Case& one, uint64_t* count, const char* kind) {
    const bool is_pinned = draws_.Below(2) == 0;
    const Bytes here = one.RunOn(device_, is_pinned);
    const Bytes there = one.RunOn(twin_, is_pinned);
    ++*count;
    counts_.bytes += here.size();
    if (here == there) return;
    if (++counts_.mismatches == 1) {
      counts_.first_mismatch = StrCat(kind, ", case ", *count, ": ", Where(one));
    }
  }

  static std::string Where(const StepCase& one) {
    return StrCat("optimizer ", static_cast<int32_t>(one.layout.optimizer), ", type ",
                  static_cast<int32_t>(one.layout.value_type), ", dim ", one.layout.dim);
  }
  static std::string Where(const CopyCase& one) {
    return StrCat(one.is_gather ? "gather" : "scatter", " of ", one.part.bytes, " bytes");
  }
  static std::string Where(const SumCase& one) { return StrCat("dim ", one.dim); }
  static std::string Where(const SearchCase& one) { return StrCat("dim ", one.dim); }

  Device* const device_;
  Device* const twin_;
  const bool is_short_;
  Draws draws_{17};
  IdentityCounts counts_;
};

}  // namespace

IdentityCounts CompareDevices(Device* device, Device* twin, bool is_short) {
  return Comparison(device, twin, is_short).Run();
}

}  // namespace embank
