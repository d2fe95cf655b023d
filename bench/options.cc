#include "bench/options.h"

#include <algorithm>
#include <array>
#include <span>
#include <string_view>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "base/status_macros.h"
#include "base/str_cat.h"
#include "bindings/c/embank.h"
#include "store/table/options.h"
#include "train/generator/zipf.h"

namespace embank {
namespace {

template <typename Value>
struct Word {
  const char* name;
  Value value;
};

constexpr std::array<Word<ValueType>, 3> kValueTypes = {
    {{"f32", ValueType::kF32}, {"f16", ValueType::kF16}, {"bf16", ValueType::kBf16}}};
constexpr std::array<Word<Optimizer>, 6> kOptimizers = {
    {{"none", Optimizer::kNone},
     {"sgd", Optimizer::kSgd},
     {"adagrad", Optimizer::kAdagrad},
     {"rowwise-adagrad", Optimizer::kRowwiseAdagrad},
     {"adam", Optimizer::kAdam},
     {"ftrl", Optimizer::kFtrl}}};
constexpr std::array<Word<Phase>, 4> kPhases = {{{"fill", Phase::kFill},
                                                 {"lookup", Phase::kLookup},
                                                 {"update", Phase::kUpdate},
                                                 {"small", Phase::kSmall}}};
constexpr std::array<Word<SsdPhase>, 7> kSsdPhases = {{{"fill", SsdPhase::kFill},
                                                       {"lookup", SsdPhase::kLookup},
                                                       {"pmem", SsdPhase::kPmem},
                                                       {"scan", SsdPhase::kScan},
                                                       {"overwrite", SsdPhase::kOverwrite},
                                                       {"checkpoint", SsdPhase::kCheckpoint},
                                                       {"recover", SsdPhase::kRecover}}};
constexpr std::array<Word<int32_t>, 3> kEvictions = {
    {{"lru", EMBANK_EVICT_LRU}, {"clock", EMBANK_EVICT_CLOCK}, {"lfu", EMBANK_EVICT_LFU}}};
constexpr std::array<const char*, 3> kEngines = {"embank", "libcuckoo", "absl"};
constexpr std::array<const char*, 5> kSsdEngines = {"embank", "embank-lfu", "embank-memory",
                                                    "rocksdb", "rocksdb-rows"};

template <typename Value, size_t n>
StatusOr<Value> ValueOf(const std::array<Word<Value>, n>& words, const std::string& name) {
  std::string names;
  for (const Word<Value>& word : words) {
    if (name == word.name) return word.value;
    StrAppend(&names, names.empty() ? "" : ", ", word.name);
  }
  return InvalidArgumentError(StrCat("'", name, "' is none of ", names));
}

template <typename Value, size_t n>
const char* NameOf(const std::array<Word<Value>, n>& words, Value value) {
  for (const Word<Value>& word : words) {
    if (word.value == value) return word.name;
  }
  return "";
}

template <typename Value>
Status CheckRange(const char* option, Value value, Value low, Value high) {
  if (value >= low && value <= high) return OkStatus();
  return InvalidArgumentError(StrCat(option, ": ", value, " is not in ", low, "..", high));
}

template <typename Value>
Status CheckList(const char* option, std::vector<Value> values) {
  if (values.empty()) return InvalidArgumentError(StrCat(option, ": is empty"));
  std::sort(values.begin(), values.end());
  if (std::adjacent_find(values.begin(), values.end()) == values.end()) return OkStatus();
  return InvalidArgumentError(StrCat(option, ": names one twice"));
}

Status CheckThreads(const char* option, const std::vector<uint32_t>& threads) {
  for (const uint32_t count : threads) {
    EMBANK_RETURN_IF_ERROR(CheckRange(option, count, 1u, kThreadsMax));
  }
  return CheckList(option, threads);
}

Status CheckEngines(const std::vector<std::string>& engines, std::span<const char* const> known) {
  EMBANK_RETURN_IF_ERROR(CheckList("--engines", engines));
  for (const std::string& engine : engines) {
    if (std::find(known.begin(), known.end(), engine) != known.end()) continue;
    return InvalidArgumentError(
        StrCat("--engines: '", engine, "' is none of ", StrJoin(known, ", ")));
  }
  return OkStatus();
}

Status CheckDirectory(const std::string& path) {
  if (!path.empty()) return OkStatus();
  return InvalidArgumentError("--path: names no directory");
}

// The phase pmem and its directory come together; a budget is for that phase alone.
Status CheckPmem(const SsdOptions& options) {
  constexpr uint64_t kPmemBytesMax = uint64_t{1} << 60;
  const bool has_phase =
      std::count(options.phases.begin(), options.phases.end(), SsdPhase::kPmem) > 0;
  if (has_phase && options.pmem_path.empty()) {
    return InvalidArgumentError("--phases: pmem needs --pmem DIR");
  }
  if (options.pmem_bytes == 0) return OkStatus();
  if (options.pmem_path.empty()) return InvalidArgumentError("--pmem-bytes: needs --pmem DIR");
  return CheckRange("--pmem-bytes", options.pmem_bytes, kPmemBytesMin, kPmemBytesMax);
}

}  // namespace

StatusOr<ValueType> ParseValueType(const std::string& name) { return ValueOf(kValueTypes, name); }
StatusOr<Optimizer> ParseOptimizer(const std::string& name) { return ValueOf(kOptimizers, name); }
StatusOr<int32_t> ParseEviction(const std::string& name) { return ValueOf(kEvictions, name); }
StatusOr<Phase> ParsePhase(const std::string& name) { return ValueOf(kPhases, name); }
StatusOr<SsdPhase> ParseSsdPhase(const std::string& name) { return ValueOf(kSsdPhases, name); }

StatusOr<Distribution> ParseDistribution(const std::string& text) {
  Distribution distribution;
  if (text == "uniform") return distribution;
  if (absl::StartsWith(text, "zipf:")) {
    distribution.kind = Distribution::Kind::kZipf;
    if (absl::SimpleAtod(text.substr(5), &distribution.exponent) && distribution.exponent >= 0.0 &&
        distribution.exponent <= ZipfSampler::kExponentMax) {
      return distribution;
    }
    return InvalidArgumentError(
        StrCat("'", text, "': the exponent must be 0..", ZipfSampler::kExponentMax));
  }
  if (absl::StartsWith(text, "trace:") && text.size() > 6) {
    distribution.kind = Distribution::Kind::kTrace;
    distribution.trace_path = text.substr(6);
    return distribution;
  }
  return InvalidArgumentError(StrCat("'", text, "' is none of uniform, zipf:EXPONENT, trace:FILE"));
}

const char* ValueTypeName(ValueType type) { return NameOf(kValueTypes, type); }
const char* OptimizerName(Optimizer optimizer) { return NameOf(kOptimizers, optimizer); }
const char* EvictionName(int32_t eviction) { return NameOf(kEvictions, eviction); }
const char* PhaseName(Phase phase) { return NameOf(kPhases, phase); }
const char* PhaseName(SsdPhase phase) { return NameOf(kSsdPhases, phase); }

std::string DistributionName(const Distribution& distribution) {
  switch (distribution.kind) {
    case Distribution::Kind::kUniform:
      return "uniform";
    case Distribution::Kind::kZipf:
      return StrCat("zipf:", distribution.exponent);
    case Distribution::Kind::kTrace:
      return StrCat("trace:", distribution.trace_path);
  }
  return "";
}

// With a budget rows are forgotten by a policy; without one none is.
Status ValidateBudget(const KvOptions& options) {
  if (!options.HasBudget()) {
    if (options.on_full.empty() && options.evictions.empty()) return OkStatus();
    return InvalidArgumentError("--on-full and --eviction: need a --dram-fraction or --dram-bytes");
  }
  if (options.dram_bytes == 0) {
    EMBANK_RETURN_IF_ERROR(CheckRange("--dram-fraction", options.dram_fraction, 0.001, 1000.0));
  } else if (options.dram_fraction != 0.0) {
    return InvalidArgumentError("give either --dram-fraction or --dram-bytes");
  } else {
    EMBANK_RETURN_IF_ERROR(
        CheckRange("--dram-bytes", options.dram_bytes, kDramBytesMin, uint64_t{1} << 44));
  }
  if (options.on_full != "forget") {
    return InvalidArgumentError("--on-full: must be forget with a --dram-fraction or --dram-bytes");
  }
  return CheckList("--eviction", options.evictions);
}

Status Validate(const KvOptions& options) {
  EMBANK_RETURN_IF_ERROR(ValidateBudget(options));
  EMBANK_RETURN_IF_ERROR(CheckEngines(options.engines, kEngines));
  EMBANK_RETURN_IF_ERROR(CheckList("--phases", options.phases));
  EMBANK_RETURN_IF_ERROR(CheckRange("--rows", options.rows, uint64_t{1}, kBenchRowsMax));
  EMBANK_RETURN_IF_ERROR(CheckRange("--dim", options.shape.dim, 1u, kDimMax));
  EMBANK_RETURN_IF_ERROR(CheckRange("--batch", options.batch, uint64_t{1}, kBatchMax));
  EMBANK_RETURN_IF_ERROR(CheckThreads("--threads", options.threads));
  EMBANK_RETURN_IF_ERROR(CheckRange("--seconds", options.seconds, 0.01, kSecondsMax));
  EMBANK_RETURN_IF_ERROR(CheckRange("--rounds", options.rounds, 1u, kRoundsMax));
  const bool updates = std::count(options.phases.begin(), options.phases.end(), Phase::kUpdate) > 0;
  if (options.id_space != 0) {
    EMBANK_RETURN_IF_ERROR(
        CheckRange("--id-space", options.id_space, options.rows, ZipfSampler::kRankMax));
    if (options.distribution.kind == Distribution::Kind::kTrace ||
        options.id_mode == IdMode::kFirstAppearance) {
      return InvalidArgumentError(
          "--id-space: goes with generated keys of mode permuted or hashed");
    }
  }
  if (!options.HasBudget() && updates && options.shape.optimizer == Optimizer::kNone) {
    return InvalidArgumentError("--phases: update needs an --optimizer other than none");
  }
  return OkStatus();
}

Status Validate(const ReplayOptions& options) {
  EMBANK_RETURN_IF_ERROR(CheckRange("--dim", options.shape.dim, 1u, kDimMax));
  EMBANK_RETURN_IF_ERROR(CheckRange("--batch", options.batch, uint64_t{1}, kBatchMax));
  return CheckRange("--threads", options.threads, 0u, kThreadsMax);
}

Status Validate(const SurviveOptions& options) {
  EMBANK_RETURN_IF_ERROR(Validate(options.replay));
  EMBANK_RETURN_IF_ERROR(CheckRange("--dram-fraction", options.dram_fraction, 0.001, 1000.0));
  EMBANK_RETURN_IF_ERROR(CheckRange("--kills", options.kills, 0u, kKillsMax));
  return CheckDirectory(options.path);
}

Status Validate(const TiersOptions& options) {
  EMBANK_RETURN_IF_ERROR(Validate(options.replay));
  EMBANK_RETURN_IF_ERROR(CheckRange("--hbm-share", options.hbm_share, 0.001, 10.0));
  EMBANK_RETURN_IF_ERROR(CheckRange("--dram-share", options.dram_share, 0.001, 10.0));
  EMBANK_RETURN_IF_ERROR(CheckRange("--pmem-share", options.pmem_share, 0.001, 10.0));
  EMBANK_RETURN_IF_ERROR(CheckRange("--flush-iters", options.flush_iters, 1u, UINT32_MAX));
  EMBANK_RETURN_IF_ERROR(CheckRange("--cuda-device", options.cuda_device, -1, INT32_MAX));
  return CheckDirectory(options.path);
}

Status Validate(const SsdOptions& options) {
  EMBANK_RETURN_IF_ERROR(CheckEngines(options.engines, kSsdEngines));
  EMBANK_RETURN_IF_ERROR(CheckList("--phases", options.phases));
  const bool is_durable =
      std::any_of(options.phases.begin(), options.phases.end(), [](SsdPhase phase) {
        return phase == SsdPhase::kOverwrite || phase == SsdPhase::kCheckpoint ||
               phase == SsdPhase::kRecover;
      });
  if (is_durable && std::count(options.engines.begin(), options.engines.end(), "embank-memory")) {
    return InvalidArgumentError("--phases: embank-memory takes fill, lookup and scan only");
  }
  EMBANK_RETURN_IF_ERROR(CheckRange("--rows", options.rows, uint64_t{1}, kBenchRowsMax));
  EMBANK_RETURN_IF_ERROR(CheckRange("--dim", options.shape.dim, 1u, kDimMax));
  EMBANK_RETURN_IF_ERROR(CheckRange("--dram-fraction", options.dram_fraction, 0.001, 1000.0));
  if (options.utilisation != 0.0) {
    EMBANK_RETURN_IF_ERROR(CheckRange("--utilisation", options.utilisation, 0.01, 1.0));
  }
  EMBANK_RETURN_IF_ERROR(CheckRange("--batch", options.batch, uint64_t{1}, kBatchMax));
  EMBANK_RETURN_IF_ERROR(CheckRange("--threads", options.threads, 1u, kThreadsMax));
  EMBANK_RETURN_IF_ERROR(CheckThreads("--peer-threads", options.peer_threads));
  EMBANK_RETURN_IF_ERROR(CheckRange("--depth", options.depth, 1u, kDepthMax));
  EMBANK_RETURN_IF_ERROR(CheckRange("--seconds", options.seconds, 0.01, kSecondsMax));
  EMBANK_RETURN_IF_ERROR(CheckRange("--warmup", options.warmup, 0.0, kSecondsMax));
  EMBANK_RETURN_IF_ERROR(CheckRange("--overwrites", options.overwrites, 0.01, 1.0));
  EMBANK_RETURN_IF_ERROR(CheckRange("--changed", options.changed, uint64_t{0}, options.rows));
  EMBANK_RETURN_IF_ERROR(CheckRange("--sync-us", options.sync_us, 0u, 1'000'000u));
  EMBANK_RETURN_IF_ERROR(CheckPmem(options));
  EMBANK_RETURN_IF_ERROR(CheckRange("--rounds", options.rounds, 1u, kRoundsMax));
  return CheckDirectory(options.path);
}

Status Validate(const LimitsOptions& options) {
  constexpr uint32_t kFloatBytes = 4;
  for (const uint32_t bytes : options.row_bytes) {
    EMBANK_RETURN_IF_ERROR(CheckRange("--rows-bytes", bytes, kFloatBytes, kFloatBytes * kDimMax));
    if (bytes % kFloatBytes == 0) continue;
    return InvalidArgumentError(
        StrCat("--rows-bytes: ", bytes, " is no multiple of ", kFloatBytes));
  }
  EMBANK_RETURN_IF_ERROR(CheckList("--rows-bytes", options.row_bytes));
  if (!options.threads.empty()) EMBANK_RETURN_IF_ERROR(CheckThreads("--threads", options.threads));
  EMBANK_RETURN_IF_ERROR(CheckRange("--memory-mib", options.memory_mib, uint64_t{0}, kMibMax));
  return CheckRange("--seconds", options.seconds, 0.01, kSecondsMax);
}

Status Validate(const TracesOptions& options) {
  for (const double fraction : options.fractions) {
    EMBANK_RETURN_IF_ERROR(CheckRange("--fractions", fraction, 1e-6, 1.0));
  }
  return CheckList("--fractions", options.fractions);
}

Status Validate(const PackedOptions& options) {
  constexpr uint32_t kPackedTablesMax = 4095;
  constexpr uint64_t kPackedRowsMax = 100'000'000;
  constexpr uint32_t kPackedBatchMax = 65'536;
  EMBANK_RETURN_IF_ERROR(CheckRange("--tables", options.tables, 1u, kPackedTablesMax));
  EMBANK_RETURN_IF_ERROR(CheckRange("--rows", options.rows, uint64_t{1}, kPackedRowsMax));
  for (const uint32_t dim : options.dims) {
    EMBANK_RETURN_IF_ERROR(CheckRange("--dims", dim, 1u, kDimMax));
  }
  EMBANK_RETURN_IF_ERROR(CheckList("--dims", options.dims));
  for (const uint32_t batch : options.batches) {
    EMBANK_RETURN_IF_ERROR(CheckRange("--batches", batch, 1u, kPackedBatchMax));
  }
  EMBANK_RETURN_IF_ERROR(CheckList("--batches", options.batches));
  EMBANK_RETURN_IF_ERROR(CheckRange("--zipf", options.skew, 0.0, 100.0));
  EMBANK_RETURN_IF_ERROR(CheckRange("--threads", options.threads, 1u, kThreadsMax));
  EMBANK_RETURN_IF_ERROR(CheckRange("--seconds", options.seconds, 0.001, kSecondsMax));
  return CheckRange("--rounds", options.rounds, 1u, kRoundsMax);
}

Status Validate(const DeviceOptions& options) {
  constexpr uint64_t kDeviceRowsMax = 100'000'000;
  EMBANK_RETURN_IF_ERROR(CheckRange("--rows", options.rows, uint64_t{1000}, kDeviceRowsMax));
  EMBANK_RETURN_IF_ERROR(CheckRange("--dim", options.dim, 1u, kDimMax));
  EMBANK_RETURN_IF_ERROR(
      CheckRange("--batch", options.batch, uint64_t{1}, std::min(kBatchMax, options.rows / 2)));
  EMBANK_RETURN_IF_ERROR(CheckRange("--hbm-share", options.hbm_share, 0.001, 0.5));
  for (const double share : options.hit_shares) {
    EMBANK_RETURN_IF_ERROR(CheckRange("--hits", share, 0.0, 1.0));
  }
  EMBANK_RETURN_IF_ERROR(CheckList("--hits", options.hit_shares));
  EMBANK_RETURN_IF_ERROR(CheckRange("--threads", options.threads, 1u, kThreadsMax));
  EMBANK_RETURN_IF_ERROR(CheckRange("--cuda-device", options.cuda_device, -1, INT32_MAX));
  if (options.link_gbps > 0.0 && options.cuda_device >= 0) {
    return InvalidArgumentError("--link-gbps is of a modelled link, and needs --cuda-device -1");
  }
  EMBANK_RETURN_IF_ERROR(CheckRange("--link-gbps", options.link_gbps, 0.0, 1000.0));
  EMBANK_RETURN_IF_ERROR(CheckRange("--link-us", options.link_us, 0.0, 1000.0));
  EMBANK_RETURN_IF_ERROR(CheckRange("--seconds", options.seconds, 0.001, kSecondsMax));
  return CheckRange("--rounds", options.rounds, 1u, kRoundsMax);
}

Status Validate(const HotOptions& options) {
  constexpr uint64_t kHotRowsMax = 100'000'000;
  constexpr uint64_t kItersMax = 1'000'000;
  EMBANK_RETURN_IF_ERROR(CheckRange("--rows", options.rows, uint64_t{10}, kHotRowsMax));
  EMBANK_RETURN_IF_ERROR(CheckRange("--zipf", options.skew, 0.0, 100.0));
  EMBANK_RETURN_IF_ERROR(CheckRange("--batch", options.batch, uint64_t{1}, kBatchMax));
  EMBANK_RETURN_IF_ERROR(CheckRange("--k", options.k, 1e-6, 1.0));
  EMBANK_RETURN_IF_ERROR(CheckRange("--iters", options.iters, uint64_t{1}, kItersMax));
  EMBANK_RETURN_IF_ERROR(CheckRange("--drift-at", options.drift_at, uint64_t{0}, kItersMax));
  EMBANK_RETURN_IF_ERROR(
      CheckRange("--warmup-iters", options.warmup_iters, uint64_t{0}, kItersMax));
  EMBANK_RETURN_IF_ERROR(CheckRange("--flush-iters", options.flush_iters, uint64_t{1}, kItersMax));
  EMBANK_RETURN_IF_ERROR(CheckRange("--dim", options.dim, 1u, kDimMax));
  const bool has_preset = options.preset == "avg" || options.preset == "extreme" ||
                          options.preset == "kaggle" || options.preset.empty();
  if (!has_preset) {
    return InvalidArgumentError(
        StrCat("--preset: ", options.preset, " is none of avg, extreme, kaggle"));
  }
  if (options.drift_at != 0 &&
      (options.drift_at <= options.warmup_iters || options.drift_at >= options.iters)) {
    return InvalidArgumentError("--drift-at: must be between --warmup-iters and --iters");
  }
  if (options.trace_path.empty()) return OkStatus();
  if (options.drift_at != 0) return InvalidArgumentError("--drift-at: a trace has its own drift");
  if (options.all) return InvalidArgumentError("--all: the table is of generated streams");
  return OkStatus();
}

}  // namespace embank
