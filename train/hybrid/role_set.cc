#include "train/hybrid/role_set.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/status_macros.h"
#include "train/ranks/gathered_texts.h"
#include "train/roles/mailboxes.h"
#include "train/roles/round_transport.h"

namespace embank {

StatusOr<std::unique_ptr<RoleSet>> RoleSet::Make(const RoleTraining& training,
                                                 std::span<const RoleAddress> roles,
                                                 Transport* transport) {
  EMBANK_RETURN_IF_ERROR(Validate(training.plan));
  EMBANK_CHECK(training.plan.slices == training.options.slices &&
               training.plan.batch == training.options.batch);
  std::unique_ptr<RoleSet> set(new RoleSet(training));
  set->keeps_skipped_ = std::ranges::count(roles, RoleKind::kLoader, &RoleAddress::kind) > 1;
  for (const RoleAddress role : roles) EMBANK_RETURN_IF_ERROR(set->Add(role, transport));
  return set;
}

Status RoleSet::Add(RoleAddress address, Transport* transport) {
  const RoleTraining& t = training_;
  const auto add = [this](auto role, auto* all) {
    all->push_back(role.get());
    roles_.push_back(std::move(role));
  };
  switch (address.kind) {
    case RoleKind::kLoader:
      if (supply_ == nullptr) {
        supply_ = std::make_unique<BatchSupply>(
            t.source, BatchSupply::Options{.batch = t.options.batch,
                                           .batches_max = t.batches_max,
                                           .keeps_skipped = keeps_skipped_,
                                           .wants_end = t.wants_end});
      }
      add(std::make_unique<Loader>(address.number, t.plan, supply_.get(), transport, t.clock),
          &loaders_);
      return OkStatus();
    case RoleKind::kEmbeddingWorker:
      if (rows_ == nullptr) {
        rows_ = std::make_unique<LocalSliceRows>(t.options, TablesOf(t.options, t.columns),
                                                 t.trainer->tables(), t.trainer->steps());
      }
      add(std::make_unique<EmbeddingWorker>(address.number, t.plan, rows_.get(), transport,
                                            t.clock),
          &embedding_workers_);
      return OkStatus();
    case RoleKind::kNnWorker:
      return AddNnWorker(address.number, transport);
    case RoleKind::kTrainer:
      AddTrainer(transport);
      return OkStatus();
  }
  return OkStatus();
}

Status RoleSet::AddNnWorker(uint16_t number, Transport* transport) {
  const RoleTraining& t = training_;
  EMBANK_ASSIGN_OR_RETURN(std::unique_ptr<DenseModel> model,
                          DenseModel::Create(t.options, t.columns, t.plan.slices_of_nn_worker()));
  std::vector<PooledFeature> features;
  for (const FeatureTable& table : TablesOf(t.options, t.columns)) {
    features.push_back({.column = table.column, .dim = table.dim});
  }
  auto worker = std::make_unique<NnWorker>(number, t.plan, std::move(features), model.get(),
                                           transport, t.clock);
  nn_workers_.push_back(worker.get());
  roles_.push_back(std::move(worker));
  models_.push_back(std::move(model));
  return OkStatus();
}

void RoleSet::AddTrainer(Transport* transport) {
  const RoleTraining& t = training_;
  EMBANK_CHECK(t.trainer != nullptr && t.on_step);
  DensePass& dense = t.trainer->pass()->dense();
  const auto on_step = [&t](const RoleStep& step) {
    t.trainer->AddSteps(1);
    t.on_step(step);
  };
  auto trainer = std::make_unique<TrainerRole>(
      t.plan, std::array<std::span<float>, 2>{dense.weights(), dense.optimizer_state()},
      t.trainer->steps(), on_step, transport);
  trainer_ = trainer.get();
  roles_.push_back(std::move(trainer));
}

RoleReport RoleSet::Report(const Transport& transport) const {
  RoleReport report;
  for (const Loader* const loader : loaders_) {
    report.loaders += loader->counts();
  }
  for (const EmbeddingWorker* const worker : embedding_workers_) {
    report.embedding_workers += worker->counts();
    report.samples_buffered += worker->samples_buffered();
  }
  for (const NnWorker* const worker : nn_workers_) {
    report.nn_workers += worker->counts();
    report.samples_buffered += worker->samples_buffered();
  }
  report.messages = transport.counts();
  if (trainer_ != nullptr) {
    report.end = trainer_->end();
    report.left_out_steps = trainer_->left_out_steps();
  }
  if (rows_ != nullptr) report.left_out_rows = rows_->left_out();
  if (supply_ != nullptr) report.failure_of_data = supply_->failure();
  return report;
}

StatusOr<RoleReport> TrainByRoles(const RoleTraining& training) {
  const std::vector<RoleAddress> roles = training.plan.Roles();
  Mailboxes boxes(roles, training.time_limit_ns, training.clock);
  EMBANK_ASSIGN_OR_RETURN(const std::unique_ptr<RoleSet> set,
                          RoleSet::Make(training, roles, &boxes));
  // The trainer is the last role, and has the thread of the caller.
  const std::unique_ptr<Executor> own = training.executor == nullptr ? MakeThreadPool(1) : nullptr;
  Executor* const executor = own != nullptr ? own.get() : training.executor;
  std::vector<Status> statuses(roles.size());
  std::vector<std::unique_ptr<JoinedThread>> threads;  // they write the statuses
  for (size_t i = 0; i < roles.size(); ++i) {
    const auto run = [&, i] { statuses[i] = boxes.Run(set->roles()[i].get()); };
    if (i + 1 == roles.size()) {
      run();
      continue;
    }
    threads.push_back(executor->MakeThread(run));
    if (threads.back() != nullptr) continue;
    boxes.Fail(roles[i], UnavailableError("the system refuses a thread"));
  }
  threads.clear();
  EMBANK_RETURN_IF_ERROR(statuses.back());
  for (const Status& status : statuses) EMBANK_RETURN_IF_ERROR(status);
  return set->Report(boxes);
}

StatusOr<RoleReport> TrainByRoleRanks(const RoleTraining& training, Exchange* exchange) {
  EMBANK_CHECK(training.plan.embedding_workers == 1);
  RoundTransport transport(training.plan, exchange);
  const StatusOr<std::unique_ptr<RoleSet>> set =
      RoleSet::Make(training, RoundTransport::RolesOf(training.plan, exchange->rank()), &transport);
  EMBANK_RETURN_IF_ERROR(transport.WithRoles(Agree(exchange, set.status())));
  EMBANK_RETURN_IF_ERROR(transport.Run((*set)->roles()));
  return (*set)->Report(transport);
}

}  // namespace embank
