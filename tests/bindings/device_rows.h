// Rows of a test in memory of a store's device, with bytes between them that no call may write.
#ifndef EMBANK_TESTS_BINDINGS_DEVICE_ROWS_H_
#define EMBANK_TESTS_BINDINGS_DEVICE_ROWS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "bindings/c/embank.h"
#include "tests/support/random.h"
#include "tests/support/row_buffer.h"

namespace embank::test {

class DeviceRows {
 public:
  // Copies n rows of `row_bytes` to device memory. Begin and distance of the rows are drawn; both
  // are multiples of `value_bytes`.
  DeviceRows(embank_store* store, const RowBuffer& rows, uint64_t n, uint64_t row_bytes,
             uint64_t value_bytes, Random* random);
  ~DeviceRows();
  DeviceRows(const DeviceRows&) = delete;
  DeviceRows& operator=(const DeviceRows&) = delete;

  // The arguments to pass.
  void* data() const { return memory_ + begin_; }
  float* floats() const { return static_cast<float*>(data()); }
  uint64_t stride() const { return argument_; }

  // Copies the rows back. "", or what is wrong with the bytes between them.
  std::string CopyTo(RowBuffer* rows);

 private:
  embank_store* const store_;
  const uint64_t n_;
  const uint64_t row_bytes_;
  const uint64_t begin_;
  const uint64_t argument_;
  const uint64_t stride_;
  std::vector<uint8_t> bytes_;  // as the device should have them outside the rows
  uint8_t* memory_ = nullptr;
};

}  // namespace embank::test

#endif  // EMBANK_TESTS_BINDINGS_DEVICE_ROWS_H_
