// The number of rows in all tables of a store.
#ifndef EMBANK_STORE_TABLE_STORE_ROWS_H_
#define EMBANK_STORE_TABLE_STORE_ROWS_H_

#include <atomic>
#include <cstdint>

namespace embank {

// Thread-safe. Batches change it, so that it shares no cache line with data that they only read.
class alignas(64) StoreRows {
 public:
  void Add(int64_t change) {
    rows_.fetch_add(static_cast<uint64_t>(change), std::memory_order_relaxed);
  }
  uint64_t count() const { return rows_.load(std::memory_order_relaxed); }

 private:
  std::atomic<uint64_t> rows_{0};
};

}  // namespace embank

#endif  // EMBANK_STORE_TABLE_STORE_ROWS_H_
