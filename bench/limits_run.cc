#include "bench/limits_run.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <numeric>
#include <tuple>
#include <utility>

#include "base/memory/memory.h"
#include "base/status_macros.h"
#include "base/str_cat.h"
#include "bench/kv_samples.h"
#include "bench/machine.h"
#include "bench/phase_run.h"
#include "bench/probe_table.h"

namespace embank {
namespace {

constexpr uint64_t kBatch = 8192;
constexpr uint64_t kStreamPartBytes = uint64_t{1} << 20;
constexpr uint64_t kRowsBytesWanted = uint64_t{3} << 30;
// Random positions, again and again: with rows of 80 bytes they touch 1 GiB, far above a cache.
constexpr uint64_t kPositions = uint64_t{1} << 23;

bool UsesRows(LimitProbe probe) {
  return probe == LimitProbe::kGather || probe == LimitProbe::kReadModifyWrite;
}

// Operations of a position.
uint64_t LinesOf(LimitProbe probe) {
  const bool is_stream = probe == LimitProbe::kStreamRead || probe == LimitProbe::kStreamWrite;
  return is_stream ? kStreamPartBytes / kProbeLineBytes : 1;
}

uint64_t RowsBytes(const LimitsOptions& options) {
  if (options.memory_mib > 0) return options.memory_mib << 20;
  // The smallest rows have an index of a sixth of their size, and others use the machine, too.
  const uint64_t free_bytes = DescribeMachine().memory_available_bytes;
  return free_bytes == 0 ? kRowsBytesWanted : std::min(kRowsBytesWanted, free_bytes / 3);
}

std::vector<uint64_t> NumbersUpTo(uint64_t n) {
  std::vector<uint64_t> numbers(n);
  std::iota(numbers.begin(), numbers.end(), 0);
  return numbers;
}

class LimitsRun {
 public:
  LimitsRun(const LimitsOptions& options, std::vector<uint32_t> threads, Progress* progress)
      : options_(options),
        threads_(std::move(threads)),
        rows_bytes_(RowsBytes(options)),
        progress_(progress),
        positions_(NumbersUpTo(kPositions)),
        parts_(NumbersUpTo(std::max<uint64_t>(1, rows_bytes_ / kStreamPartBytes))),
        out_(*std::max_element(threads_.begin(), threads_.end())) {
    const uint64_t probes = 2 * options.row_bytes.size() + 3;
    steps_ = 2 * kLimitRounds * threads_.size() * probes;
    const uint32_t largest = *std::max_element(options.row_bytes.begin(), options.row_bytes.end());
    for (std::vector<std::byte>& out : out_) out.resize(kBatch * largest);
  }

  StatusOr<LimitsReport> Run() {
    for (const PageKind pages : {PageKind::kHuge, PageKind::kSmall}) {
      // The smallest rows are the most: they need the largest index.
      const uint32_t smallest =
          *std::min_element(options_.row_bytes.begin(), options_.row_bytes.end());
      const RowLayout layout = LayoutOf(smallest);
      EMBANK_ASSIGN_OR_RETURN(table_, ProbeTable::Create({RowsOf(layout), layout, pages}));
      const auto write = [this](uint32_t, uint64_t part) { WritePart(part); };
      EMBANK_RETURN_IF_ERROR(Stream(0.0, threads_.back(), write).status());  // gives it its pages
      for (const uint32_t bytes : options_.row_bytes) EMBANK_RETURN_IF_ERROR(RunSize(pages, bytes));
      table_.reset();
    }
    std::stable_sort(report_.figures.begin(), report_.figures.end(),
                     [](const LimitFigure& a, const LimitFigure& b) {
                       return std::tie(a.pages, a.probe, a.bytes, a.threads) <
                              std::tie(b.pages, b.probe, b.bytes, b.threads);
                     });
    report_.rows_bytes = rows_bytes_;
    return std::move(report_);
  }

 private:
  static RowLayout LayoutOf(uint32_t bytes) {
    return MakeRowLayout(bytes / 4, ValueType::kF32, Optimizer::kNone);
  }
  uint64_t RowsOf(const RowLayout& layout) const {
    return std::max<uint64_t>(1, rows_bytes_ / layout.row_bytes);
  }

  Status RunSize(PageKind pages, uint32_t bytes) {
    const RowLayout layout = LayoutOf(bytes);
    table_->Reshape(RowsOf(layout), layout);
    table_->SetRandomRows(bytes);
    const bool is_first = bytes == options_.row_bytes.front();
    std::vector<std::vector<double>> rates(threads_.size() * kProbes);
    for (uint32_t round = 0; round < kLimitRounds; ++round) {
      for (size_t i = 0; i < rates.size(); ++i) {
        const auto probe = static_cast<LimitProbe>(i % kProbes);
        if (!is_first && !UsesRows(probe)) continue;
        progress_->Update(static_cast<double>(steps_done_++) / static_cast<double>(steps_),
                          StrCat(ProbeName(probe), " ", bytes));
        EMBANK_ASSIGN_OR_RETURN(const PhaseTiming timing, Measure(probe, threads_[i / kProbes]));
        rates[i].push_back(static_cast<double>(timing.positions * LinesOf(probe)) / timing.seconds);
      }
    }
    for (size_t i = 0; i < rates.size(); ++i) {
      if (rates[i].empty()) continue;
      Add({static_cast<LimitProbe>(i % kProbes), pages, threads_[i / kProbes]}, layout, rates[i]);
    }
    return OkStatus();
  }

  void Add(LimitFigure figure, const RowLayout& layout, const std::vector<double>& rates) {
    figure.bytes = layout.vector_bytes;
    figure.row_bytes = layout.row_bytes;
    if (!UsesRows(figure.probe)) {
      figure.bytes = kProbeLineBytes;
      figure.row_bytes = 0;
    }
    figure.per_second = Median(rates);
    figure.per_second_min = *std::min_element(rates.begin(), rates.end());
    figure.per_second_max = *std::max_element(rates.begin(), rates.end());
    report_.figures.push_back(figure);
  }

  StatusOr<PhaseTiming> Measure(LimitProbe probe, uint32_t threads) {
    const double seconds = options_.seconds / static_cast<double>(steps_);
    switch (probe) {
      case LimitProbe::kRandomLines:
        return Random(seconds, threads, [this](uint32_t, KeySpan keys) {
          sum_.fetch_add(ReadRandomLines(table_->view(), keys), std::memory_order_relaxed);
        });
      case LimitProbe::kGather:
        return Random(seconds, threads, [this](uint32_t thread, KeySpan keys) {
          table_->Gather(keys, out_[thread].data());
        });
      case LimitProbe::kReadModifyWrite:
        return Random(seconds, threads,
                      [this](uint32_t, KeySpan keys) { table_->ReadModifyWrite(keys); });
      case LimitProbe::kStreamRead:
        return Stream(seconds, threads, [this](uint32_t, uint64_t part) {
          const auto [begin, bytes] = PartAt(part);
          sum_.fetch_add(ReadStream(begin, bytes), std::memory_order_relaxed);
        });
      case LimitProbe::kStreamWrite:
        return Stream(seconds, threads, [this](uint32_t, uint64_t part) { WritePart(part); });
    }
    return InternalError("no such probe");
  }

  template <typename Body>
  StatusOr<PhaseTiming> Random(double seconds, uint32_t threads, Body body) {
    const auto run = [&](uint32_t thread, KeySpan keys) {
      body(thread, keys);
      return OkStatus();
    };
    return RunPhase({positions_, kBatch, threads, seconds}, run, [](uint64_t) {});
  }

  template <typename Body>
  StatusOr<PhaseTiming> Stream(double seconds, uint32_t threads, Body body) {
    const auto run = [&](uint32_t thread, KeySpan parts) {
      body(thread, parts.front());
      return OkStatus();
    };
    return RunPhase({parts_, 1, threads, seconds}, run, [](uint64_t) {});
  }

  // The rows end a little before the last part does.
  std::pair<std::byte*, uint64_t> PartAt(uint64_t part) const {
    const ProbeView& view = table_->view();
    const uint64_t begin = part * kStreamPartBytes;
    const uint64_t end = std::min(begin + kStreamPartBytes, view.rows_bytes);
    return {view.rows + begin, (end - begin) / kProbeLineBytes * kProbeLineBytes};
  }
  void WritePart(uint64_t part) const {
    const auto [begin, bytes] = PartAt(part);
    WriteStream(begin, bytes);
  }

  static constexpr size_t kProbes = 5;

  const LimitsOptions& options_;
  const std::vector<uint32_t> threads_;
  const uint64_t rows_bytes_;
  Progress* const progress_;
  const std::vector<Key> positions_;
  const std::vector<uint64_t> parts_;        // numbers of a stream's parts
  std::vector<std::vector<std::byte>> out_;  // of each thread
  std::unique_ptr<ProbeTable> table_;        // of the pages and the size that are probed
  std::atomic<uint64_t> sum_{0};             // of what was read, so that it is read
  uint64_t steps_ = 0;
  uint64_t steps_done_ = 0;
  LimitsReport report_;
};

}  // namespace

const char* ProbeName(LimitProbe probe) {
  switch (probe) {
    case LimitProbe::kRandomLines:
      return "random_lines";
    case LimitProbe::kGather:
      return "gather";
    case LimitProbe::kReadModifyWrite:
      return "read_modify_write";
    case LimitProbe::kStreamRead:
      return "stream_read";
    case LimitProbe::kStreamWrite:
      return "stream_write";
  }
  return "";
}

std::vector<uint32_t> ThreadCounts(uint32_t cores) {
  std::vector<uint32_t> counts;
  for (uint32_t count = 1; count < cores; count *= 2) counts.push_back(count);
  counts.push_back(std::max(1u, cores));
  return counts;
}

StatusOr<LimitsReport> RunLimits(const LimitsOptions& options, Progress* progress) {
  std::vector<uint32_t> threads = options.threads;
  if (threads.empty()) threads = ThreadCounts(std::min(kThreadsMax, DescribeMachine().cores));
  return LimitsRun(options, std::move(threads), progress).Run();
}

}  // namespace embank
