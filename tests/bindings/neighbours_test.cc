// Threads beside each other: tables made and dropped, large batches that call for the store's own
// threads, rows that come and go. Elements of a row are equal, so that a torn row shows, and say
// whose row it is.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <mutex>
#include <string>
#include <vector>

#include "bindings/c/embank.h"
#include "tests/support/c_api.h"
#include "tests/support/events.h"
#include "tests/support/random.h"
#include "tests/support/row_buffer.h"
#include "tests/support/threads.h"

namespace embank::test::neighbours_test {
namespace {

// Counts how often the threads of a test looked, and keeps the errors that they saw.
class Witness {
 public:
  explicit Witness(std::initializer_list<const char*> events) {
    for (const char* event : events) events_.Expect(event);
  }

  void Judge(bool good, const char* wrong) {
    if (!good) wrong_ = wrong;
  }
  void Add(const Events& events) {
    std::lock_guard lock(mutex_);
    events_.Add(events);
  }
  void ExpectNothingWrong() const {
    std::fputs(events_.Table().c_str(), stdout);
    EXPECT_EQ(events_.Missing(), "");
    const char* wrong = wrong_.load();
    EXPECT_EQ(std::string(wrong == nullptr ? "" : wrong), "");
  }

 private:
  std::mutex mutex_;
  Events events_;
  std::atomic<const char*> wrong_ = nullptr;
};

void FillRow(RowBuffer* rows, uint64_t i, uint64_t elements, float value) {
  for (uint64_t j = 0; j < elements; ++j) rows->SetFloat(i, j, value);
}
bool IsWhole(const RowBuffer& rows, uint64_t i, uint64_t elements) {
  for (uint64_t j = 1; j < elements; ++j) {
    if (rows.GetFloat(i, j) != rows.GetFloat(i, 0)) return false;
  }
  return true;
}

// ---- tables that come and go ----

constexpr uint32_t kNeighbourDim = 12;
constexpr uint64_t kNeighbourKeys = 500;

// Writes rows of `value` and finds them all again.
void UseTable(embank_table* table, float value, Witness* witness) {
  const std::vector<uint64_t> keys = KeyRange(0, kNeighbourKeys);
  RowBuffer rows(kNeighbourKeys, kNeighbourDim * sizeof(float));
  for (uint64_t i = 0; i < kNeighbourKeys; ++i) FillRow(&rows, i, kNeighbourDim, value);
  const RowBuffer expected = rows;
  witness->Judge(
      embank_upsert(table, keys.data(), keys.size(), rows.data(), 0, nullptr) == EMBANK_OK,
      "an upsert failed");
  RowBuffer actual(kNeighbourKeys, kNeighbourDim * sizeof(float));
  // Without outcomes an absent row would be told by the status.
  witness->Judge(embank_lookup(table, keys.data(), keys.size(), EMBANK_MISSING_SKIP, actual.data(),
                               0, nullptr) == EMBANK_OK,
                 "a lookup failed");
  witness->Judge(actual == expected, "a row was not that of its table");
}

TEST(Threads, TablesAreMadeAndDroppedBesideCallsOnOthers) {
  constexpr int kTables = 150;  // of each thread
  constexpr uint64_t kMakers = 2;
  StorePtr store = OpenStore();
  std::vector<embank_table*> stay;
  for (const char* name : {"first", "second"}) {
    // The same row class as the tables that come and go, whose slots these take and leave.
    stay.push_back(CreateTable(store.get(), name, TableOptions(kNeighbourDim)));
  }
  Witness witness({"tables dropped", "uses of others"});
  std::atomic<uint64_t> makers = kMakers;
  OnThreads(kMakers + stay.size(), [&](uint64_t thread) {
    Events events;
    for (int i = 0; thread < kMakers && i < kTables; ++i) {
      const std::string name = "passing " + std::to_string(thread);
      embank_table* table = nullptr;
      embank_table_options options = TableOptions(kNeighbourDim);
      witness.Judge(embank_table_create(store.get(), name.c_str(), &options, &table) == EMBANK_OK,
                    "a table could not be made");
      UseTable(table, static_cast<float>(1'000'000 * (thread + 1)) + static_cast<float>(i),
               &witness);
      witness.Judge(embank_table_drop(store.get(), name.c_str()) == EMBANK_OK, "a drop failed");
      uint64_t key = 0;
      uint8_t outcome = 0;
      witness.Judge(embank_contains(table, &key, 1, &outcome) == EMBANK_FAILED_PRECONDITION,
                    "a dropped table answered");
      events.Count("tables dropped");
    }
    if (thread < kMakers) --makers;
    for (float value = 1; thread >= kMakers && (makers > 0 || value == 1); ++value) {
      UseTable(stay[thread - kMakers], value, &witness);
      events.Count("uses of others");
    }
    witness.Add(events);
  });
  for (embank_table* table : stay) EXPECT_EQ(RowCount(table), kNeighbourKeys);
  witness.ExpectNothingWrong();
}

// ---- batches that the store's own threads share ----

TEST(Threads, LargeBatchesOfSeveralCallersSumExactly) {
  constexpr uint64_t kCallers = 3;
  constexpr uint64_t kKeys = 9000;  // more than a batch needs to be shared
  constexpr int kRounds = 40;
  constexpr uint32_t kDim = 4;
  embank_store_options store_options = StoreOptions();
  store_options.worker_threads = 3;
  StorePtr store = OpenStore(store_options);
  embank_table_options options = TableOptions(kDim, EMBANK_OPT_SGD);
  options.learning_rate = 1.0f;
  embank_table* table = CreateTable(store.get(), "t", options);
  Witness witness({"rows created", "rows found"});
  OnThreads(kCallers, [&](uint64_t thread) {
    Random random(thread);
    Events events;
    std::vector<uint64_t> keys = KeyRange(0, kKeys);
    std::vector<float> last_seen(kKeys, 0.0f);
    RowBuffer gradients(kKeys, kDim * sizeof(float));
    for (uint64_t i = 0; i < kKeys; ++i) FillRow(&gradients, i, kDim, -1.0f);
    std::vector<uint8_t> outcomes(kKeys);
    for (int round = 0; round < kRounds; ++round) {
      for (uint64_t i = 0; i + 1 < kKeys; ++i) {
        std::swap(keys[i], keys[random.Between(i, kKeys - 1)]);
      }
      RowBuffer rows(kKeys, kDim * sizeof(float));
      witness.Judge(embank_lookup(table, keys.data(), kKeys, EMBANK_MISSING_CREATE, rows.data(), 0,
                                  outcomes.data()) == EMBANK_OK,
                    "a lookup failed");
      for (uint64_t i = 0; i < kKeys; ++i) {
        events.Count(outcomes[i] == EMBANK_ROW_CREATED ? "rows created" : "rows found");
        witness.Judge(IsWhole(rows, i, kDim), "a lookup showed a torn row");
        float* const last = &last_seen[keys[i]];
        witness.Judge(rows.GetFloat(i, 0) >= *last, "a row turned back");
        *last = rows.GetFloat(i, 0);
      }
      // Without outcomes an absent key would be told by the status.
      witness.Judge(embank_apply_gradients(table, keys.data(), kKeys, gradients.floats(), 0,
                                           nullptr) == EMBANK_OK,
                    "a gradient batch failed");
    }
    witness.Add(events);
  });
  witness.ExpectNothingWrong();
  const std::vector<uint64_t> keys = KeyRange(0, kKeys);
  RowBuffer rows(kKeys, kDim * sizeof(float));
  ASSERT_EQ(embank_lookup(table, keys.data(), kKeys, EMBANK_MISSING_SKIP, rows.data(), 0, nullptr),
            EMBANK_OK);
  for (uint64_t i = 0; i < kKeys; ++i) {
    ASSERT_TRUE(IsWhole(rows, i, kDim) && rows.GetFloat(i, 0) == kCallers * kRounds) << "key " << i;
  }
}

// ---- rows that come and go under every missing rule ----

// Keys of one table that two threads erase and write while others look. The value of a row is that
// of its key and of the turn that wrote it.
class PassingRows {
 public:
  PassingRows()
      : witness_({"rows written", "rows erased", "states set", "states got", "found by zero",
                  "absent by zero", "found by default", "absent by default", "found by skip",
                  "absent by skip"}),
        store_(OpenStore()) {
    embank_table_options options = TableOptions(kDim, EMBANK_OPT_ADAGRAD);
    options.initializer = EMBANK_INIT_CONSTANT;
    options.init_a = kInitial;
    table_ = CreateTable(store_.get(), "t", options);
  }

  void Write(Random* random, Events* events) {
    const std::vector<uint64_t> keys = SomeKeys(random);
    RowBuffer rows(keys.size(), kRowBytes);
    const uint64_t turn = random->Below(1000);
    for (uint64_t i = 0; i < keys.size(); ++i) {
      FillRow(&rows, i, kDim, static_cast<float>(keys[i] + kKeys * turn));
    }
    Judge(embank_upsert(table_, keys.data(), keys.size(), rows.data(), 0, nullptr) == EMBANK_OK,
          "an upsert failed");
    events->Count("rows written", keys.size());
  }
  void Erase(Random* random, Events* events) {
    const std::vector<uint64_t> keys = SomeKeys(random);
    std::vector<uint8_t> outcomes(keys.size());
    Judge(embank_erase(table_, keys.data(), keys.size(), outcomes.data()) == EMBANK_OK,
          "an erase failed");
    for (const uint8_t outcome : outcomes) {
      if (outcome == EMBANK_ROW_FOUND) events->Count("rows erased");
    }
  }
  void LookUp(int32_t missing, Random* random, Events* events) {
    static const std::array<const char*, 4> kNames = {"create", "default", "zero", "skip"};
    const std::string name = kNames[static_cast<size_t>(missing)];
    const std::vector<uint64_t> keys = SomeKeys(random);
    RowBuffer rows(keys.size(), kRowBytes);
    for (uint64_t i = 0; i < keys.size(); ++i) FillRow(&rows, i, kDim, kUntouched);
    std::vector<uint8_t> outcomes(keys.size());
    Judge(embank_lookup(table_, keys.data(), keys.size(), missing, rows.data(), 0,
                        outcomes.data()) == EMBANK_OK,
          "a lookup failed");
    for (uint64_t i = 0; i < keys.size(); ++i) {
      Judge(IsWhole(rows, i, kDim), "a lookup showed a torn row");
      const float value = rows.GetFloat(i, 0);
      if (outcomes[i] == EMBANK_ROW_FOUND) {
        events->Count("found by " + name);
        Judge(value >= 0 && static_cast<uint64_t>(value) % kKeys == keys[i], "another key's row");
      } else {
        events->Count("absent by " + name);
        Judge(outcomes[i] == EMBANK_ROW_ABSENT, "neither found nor absent");
        Judge(value == AnswerToAbsent(missing), "an absent key had another answer than its rule's");
      }
    }
  }
  void SetStates(Random* random, Events* events) {
    const std::vector<uint64_t> keys = SomeKeys(random);
    RowBuffer states(keys.size(), kRowBytes);
    for (uint64_t i = 0; i < keys.size(); ++i) {
      FillRow(&states, i, kDim, static_cast<float>(1 + random->Below(1000)));
    }
    std::vector<uint8_t> outcomes(keys.size());
    Judge(embank_set_state(table_, keys.data(), keys.size(), states.floats(), 0, outcomes.data()) ==
              EMBANK_OK,
          "a state could not be set");
    for (const uint8_t outcome : outcomes) {
      if (outcome == EMBANK_ROW_FOUND) events->Count("states set");
    }
  }
  void GetStates(Random* random, Events* events) {
    const std::vector<uint64_t> keys = SomeKeys(random);
    RowBuffer states(keys.size(), kRowBytes);
    for (uint64_t i = 0; i < keys.size(); ++i) FillRow(&states, i, kDim, kUntouched);
    std::vector<uint8_t> outcomes(keys.size());
    Judge(embank_get_state(table_, keys.data(), keys.size(), states.floats(), 0, outcomes.data()) ==
              EMBANK_OK,
          "a state could not be got");
    for (uint64_t i = 0; i < keys.size(); ++i) {
      Judge(IsWhole(states, i, kDim), "a torn state");
      const bool found = outcomes[i] == EMBANK_ROW_FOUND;
      if (found && states.GetFloat(i, 0) > 0) events->Count("states got");
      Judge((states.GetFloat(i, 0) == kUntouched) != found, "an absent key's state was written");
    }
  }
  Witness* witness() { return &witness_; }

 private:
  static constexpr uint64_t kKeys = 128;
  static constexpr uint32_t kDim = 33;
  static constexpr uint64_t kRowBytes = kDim * sizeof(float);
  static constexpr float kInitial = 0.25f;    // no row has it
  static constexpr float kUntouched = -7.0f;  // nor this

  static float AnswerToAbsent(int32_t missing) {
    if (missing == EMBANK_MISSING_DEFAULT) return kInitial;
    return missing == EMBANK_MISSING_ZERO ? 0.0f : kUntouched;
  }
  static std::vector<uint64_t> SomeKeys(Random* random) {
    std::vector<uint64_t> keys(random->Between(1, 60));
    for (uint64_t& key : keys) key = random->Below(kKeys);
    return keys;
  }
  void Judge(bool good, const char* wrong) { witness_.Judge(good, wrong); }

  Witness witness_;
  StorePtr store_;
  embank_table* table_ = nullptr;
};

TEST(Threads, EveryMissingRuleSeesWholeRowsOrNone) {
  PassingRows rows;
  OnThreads(4, [&](uint64_t thread) {
    Random random(thread + 40);
    Events events;
    for (int step = 0; step < 1500; ++step) {
      if (thread < 2) {
        rows.Write(&random, &events);
        rows.Erase(&random, &events);
        rows.SetStates(&random, &events);
      } else {
        for (const int32_t missing :
             {EMBANK_MISSING_DEFAULT, EMBANK_MISSING_ZERO, EMBANK_MISSING_SKIP}) {
          rows.LookUp(missing, &random, &events);
        }
        rows.GetStates(&random, &events);
      }
    }
    rows.witness()->Add(events);
  });
  rows.witness()->ExpectNothingWrong();
}

}  // namespace
}  // namespace embank::test::neighbours_test
