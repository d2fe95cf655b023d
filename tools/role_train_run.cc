// The part of a training's run that is by roles.
#include "base/status_macros.h"
#include "base/threads/clock.h"
#include "tools/rank_output.h"
#include "tools/role_run.h"
#include "tools/train_data.h"
#include "tools/train_run.h"
#include "train/bytes/byte_source.h"

namespace embank {

// With several loaders each rank of one reads the lines of all, and none could tell the others
// where it has ended.
bool TrainRun::TakesSignalsOfRoles() const {
  const bool has_path = !command_.trainer.store.path.empty();
  const bool can_end = role_exchange_ == nullptr || command_.role_plan->loaders == 1;
  return has_path && can_end && command_.takes_signals;
}

// The rank of a role without the trainer. All ranks skip what was trained, so that none is late.
// Loaders read the same lines: the first one tells which are broken.
Status TrainRun::ServeRole() {
  if (role_start_.position.place > source_->position().place) {
    EMBANK_RETURN_IF_ERROR(source_->SkipTo(role_start_.position));
  }
  if (TakesSignalsOfRoles()) signals_.emplace(EndWaits);
  const StatusOr<RoleReport> report = RunRoles(command_,
                                               {.source = source_.get(),
                                                .steps_before = role_start_.steps,
                                                .wants_end = [this] { return HasSignal(); }},
                                               role_exchange_);
  Status status = report.status();
  if (status.ok()) {
    status = WithAllRanks(command_, role_exchange_, [] { return OkStatus(); });
    status.Update(report->failure_of_data);
  }
  if (log_ == nullptr || role_exchange_->rank() != 0) return status;
  SetSilent(false);
  PrintBroken(Broken());
  return status;
}

// A thread of a role reads the source: until it has ended, only steps tell how far the run is.
Status TrainRun::TrainByRoles() {
  BeginTiming();
  if (TakesSignalsOfRoles()) signals_.emplace(EndWaits);
  if (trainer_->steps() > 0) saved_step_ = trainer_->steps();
  EMBANK_ASSIGN_OR_RETURN(role_report_, RunRoles(command_,
                                                 {.trainer = trainer_.get(),
                                                  .source = source_.get(),
                                                  .steps_before = trainer_->steps(),
                                                  .wants_end = [this] { return HasSignal(); },
                                                  .on_step =
                                                      [this](const RoleStep& step) {
                                                        scores_.Add(step.logits, step.labels);
                                                        CountStep();
                                                      }},
                                                 role_exchange_));
  figures_.seconds = static_cast<double>(SteadyClock()->NowNs() - begin_ns_) * 1e-9;
  fraction_ = source_->FractionRead();
  position_ = role_report_->end.position;
  failure_ = role_report_->failure_of_data;
  const bool was_stopped = role_report_->end.was_stopped != 0;
  if (was_stopped) NoteSignal("makes its checkpoint; a second signal ends this at once");
  EMBANK_RETURN_IF_ERROR(WithAllRanks(command_, role_exchange_, [&]() -> Status {
    if (trainer_->steps() == 0) {
      const bool has_none = failure_.ok() && !was_stopped;
      return has_none ? NoSample("--data", command_.data, "training") : failure_;
    }
    const bool has_path = trainer_->store().checkpoints() != nullptr;
    return has_path ? Save() : OkStatus();
  }));
  TellIfAllAreTrained(failure_.ok() && !was_stopped);
  if (evaluations_.has_data() && stopped_by_.empty() && failure_.ok()) Evaluate();
  return OkStatus();
}

// Roles count what their sums left out.
Trainer::LeftOut TrainRun::LeftOut() const {
  Trainer::LeftOut left = trainer_->left_out();
  if (!role_report_) return left;
  left.rows += role_report_->left_out_rows;
  left.dense_steps += role_report_->left_out_steps;
  return left;
}

}  // namespace embank
