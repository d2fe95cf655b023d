#include "bench/distinct_keys.h"

#include <algorithm>

#include "base/check.h"
#include "bench/peer_batch.h"

namespace embank {

DistinctKeys::DistinctKeys(KeySpan positions, uint64_t batch)
    : positions_(positions), batch_(batch), begin_{0} {
  PeerBatch distinct;
  for (uint64_t first = 0; first < positions.size(); first += batch) {
    const uint64_t count = std::min<uint64_t>(batch, positions.size() - first);
    distinct.Plan(positions.subspan(first, count), 0);
    distinct.FindDistinct(distinct.Group(0));
    for (const uint32_t position : distinct.first_positions()) {
      keys_.push_back(distinct.KeyAt(position));
    }
    begin_.push_back(keys_.size());
  }
}

KeySpan DistinctKeys::Of(KeySpan batch) const {
  const auto first = static_cast<uint64_t>(batch.data() - positions_.data());
  EMBANK_CHECK(first < positions_.size() && first % batch_ == 0);
  const uint64_t number = first / batch_;
  return KeySpan(keys_).subspan(begin_[number], begin_[number + 1] - begin_[number]);
}

}  // namespace embank
