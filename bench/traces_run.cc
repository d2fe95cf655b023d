#include "bench/traces_run.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <memory>
#include <optional>
#include <system_error>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "base/status_macros.h"
#include "base/str_cat.h"
#include "base/threads/clock.h"
#include "bench/kv_samples.h"
#include "bench/simulated_cache.h"
#include "bench/trace.h"
#include "bench/workload.h"

namespace embank {
namespace {

struct SimulatedPolicy {
  const char* name;
  EvictionPolicy policy;
  ReturningHeat returning;
};
constexpr std::array<SimulatedPolicy, 4> kPolicies = {
    {{"lru", EvictionPolicy::kLru, ReturningHeat::kKept},
     {"clock", EvictionPolicy::kClock, ReturningHeat::kKept},
     {"lfu", EvictionPolicy::kLfu, ReturningHeat::kKept},
     {"lfu-cold", EvictionPolicy::kLfu, ReturningHeat::kLost}}};

// Files below a directory whose names are those of traces, from the directory, sorted.
StatusOr<std::vector<std::string>> TraceFilesBelow(const std::string& directory) {
  namespace fs = std::filesystem;
  std::error_code error;
  std::vector<std::string> files;
  for (fs::recursive_directory_iterator entry(directory, error), end; !error && entry != end;
       entry.increment(error)) {
    const fs::path& path = entry->path();
    if (!TraceFormatOfName(path.string()).ok() || !entry->is_regular_file(error)) continue;
    files.push_back(path.lexically_relative(directory).string());
  }
  if (error) {
    return InvalidArgumentError(StrCat("--traces: ", directory, ": ", error.message()));
  }
  std::sort(files.begin(), files.end());
  return files;
}

// Whether a file has a first key. Many a text file has the name of a trace.
Status CheckBeginning(const std::string& path) {
  EMBANK_ASSIGN_OR_RETURN(const std::unique_ptr<TraceReader> reader,
                          TraceReader::Open(path, std::nullopt));
  std::array<Key, 1> key;
  EMBANK_ASSIGN_OR_RETURN(const size_t count, reader->Read(key));
  return count == 1 ? OkStatus() : DataLossError(StrCat(path, ": no keys"));
}

AccessStream StreamOf(const Workload& workload) {
  absl::flat_hash_map<Key, uint32_t> numbers;
  AccessStream stream;
  stream.keys.reserve(workload.positions.size());
  for (const Key key : workload.positions) {
    const auto next = static_cast<uint32_t>(numbers.size());
    stream.keys.push_back(numbers.try_emplace(key, next).first->second);
  }
  stream.distinct = static_cast<uint32_t>(numbers.size());
  return stream;
}

class TracesRun {
 public:
  TracesRun(const TracesOptions& options, Progress* progress)
      : options_(options), progress_(progress) {}

  StatusOr<TracesReport> Run() {
    EMBANK_ASSIGN_OR_RETURN(const std::vector<std::string> files,
                            TraceFilesBelow(options_.directory));
    // The progress has one step for reading each file, and for each fraction one for each policy
    // and one for the optimum.
    steps_of_file_ = 1 + options_.fractions.size() * (kPolicies.size() * kTraceRounds + 1);
    steps_ = files.size() * steps_of_file_;
    for (size_t i = 0; i < files.size(); ++i) {
      steps_done_ = i * steps_of_file_;
      EMBANK_RETURN_IF_ERROR(RunFile(files[i]));
    }
    if (report_.results.empty()) {
      return InvalidArgumentError(StrCat("--traces: ", options_.directory, ": no traces below it"));
    }
    return std::move(report_);
  }

 private:
  Status RunFile(const std::string& file) {
    StartStep(file);
    const std::string path = (std::filesystem::path(options_.directory) / file).string();
    const Status beginning = CheckBeginning(path);
    if (!beginning.ok()) {
      report_.left_out.push_back({file, std::string(beginning.message())});
      return OkStatus();
    }
    KvOptions reading;
    reading.distribution = {Distribution::Kind::kTrace, 0.0, path};
    EMBANK_ASSIGN_OR_RETURN(const Workload workload, MakeWorkload(reading));
    const AccessStream stream = StreamOf(workload);
    TraceResult result;
    result.file = file;
    result.is_whole = workload.trace_is_whole;
    result.accesses = stream.keys.size();
    result.distinct_keys = stream.distinct;
    for (const double fraction : options_.fractions) {
      result.fraction = fraction;
      result.capacity = std::max<uint64_t>(
          1, static_cast<uint64_t>(std::llround(fraction * static_cast<double>(stream.distinct))));
      report_.results.push_back(Measured(result, stream));
    }
    return OkStatus();
  }

  TraceResult Measured(TraceResult result, const AccessStream& stream) {
    const auto accesses = static_cast<double>(stream.keys.size());
    const auto capacity = static_cast<uint32_t>(result.capacity);
    std::array<std::vector<double>, kPolicies.size()> rates;
    std::array<uint64_t, kPolicies.size()> hits;
    for (uint32_t round = 0; round < kTraceRounds; ++round) {
      for (size_t i = 0; i < kPolicies.size(); ++i) {
        StartStep(StrCat(result.file, ": ", kPolicies[i].name));
        const uint64_t begin_ns = SteadyClock()->NowNs();
        hits[i] = SimulateHits(stream, capacity, kPolicies[i].policy, kPolicies[i].returning);
        const uint64_t ns = std::max<uint64_t>(1, SteadyClock()->NowNs() - begin_ns);
        rates[i].push_back(accesses * 1e9 / static_cast<double>(ns));
      }
    }
    for (size_t i = 0; i < kPolicies.size(); ++i) {
      const auto [low, high] = std::minmax_element(rates[i].begin(), rates[i].end());
      result.figures.push_back({kPolicies[i].name, static_cast<double>(hits[i]) / accesses,
                                Median(rates[i]), *low, *high});
    }
    StartStep(StrCat(result.file, ": optimum"));
    result.optimum = static_cast<double>(OptimalHits(stream, capacity)) / accesses;
    return result;
  }

  void StartStep(const std::string& note) {
    progress_->Update(static_cast<double>(steps_done_++) / static_cast<double>(steps_), note);
  }

  const TracesOptions& options_;
  Progress* const progress_;
  size_t steps_of_file_ = 0;
  size_t steps_ = 0;
  size_t steps_done_ = 0;
  TracesReport report_;
};

}  // namespace

StatusOr<TracesReport> RunTraces(const TracesOptions& options, Progress* progress) {
  return TracesRun(options, progress).Run();
}

}  // namespace embank
