#include "bench/probe_table.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <vector>

#include "base/random.h"

namespace embank::probe_table_test {
namespace {

std::vector<Key> SomeKeys(uint64_t n) {
  const CounterRandom random(3);
  std::vector<Key> keys(n);
  for (uint64_t i = 0; i < n; ++i) keys[i] = random.Bits(i);
  return keys;
}

std::unique_ptr<ProbeTable> FilledTable(const RowLayout& layout, const std::vector<Key>& keys) {
  std::unique_ptr<ProbeTable> table = *ProbeTable::Create({keys.size(), layout, PageKind::kHuge});
  const KeySpan all(keys);
  for (size_t first = 0; first < keys.size(); first += 1000) {
    table->Fill(all.subspan(first, std::min<size_t>(1000, keys.size() - first)));
  }
  table->FindRows(keys);
  return table;
}

TEST(ProbeTable, EveryKeyHasARowOfItsOwn) {
  for (const uint64_t n : {uint64_t{1}, uint64_t{2}, uint64_t{5}, uint64_t{200'000}}) {
    const std::vector<Key> keys = SomeKeys(n);
    const auto table = FilledTable(MakeRowLayout(1, ValueType::kF32, Optimizer::kNone), keys);
    std::vector<bool> taken(n);
    for (const Key key : keys) {
      const uint64_t row = table->RowOf(key);
      ASSERT_LT(row, n);
      ASSERT_FALSE(taken[row]) << key;
      taken[row] = true;
    }
  }
}

TEST(ProbeTable, IndexHasALineForFiveRows) {
  EXPECT_NEAR(static_cast<double>(ProbeTable::IndexBytes(12'000'000)) / 12e6, 64 / 4.9, 0.01);
}

// 1 KiB is in no case of its own; 3 floats are less than a line, 17 one and a part of it.
TEST(ProbeTable, ReadModifyWriteAddsToAllThatGatherReads) {
  for (const uint32_t dim : {3u, 16u, 17u, 32u, 64u, 128u, 256u}) {
    const std::vector<Key> keys = SomeKeys(150);
    const auto table = FilledTable(MakeRowLayout(dim, ValueType::kF32, Optimizer::kAdagrad), keys);
    std::vector<float> out(keys.size() * dim);
    table->Gather(keys, reinterpret_cast<std::byte*>(out.data()));
    for (const float value : out) ASSERT_EQ(value, 1.0f) << dim;
    table->ReadModifyWrite(keys);
    table->ReadModifyWrite(KeySpan(keys).first(70));
    table->Gather(keys, reinterpret_cast<std::byte*>(out.data()));
    for (size_t i = 0; i < out.size(); ++i) {
      ASSERT_EQ(out[i], 1.0f + (i < 70 * dim ? 2 : 1) * 0x1p-10f) << dim << " " << i;
    }
  }
}

TEST(ProbeTable, RandomRowsAreRows) {
  const RowLayout layout = MakeRowLayout(16, ValueType::kF32, Optimizer::kNone);
  const auto table = *ProbeTable::Create({1000, layout, PageKind::kSmall});
  table->SetRandomRows(5);
  for (const Key key : SomeKeys(5000)) ASSERT_LT(table->RowOf(key), 1000u);
}

TEST(ProbeTable, TakesAnotherShapeInTheSameMemory) {
  const auto table = *ProbeTable::Create(
      {100'000, MakeRowLayout(16, ValueType::kF32, Optimizer::kNone), PageKind::kHuge});
  const RowLayout large = MakeRowLayout(128, ValueType::kF32, Optimizer::kNone);
  table->Reshape(1000, large);
  const std::vector<Key> keys = SomeKeys(1000);
  table->Fill(keys);
  table->FindRows(keys);
  std::vector<float> out(1000 * 128);
  table->Gather(keys, reinterpret_cast<std::byte*>(out.data()));
  for (const float value : out) ASSERT_EQ(value, 1.0f);
}

TEST(ProbeKernels, StreamsReadWhatTheyWrote) {
  std::vector<uint64_t> memory(9 * 8);
  WriteStream(reinterpret_cast<std::byte*>(memory.data()), 9 * 64);
  constexpr uint64_t kTwoOnes = 0x3F8000003F800000;
  for (const uint64_t word : memory) EXPECT_EQ(word, kTwoOnes);
  EXPECT_EQ(ReadStream(reinterpret_cast<const std::byte*>(memory.data()), 9 * 64), 72 * kTwoOnes);
}

}  // namespace
}  // namespace embank::probe_table_test
