// The HBM tier that suites give to their stores when they run once more, with EMBANK_TEST_HBM set:
// a twin of a device, with little memory, so that rows come and go. EMBANK_TEST_HBM=cuda: the first
// device of CUDA, in a build with CUDA.
#ifndef EMBANK_TESTS_SUPPORT_HBM_TIER_H_
#define EMBANK_TESTS_SUPPORT_HBM_TIER_H_

#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "bindings/c/embank.h"
#include "gpu/device.h"
#include "store/store.h"
#include "tests/support/random.h"

namespace embank::test {

inline bool WithHbm() { return std::getenv("EMBANK_TEST_HBM") != nullptr; }

// The cuda_device of these stores.
inline int32_t TestDevice() {
  const char* const kind = std::getenv("EMBANK_TEST_HBM");
  return kind != nullptr && std::strcmp(kind, "cuda") == 0 ? 0 : -1;
}

// Draws the tier of a store that is opened to be changed: its size, and how often it is flushed.
inline void AddHbm(embank_store_options* options, uint64_t seed) {
  if (!WithHbm()) return;
  constexpr std::array<uint64_t, 4> kBytes = {64 << 10, 200 << 10, 1 << 20, 4 << 20};
  constexpr std::array<uint32_t, 4> kFlushIters = {1, 7, 100, UINT32_MAX};
  Random random(seed ^ 0x4B3);
  // Headers of rows and buffers take DRAM.
  if (options->dram_bytes != 0) options->dram_bytes += uint64_t{4} << 20;
  options->cuda_device = TestDevice();
  options->hbm_bytes = kBytes[random.Below(kBytes.size())];
  options->warmup_iters = static_cast<uint32_t>(random.Between(1, 4));
  options->flush_iters = kFlushIters[random.Below(kFlushIters.size())];
}

// A twin whose work is late, now and then earlier. nullptr: the store opens the device of CUDA.
inline std::unique_ptr<Device> MakeLateTwin(uint64_t seed) {
  return TestDevice() >= 0 ? nullptr : MakeTwin({.seed = seed % 3});
}

}  // namespace embank::test

#endif  // EMBANK_TESTS_SUPPORT_HBM_TIER_H_
