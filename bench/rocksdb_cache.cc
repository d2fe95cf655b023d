#include "bench/rocksdb_cache.h"

#include <rocksdb/cache.h>

#include <algorithm>
#include <atomic>
#include <new>
#include <utility>

#include "base/status_macros.h"
#include "base/str_cat.h"
#include "bench/peer_rows.h"

namespace embank {
namespace {

constexpr std::align_val_t kRowAlignment{16};

void FreeRow(const rocksdb::Slice&, void* row) { operator delete(row, kRowAlignment); }

class RocksdbLru final : public CacheEngine {
 public:
  RocksdbLru(const CacheConfig& config, std::unique_ptr<PeerRows> rows, uint64_t row_bytes)
      : row_bytes_(row_bytes),
        rows_(std::move(rows)),
        cache_(rocksdb::NewLRUCache(config.dram_bytes)) {}

  Status Lookup(KeySpan keys, BatchAnswer answer) override {
    for (size_t i = 0; i < keys.size(); ++i) {
      const rocksdb::Slice key(reinterpret_cast<const char*>(&keys[i]), sizeof(Key));
      rocksdb::Cache::Handle* handle = cache_->Lookup(key);
      const bool is_new = handle == nullptr;
      if (is_new) EMBANK_RETURN_IF_ERROR(Insert(keys[i], key, &handle));
      rows_->Answer<RowUse::kShared>(static_cast<std::byte*>(cache_->Value(handle)),
                                     answer.rows + i * rows_->vector_bytes());
      cache_->Release(handle);
      answer.outcomes[i] = static_cast<uint8_t>(is_new ? Outcome::kCreated : Outcome::kFound);
    }
    rows_->CountHeat(keys.size());
    return OkStatus();
  }

  StatusOr<CacheMemory> Memory() const override {
    const uint64_t used_bytes = cache_->GetUsage();
    return CacheMemory{.used_bytes = used_bytes, .rows = used_bytes / EntryBytes()};
  }

 private:
  // Two threads that miss one key at once both make its row, and the later one stays.
  Status Insert(Key number, const rocksdb::Slice& key, rocksdb::Cache::Handle** handle) {
    auto* const row = static_cast<std::byte*>(operator new(row_bytes_, kRowAlignment));
    rows_->MakeRow(number, row);
    const rocksdb::Status inserted = cache_->Insert(key, row, row_bytes_, &FreeRow, handle);
    if (inserted.ok()) {
      if (!entry_bytes_.load()) entry_bytes_ = cache_->GetCharge(*handle);
      return OkStatus();
    }
    FreeRow(key, row);
    return ResourceExhaustedError(StrCat("RocksDB: ", inserted.ToString()));
  }
  uint64_t EntryBytes() const { return std::max<uint64_t>(1, entry_bytes_.load()); }

  const uint64_t row_bytes_;
  const std::unique_ptr<PeerRows> rows_;  // makes and answers rows; it has none itself
  const std::shared_ptr<rocksdb::Cache> cache_;
  std::atomic<uint64_t> entry_bytes_{0};
};

}  // namespace

StatusOr<std::unique_ptr<CacheEngine>> MakeRocksdbLru(const CacheConfig& config) {
  const TableShape& shape = config.shape;
  EMBANK_ASSIGN_OR_RETURN(std::unique_ptr<PeerRows> rows,
                          PeerRows::Create({shape, config.seed, config.threads, 0}));
  const RowLayout layout = MakeRowLayout(shape.dim, shape.value_type, shape.optimizer);
  return std::make_unique<RocksdbLru>(config, std::move(rows), layout.row_bytes);
}

bool HasRocksdbLru() { return true; }

}  // namespace embank
