#include "train/dense_rows.h"

#include <algorithm>
#include <numeric>

#include "base/status_macros.h"
#include "base/str_cat.h"
#include "store/batch/lookup.h"
#include "store/batch/write.h"

namespace embank {
namespace {

template <typename Parts>
uint64_t RowsOf(const Parts& parts) {
  uint64_t floats = 0;
  for (const auto& part : parts) floats += part.size();
  return (floats + DenseRows::kDim - 1) / DenseRows::kDim;
}

}  // namespace

StatusOr<DenseRows> DenseRows::Open(Store* store) {
  StatusOr<Table*> table = store->catalog().Open(kTable);
  if (!table.ok()) table = store->CreateTable(kTable, {.dim = kDim, .rule = {}, .initializer = {}});
  EMBANK_RETURN_IF_ERROR(table.status());
  return DenseRows(*table);
}

Status DenseRows::Write(std::span<const std::span<const float>> parts) {
  keys_.resize(RowsOf(parts));
  std::iota(keys_.begin(), keys_.end(), Key{0});
  rows_.assign(keys_.size() * kDim, 0.0f);
  auto next = rows_.begin();
  for (const std::span<const float> part : parts) next = std::copy(part.begin(), part.end(), next);
  const ConstRowSpan rows = {reinterpret_cast<const std::byte*>(rows_.data()),
                             kDim * sizeof(float)};
  return Upsert(table_, keys_, rows, {});
}

Status DenseRows::Read(std::span<const std::span<float>> parts) {
  keys_.resize(RowsOf(parts));
  std::iota(keys_.begin(), keys_.end(), Key{0});
  rows_.assign(keys_.size() * kDim, 0.0f);
  outcomes_.resize(keys_.size());
  EMBANK_RETURN_IF_ERROR(Lookup(table_, keys_, MissingRule::kZero,
                                {reinterpret_cast<std::byte*>(rows_.data()), kDim * sizeof(float)},
                                outcomes_));
  const auto found =
      std::count(outcomes_.begin(), outcomes_.end(), static_cast<uint8_t>(Outcome::kFound));
  if (static_cast<size_t>(found) != keys_.size()) {
    return DataLossError(StrCat(keys_.size() - static_cast<size_t>(found), " of ", keys_.size(),
                                " rows of dense parameters are missing"));
  }
  auto from = rows_.cbegin();
  for (const std::span<float> part : parts) {
    std::copy_n(from, part.size(), part.begin());
    from += static_cast<ptrdiff_t>(part.size());
  }
  return OkStatus();
}

}  // namespace embank
