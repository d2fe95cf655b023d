// The sketch alone: it says no row hotter than it was, and most as hot as they were.
#include "store/placement/heat_sketch.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <vector>

#include "base/hash.h"
#include "store/checkpoint/manifest.h"
#include "store/placement/memory_plan.h"
#include "tests/support/failing_memory.h"
#include "tests/support/random.h"
#include "tiers/row/row_header.h"

namespace embank::test::heat_sketch_test {
namespace {

constexpr uint64_t kBytes = 4 * HeatSketch::kGrainBytes;

class HeatSketchTest : public testing::Test {
 protected:
  std::unique_ptr<HeatSketch> Make(uint64_t bytes = kBytes) {
    auto sketch = HeatSketch::Create(&memory_, &budget_, bytes);
    EXPECT_TRUE(sketch.ok()) << sketch.status();
    return *std::move(sketch);
  }
  static KeyHash HashOf(uint64_t n) { return HashKey(7, n); }
  // A hash of one block, with a fingerprint of its own.
  static KeyHash InOneBlock(uint32_t fingerprint) { return KeyHash{5} << 40 | fingerprint; }

  FailingMemory memory_;
  MemoryBudget budget_{0};
};

TEST_F(HeatSketchTest, SaysWhatARowLeftWithUntilItIsTaken) {
  const auto sketch = Make();
  EXPECT_EQ(sketch->Get(HashOf(1), 0), 0u);
  sketch->Put(HashOf(1), 77, 0);
  sketch->Put(HashOf(2), kHeatMax, 0);
  EXPECT_EQ(sketch->Get(HashOf(1), 0), 77u);
  EXPECT_EQ(sketch->Take(HashOf(1), 0), 77u);
  EXPECT_EQ(sketch->Get(HashOf(1), 0), 0u);
  EXPECT_EQ(sketch->Take(HashOf(1), 0), 0u);
  EXPECT_EQ(sketch->Take(HashOf(2), 0), kHeatMax);
}

TEST_F(HeatSketchTest, HalvesWithEachEpoch) {
  const auto sketch = Make();
  for (const uint64_t begin : {uint64_t{0}, uint64_t{250}, uint64_t{70'000}}) {
    sketch->Clear();
    sketch->Put(HashOf(0), 1, begin);  // the block's own epoch is that of its last change
    sketch->Put(HashOf(1), 100, begin);
    EXPECT_EQ(sketch->Get(HashOf(1), begin), 100u);
    EXPECT_EQ(sketch->Get(HashOf(1), begin + 1), 50u);
    EXPECT_EQ(sketch->Get(HashOf(1), begin + 3), 12u);
    EXPECT_EQ(sketch->Get(HashOf(1), begin), 100u) << "to look is to change nothing";
    EXPECT_EQ(sketch->Take(HashOf(1), begin + 5), 3u);
    sketch->Put(HashOf(1), kHeatMax, begin + 5);
    EXPECT_EQ(sketch->Get(HashOf(1), begin + 24), 1u);
    EXPECT_EQ(sketch->Get(HashOf(1), begin + 25), 0u);
    EXPECT_EQ(sketch->Get(HashOf(1), begin + 1000), 0u);
  }
}

// Another thread has moved on meanwhile.
TEST_F(HeatSketchTest, AnOlderEpochAgesNothing) {
  const auto sketch = Make();
  sketch->Put(InOneBlock(1), 100, 9);
  sketch->Put(InOneBlock(2), 60, 8);
  EXPECT_EQ(sketch->Get(InOneBlock(1), 8), 100u);
  EXPECT_EQ(sketch->Get(InOneBlock(2), 9), 60u);
  EXPECT_EQ(sketch->Get(InOneBlock(1), 10), 50u);
}

TEST_F(HeatSketchTest, InAFullBlockTheColdestGivesWay) {
  const auto sketch = Make();
  for (uint32_t fingerprint = 0; fingerprint < 12; ++fingerprint)
    sketch->Put(InOneBlock(fingerprint), 100 + fingerprint, 0);
  for (uint32_t fingerprint = 0; fingerprint < 12; ++fingerprint) {
    ASSERT_EQ(sketch->Get(InOneBlock(fingerprint), 0), 100 + fingerprint)
        << "there was space for all";
  }
  sketch->Put(InOneBlock(12), 500, 0);
  EXPECT_EQ(sketch->Get(InOneBlock(0), 0), 0u);
  EXPECT_EQ(sketch->Get(InOneBlock(1), 0), 101u);
  EXPECT_EQ(sketch->Get(InOneBlock(12), 0), 500u);
  // One that is not hotter than the coldest takes nobody's place.
  sketch->Put(InOneBlock(13), 101, 0);
  EXPECT_EQ(sketch->Get(InOneBlock(13), 0), 0u);
  EXPECT_EQ(sketch->Get(InOneBlock(1), 0), 101u);
  sketch->Put(InOneBlock(14), 102, 0);
  EXPECT_EQ(sketch->Get(InOneBlock(14), 0), 102u);
  EXPECT_EQ(sketch->Get(InOneBlock(1), 0), 0u);
  // Taking an entry frees its space.
  EXPECT_EQ(sketch->Take(InOneBlock(12), 0), 500u);
  sketch->Put(InOneBlock(15), 1, 0);
  EXPECT_EQ(sketch->Get(InOneBlock(15), 0), 1u);
  EXPECT_EQ(sketch->Get(InOneBlock(2), 0), 102u);
}

TEST_F(HeatSketchTest, TwoRowsWithOneFingerprintHaveTheHotterOnesHeat) {
  const auto sketch = Make();
  sketch->Put(InOneBlock(3), 5, 0);
  sketch->Put(InOneBlock(3), 9, 0);
  sketch->Put(InOneBlock(3), 2, 0);
  EXPECT_EQ(sketch->Get(InOneBlock(3), 0), 9u);
}

TEST_F(HeatSketchTest, FingerprintsAreToldApartByAllTheirBits) {
  const auto sketch = Make();
  for (uint32_t bit = 0; bit < HeatBlock::kFingerprintBits; bit += 2) {
    sketch->Put(InOneBlock(1u << bit), 10 + bit, 0);
  }
  EXPECT_EQ(sketch->Get(InOneBlock(0), 0), 0u);
  for (uint32_t bit = 0; bit < HeatBlock::kFingerprintBits; ++bit) {
    EXPECT_EQ(sketch->Get(InOneBlock(1u << bit), 0), bit % 2 == 0 ? 10 + bit : 0);
  }
}

// The heat with which rows left, in a plain map.
class Oracle {
 public:
  void Put(uint64_t key, uint32_t heat, uint64_t now) { left_[key] = {heat, now}; }
  void Take(uint64_t key) { left_.erase(key); }
  const std::map<uint64_t, std::pair<uint32_t, uint64_t>>& left() const { return left_; }
  static uint32_t HeatAt(const std::pair<uint32_t, uint64_t>& one, uint64_t now) {
    return now - one.second >= kHeatBits ? 0 : one.first >> (now - one.second);
  }

 private:
  std::map<uint64_t, std::pair<uint32_t, uint64_t>> left_;
};

// Four times the rows that it has entries for.
void Fill(HeatSketch* sketch, Oracle* oracle, uint64_t* now, KeyHash (*hash_of)(uint64_t)) {
  Random random(3);
  const uint64_t keys = 4 * HeatBlock::kEntries * sketch->blocks();
  for (uint64_t step = 0; step < 6 * keys; ++step) {
    const uint64_t key = random.Below(random.OneIn(2) ? keys : keys / 16);
    if (random.OneIn(3)) {
      oracle->Take(key);
      sketch->Take(hash_of(key), *now);
    } else if (oracle->left().count(key) == 0) {
      const auto heat = static_cast<uint32_t>(random.Between(1, random.OneIn(9) ? 3000 : 6));
      oracle->Put(key, heat, *now);
      sketch->Put(hash_of(key), heat, *now);
    }
    if (step % keys == keys / 2) ++*now;
  }
}

// The heat of all, and of how many it is said as it is; none is said to be hotter.
struct Told {
  uint64_t heat = 0;
  uint64_t missing = 0;
  uint64_t exact = 0;
};

Told Compare(const HeatSketch& sketch, uint64_t asked, const Oracle& oracle, uint64_t now,
             KeyHash (*hash_of)(uint64_t)) {
  Told told;
  for (const auto& [key, left] : oracle.left()) {
    const uint32_t exact = Oracle::HeatAt(left, now);
    const uint32_t heat = sketch.Get(hash_of(key), asked);
    EXPECT_LE(heat, exact) << key;
    told.heat += exact;
    told.missing += exact - heat;
    if (heat == exact) ++told.exact;
  }
  return told;
}

TEST_F(HeatSketchTest, NoRowIsSaidToBeHotterThanItWasAndTheHotOnesAreThere) {
  const auto sketch = Make();
  Oracle oracle;
  uint64_t now = 0;
  Fill(sketch.get(), &oracle, &now, &HashOf);
  const Told told = Compare(*sketch, now, oracle, now, &HashOf);
  EXPECT_LT(told.missing, told.heat / 8);
  EXPECT_GT(told.exact, oracle.left().size() / 5);
  EXPECT_LT(told.exact, oracle.left().size()) << "the sketch was too large for this test";
}

TEST_F(HeatSketchTest, CopiedBlocksMakeASketchOfAnySize) {
  const auto sketch = Make();
  Oracle oracle;
  uint64_t now = 0;
  Fill(sketch.get(), &oracle, &now, &HashOf);
  for (const uint64_t n : {1, 3, 4, 5, 17, 101, 103, 104, 105, 117}) {
    // The blocks change their size when they are copied, or when they are added.
    const uint64_t grains = n % 100;
    const auto other = Make(grains * HeatSketch::kGrainBytes);
    const uint64_t copied = n < 100 ? sketch->blocks() : other->blocks();
    for (uint64_t i = 0; i < copied; ++i) other->Add(copied, i, sketch->BlockIn(copied, i, now));
    const Told told = Compare(*other, 0, oracle, now, &HashOf);
    if (grains >= 4) {
      // Split blocks have entries of others' rows like their own, so that all that were put in are
      // found.
      EXPECT_LE(told.missing, told.heat / (grains == 5 ? 6 : 8)) << grains;
    } else {
      EXPECT_LT(told.missing, told.heat / 2) << grains;
    }
    if (grains == 4) {
      for (const auto& [key, left] : oracle.left()) {
        ASSERT_EQ(other->Get(HashOf(key), 0), sketch->Get(HashOf(key), now)) << key;
      }
    }
    other->Clear();
    EXPECT_EQ(other->Get(HashOf(1), 0), 0u);
  }
}

TEST_F(HeatSketchTest, BlocksAreThoseOfTheirHashes) {
  const auto sketch = Make(3 * HeatSketch::kGrainBytes);
  const uint64_t blocks = sketch->blocks();
  uint64_t last = 0;
  for (uint64_t upper = 0; upper < uint64_t{1} << 32; upper += 9'999'991) {
    const KeyHash hash = upper << 32 | 0xFFFFFFFF;
    const uint64_t block = sketch->BlockOf(hash);
    ASSERT_TRUE(block == last || block == last + 1) << upper;
    // The blocks of a shard are its own.
    ASSERT_EQ(block * 64 / blocks, hash >> 58);
    last = block;
  }
  EXPECT_EQ(last, blocks - 1);
}

TEST_F(HeatSketchTest, AnyBytesAreAsGoodAsASketch) {
  Random random(5);
  std::vector<HeatBlock> blocks(HeatSketch::kGrainBytes / sizeof(HeatBlock));
  for (std::byte& byte : std::as_writable_bytes(std::span(blocks))) {
    byte = static_cast<std::byte>(random.Below(256));
  }
  const auto sketch = Make();
  for (size_t i = 0; i < blocks.size(); ++i) sketch->Add(blocks.size(), i, blocks[i]);
  uint64_t found = 0;
  for (uint32_t fingerprint = 0; fingerprint < 1u << HeatBlock::kFingerprintBits; ++fingerprint) {
    const uint32_t heat = sketch->Get(InOneBlock(fingerprint), 0);
    if (heat == 0) continue;
    ++found;
    ASSERT_LE(heat, kHeatMax);
    ASSERT_EQ(sketch->Take(InOneBlock(fingerprint), 3), heat >> 3);
  }
  EXPECT_EQ(found, HeatBlock::kEntries);
}

TEST_F(HeatSketchTest, ItsSizeIsAPartOfTheBudgets) {
  constexpr uint64_t kGiB = uint64_t{1} << 30;
  EXPECT_EQ(HeatSketchBytes(64 * kGiB, 0), 2 * kGiB);
  EXPECT_EQ(HeatSketchBytes(64 * kGiB, 512 * kGiB), 2 * kGiB);
  EXPECT_EQ(HeatSketchBytes(64 * kGiB, 256 * kGiB), kGiB);
  EXPECT_EQ(HeatSketchBytes(0, 0), HeatSketch::kGrainBytes);
  EXPECT_EQ(HeatSketchBytes(kGiB, 1), HeatSketch::kGrainBytes);
  EXPECT_EQ(HeatSketchBytes(~uint64_t{0}, 0), HeatSketch::kBytesMax);
  for (const uint64_t bytes : {uint64_t{16'777'216}, uint64_t{100'000'001}}) {
    EXPECT_TRUE(HeatSketch::IsSize(HeatSketchBytes(bytes, 0)));
  }
  EXPECT_FALSE(HeatSketch::IsSize(0) || HeatSketch::IsSize(64) || HeatSketch::IsSize(4097));
}

// Without a limit of memory a checkpoint keeps a larger sketch than the store has.
TEST_F(HeatSketchTest, KeptOneHasABlockForEachSixRows) {
  StoreOptions options;
  constexpr uint64_t kGrain = HeatSketch::kGrainBytes;
  for (const auto& [sketch_bytes, rows, kept_bytes] :
       {std::array<uint64_t, 3>{kGrain, 0, kGrain},
        {kGrain, 6 * 64, kGrain},
        {kGrain, 6 * 65, 2 * kGrain},
        {3 * kGrain, 6 * 64 * 13, 24 * kGrain},
        {uint64_t{1} << 30, 1000, uint64_t{1} << 30},
        {kGrain, UINT64_MAX, HeatSketch::kBytesMax}}) {
    EXPECT_EQ(KeptSketchBytes(options, sketch_bytes, rows), kept_bytes) << rows;
    EXPECT_TRUE(HeatSketch::IsSize(kept_bytes));
  }
  options.ssd_bytes = uint64_t{1} << 44;
  EXPECT_EQ(KeptSketchBytes(options, kGrain, UINT64_MAX), uint64_t{1} << 36) << "a 256th";
  options.ssd_bytes = 256 * 23 * kGrain;
  EXPECT_EQ(KeptSketchBytes(options, 3 * kGrain, UINT64_MAX), 12 * kGrain);
  options.dram_bytes = uint64_t{1} << 30;
  EXPECT_EQ(KeptSketchBytes(options, 5 * kGrain, UINT64_MAX), 5 * kGrain);
}

// A store without a limit of memory has a sketch for the heat of the file and for its rows. One
// that is saved again need not grow, so that no entries are in more blocks than before.
TEST_F(HeatSketchTest, OneOfAFileHasSpaceForItsHeatAndRows) {
  constexpr uint64_t kGrain = HeatSketch::kGrainBytes;
  constexpr uint64_t kRowsOfGrain = 6 * 64;
  for (const auto& [bytes, sketch_bytes, rows, for_bytes] :
       {std::array<uint64_t, 4>{0, 0, 1000, 0},
        {kGrain, kGrain, 0, kGrain},
        {40 * kGrain, 64 * kGrain, 0, 64 * kGrain},
        {kGrain, 64 * kGrain, 0, 2 * kGrain},
        {kGrain, 64 * kGrain, 16 * kRowsOfGrain, 16 * kGrain},
        {kGrain, 64 * kGrain, 16 * kRowsOfGrain + 6, 32 * kGrain},
        {kGrain, 64 * kGrain, UINT64_MAX, 64 * kGrain},
        {kGrain, 24 * kGrain, 0, 3 * kGrain},
        {9 * kGrain, kGrain, 0, 9 * kGrain}}) {
    const HeatFile file = {.bytes = bytes, .sketch_bytes = sketch_bytes};
    EXPECT_EQ(file.SketchBytesFor(rows), for_bytes) << bytes << " of " << sketch_bytes;
    if (bytes == 0 || rows > 64 * kRowsOfGrain) continue;
    EXPECT_EQ(KeptSketchBytes({}, for_bytes, rows), for_bytes) << bytes << " of " << sketch_bytes;
  }
  EXPECT_EQ(HeatSketchBytesOfLog(0, 0, 9 * kGrain), 9 * kGrain);
}

TEST_F(HeatSketchTest, ItIsChargedOrRefused) {
  MemoryBudget budget(kBytes);
  auto sketch = HeatSketch::Create(&memory_, &budget, kBytes);
  ASSERT_TRUE(sketch.ok());
  EXPECT_EQ(budget.used_bytes(), kBytes);
  EXPECT_TRUE(IsResourceExhausted(HeatSketch::Create(&memory_, &budget, kBytes).status()));
  sketch->reset();
  EXPECT_EQ(budget.used_bytes(), 0u);
  memory_.FailCall(1);
  EXPECT_TRUE(IsResourceExhausted(HeatSketch::Create(&memory_, &budget, kBytes).status()));
  EXPECT_EQ(memory_.outstanding(), 0u);
}

}  // namespace
}  // namespace embank::test::heat_sketch_test
