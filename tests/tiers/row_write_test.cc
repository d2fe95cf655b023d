#include "tiers/row/row_write.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <thread>

namespace embank::test::row_write_test {
namespace {

constexpr TableId kTable = 7;
const RowLayout kLayout = MakeRowLayout(24, ValueType::kF32, Optimizer::kAdagrad);

// All payload bytes are the same.
bool IsUniform(const std::byte* payload, uint32_t bytes) {
  return std::memcmp(payload, payload + 1, bytes - 1) == 0;
}

TEST(ChangeRow, ShowsTheRowAsItIsAndKeepsWhatIsNotChanged) {
  alignas(64) RowImage row{};
  std::memset(row.bytes, 0x11, kLayout.row_bytes);
  RowHeader* const header = kLayout.Header(row.bytes);
  *header = {5, kTable, PackUsage(0, 9, 3)};
  const uint32_t before = LoadIdentity(header);
  ChangeRow(kLayout, kTable, row.bytes, [](std::byte* image) {
    EXPECT_EQ(kLayout.Vector(image)[0], std::byte{0x11});
    std::memset(kLayout.State(image), 0x22, kLayout.state_bytes());
  });
  EXPECT_TRUE(IsUniform(kLayout.Vector(row.bytes), kLayout.vector_bytes));
  EXPECT_EQ(kLayout.Vector(row.bytes)[0], std::byte{0x11});
  EXPECT_EQ(*reinterpret_cast<const std::byte*>(kLayout.State(row.bytes)), std::byte{0x22});
  const uint32_t after = LoadIdentity(header);
  EXPECT_EQ(TableOf(after), kTable);
  EXPECT_FALSE(IsBeingWritten(after));
  EXPECT_EQ(after - before, 2 * kVersionStep);
  EXPECT_EQ(LoadKey(header), 5u);
  EXPECT_EQ(HeatOf(header->usage, 3), 9u);
}

TEST(ChangeRow, AReaderWhoSeesTheSameVersionBeforeAndAfterSawAWholeRow) {
  alignas(64) static RowImage row{};
  RowHeader* const header = kLayout.Header(row.bytes);
  *header = {5, kTable, 0};
  std::atomic<bool> stop{false};
  std::thread writer([&] {
    for (uint32_t i = 0; !stop.load(); ++i) {
      ChangeRow(kLayout, kTable, row.bytes, [&](std::byte* image) {
        std::memset(kLayout.Vector(image), static_cast<int>(i % 251), kLayout.payload_bytes());
      });
    }
  });
  uint64_t whole = 0;
  uint64_t torn = 0;
  while (whole < 20'000) {
    const uint32_t identity = LoadIdentity(header);
    if (IsBeingWritten(identity)) continue;
    std::array<std::byte, 4096> copy;
    CopyFromRow(kLayout.Vector(row.bytes), kLayout.payload_bytes(), copy.data());
    AcquireFence();
    if (LoadIdentity(header) != identity) continue;
    ++whole;
    torn += IsUniform(copy.data(), kLayout.payload_bytes()) ? 0 : 1;
  }
  stop = true;
  writer.join();
  EXPECT_EQ(torn, 0u);
}

TEST(FaultIn, BringsEveryPageOfTheBytes) {
  const auto page_bytes = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  if (page_bytes != 4096) GTEST_SKIP() << "pages of " << page_bytes << " bytes";
  constexpr size_t kPages = 8;
  for (const size_t offset_bytes : {size_t{0}, size_t{1}, page_bytes - 1}) {
    for (const size_t count :
         {size_t{1}, size_t{2}, page_bytes, 2 * page_bytes + 1, 5 * page_bytes}) {
      void* const memory = mmap(nullptr, kPages * page_bytes, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      ASSERT_NE(memory, MAP_FAILED);
      ASSERT_EQ(madvise(memory, kPages * page_bytes, MADV_NOHUGEPAGE), 0);
      FaultIn(static_cast<const std::byte*>(memory) + offset_bytes, count);
      std::array<unsigned char, kPages> resident{};
      ASSERT_EQ(mincore(memory, kPages * page_bytes, resident.data()), 0);
      const size_t end_page = (offset_bytes + count - 1) / page_bytes + 1;
      for (size_t page = 0; page < kPages; ++page) {
        EXPECT_EQ(resident[page] & 1, page < end_page ? 1 : 0)
            << "page " << page << " of " << count << " bytes at " << offset_bytes;
      }
      munmap(memory, kPages * page_bytes);
    }
  }
}

}  // namespace
}  // namespace embank::test::row_write_test
