// A row in the log whose record is damaged: all verbs, and the rows beside it.
#include <gtest/gtest.h>

#include <cstddef>
#include <deque>
#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "store/batch/gradients.h"
#include "store/batch/key_group.h"
#include "store/batch/lookup.h"
#include "store/batch/state.h"
#include "store/batch/write.h"
#include "store/packed/packed_lookup.h"
#include "tests/support/index_places.h"
#include "tests/support/inverse_mix.h"
#include "tests/support/spill_world.h"
#include "tests/support/store_contents.h"

namespace embank::test::damaged_row_test {
namespace {

// Rows in the log, one of which is damaged, and another key of the same tag and place.
class DamagedRow : public testing::Test {
 protected:
  DamagedRow() : store_(12), table_(store_.Create("t", Optimizer::kAdagrad)) {
    const uint64_t table_hash = TableHash(table_->name());
    lost_ = KeyWithHash(table_hash, HashAt(3, 0x1234567, 1));
    twin_ = KeyWithHash(table_hash, HashAt(3, 0x1234567, 2));
    EXPECT_EQ(UpsertOf(lost_, 1.0f), Outcome::kCreated);
    // Pushes it out of memory, and ends its segment.
    for (Key first = 0; first < 4000; first += 100) {
      const std::vector<Key> some = KeysFrom(first, 100);
      EXPECT_TRUE(Upsert(table_, some, RowsOf(RowsOfKeys(some, 1), kDim), {}).ok());
    }
    EXPECT_TRUE(log()->appender().Flush().ok());
    rows_ = table_->rows();
    const Location location = LocationOf(lost_);
    EXPECT_EQ(location.tier(), Tier::kSsd);
    segment_ = log()->segments().Hold(location);
    EXPECT_TRUE(segment_->finished);
    FlipByte(SegmentOffsetOf(location) + 100);
  }

  RowLog* log() { return &table_->mover()->logs().lowest(); }
  Location LocationOf(Key key) {
    return table_->store().index->Find(table_->IdOf(key, table_->HashOf(key))).location();
  }
  std::string path_of_segment() const { return "log/" + segment_->name; }
  void FlipByte(uint64_t offset) {
    const std::vector<std::byte> wrong = {store_.disk().Contents(path_of_segment())[offset] ^
                                          std::byte{1}};
    store_.disk().Corrupt(path_of_segment(), offset, wrong);
  }
  Outcome UpsertOf(Key key, float value) {
    uint8_t outcome = 0;
    const std::vector<float> row(kDim, value);
    EXPECT_TRUE(Upsert(table_, {&key, 1}, RowsOf(row, kDim), {&outcome, 1}).ok());
    return static_cast<Outcome>(outcome);
  }
  Outcome LookupOf(Key key, MissingRule rule, std::vector<float>* row) {
    uint8_t outcome = 0;
    row->assign(kDim, -1.0f);
    EXPECT_TRUE(Lookup(table_, {&key, 1}, rule, RowsIn(row, kDim), {&outcome, 1}).ok());
    return static_cast<Outcome>(outcome);
  }
  Outcome EraseOf(Key key) {
    uint8_t outcome = 0;
    EXPECT_TRUE(Erase(table_, {&key, 1}, {&outcome, 1}).ok());
    return static_cast<Outcome>(outcome);
  }
  Outcome ContainsOf(Key key) {
    uint8_t outcome = 0;
    EXPECT_TRUE(Contains(table_, {&key, 1}, {&outcome, 1}).ok());
    return static_cast<Outcome>(outcome);
  }
  void ExpectValue(Key key, float value) {
    std::vector<float> row;
    EXPECT_EQ(LookupOf(key, MissingRule::kZero, &row), Outcome::kFound);
    EXPECT_EQ(row, std::vector<float>(kDim, value));
  }

  SpillWorld store_;
  Table* const table_;
  Key lost_;
  Key twin_;
  uint64_t rows_;
  std::shared_ptr<const LogSegment> segment_;
};

TEST_F(DamagedRow, IsReplacedByAnUpsert) {
  std::vector<float> state(kDim, 3.0f);
  uint8_t outcome = 0;
  ASSERT_TRUE(SetState(table_, {&lost_, 1}, RowsOf(state, kDim), {&outcome, 1}).ok());
  EXPECT_EQ(static_cast<Outcome>(outcome), Outcome::kDataLoss) << "it has no vector any more";
  EXPECT_TRUE(IsDataLoss(ApplyGradients(table_, {&lost_, 1}, RowsOf(state, kDim), {})));
  std::vector<float> row;
  EXPECT_EQ(LookupOf(lost_, MissingRule::kCreate, &row), Outcome::kDataLoss);
  EXPECT_EQ(UpsertOf(lost_, 7.0f), Outcome::kFound);
  ExpectValue(lost_, 7.0f);
  ASSERT_TRUE(GetState(table_, {&lost_, 1}, RowsIn(&state, kDim), {}).ok());
  EXPECT_EQ(state, std::vector<float>(kDim, 0.0f)) << "that of a new row";
  EXPECT_EQ(table_->rows(), rows_);
  EXPECT_EQ(UpsertOf(lost_, 8.0f), Outcome::kFound);
  // A checkpoint has the row.
  ASSERT_TRUE(store_->checkpoints()->Make({}).ok());
  segment_.reset();
  ASSERT_TRUE(store_.Open().ok());
  const StatusOr<Rows> rows = ReadAll(*store_->catalog().Open("t"));
  ASSERT_TRUE(rows.ok()) << rows.status();
  EXPECT_EQ(rows->size(), rows_);
  EXPECT_EQ(rows->at(lost_), 8.0f);
}

// The features of a table have their outcomes in one place, one after the other. With groups of
// keys that are whole this fails, too, if a store with a log begins with leading positions.
TEST_F(DamagedRow, IsAZeroInTheSumsOfBagsAndHarmsNoOther) {
  constexpr Key kWhole = 5000;
  EXPECT_EQ(UpsertOf(kWhole, 9.0f), Outcome::kCreated);
  ASSERT_TRUE(LocationOf(kWhole).IsInDram());
  const std::vector<Key> whole(kGroupKeys, kWhole);
  std::vector<Key> lost_first = whole;
  lost_first.insert(lost_first.begin(), lost_);
  std::vector<Key> lost_last = whole;
  lost_last.push_back(lost_);
  std::vector<Key> lost_between = lost_last;
  lost_between.insert(lost_between.end(), whole.begin(), whole.end());
  std::vector<uint64_t> single(lost_last.size() + 1);
  std::iota(single.begin(), single.end(), 0);
  const std::vector<uint64_t> several = {0, kGroupKeys + 1, 2 * kGroupKeys + 1};
  std::vector<float> first_sums(lost_first.size(), 9.0f);
  first_sums.front() = 0.0f;
  std::vector<float> last_sums(lost_last.size(), 9.0f);
  last_sums.back() = 0.0f;
  struct Bags {
    KeySpan keys;
    std::span<const uint64_t> offsets;
    std::vector<float> sums;
  };
  const Bags first = {lost_first, single, first_sums};
  const Bags last = {lost_last, single, last_sums};
  const Bags between = {lost_between, several, {9.0f * kGroupKeys, 9.0f * kGroupKeys}};
  for (const std::vector<Bags>& all : std::vector<std::vector<Bags>>{
           {first, last}, {between, last}, {last, between}, {first, between, last}}) {
    std::deque<std::vector<float>> rows;
    std::vector<LookupFeature> features(all.size());
    for (size_t i = 0; i < all.size(); ++i) {
      features[i].table = table_;
      features[i].keys = all[i].keys;
      features[i].offsets = all[i].offsets;
      features[i].pooling = Pooling::kSum;
      features[i].rows = RowsIn(&rows.emplace_back(all[i].sums.size() * kDim, -1.0f), kDim);
    }
    EXPECT_TRUE(IsDataLoss(LookupPacked(features, MissingRule::kZero)));
    for (size_t i = 0; i < all.size(); ++i) {
      for (size_t at = 0; at < rows[i].size(); ++at) {
        ASSERT_EQ(rows[i][at], all[i].sums[at / kDim]) << "bag " << at / kDim << " of " << i;
      }
    }
  }
}

TEST_F(DamagedRow, IsErased) {
  const std::vector<Key> twice = {lost_, lost_};
  std::vector<uint8_t> outcomes(2);
  ASSERT_TRUE(Erase(table_, twice, outcomes).ok());
  EXPECT_EQ(outcomes, (std::vector<uint8_t>{static_cast<uint8_t>(Outcome::kFound),
                                            static_cast<uint8_t>(Outcome::kAbsent)}));
  EXPECT_EQ(table_->rows(), rows_ - 1);
  EXPECT_EQ(ContainsOf(lost_), Outcome::kAbsent);
  EXPECT_EQ(ReadAll(table_)->size(), rows_ - 1) << "a scan has nothing to complain of";
  std::vector<float> row;
  EXPECT_EQ(LookupOf(lost_, MissingRule::kCreate, &row), Outcome::kCreated);
}

TEST_F(DamagedRow, IsNoOtherKeysLoss) {
  std::vector<float> row;
  EXPECT_EQ(ContainsOf(twin_), Outcome::kAbsent);
  EXPECT_EQ(EraseOf(twin_), Outcome::kAbsent);
  EXPECT_EQ(LookupOf(twin_, MissingRule::kZero, &row), Outcome::kAbsent);
  EXPECT_EQ(LookupOf(twin_, MissingRule::kCreate, &row), Outcome::kCreated);
  EXPECT_EQ(UpsertOf(twin_, 9.0f), Outcome::kFound);
  EXPECT_EQ(ContainsOf(lost_), Outcome::kDataLoss);
  EXPECT_EQ(UpsertOf(lost_, 7.0f), Outcome::kFound);
  ExpectValue(twin_, 9.0f);
  ExpectValue(lost_, 7.0f);
  EXPECT_EQ(table_->rows(), rows_ + 1);
}

// The owner that a footer named is cached, because a footer is long; reading it again would tell
// nothing new.
TEST_F(DamagedRow, IsKnownWithoutReadingTheFooterAgain) {
  EXPECT_EQ(ContainsOf(lost_), Outcome::kDataLoss);
  const uint64_t footer = segment_->geometry.footer_offset;
  const std::vector<std::byte> wrong(kBlockBytes, std::byte{0xFF});
  store_.disk().Corrupt(path_of_segment(), footer, wrong);
  EXPECT_EQ(ContainsOf(twin_), Outcome::kAbsent);
  EXPECT_EQ(ContainsOf(lost_), Outcome::kDataLoss);
  EXPECT_EQ(EraseOf(lost_), Outcome::kFound);
}

TEST_F(DamagedRow, ARowWithoutAKnownOwnerStaysAsItIs) {
  FlipByte(segment_->geometry.footer_offset + segment_->geometry.footer_bytes - 9);
  for (const Key key : {lost_, twin_}) {
    std::vector<float> row;
    EXPECT_EQ(ContainsOf(key), Outcome::kDataLoss);
    EXPECT_EQ(LookupOf(key, MissingRule::kCreate, &row), Outcome::kDataLoss);
    EXPECT_EQ(UpsertOf(key, 7.0f), Outcome::kDataLoss);
    EXPECT_EQ(EraseOf(key), Outcome::kDataLoss);
  }
  EXPECT_EQ(table_->rows(), rows_);
}

TEST_F(DamagedRow, StaysWhereTheLogTakesNoRows) {
  store_.disk().SetFaults([](const DiskCall& call) {
    return call.kind == DiskCall::Kind::kWrite ? UnavailableError("no") : OkStatus();
  });
  EXPECT_FALSE(store_->checkpoints()->Make({}).ok());
  store_.disk().SetFaults(nullptr);
  EXPECT_EQ(UpsertOf(lost_, 7.0f), Outcome::kRefused);
  EXPECT_EQ(ContainsOf(lost_), Outcome::kDataLoss);
  EXPECT_EQ(EraseOf(lost_), Outcome::kFound) << "that needs no space";
}

}  // namespace
}  // namespace embank::test::damaged_row_test
