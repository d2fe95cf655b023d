// Ends a test program that this machine cannot run, as skipped, before any of its code runs.
#include <cstdio>
#include <cstdlib>

namespace {

constexpr int kSkipped = 77;

__attribute__((constructor(101))) void SkipWithoutTheLevel() {
  __builtin_cpu_init();
  const bool runs = EMBANK_CPU_LEVEL[6] == '\0' ||
                    (EMBANK_CPU_LEVEL[8] == '3' ? __builtin_cpu_supports("x86-64-v3")
                                                : __builtin_cpu_supports("x86-64-v4"));
  if (runs) return;
  std::printf("skipped: this machine has no %s\n", EMBANK_CPU_LEVEL);
  std::fflush(stdout);
  std::_Exit(kSkipped);
}

}  // namespace
