#include "train/ranks/dense_sums.h"

#include <vector>

#include "base/check.h"
#include "base/seeded_bug.h"
#include "base/status_macros.h"
#include "train/dense/slices.h"

namespace embank {

Status DenseSums::Run(std::span<float> sums) {
  constexpr uint64_t kFloats = kExchangeUnitBytes / sizeof(float);
  EMBANK_CHECK(reinterpret_cast<uintptr_t>(sums.data()) % kExchangeUnitBytes == 0);
  const uint32_t ranks = exchange_->ranks();
  const uint64_t units = (sums.size() + kFloats - 1) / kFloats;
  std::vector<ExchangePart> parts;
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    const uint64_t begin = units * rank / ranks;
    const uint64_t end = units * (rank + 1) / ranks;
    parts.push_back({begin * kExchangeUnitBytes, (end - begin) * kExchangeUnitBytes});
  }
  const uint64_t own_bytes = parts[exchange_->rank()].bytes;
  received_.Lay(std::vector<uint64_t>(ranks, own_bytes));
  auto* const buffer = reinterpret_cast<std::byte*>(sums.data());
  EMBANK_RETURN_IF_ERROR(exchange_->Run({buffer, parts}, received_.target()));
  SumSlices(ranks, {reinterpret_cast<float*>(received_.data()), ranks * own_bytes / sizeof(float)});
  const std::vector<ExchangePart> own(ranks, {0, own_bytes});
  EMBANK_RETURN_IF_ERROR(exchange_->Run({received_.data(), own}, {buffer, parts}));
  bytes_sent_ += units * kExchangeUnitBytes - own_bytes + (ranks - 1) * own_bytes;
  return OkStatus();
}

}  // namespace embank
