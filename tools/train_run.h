// One training by embank-train: data, progress, evaluation and the report.
#ifndef EMBANK_TOOLS_TRAIN_RUN_H_
#define EMBANK_TOOLS_TRAIN_RUN_H_

#include <cstdint>
#include <memory>
#include <string>

#include "base/status.h"
#include "base/status_or.h"
#include "tools/train_command.h"
#include "train/data/click_reader.h"
#include "train/generator/click_generator.h"
#include "train/scores.h"
#include "train/trainer.h"

namespace embank {

// Where the rows of a trainer are.
struct TierRows {
  uint64_t hbm = 0, dram = 0, pmem = 0, ssd = 0;
};

// The tiers in which lookups found their rows, as the store counts them. A row counts once for each
// slice in which it is. A row that a prefetch has read is found in DRAM.
struct TierAnswers {
  uint64_t lookups = 0;  // that found or created their row
  uint64_t hbm = 0, dram = 0, pmem = 0, ssd = 0;
  uint64_t created = 0;                              // these rows were in no tier
  uint64_t prefetched_pmem = 0, prefetched_ssd = 0;  // rows that prefetches brought to DRAM
  double RatioOf(uint64_t answers) const {
    return lookups == 0 ? 0.0 : static_cast<double>(answers) / static_cast<double>(lookups);
  }
};

// The figures of the steps of a run, without its evaluation. Untimed steps are in no figure of
// speed.
struct TrainFigures {
  double seconds = 0.0;
  double samples_per_second = 0.0;
  double operations_per_step = 0.0;
  double table_batches_per_step = 0.0;  // lookups and gradients of one table
  double index_walks_per_step = 0.0;    // runs of keys that go through the index together
  double rows_read_per_step = 0.0;      // from PMem and SSD, prefetched ones included
  StepSeconds split;
  TierRows rows;
  TierAnswers answers;
};

// Opens the data that --generate names, for so many samples.
StatusOr<std::unique_ptr<ClickGenerator>> OpenGenerator(const TrainCommand& command,
                                                        uint64_t samples);

// Replaces a file. UNAVAILABLE names it.
Status WriteText(std::string_view text, const std::string& path);

// Names the first broken line of each kind on stderr, if there are any.
void PrintBroken(const BrokenLines& broken);

// One thread.
class TrainRun {
 public:
  explicit TrainRun(const TrainCommand& command) : command_(command) {}

  // Trains, evaluates and reports. SIGINT and SIGTERM end a training with --path in a checkpoint
  // and its report, without an evaluation. INVALID_ARGUMENT: the options are wrong, and nothing was
  // trained. The results of the training are reported where the evaluation fails, too.
  Status Execute();

  const TrainFigures& figures() const { return figures_; }
  double loss() const { return scores_.loss(); }
  uint32_t WeightsCrc32c() const;
  // The checksum of all rows and states (tools/row_checksum.h).
  StatusOr<uint64_t> ChecksumOfRows() const;
  // The numbers of the steps' lookup batches.
  uint64_t lookup_batches() const;
  size_t id_features() const { return source_->columns().ids.size(); }
  size_t packs() const { return trainer_->plan().packs().size(); }

 private:
  Status Open();
  StatusOr<std::unique_ptr<ClickSource>> OpenEpoch(uint32_t epoch);
  Status OpenEvaluation();
  Status TrainAndReport();
  Status Train();
  Status Step(const ClickBatch& batch);
  Status SaveBatch(const ClickBatch& batch, const Status& why) const;
  Status Evaluate();
  void BeginTiming();
  void TakeFigures();
  void Show();
  double Fraction() const;
  void Print() const;
  Status WriteJson() const;
  bool IsDone() const { return command_.steps && trainer_->steps() >= *command_.steps; }

  const TrainCommand& command_;
  std::unique_ptr<Trainer> trainer_;
  std::unique_ptr<ClickSource> source_, eval_source_;
  const ClickReader* log_ = nullptr;       // that of the present epoch, if it is a file
  const ClickReader* eval_log_ = nullptr;  // that of the evaluation
  uint64_t begin_ns_ = 0;
  uint64_t steps_ = 0;           // of this run
  uint64_t samples_before_ = 0;  // of the steps that the figures of speed leave out
  StepSeconds split_before_;
  double next_line_ = 0.0;
  double fraction_before_ = 0.0;  // of the data, before the steps that are timed
  double fraction_ = 0.0;         // behind the last step
  double best_auc_ = 0.0;
  std::string stopped_by_;  // the name of a signal
  Scores scores_, eval_;
  TrainFigures figures_;
};

}  // namespace embank

#endif  // EMBANK_TOOLS_TRAIN_RUN_H_
