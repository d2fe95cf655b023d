// The bytes of a training that cross the link between host and device: counted, and where there is
// a model of the link (gpu/twin_link.h), waited for.
#ifndef EMBANK_GPU_DEVICE_LINK_H_
#define EMBANK_GPU_DEVICE_LINK_H_

#include <atomic>
#include <cstdint>

#include "base/threads/clock.h"
#include "gpu/twin_link.h"

namespace embank {

// A model of a link. Without a rate nothing takes time.
struct DeviceLinkModel {
  double bytes_per_second = 0.0;
  uint64_t latency_ns = 0;  // of each transfer

  bool operator==(const DeviceLinkModel&) const = default;
};

struct LinkBytes {
  uint64_t to_device = 0;
  uint64_t to_host = 0;

  uint64_t all() const { return to_device + to_host; }
};

// Thread-safe.
class DeviceLink {
 public:
  explicit DeviceLink(const DeviceLinkModel& model)
      : link_(SteadyClock(), model.bytes_per_second, model.latency_ns) {}

  // Count a transfer, and return after the time that it takes in the model. 0 bytes take none.
  void ToDevice(uint64_t bytes) { Send(bytes, &to_device_); }
  void ToHost(uint64_t bytes) { Send(bytes, &to_host_); }

  LinkBytes bytes() const {
    return {to_device_.load(std::memory_order_relaxed), to_host_.load(std::memory_order_relaxed)};
  }

 private:
  void Send(uint64_t bytes, std::atomic<uint64_t>* count) {
    count->fetch_add(bytes, std::memory_order_relaxed);
    link_.WaitUntil(link_.Send(bytes));
  }

  TwinLink link_;
  std::atomic<uint64_t> to_device_{0};
  std::atomic<uint64_t> to_host_{0};
};

}  // namespace embank

#endif  // EMBANK_GPU_DEVICE_LINK_H_
