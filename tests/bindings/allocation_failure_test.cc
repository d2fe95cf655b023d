// Every call with its first, second, ... allocation failing, once or from then on, until none is
// left to fail: the answer is success or RESOURCE_EXHAUSTED, a failed call has changed nothing, and
// the store goes on working. Under AddressSanitizer this also shows what a failed call leaks.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "bindings/c/embank.h"
#include "bindings/c/handles.h"
#include "bindings/c/last_error.h"
#include "tests/support/allocation_faults.h"
#include "tests/support/c_api.h"
#include "tests/support/failing_memory.h"
#include "tests/support/oracle.h"
#include "tests/support/random.h"
#include "tests/support/row_buffer.h"
#include "tests/support/scratch_directory.h"

namespace embank::test::allocation_failure_test {
namespace {

constexpr uint64_t kFaultsMax = 3000;  // no call allocates so often

// The page memory of all stores: faults fail its calls, too.
FailingMemory* Source() {
  static FailingMemory source;
  source.AskFirst(&AllocationFaults::MustFail);
  return &source;
}

class AllocationFailure : public testing::Test {
 protected:
  void TearDown() override {
    EXPECT_EQ(Source()->outstanding(), 0u) << "a store left memory behind";
    EXPECT_EQ(Source()->committed_bytes(), 0u);
    EXPECT_EQ(Source()->misuses(), 0u);
  }
};

embank_status OpenFaulty(const embank_store_options& options, embank_store** store) {
  StoreEnvironment environment;
  environment.memory = Source();
  // Like the C API: no exception leaves.
  return Guard([&] { return OpenStoreIn(&options, std::move(environment), store); });
}

embank_status OpenFaulty(uint32_t worker_threads, embank_store** store) {
  embank_store_options options = StoreOptions();
  options.worker_threads = worker_threads;
  return OpenFaulty(options, store);
}

// A store with a table of some rows, its oracle, and a batch half of whose keys exist.
class Bench {
 public:
  explicit Bench(uint64_t batch) : keys_(KeyRange(batch / 2, batch)) {
    embank_store* store = nullptr;
    EXPECT_EQ(OpenFaulty(2, &store), EMBANK_OK) << embank_last_error();
    store_.reset(store);
    embank_table_options options = TableOptions(3, EMBANK_OPT_ADAGRAD);
    options.initializer = EMBANK_INIT_UNIFORM;
    options.init_b = 1.0f;
    twin_ = std::make_unique<Twin>(CreateTwin(store, StoreOptions().seed, "t", options));
    std::vector<uint64_t> existing = KeyRange(0, batch);
    RowBuffer rows(batch, 12);
    EXPECT_EQ(embank_lookup(twin_->table, existing.data(), batch, EMBANK_MISSING_CREATE,
                            rows.data(), 0, nullptr),
              EMBANK_OK);
    twin_->oracle.Lookup(existing.data(), batch, EMBANK_MISSING_CREATE, rows.data(), 0, nullptr);
    for (uint64_t i = 5; i < batch; i += 7) keys_[i] = keys_[i - 5];  // duplicates
    values_.resize(batch * 3);
    Random random(3);
    for (float& value : values_) value = random.Signed();
    heats_.resize(batch);
    for (uint32_t& heat : heats_) heat = static_cast<uint32_t>(random.Below(1 << 20));
  }

  embank_store* store() { return store_.get(); }
  embank_table* table() { return twin_->table; }
  oracle::Table* oracle() { return &twin_->oracle; }
  const std::vector<uint64_t>& keys() const { return keys_; }
  const float* values() const { return values_.data(); }
  const uint32_t* heats() const { return heats_.data(); }
  std::string DifferenceNow() { return Difference(twin_->table, twin_->oracle); }

 private:
  StorePtr store_;
  std::unique_ptr<Twin> twin_;
  std::vector<uint64_t> keys_;
  std::vector<float> values_;
  std::vector<uint32_t> heats_;
};

// A call under faults: `run` makes it with buffers made before the faults were armed and returns
// its status; `follow` does the same to the oracle, given the outcomes of the store.
struct Call {
  std::string name;
  std::function<embank_status(Bench*, RowBuffer*, uint8_t*)> run;
  std::function<void(Bench*, RowBuffer*, uint8_t*, const uint8_t*)> follow;
};

std::vector<Call> LookupCalls() {
  auto lookup = [](int32_t missing) {
    return Call{"lookup " + std::to_string(missing),
                [missing](Bench* b, RowBuffer* rows, uint8_t* outcomes) {
                  return embank_lookup(b->table(), b->keys().data(), b->keys().size(), missing,
                                       rows->data(), 0, outcomes);
                },
                [missing](Bench* b, RowBuffer* rows, uint8_t* outcomes, const uint8_t* told) {
                  b->oracle()->Lookup(b->keys().data(), b->keys().size(), missing, rows->data(), 0,
                                      outcomes, told);
                }};
  };
  return {lookup(EMBANK_MISSING_CREATE), lookup(EMBANK_MISSING_DEFAULT),
          lookup(EMBANK_MISSING_ZERO), lookup(EMBANK_MISSING_SKIP)};
}

std::vector<Call> UpsertCalls() {
  return {
      {"upsert",
       [](Bench* b, RowBuffer*, uint8_t* outcomes) {
         return embank_upsert(b->table(), b->keys().data(), b->keys().size(), b->values(), 0,
                              outcomes);
       },
       [](Bench* b, RowBuffer*, uint8_t* outcomes, const uint8_t* told) {
         b->oracle()->Upsert(b->keys().data(), b->keys().size(), b->values(), 0, outcomes, told);
       }},
      {"upsert_full",
       [](Bench* b, RowBuffer*, uint8_t* outcomes) {
         return embank_upsert_full(b->table(), b->keys().data(), b->keys().size(), b->values(), 0,
                                   b->values(), 0, b->heats(), outcomes);
       },
       [](Bench* b, RowBuffer*, uint8_t* outcomes, const uint8_t* told) {
         b->oracle()->UpsertFull(b->keys().data(), b->keys().size(), b->values(), 0, b->values(), 0,
                                 b->heats(), outcomes, told);
       }},
  };
}

std::vector<Call> OtherCalls() {
  return {
      {"apply_gradients",
       [](Bench* b, RowBuffer*, uint8_t* outcomes) {
         return embank_apply_gradients(b->table(), b->keys().data(), b->keys().size(), b->values(),
                                       0, outcomes);
       },
       [](Bench* b, RowBuffer*, uint8_t* outcomes, const uint8_t*) {
         b->oracle()->ApplyGradients(b->keys().data(), b->keys().size(), b->values(), 0, outcomes);
       }},
      {"erase",
       [](Bench* b, RowBuffer*, uint8_t* outcomes) {
         return embank_erase(b->table(), b->keys().data(), b->keys().size(), outcomes);
       },
       [](Bench* b, RowBuffer*, uint8_t* outcomes, const uint8_t*) {
         b->oracle()->Erase(b->keys().data(), b->keys().size(), outcomes);
       }},
      {"contains",
       [](Bench* b, RowBuffer*, uint8_t* outcomes) {
         return embank_contains(b->table(), b->keys().data(), b->keys().size(), outcomes);
       },
       [](Bench* b, RowBuffer*, uint8_t* outcomes, const uint8_t*) {
         b->oracle()->Contains(b->keys().data(), b->keys().size(), outcomes);
       }},
      {"prefetch",
       [](Bench* b, RowBuffer*, uint8_t*) {
         return embank_prefetch(b->table(), b->keys().data(), b->keys().size());
       },
       [](Bench*, RowBuffer*, uint8_t*, const uint8_t*) {}},
      {"get_heat",
       [](Bench* b, RowBuffer* rows, uint8_t* outcomes) {
         return embank_get_heat(b->table(), b->keys().data(), b->keys().size(),
                                static_cast<uint32_t*>(rows->data()), outcomes);
       },
       [](Bench* b, RowBuffer* rows, uint8_t* outcomes, const uint8_t*) {
         b->oracle()->GetHeat(b->keys().data(), b->keys().size(),
                              static_cast<uint32_t*>(rows->data()), outcomes);
       }},
      {"get_state",
       [](Bench* b, RowBuffer* rows, uint8_t* outcomes) {
         return embank_get_state(b->table(), b->keys().data(), b->keys().size(), rows->floats(), 0,
                                 outcomes);
       },
       [](Bench* b, RowBuffer* rows, uint8_t* outcomes, const uint8_t*) {
         b->oracle()->GetState(b->keys().data(), b->keys().size(), rows->floats(), 0, outcomes);
       }},
      {"set_state",
       [](Bench* b, RowBuffer*, uint8_t* outcomes) {
         return embank_set_state(b->table(), b->keys().data(), b->keys().size(), b->values(), 0,
                                 outcomes);
       },
       [](Bench* b, RowBuffer*, uint8_t* outcomes, const uint8_t*) {
         b->oracle()->SetState(b->keys().data(), b->keys().size(), b->values(), 0, outcomes);
       }},
  };
}

std::vector<Call> DataCalls() {
  std::vector<Call> calls = LookupCalls();
  for (Call& call : UpsertCalls()) calls.push_back(std::move(call));
  for (Call& call : OtherCalls()) calls.push_back(std::move(call));
  return calls;
}

// Without outcomes, a call that was done for keys some of which are absent says so, fault or none.
void TryUntoldCall(const Call& call, uint64_t batch, uint64_t n, FaultKind kind) {
  Bench bench(batch);
  RowBuffer rows(batch, 12);
  std::vector<uint8_t> outcomes(batch);
  embank_status status;
  {
    AllocationFaults faults(n, kind);
    status = call.run(&bench, &rows, nullptr);
  }
  if (status != EMBANK_RESOURCE_EXHAUSTED) {
    EXPECT_EQ(status, EMBANK_NOT_FOUND);
    call.follow(&bench, &rows, outcomes.data(), nullptr);
  }
  EXPECT_EQ(bench.DifferenceNow(), "") << call.name << " answered " << embank_status_name(status)
                                       << " with allocation " << n << " failing";
}

// One data call with one fault, and the same call again without. Whether the fault was met.
bool TryDataCall(const Call& call, uint64_t batch, uint64_t n, FaultKind kind, uint64_t* refused) {
  Bench bench(batch);
  RowBuffer rows(batch, 12);
  RowBuffer untouched = rows;
  std::vector<uint8_t> outcomes(batch, 0x77);
  std::vector<uint8_t> unasked = outcomes;
  std::vector<uint8_t> right = outcomes;
  RowBuffer expected = rows;
  embank_status status;
  uint64_t failed;
  {
    AllocationFaults faults(n, kind);
    status = call.run(&bench, &rows, outcomes.data());
    failed = AllocationFaults::Failed();
  }
  if (status == EMBANK_OK) {
    call.follow(&bench, &expected, right.data(), outcomes.data());
    EXPECT_EQ(outcomes, right);
    EXPECT_TRUE(rows == expected);
    for (uint8_t outcome : outcomes) *refused += outcome == EMBANK_ROW_REFUSED ? 1 : 0;
  } else {
    EXPECT_EQ(status, EMBANK_RESOURCE_EXHAUSTED) << embank_last_error();
    EXPECT_TRUE(rows == untouched && outcomes == unasked) << "a failed call wrote its outputs";
    EXPECT_STRNE(embank_last_error(), "");
  }
  EXPECT_EQ(bench.DifferenceNow(), "");
  EXPECT_EQ(call.run(&bench, &rows, outcomes.data()), EMBANK_OK) << embank_last_error();
  call.follow(&bench, &expected, right.data(), nullptr);
  EXPECT_EQ(outcomes, right);
  EXPECT_EQ(bench.DifferenceNow(), "");
  return failed > 0;
}

// The first faults one by one; of the many that follow in a large batch (each shard's index grows)
// a sample.
uint64_t NextFault(uint64_t n) { return n < 5 ? n + 1 : n + 20; }

// Calls that take no memory at all: readers.
bool TakesNone(const std::string& call) {
  for (const char* reader : {"lookup 1", "lookup 2", "lookup 3", "contains", "prefetch", "get_"}) {
    if (call.rfind(reader, 0) == 0) return true;
  }
  return false;
}

// How many rows were refused in all.
uint64_t RunDataCalls(uint64_t batch) {
  uint64_t refused = 0;
  for (const Call& call : DataCalls()) {
    for (FaultKind kind : {FaultKind::kOnce, FaultKind::kSince}) {
      uint64_t n = 1;
      while (n < kFaultsMax && TryDataCall(call, batch, n, kind, &refused)) {
        if (testing::Test::HasFailure()) {
          ADD_FAILURE() << call.name << " with allocation " << n << " failing";
          return refused;
        }
        n = NextFault(n);
      }
      EXPECT_LT(n, kFaultsMax) << call.name;
      EXPECT_EQ(n < 2, TakesNone(call.name)) << call.name << " met no fault, or one";
      std::printf("  %-16s %s: no fault left at %llu\n", call.name.c_str(),
                  kind == FaultKind::kOnce ? "one " : "from", static_cast<unsigned long long>(n));
    }
  }
  return refused;
}

TEST_F(AllocationFailure, DataCallsOfAThousandKeys) { RunDataCalls(1000); }

// Refusals in the middle of a batch of several threads, with a full budget and no memory for as
// much as a message.
TEST_F(AllocationFailure, RefusalsOfALargeBatchNeedNoMemory) {
  constexpr uint64_t kKeys = 30'000;
  constexpr uint32_t kDim = 256;
  for (uint64_t n : {4, 6, 9, 20}) {
    embank_store_options options = StoreOptions();
    options.worker_threads = 4;
    options.dram_bytes = uint64_t{16} << 20;
    embank_store* opened = nullptr;
    ASSERT_EQ(OpenFaulty(options, &opened), EMBANK_OK) << embank_last_error();
    StorePtr store(opened);
    Twin twin = CreateTwin(opened, options.seed, "t", TableOptions(kDim, EMBANK_OPT_NONE));
    std::vector<uint64_t> keys = KeyRange(0, kKeys);
    RowBuffer rows(kKeys, kDim * sizeof(float));
    RowBuffer expected = rows;
    std::vector<uint8_t> outcomes(kKeys);
    std::vector<uint8_t> right(kKeys);
    embank_status status;
    {
      AllocationFaults faults(n, FaultKind::kSince);
      status = embank_lookup(twin.table, keys.data(), kKeys, EMBANK_MISSING_CREATE, rows.data(), 0,
                             outcomes.data());
    }
    ASSERT_EQ(status, EMBANK_OK) << embank_last_error();
    twin.oracle.Lookup(keys.data(), kKeys, EMBANK_MISSING_CREATE, expected.data(), 0, right.data(),
                       outcomes.data());
    EXPECT_EQ(outcomes, right);
    EXPECT_TRUE(rows == expected);
    EXPECT_GT(std::count(outcomes.begin(), outcomes.end(), EMBANK_ROW_REFUSED), 1000);
    EXPECT_EQ(Difference(twin.table, twin.oracle), "");
  }
}

TEST_F(AllocationFailure, ExhaustedMeansNothingWasDone) {
  int calls = 0;
  for (const Call& call : DataCalls()) {
    if (call.name != "apply_gradients" && call.name != "set_state") continue;
    ++calls;
    for (FaultKind kind : {FaultKind::kOnce, FaultKind::kSince}) {
      for (uint64_t n = 1; n < 8; ++n) TryUntoldCall(call, 200, n, kind);
    }
  }
  EXPECT_EQ(calls, 2);
}

TEST_F(AllocationFailure, DataCallsOnSeveralThreadsWithAGrowingIndex) {
  uint64_t refused = RunDataCalls(20'000);
  std::printf("  %llu rows refused\n", static_cast<unsigned long long>(refused));
  EXPECT_EQ(refused, 0u) << "a growth of the index failed, and a row was refused that had a place";
}

// ---- calls that return objects or strings ----

using Attempt = std::function<embank_status()>;

// `prepare` makes an attempt, which then runs under faults; `check` checks its results. Both run
// for each fault, until the attempt meets none.
void RunAttempts(const std::string& name, const std::function<Attempt()>& prepare,
                 const std::function<void(embank_status)>& check) {
  for (FaultKind kind : {FaultKind::kOnce, FaultKind::kSince}) {
    uint64_t n = 1;
    for (bool met = true; met && n < kFaultsMax; ++n) {
      SCOPED_TRACE(name + " with allocation " + std::to_string(n) + " failing");
      Attempt attempt = prepare();
      embank_status status;
      {
        AllocationFaults faults(n, kind);
        status = attempt();
        met = AllocationFaults::Failed() > 0;
      }
      EXPECT_TRUE(status == EMBANK_OK || (met && status == EMBANK_RESOURCE_EXHAUSTED))
          << embank_status_name(status) << " " << embank_last_error();
      check(status);
      if (testing::Test::HasFailure()) return;
    }
    EXPECT_LT(n, kFaultsMax);
    EXPECT_GT(n, 2u) << name << " met no fault";
    std::printf("  %-16s %s: %llu faults\n", name.c_str(),
                kind == FaultKind::kOnce ? "one " : "from", static_cast<unsigned long long>(n - 2));
  }
}

TEST_F(AllocationFailure, OpenGivesAStoreThatWorksOrNone) {
  for (uint32_t threads : {1u, 4u}) {
    embank_store* store = nullptr;
    RunAttempts(
        "open", [&] { return [&store, threads] { return OpenFaulty(threads, &store); }; },
        [&](embank_status status) {
          ASSERT_EQ(store != nullptr, status == EMBANK_OK);
          if (store == nullptr) return;
          Twin twin = CreateTwin(store, StoreOptions().seed, "t", TableOptions(2));
          std::vector<uint64_t> keys = KeyRange(0, 10'000);
          RowBuffer rows(keys.size(), 8);
          EXPECT_EQ(embank_lookup(twin.table, keys.data(), keys.size(), EMBANK_MISSING_CREATE,
                                  rows.data(), 0, nullptr),
                    EMBANK_OK);
          EXPECT_EQ(RowCount(twin.table), keys.size());
          embank_store_close(store);
          store = nullptr;
        });
  }
}

TEST_F(AllocationFailure, CreateMakesATableOrNothing) {
  Bench bench(100);
  embank_table* table = nullptr;
  int number = 0;
  embank_table_options options = TableOptions(3);
  std::string name;
  auto prepare = [&]() -> Attempt {
    name = "a table with a name that needs an allocation " + std::to_string(number++);
    options.dim = static_cast<uint32_t>(4 * number);  // a row class of its own each time
    return [&] { return embank_table_create(bench.store(), name.c_str(), &options, &table); };
  };
  RunAttempts("create", prepare, [&](embank_status status) {
    ASSERT_EQ(table != nullptr, status == EMBANK_OK);
    embank_table* found = nullptr;
    embank_status opened = embank_table_open(bench.store(), name.c_str(), &found);
    ASSERT_EQ(opened, status == EMBANK_OK ? EMBANK_OK : EMBANK_NOT_FOUND);
    ASSERT_EQ(found, table);
    if (table == nullptr) {
      table = CreateTable(bench.store(), name, options);
    }
    RowBuffer row(1, options.dim * sizeof(float));
    uint64_t key = 9;
    EXPECT_EQ(embank_lookup(table, &key, 1, EMBANK_MISSING_CREATE, row.data(), 0, nullptr),
              EMBANK_OK);
    table = nullptr;
  });
  EXPECT_EQ(bench.DifferenceNow(), "");
}

TEST_F(AllocationFailure, AScanLosesNoRow) {
  Bench bench(2000);
  ScanPtr scan;
  embank_scan* opened = nullptr;
  RunAttempts(
      "scan_open", [&] { return [&] { return embank_scan_open(bench.table(), &opened); }; },
      [&](embank_status status) {
        ASSERT_EQ(opened != nullptr, status == EMBANK_OK);
        embank_scan_close(opened);
        opened = nullptr;
      });
  std::vector<uint64_t> keys(3000);
  std::vector<uint32_t> heat(3000);
  RowBuffer rows(3000, 12);
  RowBuffer states(3000, 12);
  uint64_t n = 0;
  auto prepare = [&]() -> Attempt {
    scan = OpenScan(bench.table());
    n = 999'999;
    return
        [&] { return embank_scan_next(scan.get(), keys.data(), rows.data(), 0, keys.size(), &n); };
  };
  auto prepare_full = [&]() -> Attempt {
    scan = OpenScan(bench.table());
    n = 999'999;
    return [&] {
      return embank_scan_next_full(scan.get(), keys.data(), rows.data(), 0, states.floats(), 0,
                                   heat.data(), keys.size(), &n);
    };
  };
  // Rows that the attempt did not return must be returned by the scan now.
  auto check = [&](embank_status status) {
    if (status != EMBANK_OK) {
      EXPECT_EQ(n, 999'999u);
    }
    std::vector<bool> seen(2000, false);
    uint64_t shown = status == EMBANK_OK ? n : 0;
    uint64_t total = 0;
    for (bool first = true; first || shown > 0; first = false) {
      for (uint64_t i = 0; i < shown; ++i) {
        ASSERT_FALSE(seen[keys[i]]) << "key " << keys[i] << " twice";
        seen[keys[i]] = true;
      }
      total += shown;
      ASSERT_EQ(embank_scan_next(scan.get(), keys.data(), rows.data(), 0, 500, &shown), EMBANK_OK);
      if (first && shown == 0) break;
    }
    EXPECT_EQ(total, 2000u);
  };
  RunAttempts("scan_next", prepare, check);
  RunAttempts("scan_next_full", prepare_full, check);
}

TEST_F(AllocationFailure, StringsOutAndDropFailCleanly) {
  Bench bench(100);
  CreateTable(bench.store(), "another table with a name of some length", TableOptions(5));
  std::vector<char> text(1 << 16);
  uint64_t needed = 0;
  using TextCall = embank_status (*)(embank_store*, char*, uint64_t, uint64_t*);
  const std::pair<const char*, TextCall> calls[] = {{"metrics", embank_metrics},
                                                    {"memory_report", embank_memory_report},
                                                    {"table_names", embank_table_names}};
  for (const auto& named : calls) {
    const TextCall call = named.second;
    auto prepare = [&]() -> Attempt {
      std::fill(text.begin(), text.end(), '#');
      needed = 77;
      return [&] { return call(bench.store(), text.data(), text.size(), &needed); };
    };
    RunAttempts(named.first, prepare, [&](embank_status status) {
      if (status == EMBANK_OK) return;
      EXPECT_EQ(text[0], '#');
      EXPECT_EQ(needed, 77u);
    });
  }
  embank_table_options table = TableOptions(5);
  uint64_t rows = 1000;
  RunAttempts(
      "estimate",
      [&] {
        return [&] {
          return embank_estimate(nullptr, &table, &rows, 1, text.data(), text.size(), &needed);
        };
      },
      [](embank_status) {});
  embank_store_options options = StoreOptions();
  options.path = "not opened";
  RunAttempts(
      "estimate for hit ratio",
      [&] {
        return [&] {
          return embank_estimate_for_hit_ratio(&options, &table, &rows, 1, 1.05, 0.9, text.data(),
                                               text.size(), &needed);
        };
      },
      [](embank_status) {});
  EXPECT_EQ(bench.DifferenceNow(), "");
}

TEST_F(AllocationFailure, VerifyReportsAllOrFails) {
  const ScratchDirectory scratch;
  const std::string directory = scratch.path() + "/store";
  embank_store_options options = StoreOptions();
  options.path = directory.c_str();
  options.flags = EMBANK_OPEN_CREATE;
  options.dram_bytes = uint64_t{16} << 20;
  {
    const StorePtr store = OpenStore(options);
    embank_table* const table = CreateTable(store.get(), "t", TableOptions(3));
    const std::vector<uint64_t> keys = KeyRange(0, 500);
    RowBuffer rows(keys.size(), 12);
    ASSERT_EQ(embank_upsert(table, keys.data(), keys.size(), rows.data(), 0, nullptr), EMBANK_OK);
    ASSERT_EQ(embank_checkpoint(store.get(), nullptr, 0, nullptr), EMBANK_OK);
  }
  std::vector<char> text(1 << 16);
  uint64_t needed = 0;
  auto prepare = [&]() -> Attempt {
    std::fill(text.begin(), text.end(), '#');
    needed = 77;
    return [&] {
      return embank_verify(directory.c_str(), nullptr, nullptr, text.data(), text.size(), &needed);
    };
  };
  RunAttempts("verify", prepare, [&](embank_status status) {
    if (status == EMBANK_OK) {
      EXPECT_NE(std::string(text.data()).find("\"clean\":true"), std::string::npos);
      return;
    }
    EXPECT_EQ(text[0], '#');
    EXPECT_EQ(needed, 77u);
  });
}

// A call that releases memory must not need any.
TEST_F(AllocationFailure, DropCloseAndScanCloseNeedNoMemory) {
  auto bench = std::make_unique<Bench>(5000);
  embank_table* other = CreateTable(bench->store(), "other", TableOptions(3, EMBANK_OPT_ADAGRAD));
  uint64_t key = 3;
  float row[3];
  ASSERT_EQ(embank_lookup(other, &key, 1, EMBANK_MISSING_CREATE, row, 0, nullptr), EMBANK_OK);
  ScanPtr scan = OpenScan(other);
  embank_status dropped;
  {
    AllocationFaults faults(1, FaultKind::kSince);
    scan.reset();
    dropped = embank_table_drop(bench->store(), "other");
  }
  EXPECT_EQ(dropped, EMBANK_OK) << embank_last_error();
  EXPECT_EQ(bench->DifferenceNow(), "");
  AllocationFaults faults(1, FaultKind::kSince);
  bench.reset();
}

}  // namespace
}  // namespace embank::test::allocation_failure_test
