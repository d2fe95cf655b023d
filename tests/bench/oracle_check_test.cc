#include "bench/oracle_check.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "bench/c_store.h"
#include "bench/table_options.h"

namespace embank::oracle_check_test {
namespace {

constexpr uint64_t kSeed = 3;
const TableShape kShape{4, ValueType::kF32, Optimizer::kAdagrad};

// The answers of a store.
struct Answers {
  std::vector<Key> keys;
  std::vector<float> rows;
  std::vector<float> state;
  std::vector<uint32_t> heat;
  std::vector<uint8_t> outcomes;

  const std::byte* row_bytes() const { return reinterpret_cast<const std::byte*>(rows.data()); }
};

// A store and its check, with three keys looked up (one of them twice) and stepped.
class OracleCheckTest : public testing::Test {
 protected:
  OracleCheckTest()
      : store_(*OpenCStore(kShape, kSeed, 1)),
        check_(kSeed, kTableName, MakeTableOptions(kShape)),
        gradients_(keys_.size() * kShape.dim, 0.5f) {}

  Answers Lookup() {
    Answers answers{keys_,
                    std::vector<float>(keys_.size() * kShape.dim),
                    {},
                    {},
                    std::vector<uint8_t>(keys_.size())};
    EXPECT_EQ(embank_lookup(store_.table, keys_.data(), keys_.size(), EMBANK_MISSING_CREATE,
                            answers.rows.data(), 0, answers.outcomes.data()),
              EMBANK_OK);
    return answers;
  }

  Answers Step() {
    Answers answers;
    answers.outcomes.resize(keys_.size());
    EXPECT_EQ(embank_apply_gradients(store_.table, keys_.data(), keys_.size(), gradients_.data(), 0,
                                     answers.outcomes.data()),
              EMBANK_OK);
    return answers;
  }

  // Three rows, by scan.
  Answers Scan() {
    constexpr uint64_t kCapacity = 8;
    Answers answers{std::vector<Key>(kCapacity),
                    std::vector<float>(kCapacity * kShape.dim),
                    std::vector<float>(kCapacity * kShape.dim),
                    std::vector<uint32_t>(kCapacity),
                    {}};
    embank_scan* scan = nullptr;
    EXPECT_EQ(embank_scan_open(store_.table, &scan), EMBANK_OK);
    uint64_t n = 0;
    EXPECT_EQ(embank_scan_next(scan, answers.keys.data(), answers.rows.data(), 0, kCapacity, &n),
              EMBANK_OK);
    embank_scan_close(scan);
    EXPECT_EQ(n, 3u);
    answers.keys.resize(n);
    EXPECT_EQ(
        embank_get_state(store_.table, answers.keys.data(), n, answers.state.data(), 0, nullptr),
        EMBANK_OK);
    EXPECT_EQ(embank_get_heat(store_.table, answers.keys.data(), n, answers.heat.data(), nullptr),
              EMBANK_OK);
    return answers;
  }

  void CheckLookup(const Answers& answers) {
    EXPECT_TRUE(check_.Lookup(keys_, answers.row_bytes(), answers.outcomes.data()).ok());
  }
  void CheckStep(const Answers& answers) {
    EXPECT_TRUE(check_.Gradients(keys_, gradients_.data(), answers.outcomes.data()).ok());
  }
  void CheckScan(const Answers& answers) {
    check_.Scanned(answers.keys, answers.row_bytes(), answers.state.data(), answers.heat.data());
    check_.EndScan();
  }
  void RunUntilScan() {
    CheckLookup(Lookup());
    CheckStep(Step());
  }
  void ExpectMismatches(uint64_t count, const std::string& first) {
    EXPECT_EQ(check_.mismatches(), count);
    EXPECT_EQ(check_.first_mismatch(), first);
  }

  const std::vector<Key> keys_ = {10, 20, 10, 30};
  CStore store_;
  OracleCheck check_;
  const std::vector<float> gradients_;
};

TEST_F(OracleCheckTest, FindsNothingWhereNothingIsWrong) {
  RunUntilScan();
  CheckScan(Scan());
  ExpectMismatches(0, "");
  EXPECT_EQ(check_.answers_compared(), 4u);
  EXPECT_EQ(check_.rows_compared(), 3u);
  EXPECT_EQ(check_.rows(), 3u);
}

TEST_F(OracleCheckTest, SeesOneBitOfALookedUpRow) {
  Answers answers = Lookup();
  answers.rows[3 * kShape.dim + 1] *= -1.0f;
  CheckLookup(answers);
  ExpectMismatches(1, "key 30: looked-up row");
}

TEST_F(OracleCheckTest, SeesAWrongOutcome) {
  Answers answers = Lookup();
  answers.outcomes[2] = EMBANK_ROW_CREATED;
  CheckLookup(answers);
  ExpectMismatches(1, "key 10: outcome of its lookup");
  answers = Step();
  answers.outcomes[1] = EMBANK_ROW_ABSENT;
  CheckStep(answers);
  ExpectMismatches(2, "key 10: outcome of its lookup");
}

TEST_F(OracleCheckTest, SeesAStepThatWasNotTaken) {
  CheckLookup(Lookup());
  std::vector<uint8_t> found(keys_.size(), EMBANK_ROW_FOUND);
  EXPECT_TRUE(check_.Gradients(keys_, gradients_.data(), found.data()).ok());
  CheckScan(Scan());
  EXPECT_EQ(check_.mismatches(), 6u);  // rows and states of three keys
}

TEST_F(OracleCheckTest, SeesScannedRowStateAndHeat) {
  RunUntilScan();
  Answers answers = Scan();
  answers.rows[0] += 1.0f;
  answers.state[kShape.dim] += 1.0f;
  answers.heat[2] += 1;
  CheckScan(answers);
  EXPECT_EQ(check_.mismatches(), 3u);
  EXPECT_NE(check_.first_mismatch().find("scanned row"), std::string::npos);
}

TEST_F(OracleCheckTest, SeesRowsThatAreMissingTwiceOrNotThere) {
  RunUntilScan();
  Answers answers = Scan();
  const Key missing = answers.keys[2];
  answers.keys[2] = answers.keys[1];
  check_.Scanned(answers.keys, answers.row_bytes(), answers.state.data(), answers.heat.data());
  ExpectMismatches(1, "key " + std::to_string(answers.keys[1]) + ": scan: it came twice");
  const Key stranger[] = {99};
  check_.Scanned(stranger, answers.row_bytes(), answers.state.data(), answers.heat.data());
  EXPECT_EQ(check_.mismatches(), 2u);
  check_.EndScan();
  EXPECT_EQ(check_.mismatches(), 3u);
  const Key late[] = {missing};
  check_.Scanned(late, answers.row_bytes() + 2 * kShape.dim * sizeof(float),
                 answers.state.data() + 2 * kShape.dim, answers.heat.data() + 2);
  EXPECT_EQ(check_.mismatches(), 3u);
}

}  // namespace
}  // namespace embank::oracle_check_test
