// Calls whose rows are in device memory, with their first, second, ... allocation failing: the
// answer is success or RESOURCE_EXHAUSTED, and a failed call has changed nothing.
#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tests/bindings/device_calls.h"
#include "tests/bindings/device_rows.h"
#include "tests/support/allocation_faults.h"
#include "tests/support/packed_feature.h"

namespace embank::test::device_allocation_failure_test {
namespace {

constexpr uint64_t kFaultsMax = 200;  // no call allocates so often

struct DeviceCall {
  std::string name;
  std::function<embank_status(const DeviceRows&, uint8_t*)> run;
  std::function<void(RowBuffer*, uint8_t*, const uint8_t*)> follow;
};

class DeviceCallsWithFaults : public DeviceCalls {
 protected:
  // Makes the call with one fault, and again without. Whether the fault was met.
  bool Try(Twin* made, const DeviceCall& call, const std::vector<uint64_t>& keys, uint64_t n) {
    SCOPED_TRACE(call.name + ", allocation " + std::to_string(n));
    RowBuffer rows(keys.size(), 16);
    for (uint64_t i = 0; i < keys.size(); ++i) rows.SetFloat(i, 0, random_.Signed());
    for (uint64_t i = 0; i < keys.size() * 3; ++i) rows.SetFloat(i / 3, 1 + i % 3, 0.5f);
    DeviceRows memory(store_.get(), rows, keys.size(), 16, 4, &random_);
    std::vector<uint8_t> outcomes(keys.size());
    std::vector<uint8_t> right(keys.size());
    embank_status status = EMBANK_OK;
    bool is_met = false;
    {
      AllocationFaults faults(n, FaultKind::kOnce);
      status = call.run(memory, outcomes.data());
      is_met = AllocationFaults::Failed() > 0;
    }
    if (status == EMBANK_OK) {
      call.follow(&rows, right.data(), outcomes.data());
      EXPECT_EQ(outcomes, right);
    } else {
      EXPECT_EQ(status, EMBANK_RESOURCE_EXHAUSTED) << embank_last_error();
    }
    EXPECT_EQ(Difference(made->table, made->oracle), "");
    EXPECT_EQ(call.run(memory, outcomes.data()), EMBANK_OK) << embank_last_error();
    call.follow(&rows, right.data(), nullptr);
    EXPECT_EQ(outcomes, right);
    EXPECT_EQ(Difference(made->table, made->oracle), "");
    return is_met;
  }
};

TEST_F(DeviceCallsWithFaults, SucceedOrChangeNothing) {
  Twin made = Make("t", 4, EMBANK_OPT_ADAGRAD, EMBANK_F32);
  const std::vector<uint64_t> keys = KeyRange(in_hbm_ - 400, 400 + kDramKeys + kAbsentKeys);
  const uint64_t count = keys.size();
  const std::vector<uint64_t> offsets = KeyRange(0, count + 1);
  const auto feature_of = [&](const DeviceRows& rows) {
    return PlainFeature(made.table, keys, rows.data(), rows.stride());
  };
  const auto follow_lookup = [&](RowBuffer* rows, uint8_t* right, const uint8_t* told) {
    made.oracle.Lookup(keys.data(), count, EMBANK_MISSING_CREATE, rows->data(), 0, right, told);
  };
  const DeviceCall calls[] = {
      {"apply_gradients_packed_device",
       [&](const DeviceRows& rows, uint8_t* outcomes) {
         const embank_feature feature = feature_of(rows);
         return embank_apply_gradients_packed_device(&feature, 1, outcomes, nullptr);
       },
       [&](RowBuffer* rows, uint8_t* right, const uint8_t*) {
         made.oracle.ApplyGradients(keys.data(), count, rows->floats(), 0, right);
       }},
      {"lookup_packed_device",
       [&](const DeviceRows& rows, uint8_t* outcomes) {
         const embank_feature feature = feature_of(rows);
         return embank_lookup_packed_device(&feature, 1, EMBANK_MISSING_CREATE, outcomes, nullptr);
       },
       follow_lookup},
      {"lookup_packed_device, in bags",  // of one key each
       [&](const DeviceRows& rows, uint8_t* outcomes) {
         embank_feature feature = feature_of(rows);
         feature.pooling = EMBANK_POOL_SUM;
         feature.offsets = offsets.data();
         feature.bags = count;
         return embank_lookup_packed_device(&feature, 1, EMBANK_MISSING_CREATE, outcomes, nullptr);
       },
       follow_lookup},
      {"apply_gradients_device",
       [&](const DeviceRows& rows, uint8_t* outcomes) {
         return embank_apply_gradients_device(made.table, keys.data(), count, rows.floats(),
                                              rows.stride(), outcomes, nullptr);
       },
       [&](RowBuffer* rows, uint8_t* right, const uint8_t*) {
         made.oracle.ApplyGradients(keys.data(), count, rows->floats(), 0, right);
       }},
      {"lookup_device",
       [&](const DeviceRows& rows, uint8_t* outcomes) {
         return embank_lookup_device(made.table, keys.data(), count, EMBANK_MISSING_CREATE,
                                     rows.data(), rows.stride(), outcomes, nullptr);
       },
       follow_lookup},
      {"upsert_device",
       [&](const DeviceRows& rows, uint8_t* outcomes) {
         return embank_upsert_device(made.table, keys.data(), count, rows.data(), rows.stride(),
                                     outcomes, nullptr);
       },
       [&](RowBuffer* rows, uint8_t* right, const uint8_t* told) {
         made.oracle.Upsert(keys.data(), count, rows->data(), 0, right, told);
       }},
  };
  for (const DeviceCall& call : calls) {
    uint64_t n = 1;
    while (n < kFaultsMax && Try(&made, call, keys, n) && !HasFailure()) ++n;
    EXPECT_GT(n, 3u) << call.name;
    EXPECT_LT(n, kFaultsMax) << call.name;
  }
}

TEST_F(DeviceCallsWithFaults, MemoryIsMadeOrNotMade) {
  for (uint64_t n = 1; n < 10; ++n) {
    void* memory = nullptr;
    embank_status status = EMBANK_OK;
    {
      AllocationFaults faults(n, FaultKind::kOnce);
      status = embank_device_allocate(store_.get(), 100, &memory);
    }
    EXPECT_EQ(memory != nullptr, status == EMBANK_OK);
    EXPECT_EQ(embank_device_free(store_.get(), memory), EMBANK_OK);
  }
}

}  // namespace
}  // namespace embank::test::device_allocation_failure_test
