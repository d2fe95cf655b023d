#include "bench/rocksdb_engine.h"

#include <rocksdb/cache.h>
#include <rocksdb/convenience.h>
#include <rocksdb/db.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/options.h>
#include <rocksdb/statistics.h>
#include <rocksdb/table.h>
#include <rocksdb/write_batch.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "base/str_cat.h"
#include "base/threads/clock.h"
#include "tiers/row/row_layout.h"

namespace embank {
namespace {

constexpr uint64_t kMib = uint64_t{1} << 20;

Status FromRocksdb(const rocksdb::Status& status) {
  if (status.ok()) return OkStatus();
  const std::string message = StrCat("RocksDB: ", status.ToString());
  if (status.IsNoSpace()) return ResourceExhaustedError(message);
  if (status.IsNotFound()) return NotFoundError(message);
  return UnavailableError(message);
}

// A block of 4 KiB is one read: aligned, which only uncompressed blocks can be. Filters and the
// index of blocks stay in memory beside the cache, all files stay open.
rocksdb::BlockBasedTableOptions TableOptionsFor(const std::shared_ptr<rocksdb::Cache>& cache) {
  constexpr double kFilterBitsPerRow = 10.0;
  rocksdb::BlockBasedTableOptions table;
  table.block_cache = cache;
  table.block_size = 4096;
  table.block_align = true;
  table.filter_policy.reset(rocksdb::NewRibbonFilterPolicy(kFilterBitsPerRow));
  table.cache_index_and_filter_blocks = false;
  table.data_block_index_type =
      rocksdb::BlockBasedTableOptions::DataBlockIndexType::kDataBlockBinaryAndHash;
  table.format_version = 5;
  return table;
}

rocksdb::Options OptionsFor(const SsdEngineConfig& config, RocksdbCache cache) {
  rocksdb::Options options;
  options.create_if_missing = true;
  options.compression = rocksdb::kNoCompression;
  options.use_direct_reads = true;
  options.use_direct_io_for_flush_and_compaction = true;
  options.compaction_readahead_size = 2 * kMib;
  options.max_open_files = -1;
  options.max_background_jobs = static_cast<int>(std::clamp(config.threads, 2u, 16u));
  options.level_compaction_dynamic_level_bytes = true;
  options.write_buffer_size = std::clamp(config.dram_bytes / 8, 4 * kMib, 64 * kMib);
  options.max_write_buffer_number = 4;
  options.target_file_size_base = 64 * kMib;
  // Rows that are asked for are there.
  options.optimize_filters_for_hits = true;
  uint64_t block_bytes = config.dram_bytes;
  if (cache == RocksdbCache::kRows) {
    block_bytes = config.dram_bytes / 8;
    options.row_cache = rocksdb::NewLRUCache(config.dram_bytes - block_bytes);
  }
  options.table_factory.reset(
      rocksdb::NewBlockBasedTableFactory(TableOptionsFor(rocksdb::NewLRUCache(block_bytes))));
  options.statistics = rocksdb::CreateDBStatistics();
  options.statistics->set_stats_level(rocksdb::StatsLevel::kExceptHistogramOrTimers);
  return options;
}

rocksdb::Slice SliceOf(const Key& key) {
  return {reinterpret_cast<const char*>(&key), sizeof(key)};
}

class RocksdbEngine final : public SsdEngine {
 public:
  RocksdbEngine(const SsdEngineConfig& config, RocksdbCache cache)
      : layout_(MakeRowLayout(config.shape.dim, config.shape.value_type, config.shape.optimizer)),
        config_(config),
        cache_(cache) {}
  ~RocksdbEngine() override { Close(); }

  Status Open() {
    options_ = OptionsFor(config_, cache_);
    rocksdb::DB* db = nullptr;
    EMBANK_RETURN_IF_ERROR(FromRocksdb(rocksdb::DB::Open(options_, config_.path, &db)));
    db_.reset(db);
    return OkStatus();
  }

  // No write-ahead log: what Checkpoint has not flushed may be lost, as Embank's may.
  Status Write(KeySpan keys, const std::byte* vectors) override {
    thread_local std::string row;
    row.assign(layout_.payload_bytes(), '\0');
    rocksdb::WriteBatch batch(keys.size() * (row.size() + 16));
    for (size_t i = 0; i < keys.size(); ++i) {
      std::memcpy(row.data(), vectors + i * layout_.vector_bytes, layout_.vector_bytes);
      EMBANK_RETURN_IF_ERROR(FromRocksdb(batch.Put(SliceOf(keys[i]), row)));
    }
    rocksdb::WriteOptions options;
    options.disableWAL = true;
    return FromRocksdb(db_->Write(options, &batch));
  }

  Status Read(KeySpan keys, std::byte* vectors) override {
    thread_local std::vector<rocksdb::Slice> slices;
    thread_local std::vector<rocksdb::PinnableSlice> rows;
    thread_local std::vector<rocksdb::Status> statuses;
    slices.clear();
    for (const Key& key : keys) slices.push_back(SliceOf(key));
    rows.resize(std::max(rows.size(), keys.size()));
    statuses.resize(std::max(statuses.size(), keys.size()));
    db_->MultiGet(rocksdb::ReadOptions(), db_->DefaultColumnFamily(), keys.size(), slices.data(),
                  rows.data(), statuses.data(), false);
    Status status;
    for (size_t i = 0; i < keys.size(); ++i) {
      if (statuses[i].ok() && rows[i].size() == layout_.payload_bytes()) {
        std::memcpy(vectors + i * layout_.vector_bytes, rows[i].data(), layout_.vector_bytes);
      } else if (status.ok()) {
        status = statuses[i].ok() ? DataLossError("RocksDB: a row of another length")
                                  : FromRocksdb(statuses[i]);
      }
      rows[i].Reset();
    }
    return status;
  }

  Status Scan(uint64_t batch, const ScanVisit& visit) override {
    rocksdb::ReadOptions options;
    options.fill_cache = false;
    options.readahead_size = 2 * kMib;
    const std::unique_ptr<rocksdb::Iterator> row(db_->NewIterator(options));
    std::vector<Key> keys;
    std::vector<std::byte> vectors(batch * layout_.vector_bytes);
    for (row->SeekToFirst(); row->Valid(); row->Next()) {
      Key key = 0;
      if (row->key().size() != sizeof(key) || row->value().size() != layout_.payload_bytes()) {
        return DataLossError("RocksDB: a row of another length");
      }
      std::memcpy(&key, row->key().data(), sizeof(key));
      std::memcpy(vectors.data() + keys.size() * layout_.vector_bytes, row->value().data(),
                  layout_.vector_bytes);
      keys.push_back(key);
      if (keys.size() < batch) continue;
      EMBANK_RETURN_IF_ERROR(visit(keys, vectors.data()));
      keys.clear();
    }
    EMBANK_RETURN_IF_ERROR(FromRocksdb(row->status()));
    return visit(keys, vectors.data());
  }

  Status Checkpoint() override { return FromRocksdb(db_->Flush(rocksdb::FlushOptions())); }

  Status Settle() override {
    constexpr auto kInterval = std::chrono::milliseconds(5);
    const char* const properties[] = {rocksdb::DB::Properties::kMemTableFlushPending.c_str(),
                                      rocksdb::DB::Properties::kNumRunningFlushes.c_str(),
                                      rocksdb::DB::Properties::kCompactionPending.c_str(),
                                      rocksdb::DB::Properties::kNumRunningCompactions.c_str()};
    const auto is_busy = [&](const char* property) {
      uint64_t value = 0;
      return db_->GetIntProperty(property, &value) && value > 0;
    };
    while (std::any_of(std::begin(properties), std::end(properties), is_busy)) {
      std::this_thread::sleep_for(kInterval);
    }
    return OkStatus();
  }

  Status Compact() override {
    rocksdb::CompactRangeOptions options;
    options.bottommost_level_compaction = rocksdb::BottommostLevelCompaction::kForceOptimized;
    EMBANK_RETURN_IF_ERROR(FromRocksdb(db_->CompactRange(options, nullptr, nullptr)));
    return Settle();
  }

  StatusOr<double> Reopen() override {
    EMBANK_ASSIGN_OR_RETURN(closed_, Counters());
    Close();
    const uint64_t begin_ns = SteadyClock()->NowNs();
    EMBANK_RETURN_IF_ERROR(Open());
    return static_cast<double>(SteadyClock()->NowNs() - begin_ns) * 1e-9;
  }

  StatusOr<SsdCounters> Counters() const override {
    const auto count = [&](uint32_t ticker) { return options_.statistics->getTickerCount(ticker); };
    SsdCounters counters = closed_;
    counters.reads += count(rocksdb::BLOCK_CACHE_DATA_MISS);
    counters.missed_rows += count(rocksdb::BLOCK_CACHE_DATA_MISS);
    counters.written_bytes +=
        count(rocksdb::FLUSH_WRITE_BYTES) + count(rocksdb::COMPACT_WRITE_BYTES);
    return counters;
  }

  StatusOr<std::optional<uint64_t>> IndexBytes() const override {
    uint64_t bytes = 0;
    if (!db_->GetIntProperty(rocksdb::DB::Properties::kEstimateTableReadersMem, &bytes)) {
      return std::nullopt;
    }
    return bytes;
  }

 private:
  // Throws away what was not flushed.
  void Close() {
    if (db_ == nullptr) return;
    rocksdb::CancelAllBackgroundWork(db_.get(), true);
    db_.reset();
  }

  const RowLayout layout_;
  const SsdEngineConfig config_;
  const RocksdbCache cache_;
  rocksdb::Options options_;
  std::unique_ptr<rocksdb::DB> db_;
  SsdCounters closed_;  // of those that were open before
};

}  // namespace

StatusOr<std::unique_ptr<SsdEngine>> MakeRocksdbEngine(const SsdEngineConfig& config,
                                                       RocksdbCache cache) {
  auto engine = std::make_unique<RocksdbEngine>(config, cache);
  EMBANK_RETURN_IF_ERROR(engine->Open());
  return engine;
}

}  // namespace embank
