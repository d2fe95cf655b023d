#include "bench/cache_run.h"

#include <algorithm>
#include <map>
#include <memory>
#include <tuple>
#include <utility>

#include "base/status_macros.h"
#include "base/str_cat.h"
#include "bench/cache_engine.h"
#include "bench/embank_cache.h"
#include "bench/kv_samples.h"
#include "bench/lru_cache.h"
#include "bench/phase_run.h"
#include "bench/rocksdb_cache.h"
#include "bench/workload.h"
#include "store/table/options.h"
#include "tiers/row/row_layout.h"

namespace embank {
namespace {

// One round of an engine with so many threads.
struct CacheSample {
  double rows_per_second = 0.0;
  double hit_ratio = 0.0;
  CacheMemory memory;
};

struct Turn {
  std::string engine;
  std::optional<int32_t> eviction;  // none: a peer
  uint32_t threads = 1;
  bool operator<(const Turn& other) const {
    return std::tie(engine, threads) < std::tie(other.engine, other.threads);
  }
};

// The buffers that one thread gives to an engine.
struct Buffers {
  std::vector<std::byte> rows;
  std::vector<uint8_t> outcomes;
  uint64_t hits = 0;
};

class CacheRun {
 public:
  CacheRun(const KvOptions& options, const Workload& workload, Progress* progress)
      : options_(options), workload_(workload), progress_(progress) {
    const TableShape& shape = options.shape;
    const RowLayout layout = MakeRowLayout(shape.dim, shape.value_type, shape.optimizer);
    const uint64_t data_bytes = workload.rows.size() * layout.payload_bytes();
    const double bytes = options.dram_fraction * static_cast<double>(data_bytes);
    dram_bytes_ = options.dram_bytes > 0 ? options.dram_bytes
                                         : std::max(kDramBytesMin, static_cast<uint64_t>(bytes));
    for (const uint32_t threads : options.threads) {
      for (const int32_t eviction : options.evictions) {
        turns_.push_back({StrCat("embank-", EvictionName(eviction)), eviction, threads});
      }
      turns_.push_back({kLruPeerName, std::nullopt, threads});
      if (HasRocksdbLru()) turns_.push_back({kRocksdbLruName, std::nullopt, threads});
    }
    buffers_.resize(*std::max_element(options.threads.begin(), options.threads.end()));
    for (Buffers& buffers : buffers_) {
      buffers.rows.resize(options.batch * layout.vector_bytes);
      buffers.outcomes.resize(options.batch);
    }
  }

  Status Run() {
    for (uint32_t round = 0; round < options_.rounds; ++round) {
      // Another one begins each round, so that none always has the place after the same one.
      for (size_t i = 0; i < turns_.size(); ++i) {
        const Turn& turn = turns_[(i + round) % turns_.size()];
        note_ =
            StrCat("round ", round + 1, "/", options_.rounds, "  ", turn.engine, " ", turn.threads);
        EMBANK_ASSIGN_OR_RETURN(const CacheSample sample, Measure(turn));
        samples_[turn].push_back(sample);
        ++turns_done_;
      }
    }
    return OkStatus();
  }

  CacheReport Report() const {
    CacheReport report;
    for (const Turn& turn : turns_) {
      if (turn.threads == options_.threads.front()) AddResults(turn, &report);
    }
    report.rows = workload_.rows.size();
    report.positions = Measured().size();
    report.dram_bytes = dram_bytes_;
    report.trace_is_whole = workload_.trace_is_whole;
    return report;
  }

 private:
  KeySpan WarmUp() const {
    return KeySpan(workload_.positions).first(workload_.positions.size() / 2);
  }
  KeySpan Measured() const { return KeySpan(workload_.positions).subspan(WarmUp().size()); }

  StatusOr<std::unique_ptr<CacheEngine>> Make(const Turn& turn) const {
    const CacheConfig config{options_.shape, options_.seed, turn.threads, dram_bytes_};
    if (turn.eviction) return MakeEmbankCache(config, *turn.eviction);
    return turn.engine == kLruPeerName ? MakeLruCache(config) : MakeRocksdbLru(config);
  }

  StatusOr<CacheSample> Measure(const Turn& turn) {
    EMBANK_ASSIGN_OR_RETURN(const std::unique_ptr<CacheEngine> engine, Make(turn));
    const auto look_up = [&](uint32_t thread, KeySpan keys) {
      Buffers& buffers = buffers_[thread];
      EMBANK_RETURN_IF_ERROR(engine->Lookup(keys, {buffers.rows.data(), buffers.outcomes.data()}));
      const auto outcomes = std::span(buffers.outcomes).first(keys.size());
      const auto count = [&](Outcome outcome) {
        return static_cast<uint64_t>(
            std::count(outcomes.begin(), outcomes.end(), static_cast<uint8_t>(outcome)));
      };
      const uint64_t hits = count(Outcome::kFound);
      buffers.hits += hits;
      if (hits + count(Outcome::kCreated) == keys.size()) return OkStatus();
      return InternalError(StrCat(turn.engine, ": a key was neither found nor created"));
    };
    const auto run = [&](KeySpan keys) {
      for (Buffers& buffers : buffers_) buffers.hits = 0;
      const PhasePlan plan{keys, options_.batch, turn.threads, 0.0};
      return RunPhase(plan, look_up, [&](uint64_t) { ShowTurn(); });
    };
    EMBANK_RETURN_IF_ERROR(run(WarmUp()).status());
    EMBANK_ASSIGN_OR_RETURN(const PhaseTiming timing, run(Measured()));
    EMBANK_ASSIGN_OR_RETURN(const CacheMemory memory, engine->Memory());
    uint64_t hits = 0;
    for (const Buffers& buffers : buffers_) hits += buffers.hits;
    const auto positions = static_cast<double>(timing.positions);
    return CacheSample{positions / timing.seconds, static_cast<double>(hits) / positions, memory};
  }

  // An engine's results with each number of threads.
  void AddResults(Turn turn, CacheReport* report) const {
    const std::vector<CacheSample>& base = samples_.at(turn);
    for (const uint32_t threads : options_.threads) {
      turn.threads = threads;
      const std::vector<CacheSample>& samples = samples_.at(turn);
      std::vector<double> rates, hit_ratios, used_bytes, rows, index_bytes, speedups;
      for (size_t i = 0; i < samples.size(); ++i) {
        rates.push_back(samples[i].rows_per_second);
        hit_ratios.push_back(samples[i].hit_ratio);
        used_bytes.push_back(static_cast<double>(samples[i].memory.used_bytes));
        rows.push_back(static_cast<double>(samples[i].memory.rows));
        index_bytes.push_back(static_cast<double>(samples[i].memory.index_bytes));
        speedups.push_back(samples[i].rows_per_second / base[i].rows_per_second);
      }
      const auto [low, high] = std::minmax_element(rates.begin(), rates.end());
      CacheResult result{
          turn.engine,        threads, Median(rates),      *low,         *high,
          Median(hit_ratios), {},      Median(used_bytes), Median(rows), Median(index_bytes)};
      if (threads != options_.threads.front()) result.speedup = Median(speedups);
      report->results.push_back(result);
    }
  }

  void ShowTurn() {
    const auto turns = static_cast<double>(options_.rounds * turns_.size());
    progress_->Update(static_cast<double>(turns_done_) / turns, note_);
  }

  const KvOptions& options_;
  const Workload& workload_;
  Progress* const progress_;
  uint64_t dram_bytes_ = 0;
  std::vector<Buffers> buffers_;  // one per thread
  std::vector<Turn> turns_;       // of one round
  uint64_t turns_done_ = 0;
  std::map<Turn, std::vector<CacheSample>> samples_;  // by round
  std::string note_;
};

}  // namespace

StatusOr<CacheReport> RunCache(const KvOptions& options, Progress* progress) {
  EMBANK_ASSIGN_OR_RETURN(const Workload workload, MakeWorkload(options));
  CacheRun run(options, workload, progress);
  EMBANK_RETURN_IF_ERROR(run.Run());
  return run.Report();
}

}  // namespace embank
