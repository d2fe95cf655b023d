// n rows at any stride and any alignment in one block filled with a pattern, so that a byte written
// outside the rows shows.
#ifndef EMBANK_TESTS_SUPPORT_ROW_BUFFER_H_
#define EMBANK_TESTS_SUPPORT_ROW_BUFFER_H_

#include <cstdint>
#include <cstring>
#include <vector>

namespace embank::test {

class RowBuffer {
 public:
  // row_stride 0: packed. `misalignment` bytes are skipped before the first row.
  RowBuffer(uint64_t n, uint64_t row_bytes, uint64_t row_stride = 0, uint64_t misalignment = 0)
      : stride_(row_stride == 0 ? row_bytes : row_stride),
        argument_(row_stride),
        misalignment_(misalignment),
        bytes_(misalignment + n * stride_ + kTailBytes, kPattern) {}

  uint8_t* row(uint64_t i) { return bytes_.data() + misalignment_ + i * stride_; }
  const uint8_t* row(uint64_t i) const { return bytes_.data() + misalignment_ + i * stride_; }
  void* data() { return row(0); }
  float* floats() { return reinterpret_cast<float*>(row(0)); }
  const float* floats() const { return reinterpret_cast<const float*>(row(0)); }
  // The row_stride to pass.
  uint64_t stride() const { return argument_; }

  void SetFloat(uint64_t i, uint64_t element, float value) {
    std::memcpy(row(i) + element * sizeof value, &value, sizeof value);
  }
  float GetFloat(uint64_t i, uint64_t element) const {
    float value;
    std::memcpy(&value, row(i) + element * sizeof value, sizeof value);
    return value;
  }
  const std::vector<uint8_t>& bytes() const { return bytes_; }
  bool operator==(const RowBuffer& other) const { return bytes_ == other.bytes_; }

 private:
  static constexpr uint8_t kPattern = 0xA5;
  static constexpr uint64_t kTailBytes = 64;

  uint64_t stride_;
  uint64_t argument_;
  uint64_t misalignment_;
  std::vector<uint8_t> bytes_;
};

}  // namespace embank::test

#endif  // EMBANK_TESTS_SUPPORT_ROW_BUFFER_H_
