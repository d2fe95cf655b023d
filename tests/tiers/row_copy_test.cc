#include "tiers/row/row_copy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <deque>
#include <memory>
#include <thread>
#include <vector>

#include "tests/support/random.h"
#include "tiers/row/row_header.h"
#include "tiers/row/row_layout.h"

namespace embank::test::row_copy_test {
namespace {

constexpr uint32_t kBytesMax = 600;
constexpr uint32_t kAlignments = 16;
constexpr std::byte kPattern{0xA5};

uint32_t WholeWords(uint32_t bytes) { return (bytes + 7) / 8 * 8; }

// Memory of a row, words of it, with nothing behind: a sanitizer sees a word too many.
struct RowMemory {
  explicit RowMemory(uint32_t bytes) : words(WholeWords(bytes) / 8) {}
  std::byte* data() { return reinterpret_cast<std::byte*>(words.data()); }
  std::vector<uint64_t> words;
};

TEST(RowCopy, FromARowIsExactForEverySizeAndAlignment) {
  Random random(1);
  for (uint32_t bytes = 1; bytes <= kBytesMax; ++bytes) {
    RowMemory row(bytes);
    for (uint64_t& word : row.words) word = random.Bits();
    for (uint32_t alignment = 0; alignment < kAlignments; ++alignment) {
      std::vector<std::byte> to(kAlignments + bytes + 64, kPattern);
      CopyFromRow(row.data(), bytes, to.data() + alignment);
      const auto begin = to.begin() + alignment;
      ASSERT_TRUE(std::equal(begin, begin + bytes, row.data())) << bytes << " at " << alignment;
      const auto untouched = [](std::byte byte) { return byte == kPattern; };
      ASSERT_TRUE(std::all_of(to.begin(), begin, untouched)) << bytes << " at " << alignment;
      ASSERT_TRUE(std::all_of(begin + bytes, to.end(), untouched)) << bytes << " at " << alignment;
    }
  }
}

// A row in memory that ends with its vector, and the index entry that leads to it.
class WatchedRow {
 public:
  WatchedRow(uint32_t bytes, Random* random) : memory_(RowLayout::kVectorOffsetBytes + bytes) {
    for (uint64_t& word : memory_.words) word = random->Bits();
    *header() = {.key = 7, .identity = kIdentity, .usage = 9};
  }

  RowHeader* header() { return reinterpret_cast<RowHeader*>(memory_.data()); }
  std::byte* vector() { return memory_.data() + RowLayout::kVectorOffsetBytes; }
  RowWatch Watch() { return {header(), LoadMark(header()), {&entry_, entry_}}; }
  void MoveEntry() { ++entry_; }

  static constexpr TableId kTable = 3;

 private:
  static constexpr uint32_t kIdentity = kTable | 4 * kVersionStep;
  RowMemory memory_;
  std::atomic<uint64_t> entry_{5};
};

// Rows by columns, as a group has them.
struct WatchColumns {
  std::vector<RowHeader*> headers;
  std::vector<RowMark> marks;
  std::vector<Match> entries;

  void Add(const RowWatch& row) {
    headers.push_back(row.header);
    marks.push_back(row.mark);
    entries.push_back(row.entry);
  }
  RowWatches all() const { return {headers.data(), marks.data(), entries.data(), headers.size()}; }
};

TEST(RowCopy, CopiesOfVectorsAreExactForEverySizeAndAlignment) {
  Random random(3);
  std::vector<std::byte> image(kBytesMax);
  for (uint32_t bytes = 1; bytes <= kBytesMax; ++bytes) {
    WatchedRow rows[] = {{bytes, &random}, {bytes, &random}};
    for (uint32_t alignment = 0; alignment < kAlignments; ++alignment) {
      const uint32_t stride_bytes = bytes + 3;
      std::vector<std::byte> to(kAlignments + size_t{3} * stride_bytes + 64, kPattern);
      std::byte* const begin = to.data() + alignment;
      WatchColumns watches;
      for (const RowWatch& row : {rows[0].Watch(), RowWatch{}, rows[1].Watch()}) watches.Add(row);
      std::byte* const image_or_null = alignment % 2 == 0 ? image.data() : nullptr;
      ASSERT_EQ(CopyVectors(watches.all(), bytes, {begin, stride_bytes}, image_or_null), 0b101u);
      std::vector<std::byte> expected(to.size(), kPattern);
      std::copy_n(rows[0].vector(), bytes, expected.data() + alignment);
      std::copy_n(rows[1].vector(), bytes, expected.data() + alignment + size_t{2} * stride_bytes);
      ASSERT_EQ(to, expected) << bytes << " at " << alignment;
    }
  }
}

// Sums are added one row after the other, up to the first that does not stand: `stopped`.
TEST(RowCopy, SumsOfVectorsAreExactAndEndBeforeARowThatDidNotStand) {
  Random random(8);
  for (uint32_t dim = kAddedFloats; dim * sizeof(float) <= kHeldBytesMax; dim += kAddedFloats) {
    for (const size_t stopped : {size_t{0}, size_t{1}, size_t{7}, size_t{9}}) {
      const bool is_weighted = random.OneIn(2);
      std::deque<WatchedRow> rows;
      std::vector<float> weights(9);
      WatchColumns watches;
      // At an odd address, with a float that stays behind it.
      std::vector<std::byte> to(1 + (dim + 1) * sizeof(float), kPattern);
      std::vector<float> sums(dim + 1);
      std::memcpy(sums.data(), to.data() + 1, sums.size() * sizeof(float));
      for (size_t i = 0; i < 9; ++i) {
        WatchedRow& row = rows.emplace_back(dim * uint32_t{sizeof(float)}, &random);
        std::vector<float> values(dim);
        for (float& value : values) value = random.Signed();
        std::memcpy(row.vector(), values.data(), dim * sizeof(float));
        weights[i] = random.Signed();
        watches.Add(row.Watch());
        if (i == stopped && i % 2 == 1) row.MoveEntry();
        if (i == stopped && i % 2 == 0) watches.headers.back() = nullptr;
        for (uint32_t j = 0; j < dim && i < stopped; ++j) {
          sums[j] += is_weighted ? weights[i] * values[j] : values[j];
        }
      }
      const float* const factors = is_weighted ? weights.data() : nullptr;
      ASSERT_EQ(AddVectors(watches.all(), dim, factors, to.data() + 1), stopped);
      ASSERT_EQ(std::memcmp(to.data() + 1, sums.data(), sums.size() * sizeof(float)), 0)
          << "dim " << dim << ", " << stopped << " rows";
    }
  }
}

// A row that changed meanwhile is not written to the output: of any size with an image, up to 512
// bytes without one.
TEST(RowCopy, ACopyOfVectorsThatDidNotStandWritesNothing) {
  Random random(4);
  std::vector<std::byte> image(kBytesMax);
  for (uint32_t bytes = 1; bytes <= kBytesMax; ++bytes) {
    std::byte* const image_or_null = bytes > kHeldBytesMax ? image.data() : nullptr;
    for (const bool entry_moved : {false, true}) {
      WatchedRow row(bytes, &random);
      std::vector<std::byte> to(bytes, kPattern);
      const RowWatch watch = row.Watch();
      if (entry_moved) {
        row.MoveEntry();
      } else {
        BeginRowWrite(row.header());
      }
      ASSERT_EQ(CopyVectors(RowWatches::OfOne(watch), bytes, {to.data(), 0}, image_or_null), 0u)
          << bytes;
      ASSERT_EQ(to, std::vector<std::byte>(bytes, kPattern)) << bytes;
    }
  }
}

// A group of rows, some of which do not stand: the bits say which.
TEST(RowCopy, ACopyOfVectorsSaysWhichStood) {
  constexpr uint32_t kBytes = 64;
  Random random(5);
  std::vector<std::unique_ptr<WatchedRow>> rows;
  WatchColumns watches;
  std::vector<std::byte> to(kVectorCopiesMax * kBytes);
  uint32_t expected = 0;
  for (uint32_t i = 0; i < kVectorCopiesMax; ++i) {
    rows.push_back(std::make_unique<WatchedRow>(kBytes, &random));
    watches.Add(rows[i]->Watch());
    if (i % 3 == 1) {
      rows[i]->MoveEntry();
    } else {
      expected |= 1u << i;
    }
  }
  EXPECT_EQ(CopyVectors(watches.all(), kBytes, {to.data(), kBytes}, nullptr), expected);
}

// Beside a writer: a row that is reported as current is one value; any other was not written.
TEST(RowCopy, ACopyOfVectorsBesideAWriterIsWholeOrNothing) {
  for (const uint32_t bytes : {64u, 256u, 512u, 600u}) {
    Random random(6);
    WatchedRow row(bytes, &random);
    std::memset(row.vector(), 0, bytes);
    std::vector<std::byte> image(bytes);
    std::vector<std::byte> to(bytes);
    std::atomic<bool> stop{false};
    std::thread writer([&] {
      std::vector<std::byte> value(bytes);
      for (uint32_t i = 0; !stop; ++i) {
        std::memset(value.data(), static_cast<int>(i % 100), bytes);
        const uint32_t identity = BeginRowWrite(row.header());
        CopyToRow(value.data(), bytes, row.vector());
        EndRowWrite(row.header(), identity, WatchedRow::kTable);
        // Where both share a core, the reader would nearly always find it within a write.
        if (i % 16 == 0) std::this_thread::yield();
      }
    });
    const auto is_one_value = [&] {
      return std::all_of(to.begin(), to.end(), [&](std::byte byte) { return byte == to[0]; });
    };
    uint64_t stood = 0;
    uint64_t did_not_stand = 0;
    uint64_t torn = 0;
    const auto round = [&] {
      const RowWatch watch = row.Watch();
      if (IsBeingWritten(watch.mark.identity)) return std::this_thread::yield();
      std::fill(to.begin(), to.end(), kPattern);
      const bool is_whole =
          CopyVectors(RowWatches::OfOne(watch), bytes, {to.data(), 0}, image.data()) != 0;
      ++(is_whole ? stood : did_not_stand);
      torn += is_one_value() && (is_whole || to[0] == kPattern) ? 0 : 1;
    };
    while (stood < 100 || did_not_stand < 20) round();
    stop = true;
    writer.join();
    EXPECT_EQ(torn, 0u) << bytes << " bytes, " << stood << " stood, " << did_not_stand << " not";
  }
}

TEST(RowCopy, ToARowIsExactForEverySizeAndAlignment) {
  Random random(2);
  for (uint32_t bytes = 1; bytes <= kBytesMax; ++bytes) {
    for (uint32_t alignment = 0; alignment < kAlignments; ++alignment) {
      std::vector<std::byte> from(alignment + WholeWords(bytes));
      for (std::byte& byte : from) byte = static_cast<std::byte>(random.Bits());
      RowMemory row(bytes + 64);
      std::memset(row.data(), 0xA5, row.words.size() * 8);
      CopyToRow(from.data() + alignment, bytes, row.data());
      ASSERT_EQ(std::memcmp(row.data(), from.data() + alignment, bytes), 0);
      // Whole words, and none beyond.
      for (uint32_t i = WholeWords(bytes); i < row.words.size() * 8; ++i) {
        ASSERT_EQ(row.data()[i], kPattern) << bytes << " at " << alignment;
      }
    }
  }
}

TEST(RowCopy, ReadsAndWritesSingleWords) {
  RowMemory row(16);
  StoreRowWord(row.data() + 8, 0x0123456789ABCDEFu);
  EXPECT_EQ(row.words[0], 0u);
  EXPECT_EQ(row.words[1], 0x0123456789ABCDEFu);
  EXPECT_EQ(LoadRowWord(row.data() + 8), 0x0123456789ABCDEFu);
}

TEST(RowCopy, WordsAreNeverTornBesideAWriter) {
  constexpr uint32_t kBytes = 256;
  RowMemory row(kBytes);
  std::atomic<bool> stop{false};
  std::thread writer([&] {
    std::array<uint64_t, kBytes / 8> image;
    for (uint64_t value = 1; !stop; ++value) {
      image.fill(value << 32 | value);
      CopyToRow(reinterpret_cast<const std::byte*>(image.data()), kBytes, row.data());
    }
  });
  uint64_t torn = 0;
  for (int round = 0; round < 20'000; ++round) {
    for (uint32_t i = 0; i < kBytes; i += 8) {
      const uint64_t word = LoadRowWord(row.data() + i);
      torn += (word >> 32) != (word & 0xFFFFFFFFu) ? 1 : 0;
    }
  }
  stop = true;
  writer.join();
  EXPECT_EQ(torn, 0u);
}

}  // namespace
}  // namespace embank::test::row_copy_test
