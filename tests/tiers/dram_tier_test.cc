#include "tiers/dram/dram_tier.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <map>
#include <optional>
#include <set>
#include <thread>
#include <vector>

#include "tests/support/events.h"
#include "tests/support/failing_memory.h"
#include "tests/support/random.h"
#include "tiers/row/row_copy.h"

namespace embank::test::dram_tier_test {
namespace {

constexpr uint64_t kPage = DramTier::kPageBytes;

// A tier with memory, budget and a check that nothing stays behind.
class World {
 public:
  World(uint64_t address_bytes, uint64_t budget_bytes) : budget_(budget_bytes) {
    StatusOr<std::unique_ptr<DramTier>> tier =
        DramTier::Create(&memory_, &budget_, &epochs_, address_bytes);
    EXPECT_TRUE(tier.ok()) << tier.status();
    if (tier.ok()) tier_ = *std::move(tier);
    fixed_bytes_ = DramTier::FixedBytes(address_bytes);
  }
  ~World() {
    tier_.reset();
    EXPECT_EQ(budget_.used_bytes(), 0u);
    EXPECT_EQ(memory_.outstanding(), 0u);
    EXPECT_EQ(memory_.misuses(), 0u);
  }

  DramTier* operator->() { return tier_.get(); }
  FailingMemory* memory() { return &memory_; }
  MemoryBudget* budget() { return &budget_; }
  EpochTable* epochs() { return &epochs_; }
  std::vector<Location> Allocate(SlotClass slot_class, size_t count) {
    std::vector<Location> slots(count);
    slots.resize(tier_->Allocate(slot_class, slots));
    return slots;
  }
  // The budget holds the records and the pages with memory, to the byte.
  void ExpectExactBudget() {
    ASSERT_EQ(budget_.used_bytes(), fixed_bytes_ + tier_->pool()->committed_bytes());
    ASSERT_EQ(memory_.committed_bytes(), tier_->pool()->committed_bytes());
  }

 private:
  FailingMemory memory_;
  MemoryBudget budget_;
  EpochTable epochs_;
  std::unique_ptr<DramTier> tier_;
  uint64_t fixed_bytes_ = 0;
};

uint64_t PageOf(Location slot) { return slot.units * kLocationUnitBytes / kPage; }

TEST(DramTier, TakesNoMemoryBeforeTheFirstSlot) {
  World tier(100 * kPage, 0);
  EXPECT_EQ(tier->pool()->committed_bytes(), 0u);
  EXPECT_EQ(tier->pool()->record_bytes(), DramTier::FixedBytes(100 * kPage));
  ASSERT_NO_FATAL_FAILURE(tier.ExpectExactBudget());
  const SlotClass cls = tier->AddClass(64);
  EXPECT_EQ(tier->pool()->committed_bytes(), 0u);
  EXPECT_TRUE(tier.Allocate(cls, 0).empty());
  EXPECT_EQ(tier->pool()->committed_bytes(), 0u);
}

TEST(DramTier, FillsAPageWithWholeSlotsBeforeItTakesTheNext) {
  World tier(4 * kPage, 0);
  for (const uint32_t slot_bytes : {48u, 272u, 49216u, 1u << 20, (1u << 20) + 16, 2u << 20}) {
    const SlotClass cls = tier->AddClass(slot_bytes);
    const uint64_t per_page = kPage / slot_bytes;
    EXPECT_EQ(DramTier::SlotsPerPage(slot_bytes), per_page);
    std::vector<Location> slots = tier.Allocate(cls, per_page);
    ASSERT_EQ(slots.size(), per_page) << slot_bytes;
    EXPECT_EQ(tier->pool()->committed_bytes(), kPage) << slot_bytes;
    std::set<uint64_t> starts;
    for (const Location slot : slots) {
      const uint64_t start = slot.units * kLocationUnitBytes;
      ASSERT_LE(start % kPage + slot_bytes, kPage) << "a slot crosses a page";
      ASSERT_TRUE(starts.insert(start).second);
    }
    slots.push_back(tier.Allocate(cls, 1).at(0));
    EXPECT_EQ(tier->pool()->committed_bytes(), 2 * kPage) << slot_bytes;
    tier->Free(cls, slots);
    EXPECT_EQ(tier->pool()->ReleaseEmptyPages(), 2 * kPage);
    ASSERT_NO_FATAL_FAILURE(tier.ExpectExactBudget());
  }
}

TEST(DramTier, ReusesFreedSlotsBeforeFreshPages) {
  World tier(8 * kPage, 0);
  const SlotClass cls = tier->AddClass(1 << 18);  // 8 a page
  std::vector<Location> slots = tier.Allocate(cls, 20);
  EXPECT_EQ(tier->pool()->committed_bytes(), 3 * kPage);
  const std::vector<Location> freed = {slots[3], slots[9], slots[17], slots[4]};
  tier->Free(cls, freed);
  const std::vector<Location> again = tier.Allocate(cls, 4 + 4);
  EXPECT_EQ(tier->pool()->committed_bytes(), 3 * kPage);
  std::set<uint64_t> reused;
  for (const Location slot : again) reused.insert(slot.units);
  for (const Location slot : freed) EXPECT_EQ(reused.count(slot.units), 1u);
}

TEST(DramTier, EmptyPagesGoToWhicheverClassNeedsOne) {
  // Space for the records and two pages.
  World tier(4 * kPage, DramTier::FixedBytes(4 * kPage) + 2 * kPage);
  const SlotClass narrow = tier->AddClass(32);
  const SlotClass wide = tier->AddClass(1 << 20);
  const std::vector<Location> slots = tier.Allocate(narrow, 2 * kPage / 32);
  ASSERT_EQ(slots.size(), 2 * kPage / 32);
  EXPECT_TRUE(tier.Allocate(wide, 1).empty()) << "the budget is used up";
  // One slot holds its page; the other page is free for all.
  tier->Free(narrow, std::span(slots).subspan(1));
  EXPECT_EQ(tier.Allocate(wide, 4).size(), 2u);
  EXPECT_EQ(tier->pool()->committed_bytes(), 2 * kPage);
  tier->Free(narrow, std::span(slots).first(1));
  EXPECT_EQ(tier.Allocate(wide, 4).size(), 2u);
  EXPECT_TRUE(tier.Allocate(narrow, 1).empty());
}

TEST(DramTier, ReleasedPagesGiveBudgetBackAndComeBackZeroed) {
  World tier(4 * kPage, 0);
  const SlotClass cls = tier->AddClass(1 << 20);
  const std::vector<Location> slots = tier.Allocate(cls, 5);
  for (const Location slot : slots) std::memset(tier->Row(slot), 0xEE, 1 << 20);
  EXPECT_EQ(tier->pool()->ReleaseEmptyPages(), 0u) << "no page is empty";
  tier->Free(cls, std::span(slots).first(4));
  EXPECT_EQ(tier->pool()->committed_bytes(), 3 * kPage)
      << "an empty page keeps its memory for reuse";
  EXPECT_EQ(tier->pool()->ReleaseEmptyPages(), 2 * kPage);
  EXPECT_EQ(tier->pool()->ReleaseEmptyPages(), 0u);
  ASSERT_NO_FATAL_FAILURE(tier.ExpectExactBudget());
  EXPECT_EQ(static_cast<uint8_t>(*tier->Row(slots[4])), 0xEE) << "a taken slot lost its bytes";
  // The four pages of the range: those released are used again before the range is used up.
  EXPECT_EQ(tier.Allocate(cls, 100).size(), 7u);
  EXPECT_EQ(tier->pool()->committed_bytes(), 4 * kPage);
}

TEST(DramTier, AClosedPageGivesNoSlotsOutAndBecomesEmpty) {
  World tier(4 * kPage, DramTier::FixedBytes(4 * kPage) + 2 * kPage);
  const SlotClass cls = tier->AddClass(1 << 18, /*has_notes=*/true);  // 7 a page
  const std::vector<Location> slots = tier.Allocate(cls, 14);
  ASSERT_EQ(slots.size(), 14u);
  tier->Free(cls, std::span(slots).subspan(12));  // page 1 has the fewest
  const std::optional<uint32_t> page = tier->ClosePage(cls);
  ASSERT_EQ(page, std::optional<uint32_t>(1));
  EXPECT_TRUE(tier.Allocate(cls, 1).empty()) << "a slot of the closed page, or a third page";
  tier->Free(cls, std::span(slots).subspan(0, 1));
  EXPECT_EQ(tier.Allocate(cls, 2).size(), 1u) << "the other page's";
  tier->Free(cls, std::span(slots).subspan(7, 5));
  EXPECT_FALSE(tier->IsClosed(1)) << "its last slot came back";
  EXPECT_TRUE(tier->ReopenPage(1));
  EXPECT_EQ(tier->PagesOf(cls), 1u);
  EXPECT_EQ(tier->pool()->empty_bytes(), kPage);
  EXPECT_EQ(tier->pool()->ReleaseEmptyPages(), kPage);
  EXPECT_EQ(tier->pool()->empty_bytes(), 0u);
  ASSERT_NO_FATAL_FAILURE(tier.ExpectExactBudget());
}

TEST(DramTier, APageThatIsReopenedGivesItsFreeSlotsOutAgain) {
  World tier(4 * kPage, DramTier::FixedBytes(4 * kPage) + kPage);
  const SlotClass cls = tier->AddClass(1 << 18, /*has_notes=*/true);
  const std::vector<Location> slots = tier.Allocate(cls, 5);
  ASSERT_EQ(tier->ClosePage(std::nullopt), std::optional<uint32_t>(0));
  EXPECT_TRUE(tier->IsClosed(0));
  tier->Free(cls, std::span(slots).first(1));
  EXPECT_TRUE(tier.Allocate(cls, 1).empty());
  EXPECT_FALSE(tier->ReopenPage(0)) << "four slots are taken";
  EXPECT_EQ(tier.Allocate(cls, 7).size(), 3u);
}

TEST(DramTier, ClosesPagesInTurnAndOnlyOfClassesWithNotes) {
  World tier(8 * kPage, 0);
  const SlotClass plain = tier->AddClass(1 << 18);
  const SlotClass noted = tier->AddClass(1 << 18, /*has_notes=*/true);
  EXPECT_EQ(tier->ClosePage(std::nullopt), std::nullopt) << "there is no page";
  tier.Allocate(plain, 8);
  EXPECT_EQ(tier->ClosePage(std::nullopt), std::nullopt);
  EXPECT_EQ(tier->ClosePage(plain), std::nullopt);
  tier.Allocate(noted, 21);
  std::set<uint32_t> closed;
  for (int i = 0; i < 3; ++i) {
    const std::optional<uint32_t> page = tier->ClosePage(noted);
    ASSERT_TRUE(page.has_value());
    closed.insert(*page);
    EXPECT_FALSE(tier->ReopenPage(*page));
  }
  EXPECT_EQ(closed, (std::set<uint32_t>{1, 2, 3}));
}

TEST(DramTier, AnEmptyPageIsGivenToTheClassThatIsNamed) {
  World tier(4 * kPage, DramTier::FixedBytes(4 * kPage) + kPage);
  const SlotClass narrow = tier->AddClass(32, true);
  const SlotClass wide = tier->AddClass(1 << 18, true);
  const std::vector<Location> slots = tier.Allocate(narrow, 1);
  EXPECT_FALSE(tier->GiveEmptyPage(wide)) << "none is empty";
  tier->Free(narrow, slots);
  EXPECT_TRUE(tier->GiveEmptyPage(wide));
  EXPECT_TRUE(tier.Allocate(narrow, 1).empty());
  Location slot;
  EXPECT_EQ(tier->Allocate(wide, {&slot, 1}, DramTier::Pages::kAsTheyAre), 1u);
}

TEST(DramTier, EndsWhereItsAddressesEnd) {
  World tier(3 * kPage - 1, 0);  // rounded up to pages
  const SlotClass cls = tier->AddClass(1 << 20);
  const std::vector<Location> slots = tier.Allocate(cls, 100);
  EXPECT_EQ(slots.size(), 6u);
  EXPECT_TRUE(tier.Allocate(cls, 1).empty());
  tier->Free(cls, std::span(slots).first(1));
  EXPECT_EQ(tier.Allocate(cls, 2).size(), 1u);
}

TEST(DramTier, EndsWhereItsBudgetEnds) {
  World tier(100 * kPage, DramTier::FixedBytes(100 * kPage) + 2 * kPage + kPage - 1);
  const SlotClass cls = tier->AddClass(1 << 20);
  EXPECT_EQ(tier.Allocate(cls, 100).size(), 4u);
  ASSERT_NO_FATAL_FAILURE(tier.ExpectExactBudget());
}

TEST(DramTier, AFailedCommitTakesNothingAndMayBeTriedAgain) {
  World tier(4 * kPage, 0);
  const SlotClass cls = tier->AddClass(1 << 20);
  tier.memory()->FailCall(1);
  EXPECT_TRUE(tier.Allocate(cls, 1).empty());
  ASSERT_NO_FATAL_FAILURE(tier.ExpectExactBudget());
  std::vector<Location> slots = tier.Allocate(cls, 2);
  ASSERT_EQ(slots.size(), 2u);
  EXPECT_EQ(PageOf(slots[0]), 0u) << "the page whose commit failed was lost";
  // The same for a page that was released.
  tier->Free(cls, slots);
  EXPECT_EQ(tier->pool()->ReleaseEmptyPages(), kPage);
  tier.memory()->FailCall(1);
  EXPECT_TRUE(tier.Allocate(cls, 1).empty());
  ASSERT_NO_FATAL_FAILURE(tier.ExpectExactBudget());
  EXPECT_EQ(tier.Allocate(cls, 100).size(), 8u) << "the released page was lost";
}

TEST(DramTier, CutsAnAllocationShortWhenTheMachineHasNoMore) {
  World tier(4 * kPage, 0);
  const SlotClass cls = tier->AddClass(1 << 20);
  tier.memory()->FailCall(2);
  EXPECT_EQ(tier.Allocate(cls, 5).size(), 2u);
  EXPECT_EQ(tier.Allocate(cls, 6).size(), 6u);
}

TEST(DramTier, FailsToOpenWithoutTrace) {
  EpochTable epochs;
  for (uint64_t call = 1; call <= 2; ++call) {
    FailingMemory memory;
    MemoryBudget budget(0);
    memory.FailCall(call);
    const auto tier = DramTier::Create(&memory, &budget, &epochs, 10 * kPage);
    EXPECT_EQ(tier.status().code(), StatusCode::kResourceExhausted) << call;
    EXPECT_EQ(memory.outstanding(), 0u);
    EXPECT_EQ(budget.used_bytes(), 0u);
  }
  FailingMemory memory;
  MemoryBudget budget(DramTier::FixedBytes(10'000 * kPage) - 1);
  EXPECT_FALSE(DramTier::Create(&memory, &budget, &epochs, 10'000 * kPage).ok());
  EXPECT_EQ(memory.outstanding(), 0u);
}

TEST(DramTierDeathTest, ASlotGivenBackToAnotherClassIsADefectOfOurs) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  World tier(4 * kPage, 0);
  const SlotClass narrow = tier->AddClass(32);
  const SlotClass wide = tier->AddClass(64);
  std::vector<Location> slots = tier.Allocate(narrow, 1);
  EXPECT_DEATH(tier->Free(wide, slots), "broken");
  tier->Free(narrow, slots);
  EXPECT_DEATH(tier->Free(narrow, slots), "broken");
}

// ---- readers ----

// A reader on another thread, which has begun when the constructor returns and ends on request.
class OneReader {
 public:
  explicit OneReader(EpochTable* epochs) {
    thread_ = std::thread([this, epochs] {
      const EpochTable::Guard guard(epochs);
      phase_ = kReads;
      phase_.notify_all();
      phase_.wait(kReads);
      ended_ = true;
    });
    phase_.wait(kStarts);
  }
  ~OneReader() {
    End();
    thread_.join();
  }
  void End() {
    phase_ = kEnds;
    phase_.notify_all();
  }
  bool ended() const { return ended_; }

 private:
  enum Phase { kStarts, kReads, kEnds };
  std::atomic<Phase> phase_{kStarts};
  std::atomic<bool> ended_{false};
  std::thread thread_;
};

TEST(DramTier, APageThatReadersMaySeeServesItsOwnClassAtOnceAndOthersBehindNewMemory) {
  World tier(8 * kPage, 0);
  const SlotClass wide = tier->AddClass(1 << 20);
  const SlotClass whole = tier->AddClass(2 << 20);
  const std::vector<Location> slots = tier.Allocate(wide, 2);
  ASSERT_EQ(tier->pool()->committed_bytes(), kPage);
  const OneReader reader(tier.epochs());
  tier->Free(wide, slots);
  // Another class would change the memory that the reader may be looking at, so it gets a page of
  // its own.
  const std::vector<Location> other = tier.Allocate(whole, 1);
  ASSERT_EQ(other.size(), 1u);
  EXPECT_NE(PageOf(other[0]), PageOf(slots[0]));
  // In its own class the page's rows tell by their versions.
  const std::vector<Location> again = tier.Allocate(wide, 2);
  ASSERT_EQ(again.size(), 2u);
  EXPECT_EQ(PageOf(again[0]), PageOf(slots[0]));
  EXPECT_FALSE(reader.ended());
}

TEST(DramTier, APageChangesItsClassOnlyWhenTheReadersHaveEnded) {
  World tier(kPage, 0);
  const SlotClass wide = tier->AddClass(1 << 20);
  const SlotClass whole = tier->AddClass(2 << 20);
  tier->Free(wide, tier.Allocate(wide, 2));
  // Readers that began before the page was empty are waited for; others are not.
  ASSERT_EQ(tier.Allocate(whole, 1).size(), 1u);
  tier->Free(whole, std::vector<Location>{{0}});
  const std::vector<Location> slots = tier.Allocate(wide, 1);
  OneReader before(tier.epochs());
  tier->Free(wide, slots);
  const OneReader after(tier.epochs());
  std::atomic<bool> taken{false};
  std::atomic<bool> before_had_ended{false};
  std::thread taker([&] {
    EXPECT_EQ(tier.Allocate(whole, 1).size(), 1u);
    before_had_ended = before.ended();
    taken = true;
  });
  for (int i = 0; i < 100; ++i) std::this_thread::yield();
  EXPECT_FALSE(taken);
  before.End();
  taker.join();
  EXPECT_TRUE(before_had_ended);
  EXPECT_FALSE(after.ended());
}

TEST(DramTier, MemoryGoesBackOnlyWhenTheReadersHaveEnded) {
  World tier(4 * kPage, 0);
  const SlotClass wide = tier->AddClass(1 << 20);
  const std::vector<Location> slots = tier.Allocate(wide, 4);
  const std::byte* const row = tier->Row(slots[3]);
  OneReader reader(tier.epochs());
  tier->Free(wide, slots);
  std::atomic<bool> reader_had_ended{false};
  std::thread releaser([&] {
    EXPECT_EQ(tier->pool()->ReleaseEmptyPages(), 2 * kPage);
    reader_had_ended = reader.ended();
  });
  for (int i = 0; i < 100; ++i) std::this_thread::yield();
  // Would stop the process if the memory had gone.
  EXPECT_EQ(LoadRowWord(row + 64), 0u);
  reader.End();
  releaser.join();
  EXPECT_TRUE(reader_had_ended);
}

// A thread that looks at a page becomes a reader; a thread that waits for readers must not wait for
// this one.
TEST(DramTier, AThreadThatLooksAtAPageWaitsForNobodyAsAReader) {
  World tier(4 * kPage, 0);
  const SlotClass wide = tier->AddClass(1 << 20);
  const std::vector<Location> slots = tier.Allocate(wide, 4);
  std::optional<EpochTable::Guard> looks;
  const DramTier::PageSlots before = tier->SlotsOf(1, &looks);
  EXPECT_EQ(before.slots, 2u);
  EXPECT_EQ(before.slot_class, wide);
  EXPECT_EQ(DramTier::SlotAt(1, before, 1).units, slots[3].units);
  EXPECT_EQ(tier->SlotsOf(2, &looks).slots, 0u) << "no page yet";
  EXPECT_EQ(tier->SlotsOf(1, &looks).slots, 2u);
  tier->Free(wide, slots);
  std::atomic<bool> released{false};
  std::thread releaser([&] {
    EXPECT_EQ(tier->pool()->ReleaseEmptyPages(), 2 * kPage);
    released = true;
  });
  for (int i = 0; i < 100; ++i) std::this_thread::yield();
  EXPECT_FALSE(released);
  EXPECT_EQ(LoadRowWord(tier->Row(slots[3]) + 64), 0u);
  looks.reset();
  for (int i = 0; i < 100; ++i) {
    tier->SlotsOf(1, &looks);
    looks.reset();
  }
  releaser.join();
  EXPECT_EQ(tier->SlotsOf(1, &looks).slots, 0u);
}

// ---- random use against a shadow ----

// A model of a tier: every taken slot with its class and the byte it was filled with.
class Shadow {
 public:
  struct Taken {
    SlotClass slot_class;
    uint8_t fill;
  };
  Shadow(World* tier, uint64_t seed) : tier_(*tier), random_(seed) {
    for (const uint32_t bytes : {16u, 48u, 576u, 49216u, 700'000u, (1u << 20) + 16, 2u << 20}) {
      slot_bytes_.push_back(bytes);
      classes_.push_back(tier_->AddClass(bytes));
    }
  }

  void Step() {
    if (random_.OneIn(50)) return Release();
    // Phases of growth and of shrinking, so that pages fill up and empty out.
    const bool grows = (steps_++ / 60) % 2 == 0;
    if (!taken_.empty() && random_.OneIn(10) == grows) return Free();
    Allocate();
  }
  void FreeAll() {
    while (!taken_.empty()) Free();
  }
  Events* events() { return &events_; }

 private:
  void Allocate() {
    const size_t i = random_.Below(classes_.size());
    const uint64_t per_page = kPage / slot_bytes_[i];
    const size_t wanted = random_.Between(1, per_page < 100 ? 4 : 200);
    const std::vector<Location> slots = tier_.Allocate(classes_[i], wanted);
    events_.Count("slots taken", slots.size());
    for (const Location slot : slots) ASSERT_NO_FATAL_FAILURE(Take(slot, i));
    if (slots.size() == wanted) return;
    ASSERT_NO_FATAL_FAILURE(ExpectNoSpace(i));
  }
  void Take(Location slot, size_t i) {
    const uint64_t begin = slot.units * kLocationUnitBytes;
    const auto next = taken_.lower_bound(begin);
    if (next != taken_.end()) {
      ASSERT_LE(begin + slot_bytes_[i], next->first) << "slots overlap";
    }
    if (next != taken_.begin()) {
      const auto& [before, held] = *std::prev(next);
      ASSERT_LE(before + slot_bytes_[held.slot_class], begin) << "slots overlap";
    }
    const auto former = class_of_page_.find(PageOf(slot));
    if (former != class_of_page_.end() && former->second != i) {
      events_.Count("pages that changed class");
    }
    class_of_page_[PageOf(slot)] = i;
    const auto fill = static_cast<uint8_t>(random_.Bits());
    taken_[begin] = {static_cast<SlotClass>(i), fill};
    std::memset(tier_->Row(slot), fill, slot_bytes_[i]);
  }
  void Free() {
    if (taken_.empty()) return;
    auto slot = taken_.lower_bound(random_.Below(taken_.rbegin()->first + 1));
    const size_t i = slot->second.slot_class;
    std::vector<Location> freed;
    const size_t wanted = random_.Between(1, 400);
    while (slot != taken_.end() && freed.size() < wanted) {
      if (slot->second.slot_class != i) {
        ++slot;
        continue;
      }
      const Location location{slot->first / kLocationUnitBytes};
      ASSERT_TRUE(IsFilled(location, slot_bytes_[i], slot->second.fill));
      freed.push_back(location);
      slot = taken_.erase(slot);
    }
    events_.Count("slots freed", freed.size());
    tier_->Free(classes_[i], freed);
  }
  bool IsFilled(Location slot, uint32_t bytes, uint8_t fill) {
    const auto* const row = reinterpret_cast<const uint8_t*>(tier_->Row(slot));
    return row[0] == fill && std::memcmp(row, row + 1, bytes - 1) == 0;
  }
  void Release() {
    const uint64_t released = tier_->pool()->ReleaseEmptyPages();
    events_.Count("pages released", released / kPage);
    ASSERT_EQ(tier_->pool()->committed_bytes(), LivePages().size() * kPage);
    ASSERT_NO_FATAL_FAILURE(tier_.ExpectExactBudget());
  }
  // Every page is in use, and those of the class are full.
  void ExpectNoSpace(size_t i) {
    events_.Count("allocations cut short");
    ASSERT_EQ(tier_->pool()->committed_bytes(), LivePages().size() * kPage) << "a page lay idle";
    uint64_t slots = 0;
    std::set<uint64_t> pages;
    for (const auto& [begin, held] : taken_) {
      if (held.slot_class != i) continue;
      ++slots;
      pages.insert(begin / kPage);
    }
    ASSERT_EQ(slots, pages.size() * (kPage / slot_bytes_[i])) << "a slot lay idle";
  }
  std::set<uint64_t> LivePages() const {
    std::set<uint64_t> pages;
    for (const auto& [begin, held] : taken_) pages.insert(begin / kPage);
    return pages;
  }

  World& tier_;
  Random random_;
  uint64_t steps_ = 0;
  std::vector<uint32_t> slot_bytes_;
  std::vector<SlotClass> classes_;
  std::map<uint64_t, Taken> taken_;  // by first byte; the class as its position here
  std::map<uint64_t, size_t> class_of_page_;
  Events events_;
};

TEST(DramTier, SlotsNeverOverlapAndKeepTheirBytesInAnyUse) {
  Events events;
  for (const char* name : {"slots taken", "slots freed", "pages that changed class",
                           "pages released", "allocations cut short"}) {
    events.Expect(name);
  }
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    // In turns, the budget or the addresses end first.
    const uint64_t limit = seed % 2 == 0 ? 0 : DramTier::FixedBytes(64 * kPage) + 9 * kPage;
    World tier((seed % 2 == 0 ? 9 : 64) * kPage, limit);
    Shadow shadow(&tier, seed);
    for (int step = 0; step < 600; ++step) {
      ASSERT_NO_FATAL_FAILURE(shadow.Step()) << "seed " << seed << ", step " << step;
    }
    ASSERT_NO_FATAL_FAILURE(shadow.FreeAll());
    tier->pool()->ReleaseEmptyPages();
    EXPECT_EQ(tier->pool()->committed_bytes(), 0u);
    ASSERT_NO_FATAL_FAILURE(tier.ExpectExactBudget());
    events.Add(*shadow.events());
  }
  std::printf("%s", events.Table().c_str());
  EXPECT_EQ(events.Missing(), "");
}

TEST(DramTier, ThreadsNeverShareASlot) {
  World tier(64 * kPage, 0);
  const SlotClass classes[] = {tier->AddClass(48), tier->AddClass(1 << 16)};
  const uint32_t slot_bytes[] = {48, 1 << 16};
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (uint8_t t = 1; t <= 4; ++t) {
    threads.emplace_back([&, t] {
      Random random(t);
      for (int round = 0; round < 300; ++round) {
        const size_t i = random.Below(2);
        std::vector<Location> slots = tier.Allocate(classes[i], random.Between(1, 40));
        for (const Location slot : slots) std::memset(tier->Row(slot), t, slot_bytes[i]);
        for (const Location slot : slots) {
          const auto* const row = reinterpret_cast<const uint8_t*>(tier->Row(slot));
          if (row[0] != t || std::memcmp(row, row + 1, slot_bytes[i] - 1) != 0) ++wrong;
        }
        tier->Free(classes[i], slots);
        if (random.OneIn(20)) tier->pool()->ReleaseEmptyPages();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong.load(), 0);
  tier->pool()->ReleaseEmptyPages();
  EXPECT_EQ(tier->pool()->committed_bytes(), 0u);
  ASSERT_NO_FATAL_FAILURE(tier.ExpectExactBudget());
}

}  // namespace
}  // namespace embank::test::dram_tier_test
