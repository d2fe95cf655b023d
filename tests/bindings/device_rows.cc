#include "tests/bindings/device_rows.h"

#include <gtest/gtest.h>

#include <cstring>

namespace embank::test {
namespace {

constexpr uint8_t kBetween = 0x5C;
constexpr uint64_t kTailBytes = 64;

uint64_t DrawStride(uint64_t row_bytes, uint64_t value_bytes, Random* random) {
  if (random->OneIn(2)) return 0;
  return row_bytes + value_bytes * random->Below(12);
}

}  // namespace

DeviceRows::DeviceRows(embank_store* store, const RowBuffer& rows, uint64_t n, uint64_t row_bytes,
                       uint64_t value_bytes, Random* random)
    : store_(store),
      n_(n),
      row_bytes_(row_bytes),
      begin_(value_bytes * random->Below(5)),
      argument_(DrawStride(row_bytes, value_bytes, random)),
      stride_(argument_ == 0 ? row_bytes : argument_),
      bytes_(begin_ + n * stride_ + kTailBytes, kBetween) {
  for (uint64_t i = 0; i < n; ++i) {
    std::memcpy(bytes_.data() + begin_ + i * stride_, rows.row(i), row_bytes);
  }
  void* memory = nullptr;
  EXPECT_EQ(embank_device_allocate(store, bytes_.size(), &memory), EMBANK_OK)
      << embank_last_error();
  memory_ = static_cast<uint8_t*>(memory);
  EXPECT_EQ(embank_device_copy(store, memory_, bytes_.data(), bytes_.size(), nullptr), EMBANK_OK)
      << embank_last_error();
}

DeviceRows::~DeviceRows() { EXPECT_EQ(embank_device_free(store_, memory_), EMBANK_OK); }

std::string DeviceRows::CopyTo(RowBuffer* rows) {
  std::vector<uint8_t> copy(bytes_.size());
  if (embank_device_copy(store_, copy.data(), memory_, copy.size(), nullptr) != EMBANK_OK) {
    return std::string("device_copy: ") + embank_last_error();
  }
  for (uint64_t i = 0; i < n_; ++i) {
    uint8_t* const row = copy.data() + begin_ + i * stride_;
    std::memcpy(rows->row(i), row, row_bytes_);
    std::memcpy(row, bytes_.data() + begin_ + i * stride_, row_bytes_);
  }
  return copy == bytes_ ? "" : "bytes between the rows in device memory were written";
}

}  // namespace embank::test
