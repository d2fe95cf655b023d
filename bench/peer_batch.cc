#include "bench/peer_batch.h"

#include <algorithm>
#include <bit>

#include "base/hash.h"

namespace embank {
namespace {

constexpr uint32_t kRunLength = 32;

void Add(const float* term, std::vector<float>* sum) {
  for (size_t i = 0; i < sum->size(); ++i) (*sum)[i] += term[i];
}

}  // namespace

void PeerBatch::Plan(KeySpan keys, uint32_t shard_bits) {
  const auto shard_of = [shard_bits](KeyHash hash) {
    return shard_bits == 0 ? 0u : static_cast<uint32_t>(hash >> (64 - shard_bits));
  };
  keys_ = keys;
  hashes_.resize(keys.size());
  positions_.resize(keys.size());
  begin_.assign((size_t{1} << shard_bits) + 1, 0);
  for (size_t i = 0; i < keys.size(); ++i) {
    hashes_[i] = Mix(keys[i]);
    ++begin_[shard_of(hashes_[i]) + 1];
  }
  for (size_t shard = 1; shard < begin_.size(); ++shard) begin_[shard] += begin_[shard - 1];
  next_.assign(begin_.begin(), begin_.end());
  for (size_t i = 0; i < keys.size(); ++i) {
    positions_[next_[shard_of(hashes_[i])]++] = static_cast<uint32_t>(i);
  }
}

void PeerBatch::FindDistinct(std::span<const uint32_t> group) {
  const uint64_t mask = std::bit_ceil(2 * group.size() + 1) - 1;
  table_.assign(mask + 1, 0);
  first_positions_.clear();
  last_positions_.clear();
  next_positions_.resize(keys_.size());
  for (const uint32_t position : group) {
    next_positions_[position] = kNoPosition;
    uint64_t place = hashes_[position] & mask;
    while (table_[place] != 0 && keys_[first_positions_[table_[place] - 1]] != keys_[position]) {
      place = (place + 1) & mask;
    }
    if (table_[place] == 0) {
      first_positions_.push_back(position);
      last_positions_.push_back(position);
      table_[place] = static_cast<uint32_t>(first_positions_.size());
    } else {
      uint32_t& last = last_positions_[table_[place] - 1];
      next_positions_[last] = position;
      last = position;
    }
  }
}

std::span<float> PeerBatch::Sum(uint32_t distinct, const float* gradients, uint32_t dim) {
  const auto row = [&](uint32_t position) { return gradients + uint64_t{position} * dim; };
  uint32_t position = first_positions_[distinct];
  sum_.assign(row(position), row(position) + dim);
  uint32_t run = 1;
  bool is_first_run = true;
  std::vector<float>* target = &sum_;
  for (position = next_positions_[position]; position != kNoPosition;
       position = next_positions_[position]) {
    if (run == kRunLength) {
      if (!is_first_run) Add(run_.data(), &sum_);
      is_first_run = false;
      run_.assign(row(position), row(position) + dim);
      target = &run_;
      run = 1;
    } else {
      Add(row(position), target);
      ++run;
    }
  }
  if (!is_first_run) Add(run_.data(), &sum_);
  return sum_;
}

}  // namespace embank
