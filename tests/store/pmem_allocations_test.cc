// Data calls of a store with rows in DRAM, PMem and on the SSD, in which any one allocation or all
// later ones fail: each call is done or refused, and no row is lost.
#include <gtest/gtest.h>

#include <cstdio>
#include <functional>
#include <map>
#include <new>
#include <string>
#include <vector>

#include "store/batch/gradients.h"
#include "store/batch/lookup.h"
#include "store/batch/prefetch.h"
#include "store/batch/write.h"
#include "store/scan/scan.h"
#include "tests/store/pmem_rows.h"
#include "tests/support/allocation_faults.h"
#include "tests/support/random.h"
#include "tests/support/row_values.h"
#include "tests/support/unfaulted.h"

namespace embank::test::pmem_allocations_test {
namespace {

constexpr Key kKeys = 4000;
constexpr size_t kBatch = 60;
constexpr uint64_t kFaultsMax = 500;  // no call allocates so often

class PmemAllocations : public PmemTier {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(OpenWith(kPmemBytes));
    ASSERT_NO_FATAL_FAILURE(Fill(kKeys));
    for (Key key = 0; key < kKeys; ++key) factors_[key] = 1.0f;
    ASSERT_GT(pmem_rows(), 100u);
    ASSERT_GT(ssd_rows(), 500u);
    world_.memory().AskFirst(&AllocationFaults::MustFail);
  }

  // Makes the call with drawn keys while an allocation fails, until none is left to fail.
  void RunCalls(const std::string& name,
                const std::function<Status(const std::vector<Key>&, OutcomeSpan)>& call,
                const std::function<void(Key, Outcome)>& follow) {
    for (const FaultKind kind : {FaultKind::kOnce, FaultKind::kSince}) {
      bool met = true;
      for (uint64_t n = 1; met; ++n) {
        SCOPED_TRACE(name + " with allocation " + std::to_string(n) + " failing");
        ASSERT_LT(n, kFaultsMax);
        std::vector<Key> keys(kBatch);
        for (Key& key : keys) key = random_.Below(kKeys);
        std::vector<uint8_t> outcomes(kBatch);
        rows_ = RowsOfKeys(keys, factor_);
        Status status;
        {
          const AllocationFaults faults(n, kind);
          try {
            status = call(keys, outcomes);
          } catch (const std::bad_alloc&) {  // as the C API does it
            const Unfaulted own;
            status = ResourceExhaustedError("no memory");
          }
          met = AllocationFaults::Failed() > 0;
        }
        ASSERT_TRUE(status.ok() || (met && IsResourceExhausted(status))) << status;
        for (size_t i = 0; status.ok() && i < kBatch; ++i) {
          follow(keys[i], static_cast<Outcome>(outcomes[i]));
        }
        ASSERT_NO_FATAL_FAILURE(ExpectRowsOf(keys));
        faults_ += met ? 1 : 0;
      }
    }
  }
  void ExpectRowsOf(const std::vector<Key>& keys) {
    std::vector<float> rows(keys.size() * kDim, -1.0f);
    const Status status = Lookup(table_, keys, MissingRule::kSkip, RowsIn(&rows, kDim), {});
    ASSERT_TRUE(status.ok() || IsNotFound(status)) << status;
    for (size_t i = 0; i < keys.size(); ++i) {
      const auto found = factors_.find(keys[i]);
      const float expected =
          found == factors_.end() ? -1.0f : found->second * static_cast<float>(keys[i]);
      ASSERT_TRUE(IsRowOf(rows, i, kDim, expected)) << "key " << keys[i];
    }
  }
  void ExpectAll() {
    ASSERT_EQ(table_->rows(), factors_.size());
    for (Key first = 0; first < kKeys; first += 100) {
      ASSERT_NO_FATAL_FAILURE(ExpectRowsOf(KeysFrom(first, 100)));
    }
  }

  Random random_{7};
  float factor_ = 2.0f;
  std::vector<float> rows_;  // those of the keys of a call
  std::map<Key, float> factors_;
  uint64_t faults_ = 0;
};

TEST_F(PmemAllocations, ThatFailInAnyCallLoseNoRow) {
  const auto leaves = [](Key, Outcome) {};
  const std::vector<float> zeros(kBatch * kDim);
  for (; factor_ < 6.0f; ++factor_) {
    RunCalls(
        "upsert",
        [&](const std::vector<Key>& keys, OutcomeSpan outcomes) {
          return Upsert(table_, keys, RowsOf(rows_, kDim), outcomes);
        },
        [&](Key key, Outcome outcome) {
          if (outcome != Outcome::kRefused) factors_[key] = factor_;
        });
    RunCalls(
        "lookup",
        [&](const std::vector<Key>& keys, OutcomeSpan outcomes) {
          return Lookup(table_, keys, MissingRule::kSkip, RowsIn(&rows_, kDim), outcomes);
        },
        leaves);
    // A gradient of zero moves the row into DRAM, dirty, and leaves its values.
    RunCalls(
        "gradients",
        [&](const std::vector<Key>& keys, OutcomeSpan outcomes) {
          return ApplyGradients(table_, keys, RowsOf(zeros, kDim), outcomes);
        },
        leaves);
    RunCalls(
        "prefetch",
        [&](const std::vector<Key>& keys, OutcomeSpan) { return Prefetch(table_, keys); }, leaves);
    RunCalls(
        "erase",
        [&](const std::vector<Key>& keys, OutcomeSpan outcomes) {
          return Erase(table_, std::span(keys).first(5), outcomes.first(5));
        },
        [&](Key key, Outcome outcome) {
          if (outcome == Outcome::kFound) factors_.erase(key);
        });
    ASSERT_FALSE(HasFailure());
  }
  std::printf("  %llu allocations failed, %llu rows demoted\n",
              static_cast<unsigned long long>(faults_),
              static_cast<unsigned long long>(world_->demoted_rows()));
  EXPECT_GT(faults_, 20u);
  EXPECT_GT(world_->demoted_rows(), 100u);
  ASSERT_NO_FATAL_FAILURE(ExpectAll());
  ASSERT_NO_FATAL_FAILURE(Checkpoint());
  ASSERT_NO_FATAL_FAILURE(Reopen());
  ExpectAll();
}

}  // namespace
}  // namespace embank::test::pmem_allocations_test
