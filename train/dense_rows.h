// The dense parameters of a trainer as rows of a table, so that a checkpoint of the store has them.
#ifndef EMBANK_TRAIN_DENSE_ROWS_H_
#define EMBANK_TRAIN_DENSE_ROWS_H_

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/status.h"
#include "base/status_or.h"
#include "store/store.h"

namespace embank {

// One thread.
class DenseRows {
 public:
  static constexpr const char* kTable = "dense parameters";
  static constexpr uint32_t kDim = 1024;

  // Opens the table of a store, or makes it.
  static StatusOr<DenseRows> Open(Store* store);

  // Writes all parts, one behind the other, into rows.
  Status Write(std::span<const std::span<const float>> parts);
  // Reads as many floats as the parts have. DATA_LOSS: rows are missing.
  Status Read(std::span<const std::span<float>> parts);

 private:
  explicit DenseRows(Table* table) : table_(table) {}

  Table* table_;
  std::vector<float> rows_;
  std::vector<Key> keys_;
  std::vector<uint8_t> outcomes_;
};

}  // namespace embank

#endif  // EMBANK_TRAIN_DENSE_ROWS_H_
