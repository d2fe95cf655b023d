// Calls whose rows are in device memory, with input that is refused, and on a device that is lost.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "tests/bindings/device_calls.h"

namespace embank::test::device_refusals_test {
namespace {

using ::testing::HasSubstr;

struct Refused {
  std::string name;
  std::function<embank_status()> call;
  embank_status status;
  std::string mention;
};

// Two keys of a table, and rows on both sides.
class RefusedDeviceCalls : public DeviceCalls {
 protected:
  RefusedDeviceCalls() : made_(Make("t", 4, EMBANK_OPT_SGD, EMBANK_F32)) {
    keys[1] = in_hbm_ + 1;
    EXPECT_EQ(embank_device_copy(s, device, host, 32, nullptr), EMBANK_OK);
  }

  // Every case changes nothing.
  void Run(const std::vector<Refused>& cases) {
    for (const Refused& each : cases) {
      SCOPED_TRACE(each.name);
      EXPECT_EQ(each.call(), each.status);
      EXPECT_THAT(embank_last_error(), HasSubstr(each.mention));
      EXPECT_THAT(outcomes, testing::ElementsAre(9, 9));
      EXPECT_EQ(Difference(made_.table, made_.oracle), "");
    }
    float after[8];
    ASSERT_EQ(embank_device_copy(s, after, device, 32, nullptr), EMBANK_OK);
    EXPECT_THAT(after, testing::ElementsAreArray(host));
  }

  static constexpr embank_status kInvalid = EMBANK_INVALID_ARGUMENT;
  Twin made_;
  embank_store* const s = store_.get();
  embank_table* const t = made_.table;
  uint64_t keys[2] = {1, 0};
  float host[8] = {1, 2, 3, 4, 5, 6, 7, 8};
  uint8_t outcomes[2] = {9, 9};
  std::byte* const device = Allocate(32);
  float* const floats = reinterpret_cast<float*>(device);
};

TEST_F(RefusedDeviceCalls, HaveRowsOfAnotherShape) {
  Run({{"lookup to the host",
        [&] { return embank_lookup_device(t, keys, 2, 0, host, 0, outcomes, nullptr); }, kInvalid,
        "rows is not"},
       {"upsert from the host",
        [&] { return embank_upsert_device(t, keys, 2, host, 0, outcomes, nullptr); }, kInvalid,
        "rows is not"},
       {"gradients of the host",
        [&] { return embank_apply_gradients_device(t, keys, 2, host, 0, outcomes, nullptr); },
        kInvalid, "gradients is not"},
       {"rows past the end",
        [&] { return embank_lookup_device(t, keys, 2, 0, device, 20, outcomes, nullptr); },
        kInvalid, "rows is not 36 bytes"},
       {"a missing rule",
        [&] { return embank_lookup_device(t, keys, 2, 7, device, 0, outcomes, nullptr); }, kInvalid,
        "missing"},
       {"rows at an odd address",
        [&] { return embank_upsert_device(t, keys, 1, device + 2, 0, outcomes, nullptr); },
        kInvalid, "rows is not at a multiple of 4"},
       {"an odd stride",
        [&] { return embank_upsert_device(t, keys, 1, device, 18, outcomes, nullptr); }, kInvalid,
        "row_stride is 18"},
       {"a small stride",
        [&] { return embank_upsert_device(t, keys, 1, device, 12, outcomes, nullptr); }, kInvalid,
        "row_stride is 12"}});
}

TEST_F(RefusedDeviceCalls, HaveTheWrongSideOfTheLink) {
  auto* const device_keys = reinterpret_cast<uint64_t*>(device);
  auto* const device_outcomes = reinterpret_cast<uint8_t*>(device);
  auto* const device_heats = reinterpret_cast<uint32_t*>(device);
  const ScanPtr scan = OpenScan(t);
  uint64_t n = 0;
  Run({{"keys of the device",
        [&] { return embank_lookup_device(t, device_keys, 2, 0, device, 0, outcomes, nullptr); },
        kInvalid, "keys is in device memory"},
       {"outcomes of the device",
        [&] { return embank_upsert_device(t, keys, 2, device, 0, device_outcomes, nullptr); },
        kInvalid, "outcomes is in device memory"},
       {"a lookup of the host to the device",
        [&] { return embank_lookup(t, keys, 2, 0, device, 0, outcomes); }, kInvalid,
        "rows is in device memory"},
       {"an upsert of the host from the device",
        [&] { return embank_upsert(t, keys, 2, device, 0, outcomes); }, kInvalid,
        "rows is in device memory"},
       {"gradients of the device in a call of the host",
        [&] { return embank_apply_gradients(t, keys, 2, floats, 0, outcomes); }, kInvalid,
        "gradients is in device memory"},
       {"heats of the device in an upsert of the host",
        [&] { return embank_upsert_full(t, keys, 2, host, 0, nullptr, 0, device_heats, outcomes); },
        kInvalid, "heat is in device memory"},
       {"heats of a scan to the device",
        [&] {
          return embank_scan_next_full(scan.get(), keys, nullptr, 0, nullptr, 0, device_heats, 2,
                                       &n);
        },
        kInvalid, "heat is in device memory"},
       {"keys of a scan of whole rows to the device",
        [&] {
          return embank_scan_next_full(scan.get(), device_keys, nullptr, 0, nullptr, 0, nullptr, 2,
                                       &n);
        },
        kInvalid, "keys is in device memory"},
       {"keys of a scan to the device",
        [&] { return embank_scan_next(scan.get(), device_keys, host, 0, 2, &n); }, kInvalid,
        "keys is in device memory"}});
}

TEST_F(RefusedDeviceCalls, HaveOtherObjects) {
  const Twin plain = Make("u", 4, EMBANK_OPT_NONE, EMBANK_F32);
  void* place = nullptr;
  Run({{"gradients without an optimizer",
        [&] {
          return embank_apply_gradients_device(plain.table, keys, 2, floats, 0, outcomes, nullptr);
        },
        EMBANK_FAILED_PRECONDITION, "no optimizer"},
       {"another store's stream",
        [&] { return embank_lookup_device(t, keys, 2, 0, device, 0, outcomes, host); }, kInvalid,
        "stream"},
       {"a copy on another store's stream",
        [&] { return embank_device_copy(s, device, host, 16, host); }, kInvalid, "stream"},
       {"a copy within the host",
        [&] { return embank_device_copy(s, host, host + 4, 16, nullptr); }, kInvalid,
        "to and from"},
       {"a copy past the end", [&] { return embank_device_copy(s, host, device + 8, 28, nullptr); },
        kInvalid, "from has less than 28 bytes"},
       {"no place for the memory", [&] { return embank_device_allocate(s, 16, nullptr); }, kInvalid,
        "out"},
       {"no bytes", [&] { return embank_device_allocate(s, 0, &place); }, kInvalid, "bytes"},
       {"a copy to NULL", [&] { return embank_device_copy(s, nullptr, device, 4, nullptr); },
        kInvalid, "to"},
       {"a copy from NULL", [&] { return embank_device_copy(s, device, nullptr, 4, nullptr); },
        kInvalid, "from"},
       {"freeing host memory", [&] { return embank_device_free(s, host); }, kInvalid, "memory"},
       {"freeing a part", [&] { return embank_device_free(s, device + 16); }, kInvalid, "memory"}});
}

TEST_F(DeviceCalls, RefuseAStreamThatIsCapturing) {
  Twin made = Make("t", 4, EMBANK_OPT_SGD, EMBANK_F32);
  const uint64_t key = 1;
  std::byte* const row = Allocate(16);
  const float zeros[4] = {};
  ASSERT_EQ(embank_device_copy(store_.get(), row, zeros, 16, nullptr), EMBANK_OK);
  void* const stream = twin_->callers().Add();
  twin_->callers().SetCapturing(stream, true);
  const embank_status kState = EMBANK_FAILED_PRECONDITION;
  EXPECT_EQ(embank_lookup_device(made.table, &key, 1, 0, row, 0, nullptr, stream), kState);
  EXPECT_EQ(embank_upsert_device(made.table, &key, 1, row, 0, nullptr, stream), kState);
  EXPECT_EQ(embank_apply_gradients_device(made.table, &key, 1, reinterpret_cast<float*>(row), 0,
                                          nullptr, stream),
            kState);
  EXPECT_EQ(embank_device_copy(store_.get(), row, zeros, 16, stream), kState);
  EXPECT_THAT(embank_last_error(), HasSubstr("capturing"));
  EXPECT_EQ(Difference(made.table, made.oracle), "");
}

TEST_F(DeviceCalls, SayThatTheDeviceIsLost) {
  Twin made = Make("t", 4, EMBANK_OPT_SGD, EMBANK_F32);
  const uint64_t key = 1;
  std::byte* const row = Allocate(16);
  twin_->LoseAt(1);
  float host[4] = {};
  EXPECT_EQ(embank_device_copy(store_.get(), host, row, 16, nullptr), EMBANK_UNAVAILABLE);
  EXPECT_EQ(embank_lookup_device(made.table, &key, 1, 0, row, 0, nullptr, nullptr),
            EMBANK_UNAVAILABLE);
  EXPECT_EQ(embank_upsert_device(made.table, &key, 1, row, 0, nullptr, nullptr),
            EMBANK_UNAVAILABLE);
  EXPECT_EQ(embank_apply_gradients_device(made.table, &key, 1, reinterpret_cast<float*>(row), 0,
                                          nullptr, nullptr),
            EMBANK_UNAVAILABLE);
  void* memory = nullptr;
  EXPECT_EQ(embank_device_allocate(store_.get(), 16, &memory), EMBANK_UNAVAILABLE);
}

TEST_F(DeviceCalls, ThatLoseTheDeviceSaySo) {
  Twin made = Make("t", 4, EMBANK_OPT_SGD, EMBANK_F32);
  const uint64_t keys[2] = {1, in_hbm_ + 1};
  std::byte* const row = Allocate(32);
  const float zeros[8] = {};
  ASSERT_EQ(embank_device_copy(store_.get(), row, zeros, 32, nullptr), EMBANK_OK);
  twin_->LoseAt(2);  // the search for NaN runs, the sum for the row in DRAM does not
  EXPECT_EQ(embank_apply_gradients_device(made.table, keys, 2, reinterpret_cast<float*>(row), 0,
                                          nullptr, nullptr),
            EMBANK_UNAVAILABLE);
  EXPECT_THAT(embank_last_error(), HasSubstr("lost"));
}

}  // namespace
}  // namespace embank::test::device_refusals_test
