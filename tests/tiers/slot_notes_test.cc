#include "tiers/dram/slot_notes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <set>
#include <span>
#include <vector>

#include "tiers/dram/dirty_slots.h"

namespace embank::test::slot_notes_test {
namespace {

class SlotSizes : public testing::TestWithParam<uint32_t> {
 protected:
  void SetUp() override {
    auto tier =
        DramTier::Create(SystemMemorySource(), &budget_, &epochs_, 8 * DramTier::kPageBytes);
    ASSERT_TRUE(tier.ok()) << tier.status();
    tier_ = *std::move(tier);
    slot_class_ = tier_->AddClass(GetParam(), true);
    slots_.resize(2 * DramTier::SlotsPerPage(GetParam(), true) + 1);
    ASSERT_EQ(tier_->Allocate(slot_class_, slots_), slots_.size());
  }

  MemoryBudget budget_{0};
  EpochTable epochs_;
  std::unique_ptr<DramTier> tier_;
  SlotClass slot_class_ = 0;
  std::vector<Location> slots_;  // a third page is begun
};

TEST_P(SlotSizes, APageHoldsAsManySlotsAndNotesAsFit) {
  const uint64_t slots = DramTier::SlotsPerPage(GetParam(), true);
  const auto bytes_of = [](uint64_t n) {
    return n * (GetParam() + DramTier::kNoteBytes) + DramTier::DirtyWords(n) * DramTier::kWordBytes;
  };
  EXPECT_LE(bytes_of(slots), DramTier::kPageBytes);
  // A word may be used in part.
  EXPECT_GT(bytes_of(slots + 1) + DramTier::kWordBytes, DramTier::kPageBytes);
  EXPECT_EQ(tier_->pool()->committed_bytes(), 3 * DramTier::kPageBytes);
}

TEST_P(SlotSizes, EachSlotHasANumberAndANoteOfItsOwn) {
  const SlotNotes notes(*tier_, GetParam());
  std::set<uint32_t> numbers;
  std::set<const SlotNote*> places;
  for (const Location slot : slots_) {
    const uint32_t number = notes.NumberOf(slot);
    EXPECT_EQ(notes.LocationOf(number), slot);
    EXPECT_LT(number, 0xFFFFFFFFu);
    EXPECT_TRUE(numbers.insert(number).second);
    EXPECT_TRUE(places.insert(&notes.Of(number)).second);
  }
}

// All bytes of all slots, then all notes and bits: none touches the others.
TEST_P(SlotSizes, NotesAndBitsLieBesideSlots) {
  const SlotNotes notes(*tier_, GetParam());
  for (size_t i = 0; i < slots_.size(); ++i) {
    const Location slot = slots_[i];
    if (i % 3 != 0) notes.MarkDirty(notes.NumberOf(slot));
    std::memset(tier_->Row(slot), 0xA5, GetParam());
    SlotNote& note = notes.Of(notes.NumberOf(slot));
    note.SetLogged({~slot.units});
    note.pin = 0xFFFF;
    note.untouched = 1;
    note.links = {7, 9};
  }
  const std::vector<std::byte> row(GetParam(), std::byte{0xA5});
  for (size_t i = 0; i < slots_.size(); ++i) {
    const Location slot = slots_[i];
    ASSERT_EQ(notes.IsMarkedDirty(notes.NumberOf(slot)), i % 3 != 0) << i;
    ASSERT_EQ(std::memcmp(tier_->Row(slot), row.data(), row.size()), 0);
    const SlotNote& note = notes.Of(notes.NumberOf(slot));
    ASSERT_EQ(note.logged, ~slot.units & ((uint64_t{1} << 40) - 1));
    ASSERT_EQ(note.pin, 0xFFFFu);
    ASSERT_EQ(note.untouched, 1u);
  }
}

std::set<uint64_t> Walk(DirtySlots* walk, size_t at_once) {
  std::set<uint64_t> found;
  std::vector<Location> part(at_once);
  while (const size_t count = walk->Next(part).count) {
    for (const Location slot : std::span(part).first(count)) {
      EXPECT_TRUE(found.insert(slot.units).second);
    }
  }
  return found;
}

TEST_P(SlotSizes, AWalkGivesTheDirtySlotsInTheOrderOfMemory) {
  const SlotNotes notes(*tier_, GetParam());
  EXPECT_EQ(Walk(std::make_unique<DirtySlots>(*tier_).get(), 1), std::set<uint64_t>());
  // Every slot, the first, the last, and each 64th with its neighbours.
  for (const size_t step : {size_t{1}, size_t{63}, size_t{64}, size_t{65}, slots_.size() - 1}) {
    std::set<uint64_t> marked;
    for (size_t i = 0; i < slots_.size(); i += std::max<size_t>(1, step)) {
      notes.MarkDirty(notes.NumberOf(slots_[i]));
      marked.insert(slots_[i].units);
    }
    for (const size_t at_once : {1, 3, 256}) {
      DirtySlots walk(*tier_);
      EXPECT_EQ(Walk(&walk, at_once), marked) << step << ", " << at_once << " at once";
      EXPECT_EQ(walk.given(), marked.size());
      EXPECT_TRUE(walk.has_ended());
    }
    for (const Location slot : slots_) notes.MarkClean(notes.NumberOf(slot));
  }
}

TEST_P(SlotSizes, APageThatIsTakenAgainHasNoDirtySlots) {
  const SlotNotes notes(*tier_, GetParam());
  for (const Location slot : slots_) notes.MarkDirty(notes.NumberOf(slot));
  tier_->Free(slot_class_, slots_);
  EXPECT_EQ(Walk(std::make_unique<DirtySlots>(*tier_).get(), 9), std::set<uint64_t>());
  const SlotClass other = tier_->AddClass(64, true);
  for (const SlotClass slot_class : {other, slot_class_}) {
    std::vector<Location> again(3);
    ASSERT_EQ(tier_->Allocate(slot_class, again), 3u);
    EXPECT_EQ(Walk(std::make_unique<DirtySlots>(*tier_).get(), 9), std::set<uint64_t>());
    tier_->Free(slot_class, again);
  }
}

// A part has slots of one class; slots of classes without notes are none of the walk's.
TEST_P(SlotSizes, AWalkStopsWhereTheClassChanges) {
  const SlotClass other = tier_->AddClass(GetParam() == 64 ? 80 : 64, true);
  const SlotClass plain = tier_->AddClass(1 << 20);
  std::vector<Location> few(3);
  ASSERT_EQ(tier_->Allocate(plain, few), 3u);
  ASSERT_EQ(tier_->Allocate(other, few), 3u);
  const SlotNotes notes(*tier_, GetParam());
  const SlotNotes other_notes(*tier_, GetParam() == 64 ? 80 : 64);
  notes.MarkDirty(notes.NumberOf(slots_.front()));
  notes.MarkDirty(notes.NumberOf(slots_.back()));
  for (const Location slot : few) other_notes.MarkDirty(other_notes.NumberOf(slot));
  DirtySlots walk(*tier_);
  std::vector<Location> part(9);
  const DirtySlots::Part first = walk.Next(part);
  EXPECT_EQ(first.slot_class, slot_class_);
  EXPECT_EQ(first.count, 2u);
  const DirtySlots::Part second = walk.Next(part);
  EXPECT_EQ(second.slot_class, other);
  EXPECT_EQ(second.count, 3u);
  EXPECT_EQ(walk.Next(part).count, 0u);
}

INSTANTIATE_TEST_SUITE_P(All, SlotSizes,
                         testing::Values(32u, 48u, 272u, 528u, 49'216u, (1u << 20) - 16,
                                         (2u << 20) - 32));

}  // namespace
}  // namespace embank::test::slot_notes_test
