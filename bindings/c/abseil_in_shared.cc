// Debian's static Abseil is position independent but for four objects with thread-local variables
// of the kind that only a program may have. Two of them are needed by what libembank.so uses: this
// file stands in for them, so that the linker does not take them from the archives. Linked into the
// shared library only. docs/decisions/0002-abseil-static-in-a-shared-library.md
#include <sys/syscall.h>
#include <unistd.h>

#include <limits>
#include <thread>

#include "absl/base/internal/sysinfo.h"
#include "absl/strings/internal/cordz_functions.h"

namespace absl {
ABSL_NAMESPACE_BEGIN

namespace base_internal {

int NumCPUs() { return static_cast<int>(std::thread::hardware_concurrency()); }
double NominalCPUFrequency() { return 1.0; }  // ticks are not turned into time here
pid_t GetTID() { return static_cast<pid_t>(syscall(SYS_gettid)); }
pid_t GetCachedTID() { return GetTID(); }

}  // namespace base_internal

namespace cord_internal {

// Sampling of cords is off: the next sample is never.
ABSL_CONST_INIT thread_local int64_t cordz_next_sample = std::numeric_limits<int64_t>::max();
int32_t get_cordz_mean_interval() { return std::numeric_limits<int32_t>::max(); }
void set_cordz_mean_interval(int32_t) {}
bool cordz_should_profile_slow() {
  cordz_next_sample = std::numeric_limits<int64_t>::max();
  return false;
}
void cordz_set_next_sample_for_testing(int64_t) {}

}  // namespace cord_internal

ABSL_NAMESPACE_END
}  // namespace absl
