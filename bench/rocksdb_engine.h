// RocksDB as a peer on the SSD. Built where its package is; else it says that it was not.
#ifndef EMBANK_BENCH_ROCKSDB_ENGINE_H_
#define EMBANK_BENCH_ROCKSDB_ENGINE_H_

#include <memory>

#include "base/status_or.h"
#include "bench/ssd_engine.h"

namespace embank {

// What its cache keeps: blocks; or mostly single rows, an eighth of it blocks.
enum class RocksdbCache { kBlocks, kRows };

// UNIMPLEMENTED: it is not in this build; other statuses are RocksDB's.
StatusOr<std::unique_ptr<SsdEngine>> MakeRocksdbEngine(const SsdEngineConfig& config,
                                                       RocksdbCache cache);

}  // namespace embank

#endif  // EMBANK_BENCH_ROCKSDB_ENGINE_H_
