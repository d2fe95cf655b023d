#include "store/payload/unique_hits.h"

#include <algorithm>
#include <new>
#include <vector>

#include "base/check.h"

namespace embank {
namespace {

uint64_t CountDistinct(std::vector<uint64_t>* values) {
  std::sort(values->begin(), values->end());
  return static_cast<uint64_t>(std::unique(values->begin(), values->end()) - values->begin());
}

}  // namespace

void UniqueHits::Count(KeySpan keys, PayloadList* payloads) {
  if (batches_.fetch_add(1, std::memory_order_relaxed) % kBatchesPerSample != 0) return;
  try {
    std::vector<uint64_t> values(keys.begin(), keys.end());
    const uint64_t distinct = CountDistinct(&values);
    values.clear();
    for (const PayloadPosition& position : payloads->positions())
      values.push_back(position.payload);
    const uint64_t hits = CountDistinct(&values);
    EMBANK_CHECK(hits <= distinct);
    keys_.fetch_add(distinct, std::memory_order_relaxed);
    hits_.fetch_add(hits, std::memory_order_relaxed);
  } catch (const std::bad_alloc&) {
  }
}

}  // namespace embank
