// Calls whose rows are in device memory, on the host twin: the bits of the oracle, and the order
// among the work of the caller's streams.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "tests/bindings/device_calls.h"
#include "tests/bindings/device_rows.h"
#include "tests/support/oracle_numbers.h"
#include "tests/support/threads.h"

namespace embank::test::device_c_api_test {
namespace {

using ::testing::HasSubstr;

RowBuffer RandomRows(const oracle::Table& oracle, uint64_t n, int32_t value_type, Random* random) {
  RowBuffer rows(n, oracle.options().dim * oracle::ValueBytes(value_type));
  for (uint64_t i = 0; i < n; ++i) {
    for (uint64_t j = 0; j < oracle.options().dim; ++j) {
      oracle::StoreValue(random->Signed(), value_type,
                         rows.row(i) + j * oracle::ValueBytes(value_type));
    }
  }
  return rows;
}

struct Step {
  std::vector<uint64_t> keys;
  std::vector<uint8_t> outcomes;
  std::vector<uint8_t> right;

  explicit Step(std::vector<uint64_t> all)
      : keys(std::move(all)), outcomes(keys.size()), right(keys.size()) {}
  uint64_t n() const { return keys.size(); }
};

// The same batch for a table and its oracle, whose rows are in device memory for the table.
class BothCalls {
 public:
  BothCalls(embank_store* store, Twin* made, Random* random)
      : store_(store),
        made_(*made),
        random_(*random),
        type_(made->oracle.options().value_type),
        value_bytes_(oracle::ValueBytes(type_)) {}

  void Upsert(Step step) {
    const RowBuffer rows = RandomRows(made_.oracle, step.n(), type_, &random_);
    const DeviceRows from(store_, rows, step.n(), made_.oracle.row_bytes(), value_bytes_, &random_);
    EXPECT_EQ(embank_upsert_device(made_.table, step.keys.data(), step.n(), from.data(),
                                   from.stride(), step.outcomes.data(), nullptr),
              EMBANK_OK);
    made_.oracle.Upsert(step.keys.data(), step.n(), rows.bytes().data(), 0, step.right.data());
    EXPECT_EQ(step.outcomes, step.right);
  }
  void ApplyGradients(Step step) {
    const RowBuffer gradients = RandomRows(made_.oracle, step.n(), EMBANK_F32, &random_);
    const DeviceRows from(store_, gradients, step.n(), made_.oracle.options().dim * sizeof(float),
                          sizeof(float), &random_);
    EXPECT_EQ(embank_apply_gradients_device(made_.table, step.keys.data(), step.n(), from.floats(),
                                            from.stride(), step.outcomes.data(), nullptr),
              EMBANK_OK);
    made_.oracle.ApplyGradients(step.keys.data(), step.n(), gradients.floats(), 0,
                                step.right.data());
    EXPECT_EQ(step.outcomes, step.right);
  }
  void Lookup(Step step, int32_t missing) {
    RowBuffer actual = RandomRows(made_.oracle, step.n(), type_, &random_);
    RowBuffer right = actual;
    DeviceRows to(store_, actual, step.n(), made_.oracle.row_bytes(), value_bytes_, &random_);
    EXPECT_EQ(embank_lookup_device(made_.table, step.keys.data(), step.n(), missing, to.data(),
                                   to.stride(), step.outcomes.data(), nullptr),
              EMBANK_OK);
    EXPECT_EQ(to.CopyTo(&actual), "");
    made_.oracle.Lookup(step.keys.data(), step.n(), missing, right.data(), 0, step.right.data());
    EXPECT_EQ(step.outcomes, step.right);
    EXPECT_TRUE(actual == right) << "missing rule " << missing;
  }

 private:
  embank_store* const store_;
  Twin& made_;
  Random& random_;
  const int32_t type_;
  const uint64_t value_bytes_;
};

TEST_F(DeviceCalls, GiveTheBitsOfTheOracleForEveryRuleAndType) {
  for (int32_t optimizer = EMBANK_OPT_NONE; optimizer <= EMBANK_OPT_FTRL; ++optimizer) {
    for (const int32_t type : {EMBANK_F32, EMBANK_F16, EMBANK_BF16}) {
      const uint32_t dim = type == EMBANK_F32 ? 24 : 7;
      Twin made =
          Make("t" + std::to_string(optimizer) + std::to_string(type), dim, optimizer, type);
      SCOPED_TRACE(made.oracle.name());
      EXPECT_EQ(RowsInHbm(made.table), in_hbm_);
      BothCalls both(store_.get(), &made, &random_);
      const auto keys = [&](uint64_t n) { return Step(MixedKeys(n, in_hbm_, &random_)); };
      if (optimizer != EMBANK_OPT_NONE) both.ApplyGradients(keys(600));
      both.Upsert(keys(300));
      EXPECT_EQ(Difference(made.table, made.oracle), "");
      if (optimizer != EMBANK_OPT_NONE) both.ApplyGradients(keys(600));
      EXPECT_EQ(made.oracle.long_sums() > 0, optimizer != EMBANK_OPT_NONE);
      for (const int32_t missing : {EMBANK_MISSING_SKIP, EMBANK_MISSING_ZERO,
                                    EMBANK_MISSING_DEFAULT, EMBANK_MISSING_CREATE}) {
        both.Lookup(keys(200), missing);
      }
      EXPECT_EQ(Difference(made.table, made.oracle), "");
      EXPECT_EQ(embank_table_drop(store_.get(), made.oracle.name().c_str()), EMBANK_OK);
    }
  }
}

// A staging buffer of this store has space for 8,192 positions.
TEST_F(DeviceCalls, SumMoreGradientsOfAKeyThanABufferTakes) {
  Twin made = Make("t", 3, EMBANK_OPT_ADAGRAD, EMBANK_F32);
  std::vector<uint64_t> keys(60'000, in_hbm_ + 1);  // in DRAM
  for (uint64_t i = 0; i < keys.size(); i += 3) keys[i] = 1;
  for (uint64_t i = 1; i < keys.size(); i += 100) keys[i] = 1 + i % (in_hbm_ + kDramKeys);
  const RowBuffer gradients = RandomRows(made.oracle, keys.size(), EMBANK_F32, &random_);
  const DeviceRows from(store_.get(), gradients, keys.size(), 12, sizeof(float), &random_);
  std::vector<uint8_t> outcomes(keys.size());
  EXPECT_EQ(embank_apply_gradients_device(made.table, keys.data(), keys.size(), from.floats(),
                                          from.stride(), outcomes.data(), nullptr),
            EMBANK_OK);
  std::vector<uint8_t> right(keys.size());
  made.oracle.ApplyGradients(keys.data(), keys.size(), gradients.floats(), 0, right.data());
  EXPECT_EQ(outcomes, right);
  EXPECT_EQ(Difference(made.table, made.oracle), "");
}

// Rows of dim 4,096 come in pieces of a few.
TEST_F(DeviceCalls, TakeRowsInManyPieces) {
  Twin made = Make("t", 4096, EMBANK_OPT_SGD, EMBANK_F32);
  Step step(MixedKeys(150, in_hbm_, &random_));
  const RowBuffer gradients = RandomRows(made.oracle, step.n(), EMBANK_F32, &random_);
  DeviceRows memory(store_.get(), gradients, step.n(), 4096 * 4, 4, &random_);
  EXPECT_EQ(embank_upsert_device(made.table, step.keys.data(), step.n(), memory.data(),
                                 memory.stride(), nullptr, nullptr),
            EMBANK_OK);
  made.oracle.Upsert(step.keys.data(), step.n(), gradients.bytes().data(), 0, nullptr);
  EXPECT_EQ(embank_apply_gradients_device(made.table, step.keys.data(), step.n(), memory.floats(),
                                          memory.stride(), nullptr, nullptr),
            EMBANK_OK);
  made.oracle.ApplyGradients(step.keys.data(), step.n(), gradients.floats(), 0, nullptr);
  EXPECT_EQ(embank_lookup_device(made.table, step.keys.data(), step.n(), EMBANK_MISSING_CREATE,
                                 memory.data(), memory.stride(), nullptr, nullptr),
            EMBANK_OK);
  RowBuffer actual(step.n(), 4096 * 4);
  RowBuffer right(step.n(), 4096 * 4);
  EXPECT_EQ(memory.CopyTo(&actual), "");
  made.oracle.Lookup(step.keys.data(), step.n(), EMBANK_MISSING_CREATE, right.data(), 0, nullptr);
  EXPECT_TRUE(actual == right);
  EXPECT_EQ(Difference(made.table, made.oracle), "");
}

// Kernels and copies; 80 keys are few enough for one staging buffer.
TEST_F(DeviceCalls, EnqueueFewPiecesOfWork) {
  Twin made = Make("t", 16, EMBANK_OPT_ADAGRAD, EMBANK_F32);
  const std::vector<uint64_t> keys = KeyRange(in_hbm_ - 39, 40 + kDramKeys + kAbsentKeys);
  std::byte* const rows = Allocate(keys.size() * 64);
  const std::vector<float> zeros(keys.size() * 16);
  ASSERT_EQ(embank_device_copy(store_.get(), rows, zeros.data(), zeros.size() * 4, nullptr),
            EMBANK_OK);
  const auto work_of = [&](const std::function<embank_status()>& call) {
    const uint64_t before = twin_->enqueued_work();
    EXPECT_EQ(call(), EMBANK_OK) << embank_last_error();
    return twin_->enqueued_work() - before;
  };
  // A gather of the rows that are hot and of those of DRAM, and one of those that are created.
  EXPECT_EQ(work_of([&] {
              return embank_lookup_device(made.table, keys.data(), keys.size(),
                                          EMBANK_MISSING_CREATE, rows, 0, nullptr, nullptr);
            }),
            2u);
  // Other rows: one scatter. HBM rows: one scatter of vectors, one of states.
  EXPECT_EQ(work_of([&] {
              return embank_upsert_device(made.table, keys.data(), keys.size(), rows, 0, nullptr,
                                          nullptr);
            }),
            3u);
  // The search for NaN, the sums of other rows, the sums of HBM rows, their steps.
  EXPECT_EQ(work_of([&] {
              return embank_apply_gradients_device(made.table, keys.data(), keys.size(),
                                                   reinterpret_cast<float*>(rows), 0, nullptr,
                                                   nullptr);
            }),
            4u);
  EXPECT_EQ(embank_device_free(store_.get(), rows), EMBANK_OK);
}

// Calls of the device and of the host, as large as the first of their kind, and flushes between
// them.
TEST_F(DeviceCalls, AllocateNothingOnceTheyHaveBegun) {
  Twin made = Make("t", 16, EMBANK_OPT_ADAM, EMBANK_F16);
  std::byte* const device = Allocate(400 * 64);
  const std::vector<float> zeros(400 * 16);
  ASSERT_EQ(embank_device_copy(store_.get(), device, zeros.data(), 400 * 64, nullptr), EMBANK_OK);
  std::vector<float> host(400 * (2 * 16 + 1));
  float* const floats = host.data();
  auto* const device_floats = reinterpret_cast<float*>(device);
  uint64_t before = 0;
  for (int round = 0; round < 20; ++round) {
    if (round == 1) before = twin_->allocations();
    const std::vector<uint64_t> keys = MixedKeys(400, in_hbm_, &random_);
    const uint64_t* const k = keys.data();
    embank_table* const t = made.table;
    ASSERT_EQ(embank_lookup_device(t, k, 400, 0, device, 0, nullptr, nullptr), EMBANK_OK);
    ASSERT_EQ(embank_upsert_device(t, k, 400, device, 0, nullptr, nullptr), EMBANK_OK);
    ASSERT_EQ(embank_device_copy(store_.get(), device, zeros.data(), 400 * 64, nullptr), EMBANK_OK);
    ASSERT_EQ(embank_apply_gradients_device(t, k, 400, device_floats, 0, nullptr, nullptr),
              EMBANK_OK);
    ASSERT_EQ(embank_lookup(t, k, 400, 0, floats, 0, nullptr), EMBANK_OK);
    ASSERT_EQ(embank_upsert(t, k, 400, floats, 0, nullptr), EMBANK_OK);
    ASSERT_EQ(embank_apply_gradients(t, k, 400, zeros.data(), 0, nullptr), EMBANK_OK);
    ASSERT_EQ(embank_get_state(t, k, 400, floats, 0, nullptr), EMBANK_OK);
    ASSERT_EQ(embank_set_state(t, k, 400, floats, 0, nullptr), EMBANK_OK);
    ASSERT_EQ(embank_flush_hot(store_.get()), EMBANK_OK);
  }
  EXPECT_GT(before, 0u);
  EXPECT_EQ(twin_->allocations(), before);
}

TEST_F(DeviceCalls, ReadRowsBehindTheCallersEarlierWork) {
  Twin made = Make("t", 4, EMBANK_OPT_SGD, EMBANK_F32);
  for (const uint64_t key : {uint64_t{1}, in_hbm_ + 1}) {
    SCOPED_TRACE(key == 1 ? "hot" : "in DRAM");
    std::byte* const row = Allocate(16);
    const float old_row[4] = {-1, -1, -1, -1};
    const float new_row[4] = {1, 2, 3, 4};
    ASSERT_EQ(embank_device_copy(store_.get(), row, old_row, 16, nullptr), EMBANK_OK);
    void* const stream = twin_->callers().Add();
    twin_->callers().Enqueue(stream, [real = twin_->RealAddress(row), &new_row] {
      std::memcpy(real, new_row, sizeof new_row);
    });
    ASSERT_EQ(embank_upsert_device(made.table, &key, 1, row, 0, nullptr, stream), EMBANK_OK);
    float seen[4] = {};
    ASSERT_EQ(embank_lookup(made.table, &key, 1, EMBANK_MISSING_ZERO, seen, 0, nullptr), EMBANK_OK);
    EXPECT_THAT(seen, testing::ElementsAre(1, 2, 3, 4));
    // Gradients of 0 become those that the stream brings: a step of -0.1.
    const float zeros[4] = {};
    ASSERT_EQ(embank_device_copy(store_.get(), row, zeros, 16, nullptr), EMBANK_OK);
    twin_->callers().Enqueue(stream, [real = twin_->RealAddress(row)] {
      const float ones[4] = {1, 1, 1, 1};
      std::memcpy(real, ones, sizeof ones);
    });
    ASSERT_EQ(embank_apply_gradients_device(made.table, &key, 1, reinterpret_cast<float*>(row), 0,
                                            nullptr, stream),
              EMBANK_OK);
    ASSERT_EQ(embank_lookup(made.table, &key, 1, EMBANK_MISSING_ZERO, seen, 0, nullptr), EMBANK_OK);
    EXPECT_EQ(seen[0], 1.0f - 0.1f);
    twin_->callers().WaitFor(stream);
    EXPECT_EQ(embank_device_free(store_.get(), row), EMBANK_OK);
  }
}

TEST_F(DeviceCalls, AreAheadOfTheCallersLaterWork) {
  Twin made = Make("t", 4, EMBANK_OPT_SGD, EMBANK_F32);
  for (const uint64_t key : {uint64_t{1}, in_hbm_ + 1, in_hbm_ + kDramKeys + 1}) {
    SCOPED_TRACE(key);
    std::byte* const row = Allocate(16);
    const float old_row[4] = {-7, -7, -7, -7};
    ASSERT_EQ(embank_device_copy(store_.get(), row, old_row, 16, nullptr), EMBANK_OK);
    void* const stream = twin_->callers().Add();
    ASSERT_EQ(
        embank_lookup_device(made.table, &key, 1, EMBANK_MISSING_CREATE, row, 0, nullptr, stream),
        EMBANK_OK);
    float seen[4] = {};
    twin_->callers().Enqueue(
        stream, [real = twin_->RealAddress(row), &seen] { std::memcpy(seen, real, sizeof seen); });
    twin_->callers().WaitFor(stream);
    float right[4] = {};
    ASSERT_EQ(embank_lookup(made.table, &key, 1, EMBANK_MISSING_ZERO, right, 0, nullptr),
              EMBANK_OK);
    EXPECT_THAT(seen, testing::ElementsAreArray(right));
    // The upsert has read the row before the stream changes it.
    const float new_row[4] = {1, 2, 3, 4};
    ASSERT_EQ(embank_device_copy(store_.get(), row, new_row, 16, stream), EMBANK_OK);
    ASSERT_EQ(embank_upsert_device(made.table, &key, 1, row, 0, nullptr, stream), EMBANK_OK);
    twin_->callers().Enqueue(stream,
                             [real = twin_->RealAddress(row)] { std::memset(real, 0, 16); });
    twin_->callers().WaitFor(stream);
    ASSERT_EQ(embank_lookup(made.table, &key, 1, EMBANK_MISSING_ZERO, right, 0, nullptr),
              EMBANK_OK);
    EXPECT_THAT(right, testing::ElementsAreArray(new_row));
    EXPECT_EQ(embank_device_free(store_.get(), row), EMBANK_OK);
  }
}

// The device works when somebody waits: lists of earlier calls are still in their buffers then.
TEST_F(DeviceCalls, OneBehindTheOtherShareTheBuffers) {
  Twin made = Make("t", 4, EMBANK_OPT_SGD, EMBANK_F32);
  constexpr uint64_t kCalls = 40;
  std::byte* const rows = Allocate(kCalls * 2 * 16);
  std::vector<float> right(kCalls * 2 * 4);
  for (uint64_t i = 0; i < kCalls; ++i) {
    const uint64_t keys[2] = {1 + i % in_hbm_, in_hbm_ + 1 + i % kDramKeys};
    ASSERT_EQ(embank_lookup_device(made.table, keys, 2, EMBANK_MISSING_ZERO, rows + i * 32, 0,
                                   nullptr, nullptr),
              EMBANK_OK);
    made.oracle.Lookup(keys, 2, EMBANK_MISSING_ZERO, right.data() + i * 8, 0, nullptr);
  }
  std::vector<float> seen(right.size());
  ASSERT_EQ(embank_device_copy(store_.get(), seen.data(), rows, seen.size() * 4, nullptr),
            EMBANK_OK);
  EXPECT_EQ(seen, right);
}

TEST_F(DeviceCalls, TwoThreadsBesideFlushesGiveTheBitsOfTheOracle) {
  Twin made[2] = {Make("a", 6, EMBANK_OPT_ROWWISE_ADAGRAD, EMBANK_F32),
                  Make("b", 6, EMBANK_OPT_ADAGRAD, EMBANK_BF16)};
  EXPECT_GT(RowsInHbm(made[0].table) + RowsInHbm(made[1].table), 1000u);
  const auto work = [&](int number) {
    Random random(kSeed + static_cast<uint64_t>(number));
    BothCalls both(store_.get(), &made[number], &random);
    for (int i = 0; i < 60; ++i) {
      both.ApplyGradients(Step(MixedKeys(150, 1000, &random)));
      both.Lookup(Step(MixedKeys(150, 1000, &random)),
                  i % 10 == 9 ? EMBANK_MISSING_CREATE : EMBANK_MISSING_ZERO);
      if (i % 5 == 0) both.Upsert(Step(MixedKeys(50, 1000, &random)));
    }
  };
  std::thread other([&] { work(1); });
  std::thread flusher([&] {
    for (int i = 0; i < 20; ++i) EXPECT_EQ(embank_flush_hot(store_.get()), EMBANK_OK);
  });
  work(0);
  other.join();
  flusher.join();
  // Two tables share one clock of heat, which the oracles do not.
  for (const Twin& each : made) EXPECT_EQ(DifferenceButHeat(each.table, each.oracle), "");
}

// A flush that has closed the payload gate waits for calls inside, which wait for staging buffers:
// calls that wait at the gate must have none.
TEST_F(DeviceCalls, ManyThreadsLeaveBuffersToFlushes) {
  constexpr uint64_t kThreads = 6;
  constexpr uint64_t kWindow = 200;
  Twin made = Make("t", 6, EMBANK_OPT_ADAGRAD, EMBANK_F32);
  LookUp(&made, KeyRange(1, 2 * in_hbm_));
  std::atomic<uint64_t> flushes{0};
  std::thread flusher([&] {
    while (flushes < 150) {
      EXPECT_EQ(embank_flush_hot(store_.get()), EMBANK_OK) << embank_last_error();
      ++flushes;
    }
  });
  std::vector<std::byte*> rows;
  for (uint64_t t = 0; t < kThreads; ++t) rows.push_back(Allocate(kWindow * 24));
  OnThreads(kThreads, [&](uint64_t t) {
    std::vector<std::byte> host_rows(kWindow * 24);
    while (flushes < 150) {
      // Other rows are hot after each flush.
      const uint64_t first = 1 + flushes * 97 % (2 * in_hbm_ - kWindow);
      const std::vector<uint64_t> keys = KeyRange(first, kWindow);
      const embank_status status =
          t == 0 ? embank_lookup(made.table, keys.data(), kWindow, EMBANK_MISSING_ZERO,
                                 host_rows.data(), 0, nullptr)
                 : embank_lookup_device(made.table, keys.data(), kWindow, EMBANK_MISSING_ZERO,
                                        rows[t], 0, nullptr, nullptr);
      EXPECT_EQ(status, EMBANK_OK) << embank_last_error();
    }
  });
  flusher.join();
  EXPECT_EQ(DifferenceButHeat(made.table, made.oracle), "");
}

TEST_F(DeviceCalls, NameTheFirstGradientThatIsNotFinite) {
  Twin made = Make("t", 2, EMBANK_OPT_SGD, EMBANK_F32);
  const uint64_t keys[3] = {1, 777, in_hbm_ + 1};
  const float gradients[6] = {1, 1, 1, INFINITY, NAN, 1};
  std::byte* const memory = Allocate(sizeof gradients);
  ASSERT_EQ(embank_device_copy(store_.get(), memory, gradients, sizeof gradients, nullptr),
            EMBANK_OK);
  uint8_t outcomes[3] = {9, 9, 9};
  EXPECT_EQ(embank_apply_gradients_device(made.table, keys, 3, reinterpret_cast<float*>(memory), 0,
                                          outcomes, nullptr),
            EMBANK_INVALID_ARGUMENT);
  EXPECT_THAT(embank_last_error(), HasSubstr("777"));
  EXPECT_THAT(outcomes, testing::ElementsAre(9, 9, 9));
  EXPECT_EQ(Difference(made.table, made.oracle), "");
}

TEST_F(DeviceCalls, TakeNoKeysToo) {
  Twin made = Make("t", 4, EMBANK_OPT_SGD, EMBANK_F32);
  EXPECT_EQ(embank_lookup_device(made.table, nullptr, 0, 0, nullptr, 0, nullptr, nullptr),
            EMBANK_OK);
  EXPECT_EQ(embank_upsert_device(made.table, nullptr, 0, nullptr, 0, nullptr, nullptr), EMBANK_OK);
  EXPECT_EQ(embank_apply_gradients_device(made.table, nullptr, 0, nullptr, 0, nullptr, nullptr),
            EMBANK_OK);
  EXPECT_EQ(embank_device_copy(store_.get(), nullptr, nullptr, 0, nullptr), EMBANK_OK);
  EXPECT_EQ(embank_device_free(store_.get(), nullptr), EMBANK_OK);
  EXPECT_EQ(Difference(made.table, made.oracle), "");
}

TEST_F(DeviceCalls, LeaveTheStoreToFreeTheirMemory) {
  std::byte* const memory = Allocate(1000);
  EXPECT_TRUE(twin_->Owns(memory, 1000));
  store_.reset();
}

TEST_F(DeviceCalls, HaveNoMoreMemoryThanTheDevice) {
  void* memory = &memory;
  EXPECT_EQ(embank_device_allocate(store_.get(), ~uint64_t{0} / 4, &memory),
            EMBANK_RESOURCE_EXHAUSTED);
  EXPECT_EQ(memory, static_cast<void*>(&memory));
}

}  // namespace
}  // namespace embank::test::device_c_api_test
