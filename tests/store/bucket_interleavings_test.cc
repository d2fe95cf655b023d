// The results that a search may see while an entry moves to a later bucket, and while a shard's
// boundary passes it: all interleavings of the steps. The key that is searched for is there all the
// time. Each protocol has variants without one of its steps, in which the search must find a
// violation.
#include <gtest/gtest.h>

#include <array>
#include <cstdint>

#include "store/index/bucket.h"
#include "tests/support/interleavings.h"

namespace embank::test::bucket_interleavings_test {
namespace {

enum class Fault : uint64_t {
  kNone,
  kNoRecheckOfTheBucket,
  kSourceBeforeDestination,
  kPassedAfterTheMove,
  kNoRecheckOfTheShard,
  kNoOddShard,
  kBoundaryBehindTheShard,
};

// A bucket of one entry: the head of store/index/bucket.h, and a word.
struct SmallBucket {
  static constexpr uint64_t kVersionStep = uint64_t{1} << 36;
  static constexpr uint64_t kOnePassed = 1;

  uint64_t head = 0;
  uint64_t entry = kEmptyEntry;

  // Bucket::BeginWrite and EndWrite.
  void Begin() { head += kVersionStep; }
  void End(uint64_t passed = 0) { head += kVersionStep + passed; }
  // The three steps of Bucket::Put and Bucket::RemoveSlots.
  void Put(uint64_t step, uint64_t value) {
    if (step == 0) Begin();
    if (step == 1) entry = value;
    if (step == 2) End();
  }
};

const uint64_t kSought = MakeEntry(11, Location{5});
const uint64_t kOther = MakeEntry(11, Location{6});

// A look at one bucket, of three steps: one round of the loop in KeyIndex::FindAt.
struct Look {
  enum Outcome : uint64_t { kNotYet, kFound, kNotHere, kPassedOn, kAgain };
  uint64_t head = 0;

  Outcome Step(const SmallBucket& bucket, uint64_t step, bool rechecks) {
    if (step == 0) head = bucket.head;                        // Bucket::Head
    if (step == 1 && bucket.entry == kSought) return kFound;  // the tags, MayBe
    if (step < 2) return kNotYet;
    if (rechecks && (Bucket::IsBeingWritten(head) || bucket.head != head)) return kAgain;
    return Bucket::Passed(head) == 0 ? kNotHere : kPassedOn;
  }
};

// ---- another key takes the place of the sought one, which is pushed on to the next bucket ----

struct ReaderOfBuckets {
  Look look;
  uint64_t outcome = Look::kNotYet;
};

// The writer is BucketArray::Put of the other key, with a path of two positions; the readers are
// KeyIndex::FindAt.
struct PushedEntry : WriterAndReaders<PushedEntry, ReaderOfBuckets> {
  static constexpr uint64_t kWriterSteps = 8;
  static constexpr uint64_t kReaderSteps = 6;

  Fault fault = Fault::kNone;
  std::array<SmallBucket, 2> buckets{};

  PushedEntry() { buckets[0].entry = kSought; }

  const char* Wrong() const {
    for (const ReaderOfBuckets& reader : readers) {
      if (reader.outcome == Look::kNotHere) return "a key that is there was not found";
    }
    return nullptr;
  }
  bool Answered() const { return readers[1].outcome == Look::kFound; }

  // To the next bucket; counted as passed; then over the old place.
  void Write(uint64_t step) {
    constexpr std::array<uint64_t, 8> kInOrder = {0, 1, 2, 3, 4, 5, 6, 7};
    constexpr std::array<uint64_t, 8> kSourceFirst = {5, 6, 7, 0, 1, 2, 3, 4};
    constexpr std::array<uint64_t, 8> kPassedLast = {0, 1, 2, 5, 6, 7, 3, 4};
    const auto& order = fault == Fault::kSourceBeforeDestination ? kSourceFirst
                        : fault == Fault::kPassedAfterTheMove    ? kPassedLast
                                                                 : kInOrder;
    const uint64_t what = order[step];
    if (what < 3) buckets[1].Put(what, kSought);             // Bucket::Put
    if (what == 3) buckets[0].Begin();                       // AddPassed, Bucket::AddPassed
    if (what == 4) buckets[0].End(SmallBucket::kOnePassed);  // the same
    if (what > 4) buckets[0].Put(what - 5, kOther);          // Bucket::Put
  }
  void Read(uint32_t thread, uint64_t step, ReaderOfBuckets* reader) {
    const bool rechecks = fault != Fault::kNoRecheckOfTheBucket;
    const Look::Outcome outcome = reader->look.Step(buckets[step / 3], step % 3, rechecks);
    if (outcome == Look::kNotYet || (outcome == Look::kPassedOn && step < 3)) return;
    reader->outcome = outcome;
    Leave(thread);
  }
};

TEST(BucketInterleavings, ASearchFindsAnEntryThatIsPushedOnOrStartsAgain) {
  const Interleavings all = AllInterleavingsWith<PushedEntry>(Fault::kNone);
  EXPECT_EQ(all.violation, "");
  EXPECT_GT(all.count, 5000u);
  EXPECT_GT(all.answered, 3u);
}

TEST(BucketInterleavings, WithoutASecondLookAtTheVersionAnEntryIsMissed) {
  EXPECT_NE(AllInterleavingsWith<PushedEntry>(Fault::kNoRecheckOfTheBucket).violation, "");
}

TEST(BucketInterleavings, WithTheOldPlaceOverwrittenFirstAnEntryIsMissed) {
  EXPECT_NE(AllInterleavingsWith<PushedEntry>(Fault::kSourceBeforeDestination).violation, "");
}

TEST(BucketInterleavings, WithPassedCountedAfterTheMoveAnEntryIsMissed) {
  EXPECT_NE(AllInterleavingsWith<PushedEntry>(Fault::kPassedAfterTheMove).violation, "");
}

// ---- the boundary passes the sought key, whose place changes to another bucket ----

struct ReaderOfShard {
  uint64_t seq = 0;
  uint64_t place = 0;
  Look look;
  uint64_t outcome = Look::kNotYet;
};

// How IndexRehash::Step moves the sought key's home.
enum class Move {
  kToHome,   // MoveToHomes: put, then removed; MoveNextHome stores the boundary
  kInOrder,  // MoveInOrder: removed, then put, then the boundary
};

// The writer is IndexRehash::Step; the readers are KeyIndex::Find.
template <Move move>
struct PassedBoundary : WriterAndReaders<PassedBoundary<move>, ReaderOfShard> {
  static constexpr uint64_t kWriterSteps = 9;
  static constexpr uint64_t kReaderSteps = 6;

  Fault fault = Fault::kNone;
  uint64_t seq = 0;
  uint64_t place = 0;  // of the key, by the boundary
  std::array<SmallBucket, 2> buckets{};

  PassedBoundary() { buckets[0].entry = kSought; }

  const char* Wrong() const {
    for (const ReaderOfShard& reader : this->readers) {
      if (reader.outcome == Look::kNotHere) return "a key that is there was not found";
    }
    return nullptr;
  }
  bool Answered() const { return this->readers[1].outcome == Look::kFound; }

  void Write(uint64_t step) {
    const bool boundary_last = fault == Fault::kBoundaryBehindTheShard;
    const uint64_t remove = move == Move::kInOrder ? 1 : 4;
    const uint64_t put = move == Move::kInOrder ? 4 : 1;
    if (step == 0 && fault != Fault::kNoOddShard) ++seq;  // IndexShard::BeginWrite
    if (step >= remove && step < remove + 3) buckets[0].Put(step - remove, kEmptyEntry);
    if (step >= put && step < put + 3) buckets[1].Put(step - put, kSought);
    if (step == (boundary_last ? 8 : 7)) place = 1;
    if (step == (boundary_last ? 7 : 8)) seq += fault == Fault::kNoOddShard ? 2 : 1;  // EndWrite
  }
  void Read(uint32_t thread, uint64_t step, ReaderOfShard* reader) {
    if (step == 0) {
      reader->seq = seq;
      if (seq % 2 != 0) this->Leave(thread);
    } else if (step == 1) {
      reader->place = place;  // IndexShard::PlaceOf
    } else if (step < 5) {    // FindAt
      const Look::Outcome outcome = reader->look.Step(buckets[reader->place], step - 2, true);
      if (outcome == Look::kNotYet || outcome == Look::kNotHere) return;
      reader->outcome = outcome;
      this->Leave(thread);
    } else if (fault == Fault::kNoRecheckOfTheShard || seq == reader->seq) {
      reader->outcome = Look::kNotHere;
    }
  }
};

using EveryMove = testing::Types<PassedBoundary<Move::kToHome>, PassedBoundary<Move::kInOrder>>;
template <typename Model>
class BoundaryInterleavings : public testing::Test {};
TYPED_TEST_SUITE(BoundaryInterleavings, EveryMove);

TYPED_TEST(BoundaryInterleavings, ASearchFindsAnEntryThatTheBoundaryPassesOrStartsAgain) {
  const Interleavings all = AllInterleavingsWith<TypeParam>(Fault::kNone);
  EXPECT_EQ(all.violation, "");
  EXPECT_GT(all.count, 5000u);
  EXPECT_GT(all.answered, 3u);
}

TYPED_TEST(BoundaryInterleavings, WithoutASecondLookAtTheShardAnEntryIsMissed) {
  EXPECT_NE(AllInterleavingsWith<TypeParam>(Fault::kNoRecheckOfTheShard).violation, "");
}

TYPED_TEST(BoundaryInterleavings, WithoutAnOddVersionOfTheShardAnEntryIsMissed) {
  EXPECT_NE(AllInterleavingsWith<TypeParam>(Fault::kNoOddShard).violation, "");
}

TYPED_TEST(BoundaryInterleavings, WithTheBoundaryMovedBehindTheShardsVersionAnEntryIsMissed) {
  EXPECT_NE(AllInterleavingsWith<TypeParam>(Fault::kBoundaryBehindTheShard).violation, "");
}

}  // namespace
}  // namespace embank::test::bucket_interleavings_test
