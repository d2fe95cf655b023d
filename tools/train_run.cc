#include "tools/train_run.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdio>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/crc32c.h"
#include "base/hash.h"
#include "base/status_macros.h"
#include "base/str_cat.h"
#include "base/threads/clock.h"
#include "store/store.h"
#include "store/table/table.h"
#include "tools/progress_text.h"
#include "tools/rank_output.h"
#include "tools/row_checksum.h"
#include "tools/text_file.h"
#include "tools/train_data.h"
#include "tools/trained_model.h"
#include "train/batch_ahead.h"
#include "train/bytes/byte_source.h"
#include "train/data/click_text.h"
#include "train/pipeline/trace_picture.h"
#include "train/rank_start.h"
#include "train/ranks/gathered_texts.h"
#include "train/rate_schedule.h"
#include "train/samples/shuffled_samples.h"

namespace embank {
namespace {

constexpr double kSecondsPerLine = 2.0;
// A trace has two steps of two graphs each. They come after kTracedStep steps, or are the first
// ones of a shorter run. Where steps overlap, it has as many more as do, of three graphs each.
constexpr uint64_t kTracedStep = 120;
uint32_t TracedGraphs(uint32_t staleness) { return staleness == 0 ? 2 * 2 : 3 * (staleness + 2); }

// Writes the dense parameters as little-endian float32 numbers.
Status WriteWeights(std::span<const float> weights, const std::string& path) {
  static_assert(std::endian::native == std::endian::little);
  return WriteText({reinterpret_cast<const char*>(weights.data()), weights.size_bytes()}, path);
}

// Adds a remedy where the store was made with another seed.
Status WhyOther(const Status& status) {
  if (!status.message().starts_with("seed")) return status;
  return Status(status.code(),
                StrCat(status.message(), "; leave --seed out, or give another --path"));
}

// The settings of a run that say which calls its ranks make.
std::string RunText(const TrainCommand& command) {
  return StrCat("--steps ", command.steps ? StrCat(*command.steps) : "none", "\n--epochs ",
                command.epochs, "\n--checkpoint-every ", command.checkpoint_every,
                "\n--eval-every ", command.eval_every, "\n--eval-samples ", command.eval_samples,
                "\n--eval ", command.eval.empty() ? "none" : "given", "\n--patience ",
                command.patience, "\n--resume ", command.resume ? 1 : 0, "\n--no-bag ",
                command.no_bag ? 1 : 0, "\n--hot-only ", command.hot_only ? 1 : 0, "\n");
}

double SecondsSince(uint64_t begin_ns) {
  return static_cast<double>(SteadyClock()->NowNs() - begin_ns) * 1e-9;
}

}  // namespace

Status TrainRun::Execute() {
  EMBANK_RETURN_IF_ERROR(Open());
  const Status done = trainer_ == nullptr ? ServeRole() : TrainAndReport();
  if (IsResourceExhausted(done)) {
    return ResourceExhaustedError(StrCat(
        done.message(),
        command_.ssd_mib > 0
            ? "; give more --ssd-mib, or a smaller --checkpoint-every"
            : "; give more --dram-mib, a --path, whose store has rows on disk, or --forget"));
  }
  return OfData(done);
}

Status TrainRun::OpenData(ClickColumns* columns) {
  if (command_.epochs > 1 && AreReadOnce(command_.data)) {
    return InvalidArgumentError(
        "--epochs: a pipe or standard input gives its lines once; give a file, or one epoch");
  }
  EMBANK_ASSIGN_OR_RETURN(
      source_, Epochs::Open([this](uint32_t epoch) { return OpenEpoch(epoch); }, command_.epochs));
  EMBANK_RETURN_IF_ERROR(evaluations_.Open(source_->columns()));
  *columns = source_->columns();
  EMBANK_ASSIGN_OR_RETURN(columns->data, NameOfData(command_, log_));
  EMBANK_ASSIGN_OR_RETURN(columns->format, FormatOfData(command_));
  EMBANK_RETURN_IF_ERROR(CheckOrder(command_, columns->data));
  return CheckNew();
}

Status TrainRun::Open() {
  ClickColumns columns;
  const Status opened = OpenData(&columns);
  EMBANK_RETURN_IF_ERROR(Agreed(opened));
  if (exchange_ != nullptr) EMBANK_RETURN_IF_ERROR(CompareSettings(exchange_, RunText(command_)));
  if (role_exchange_ != nullptr) {
    EMBANK_ASSIGN_OR_RETURN(
        role_start_, OpenOfRoles(command_, columns, RunText(command_), role_exchange_, &trainer_));
    return OkStatus();
  }
  EMBANK_RETURN_IF_ERROR(evaluations_.EvaluateKept());
  StatusOr<std::unique_ptr<Trainer>> trainer = Trainer::Open(command_.trainer, columns, exchange_);
  if (!trainer.ok()) return WhyOther(trainer.status());
  trainer_ = *std::move(trainer);
  return OkStatus();
}

// A command line without --resume often lacks the model, too, which the trainer would compare.
Status TrainRun::CheckNew() const {
  const std::string& path = command_.trainer.store.path;
  if (command_.resume || path.empty()) return OkStatus();
  const StatusOr<TrainedModel> trained = ReadTrainedModel(path);
  if (IsFailedPrecondition(trained.status())) return trained.status();
  // Where it cannot be read, the trainer says why.
  if (!trained.ok() || trained->text.steps == 0) return OkStatus();
  return FailedPreconditionError(StrCat("--path: ", path, " has a checkpoint of step ",
                                        trained->text.steps,
                                        ": give --resume, or another directory"));
}

// Each epoch has an order of its own.
StatusOr<std::unique_ptr<ClickSource>> TrainRun::OpenEpoch(uint32_t epoch) {
  if (command_.hot_cold != nullptr) {
    auto batches = std::make_unique<HotColdSamples>(
        command_.hot_cold, command_.trainer.batch,
        hot_cold_ == nullptr ? ShuffleSchedule() : hot_cold_->schedule(),
        HotColdOptions{.hot_only = command_.hot_only});
    hot_cold_ = batches.get();
    return std::unique_ptr<ClickSource>(std::move(batches));
  }
  std::unique_ptr<ClickSource> source;
  if (command_.generate.empty()) {
    EMBANK_ASSIGN_OR_RETURN(std::unique_ptr<ClickReader> log,
                            OpenLog(command_, "--data", command_.data));
    if (log_ != nullptr) broken_ = log_->broken_lines();
    log_ = log.get();
    source = std::move(log);
  } else {
    EMBANK_ASSIGN_OR_RETURN(source, OpenGenerator(command_, command_.samples));
  }
  if (command_.shuffle == 0) return source;
  const uint64_t seed = HashKey(command_.trainer.seed, epoch);
  return std::make_unique<ShuffledSamples>(std::move(source), command_.shuffle, seed);
}

// Goes on at the checkpoint, and tells how.
Status TrainRun::GoOn() {
  if (trainer_->steps() == 0) {
    if (command_.resume) {
      std::fprintf(Err(), "--resume: %s has no checkpoint: a new training of model %s begins\n",
                   command_.trainer.store.path.c_str(), command_.model.c_str());
    }
    return OkStatus();
  }
  std::fprintf(Err(), "goes on behind step %llu%s\n",
               static_cast<unsigned long long>(trainer_->steps()),
               trainer_->position() == 0 ? ", at the beginning of the data" : "");
  for (const std::string& change : trainer_->changes()) {
    std::fprintf(Err(), "%s\n", change.c_str());
  }
  const uint64_t rows_lost = trainer_->store().checkpoints()->Report().rows_lost;
  if (rows_lost > 0) {
    std::fprintf(Err(),
                 "%llu rows of the store were lost before that step: keys of theirs begin anew\n",
                 static_cast<unsigned long long>(rows_lost));
  }
  // A file with a header begins behind it.
  if (trainer_->position().place <= source_->position().place) return OkStatus();
  TellSkip();
  ProgressLines progress(CountsLines() ? "trained lines skipped" : "trained samples skipped");
  return source_->SkipTo(trainer_->position(),
                         [&](double fraction, uint64_t place) { progress.Show(fraction, place); });
}

Status TrainRun::TrainAndReport() {
  EMBANK_RETURN_IF_ERROR(GoOn());
  if (!command_.trace.empty())
    trainer_->pass()->trace()->KeepIntervals(TracedGraphs(command_.trainer.hybrid.staleness));
  EMBANK_RETURN_IF_ERROR(Train());
  TakeFigures();
  if (log_ != nullptr) PrintBroken(Broken());
  if (command_.ablation || command_.copies_up_to) return failure_;
  if (!command_.trace.empty()) {
    EMBANK_RETURN_IF_ERROR(
        WriteText(TracePicture(trainer_->pass()->trace()->intervals()), command_.trace));
  }
  Print();
  if (!command_.weights.empty()) {
    EMBANK_RETURN_IF_ERROR(WriteWeights(trainer_->weights(), command_.weights));
  }
  EMBANK_RETURN_IF_ERROR(WriteJson());
  return failure_;
}

// Each epoch has the lines of the one before it, or so far a part of them.
const BrokenLines& TrainRun::Broken() const {
  const BrokenLines& present = log_->broken_lines();
  return broken_.count > present.count ? broken_ : present;
}

// A position in shuffled or generated data counts samples.
bool TrainRun::CountsLines() const { return log_ != nullptr && command_.shuffle == 0; }

// A person whose data only seem to be those of the checkpoint sees it here.
void TrainRun::TellSkip() const {
  std::fprintf(
      Err(), "skips the first %llu %s of %s, which were trained\n",
      static_cast<unsigned long long>(Epochs::InEpoch(trainer_->position())),
      CountsLines() ? "lines" : "samples",
      command_.generate.empty() ? TextOfFiles(command_.data).c_str() : command_.generate.c_str());
}

uint32_t TrainRun::WeightsCrc32c() const {
  return ExtendCrc32c(0, std::as_bytes(trainer_->weights()));
}

StatusOr<uint64_t> TrainRun::ChecksumOfRows() const {
  return embank::ChecksumOfRows(trainer_->tables());
}

uint64_t TrainRun::lookup_batches() const { return StepWork().lookup_batches; }

// The work of the steps alone.
TrainWork TrainRun::StepWork() const {
  TrainWork work = CountWork(trainer_.get());
  work -= evaluation_work_;
  return work;
}

// Leaves the time and the samples so far out of the figures of speed.
void TrainRun::BeginTiming() {
  begin_ns_ = SteadyClock()->NowNs();
  next_line_ = kSecondsPerLine;
  samples_before_ = scores_.samples();
  fraction_before_ = Fraction();
  split_before_ = StepWork().split;
}

void TrainRun::TakeFigures() {
  TrainFigures& figures = figures_;
  const auto per_step = [&](uint64_t count) {
    return steps_ == 0 ? 0.0 : static_cast<double>(count) / static_cast<double>(steps_);
  };
  const auto timed = static_cast<double>(scores_.samples() - samples_before_);
  figures.samples_per_second = figures.seconds > 0.0 ? timed / figures.seconds : 0.0;
  const TrainWork work = StepWork();
  figures.operations_per_step = per_step(work.operations);
  figures.table_batches_per_step = per_step(work.lookup_batches + work.gradient_batches);
  figures.index_walks_per_step = per_step(work.index_walks);
  figures.rows_read_per_step = per_step(work.rows_read);
  figures.split = {.lookup = work.split.lookup - split_before_.lookup,
                   .dense = work.split.dense - split_before_.dense,
                   .gradients = work.split.gradients - split_before_.gradients,
                   .link = work.split.link - split_before_.link,
                   .device_link = work.split.device_link - split_before_.device_link};
  figures.rows = CountRows(*trainer_);
  figures.answers = work.answers;
}

Status TrainRun::Train() {
  if (command_.role_plan) return TrainByRoles();
  fraction_ = source_->FractionRead();
  BeginTiming();
  // A run in memory has nothing to save: a signal ends it.
  const bool takes_signals = exchange_ == nullptr || command_.takes_signals;
  if (trainer_->store().checkpoints() != nullptr && takes_signals) signals_.emplace(EndWaits);
  if (trainer_->steps() > 0) saved_step_ = trainer_->steps();
  position_ = source_->position();
  if (evaluations_.IsDueAgain(trainer_->steps())) Evaluate();
  // Batches are read ahead, and the next one may depend on the loss of the last phase.
  awaits_loss_ = hot_cold_ != nullptr && hot_cold_->awaits_loss();
  ApplyLoss();
  BatchAhead batches(source_.get(), trainer_.get(), command_.trainer.batch,
                     command_.trainer.hybrid.staleness + 1);
  Status of_data;
  while (!IsDone()) {
    of_data.Update(BeginSteps(&batches));
    // The other ranks get it from the next vote, if there is one. Else their lookups would wait.
    const bool is_told = exchange_ != nullptr && !of_data.ok() && !IsCancelled(of_data);
    if (is_told) trainer_->team()->Keep(of_data);
    const bool has_lookups = command_.trainer.hybrid.staleness > 0;
    if (is_told && begun_.empty() && has_lookups) trainer_->team()->Abort(of_data);
    if (begun_.empty()) break;
    failure_ = EndStep();
    // It changed nothing: the steps before it are saved, and a resumed run comes to it again.
    if (IsOutOfRange(failure_)) break;
    EMBANK_RETURN_IF_ERROR(failure_);
    if (IsCheckpointDue(trainer_->steps())) {
      EMBANK_RETURN_IF_ERROR(trainer_->StartCheckpoint(position_));
      saved_step_ = trainer_->steps();
    }
    if (evaluations_.IsDue(trainer_->steps())) Evaluate();
    ApplyLoss();
  }
  const Status dropped = trainer_->DropSteps();
  const bool are_trained = has_ended_ && of_data.ok() && failure_.ok();
  if (are_trained && trainer_->steps() == 0) {
    return NoSample("--data", command_.data, "training");
  }
  TellIfAllAreTrained(are_trained);
  // A signal has ended the wait for lines of a pipe.
  if (!IsCancelled(of_data)) failure_.Update(of_data);
  EMBANK_RETURN_IF_ERROR(dropped);
  if (trainer_->steps() == 0) EMBANK_RETURN_IF_ERROR(failure_);
  if (IsStopped()) NoteSignal("makes its checkpoint; a second signal ends this at once");
  // The rows of a store in memory are read behind this.
  EMBANK_RETURN_IF_ERROR(trainer_->WriteBack());
  // An update of rows that failed in the last step is in no later vote. Where the data of this rank
  // alone have failed, the others make other calls.
  if (exchange_ != nullptr) {
    const Status agreed = trainer_->team()->AgreeOnSuccess();
    if (!agreed.ok()) return failure_.ok() ? agreed : failure_;
  }
  EMBANK_RETURN_IF_ERROR(trainer_->FinishCheckpoint());
  figures_.seconds = SecondsSince(begin_ns_);
  // Before the last evaluation, which may take long, and may fail.
  const bool has_model = trainer_->store().checkpoints() != nullptr && trainer_->steps() > 0;
  if (has_model) EMBANK_RETURN_IF_ERROR(Save());
  const bool is_due = evaluations_.has_data() && stopped_by_.empty() && failure_.ok() &&
                      evaluations_.last_step() != trainer_->steps();
  if (!is_due) return OkStatus();
  Evaluate();
  const bool is_done = evaluations_.last_step() == trainer_->steps();
  if (IsStopped() && !is_done) NoteSignal("leaves its evaluation out");
  return OkStatus();
}

void TrainRun::TellIfAllAreTrained(bool have_ended) const {
  if (!have_ended || steps_ > 0) return;
  std::fputs("all of the data have been trained: give other data, or more --epochs\n", Err());
}

void TrainRun::NoteSignal(const char* what) {
  const char* const received = signals_ ? signals_->received() : nullptr;
  stopped_by_ = received != nullptr ? received : "a signal";
  std::fprintf(Err(), "%s behind step %llu: %s\n", stopped_by_.c_str(),
               static_cast<unsigned long long>(trainer_->steps()), what);
}

// Makes the checkpoint of the last step, if there is none.
Status TrainRun::Save() {
  if (saved_step_ == trainer_->steps()) return trainer_->FinishCheckpoint();
  EMBANK_RETURN_IF_ERROR(trainer_->Checkpoint(position_));
  saved_step_ = trainer_->steps();
  return OkStatus();
}

// The last step, a signal, a failure, or --patience evaluations that were no better.
bool TrainRun::IsDone() const {
  return (command_.steps && trainer_->steps() >= *command_.steps) || IsStopped() ||
         !failure_.ok() || evaluations_.IsOver();
}

// A checkpoint or an evaluation has all updates of the steps before it, and no lookup of later ones
// has begun: a run that goes on from there does what this one does.
bool TrainRun::MayBegin() const {
  if (has_ended_ || begun_.size() > command_.trainer.hybrid.staleness) return false;
  const uint64_t before = trainer_->steps() + begun_.size();
  if (begun_.empty()) return true;
  // The batch behind a phase depends on a loss.
  if (begun_.back().batch->ends_phase) return false;
  return !IsCheckpointDue(before) && !evaluations_.IsDue(before) &&
         (!command_.steps || before < *command_.steps);
}

// Begins as many steps as may be under way. A failure of the data ends no step that was begun.
Status TrainRun::BeginSteps(BatchAhead* batches) {
  while (MayBegin()) {
    const StatusOr<const ClickBatch*> next = batches->Next();
    Status status = next.status();
    has_ended_ = !status.ok() || *next == nullptr;
    if (!has_ended_) status = trainer_->BeginStep(**next);
    has_ended_ |= !status.ok();
    if (has_ended_) return status;
    begun_.push_back({*next, batches->position(), batches->FractionRead()});
  }
  return OkStatus();
}

Status TrainRun::EndStep() {
  const Begun begun = begun_.front();
  begun_.pop_front();
  TellZeroRates();
  TakeSignal();
  std::vector<float> logits;
  const StatusOr<double> loss = trainer_->EndStep(&logits);
  if (IsOutOfRange(loss.status())) return SaveBatch(*begun.batch, loss.status());
  EMBANK_RETURN_IF_ERROR(loss.status());
  scores_.Add(logits, begun.batch->labels);
  position_ = begun.position;
  fraction_ = begun.fraction;
  if (begun.batch->is_hot) {
    ++hot_steps_;
    hot_samples_ += begun.batch->samples;
  }
  awaits_loss_ = begun.batch->ends_phase;
  CountStep();
  return OkStatus();
}

// The shuffle schedule takes the loss of the evaluation at the end of each phase.
void TrainRun::ApplyLoss() {
  if (!std::exchange(awaits_loss_, false) || !evaluations_.has_data()) return;
  if (evaluations_.last_step() != trainer_->steps()) Evaluate();
  if (evaluations_.last_step() != trainer_->steps()) return;  // it was stopped, or has failed
  hot_cold_->ApplyLoss(evaluations_.last().loss());
}

void TrainRun::CountStep() {
  ++steps_;
  // The warm-up is over, and caches are warm.
  if (steps_ == kTracedStep && !command_.trace.empty()) {
    trainer_->pass()->trace()->KeepIntervals(TracedGraphs(command_.trainer.hybrid.staleness));
  }
  if (trainer_->steps() == command_.untimed_steps) BeginTiming();
  Show();
}

// Steps at such rates look as others do. It is told once in a run.
void TrainRun::TellZeroRates() const {
  const RateSchedule& schedule = command_.trainer.schedule;
  const uint64_t step = trainer_->steps();
  const bool is_first = steps_ == 0 || RateFactor(schedule, step - 1) > 0.0f;
  if (!is_first || RateFactor(schedule, step) > 0.0f) return;
  std::fprintf(Err(),
               "after step %llu both learning rates are 0 by the schedule \"%s\": the model learns "
               "nothing more; give --schedule constant, more --schedule-steps, or a larger "
               "--schedule-factor\n",
               static_cast<unsigned long long>(step), TextOf(schedule).c_str());
}

// Returns `why`, with the place of the batch or why it has none. All ranks have it, and one writes.
Status TrainRun::SaveBatch(const ClickBatch& batch, const Status& why) const {
  if (exchange_ != nullptr && exchange_->rank() > 0) return why;
  const std::string name = StrCat("embank-train-step-", trainer_->steps() + 1);
  const std::string path = StrCat(name, ".txt");
  Status saved = WriteText(TextOf(batch), path);
  saved.Update(WriteText(TextOf(ColumnsOf(batch)), StrCat(name, ".columns")));
  return Status(why.code(),
                saved.ok() ? StrCat(why.message(), "; its batch is in ", path,
                                    " and its column file in ", name, ".columns")
                           : StrCat(why.message(), "; its batch was not saved: ", saved.message()));
}

// Returns what all ranks return.
Status TrainRun::Agreed(const Status& status) const {
  Exchange* const all = exchange_ != nullptr ? exchange_ : role_exchange_;
  return all == nullptr ? status : Agree(all, status);
}

// Its own time and work are left out of the figures.
void TrainRun::Evaluate() {
  const uint64_t begin_ns = SteadyClock()->NowNs();
  // The work of the last steps is theirs; a failure of it is that of the first prediction, too.
  (void)trainer_->DropSteps();
  const TrainWork before = CountWork(trainer_.get());
  const Status evaluated = evaluations_.Evaluate(
      trainer_.get(), [this] { return Save(); },
      [this] {
        TakeSignal();
        return !IsStopped();
      });
  evaluation_work_ += CountWork(trainer_.get());
  evaluation_work_ -= before;
  begin_ns_ += SteadyClock()->NowNs() - begin_ns;
  // It is made when the run goes on.
  failure_ = Agreed(IsCancelled(evaluated) ? OkStatus() : evaluated);
}

// All ranks end behind the same step.
void TrainRun::TakeSignal() {
  if (exchange_ != nullptr && signals_ && signals_->received() != nullptr) {
    trainer_->team()->set_wants_end();
  }
}

bool TrainRun::IsStopped() const {
  if (exchange_ != nullptr) return trainer_->team()->verdict().wants_end;
  return HasSignal();
}

// The part of the run that is done, 0 to 1.
double TrainRun::Fraction() const {
  if (!command_.steps || *command_.steps == 0) return fraction_;
  return std::max(fraction_,
                  static_cast<double>(trainer_->steps()) / static_cast<double>(*command_.steps));
}

// Its own time is left out of the figures: an AUC sorts all its samples.
void TrainRun::Show() {
  const double seconds = SecondsSince(begin_ns_);
  if (seconds < next_line_) return;
  next_line_ = seconds + kSecondsPerLine;
  const uint64_t shown_ns = SteadyClock()->NowNs();
  const Trainer::LeftOut left = trainer_->left_out();
  const std::string left_out = left.rows + left.dense_steps == 0
                                   ? ""
                                   : StrCat("  not finite ", left.rows, " steps of rows, ",
                                            left.dense_steps, " of dense parameters");
  const StoreOptions& store = trainer_->store().options();
  std::fprintf(Err(),
               "step %llu  %s%.0f samples/s  logloss %.5f  auc %.4f  rows %s  hit ratio %s%s\n",
               static_cast<unsigned long long>(trainer_->steps()),
               ProgressText(Fraction(), fraction_before_, seconds).c_str(),
               static_cast<double>(scores_.samples() - samples_before_) / seconds, scores_.loss(),
               scores_.auc(), TextOf(CountRows(*trainer_), store).c_str(),
               TextOf(StepWork().answers, store).c_str(), left_out.c_str());
  begin_ns_ += SteadyClock()->NowNs() - shown_ns;
}

}  // namespace embank
