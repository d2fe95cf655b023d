#include "store/batch.h"

#include <algorithm>
#include <new>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/status_macros.h"

namespace embank {
namespace {

// Below this a batch is done sooner by one thread than another one wakes up: 8,192 rows take about
// a millisecond here, waking a thread up to 50 us.
constexpr size_t kParallelKeysMin = 8192;

// A status of work that is done: without its message where there is no memory for one, since an
// exception would say that nothing was done.
template <typename Message>
absl::Status StatusWithRoom(absl::StatusCode code, Message message) {
  try {
    return absl::Status(code, message());
  } catch (const std::bad_alloc&) {
    return absl::Status(code, "");
  }
}

}  // namespace

void OutcomeTally::Add(Outcome outcome, uint64_t position) {
  ++counts[static_cast<size_t>(outcome) - 1];
  if (outcome == Outcome::kRefused) first_refused = std::min(first_refused, position);
  if (outcome == Outcome::kAbsent) first_absent = std::min(first_absent, position);
}

void OutcomeTally::Add(const OutcomeTally& other) {
  for (size_t i = 0; i < counts.size(); ++i) counts[i] += other.counts[i];
  first_refused = std::min(first_refused, other.first_refused);
  first_absent = std::min(first_absent, other.first_absent);
}

void Batch::Publish(TableVerb verb, uint64_t begin_ns) const {
  TableCounters::Verb& counters = table_->counters().verbs[static_cast<size_t>(verb)];
  for (size_t i = 0; i < tally_.counts.size(); ++i) {
    if (tally_.counts[i] == 0) continue;
    counters.keys_by_outcome[i].fetch_add(tally_.counts[i], std::memory_order_relaxed);
  }
  counters.batches.fetch_add(1, std::memory_order_relaxed);
  counters.nanoseconds.fetch_add(table_->parts().clock->NowNs() - begin_ns,
                                 std::memory_order_relaxed);
}

absl::Status Batch::RefusedStatus() const {
  if (!outcomes_.empty() || count(Outcome::kRefused) == 0) return absl::OkStatus();
  return StatusWithRoom(absl::StatusCode::kResourceExhausted, [&] {
    return absl::StrCat("dram_bytes is used up: ", count(Outcome::kRefused), " of ", keys_.size(),
                        " keys were refused in table \"", table_->name(), "\", the first is key ",
                        keys_[tally_.first_refused], " at position ", tally_.first_refused,
                        "; erase rows or open the store with more");
  });
}

absl::Status Batch::AbsentStatus() const {
  if (!outcomes_.empty() || count(Outcome::kAbsent) == 0) return absl::OkStatus();
  return StatusWithRoom(absl::StatusCode::kNotFound, [&] {
    return absl::StrCat(count(Outcome::kAbsent), " of ", keys_.size(),
                        " keys have no row in table \"", table_->name(), "\", the first is key ",
                        keys_[tally_.first_absent], " at position ", tally_.first_absent,
                        "; the others were done; ask for outcomes to learn which");
  });
}

absl::Status Batch::Plan() {
  EMBANK_CHECK(keys_.size() <= kBatchKeysMax);
  EMBANK_RETURN_IF_ERROR(hashes_memory_.Allocate(keys_.size()));
  EMBANK_RETURN_IF_ERROR(positions_memory_.Allocate(keys_.size()));
  hashes_ = hashes_memory_.values();
  positions_ = positions_memory_.values();

  std::array<uint32_t, KeyIndex::kShardCount> next{};
  for (size_t i = 0; i < keys_.size(); ++i) {
    hashes_[i] = table_->HashOf(keys_[i]);
    ++next[KeyIndex::ShardOf(hashes_[i])];
  }
  uint32_t begin = 0;
  for (uint32_t shard = 0; shard < KeyIndex::kShardCount; ++shard) {
    group_begin_[shard] = begin;
    begin += next[shard];
    next[shard] = group_begin_[shard];
  }
  group_begin_[KeyIndex::kShardCount] = begin;
  for (size_t i = 0; i < keys_.size(); ++i) {
    positions_[next[KeyIndex::ShardOf(hashes_[i])]++] = static_cast<uint32_t>(i);
  }
  return absl::OkStatus();
}

void Batch::ForEachShard(absl::FunctionRef<void(const ShardGroup&)> body) {
  const auto run = [&](uint32_t shard) {
    const uint32_t begin = group_begin_[shard];
    const uint32_t count = group_begin_[shard + 1] - begin;
    if (count == 0) return;
    OutcomeTally tally;
    body({table_->parts().index->shard(shard), positions_.subspan(begin, count), &tally});
    MutexLock lock(&tally_mutex_);
    tally_.Add(tally);
  };
  if (keys_.size() >= kParallelKeysMin) {
    table_->parts().executor->ParallelFor(KeyIndex::kShardCount, run);
  } else {
    for (uint32_t shard = 0; shard < KeyIndex::kShardCount; ++shard) run(shard);
  }
}

void Batch::ReadRows(absl::FunctionRef<void(uint32_t, std::byte*)> visit) {
  ForEachShard([&](const ShardGroup& group) {
    ReaderMutexLock lock(&group.shard->mutex);
    VisitGroup(group, visit);
  });
}

void Batch::WriteRows(absl::FunctionRef<void(uint32_t, std::byte*)> visit) {
  ForEachShard([&](const ShardGroup& group) {
    MutexLock lock(&group.shard->mutex);
    VisitGroup(group, visit);
  });
}

void Batch::VisitGroup(const ShardGroup& group,
                       absl::FunctionRef<void(uint32_t, std::byte*)> visit) {
  for (const uint32_t position : group.positions) {
    const Location location = table_->parts().index->Find(*group.shard, IdAt(position));
    const bool found = location != kNoLocation;
    visit(position, found ? table_->parts().tier->Row(location) : nullptr);
    Answer(group, position, found ? Outcome::kFound : Outcome::kAbsent);
  }
}

}  // namespace embank
