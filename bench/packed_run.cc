#include "bench/packed_run.h"

#include <algorithm>
#include <cstdio>
#include <numeric>
#include <utility>

#include "base/check.h"
#include "base/status_macros.h"
#include "base/str_cat.h"
#include "base/threads/clock.h"
#include "bench/c_store.h"
#include "bench/id_mode.h"
#include "bench/kv_samples.h"
#include "bench/report.h"
#include "bench/table_options.h"
#include "train/generator/zipf.h"

namespace embank {
namespace {

// The ids come again after so many positions of a table: 1.7 million of 26 tables.
constexpr uint64_t kPositionsOfTable = uint64_t{1} << 16;
// Calls with bags have more positions.
constexpr uint64_t kCallsOfBags = 16;
constexpr uint64_t kFillKeys = 8192;
constexpr uint32_t kPooledBags = 256;
constexpr uint32_t kPooledBag = 325;
constexpr uint64_t kPooledRows = 1'000'000;
constexpr uint32_t kPooledDim = 16;

uint64_t CallsOf(const PackedCase& of) {
  return of.bag > 1 ? kCallsOfBags : std::max<uint64_t>(1, kPositionsOfTable / of.batch);
}

CallTime TimeOf(const std::vector<double>& rounds) {
  return {.median_us = Median(rounds),
          .min_us = *std::ranges::min_element(rounds),
          .max_us = *std::ranges::max_element(rounds)};
}

// Tables in memory with all their rows, and the calls on them.
class PackedStore {
 public:
  PackedStore(const PackedOptions& options, const PackedCase& of)
      : options_(options), case_(of), tables_(of.tables), rows_(of.tables), features_(of.tables) {
    for (std::vector<float>& rows : rows_) rows.resize(uint64_t{of.batch} * of.dim);
    for (uint64_t bag = 0; bag <= of.batch; ++bag) offsets_.push_back(bag * of.bag);
    gradients_.resize(uint64_t{of.batch} * of.dim);
    for (uint64_t i = 0; i < gradients_.size(); ++i) {
      gradients_[i] = 1e-4f * static_cast<float>(static_cast<int32_t>(i % 17) - 8);
    }
  }

  Status Open() {
    embank_store_options store;
    embank_store_options_init(&store, sizeof store);
    store.worker_threads = options_.threads;
    store.seed = options_.seed;
    embank_store* handle = nullptr;
    EMBANK_RETURN_IF_ERROR(ToStatus(embank_store_open(&store, &handle)));
    store_.reset(handle);
    for (uint32_t t = 0; t < case_.tables; ++t) {
      const embank_table_options table = MakeTableOptions({.dim = case_.dim});
      EMBANK_RETURN_IF_ERROR(ToStatus(
          embank_table_create(store_.get(), StrCat(kTableName, t).c_str(), &table, &tables_[t])));
      EMBANK_RETURN_IF_ERROR(Fill(tables_[t]));
      EMBANK_ASSIGN_OR_RETURN(std::vector<uint64_t> ids, PackedIds(options_, case_, t));
      ids_.push_back(std::move(ids));
    }
    return OkStatus();
  }

  // Call number `call`. Seconds are added to both.
  Status Call(uint64_t call, double* lookup, double* gradients) {
    const uint64_t first = call % CallsOf(case_) * case_.KeysOfTable();
    for (uint32_t t = 0; t < case_.tables; ++t) {
      EMBANK_CHECK(first + case_.KeysOfTable() <= ids_[t].size());
      SetFeature(tables_[t], ids_[t].data() + first, rows_[t].data(), &features_[t]);
    }
    const uint64_t begin_ns = SteadyClock()->NowNs();
    EMBANK_RETURN_IF_ERROR(ToStatus(
        embank_lookup_packed(features_.data(), features_.size(), EMBANK_MISSING_CREATE, nullptr)));
    const uint64_t middle_ns = SteadyClock()->NowNs();
    for (embank_feature& feature : features_) feature.rows = gradients_.data();
    EMBANK_RETURN_IF_ERROR(
        ToStatus(embank_apply_gradients_packed(features_.data(), features_.size(), nullptr)));
    *lookup += static_cast<double>(middle_ns - begin_ns) * 1e-9;
    *gradients += static_cast<double>(SteadyClock()->NowNs() - middle_ns) * 1e-9;
    return OkStatus();
  }

  // Writes the ids of all tables, one behind the other, as 32-bit little-endian numbers.
  Status SaveIds(const std::string& directory) const {
    std::string bytes;
    for (const std::vector<uint64_t>& ids : ids_) {
      for (const uint64_t id : ids) {
        for (uint32_t shift = 0; shift < 32; shift += 8) {
          bytes.push_back(static_cast<char>(id >> shift & 0xFF));
        }
      }
    }
    return WriteFile(StrCat(directory, "/", case_.name, ".u32"), bytes);
  }

 private:
  Status Fill(embank_table* table) const {
    std::vector<uint64_t> keys(kFillKeys);
    std::vector<float> rows(kFillKeys * case_.dim);
    for (uint64_t first = 0; first < case_.rows; first += kFillKeys) {
      std::iota(keys.begin(), keys.end(), first);
      const uint64_t count = std::min(kFillKeys, case_.rows - first);
      EMBANK_RETURN_IF_ERROR(ToStatus(embank_lookup(
          table, keys.data(), count, EMBANK_MISSING_CREATE, rows.data(), 0, nullptr)));
    }
    return OkStatus();
  }

  void SetFeature(embank_table* table, const uint64_t* keys, float* rows,
                  embank_feature* feature) const {
    const bool is_pooled = case_.bag > 1;
    *feature = {};
    feature->struct_size = sizeof(embank_feature);
    feature->pooling = is_pooled ? EMBANK_POOL_SUM : EMBANK_POOL_NONE;
    feature->table = table;
    feature->keys = keys;
    feature->n = case_.KeysOfTable();
    feature->offsets = is_pooled ? offsets_.data() : nullptr;
    feature->bags = is_pooled ? case_.batch : 0;
    feature->rows = rows;
  }

  const PackedOptions& options_;
  const PackedCase& case_;
  StorePointer store_;
  std::vector<embank_table*> tables_;
  std::vector<std::vector<uint64_t>> ids_;  // of each table
  std::vector<std::vector<float>> rows_;    // of each table
  std::vector<uint64_t> offsets_;           // of the bags
  std::vector<float> gradients_;            // of each sample, the same for all tables
  std::vector<embank_feature> features_;
};

StatusOr<PackedFigure> RunCase(const PackedOptions& options, const PackedCase& of) {
  PackedStore store(options, of);
  EMBANK_RETURN_IF_ERROR(store.Open());
  if (!options.ids_directory.empty()) {
    EMBANK_RETURN_IF_ERROR(store.SaveIds(options.ids_directory));
  }
  PackedFigure figure = {.of = of, .lookup = {}, .gradients = {}};
  uint64_t call = 0;
  double unused = 0.0;
  for (; call < CallsOf(of); ++call) EMBANK_RETURN_IF_ERROR(store.Call(call, &unused, &unused));
  std::vector<double> lookups, gradients;
  for (uint32_t round = 0; round < options.rounds; ++round) {
    double lookup = 0.0, gradient = 0.0;
    const uint64_t first = call;
    do {
      EMBANK_RETURN_IF_ERROR(store.Call(call++, &lookup, &gradient));
    } while (lookup + gradient < options.seconds);
    const auto calls = static_cast<double>(call - first);
    lookups.push_back(lookup * 1e6 / calls);
    gradients.push_back(gradient * 1e6 / calls);
    figure.calls += call - first;
  }
  figure.lookup = TimeOf(lookups);
  figure.gradients = TimeOf(gradients);
  return figure;
}

}  // namespace

std::vector<PackedCase> PackedCases(const PackedOptions& options) {
  std::vector<PackedCase> cases;
  for (const uint32_t dim : options.dims) {
    for (const uint32_t batch : options.batches) {
      cases.push_back({.name = "tables",
                       .tables = options.tables,
                       .rows = options.rows,
                       .dim = dim,
                       .batch = batch});
    }
  }
  cases.push_back({.name = "bags",
                   .rows = kPooledRows,
                   .dim = kPooledDim,
                   .batch = kPooledBags,
                   .bag = kPooledBag});
  return cases;
}

StatusOr<std::vector<uint64_t>> PackedIds(const PackedOptions& options, const PackedCase& of,
                                          uint32_t table) {
  EMBANK_ASSIGN_OR_RETURN(const ZipfSampler zipf,
                          ZipfSampler::Create(of.rows, options.skew, options.seed + table));
  EMBANK_ASSIGN_OR_RETURN(IdMapper mapper,
                          IdMapper::Create(IdMode::kPermuted, of.rows, options.seed + table));
  std::vector<uint64_t> ids(CallsOf(of) * of.KeysOfTable());
  zipf.Ranks(0, ids);
  mapper.Map(ids);
  return ids;
}

StatusOr<PackedReport> RunPacked(const PackedOptions& options, Progress* progress) {
  PackedReport report;
  const std::vector<PackedCase> cases = PackedCases(options);
  for (size_t i = 0; i < cases.size(); ++i) {
    progress->Update(static_cast<double>(i) / static_cast<double>(cases.size()),
                     StrCat(cases[i].name, ", dim ", cases[i].dim, ", batch ", cases[i].batch));
    EMBANK_ASSIGN_OR_RETURN(PackedFigure figure, RunCase(options, cases[i]));
    report.figures.push_back(std::move(figure));
  }
  return report;
}

}  // namespace embank
