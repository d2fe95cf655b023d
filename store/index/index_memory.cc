#include "store/index/index_memory.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/seeded_bug.h"
#include "base/status_macros.h"
#include "store/index/bucket_array.h"
#include "store/index/index_sizes.h"

namespace embank {

static_assert(kPageBuckets % BucketArray::kBlockBuckets == 0);

StatusOr<AddressRange> IndexMemory::ReserveAddresses(MemorySource* source,
                                                     const MemoryBudget& budget) {
  // Never more addresses than the budget, or twice the machine's memory, could fill.
  const uint64_t memory_bytes =
      budget.limit_bytes() != 0 ? budget.limit_bytes() : 2 * PhysicalMemoryBytes();
  return AddressRange::Reserve(source, std::clamp(RoundUp(memory_bytes, kHugePageBytes),
                                                  BytesFor(kBucketsMin), BytesFor(kBucketsMax)));
}

IndexMemory::IndexMemory(MemoryBudget* budget, EpochTable* epochs, PagePool* pages,
                         AddressRange addresses, std::span<const IndexShard> shards)
    : base_(addresses.data()),
      budget_(budget),
      epochs_(epochs),
      pages_(pages),
      addresses_(std::move(addresses)),
      shards_(shards) {
  EMBANK_CHECK(shards_.size() == kIndexShardCount);
}

IndexMemory::~IndexMemory() {
  // The memory itself goes with `addresses_`; no other part takes from the budget of a store that
  // closes.
  budget_->Release(bytes());
}

Status IndexMemory::CommitFirst() {
  MutexLock lock(&mutex_);
  return CommitFor(kBucketsMin);
}

Status IndexMemory::Grow(IndexShard* shard, uint32_t buckets) {
  MutexLock lock(&mutex_);
  const Status status = CommitFor(buckets);
  wanted_bytes_.store(MissingBytesFor(buckets), std::memory_order_relaxed);
  EMBANK_RETURN_IF_ERROR(status);
  EMBANK_CHECK(BytesFor(buckets) <= bytes() && bytes() <= addresses_.bytes());
  is_exhausted_.store(false, std::memory_order_relaxed);
  shard->BeginGrowing(buckets);
  return OkStatus();
}

Status IndexMemory::CommitFor(uint32_t buckets) {
  while (bytes() < BytesFor(buckets)) {
    if (bytes() == addresses_.bytes()) return NoMemory();
    EMBANK_RETURN_IF_ERROR(ChargePage());
    if (Status status = addresses_.Commit(bytes(), kHugePageBytes); !status.ok()) {
      budget_->Release(kHugePageBytes);
      return status;
    }
    committed_bytes_.fetch_add(kHugePageBytes, std::memory_order_relaxed);
  }
  return OkStatus();
}

Status IndexMemory::ChargePage() {
  const uint64_t kept_free_bytes = kept_free_bytes_.load(std::memory_order_relaxed);
  Status status = budget_->Charge(kHugePageBytes, kept_free_bytes);
  // Pages without rows hold budget that the index may have.
  if (!status.ok() && pages_->ReleaseEmptyPages() > 0) {
    status = budget_->Charge(kHugePageBytes, kept_free_bytes);
  }
  return status;
}

// CommitFor succeeds where so many bytes are free.
uint64_t IndexMemory::MissingBytesFor(uint32_t buckets) const {
  const uint64_t taken_bytes = bytes();
  if (BytesFor(buckets) <= taken_bytes) return 0;
  return BytesFor(buckets) - taken_bytes + kept_free_bytes_.load(std::memory_order_relaxed);
}

void IndexMemory::NoteWanted(uint32_t buckets) {
  const uint64_t bytes = MissingBytesFor(buckets);
  if (bytes > wanted_bytes()) wanted_bytes_.store(bytes, std::memory_order_relaxed);
}

bool IndexMemory::IsStarved() const {
  return std::any_of(shards_.begin(), shards_.end(), [](const IndexShard& shard) {
    return shard.is_starved.load(std::memory_order_relaxed);
  });
}

uint64_t IndexMemory::Release() {
  MutexLock lock(&mutex_);
  uint32_t buckets = 0;
  for (const IndexShard& shard : shards_) buckets = std::max(buckets, shard.buckets());
  const uint64_t reserved_bytes = BytesFor(buckets);
  EMBANK_CHECK(reserved_bytes <= bytes());
  const uint64_t released_bytes = bytes() - reserved_bytes;
  if (released_bytes == 0) return 0;
  // Readers may still look at places of an array's former size.
  if (!Seeded(SeededBug::kNoWaitForReaders)) epochs_->WaitUntilPassed(epochs_->Retire());
  addresses_.Decommit(reserved_bytes, released_bytes);
  committed_bytes_.fetch_sub(released_bytes, std::memory_order_relaxed);
  // A shard that is nearly full notes anew what it wants.
  wanted_bytes_.store(0, std::memory_order_relaxed);
  budget_->Release(released_bytes);
  return released_bytes;
}

}  // namespace embank
