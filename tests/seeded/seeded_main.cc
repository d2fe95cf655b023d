// The suites' tests over a library that makes the mistake whose number is the first argument.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cstdlib>

#include "base/seeded_bug.h"

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  if (argc != 2) return EXIT_FAILURE;
  embank::seeded_bug = static_cast<embank::SeededBug>(std::atoi(argv[1]));
  // A check that stops the process is one of the ways in which a mistake is met.
  const rlimit none = {0, 0};
  setrlimit(RLIMIT_CORE, &none);
  return RUN_ALL_TESTS();
}
