// Copies of parts of payloads, at every alignment that the interface permits.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "gpu/copy_pieces.h"
#include "gpu/twin.h"
#include "tests/gpu/device_arrays.h"
#include "tests/support/random.h"

namespace embank::test::device_copies_test {
namespace {

std::vector<std::byte> AnyBytes(size_t count, Random* random) {
  std::vector<std::byte> bytes(count);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random->Bits());
  return bytes;
}

// A list, the bytes of payloads, and the bytes of an array, all random.
struct Shape {
  explicit Shape(Random* random) {
    count = static_cast<uint32_t>(random->Between(1, 40));
    distance = 16 * random->Between(1, 20);
    part.offset_bytes = static_cast<uint32_t>(2 * random->Below(distance / 2));
    part.bytes = static_cast<uint32_t>(2 * random->Below((distance - part.offset_bytes) / 2 + 1));
    stride = part.bytes + 2 * random->Below(9);
    if (random->OneIn(2)) stride = RoundUp(stride, 16);
    offset = 2 * random->Below(9);
    payloads = AnyBytes(2 * count * distance, random);
    rows = AnyBytes(2 * count * stride + 1, random);
    std::vector<uint32_t> places(2 * count);
    std::vector<uint32_t> indices(2 * count);
    for (uint32_t i = 0; i < 2 * count; ++i) places[i] = indices[i] = i;
    for (size_t i = places.size(); i > 1; --i) {
      std::swap(places[i - 1], places[random->Below(i)]);
      std::swap(indices[i - 1], indices[random->Below(i)]);
    }
    for (uint32_t i = 0; i < count; ++i) list.push_back({places[i] * distance, indices[i]});
  }

  uint32_t count;
  uint64_t distance;
  PayloadPart part;
  uint64_t stride;
  uint64_t offset;  // of the array from its alignment
  std::vector<std::byte> payloads;
  std::vector<std::byte> rows;
  std::vector<DeviceRow> list;
};

TEST(Gather, CopiesThePartOfEachPayloadAndNothingElse) {
  Twin twin({});
  Random random(21);
  for (int round = 0; round < 300; ++round) {
    Shape shape(&random);
    DeviceArrays arrays(&twin);
    std::byte* const rows = arrays.Upload(shape.rows, shape.offset);
    twin.Gather({arrays.Upload(shape.payloads), arrays.PinnedCopy(shape.list)}, {}, shape.part,
                {rows, shape.stride});
    for (const DeviceRow& row : shape.list) {
      std::copy_n(shape.payloads.begin() + row.offset_bytes + shape.part.offset_bytes,
                  shape.part.bytes, shape.rows.begin() + row.index * shape.stride);
    }
    ASSERT_EQ(arrays.Download(rows, shape.rows.size()), shape.rows) << "round " << round;
  }
}

TEST(Scatter, ChangesThePartOfEachPayloadAndNothingElse) {
  Twin twin({});
  Random random(22);
  for (int round = 0; round < 300; ++round) {
    Shape shape(&random);
    DeviceArrays arrays(&twin);
    std::byte* const memory = arrays.Upload(shape.payloads);
    const std::span<std::byte> pinned = arrays.Pinned<std::byte>(shape.offset + shape.rows.size());
    std::ranges::copy(shape.rows, pinned.begin() + shape.offset);
    twin.Scatter(memory, arrays.PinnedCopy(shape.list), shape.part,
                 {pinned.data() + shape.offset, shape.stride});
    for (const DeviceRow& row : shape.list) {
      std::copy_n(shape.rows.begin() + row.index * shape.stride, shape.part.bytes,
                  shape.payloads.begin() + row.offset_bytes + shape.part.offset_bytes);
    }
    ASSERT_EQ(arrays.Download(memory, shape.payloads.size()), shape.payloads) << "round " << round;
  }
}

// The first payloads are in pinned memory, as those of rows from the host are.
TEST(Gather, CopiesThePayloadsOfTwoLists) {
  Twin twin({});
  Random random(24);
  for (int round = 0; round < 300; ++round) {
    Shape shape(&random);
    DeviceArrays arrays(&twin);
    std::vector<std::byte> others = AnyBytes(shape.payloads.size(), &random);
    std::byte* const rows = arrays.Upload(shape.rows, shape.offset);
    const size_t pinned = random.Below(shape.count + 1);
    const std::vector<DeviceRow> first(shape.list.begin(), shape.list.begin() + pinned);
    const std::vector<DeviceRow> second(shape.list.begin() + pinned, shape.list.end());
    DevicePayloads from_host = {arrays.PinnedCopy(others).data(), {}};
    DevicePayloads from_device = {arrays.Upload(shape.payloads), {}};
    if (!first.empty()) from_host.list = arrays.PinnedCopy(first);
    if (!second.empty()) from_device.list = arrays.PinnedCopy(second);
    twin.Gather(from_host, from_device, shape.part, {rows, shape.stride});
    for (size_t i = 0; i < shape.list.size(); ++i) {
      const DeviceRow& row = shape.list[i];
      const std::vector<std::byte>& from = i < pinned ? others : shape.payloads;
      std::copy_n(from.begin() + row.offset_bytes + shape.part.offset_bytes, shape.part.bytes,
                  shape.rows.begin() + row.index * shape.stride);
    }
    ASSERT_EQ(arrays.Download(rows, shape.rows.size()), shape.rows) << "round " << round;
  }
}

TEST(Gather, GivesOnePayloadToManyRows) {
  Twin twin({});
  DeviceArrays arrays(&twin);
  Random random(23);
  const std::vector<std::byte> payload = AnyBytes(32, &random);
  const std::span<std::byte> rows = arrays.Pinned<std::byte>(96);
  twin.Gather({arrays.Upload(payload), arrays.PinnedCopy<DeviceRow>({{0, 0}, {0, 2}, {0, 1}})}, {},
              {0, 32}, {rows.data(), 32});
  ASSERT_TRUE(twin.Wait(twin.Record()).ok());
  for (int row = 0; row < 3; ++row) {
    EXPECT_TRUE(std::ranges::equal(rows.subspan(row * 32, 32), payload));
  }
}

TEST(Copies, CopiesOfEmptyListsAndPartsEnqueueNothing) {
  Twin twin({});
  DeviceArrays arrays(&twin);
  std::byte* const memory = arrays.Memory(64);
  const uint64_t before = twin.enqueued_work();
  twin.Gather({memory, {}}, {}, {0, 16}, {nullptr, 0});
  twin.Scatter(memory, {}, {0, 16}, {nullptr, 0});
  twin.Gather({memory, arrays.PinnedCopy<DeviceRow>({{0, 0}})}, {}, {0, 0}, {nullptr, 0});
  twin.Copy(memory, nullptr, 0);
  EXPECT_EQ(twin.enqueued_work(), before);
}

TEST(Copy, GoesBetweenDevicePinnedAndAnyHostMemory) {
  Twin twin({});
  DeviceArrays arrays(&twin);
  Random random(24);
  const std::vector<std::byte> bytes = AnyBytes(1000, &random);
  const std::span<std::byte> pinned = arrays.Pinned<std::byte>(1000);
  std::byte* const first = arrays.Memory(1000);
  std::byte* const second = arrays.Memory(2000);
  std::vector<std::byte> copy(1000);
  twin.Copy(pinned.data(), bytes.data(), 1000);
  twin.Copy(first, pinned.data(), 1000);
  twin.Copy(second + 7, first, 1000);
  twin.Copy(copy.data(), second + 7, 1000);
  ASSERT_TRUE(twin.Wait(twin.Record()).ok());
  EXPECT_EQ(copy, bytes);
}

TEST(CopyUnitBytes, IsTheWidestThatFitsBothSides) {
  std::byte* const base = std::bit_cast<std::byte*>(uintptr_t{4096});
  EXPECT_EQ(CopyUnitBytes({base, 16}, {base, 512}), 16u);
  EXPECT_EQ(CopyUnitBytes({base + 8, 16}, {base, 512}), 8u);
  EXPECT_EQ(CopyUnitBytes({base, 16}, {base, 516}), 4u);
  EXPECT_EQ(CopyUnitBytes({base, 16}, {base + 2, 512}), 2u);
}

}  // namespace
}  // namespace embank::test::device_copies_test
