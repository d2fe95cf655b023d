// The options of embank-bench, and their names on the command line.
#ifndef EMBANK_BENCH_OPTIONS_H_
#define EMBANK_BENCH_OPTIONS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/status_or.h"
#include "base/types.h"
#include "bench/id_mode.h"
#include "bench/trace.h"

namespace embank {

inline constexpr uint64_t kBenchRowsMax = uint64_t{1} << 40;
inline constexpr uint64_t kBatchMax = uint64_t{1} << 24;
inline constexpr uint32_t kThreadsMax = 256;
inline constexpr uint32_t kRoundsMax = 1000;
inline constexpr double kSecondsMax = 86400.0;
inline constexpr uint32_t kDepthMax = 4096;
inline constexpr uint32_t kKillsMax = 1000;
inline constexpr uint64_t kMibMax = uint64_t{1} << 24;  // 16 TiB

enum class Phase { kFill, kLookup, kUpdate, kSmall };

// The distribution of the keys of a stream.
struct Distribution {
  enum class Kind { kUniform, kZipf, kTrace };
  Kind kind = Kind::kUniform;
  double exponent = 0.0;   // kZipf
  std::string trace_path;  // kTrace
};

// Rows of the one table of a run.
struct TableShape {
  uint32_t dim = 32;
  ValueType value_type = ValueType::kF32;
  Optimizer optimizer = Optimizer::kAdagrad;
  uint64_t expected_rows = 0;  // 0: nobody knows how many there will be
};

struct KvOptions {
  std::vector<std::string> engines = {"embank", "libcuckoo", "absl"};
  std::vector<Phase> phases = {Phase::kFill, Phase::kLookup, Phase::kUpdate};
  uint64_t rows = 1'000'000;
  TableShape shape;
  Distribution distribution;
  std::optional<TraceFormat> trace_format;
  IdMode id_mode = IdMode::kPermuted;
  uint64_t batch = 4096;
  std::vector<uint32_t> threads = {1};  // that call: each number in its turn
  double seconds = 1.0;                 // of each phase but the fill
  uint32_t rounds = 5;
  uint64_t seed = 1;
  bool reserve = false;   // tell all engines the number of rows beforehand
  uint64_t id_space = 0;  // ids are below it; 0: it is `rows`
  // Memory of an engine / bytes of vectors and states, or in bytes; both 0: no budget. With a
  // budget rows are forgotten, and what stands above of engines, phases, seconds and reserve does
  // not count.
  double dram_fraction = 0.0;
  uint64_t dram_bytes = 0;
  std::string on_full;             // "forget" with a budget
  std::vector<int32_t> evictions;  // EMBANK_EVICT_*, with a budget
  std::string json_path;

  bool HasBudget() const { return dram_fraction > 0.0 || dram_bytes > 0; }
};

struct ReplayOptions {
  std::string trace_path;  // empty: a generated stream
  std::optional<TraceFormat> trace_format;
  TableShape shape;
  uint64_t batch = 4096;
  uint32_t threads = 0;  // of the store: 0, one per core
  uint64_t seed = 1;
  std::string json_path;
  std::string report_path;  // of a page of HTML to which the run is added
};

struct SurviveOptions {
  SurviveOptions() { replay.shape.dim = 128; }  // the data is to be larger than the least budget
  ReplayOptions replay;
  std::string path;             // directory in which the store gets one of its own
  double dram_fraction = 0.25;  // budget of the store / bytes of its rows
  uint32_t kills = 3;
};

struct TiersOptions {
  TiersOptions() { replay.shape.dim = 64; }
  ReplayOptions replay;
  std::string path;       // directory in which the store gets one of its own
  std::string pmem_path;  // the same for its PMem tier; empty: `path`
  // Budgets / bytes of all rows' vectors and states.
  double hbm_share = 0.05;
  double dram_share = 0.20;
  double pmem_share = 0.25;
  uint32_t flush_iters = 20;  // batches between two flushes, and before the first
  int32_t cuda_device = -1;   // -1: the twin
};

struct TrainingPageOptions {
  std::string json_path;    // figures of embank-train
  std::string command;      // of the training
  std::string report_path;  // of a page of HTML to which the training is added
};

enum class SsdPhase { kFill, kLookup, kPmem, kScan, kOverwrite, kCheckpoint, kRecover };

struct SsdOptions {
  std::vector<std::string> engines = {"embank", "rocksdb"};
  std::vector<SsdPhase> phases = {SsdPhase::kFill,      SsdPhase::kLookup,     SsdPhase::kScan,
                                  SsdPhase::kOverwrite, SsdPhase::kCheckpoint, SsdPhase::kRecover};
  uint64_t rows = 1'000'000;
  TableShape shape = {.dim = 64};
  double dram_fraction = 0.25;  // memory of an engine / bytes of vectors and states
  double utilisation = 0.0;     // bytes of living records / budget of the log; 0: no budget
  Distribution distribution;
  std::optional<TraceFormat> trace_format;
  uint64_t batch = 2048;
  uint32_t threads = 2;                             // that call Embank, and jobs of fio
  std::vector<uint32_t> peer_threads = {2, 8, 32};  // that call a peer: the best counts
  uint32_t depth = 128;                             // reads in flight of one job of fio
  double seconds = 5.0;                             // of each timed part
  double warmup = 5.0;                              // lookups before the first round, in seconds
  double overwrites = 0.5;                          // rows overwritten in a round / rows
  // Rows that the trainer of phase kCheckpoint changes, over and over; 0: those of the stream.
  uint64_t changed = 0;
  uint32_t sync_us = 0;  // by which each sync of an Embank store's files is longer
  uint32_t rounds = 3;
  uint64_t seed = 1;
  std::string path;  // directory in which engines and fio get directories of their own
  // Directory of the PMem tier, in which the store of phase kPmem gets one of its own. Empty: there
  // is no such phase.
  std::string pmem_path;
  uint64_t pmem_bytes = 0;  // budget of the tier; 0: 1.5 times the records of all rows
  std::string json_path;
};

struct LimitsOptions {
  std::vector<uint32_t> row_bytes = {64, 128, 256, 512};  // of the vector, without its header
  std::vector<uint32_t> threads;                          // empty: 1, 2, 4, .. up to all cores
  double seconds = 25.0;                                  // of all probes together
  uint64_t memory_mib = 0;  // of rows; 0: 3 GiB, or a third of what is free
  std::string json_path;
};

struct TracesOptions {
  std::string directory;
  std::vector<double> fractions = {0.10, 0.25};  // rows of the cache / distinct keys
  std::string json_path;
};

struct PackedOptions {
  uint32_t tables = 26;
  uint64_t rows = 400'000;  // of each table
  std::vector<uint32_t> dims = {16, 64};
  std::vector<uint32_t> batches = {1024, 4096};
  double skew = 1.0;  // Zipf's exponent of the ids
  uint32_t threads = 2;
  double seconds = 1.0;  // of each round of a case
  uint32_t rounds = 5;
  uint64_t seed = 1;
  std::string ids_directory;  // for the ids; empty: they are not written
  std::string json_path;
};

struct DeviceOptions {
  uint64_t rows = 1'000'000;
  uint32_t dim = 128;
  uint64_t batch = 8192;   // distinct keys of a call
  double hbm_share = 0.1;  // of the rows
  std::vector<double> hit_shares = {0.0, 0.5, 0.8, 0.95, 1.0};
  uint32_t threads = 2;
  int32_t cuda_device = -1;  // -1: the twin
  double link_gbps = 0.0;    // GB/s of a modelled link to the twin; 0: no model
  double link_us = 10.0;     // its latency for each call
  double seconds = 0.2;      // of each kind of call in each round
  uint32_t rounds = 5;
  uint64_t seed = 1;
  std::string json_path;
};

struct HotOptions {
  uint64_t rows = 1'000'000;  // a trace has its own
  double skew = 1.05;         // Zipf's exponent
  std::string preset;         // "avg", "extreme" or "kaggle": an exponent by coverage; or empty
  std::string trace_path;     // empty: a generated stream
  std::optional<TraceFormat> trace_format;
  uint64_t batch = 8192;
  double k = 0.01;  // hot rows / rows
  uint64_t iters = 1200;
  uint64_t drift_at = 0;  // the last iteration in front of a drift; 0: none
  uint64_t warmup_iters = 100;
  uint64_t flush_iters = 100;
  bool all = false;       // five k, three skews, and a drift
  uint32_t dim = 128;     // of rows of f32, for the model of the link
  std::string curve_csv;  // of hit ratios over sizes of HBM, with curve_svg
  std::string curve_svg;
  uint64_t seed = 1;
  std::string json_path;
};

// Parses the words of the command line. INVALID_ARGUMENT: the message lists the possible words.
StatusOr<ValueType> ParseValueType(const std::string& name);
StatusOr<Optimizer> ParseOptimizer(const std::string& name);
StatusOr<Phase> ParsePhase(const std::string& name);
StatusOr<SsdPhase> ParseSsdPhase(const std::string& name);
StatusOr<Distribution> ParseDistribution(const std::string& text);
StatusOr<int32_t> ParseEviction(const std::string& name);

// Returns the words.
const char* ValueTypeName(ValueType type);
const char* OptimizerName(Optimizer optimizer);
const char* PhaseName(Phase phase);
const char* PhaseName(SsdPhase phase);
const char* EvictionName(int32_t eviction);
std::string DistributionName(const Distribution& distribution);

// INVALID_ARGUMENT names the first option that is out of its range or does not fit another.
Status Validate(const KvOptions& options);
Status Validate(const ReplayOptions& options);
Status Validate(const SurviveOptions& options);
Status Validate(const TiersOptions& options);
Status Validate(const SsdOptions& options);
Status Validate(const LimitsOptions& options);
Status Validate(const TracesOptions& options);
Status Validate(const HotOptions& options);
Status Validate(const PackedOptions& options);
Status Validate(const DeviceOptions& options);

}  // namespace embank

#endif  // EMBANK_BENCH_OPTIONS_H_
