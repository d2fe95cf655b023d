#include "train/pipeline/unique_partition.h"

#include <algorithm>
#include <bit>

#include "base/check.h"
#include "base/seeded_bug.h"

namespace embank {
namespace {

static_assert(uint64_t{kOwnersMax} << IdPlace::kNumberBits == uint64_t{1} << 32);

// One more, up to the largest number.
void Count(uint16_t* touches) {
  if (*touches != UINT16_MAX) ++*touches;
}

constexpr size_t kEntriesMin = 64;

}  // namespace

UniquePartition::UniquePartition(uint32_t owners)
    : owners_(owners), counts_(owners), of_owners_(owners > 1 ? owners : 0) {
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
  for (OwnerIds& of_owner : of_owners_) {
    of_owner.unique.clear();
    of_owner.touches.clear();
  }
}

UniquePartition::Entry* UniquePartition::Find(Key id, KeyHash hash) {
  const size_t mask = entries_.size() - 1;
  size_t i = hash & mask;
  while (entries_[i].round == round_ && entries_[i].id != id) i = (i + 1) & mask;
  return &entries_[i];
}

uint32_t UniquePartition::Run(KeySpan ids, uint64_t table_hash, const UniqueIds& unique_ids) {
  EMBANK_CHECK(ids.size() <= kIdsMax && unique_ids.unique.size() == ids.size() &&
               unique_ids.touches.size() == ids.size() && unique_ids.index.size() == ids.size());
  BeginRound(ids.size());
  if (owners_ == 1) return RunForOne(ids, table_hash, unique_ids);
  for (size_t i = 0; i < ids.size(); ++i) {
    const KeyHash hash = HashKey(table_hash, ids[i]);
    Entry* const entry = Find(ids[i], hash);
    if (entry->round == round_) {
      Count(&of_owners_[entry->place.owner()].touches[entry->place.number()]);
    } else {
      const uint32_t owner = Seeded(SeededBug::kOwnerByHashBits)
                                 ? static_cast<uint32_t>(hash % owners_)
                                 : OwnerOf(hash, owners_);
      *entry = {ids[i], round_, {owner << IdPlace::kNumberBits | counts_[owner]++}};
      of_owners_[owner].unique.push_back(ids[i]);
      of_owners_[owner].touches.push_back(1);
    }
    unique_ids.index[i] = entry->place;
  }
  return JoinOwners(unique_ids);
}

uint32_t UniquePartition::RunForOne(KeySpan ids, uint64_t table_hash, const UniqueIds& unique_ids) {
  uint32_t count = 0;
  for (size_t i = 0; i < ids.size(); ++i) {
    Entry* const entry = Find(ids[i], HashKey(table_hash, ids[i]));
    if (entry->round == round_) {
      Count(&unique_ids.touches[entry->place.number()]);
    } else {
      *entry = {ids[i], round_, {count}};
      unique_ids.touches[count] = 1;
      unique_ids.unique[count++] = ids[i];
    }
    unique_ids.index[i] = entry->place;
  }
  counts_[0] = count;
  return count;
}

uint32_t UniquePartition::JoinOwners(const UniqueIds& unique_ids) {
  uint32_t count = 0;
  for (const OwnerIds& of_owner : of_owners_) {
    std::ranges::copy(of_owner.unique, unique_ids.unique.begin() + count);
    std::ranges::copy(of_owner.touches, unique_ids.touches.begin() + count);
    count += static_cast<uint32_t>(of_owner.unique.size());
  }
  return count;
}

}  // namespace embank
