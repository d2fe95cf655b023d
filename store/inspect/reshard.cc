#include "store/inspect/reshard.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/hash.h"
#include "base/status_macros.h"
#include "base/str_cat.h"
#include "store/inspect/replicated_rows.h"
#include "store/inspect/store_writer.h"
#include "tiers/row/row_layout.h"
#include "tiers/segment/log_read_list.h"

namespace embank {
namespace {

using Sources = std::span<const std::unique_ptr<CheckpointRows>>;

constexpr uint64_t kBufferBytesMax = uint64_t{1} << 20;
constexpr uint64_t kRowsPerReport = uint64_t{1} << 16;

// Whether tables have the same options, with the same numbers of their rule.
bool HaveSameOptions(const ManifestTable& a, const ManifestTable& b) {
  const auto encoded = [](const ManifestTable& table) {
    Manifest manifest;
    manifest.tables.push_back({.id = 0, .name = {}, .options = table.options});
    return EncodeManifest(manifest);
  };
  return encoded(a) == encoded(b);
}

// A table of the targets.
struct TableOfRanks {
  ManifestTable table;
  RowLayout layout;
  bool is_replicated = false;
  uint64_t rows = 0;
  std::vector<RowSum> sums = {};  // of a replicated table, by source
};

class Reshard {
 public:
  Reshard(FileSystem* files, Sources sources, std::span<const ReshardTarget> targets,
          const ReshardOptions& options, ReshardProgress progress)
      : files_(files),
        sources_(sources),
        targets_(targets),
        options_(options),
        progress_(progress) {
    EMBANK_CHECK(!sources.empty() && sources.size() <= kOwnersMax);
    EMBANK_CHECK(!targets.empty() && targets.size() <= kOwnersMax);
    for (const auto& source : sources) rows_total_ += source->rows();
  }

  StatusOr<ReshardReport> Run() {
    EMBANK_RETURN_IF_ERROR(CollectTables());
    EMBANK_RETURN_IF_ERROR(MarkReplicated());
    EMBANK_RETURN_IF_ERROR(MakeWriters());
    for (const SegmentOfAge& one : SegmentsByAge()) {
      EMBANK_RETURN_IF_ERROR(sources_[one.source]->VisitSegment(
          one.segment, [&](const CheckpointRow& row) { return Take(one.source, row); }));
    }
    if (!progress_(rows_done_, rows_total_)) return Cancelled();
    EMBANK_RETURN_IF_ERROR(CompareReplicated());
    EMBANK_RETURN_IF_ERROR(FinishWriters());
    return Report();
  }

 private:
  struct SegmentOfAge {
    double age;  // 1: the newest of its source
    size_t source;
    size_t segment;
  };

  Status CollectTables() {
    const uint64_t seed = sources_[0]->manifest().seed;
    places_.resize(sources_.size());
    for (size_t i = 0; i < sources_.size(); ++i) {
      const Manifest& manifest = sources_[i]->manifest();
      if (manifest.seed != seed) {
        return FailedPreconditionError(StrCat("rank ", i, " has the seed ", manifest.seed,
                                              ", and rank 0 has ", seed,
                                              ": they are not of one job"));
      }
      for (const ManifestTable& table : manifest.tables) {
        EMBANK_RETURN_IF_ERROR(CollectTable(i, table));
      }
    }
    return OkStatus();
  }

  Status CollectTable(size_t source, const ManifestTable& table) {
    auto found = std::ranges::find(tables_, table.name,
                                   [](const TableOfRanks& one) { return one.table.name; });
    if (found == tables_.end()) {
      const TableOptions& options = table.options;
      tables_.push_back(
          {.table = table,
           .layout = MakeRowLayout(options.dim, options.value_type, options.optimizer)});
      tables_.back().table.id = static_cast<TableId>(tables_.size() - 1);
      found = std::prev(tables_.end());
    }
    if (!HaveSameOptions(found->table, table)) {
      return FailedPreconditionError(
          StrCat("table \"", table.name, "\" has other options on rank ", source,
                 " than on the ranks before it: they are not of one job"));
    }
    // A rank that has no key of a step counts no call.
    uint64_t& calls = found->table.gradient_calls;
    calls = std::max(calls, table.gradient_calls);
    places_[source].push_back(static_cast<size_t>(found - tables_.begin()));
    return OkStatus();
  }

  Status MarkReplicated() {
    for (const std::string& name : options_.replicated) {
      const auto found =
          std::ranges::find(tables_, name, [](const TableOfRanks& one) { return one.table.name; });
      if (found == tables_.end()) {
        return InvalidArgumentError(StrCat("no rank has a table \"", name, "\""));
      }
      found->is_replicated = true;
      found->sums.resize(sources_.size());
    }
    return OkStatus();
  }

  Status MakeWriters() {
    std::vector<ManifestTable> tables;
    std::vector<RowClass> classes;
    for (const TableOfRanks& one : tables_) {
      tables.push_back(one.table);
      const RowClass row_class = RowClassOf(one.table.options);
      if (std::ranges::find(classes, row_class) == classes.end()) classes.push_back(row_class);
    }
    // One half is for records, and the other one for keys.
    const uint64_t half =
        kReshardTargetBytes / 2 / (targets_.size() * std::max<size_t>(classes.size(), 1));
    const uint64_t buffer_bytes =
        std::clamp(RoundDown(half, kBlockBytes), StoreWriter::kBufferBytesMin, kBufferBytesMax);
    const auto segment_rows = static_cast<uint32_t>(half / (sizeof(Key) + sizeof(TableId)));
    const uint64_t seed = sources_[0]->manifest().seed;
    for (size_t i = 0; i < targets_.size(); ++i) {
      StoreWriterOptions options = {.store_id = HashKey(HashKey(seed, options_.now_ns), i),
                                    .seed = seed,
                                    .tables = tables,
                                    .buffer_bytes = buffer_bytes,
                                    .segment_rows_max = std::max<uint32_t>(segment_rows, 1)};
      EMBANK_ASSIGN_OR_RETURN(std::unique_ptr<StoreWriter> writer,
                              StoreWriter::Make(files_, targets_[i].directory, std::move(options)));
      writers_.push_back(std::move(writer));
    }
    return OkStatus();
  }

  std::vector<SegmentOfAge> SegmentsByAge() const {
    std::vector<SegmentOfAge> all;
    for (size_t source = 0; source < sources_.size(); ++source) {
      const size_t count = sources_[source]->manifest().segments.size();
      for (size_t i = 0; i < count; ++i) {
        all.push_back({static_cast<double>(i + 1) / static_cast<double>(count), source, i});
      }
    }
    std::ranges::stable_sort(all, {}, &SegmentOfAge::age);
    return all;
  }

  Status Take(size_t source, const CheckpointRow& row) {
    if (rows_done_++ % kRowsPerReport == 0 && !progress_(rows_done_ - 1, rows_total_)) {
      return Cancelled();
    }
    EMBANK_CHECK(rows_done_ <= rows_total_ && row.table < places_[source].size());
    const size_t place = places_[source][row.table];
    TableOfRanks& table = tables_[place];
    if (table.is_replicated) {
      table.sums[source].Add(table.layout, row);
      if (source > 0) return OkStatus();
      ++table.rows;
      for (const auto& writer : writers_) {
        EMBANK_RETURN_IF_ERROR(writer->Add(place, row.key, row.heat, row.payload));
      }
      return OkStatus();
    }
    const uint32_t owner = OwnerOf(row.hash, static_cast<uint32_t>(sources_.size()));
    if (owner != source) return AtAnotherRank(table.table.name, row.key, source, owner);
    ++table.rows;
    StoreWriter& writer = *writers_[OwnerOf(row.hash, static_cast<uint32_t>(writers_.size()))];
    return writer.Add(place, row.key, row.heat, row.payload);
  }

  static Status AtAnotherRank(const std::string& table, Key key, size_t rank, uint32_t owner) {
    return FailedPreconditionError(StrCat("table \"", table, "\": the row of key ", key,
                                          " is on rank ", rank, ", and its owner is rank ", owner,
                                          "; a table that all ranks have must be given as "
                                          "replicated"));
  }

  static Status Cancelled() {
    return CancelledError("the reshard was cancelled by its progress function");
  }

  Status CompareReplicated() {
    for (const TableOfRanks& table : tables_) {
      for (size_t i = 1; i < table.sums.size(); ++i) {
        if (table.sums[i] != table.sums[0]) return Differ(table.table.name, i);
      }
    }
    return OkStatus();
  }

  Status Differ(const std::string& table, size_t rank) {
    for (const size_t one : {size_t{0}, rank}) {
      const std::vector<ManifestTable>& tables = sources_[one]->manifest().tables;
      if (std::ranges::find(tables, table, &ManifestTable::name) != tables.end()) continue;
      return FailedPreconditionError(
          StrCat("table \"", table, "\" is replicated, and rank ", one, " does not have it"));
    }
    EMBANK_ASSIGN_OR_RETURN(const RowDifference found,
                            FindDifference(sources_[0].get(), sources_[rank].get(), table));
    const std::string what =
        found.in_first && found.in_second
            ? StrCat("the row of key ", found.key, " on rank 0 differs from that on rank ", rank)
            : StrCat("key ", found.key, " is on rank ", found.in_first ? size_t{0} : rank,
                     ", and not on rank ", found.in_first ? rank : size_t{0});
    return FailedPreconditionError(StrCat("table \"", table, "\" is replicated, and ", what));
  }

  Status FinishWriters() {
    uint64_t rows_lost = 0;
    int64_t unix_ns = 0;
    for (const auto& source : sources_) {
      rows_lost += source->manifest().rows_lost;
      unix_ns = std::max(unix_ns, source->manifest().unix_ns);
    }
    for (size_t i = 0; i < writers_.size(); ++i) {
      // Nobody knows who owned a row that is lost: rank 0 counts them all.
      EMBANK_RETURN_IF_ERROR(writers_[i]->Finish(std::as_bytes(std::span(targets_[i].blob)),
                                                 unix_ns, i == 0 ? rows_lost : 0));
    }
    return OkStatus();
  }

  ReshardReport Report() const {
    ReshardReport report;
    for (const TableOfRanks& table : tables_) {
      report.tables.push_back({table.table.name, table.is_replicated, table.rows});
      report.rows += table.rows;
    }
    for (const auto& writer : writers_) report.written_bytes += writer->written_bytes();
    for (const auto& source : sources_) {
      if (source->heat_lost().empty()) continue;
      report.heat_lost.push_back(StrCat(source->path(), ": ", source->heat_lost()));
    }
    return report;
  }

  FileSystem* const files_;
  const Sources sources_;
  const std::span<const ReshardTarget> targets_;
  const ReshardOptions& options_;
  const ReshardProgress progress_;
  std::vector<TableOfRanks> tables_;
  std::vector<std::vector<size_t>> places_;  // of the tables of each source
  std::vector<std::unique_ptr<StoreWriter>> writers_;
  uint64_t rows_total_ = 0;
  uint64_t rows_done_ = 0;
};

}  // namespace

Status ChooseCheckpoints(Sources sources, std::span<const size_t> places) {
  EMBANK_CHECK(places.size() == sources.size());
  uint64_t heat_bytes = 0;
  for (size_t i = 0; i < sources.size(); ++i) heat_bytes += sources[i]->HeatBytesOf(places[i]);
  const double part = heat_bytes <= kReshardHeatBytes ? 1.0
                                                      : static_cast<double>(kReshardHeatBytes) /
                                                            static_cast<double>(heat_bytes);
  const uint64_t window_bytes =
      std::clamp(RoundUp(kReshardWindowBytes / sources.size(), kBlockBytes),
                 RoundUp(kRecordScratchBytes, kBlockBytes), SegmentReader::kWindowBytes);
  for (size_t i = 0; i < sources.size(); ++i) {
    const auto bytes = static_cast<double>(sources[i]->HeatBytesOf(places[i]));
    EMBANK_RETURN_IF_ERROR(
        sources[i]->Choose(places[i], static_cast<uint64_t>(bytes * part), window_bytes));
  }
  return OkStatus();
}

StatusOr<ReshardReport> ReshardStores(FileSystem* files, Sources sources,
                                      std::span<const ReshardTarget> targets,
                                      const ReshardOptions& options, ReshardProgress progress) {
  return Reshard(files, sources, targets, options, progress).Run();
}

}  // namespace embank
