// RocksDB as a peer on the SSD. Built if its package is installed; else its making fails.
#ifndef EMBANK_BENCH_ROCKSDB_ENGINE_H_
#define EMBANK_BENCH_ROCKSDB_ENGINE_H_

#include <memory>

#include "base/status_or.h"
#include "bench/ssd_engine.h"

namespace embank {

// The contents of its cache: blocks; or mostly single rows, with an eighth of it for blocks.
enum class RocksdbCache { kBlocks, kRows };

// UNIMPLEMENTED: it is not in this build; other statuses are RocksDB's.
StatusOr<std::unique_ptr<SsdEngine>> MakeRocksdbEngine(const SsdEngineConfig& config,
                                                       RocksdbCache cache);

}  // namespace embank

#endif  // EMBANK_BENCH_ROCKSDB_ENGINE_H_
