// The floating-point mode of a thread: how it rounds, whether tiny numbers count as zero, and which
// exceptions are signals. Results are the same bits in the default mode only, so that the library
// computes in that one, whatever mode its caller has.
#ifndef EMBANK_BASE_FLOAT_MODE_H_
#define EMBANK_BASE_FLOAT_MODE_H_

#if !defined(__x86_64__)
#include <cfenv>
#endif

namespace embank {

// Sets the default mode while it lives; then restores the caller's, with its exception flags.
class DefaultFloatMode {
 public:
#if defined(__x86_64__)
  DefaultFloatMode() : callers_(__builtin_ia32_stmxcsr()) {
    if ((callers_ & ~kFlags) != kDefault) __builtin_ia32_ldmxcsr(kDefault);
  }
  ~DefaultFloatMode() {
    if (__builtin_ia32_stmxcsr() != callers_) __builtin_ia32_ldmxcsr(callers_);
  }

 private:
  static constexpr unsigned kFlags = 0x3F;
  static constexpr unsigned kDefault = 0x1F80;  // to nearest, no exception is a signal
  const unsigned callers_;
#else
  DefaultFloatMode() {
    std::fegetenv(&callers_);
    std::fesetenv(FE_DFL_ENV);
  }
  ~DefaultFloatMode() { std::fesetenv(&callers_); }

 private:
  std::fenv_t callers_;
#endif

 public:
  DefaultFloatMode(const DefaultFloatMode&) = delete;
  DefaultFloatMode& operator=(const DefaultFloatMode&) = delete;
};

}  // namespace embank

#endif  // EMBANK_BASE_FLOAT_MODE_H_
