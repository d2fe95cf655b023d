#include "train/pipeline/unique_partition.h"

#include <algorithm>
#include <bit>

#include "base/check.h"

namespace embank {
namespace {

// While owners are joined, a place is the owner's number and a place among its ids.
constexpr uint32_t kOwnerShift = 24;
constexpr uint32_t kPlaceMask = (1u << kOwnerShift) - 1;
static_assert(UniquePartition::kIdsMax == uint64_t{1} << kOwnerShift);
static_assert(uint64_t{kOwnersMax} << kOwnerShift == uint64_t{1} << 32);

constexpr size_t kEntriesMin = 64;

}  // namespace

UniquePartition::UniquePartition(uint32_t owners)
    : owners_(owners), counts_(owners), unique_(owners > 1 ? owners : 0) {
  EMBANK_CHECK(owners > 0 && owners <= kOwnersMax);
}

void UniquePartition::BeginRound(uint64_t ids) {
  const size_t entries = std::bit_ceil(std::max<size_t>(kEntriesMin, 2 * ids));
  if (entries > entries_.size()) {
    entries_.assign(entries, {});
    round_ = 0;
  }
  if (++round_ == 0) {
    std::ranges::fill(entries_, Entry{});
    round_ = 1;
  }
  std::ranges::fill(counts_, 0u);
  for (std::vector<Key>& unique : unique_) unique.clear();
}

UniquePartition::Entry* UniquePartition::Find(Key id, KeyHash hash) {
  const size_t mask = entries_.size() - 1;
  size_t i = hash & mask;
  while (entries_[i].round == round_ && entries_[i].id != id) i = (i + 1) & mask;
  return &entries_[i];
}

uint32_t UniquePartition::Run(KeySpan ids, uint64_t table_hash, std::span<Key> unique,
                              std::span<uint32_t> index) {
  EMBANK_CHECK(ids.size() <= kIdsMax && unique.size() == ids.size() && index.size() == ids.size());
  BeginRound(ids.size());
  if (owners_ == 1) return RunForOne(ids, table_hash, unique, index);
  for (size_t i = 0; i < ids.size(); ++i) {
    const KeyHash hash = HashKey(table_hash, ids[i]);
    Entry* const entry = Find(ids[i], hash);
    if (entry->round != round_) {
      const uint32_t owner = OwnerOf(hash, owners_);
      *entry = {ids[i], round_, owner << kOwnerShift | counts_[owner]++};
      unique_[owner].push_back(ids[i]);
    }
    index[i] = entry->place;
  }
  return JoinOwners(unique, index);
}

uint32_t UniquePartition::RunForOne(KeySpan ids, uint64_t table_hash, std::span<Key> unique,
                                    std::span<uint32_t> index) {
  uint32_t count = 0;
  for (size_t i = 0; i < ids.size(); ++i) {
    Entry* const entry = Find(ids[i], HashKey(table_hash, ids[i]));
    if (entry->round != round_) {
      *entry = {ids[i], round_, count};
      unique[count++] = ids[i];
    }
    index[i] = entry->place;
  }
  counts_[0] = count;
  return count;
}

uint32_t UniquePartition::JoinOwners(std::span<Key> unique, std::span<uint32_t> index) {
  std::vector<uint32_t> begins(owners_);
  uint32_t count = 0;
  for (uint32_t owner = 0; owner < owners_; ++owner) {
    begins[owner] = count;
    std::ranges::copy(unique_[owner], unique.begin() + count);
    count += counts_[owner];
  }
  for (uint32_t& place : index) place = begins[place >> kOwnerShift] + (place & kPlaceMask);
  return count;
}

}  // namespace embank
