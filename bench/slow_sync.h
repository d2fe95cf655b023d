// Files of the system whose syncs take longer, so that a run is that of a slower device.
#ifndef EMBANK_BENCH_SLOW_SYNC_H_
#define EMBANK_BENCH_SLOW_SYNC_H_

#include <cstdint>
#include <memory>

#include "base/files/file_system.h"

namespace embank {

// Each sync of a file or a directory sleeps for `sync_us` before it returns.
std::unique_ptr<FileSystem> MakeSlowSyncFiles(uint32_t sync_us);

}  // namespace embank

#endif  // EMBANK_BENCH_SLOW_SYNC_H_
