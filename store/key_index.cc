#include "store/key_index.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "base/status_macros.h"

namespace embank {
namespace {

constexpr uint64_t kEmpty = ~uint64_t{0};
constexpr uint64_t kLocationMask = (uint64_t{1} << kLocationBits) - 1;
constexpr uint32_t kTagShift = 40;
constexpr uint64_t kTagMask = (uint64_t{1} << 24) - 1;
constexpr uint64_t kFirstEntries = kSmallPageBytes / sizeof(uint64_t);

uint64_t MakeEntry(KeyHash hash, Location location) {
  return ((hash & kTagMask) << kTagShift) | location.units;  // tier 0: DRAM
}
bool TagMatches(uint64_t entry, KeyHash hash) { return entry >> kTagShift == (hash & kTagMask); }
Location LocationOf(uint64_t entry) { return {entry & kLocationMask}; }

// The first place to look: the 32 hash bits behind the shard's, scaled to the size of the array.
uint64_t HomeOf(KeyHash hash, uint64_t entry_count) {
  const uint64_t bits = (hash << KeyIndex::kShardBits) >> 32;
  return (bits * entry_count) >> 32;
}

// Three quarters full: linear probing looks at 2.5 entries for a hit, 8.5 for a miss.
uint64_t RowsMax(uint64_t entry_count) { return entry_count / 4 * 3; }

// Entries of the smallest array for `rows` rows.
uint64_t EntriesFor(double rows) {
  uint64_t entries = kFirstEntries;
  while (static_cast<double>(RowsMax(entries)) < rows) entries *= 2;
  return entries;
}

// Rows of the fullest shard: the mean and five standard deviations, exceeded once in a million.
double FullestShardRows(uint64_t rows) {
  const double mean = static_cast<double>(rows) / KeyIndex::kShardCount;
  return mean + 5.0 * std::sqrt(mean);
}

constexpr uint64_t kTableHashesBytes =
    AlignedBuffer::ChargedBytes((kTablesMax + 1) * sizeof(uint64_t));

}  // namespace

KeyIndex::KeyIndex(MemorySource* source, MemoryBudget* budget, DramTier* tier,
                   AlignedBuffer table_hashes)
    : source_(source),
      budget_(budget),
      tier_(tier),
      table_hashes_memory_(std::move(table_hashes)),
      table_hashes_(table_hashes_memory_.As<uint64_t>()),
      shards_(kShardCount) {}

absl::StatusOr<std::unique_ptr<KeyIndex>> KeyIndex::Create(MemorySource* source,
                                                           MemoryBudget* budget, DramTier* tier) {
  EMBANK_ASSIGN_OR_RETURN(AlignedBuffer table_hashes,
                          AlignedBuffer::Create(source, budget, kTableHashesBytes));
  std::unique_ptr<KeyIndex> index(new KeyIndex(source, budget, tier, std::move(table_hashes)));
  for (Shard& shard : index->shards_) {
    MutexLock lock(&shard.mutex);
    EMBANK_RETURN_IF_ERROR(index->Grow(&shard));
  }
  return index;
}

RowHeader* KeyIndex::HeaderOf(uint64_t entry) const {
  return reinterpret_cast<RowHeader*>(tier_->Row(LocationOf(entry)));
}

KeyHash KeyIndex::HashOf(const RowHeader& header) const {
  return HashKey(table_hashes_[TableOf(header.identity)], header.key);
}

Location KeyIndex::Find(const Shard& shard, const RowId& id) const {
  const std::span<const uint64_t> entries = shard.entries.As<uint64_t>();
  const uint64_t mask = entries.size() - 1;
  for (uint64_t place = HomeOf(id.hash, entries.size()); entries[place] != kEmpty;
       place = (place + 1) & mask) {
    if (!TagMatches(entries[place], id.hash)) continue;
    const RowHeader* const header = HeaderOf(entries[place]);
    if (header->key == id.key && TableOf(header->identity) == id.table) {
      return LocationOf(entries[place]);
    }
  }
  return kNoLocation;
}

absl::Status KeyIndex::ReserveOne(Shard* shard) {
  const uint64_t entry_count = shard->entries.As<uint64_t>().size();
  if (shard->rows < RowsMax(entry_count)) return absl::OkStatus();
  absl::Status status = Grow(shard);
  // Pages without rows hold budget that the index may have.
  if (!status.ok() && tier_->ReleaseEmptyPages() > 0) status = Grow(shard);
  return status;
}

absl::Status KeyIndex::Grow(Shard* shard) {
  const std::span<const uint64_t> old_entries = shard->entries.As<uint64_t>();
  const uint64_t entry_count = old_entries.empty() ? kFirstEntries : old_entries.size() * 2;
  EMBANK_ASSIGN_OR_RETURN(AlignedBuffer grown,
                          AlignedBuffer::Create(source_, budget_, entry_count * sizeof(uint64_t)));
  const std::span<uint64_t> entries = grown.As<uint64_t>();
  EMBANK_CHECK(entries.size() == entry_count);
  std::fill(entries.begin(), entries.end(), kEmpty);
  for (const uint64_t entry : old_entries) {
    if (entry == kEmpty) continue;
    uint64_t place = HomeOf(HashOf(*HeaderOf(entry)), entry_count);
    while (entries[place] != kEmpty) place = (place + 1) & (entry_count - 1);
    entries[place] = entry;
  }
  shard->entries = std::move(grown);
  return absl::OkStatus();
}

void KeyIndex::Insert(Shard* shard, const RowId& id, Location location) {
  const std::span<uint64_t> entries = shard->entries.As<uint64_t>();
  EMBANK_CHECK(shard->rows < RowsMax(entries.size()));
  uint64_t place = HomeOf(id.hash, entries.size());
  while (entries[place] != kEmpty) place = (place + 1) & (entries.size() - 1);
  entries[place] = MakeEntry(id.hash, location);
  ++shard->rows;
}

Location KeyIndex::Erase(Shard* shard, const RowId& id) {
  const std::span<const uint64_t> entries = shard->entries.As<uint64_t>();
  const Location location = Find(*shard, id);
  if (location == kNoLocation) return kNoLocation;
  const uint64_t entry = MakeEntry(id.hash, location);
  uint64_t place = HomeOf(id.hash, entries.size());
  while (entries[place] != entry) place = (place + 1) & (entries.size() - 1);
  RemoveAt(shard, place);
  return location;
}

// Closes the gap: moves back each later entry of the run that may stand at the gap.
void KeyIndex::RemoveAt(Shard* shard, uint64_t gap) {
  const std::span<uint64_t> entries = shard->entries.As<uint64_t>();
  const uint64_t mask = entries.size() - 1;
  for (uint64_t place = (gap + 1) & mask; entries[place] != kEmpty; place = (place + 1) & mask) {
    const uint64_t home = HomeOf(HashOf(*HeaderOf(entries[place])), entries.size());
    const uint64_t distance_from_home = (place - home) & mask;
    const uint64_t distance_from_gap = (place - gap) & mask;
    if (distance_from_home < distance_from_gap) continue;
    entries[gap] = entries[place];
    gap = place;
  }
  entries[gap] = kEmpty;
  --shard->rows;
}

void KeyIndex::VisitTable(Shard* shard, TableId table, absl::FunctionRef<bool(Location)> visit) {
  const std::span<const uint64_t> entries = shard->entries.As<uint64_t>();
  for (uint64_t place = 0; place < entries.size();) {
    const uint64_t entry = entries[place];
    const bool visited = entry != kEmpty && TableOf(HeaderOf(entry)->identity) == table;
    if (visited && visit(LocationOf(entry))) {
      RemoveAt(shard, place);  // another entry may stand there now
    } else {
      ++place;
    }
  }
}

void KeyIndex::CollectRange(const Shard& shard, uint32_t range, TableId table,
                            std::vector<Key>* keys) const {
  const std::span<const uint64_t> entries = shard.entries.As<uint64_t>();
  const uint64_t mask = entries.size() - 1;
  const KeyHash first = KeyHash{range} << (64 - kRangeBits);
  const KeyHash last = first | (~KeyHash{0} >> kRangeBits);
  const uint64_t begin = HomeOf(first, entries.size());
  const uint64_t homes = HomeOf(last, entries.size()) - begin + 1;
  // Behind the last home the run goes on with displaced entries, up to the first empty place.
  for (uint64_t i = 0; i < entries.size(); ++i) {
    const uint64_t entry = entries[(begin + i) & mask];
    if (entry == kEmpty) {
      if (i >= homes) break;
      continue;
    }
    const RowHeader* const header = HeaderOf(entry);
    if (TableOf(header->identity) != table || RangeOf(HashOf(*header)) != range) continue;
    keys->push_back(header->key);
  }
}

uint64_t KeyIndex::memory_bytes() {
  uint64_t bytes = table_hashes_memory_.size_bytes();
  for (Shard& shard : shards_) {
    ReaderMutexLock lock(&shard.mutex);
    bytes += shard.entries.size_bytes();
  }
  return bytes;
}

uint64_t KeyIndex::EstimateBytes(uint64_t rows) {
  const uint64_t entries = EntriesFor(FullestShardRows(rows));
  return kTableHashesBytes + kShardCount * AlignedBuffer::ChargedBytes(entries * sizeof(uint64_t));
}

uint64_t KeyIndex::EstimateGrowthBytes(uint64_t rows, uint32_t threads) {
  // While a shard grows it has its old array, half as large, beside the new one.
  const uint64_t entries = EntriesFor(FullestShardRows(rows));
  return std::min(threads, kShardCount) *
         AlignedBuffer::ChargedBytes(entries / 2 * sizeof(uint64_t));
}

}  // namespace embank
