// The process that the kill loop kills.
#ifndef EMBANK_TESTS_CRASH_KILLED_PROCESS_H_
#define EMBANK_TESTS_CRASH_KILLED_PROCESS_H_

#include <cstdint>
#include <string>

#include "tests/crash/progress.h"

namespace embank::test {

struct KilledProcessOptions {
  std::string directory;  // of the store ("store") and of the notes ("notes")
  uint64_t seed = 1;
  bool previous = false;  // opens the previous checkpoint
  int progress_fd = -1;
  Mark stop = Mark::kCompared;
  uint64_t stop_count = 0;
};

// Opens the store, compares it with the oracle as of the checkpoint that it finds, notes that, and
// goes on with steps and checkpoints, each of which it notes. Ends only when it is killed or when
// something is wrong, which it prints; the exit status of the process.
int RunUntilKilled(const KilledProcessOptions& options);

}  // namespace embank::test

#endif  // EMBANK_TESTS_CRASH_KILLED_PROCESS_H_
