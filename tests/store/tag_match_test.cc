#include "store/index/tag_match.h"

#include <gtest/gtest.h>

#include <array>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "store/index/key_index.h"
#include "tests/support/random.h"

namespace embank::test::tag_match_test {
namespace {

constexpr uint32_t kTagMax = (1u << kTagBits) - 1;
constexpr size_t kProbesMax = 64;

// The bits that a matcher must give, by the drawing in store/index/bucket.h.
uint8_t PlainMatch(const Probe& probe) {
  uint8_t matches = 0;
  for (uint32_t slot = 0; slot < kBucketEntries; ++slot) {
    const uint64_t entry = ~probe.bucket->words[1 + slot].load();
    if (entry >> 40 == probe.tag) matches = static_cast<uint8_t>(matches | 1u << slot);
  }
  return matches;
}

// Tags that a wrong comparison would take for another: neighbours, one bit apart, all zeros, all
// ones.
class Tags {
 public:
  explicit Tags(uint64_t seed) : random_(seed) {
    const auto any = static_cast<uint32_t>(random_.Below(kTagMax));
    tags_ = {any, any + 1, any ^ 1, any ^ 0x800000, any ^ 0x8000, 0, 1, kTagMax, kTagMax - 1};
  }
  uint32_t Next() {
    return random_.OneIn(10) ? static_cast<uint32_t>(random_.Below(kTagMax + 1))
                             : tags_[random_.Below(tags_.size())];
  }
  Random* random() { return &random_; }

 private:
  Random random_;
  std::vector<uint32_t> tags_;
};

void FillBucket(Tags* tags, Bucket* bucket) {
  Random* const random = tags->random();
  // The head must never count as an entry, whatever its bits.
  bucket->words[0] = random->OneIn(2) ? random->Bits() : ~(uint64_t{tags->Next()} << kTagShift);
  for (uint32_t slot = 0; slot < kBucketEntries; ++slot) {
    // Locations at both ends: bits next to the tag must not leak into it.
    const uint64_t units = random->OneIn(3)   ? 0
                           : random->OneIn(2) ? kNoLocation.units
                                              : random->Below(kNoLocation.units);
    const uint64_t entry =
        random->OneIn(4) ? kEmptyEntry : MakeEntry(tags->Next(), {units}) | random->Below(4) << 38;
    bucket->words[1 + slot] = ~entry;
  }
}

#if defined(__aarch64__)
constexpr const char* kMatchers[] = {"scalar", "neon"};
#else
constexpr const char* kMatchers[] = {"scalar", "avx2", "avx512"};
#endif

// The processor features that the system reports.
bool ProcessorHas(const std::string& flag) {
  std::ifstream file("/proc/cpuinfo");
  for (std::string word; file >> word;) {
    if (word == flag) return true;
  }
  return false;
}

class TagMatch : public testing::TestWithParam<const char*> {
 protected:
  // nullptr: not on this machine.
  static const TagMatcherChoice* Choice() {
    for (const TagMatcherChoice& choice : TagMatchers()) {
      if (std::string_view(choice.name) == GetParam()) return &choice;
    }
    return nullptr;
  }
};

TEST_P(TagMatch, AgreesWithAPlainStatement) {
  const TagMatcherChoice* const choice = Choice();
  if (choice == nullptr) GTEST_SKIP() << "this machine has no " << GetParam();
  uint64_t matched = 0;
  for (uint64_t seed = 1; seed <= 2000; ++seed) {
    Tags tags(seed);
    std::array<Bucket, kProbesMax> buckets{};
    std::array<Probe, kProbesMax> probes;
    const size_t count = tags.random()->Below(kProbesMax + 1);
    for (size_t i = 0; i < count; ++i) {
      FillBucket(&tags, &buckets[i]);
      probes[i] = {&buckets[i], tags.Next()};
    }
    std::array<uint8_t, kProbesMax + 1> matches;
    matches.fill(0xA5);
    choice->match(std::span(probes).first(count), matches.data());
    for (size_t i = 0; i < count; ++i) {
      ASSERT_EQ(matches[i], PlainMatch(probes[i])) << "seed " << seed;
      matched += matches[i] != 0 ? 1 : 0;
    }
    ASSERT_EQ(matches[count], 0xA5) << "wrote too far";
  }
  EXPECT_GT(matched, 10'000u);
}

TEST_P(TagMatch, IsOfferedWhereTheProcessorHasIt) {
  const std::string name = GetParam();
  const bool has = name == "scalar" || ProcessorHas(name == "avx512" ? "avx512f"
                                                    : name == "neon" ? "asimd"
                                                                     : name);
  EXPECT_EQ(Choice() != nullptr, has);
}

INSTANTIATE_TEST_SUITE_P(Matchers, TagMatch, testing::ValuesIn(kMatchers),
                         [](const auto& matcher) { return std::string(matcher.param); });

TEST(TagMatchers, TheScalarOneComesFirstAndTheBestLast) {
  ASSERT_FALSE(TagMatchers().empty());
  EXPECT_EQ(std::string_view(TagMatchers().front().name), "scalar");
  EXPECT_EQ(BestTagMatcher().match, TagMatchers().back().match);
}

// ---- buckets ----

TEST(Bucket, FreshMemoryIsEmpty) {
  const Bucket bucket{};
  EXPECT_FALSE(Bucket::IsBeingWritten(bucket.Head()));
  EXPECT_EQ(Bucket::Passed(bucket.Head()), 0u);
  EXPECT_EQ(Bucket::EmptySlots(bucket.Head()), (1u << kBucketEntries) - 1);
  for (uint32_t slot = 0; slot < kBucketEntries; ++slot) {
    EXPECT_EQ(bucket.Entry(slot), kEmptyEntry);
  }
}

TEST(Bucket, EntriesKeepTagAndLocation) {
  for (const uint32_t tag : {0u, 1u, 0x800000u, kTagMax}) {
    for (const uint64_t units : {uint64_t{0}, uint64_t{1}, kNoLocation.units - 1}) {
      const uint64_t entry = MakeEntry(tag, {units});
      EXPECT_EQ(TagOf(entry), tag);
      EXPECT_EQ(LocationOf(entry).units, units);
      EXPECT_NE(entry, kEmptyEntry);
    }
  }
}

// The same changes to a bucket and to plain arrays.
TEST(Bucket, ChangesTouchOnlyWhatTheyNameAndRaiseTheVersion) {
  Random random(1);
  Bucket bucket{};
  std::array<uint64_t, kBucketEntries> entries;
  entries.fill(kEmptyEntry);
  std::array<uint32_t, kBucketEntries> displacements{};
  uint32_t passed = 0;
  for (uint64_t change = 1; change <= 20'000; ++change) {
    const auto slot = static_cast<uint32_t>(random.Below(kBucketEntries));
    const uint64_t kind = random.Below(4);
    if (kind == 0) {
      const auto slots = static_cast<uint32_t>(random.Below(1u << kBucketEntries));
      bucket.RemoveSlots(slots);
      for (uint32_t i = 0; i < kBucketEntries; ++i) {
        if ((slots >> i & 1) != 0) entries[i] = kEmptyEntry;
      }
    } else if (kind == 1) {
      const int32_t by = passed == 0 || (passed < 49 && random.OneIn(2)) ? 1 : -1;
      bucket.AddPassed(by);
      passed += static_cast<uint32_t>(by);
    } else {
      entries[slot] = random.Bits();
      displacements[slot] = static_cast<uint32_t>(random.Below(kDisplacementMax + 1));
      bucket.Put(slot, entries[slot], displacements[slot]);
    }
    ASSERT_EQ(bucket.Head() >> 36, 2 * change);
    ASSERT_EQ(Bucket::Passed(bucket.Head()), passed);
    for (uint32_t i = 0; i < kBucketEntries; ++i) {
      ASSERT_EQ(bucket.Entry(i), entries[i]);
      ASSERT_EQ(Bucket::Displacement(bucket.Head(), i), displacements[i]);
      const bool empty = entries[i] == kEmptyEntry;
      ASSERT_EQ((Bucket::EmptySlots(bucket.Head()) >> i) & 1, empty ? 1u : 0u);
      for (uint32_t d = 0; d <= kDisplacementMax; ++d) {
        ASSERT_EQ((Bucket::SlotsDisplacedBy(bucket.Head(), d) >> i) & 1,
                  !empty && displacements[i] == d ? 1u : 0u);
      }
    }
    ASSERT_EQ(Bucket::EmptySlots(bucket.Head()) >> kBucketEntries, 0u);
  }
}

}  // namespace
}  // namespace embank::test::tag_match_test
