// The suites' tests over a library that makes the mistake whose number is the first argument.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdlib>

#include "base/seeded_bug.h"

namespace {

constexpr unsigned kSecondsMax = 120;

}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  if (argc != 2) return EXIT_FAILURE;
  embank::seeded_bug = static_cast<embank::SeededBug>(std::atoi(argv[1]));
  // A check that stops the process is one of the ways in which a mistake is met.
  const rlimit none = {0, 0};
  setrlimit(RLIMIT_CORE, &none);
  // A mistake that hangs is one that is not noticed.
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  alarm(kSecondsMax);
  return RUN_ALL_TESTS();
}
