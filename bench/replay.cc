#include "bench/replay.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/crc32c.h"
#include "base/hash.h"
#include "base/random.h"
#include "base/status_macros.h"
#include "bench/access_counts.h"
#include "bench/c_store.h"
#include "bench/key_source.h"
#include "bench/oracle_check.h"
#include "bench/table_options.h"

namespace embank {
namespace {

// The batches take most of the time; the scan is the rest of the progress bar.
constexpr double kBatchesShare = 0.9;

// Times calls of one verb.
template <typename Call>
absl::Status Timed(VerbTiming* timing, uint64_t positions, const Call& call) {
  const uint64_t begin_ns = SteadyClock()->NowNs();
  const embank_status status = call();
  const uint64_t nanoseconds = SteadyClock()->NowNs() - begin_ns;
  timing->positions += positions;
  timing->nanoseconds += nanoseconds;
  timing->latency.Record(nanoseconds);
  return ToStatus(status);
}

absl::StatusOr<std::unique_ptr<KeySource>> OpenSource(const ReplayOptions& options) {
  if (options.trace_path.empty()) return MakeGeneratedSource(options.seed);
  absl::StatusOr<std::unique_ptr<KeySource>> source =
      OpenTraceSource(options.trace_path, options.trace_format);
  if (source.ok()) return source;
  return absl::InvalidArgumentError(absl::StrCat("--trace: ", source.status().message()));
}

class Replay {
 public:
  Replay(const ReplayOptions& options, CStore store, Progress* progress)
      : options_(options),
        store_(std::move(store)),
        check_(options.seed, kTableName, MakeTableOptions(options.shape)),
        progress_(progress),
        keys_(options.batch),
        rows_(options.batch * check_.vector_bytes()),
        gradients_(options.batch * options.shape.dim),
        state_(options.batch * check_.state_floats()),
        heat_(options.batch),
        outcomes_(options.batch) {}

  absl::StatusOr<ReplayReport> Run(KeySource* source) {
    const uint64_t begin_ns = SteadyClock()->NowNs();
    for (;;) {
      EMBANK_ASSIGN_OR_RETURN(const size_t count, source->Read(keys_));
      if (count == 0) break;
      EMBANK_RETURN_IF_ERROR(RunBatch(KeySpan(keys_).first(count)));
      progress_->Update(source->FractionRead() * kBatchesShare,
                        absl::StrCat("replay: ", report_.positions, " keys"));
    }
    EMBANK_RETURN_IF_ERROR(Scan());
    EMBANK_RETURN_IF_ERROR(Summarize());
    report_.source = source->Description();
    report_.seconds = static_cast<double>(SteadyClock()->NowNs() - begin_ns) * 1e-9;
    return std::move(report_);
  }

 private:
  absl::Status RunBatch(KeySpan keys) {
    EMBANK_RETURN_IF_ERROR(Timed(&report_.lookup, keys.size(), [&] {
      return embank_lookup(store_.table, keys.data(), keys.size(), EMBANK_MISSING_CREATE,
                           rows_.data(), 0, outcomes_.data());
    }));
    report_.digest =
        ExtendCrc32c(report_.digest, std::span(rows_).first(keys.size() * check_.vector_bytes()));
    EMBANK_RETURN_IF_ERROR(check_.Lookup(keys, rows_.data(), outcomes_.data()));
    if (options_.shape.optimizer != Optimizer::kNone) {
      EMBANK_RETURN_IF_ERROR(ApplyGradients(keys));
    }
    counts_.Add(keys);
    report_.positions += keys.size();
    return absl::OkStatus();
  }

  absl::Status ApplyGradients(KeySpan keys) {
    const uint32_t dim = options_.shape.dim;
    for (uint64_t p = 0; p < keys.size(); ++p) {
      for (uint32_t i = 0; i < dim; ++i) {
        gradients_[p * dim + i] = ReplayGradient(keys[p], report_.positions + p, i);
      }
    }
    EMBANK_RETURN_IF_ERROR(Timed(&report_.gradients, keys.size(), [&] {
      return embank_apply_gradients(store_.table, keys.data(), keys.size(), gradients_.data(), 0,
                                    outcomes_.data());
    }));
    return check_.Gradients(keys, gradients_.data(), outcomes_.data());
  }

  absl::Status Scan() {
    embank_scan* opened = nullptr;
    EMBANK_RETURN_IF_ERROR(ToStatus(embank_scan_open(store_.table, &opened)));
    const ScanPointer scan(opened);
    for (;;) {
      uint64_t n = 0;
      EMBANK_RETURN_IF_ERROR(Timed(&report_.scan, 0, [&] {
        return embank_scan_next(scan.get(), keys_.data(), rows_.data(), 0, options_.batch, &n);
      }));
      if (n == 0) break;
      report_.scan.positions += n;
      EMBANK_RETURN_IF_ERROR(CompareScanned(KeySpan(keys_).first(n)));
      const auto rows = static_cast<double>(std::max<uint64_t>(1, check_.rows()));
      const double scanned = static_cast<double>(report_.scan.positions) / rows;
      progress_->Update(kBatchesShare + (1.0 - kBatchesShare) * scanned, "scan");
    }
    check_.EndScan();
    return absl::OkStatus();
  }

  absl::Status CompareScanned(KeySpan keys) {
    if (check_.state_floats() > 0) {
      EMBANK_RETURN_IF_ERROR(ToStatus(embank_get_state(store_.table, keys.data(), keys.size(),
                                                       state_.data(), 0, outcomes_.data())));
    }
    EMBANK_RETURN_IF_ERROR(ToStatus(
        embank_get_heat(store_.table, keys.data(), keys.size(), heat_.data(), outcomes_.data())));
    check_.Scanned(keys, rows_.data(), state_.data(), heat_.data());
    return absl::OkStatus();
  }

  absl::Status Summarize() {
    EMBANK_ASSIGN_OR_RETURN(const CStoreMemory memory, MemoryOf(store_));
    report_.row_bytes = memory.row_bytes;
    report_.bytes_per_row = static_cast<double>(memory.used_bytes) /
                            static_cast<double>(std::max<uint64_t>(1, memory.rows));
    report_.distinct_keys = counts_.distinct();
    report_.share_top_1 = counts_.ShareOfTop(0.01);
    report_.share_top_10 = counts_.ShareOfTop(0.10);
    report_.share_top_20 = counts_.ShareOfTop(0.20);
    report_.answers_compared = check_.answers_compared();
    report_.rows_compared = check_.rows_compared();
    report_.mismatches = check_.mismatches();
    report_.first_mismatch = check_.first_mismatch();
    return absl::OkStatus();
  }

  const ReplayOptions& options_;
  const CStore store_;
  OracleCheck check_;
  Progress* const progress_;
  AccessCounts counts_;
  ReplayReport report_;

  // One batch.
  std::vector<Key> keys_;
  std::vector<std::byte> rows_;
  std::vector<float> gradients_;
  std::vector<float> state_;
  std::vector<uint32_t> heat_;
  std::vector<uint8_t> outcomes_;
};

}  // namespace

double VerbTiming::PositionsPerSecond() const {
  return nanoseconds == 0 ? 0.0
                          : static_cast<double>(positions) * 1e9 / static_cast<double>(nanoseconds);
}

float ReplayGradient(uint64_t key, uint64_t position, uint32_t i) {
  return CounterRandom(Mix(key ^ Mix(position))).UnitFloat(i) - 0.5f;
}

absl::StatusOr<ReplayReport> RunReplay(const ReplayOptions& options, Progress* progress) {
  EMBANK_ASSIGN_OR_RETURN(const std::unique_ptr<KeySource> source, OpenSource(options));
  EMBANK_ASSIGN_OR_RETURN(CStore store, OpenCStore(options.shape, options.seed, options.threads));
  return Replay(options, std::move(store), progress).Run(source.get());
}

}  // namespace embank
