#include "train/fae/calibrator.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "base/check.h"
#include "base/hash.h"
#include "base/seeded_bug.h"
#include "base/status_macros.h"
#include "base/str_cat.h"
#include "base/threads/clock.h"
#include "base/threads/executor.h"
#include "train/fae/input_classifier.h"
#include "train/popularity/cutoff.h"
#include "train/popularity/id_counts.h"

namespace embank {
namespace {

// 8,192 x 26 ids x 8 bytes = 1.7 MB: parts for several threads, and small beside the counts.
constexpr uint32_t kBatchSamples = 8192;
constexpr uint32_t kThreadsMax = 1024;
constexpr uint64_t kKeptIdsMax = 10'000'000;  // x 8 bytes = 80 MB, for samples with long bags

uint64_t IdsOf(const ClickBatch& batch) {
  uint64_t ids = 0;
  for (const FeatureIds& feature : batch.features) ids += feature.ids.size();
  return ids;
}

Status CheckOptions(const CalibrationOptions& options, const ClickColumns& columns) {
  if (columns.ids.empty()) return InvalidArgumentError("the log has no id features");
  if (options.row_bytes.size() != columns.ids.size()) {
    return InvalidArgumentError(StrCat("there are bytes of rows for ", options.row_bytes.size(),
                                       " id features, and not for ", columns.ids.size()));
  }
  if (!(options.sampled_share > 0.0 && options.sampled_share <= 1.0)) {
    return InvalidArgumentError(
        StrCat("the sampled share is ", options.sampled_share, ": must be above 0 and at most 1"));
  }
  if (options.threads < 1 || options.threads > kThreadsMax) {
    return InvalidArgumentError(StrCat(options.threads, " threads: must be 1..", kThreadsMax));
  }
  const std::vector<uint32_t> tables = HotIds::TablesOfColumns(columns.table_names());
  for (size_t i = 0; i < tables.size(); ++i) {
    const size_t first = static_cast<size_t>(std::ranges::find(tables, tables[i]) - tables.begin());
    if (options.row_bytes[i] > 0 && options.row_bytes[i] == options.row_bytes[first]) continue;
    return InvalidArgumentError(StrCat(
        "the rows of id feature \"", columns.ids[i], "\" have ", options.row_bytes[i], " bytes: ",
        options.row_bytes[i] == 0 ? "must be at least 1"
                                  : "another feature of their table differs"));
  }
  return OkStatus();
}

// A sample of all inputs that becomes sparser as they grow in number.
class KeptInputs {
 public:
  KeptInputs(size_t id_features, uint64_t seed) : sample_(1.0, seed), seed_(seed) {
    inputs_.Clear(id_features);
  }

  void Add(const ClickBatch& batch, uint64_t first) {
    for (uint32_t i = 0; i < batch.samples; ++i) {
      if (!sample_.Has(first + i)) continue;
      AppendSample(batch, i, &inputs_);
      positions_.push_back(first + i);
    }
    while (inputs_.samples > kKeptInputsMax ||
           (inputs_.samples > 0 && IdsOf(inputs_) > kKeptIdsMax)) {
      HalveShare();
    }
  }

  const ClickBatch& inputs() const { return inputs_; }

 private:
  void HalveShare() {
    sample_ = InputSample(sample_.share() / 2, seed_);
    const ClickBatch inputs = std::exchange(inputs_, {});
    const std::vector<uint64_t> positions = std::exchange(positions_, {});
    inputs_.Clear(inputs.features.size());
    for (uint32_t i = 0; i < inputs.samples; ++i) {
      if (!sample_.Has(positions[i])) continue;
      AppendSample(inputs, i, &inputs_);
      positions_.push_back(positions[i]);
    }
  }

  InputSample sample_;
  const uint64_t seed_;
  ClickBatch inputs_;
  std::vector<uint64_t> positions_;
};

// The ids of a table while they are few enough for a small one. A sample does not tell how many ids
// a log has that are rare, so all inputs are read for it.
class SmallTableIds {
 public:
  void Add(std::span<const Key> ids, uint32_t row_bytes) {
    for (size_t i = 0; i < ids.size() && !is_large_; ++i) {
      ids_.Add(ids[i]);
      is_large_ = uint64_t{ids_.size()} * row_bytes >= kSmallTableBytes;
    }
    if (is_large_) ids_ = IdPlaces();
  }

  bool is_large() const { return is_large_; }
  uint64_t size() const { return ids_.size(); }

 private:
  IdPlaces ids_;
  bool is_large_ = false;
};

// The counts of a log while it is read.
class LogCounts {
 public:
  LogCounts(const ClickColumns& columns, const CalibrationOptions& options)
      : table_of_column_(HotIds::TablesOfColumns(columns.table_names())),
        sample_(options.sampled_share, options.seed),
        executor_(MakeThreadPool(options.threads)),
        row_bytes_(options.row_bytes),
        sampled_(std::ranges::max(table_of_column_) + 1),
        all_(sampled_.size()),
        small_(sampled_.size()),
        // Apart from the seed of the counted sample, whose inputs would be the first ones kept.
        kept_(columns.ids.size(), Mix(options.seed)) {}

  void Add(const ClickBatch& batch) {
    const uint64_t begin_ns = SteadyClock()->NowNs();
    ids_ += IdsOf(batch);
    if (ids_ > kFullProfileIdsMax) all_.clear();
    const std::vector<uint32_t> sampled = SampledOf(batch);
    executor_->ParallelFor(static_cast<uint32_t>(batch.features.size()), [&](uint32_t column) {
      const FeatureIds& feature = batch.features[column];
      const uint32_t table = table_of_column_[column];
      if (!all_.empty()) all_[table].Add(feature.ids);
      std::vector<Key> ids;
      feature.AppendIdsOf(sampled, &ids);
      sampled_[table].Add(ids);
    });
    executor_->ParallelFor(static_cast<uint32_t>(small_.size()), [&](uint32_t table) {
      for (size_t column = 0; column < batch.features.size(); ++column) {
        if (table_of_column_[column] != table) continue;
        small_[table].Add(batch.features[column].ids, row_bytes_[column]);
      }
    });
    nanoseconds_ += SteadyClock()->NowNs() - begin_ns;
    kept_.Add(batch, samples_);
    samples_ += batch.samples;
  }

  // Returns what was counted of each table.
  std::vector<TablePopularity> TakeTables() {
    std::vector<IdCounts> counts = std::move(all_.empty() ? sampled_ : all_);
    std::vector<TablePopularity> tables(counts.size());
    for (size_t i = 0; i < row_bytes_.size(); ++i) {
      tables[table_of_column_[i]].row_bytes = row_bytes_[i];
    }
    for (size_t i = 0; i < counts.size(); ++i) {
      tables[i].entries = counts[i].Entries();
      tables[i].accesses = counts[i].occurrences();
      tables[i].is_small = !small_[i].is_large();
      tables[i].rows = small_[i].size();
      counts[i] = IdCounts();
    }
    return tables;
  }

  double share() const { return all_.empty() ? sample_.share() : 1.0; }
  const std::vector<uint32_t>& table_of_column() const { return table_of_column_; }
  const ClickBatch& kept() const { return kept_.inputs(); }
  uint64_t samples() const { return samples_; }
  uint64_t ids() const { return ids_; }
  double seconds() const { return static_cast<double>(nanoseconds_) * 1e-9; }

 private:
  // Without replacement: each input is counted once or not at all.
  std::vector<uint32_t> SampledOf(const ClickBatch& batch) const {
    std::vector<uint32_t> sampled;
    for (uint32_t i = 0; i < batch.samples; ++i) {
      if (!sample_.Has(samples_ + i)) continue;
      sampled.push_back(i);
      if (Seeded(SeededBug::kSampledWithReplacement) && sampled.size() % 4 == 0) {
        sampled.back() = sampled.front();
      }
    }
    return sampled;
  }

  const std::vector<uint32_t> table_of_column_;
  const InputSample sample_;
  const std::unique_ptr<Executor> executor_;
  const std::vector<uint32_t> row_bytes_;  // of each column
  std::vector<IdCounts> sampled_;          // of each table
  std::vector<IdCounts> all_;              // empty: the log is not small
  std::vector<SmallTableIds> small_;       // of each table
  KeptInputs kept_;
  uint64_t samples_ = 0;
  uint64_t ids_ = 0;
  uint64_t nanoseconds_ = 0;
};

// Returns the highest threshold at which each input is hot.
std::vector<double> InputThresholds(const ClickBatch& inputs,
                                    std::span<const TablePopularity> tables,
                                    std::span<const uint32_t> table_of_column) {
  std::vector<double> thresholds(inputs.samples, std::numeric_limits<double>::infinity());
  for (size_t column = 0; column < inputs.features.size(); ++column) {
    const TablePopularity& table = tables[table_of_column[column]];
    if (table.is_small) continue;
    for (uint32_t i = 0; i < inputs.samples; ++i) {
      for (const Key id : inputs.features[column].OfSample(i)) {
        const auto entry = std::ranges::lower_bound(table.entries, id, {}, &IdCount::id);
        const bool is_known = entry != table.entries.end() && entry->id == id;
        const double score = is_known ? ScoreOf(*entry) : 0.0;
        thresholds[i] = std::min(thresholds[i], score / static_cast<double>(table.accesses));
      }
    }
  }
  return thresholds;
}

std::vector<CalibratedTable> TablesOf(const Calibration& calibration, const ClickColumns& columns,
                                      std::span<const TablePopularity> tables) {
  std::vector<CalibratedTable> calibrated(tables.size());
  for (size_t i = 0; i < columns.ids.size(); ++i) {
    calibrated[calibration.table_of_column[i]].name = columns.table_names()[i];
  }
  for (size_t i = 0; i < tables.size(); ++i) {
    const TablePopularity& table = tables[i];
    calibrated[i].is_small = table.is_small;
    calibrated[i].row_bytes = table.row_bytes;
    calibrated[i].accesses = table.accesses;
    calibrated[i].rows_seen = table.entries.size();
    calibrated[i].rows = table.is_small ? static_cast<double>(table.rows)
                                        : EstimateRows(table.entries, calibration.counted_share);
    calibrated[i].hot_rows = table.is_small ? table.rows : calibration.choice.ids[i].size();
  }
  return calibrated;
}

// Adds the ids of small tables to hot ids, at first sight: as many as the calibration has counted.
class SmallTables {
 public:
  SmallTables(const Calibration& calibration, HotIds* hot_ids)
      : calibration_(calibration), hot_ids_(*hot_ids) {
    for (uint32_t i = 0; i < calibration.table_of_column.size(); ++i) {
      if (calibration.tables[calibration.table_of_column[i]].is_small) columns_.push_back(i);
    }
    DropWholeTables();
  }

  void Add(const ClickBatch& batch) {
    if (columns_.empty()) return;
    has_new_.assign(batch.samples, 0);
    for (const uint32_t column : columns_) MarkNew(batch.features[column], column);
    // Sample by sample, so that the places of ids do not depend on the batches.
    for (uint32_t sample = 0; sample < batch.samples; ++sample) {
      if (has_new_[sample] == 0) continue;
      for (const uint32_t column : columns_) {
        IdPlaces& places = PlacesOf(column);
        for (const Key id : batch.features[column].OfSample(sample)) {
          if (!IsWhole(column)) places.Add(id);
        }
      }
    }
    DropWholeTables();
  }

  // The columns whose ids in the last batch are all hot. A table that is whole may have refused an
  // id of a log that has changed since its calibration.
  std::span<const uint32_t> hot_columns() const { return columns_; }

  // Returns the bytes of the ids that were added.
  uint64_t Bytes() const {
    uint64_t bytes = 0;
    for (size_t i = 0; i < calibration_.tables.size(); ++i) {
      const CalibratedTable& table = calibration_.tables[i];
      if (table.is_small) bytes += uint64_t{hot_ids_.tables[i].size()} * table.row_bytes;
    }
    return bytes;
  }

 private:
  IdPlaces& PlacesOf(uint32_t column) {
    return hot_ids_.tables[calibration_.table_of_column[column]];
  }
  bool IsWhole(uint32_t column) const {
    const uint32_t table = calibration_.table_of_column[column];
    return hot_ids_.tables[table].size() >= calibration_.tables[table].hot_rows;
  }
  void DropWholeTables() {
    std::erase_if(columns_, [&](uint32_t column) { return IsWhole(column); });
  }

  // Marks the samples with an id that has no place yet.
  void MarkNew(const FeatureIds& feature, uint32_t column) {
    found_.resize(feature.ids.size());
    PlacesOf(column).PlacesOf(feature.ids, found_.data());
    if (std::ranges::find(found_, IdPlaces::kNone) == found_.end()) return;
    const uint32_t* place = found_.data();
    for (uint32_t sample = 0; sample < has_new_.size(); ++sample) {
      const size_t count = feature.OfSample(sample).size();
      if (std::find(place, place + count, IdPlaces::kNone) != place + count) has_new_[sample] = 1;
      place += count;
    }
  }

  const Calibration& calibration_;
  HotIds& hot_ids_;
  std::vector<uint32_t> columns_;  // of tables that lack ids
  std::vector<uint8_t> has_new_;   // of each sample of a batch
  std::vector<uint32_t> found_;    // the places of a feature's ids
};

}  // namespace

StatusOr<Calibration> Calibrate(ClickSource* log, const CalibrationOptions& options,
                                CalibrationProgress progress) {
  const ClickColumns& columns = log->columns();
  EMBANK_RETURN_IF_ERROR(CheckOptions(options, columns));
  LogCounts counts(columns, options);
  ClickBatch batch;
  while (true) {
    EMBANK_ASSIGN_OR_RETURN(const uint32_t samples, log->Next(kBatchSamples, &batch));
    if (samples == 0) break;
    counts.Add(batch);
    EMBANK_RETURN_IF_ERROR(progress(log->FractionRead(), counts.samples()));
  }
  if (counts.samples() == 0) return InvalidArgumentError("the log has no samples");

  Calibration calibration;
  calibration.options = options;
  calibration.table_of_column = counts.table_of_column();
  calibration.samples = counts.samples();
  calibration.ids = counts.ids();
  calibration.counted_share = counts.share();
  calibration.counting_seconds = counts.seconds();
  const bool is_full = counts.share() == 1.0 && counts.ids() <= kFullProfileIdsMax;
  std::vector<TablePopularity> tables = counts.TakeTables();
  if (!is_full &&
      std::ranges::all_of(tables, &std::vector<IdCount>::empty, &TablePopularity::entries)) {
    return InvalidArgumentError(StrCat("the sampled share is ", options.sampled_share,
                                       ": none of the log's ", counts.samples(),
                                       " samples is among them"));
  }
  const HotBudget budget = {options.budget_bytes, options.seed};
  EMBANK_ASSIGN_OR_RETURN(calibration.choice, is_full ? ChooseByFullProfile(tables, budget)
                                                      : ChooseHot(tables, budget));
  calibration.tables = TablesOf(calibration, columns, tables);
  const std::vector<double> thresholds =
      InputThresholds(counts.kept(), tables, calibration.table_of_column);
  const auto hot = std::ranges::count_if(
      thresholds, [&](double threshold) { return threshold >= calibration.choice.threshold; });
  calibration.hot_input_share =
      static_cast<double>(hot) / static_cast<double>(std::max<size_t>(1, thresholds.size()));
  calibration.curve = PopularityCurve(tables, thresholds);
  return calibration;
}

StatusOr<ClassifiedLog> ClassifyLog(
    ClickSource* log, const Calibration& calibration,
    FunctionRef<Status(const ClickBatch& samples, uint32_t sample, bool is_hot)> add,
    CalibrationProgress progress) {
  EMBANK_CHECK(log->columns().ids.size() == calibration.table_of_column.size());
  ClassifiedLog classified;
  HotIds& hot_ids = classified.hot_ids;
  hot_ids.table_of_column = calibration.table_of_column;
  hot_ids.tables.resize(calibration.tables.size());
  for (size_t i = 0; i < hot_ids.tables.size(); ++i) {
    for (const Key id : calibration.choice.ids[i]) hot_ids.tables[i].Add(id);
  }
  SmallTables small(calibration, &hot_ids);
  InputClassifier classifier(&hot_ids);
  const std::unique_ptr<Executor> executor = MakeThreadPool(calibration.options.threads);
  ClickBatch batch;
  std::vector<uint8_t> is_hot;
  while (true) {
    EMBANK_ASSIGN_OR_RETURN(const uint32_t samples, log->Next(kBatchSamples, &batch));
    if (samples == 0) break;
    small.Add(batch);
    classifier.Classify(batch, small.hot_columns(), executor.get(), &is_hot);
    for (uint32_t i = 0; i < samples; ++i) {
      EMBANK_RETURN_IF_ERROR(add(batch, i, is_hot[i] != 0));
      classified.hot_samples += is_hot[i];
    }
    classified.samples += samples;
    EMBANK_RETURN_IF_ERROR(progress(log->FractionRead(), classified.samples));
  }
  if (classified.samples != calibration.samples) {
    return FailedPreconditionError(StrCat("the log has ", classified.samples, " samples, and had ",
                                          calibration.samples, " at its calibration"));
  }
  const HotChoice& choice = calibration.choice;
  classified.hot_bytes = choice.hot_bytes - choice.reserved_bytes + small.Bytes();
  return classified;
}

StatusOr<ClassifiedLog> WriteBatches(ClickSource* log, const Calibration& calibration,
                                     FaeWriter* writer, CalibrationProgress progress) {
  const auto add = [&](const ClickBatch& samples, uint32_t sample, bool is_hot) {
    return writer->Add(samples, sample, is_hot);
  };
  return ClassifyLog(log, calibration, add, progress);
}

}  // namespace embank
