#include "store/placement/heat_sketch.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/status_macros.h"
#include "store/index/key_index.h"
#include "tiers/row/row_header.h"

namespace embank {
namespace {

constexpr uint32_t kLowFingerprintBits = 32 - kHeatBits;
constexpr size_t kNoEntry = ~size_t{0};
static_assert(HeatBlock::kFingerprintBits == kLowFingerprintBits + 8);
static_assert(HeatSketch::kGrainBytes == KeyIndex::kShardCount * sizeof(HeatBlock));

constexpr uint32_t HeatIn(uint32_t entry) { return entry & kHeatMax; }
constexpr uint32_t EntryOf(uint32_t fingerprint, uint32_t heat) {
  return fingerprint << kHeatBits | heat;
}
constexpr uint8_t HighOf(uint32_t fingerprint) {
  return static_cast<uint8_t>(fingerprint >> kLowFingerprintBits);
}

uint32_t FingerprintIn(const HeatBlock& block, size_t i) {
  return block.entries[i] >> kHeatBits | uint32_t{block.fingerprints[i]} << kLowFingerprintBits;
}

size_t Find(const HeatBlock& block, uint32_t fingerprint) {
  for (size_t i = 0; i < block.entries.size(); ++i) {
    if (HeatIn(block.entries[i]) != 0 && FingerprintIn(block, i) == fingerprint) return i;
  }
  return kNoEntry;
}

// The number of epochs from `epoch` to `now`, both of 32 bits; 0 when `now` is the older one.
uint32_t Distance(uint32_t epoch, uint32_t now) {
  const auto distance = static_cast<int32_t>(now - epoch);
  return std::clamp(distance, 0, int32_t{kHeatBits});
}

}  // namespace

void HeatBlock::AgeTo(uint32_t now) {
  const uint32_t distance = Distance(epoch, now);
  if (distance == 0) return;
  epoch = now;
  for (uint32_t& entry : entries) {
    entry = EntryOf(entry >> kHeatBits, HeatIn(entry) >> distance);
  }
}

void HeatBlock::Put(uint32_t fingerprint, uint32_t heat) {
  const size_t own = Find(*this, fingerprint);
  if (own != kNoEntry) {
    // The entry belongs to a row with the same fingerprint.
    entries[own] = EntryOf(fingerprint, std::max(heat, HeatIn(entries[own])));
    return;
  }
  const auto coldest = std::min_element(
      entries.begin(), entries.end(), [](uint32_t a, uint32_t b) { return HeatIn(a) < HeatIn(b); });
  if (heat <= HeatIn(*coldest)) return;
  *coldest = EntryOf(fingerprint, heat);
  fingerprints[static_cast<size_t>(coldest - entries.begin())] = HighOf(fingerprint);
}

uint32_t HeatBlock::Get(uint32_t fingerprint, uint32_t now) const {
  const size_t own = Find(*this, fingerprint);
  return own == kNoEntry ? 0 : HeatIn(entries[own]) >> Distance(epoch, now);
}

void HeatBlock::Remove(uint32_t fingerprint) {
  const size_t own = Find(*this, fingerprint);
  if (own != kNoEntry) entries[own] = 0;
}

void HeatBlock::Merge(const HeatBlock& other) {
  for (size_t i = 0; i < entries.size(); ++i) {
    const uint32_t heat = HeatIn(other.entries[i]);
    if (heat > 0) Put(FingerprintIn(other, i), heat);
  }
}

bool HeatBlock::IsEmpty() const {
  return std::all_of(entries.begin(), entries.end(),
                     [](uint32_t entry) { return HeatIn(entry) == 0; });
}

StatusOr<std::unique_ptr<HeatSketch>> HeatSketch::Create(MemorySource* source, MemoryBudget* budget,
                                                         uint64_t bytes) {
  EMBANK_CHECK(IsSize(bytes));
  EMBANK_ASSIGN_OR_RETURN(AlignedBuffer memory, AlignedBuffer::Create(source, budget, bytes));
  return std::unique_ptr<HeatSketch>(new HeatSketch(std::move(memory), bytes));
}

HeatSketch::HeatSketch(AlignedBuffer memory, uint64_t bytes)
    : memory_(std::move(memory)),
      blocks_(bytes / sizeof(HeatBlock)),
      table_(memory_.As<HeatBlock>().first(blocks_)) {}

void HeatSketch::Put(KeyHash hash, uint32_t heat, uint64_t now) {
  HeatBlock& block = table_[BlockOf(hash)];
  block.AgeTo(static_cast<uint32_t>(now));
  block.Put(HeatBlock::FingerprintOf(hash), heat);
}

uint32_t HeatSketch::Get(KeyHash hash, uint64_t now) const {
  return table_[BlockOf(hash)].Get(HeatBlock::FingerprintOf(hash), static_cast<uint32_t>(now));
}

uint32_t HeatSketch::Take(KeyHash hash, uint64_t now) {
  HeatBlock& block = table_[BlockOf(hash)];
  const uint32_t heat = block.Get(HeatBlock::FingerprintOf(hash), static_cast<uint32_t>(now));
  if (heat > 0) block.Remove(HeatBlock::FingerprintOf(hash));
  return heat;
}

std::span<HeatBlock> HeatSketch::BlocksIn(uint64_t their_blocks, uint64_t number) const {
  EMBANK_CHECK(number < their_blocks);
  const uint64_t first = BlockOf(FirstHashOf(number, their_blocks));
  const uint64_t last = BlockOf(FirstHashOf(number + 1, their_blocks) - 1);
  EMBANK_CHECK(first <= last && last < blocks_);
  return table_.subspan(first, last - first + 1);
}

HeatBlock HeatSketch::BlockIn(uint64_t their_blocks, uint64_t number, uint64_t now) const {
  const std::span<const HeatBlock> own = BlocksIn(their_blocks, number);
  // Mostly the sketches have one size, and it is a copy.
  HeatBlock block = own[0];
  block.AgeTo(static_cast<uint32_t>(now));
  for (HeatBlock more : own.subspan(1)) {
    more.AgeTo(block.epoch);
    block.Merge(more);
  }
  return block;
}

void HeatSketch::Add(uint64_t their_blocks, uint64_t number, const HeatBlock& block) {
  for (HeatBlock& own : BlocksIn(their_blocks, number)) own.Merge(block);
}

void HeatSketch::Clear() { std::fill(table_.begin(), table_.end(), HeatBlock{}); }

}  // namespace embank
