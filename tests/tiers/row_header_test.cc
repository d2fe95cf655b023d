#include "tiers/row/row_header.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <thread>
#include <vector>

#include "tests/support/random.h"

namespace embank::test::row_header_test {
namespace {

TEST(RowHeader, PacksAndUnpacksItsUsageWord) {
  Random random(1);
  for (int i = 0; i < 10'000; ++i) {
    const auto flags = static_cast<uint32_t>(random.Below(16));
    const auto heat = static_cast<uint32_t>(random.Below(kHeatMax + 1));
    const auto epoch = static_cast<HeatEpoch>(random.Below(256));
    const uint32_t usage = PackUsage(flags, heat, epoch);
    ASSERT_EQ(FlagsOf(usage), flags);
    ASSERT_EQ(HeatOf(usage, epoch), heat);
    ASSERT_EQ(usage >> 24, epoch);
  }
  EXPECT_EQ(PackUsage(0xF, kHeatMax, 0xFF), 0xFFFFFFFFu);
  EXPECT_EQ(PackUsage(1, 1, 1), 0x01000011u);
}

TEST(RowHeader, TheTableIsTheLowTwelveBitsUnderAnyVersion) {
  for (const uint32_t version : {0u, 1u, 7u, (1u << 20) - 1}) {
    for (const uint32_t table : {0u, 1u, 4094u, 4095u}) {
      EXPECT_EQ(TableOf(version * kVersionStep | table), table);
    }
  }
}

TEST(RowHeader, TheVersionIsOddWhileARowIsWrittenAndGrowsWithEveryWrite) {
  RowHeader header = {.key = 5, .identity = 77, .usage = 9};
  for (uint32_t write = 1; write <= 2000; ++write) {
    const auto table = static_cast<TableId>(write % (kTablesMax + 1));
    const uint32_t before = BeginRowWrite(&header);
    ASSERT_FALSE(IsBeingWritten(before));
    ASSERT_TRUE(IsBeingWritten(LoadIdentity(&header)));
    ASSERT_EQ(TableOf(LoadIdentity(&header)), TableOf(before));
    EndRowWrite(&header, before, table);
    ASSERT_FALSE(IsBeingWritten(LoadIdentity(&header)));
    ASSERT_EQ(LoadIdentity(&header) / kVersionStep, 2 * write);
    ASSERT_EQ(TableOf(LoadIdentity(&header)), table);
  }
  EXPECT_EQ(header.key, 5u);
  EXPECT_EQ(header.usage, 9u);
}

TEST(RowHeader, TheVersionWrapsWithoutTouchingTheTable) {
  RowHeader header = {.key = 5, .identity = 0xFFFFE000u | 77u, .usage = 9};
  EndRowWrite(&header, BeginRowWrite(&header), 77);
  EXPECT_EQ(header.identity, 77u);
}

TEST(RowHeader, ASlotThatHeldAnythingHasAnEvenVersionOnceItIsWritten) {
  for (const uint32_t former : {0u, 0x00001000u, 0xFFFFFFFFu, 0xFFFFF005u, 0x7FFFEABCu}) {
    RowHeader header = {.key = 5, .identity = former, .usage = 9};
    EndRowWrite(&header, BeginRowWrite(&header), 3);
    EXPECT_FALSE(IsBeingWritten(header.identity)) << former;
    EXPECT_EQ(TableOf(header.identity), 3) << former;
    EXPECT_NE(header.identity, former);
  }
}

TEST(RowHeader, ARetiredRowIsNobodysAndOfANewVersion) {
  RowHeader header = {.key = 5, .identity = 4 * kVersionStep | 77u, .usage = 9};
  RetireRow(&header);
  EXPECT_EQ(header.identity, 6 * kVersionStep | kNoTable);
  EXPECT_EQ(header.key, 5u);
}

TEST(RowHeader, HeatHalvesWithEveryEpochWhereverItsEightBitsWrap) {
  for (uint32_t written = 0; written < 256; ++written) {
    const uint32_t usage = PackUsage(5, 0xABCDE, static_cast<HeatEpoch>(written));
    for (uint32_t later = 0; later <= 127; ++later) {
      const auto now = static_cast<HeatEpoch>(written + later);
      const uint32_t expected = later >= 20 ? 0 : 0xABCDEu >> later;
      ASSERT_EQ(HeatOf(usage, now), expected) << written << " read " << later << " later";
      ASSERT_EQ(EpochsSince(usage, now), later);
    }
  }
}

TEST(RowHeader, AReaderOfAnOlderEpochSeesHeatAsItWasWritten) {
  for (uint32_t written = 0; written < 256; ++written) {
    const uint32_t usage = PackUsage(0, 1000, static_cast<HeatEpoch>(written));
    for (uint32_t earlier = 1; earlier <= 128; ++earlier) {
      const auto now = static_cast<HeatEpoch>(written - earlier);
      ASSERT_EQ(HeatOf(usage, now), 1000u);
      // A late touch neither ages the row nor turns its stamp back.
      ASSERT_EQ(TouchedUsage(usage, now, 1),
                PackUsage(kReferencedFlag | kGainedFlag, 1001, static_cast<HeatEpoch>(written)));
    }
  }
}

TEST(RowHeader, TouchingAddsAfterAgeingAndRenewsTheStamp) {
  EXPECT_EQ(TouchedUsage(PackUsage(3, 101, 7), 7, 1), PackUsage(3, 102, 7));
  EXPECT_EQ(TouchedUsage(PackUsage(3, 101, 7), 8, 1), PackUsage(3, 51, 8));
  EXPECT_EQ(TouchedUsage(PackUsage(3, 101, 7), 10, 4), PackUsage(3, 16, 10));
  EXPECT_EQ(TouchedUsage(PackUsage(3, 101, 250), 5, 2), PackUsage(3, 2, 5));
  EXPECT_EQ(TouchedUsage(PackUsage(3, 101, 255), 0, 0), PackUsage(3, 50, 0));
  EXPECT_EQ(TouchedUsage(PackUsage(3, kHeatMax, 1), 101, 0), PackUsage(3, 0, 101));
}

TEST(RowHeader, ATouchStartsFromTheWordAsItIsNotAsItWasSeen) {
  RowHeader header = {.key = 1, .identity = 2, .usage = PackUsage(9, 7, 3)};
  TouchHeat(&header, {2, PackUsage(9, 1, 1)}, 3, 2);
  EXPECT_EQ(header.usage, PackUsage(9 | kGainedFlag, 9, 3));
}

TEST(RowHeader, ATouchOfARowThatWasWrittenSinceOrGaveWayIsRefused) {
  RowHeader header = {.key = 1, .identity = 2, .usage = PackUsage(9, 7, 3)};
  const RowMark seen = LoadMark(&header);
  EndRowWrite(&header, BeginRowWrite(&header), 2);
  EXPECT_FALSE(TouchHeat(&header, seen, 3, 1)) << "written";
  const RowMark written = LoadMark(&header);
  EXPECT_TRUE(TouchHeat(&header, written, 3, 1));
  RetireRow(&header);
  EXPECT_FALSE(TouchHeat(&header, written, 3, 1)) << "retired";
  EndRowWrite(&header, BeginRowWrite(&header), 2);
  EXPECT_FALSE(TouchHeat(&header, written, 3, 1)) << "used again";
  EXPECT_EQ(header.usage, PackUsage(9 | kGainedFlag, 8, 3));
}

TEST(RowHeader, NoTouchIsLostBesideAWriter) {
  RowHeader header = {.key = 0, .identity = 5, .usage = PackUsage(0, 0, 1)};
  std::atomic<bool> stop{false};
  std::thread writer([&] {
    while (!stop.load()) EndRowWrite(&header, BeginRowWrite(&header), 5);
  });
  uint64_t refused = 0;
  for (int i = 0; i < 100'000; ++i) {
    while (!TouchHeat(&header, LoadMark(&header), 1, 1)) ++refused;
  }
  stop = true;
  writer.join();
  EXPECT_EQ(header.usage, PackUsage(kReferencedFlag | kGainedFlag, 100'000, 1));
  EXPECT_EQ(TableOf(header.identity), 5);
  std::printf("  touches refused %llu\n", static_cast<unsigned long long>(refused));
}

TEST(RowHeader, ALookupMarksTheRowAndARenewalDoesNot) {
  const uint32_t usage = PackUsage(4, 10, 9);
  EXPECT_EQ(FlagsOf(TouchedUsage(usage, 9, 1)), 4u | kReferencedFlag | kGainedFlag);
  EXPECT_EQ(FlagsOf(TouchedUsage(usage, 11, 1)), 4u | kReferencedFlag | kGainedFlag);
  EXPECT_EQ(FlagsOf(TouchedUsage(usage, 9, 0)), 4u);
  EXPECT_EQ(FlagsOf(TouchedUsage(usage, 11, 0)), 4u);
}

TEST(RowHeader, HeatSaturatesAndDoesNotSpillIntoTheStamp) {
  EXPECT_EQ(TouchedUsage(PackUsage(2, kHeatMax - 1, 9), 9, 1), PackUsage(3, kHeatMax, 9));
  EXPECT_EQ(TouchedUsage(PackUsage(2, kHeatMax - 1, 9), 9, 2), PackUsage(3, kHeatMax, 9));
  EXPECT_EQ(TouchedUsage(PackUsage(2, kHeatMax, 9), 9, 1), PackUsage(3, kHeatMax, 9));
  EXPECT_EQ(TouchedUsage(PackUsage(2, 5, 9), 9, 0xFFFFFFFFu), PackUsage(3, kHeatMax, 9));
  EXPECT_EQ(TouchedUsage(PackUsage(2, kHeatMax, 9), 10, 1), PackUsage(3, kHeatMax / 2 + 1, 10));
}

// The word's common case is told by one comparison of epoch and heat.
TEST(RowHeader, TheWordOfATouchedRowHasItsTouchedUsage) {
  constexpr uint32_t kIdentity = 0xABCDE123;
  for (const uint32_t heat : {0u, 1u, kHeatMax - 3, kHeatMax - 2, kHeatMax - 1, kHeatMax}) {
    for (const uint32_t epoch : {0u, 1u, 128u, 255u}) {
      for (const uint32_t later : {0u, 1u, 2u, 127u, 128u, 255u}) {
        for (const uint32_t touches : {0u, 1u, 2u, 65535u, kHeatMax - 1, kHeatMax, kHeatMax + 1}) {
          const auto stamp = static_cast<HeatEpoch>(epoch);
          const auto now = static_cast<HeatEpoch>(epoch + later);
          const RowMark mark = {kIdentity, PackUsage(8, heat, stamp)};
          const RowMark touched = MarkOf(TouchedWord(WordOf(mark), now, touches));
          ASSERT_EQ(touched.identity, kIdentity);
          ASSERT_EQ(touched.usage, TouchedUsage(mark.usage, now, touches))
              << "heat " << heat << " of " << epoch << ", " << later << " later, " << touches;
        }
      }
    }
  }
}

TEST(RowHeader, AnyHistoryOfTouchesGivesWhatAPlainCounterGives) {
  Random random(2);
  for (int history = 0; history < 300; ++history) {
    RowHeader header = {.key = 1, .identity = 2, .usage = PackUsage(9, 0, 0)};
    uint64_t heat = 0;
    uint64_t epoch = 0;
    for (int step = 0; step < 60; ++step) {
      const uint64_t epochs = random.OneIn(3) ? random.Below(random.OneIn(4) ? 128 : 4) : 0;
      const auto touches = static_cast<uint32_t>(random.Below(random.OneIn(5) ? 2'000'000 : 50));
      epoch += epochs;
      heat = std::min<uint64_t>((epochs < 64 ? heat >> epochs : 0) + touches, 1048575);
      TouchHeat(&header, LoadMark(&header), static_cast<HeatEpoch>(epoch), touches);
      ASSERT_EQ(HeatOf(header.usage, static_cast<HeatEpoch>(epoch)), heat);
    }
    EXPECT_EQ(FlagsOf(header.usage), 9u | kGainedFlag);
    EXPECT_EQ(header.key, 1u);
    EXPECT_EQ(header.identity, 2u);
  }
}

TEST(RowHeader, NoTouchOfAnyThreadIsLost) {
  RowHeader header = {.key = 0, .identity = 0, .usage = PackUsage(6, 0, 200)};
  std::vector<std::thread> threads;
  for (uint32_t t = 1; t <= 4; ++t) {
    threads.emplace_back([&header, t] {
      for (int i = 0; i < 20'000; ++i) TouchHeat(&header, LoadMark(&header), 200, t);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(header.usage, PackUsage(7, 20'000 * (1 + 2 + 3 + 4), 200));
}

}  // namespace
}  // namespace embank::test::row_header_test
