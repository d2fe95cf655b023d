#include "tiers/dram/slot_notes.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <set>
#include <vector>

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
  EXPECT_LE(slots * (GetParam() + DramTier::kNoteBytes), DramTier::kPageBytes);
  EXPECT_GT((slots + 1) * (GetParam() + DramTier::kNoteBytes), DramTier::kPageBytes);
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

// All bytes of all slots, then all notes: neither touches the other.
TEST_P(SlotSizes, NotesLieBesideSlots) {
  const SlotNotes notes(*tier_, GetParam());
  for (const Location slot : slots_) {
    std::memset(tier_->Row(slot), 0xA5, GetParam());
    SlotNote& note = notes.Of(notes.NumberOf(slot));
    note.SetLogged({~slot.units});
    note.pin = 0xFFFF;
    note.untouched = 1;
    note.links = {7, 9};
  }
  const std::vector<std::byte> row(GetParam(), std::byte{0xA5});
  for (const Location slot : slots_) {
    ASSERT_EQ(std::memcmp(tier_->Row(slot), row.data(), row.size()), 0);
    const SlotNote& note = notes.Of(notes.NumberOf(slot));
    ASSERT_EQ(note.logged, ~slot.units & ((uint64_t{1} << 40) - 1));
    ASSERT_EQ(note.pin, 0xFFFFu);
    ASSERT_EQ(note.untouched, 1u);
  }
}

INSTANTIATE_TEST_SUITE_P(All, SlotSizes,
                         testing::Values(32u, 48u, 272u, 528u, 49'216u, (1u << 20) - 16,
                                         (2u << 20) - 16));

}  // namespace
}  // namespace embank::test::slot_notes_test
