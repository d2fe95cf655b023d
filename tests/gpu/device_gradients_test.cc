// Sums of gradients, and the search for numbers that are not finite.
#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <vector>

#include "gpu/twin.h"
#include "tests/gpu/device_arrays.h"
#include "tests/support/random.h"
#include "tiers/row/row_update.h"

namespace embank::test::device_gradients_test {
namespace {

std::span<const std::byte> BytesOf(const std::vector<float>& values) {
  return std::as_bytes(std::span(values));
}

// docs/arithmetic.md with the functions of rows in DRAM: runs of 32, then the sums of the runs.
std::vector<float> SumInRuns(const std::vector<const std::byte*>& gradients, uint32_t dim,
                             float limit) {
  std::vector<float> sum(dim);
  for (size_t begin = 0; begin < gradients.size(); begin += 32) {
    const size_t terms = std::min<size_t>(32, gradients.size() - begin);
    std::vector<float> run(dim);
    SumGradients(std::span(gradients).subspan(begin, terms), dim, limit, run.data());
    if (begin == 0) {
      sum = run;
    } else {
      AddSum(run.data(), dim, sum.data());
    }
  }
  return sum;
}

TEST(SumRows, AddsInRunsOf32AsRowsInDramDo) {
  Twin twin({});
  Random random(5);
  for (const uint32_t dim : {1u, 3u, 31u, 32u, 33u, 100u, 128u, 4096u}) {
    const float limit = dim % 2 == 0 ? 0.0f : 0.25f;  // 0: they are not clipped
    constexpr uint32_t kGradients = 700;
    std::vector<float> gradients(size_t{kGradients} * (dim + 1));
    for (float& g : gradients) g = random.Signed();
    std::vector<uint32_t> positions;
    std::vector<DeviceRow> list;
    std::vector<std::vector<const std::byte*>> terms;
    for (const uint32_t count : {1u, 2u, 31u, 32u, 33u, 64u, 65u, 300u}) {
      list.push_back({0, static_cast<uint32_t>(positions.size()), count});
      terms.emplace_back();
      for (uint32_t k = 0; k < count; ++k) {
        positions.push_back(static_cast<uint32_t>(random.Below(kGradients)));
        terms.back().push_back(
            reinterpret_cast<const std::byte*>(&gradients[size_t{positions.back()} * (dim + 1)]));
      }
    }
    DeviceArrays arrays(&twin);
    const uint64_t stride = (dim + 1) * sizeof(float);
    const std::span<float> sums = arrays.Pinned<float>(list.size() * (dim + 1));
    std::ranges::fill(sums, 77.0f);
    twin.SumRows(arrays.PinnedCopy(list), arrays.PinnedCopy(positions).data(), dim, limit,
                 {arrays.Upload(BytesOf(gradients)), stride},
                 {reinterpret_cast<std::byte*>(sums.data()), stride});
    ASSERT_TRUE(twin.Wait(twin.Record()).ok());
    for (size_t row = 0; row < list.size(); ++row) {
      std::vector<float> expected = SumInRuns(terms[row], dim, limit);
      expected.push_back(77.0f);  // nothing is written behind a row
      const std::span<float> sum = sums.subspan(row * (dim + 1), dim + 1);
      ASSERT_EQ(std::vector<float>(sum.begin(), sum.end()), expected)
          << terms[row].size() << " gradients of dim " << dim;
    }
  }
}

TEST(SumRows, KeepsTheSignOfZero) {
  Twin twin({});
  DeviceArrays arrays(&twin);
  const std::span<float> sum = arrays.Pinned<float>(1);
  twin.SumRows(arrays.PinnedCopy<DeviceRow>({{0, 0, 2}}),
               arrays.PinnedCopy<uint32_t>({0, 0}).data(), 1, 0.0f,
               {arrays.Upload(BytesOf({-0.0f})), 4}, {reinterpret_cast<std::byte*>(sum.data()), 4});
  ASSERT_TRUE(twin.Wait(twin.Record()).ok());
  EXPECT_TRUE(std::signbit(sum[0]));
}

TEST(FindNotFinite, NamesTheFirstRowWithNanOrInfinity) {
  Twin twin({});
  constexpr uint32_t kRows = 9;
  for (const uint32_t dim : {1u, 5u, 32u, 70u}) {
    DeviceArrays arrays(&twin);
    std::vector<float> gradients(kRows * dim, std::numeric_limits<float>::max());
    const std::span<uint64_t> first = arrays.Pinned<uint64_t>(1);
    const auto find = [&] {
      twin.FindNotFinite({arrays.Upload(BytesOf(gradients)), dim * sizeof(float)}, kRows, dim,
                         first.data());
      EXPECT_TRUE(twin.Wait(twin.Record()).ok());
      return first[0];
    };
    EXPECT_EQ(find(), kRows);
    const float bad_values[] = {std::numeric_limits<float>::quiet_NaN(),
                                std::numeric_limits<float>::infinity(),
                                -std::numeric_limits<float>::infinity()};
    for (uint32_t row = kRows; row-- > 0;) {
      const uint32_t element = (row * 7) % dim;
      gradients[row * dim + element] = bad_values[row % 3];
      EXPECT_EQ(find(), row) << "dim " << dim;  // rows behind it are bad, too
    }
  }
}

TEST(FindNotFinite, LooksAtTheRowsAndNotBetweenThem) {
  Twin twin({});
  DeviceArrays arrays(&twin);
  const float infinity = std::numeric_limits<float>::infinity();
  const std::span<uint64_t> first = arrays.PinnedCopy<uint64_t>({77});
  std::byte* const rows = arrays.Upload(BytesOf({1, 2, infinity, 3, 4, infinity}));
  twin.FindNotFinite({rows, 12}, 2, 2, first.data());
  ASSERT_TRUE(twin.Wait(twin.Record()).ok());
  EXPECT_EQ(first[0], 2u);
  twin.FindNotFinite({rows, 12}, 0, 2, first.data());
  ASSERT_TRUE(twin.Wait(twin.Record()).ok());
  EXPECT_EQ(first[0], 0u);
}

}  // namespace
}  // namespace embank::test::device_gradients_test
