// The PMem tier that suites give to their stores when they run a second time, with EMBANK_TEST_PMEM
// set: a directory on the same disk, with a log of the same sizes.
#ifndef EMBANK_TESTS_SUPPORT_PMEM_TIER_H_
#define EMBANK_TESTS_SUPPORT_PMEM_TIER_H_

#include <cstdint>
#include <cstdlib>
#include <string>

#include "store/store.h"
#include "tests/support/simulated_disk.h"

namespace embank::test {

inline constexpr const char* kPmemPath = kSimulatedPmemPath;
inline constexpr uint64_t kPmemBytes = kPmemBytesMin;

inline bool WithPmem() { return std::getenv("EMBANK_TEST_PMEM") != nullptr; }

// The PMem directory of the store in a directory.
inline std::string PmemPathOf(const std::string& path) {
  return path == "log" ? kPmemPath : kPmemPath + ("_" + path);
}

// Adds the files of the tier to a store on `environment->files`, and so little space that rows
// leave it for the SSD.
inline void AddSmallPmem(StoreEnvironment* environment) {
  environment->pmem_files = environment->files;
  environment->pmem_log = environment->log;
  environment->pmem_log->ssd_bytes = 8 * environment->log->segment_bytes;
  environment->pmem_log->rows_bytes_max = environment->log->segment_bytes;
}

// Adds the files and sizes of the tier to those of a store on `environment->files`: in suites that
// run a second time so little that rows leave it for the SSD.
inline void AddPmem(StoreEnvironment* environment) {
  if (WithPmem()) return AddSmallPmem(environment);
  environment->pmem_files = environment->files;
  environment->pmem_log = environment->log;
}

}  // namespace embank::test

#endif  // EMBANK_TESTS_SUPPORT_PMEM_TIER_H_
