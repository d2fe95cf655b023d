// Runs a test's own code without faults while the library's allocations fail.
#ifndef EMBANK_TESTS_SUPPORT_UNFAULTED_H_
#define EMBANK_TESTS_SUPPORT_UNFAULTED_H_

namespace embank::test {

// While one lives, no allocation of its thread fails on purpose, and none is counted.
class Unfaulted {
 public:
  Unfaulted() { ++depth_; }
  ~Unfaulted() { --depth_; }
  Unfaulted(const Unfaulted&) = delete;
  Unfaulted& operator=(const Unfaulted&) = delete;

  static bool any() { return depth_ > 0; }

 private:
  static inline thread_local int depth_ = 0;
};

}  // namespace embank::test

#endif  // EMBANK_TESTS_SUPPORT_UNFAULTED_H_
