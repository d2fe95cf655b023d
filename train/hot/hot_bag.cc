#include "train/hot/hot_bag.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <utility>

#include "base/check.h"
#include "base/crc32c.h"
#include "base/hash.h"
#include "base/memory/grown_array.h"
#include "base/seeded_bug.h"
#include "base/status_macros.h"

namespace embank {
std::vector<Pack> AsReplicated(std::span<const Pack> packs) {
  std::vector<Pack> replicated(packs.begin(), packs.end());
  for (Pack& pack : replicated) {
    pack.is_replicated = true;
    pack.is_pooled = false;
  }
  return replicated;
}

HotBag::HotBag(std::vector<EmbeddingFeature> features, SliceRange slices,
               std::shared_ptr<const HotIds> ids, RankTeam* team, ValueType wire, DeviceLink* link)
    : features_(std::move(features)),
      slices_(slices),
      ids_(std::move(ids)),
      team_(team),
      link_(link),
      joined_(DimsOf(features_), slices),
      places_(features_.size()) {
  std::map<const Table*, HotTable*> known;
  for (const EmbeddingFeature& feature : features_) {
    HotTable*& table = known[feature.table];
    if (table == nullptr) {
      table = &tables_.emplace_back(feature.table, &ids_->OfColumn(feature.column),
                                    /*has_replicas=*/team != nullptr);
      is_replicated_.push_back(feature.is_replicated ? 1 : 0);
    }
    table_of_feature_.push_back(table);
  }
  if (team == nullptr) return;
  const RowExchanges exchanges = {.lookups = team->exchange(), .sums = team->exchange()};
  for (size_t i = 0; i < features_.size() * slices.size(); ++i) {
    micro_batches_.push_back({.exchange = PackExchange(features_, exchanges, wire)});
  }
}

bool HotBag::IsOwn(size_t table, Key id) const {
  if (team_ == nullptr || is_replicated_[table] != 0) return true;
  const Exchange& exchange = *team_->exchange();
  return OwnerOf(tables_[table].table()->HashOf(id), exchange.ranks()) == exchange.rank();
}

// The other ranks come to the next vote, too.
Status HotBag::Kept(const Status& status) {
  if (team_ == nullptr) return status;
  team_->Keep(status);
  return OkStatus();
}

Status HotBag::SwapToHot() {
  if (is_hot_) return OkStatus();
  std::vector<HotTable::Rows> rows(tables_.size());
  Status read;
  for (size_t i = 0; i < tables_.size() && read.ok(); ++i) {
    read = tables_[i].ReadStale([&](Key id) { return IsOwn(i, id); }, &rows[i]);
  }
  uint64_t bytes = 0;
  if (team_ == nullptr) {
    EMBANK_RETURN_IF_ERROR(read);
    for (size_t i = 0; i < rows.size(); ++i) bytes += TakeRows(i, rows[i].places, rows[i].bytes);
  } else {
    EMBANK_ASSIGN_OR_RETURN(const bool are_taken, TakeOfRanks(read, rows, &bytes));
    if (!are_taken) return OkStatus();
  }
  for (HotTable& table : tables_) table.ClearStale();
  link_->ToDevice(bytes);
  swaps_.bytes += bytes;
  swaps_.bytes_of_all_rows += this->bytes();
  ++swaps_.to_hot;
  is_hot_ = true;
  return OkStatus();
}

// Returns the bytes.
uint64_t HotBag::TakeRows(size_t table, std::span<const uint32_t> places,
                          std::span<const std::byte> rows) {
  tables_[table].Take(places, rows);
  swaps_.rows_to_hot += places.size();
  return rows.size();
}

// Rows of one rank: the bytes of each table, and then, as places have 4 bytes each, their places.
// Those of replicated tables stay: each rank has read its own.
void HotBag::LayOwn(const std::vector<HotTable::Rows>& rows, PartBuffer* sent) const {
  uint64_t bytes = 0;
  for (size_t i = 0; i < rows.size(); ++i) {
    if (is_replicated_[i] != 0) continue;
    bytes += rows[i].places.size() * sizeof(uint32_t) + rows[i].bytes.size();
  }
  sent->LayOne(bytes, team_->exchange()->ranks());
  sent->ClearPadding(0, bytes);
  std::byte* to = sent->data();
  const auto append = [&to](std::span<const std::byte> from) {
    if (!from.empty()) std::memcpy(to, from.data(), from.size());
    to += from.size();
  };
  for (size_t i = 0; i < rows.size(); ++i) {
    if (is_replicated_[i] == 0) append(rows[i].bytes);
  }
  for (size_t i = 0; i < rows.size(); ++i) {
    if (is_replicated_[i] == 0) append(std::as_bytes(std::span(rows[i].places)));
  }
}

// Takes the rows that all ranks have read, in the order of ranks. Returns whether all of them could
// be read; else nothing was taken, and the next vote says why.
StatusOr<bool> HotBag::TakeOfRanks(const Status& read, const std::vector<HotTable::Rows>& own,
                                   uint64_t* bytes) {
  Exchange* const exchange = team_->exchange();
  const uint32_t ranks = exchange->ranks();
  team_->Keep(read);
  // A rank tells its number of rows of each table before them, and whether it has failed.
  std::vector<uint64_t> counts;
  counts.reserve(own.size() + 1);
  for (const HotTable::Rows& rows : own) counts.push_back(rows.places.size());
  counts.push_back(read.ok() ? 0 : 1);
  const std::span<const std::byte> counts_bytes = std::as_bytes(std::span(counts));
  PartBuffer sent;
  PartBuffer received;
  sent.LayOne(counts_bytes.size(), ranks);
  sent.ClearPadding(0, counts_bytes.size());
  std::ranges::copy(counts_bytes, sent.data());
  received.Lay(std::vector<uint64_t>(ranks, counts_bytes.size()));
  EMBANK_RETURN_IF_ERROR(exchange->Run(sent.source(), received.target()));
  std::vector<std::vector<uint64_t>> of_ranks(ranks, counts);
  std::vector<uint64_t> sizes(ranks);
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    std::memcpy(of_ranks[rank].data(), received.data() + received.parts()[rank].begin,
                counts_bytes.size());
    if (of_ranks[rank].back() != 0) return false;
    for (size_t i = 0; i < own.size(); ++i) {
      if (is_replicated_[i] != 0) of_ranks[rank][i] = 0;
      sizes[rank] += of_ranks[rank][i] * (sizeof(uint32_t) + tables_[i].row_bytes());
    }
  }
  LayOwn(own, &sent);
  received.Lay(sizes);
  EMBANK_RETURN_IF_ERROR(exchange->Run(sent.source(), received.target()));
  for (size_t i = 0; i < own.size(); ++i) {
    if (is_replicated_[i] != 0) *bytes += TakeRows(i, own[i].places, own[i].bytes);
  }
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    const std::byte* rows = received.data() + received.parts()[rank].begin;
    const std::byte* places = rows + sizes[rank];
    for (const uint64_t count : std::span(of_ranks[rank]).first(own.size())) {
      places -= count * sizeof(uint32_t);
    }
    for (size_t i = 0; i < own.size(); ++i) {
      const uint64_t count = of_ranks[rank][i];
      const std::span of_table(rows, count * tables_[i].row_bytes());
      *bytes += TakeRows(i, {reinterpret_cast<const uint32_t*>(places), count}, of_table);
      rows += of_table.size();
      places += count * sizeof(uint32_t);
    }
  }
  return true;
}

Status HotBag::SwapToCold() {
  if (!is_hot_) return OkStatus();
  EMBANK_RETURN_IF_ERROR(WriteBack());
  ++swaps_.to_cold;
  is_hot_ = false;
  return OkStatus();
}

// One thread makes these calls and starts checkpoints: none begins between two tables.
Status HotBag::WriteBack() {
  if (!is_hot_) return OkStatus();
  uint64_t bytes = 0;
  for (size_t i = 0; i < tables_.size(); ++i) {
    const StatusOr<uint64_t> rows = tables_[i].WriteBack([&](Key id) { return IsOwn(i, id); });
    if (!rows.ok()) return Kept(rows.status());
    swaps_.rows_to_cold += *rows;
    bytes += *rows * tables_[i].row_bytes();
  }
  link_->ToHost(bytes);
  swaps_.bytes += bytes;
  if (bytes > 0) swaps_.bytes_of_all_rows += this->bytes();
  return OkStatus();
}

void HotBag::Begin(std::span<const uint64_t> ids_max) {
  EMBANK_CHECK(ids_max.size() == features_.size());
  if (team_ == nullptr) joined_.Begin(ids_max);
  for (size_t i = 0; i < places_.size(); ++i) Grow(ids_max[i], &places_[i]);
  for (MicroBatch& micro_batch : micro_batches_) micro_batch.is_in_batch = false;
}

Status HotBag::ShuffleIds(const Pack& pack, SliceRange micro_batch, BatchIds* ids) {
  MicroBatch& of_pack = Of(pack, micro_batch.begin);
  of_pack.is_in_batch = true;
  return of_pack.exchange.SendIds(pack, micro_batch, ids);
}

// Each rank has the rows of its own ids.
Status HotBag::Gather(const Pack& pack, SliceRange micro_batch, MissingRule /*rule*/,
                      BatchIds* ids) {
  for (const uint32_t i : pack.features) {
    uint32_t* const places = places_[i].data();
    if (team_ == nullptr) {
      const JoinedIds::Run run = joined_.Join(i, micro_batch, ids);
      const ptrdiff_t begin = run.ids.data() - joined_.ids(i);
      EMBANK_RETURN_IF_ERROR(TableOf(i)->Copy(run.ids, run.rows, places + begin));
      continue;
    }
    for (uint32_t slice = micro_batch.begin; slice < micro_batch.end; ++slice) {
      const SliceIds& of_slice = ids->Of(i, slice);
      // The pass gets rows to read; their memory is the exchange's, which this rank writes.
      auto* const rows = const_cast<float*>(of_slice.rows[0]);
      EMBANK_RETURN_IF_ERROR(TableOf(i)->Copy(of_slice.ids, rows, places + of_slice.ids_before));
    }
  }
  return OkStatus();
}

Status HotBag::ShuffleSums(const Pack& pack, SliceRange micro_batch) {
  return Of(pack, micro_batch.begin).exchange.SendSums(pack);
}

// The slices of a rank come before those of the next one, as ShardedRows has them.
std::vector<SumRun> HotBag::RunsOf(const Pack& pack) {
  std::vector<SumRun> runs;
  if (team_ == nullptr) {
    for (const uint32_t i : pack.features) joined_.AddSums(i, &runs);
    return runs;
  }
  const Exchange& exchange = *team_->exchange();
  const uint32_t ranks = exchange.ranks();
  const bool is_reversed = Seeded(SeededBug::kReplicaInOtherOrder) && exchange.rank() == 1;
  for (size_t i = 0; i < pack.features.size(); ++i) {
    for (uint32_t number = 0; number < ranks; ++number) {
      const uint32_t rank = is_reversed ? ranks - 1 - number : number;
      for (uint32_t slice = slices_.begin; slice < slices_.end; ++slice) {
        MicroBatch& micro_batch = Of(pack, slice);
        if (!micro_batch.is_in_batch) continue;
        const SumRun run = micro_batch.exchange.RunOf(pack, i, rank);
        if (!run.ids.empty()) runs.push_back(run);
      }
    }
  }
  return runs;
}

// Ids of other ranks have no known places.
const uint32_t* HotBag::PlacesOf(const SumRun& run) const {
  if (team_ != nullptr) return nullptr;
  return places_[run.feature].data() + (run.ids.data() - joined_.ids(run.feature));
}

Status HotBag::Update(const Pack& pack, const RowUpdate& update) {
  std::vector<SumRun> runs = RunsOf(pack);
  // Ids that are left out have their places taken by others.
  const bool leaves_out = !update.are_sums_finite || update.lost != nullptr;
  if (leaves_out) {
    for (const SumRun& run : runs) TableOf(run.feature)->NoteTouched(run.ids);
  }
  IdsLeftOut left_out = TakeLeftOut(features_, runs, update);
  std::map<HotTable*, std::vector<HotSums>> by_table;
  for (const SumRun& run : runs) {
    by_table[TableOf(run.feature)].push_back({&run, leaves_out ? nullptr : PlacesOf(run)});
  }
  for (const auto& [table, of_table] : by_table) left_out.not_finite += table->Step(of_table);
  // All ranks leave the same ids out: the first one counts them.
  if (team_ != nullptr && team_->exchange()->rank() > 0) left_out = {};
  left_out_.fetch_add(left_out.not_finite, std::memory_order_relaxed);
  if (update.lost != nullptr) update.lost->Count(left_out.lost);
  return OkStatus();
}

void HotBag::Note(uint32_t feature, KeySpan ids) { TableOf(feature)->NoteStale(ids); }

uint64_t HotBag::rows() const {
  uint64_t rows = 0;
  for (const HotTable& table : tables_) rows += table.rows();
  return rows;
}

uint64_t HotBag::bytes() const {
  uint64_t bytes = 0;
  for (const HotTable& table : tables_) bytes += table.rows() * table.row_bytes();
  return bytes;
}

// Tables are in the order of their features on all ranks.
uint32_t HotBag::Crc32c() const {
  uint32_t sum = 0;
  for (const HotTable& table : tables_) {
    const uint32_t crc = table.crc32c();
    sum = ExtendCrc32c(sum, std::as_bytes(std::span(&crc, 1)));
  }
  return sum;
}

}  // namespace embank
