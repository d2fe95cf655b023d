// Every argument of every call, wrong in every way that has a rule: the status, a message that
// names the argument and the limit, no output written, and nothing changed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cctype>
#include <cstdio>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "bindings/c/embank.h"
#include "tests/bindings/bad_input.h"
#include "tests/support/c_api.h"
#include "tests/support/oracle.h"
#include "tests/support/row_buffer.h"

namespace embank::test::bad_input_test {
namespace {

constexpr uint64_t kSeed = 5;

// Whether `text` begins with `word` and not with a longer one.
bool BeginsWithWord(const std::string& text, const std::string& word) {
  if (text.compare(0, word.size(), word) != 0) return false;
  const char next = text.size() > word.size() ? text[word.size()] : ' ';
  return next != '_' && std::isalnum(static_cast<unsigned char>(next)) == 0;
}

class BadInputTest : public testing::Test {
 protected:
  BadInputTest() {
    embank_store_options options = StoreOptions();
    options.seed = kSeed;
    store_ = OpenStore(options);
    scene_.store = store_.get();
    scene_.adagrad = Add("adagrad", EMBANK_OPT_ADAGRAD);
    scene_.plain = Add("plain", EMBANK_OPT_NONE);
    scene_.sgd = Add("sgd", EMBANK_OPT_SGD);
    scene_.ftrl = Add("ftrl", EMBANK_OPT_FTRL);
    scene_.adam = Add("adam", EMBANK_OPT_ADAM);
    scan_ = OpenScan(scene_.adagrad);
    scene_.scan = scan_.get();
  }

  // Runs one case on fresh outputs; the scene itself is shared, as nothing may change it.
  void Run(const BadInput& bad) {
    SCOPED_TRACE(bad.name);
    Outputs outputs;
    std::memset(static_cast<void*>(&outputs), 0xA5, sizeof outputs);
    Outputs untouched = outputs;
    Scene scene = scene_;
    scene.out = &outputs;
    EXPECT_EQ(bad.call(scene), bad.status) << embank_last_error();
    for (const std::string& part : bad.mentions) {
      EXPECT_THAT(embank_last_error(), testing::HasSubstr(part));
    }
    if (bad.status == EMBANK_INVALID_ARGUMENT) {
      EXPECT_TRUE(BeginsWithWord(embank_last_error(), bad.mentions.front())) << embank_last_error();
    }
    EXPECT_EQ(std::memcmp(&outputs, &untouched, sizeof outputs), 0) << "an output was written";
    ExpectUnchanged();
  }

  void ExpectUnchanged() {
    for (const Twin& twin : twins_) EXPECT_EQ(Difference(twin.table, twin.oracle), "");
    char names[64];
    uint64_t needed = 0;
    ASSERT_EQ(embank_table_names(store_.get(), names, sizeof names, &needed), EMBANK_OK);
    EXPECT_STREQ(names, "adagrad\nplain\nsgd\nftrl\nadam\n");
  }

  Scene scene_ = {};
  StorePtr store_;
  std::vector<Twin> twins_;

 private:
  embank_table* Add(const std::string& name, int32_t optimizer) {
    embank_table_options options = TableOptions(3, optimizer);
    options.initializer = EMBANK_INIT_UNIFORM;
    options.init_b = 1.0f;
    twins_.push_back(CreateTwin(store_.get(), kSeed, name, options));
    Twin& twin = twins_.back();
    RowBuffer rows(2, 12);
    EXPECT_EQ(
        embank_lookup(twin.table, scene_.keys, 2, EMBANK_MISSING_CREATE, rows.data(), 0, nullptr),
        EMBANK_OK);
    twin.oracle.Lookup(scene_.keys, 2, EMBANK_MISSING_CREATE, rows.data(), 0, nullptr);
    return twin.table;
  }

  ScanPtr scan_;
};

TEST_F(BadInputTest, BadStoreOptionsAreRefused) {
  for (const BadInput& bad : BadStoreInputs()) Run(bad);
}
TEST_F(BadInputTest, BadTablesAreRefused) {
  for (const BadInput& bad : BadTableInputs()) Run(bad);
}
TEST_F(BadInputTest, BadDataCallsAndScansAreRefused) {
  for (const BadInput& bad : BadDataInputs()) Run(bad);
}
TEST_F(BadInputTest, BadInsightCallsAreRefused) {
  for (const BadInput& bad : BadInsightInputs()) Run(bad);
}

TEST_F(BadInputTest, BadCallsOfWholeRowsAndFactsAreRefused) {
  for (const BadInput& bad : BadWholeRowInputs()) Run(bad);
}

// The learning rate is part of what must not change: the next step shows it.
TEST_F(BadInputTest, ARefusedLearningRateChangesNoStep) {
  ASSERT_EQ(embank_set_learning_rate(scene_.sgd, -1.0f), EMBANK_INVALID_ARGUMENT);
  Twin& sgd = twins_[2];
  EXPECT_EQ(embank_apply_gradients(sgd.table, scene_.keys, 2, scene_.values, 0, nullptr),
            EMBANK_OK);
  sgd.oracle.ApplyGradients(scene_.keys, 2, scene_.values, 0, nullptr);
  EXPECT_EQ(Difference(sgd.table, sgd.oracle), "");
}

TEST_F(BadInputTest, TheScanGoesOnAfterBadCalls) {
  for (const std::vector<BadInput>& cases : {BadDataInputs(), BadWholeRowInputs()}) {
    for (const BadInput& bad : cases) {
      if (bad.name.find("scan_next") != std::string::npos) Run(bad);
    }
  }
  uint64_t keys[4];
  float rows[12];
  uint64_t n = 0;
  EXPECT_EQ(embank_scan_next(scene_.scan, keys, rows, 0, 4, &n), EMBANK_OK);
  EXPECT_EQ(n, 2u);
}

TEST_F(BadInputTest, TheFirstBadGradientIsNamed) {
  uint64_t keys[3] = {11, 999'999'999'999, 12};
  float gradients[9] = {0, 0, 0, 0, INFINITY, 0, NAN, 0, 0};
  EXPECT_EQ(embank_apply_gradients(scene_.adagrad, keys, 3, gradients, 0, nullptr),
            EMBANK_INVALID_ARGUMENT);
  EXPECT_THAT(embank_last_error(), testing::HasSubstr("999999999999"));
  ExpectUnchanged();
}

TEST_F(BadInputTest, TheMessageBelongsToTheThreadAndOutlivesSuccess) {
  ASSERT_EQ(embank_table_drop(store_.get(), "ghost"), EMBANK_NOT_FOUND);
  std::string message = embank_last_error();
  std::string first_of_other = "unset";
  std::thread([&] {
    first_of_other = embank_last_error();
    embank_table_drop(nullptr, "other");
  }).join();
  EXPECT_EQ(first_of_other, "");
  uint8_t outcome = 0;
  EXPECT_EQ(embank_contains(scene_.sgd, scene_.keys, 1, &outcome), EMBANK_OK);
  EXPECT_EQ(embank_last_error(), message);
}

// The bounds themselves are good input.
TEST_F(BadInputTest, TheLimitsThemselvesAreAccepted) {
  embank_store_options options = StoreOptions();
  options.dram_bytes = 16 << 20;
  options.worker_threads = 1024;
  options.flags = EMBANK_OPEN_CREATE;
  options.durability = EMBANK_DURABLE_NONE;
  StorePtr store = OpenStore(options);
  embank_table_options table = TableOptions(4096, EMBANK_OPT_ADAM);
  table.learning_rate = 0;
  table.beta1 = 0;
  table.beta2 = 0.99999994f;
  table.epsilon = 0;
  table.admission_count = 1;
  EXPECT_NE(CreateTable(store.get(), std::string(255, 'x'), table), nullptr);
  table.dim = 1;
  EXPECT_NE(CreateTable(store.get(), "x", table), nullptr);
  EXPECT_NE(store, nullptr);
}

TEST(BadInputCases, AreAllThere) {
  size_t cases = BadStoreInputs().size() + BadTableInputs().size() + BadDataInputs().size() +
                 BadInsightInputs().size() + BadWholeRowInputs().size();
  std::printf("%zu bad inputs\n", cases);
  EXPECT_GE(cases, 200u);
}

}  // namespace
}  // namespace embank::test::bad_input_test
