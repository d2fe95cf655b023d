// Splits the input of a fuzzer: numbers from its beginning, and the remaining bytes.
#ifndef EMBANK_TESTS_FUZZ_FUZZ_INPUT_H_
#define EMBANK_TESTS_FUZZ_FUZZ_INPUT_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace embank::test {

class FuzzInput {
 public:
  explicit FuzzInput(std::span<const std::byte> bytes) : rest_(bytes) {}

  bool empty() const { return rest_.empty(); }
  // The next number; zeros where the input is at its end.
  template <typename T>
  T Take() {
    T value = {};
    const size_t bytes = std::min(sizeof value, rest_.size());
    if (bytes > 0) std::memcpy(&value, rest_.data(), bytes);
    rest_ = rest_.subspan(bytes);
    return value;
  }
  std::span<const std::byte> rest() const { return rest_; }

 private:
  std::span<const std::byte> rest_;
};

// Implemented by the target that is built. The input must not cause a failed EMBANK_CHECK or a
// finding of a sanitizer.
void FuzzOne(std::span<const std::byte> bytes);

}  // namespace embank::test

#endif  // EMBANK_TESTS_FUZZ_FUZZ_INPUT_H_
