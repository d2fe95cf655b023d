// Trainings by roles, beside those of one process; and roles that disappear.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <limits>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "base/str_cat.h"
#include "tests/support/manual_clock.h"
#include "tests/support/scratch_directory.h"
#include "tests/support/threads.h"
#include "tests/train/role_scene.h"
#include "tests/train/trained_rows.h"
#include "train/hybrid/local_slice_rows.h"
#include "train/hybrid/role_set.h"
#include "train/models/model_table.h"
#include "train/ranks/local_exchange.h"
#include "train/roles/long_work.h"
#include "train/roles/mailboxes.h"
#include "train/roles/round_transport.h"

namespace embank::test::role_trainer_test {
namespace {

constexpr uint32_t kBatch = 50;
// The last batch has fewer samples than slices.
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr uint64_t kSamples = 8 * kBatch + 5;
#else
constexpr uint64_t kSamples = 40 * kBatch + 5;
#endif
constexpr uint64_t kIds = 300;

TrainerOptions OptionsOf(const std::string& model) {
  TrainerOptions options;
  options.model = *FindModel(model);
  options.dim = 8;
  options.batch = kBatch;
  options.threads = 1;
  options.store.worker_threads = 1;
  return options;
}

std::unique_ptr<Trainer> OpenTrainer(const TrainerOptions& options) {
  NumberedSamples source(1, kIds);
  StatusOr<std::unique_ptr<Trainer>> trainer = Trainer::Open(options, source.columns());
  EXPECT_TRUE(trainer.ok()) << trainer.status();
  return trainer.ok() ? *std::move(trainer) : nullptr;
}

std::vector<double> TrainInOneProcess(Trainer* trainer, uint64_t first, uint64_t end) {
  NumberedSamples source(end, kIds);
  EXPECT_TRUE(source.SkipTo(first).ok());
  std::vector<double> losses;
  std::vector<float> logits;
  for (ClickBatch batch; *source.Next(kBatch, &batch) > 0;) {
    const StatusOr<double> loss = trainer->Step(batch, &logits);
    EXPECT_TRUE(loss.ok()) << loss.status();
    losses.push_back(loss.value_or(0.0));
  }
  return losses;
}

struct Counts {
  uint32_t loaders, embedding_workers, nn_workers;
};

RolePlan PlanOf(const Counts& counts, const TrainerOptions& options) {
  return {.loaders = counts.loaders,
          .embedding_workers = counts.embedding_workers,
          .nn_workers = counts.nn_workers,
          .slices = options.slices,
          .batch = options.batch,
          .buffer_samples = 3 * options.batch};
}

RoleReport TrainWithRoles(const Counts& counts, const TrainerOptions& options, Trainer* trainer,
                          uint64_t first, uint64_t end, std::vector<double>* losses) {
  NumberedSamples source(end, kIds);
  EXPECT_TRUE(source.SkipTo(first).ok());
  const RoleTraining training = {
      .plan = PlanOf(counts, options),
      .options = options,
      .columns = source.columns(),
      .trainer = trainer,
      .source = &source,
      .on_step = [&](const RoleStep& step) { losses->push_back(step.loss); }};
  const StatusOr<RoleReport> report = TrainByRoles(training);
  EXPECT_TRUE(report.ok()) << report.status();
  return report.value_or(RoleReport());
}

void ExpectSame(Trainer* by_roles, Trainer* one) {
  EXPECT_TRUE(std::ranges::equal(by_roles->weights(), one->weights()));
  EXPECT_EQ(by_roles->steps(), one->steps());
  for (size_t i = 0; i < one->tables().size(); ++i) {
    EXPECT_TRUE(RowsIn(by_roles->tables()[i]) == RowsIn(one->tables()[i]))
        << one->tables()[i]->name();
  }
}

TEST(RoleTrainer, HasTheBitsOfOneProcess) {
  TrainerOptions scheduled = OptionsOf("wide-deep");
  scheduled.row = {Optimizer::kAdam, {.learning_rate = 0.01f}};
  scheduled.dense = {Optimizer::kAdam, {.learning_rate = 0.002f, .max_gradient_norm = 0.5f}};
  scheduled.schedule = {.curve = RateCurve::kCosine, .warmup_steps = 3, .steps = 20};
  const struct {
    const char* name;
    TrainerOptions options;
    Counts counts;
  } cases[] = {{"one role each", OptionsOf("deep-fm"), {1, 1, 1}},
               {"as in the issue", OptionsOf("dlrm"), {1, 2, 2}},
               {"many roles", OptionsOf("wide-deep"), {3, 5, 8}},
               {"with schedules", scheduled, {2, 3, 4}}};
  for (const auto& [name, options, counts] : cases) {
    SCOPED_TRACE(name);
    const auto one = OpenTrainer(options);
    const auto by_roles = OpenTrainer(options);
    const std::vector<double> expected = TrainInOneProcess(one.get(), 0, kSamples);
    std::vector<double> losses;
    const RoleReport report = TrainWithRoles(counts, options, by_roles.get(), 0, kSamples, &losses);
    EXPECT_EQ(losses, expected);
    ExpectSame(by_roles.get(), one.get());
    EXPECT_EQ(report.loaders.sent, kSamples);
    EXPECT_EQ(report.embedding_workers.done, kSamples);
    EXPECT_EQ(report.nn_workers.done, kSamples);
    EXPECT_EQ(report.embedding_workers.lost + report.nn_workers.lost, 0u);
    EXPECT_EQ(report.samples_buffered, 0u);
    EXPECT_LE(report.embedding_workers.samples_most, 3 * kBatch);
    EXPECT_GT(report.messages.bytes_of(MessageKind::kVectors), kSamples * sizeof(float));
  }
}

// Steps the rows of the samples of a batch of one slice; the gradients of a sample are its dense
// feature. Returns how many ids were left out.
uint64_t StepRowsOf(const TrainerOptions& options, Trainer* trainer, const ClickBatch& batch,
                    std::span<const KeptSample> kept) {
  const ClickColumns columns = NumberedSamples(1, kIds).columns();
  LocalSliceRows rows(options, TablesOf(options, columns), trainer->tables(), 0);
  std::vector<std::vector<float>> values;
  std::vector<Matrix> vectors;
  for (const PooledFeature& feature : rows.features()) {
    values.emplace_back(batch.samples * feature.dim);
    vectors.emplace_back(values.back().data(), batch.samples, feature.dim);
  }
  EXPECT_TRUE(rows.Pool({0, 0}, batch, vectors).ok());
  for (const Matrix& gradients : vectors) {
    for (uint32_t i = 0; i < batch.samples; ++i) {
      std::ranges::fill(gradients.Row(i), batch.dense[i] + 0.25f);
    }
  }
  const std::vector<ConstMatrix> gradients(vectors.begin(), vectors.end());
  EXPECT_TRUE(rows.End({0, 0}, kept, gradients).ok());
  EXPECT_EQ(rows.stepped(), 1u);
  return rows.left_out();
}

TEST(RoleTrainer, ALostSampleHasNoPartInTheStepOfRows) {
  TrainerOptions options = OptionsOf("wide-deep");
  options.slices = 1;
  NumberedSamples source(12, 5);  // ids that occur in several samples
  ClickBatch all, left;
  ASSERT_EQ(*source.Next(12, &all), 12u);
  left.Clear(all.features.size());
  std::vector<KeptSample> kept, every;
  for (const uint32_t sample : {0, 1, 4, 5, 6, 9, 11}) {
    AppendSample(all, sample, &left);
    every.push_back({left.samples - 1, left.samples - 1});
    kept.push_back({sample, sample});
  }
  const auto with_lost = OpenTrainer(options);
  const auto without = OpenTrainer(options);
  EXPECT_EQ(StepRowsOf(options, with_lost.get(), all, kept), 0u);
  EXPECT_EQ(StepRowsOf(options, without.get(), left, every), 0u);
  for (size_t i = 0; i < without->tables().size(); ++i) {
    const TableRows found = RowsIn(with_lost->tables()[i]);
    for (const auto& [id, row] : RowsIn(without->tables()[i])) EXPECT_EQ(found.at(id), row) << id;
  }
}

TEST(RoleTrainer, SumsThatAreNotFiniteAreLeftOut) {
  TrainerOptions options = OptionsOf("ffnn");
  options.slices = 1;
  NumberedSamples source(3);
  ClickBatch batch;
  ASSERT_EQ(*source.Next(3, &batch), 3u);
  batch.dense[0] = std::numeric_limits<float>::infinity();
  const auto trainer = OpenTrainer(options);
  // Sample 0 alone has id 0 of the first table, and with sample 1 id 0 of the other one.
  const std::vector<KeptSample> all = {{0, 0}, {1, 1}, {2, 2}};
  EXPECT_GE(StepRowsOf(options, trainer.get(), batch, all), 2u);
  EXPECT_EQ(RowsIn(trainer->tables()[0]).size(), 3u);
  const StatusOr<std::unique_ptr<DenseModel>> model =
      DenseModel::Create(options, source.columns(), 1);
  ASSERT_TRUE(model.ok());
  const std::span<float> weights = (*model)->parameters()[0];
  const std::vector<float> before(weights.begin(), weights.end());
  (*model)->SumSlices()[0] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_FALSE((*model)->Step(0));
  EXPECT_TRUE(std::ranges::equal(weights, before));
}

// A training by roles goes on where another way of training has ended, and the other way round.
TEST(RoleTrainer, GoesOnAtACheckpoint) {
  const ScratchDirectory directory;
  TrainerOptions options = OptionsOf("wide-deep");
  const auto whole = OpenTrainer(options);
  const uint64_t part = kSamples / kBatch / 4 * kBatch;
  std::vector<double> losses;
  const std::vector<double> expected = TrainInOneProcess(whole.get(), 0, 3 * part);
  options.store.path = directory.path();
  for (uint64_t i = 0; i < 3; ++i) {
    const auto trainer = OpenTrainer(options);
    EXPECT_EQ(trainer->steps(), i * part / kBatch);
    if (i == 1) {
      const auto more = TrainInOneProcess(trainer.get(), i * part, (i + 1) * part);
      losses.insert(losses.end(), more.begin(), more.end());
    } else {
      TrainWithRoles({1, 2, 2}, options, trainer.get(), i * part, (i + 1) * part, &losses);
    }
    EXPECT_TRUE(trainer->Checkpoint((i + 1) * part).ok());
  }
  EXPECT_EQ(losses, expected);
  const auto last = OpenTrainer(options);
  ExpectSame(last.get(), whole.get());
}

TEST(RoleTrainer, ALossThatIsNotFiniteChangesNoRow) {
  TrainerOptions options = OptionsOf("deep-fm");
  options.row = {Optimizer::kSgd, {.learning_rate = 1e30f}};
  options.dense = {Optimizer::kSgd, {.learning_rate = 1e-6f}};
  NumberedSamples source(1, kIds);
  const auto one = OpenTrainer(options);
  const auto by_roles = OpenTrainer(options);
  std::vector<float> logits;
  Status of_one;
  NumberedSamples samples(kSamples, kIds);
  for (ClickBatch batch; of_one.ok() && *samples.Next(kBatch, &batch) > 0;) {
    of_one = one->Step(batch, &logits).status();
  }
  NumberedSamples again(kSamples, kIds);
  const RoleTraining training = {.plan = PlanOf({1, 2, 2}, options),
                                 .options = options,
                                 .columns = again.columns(),
                                 .trainer = by_roles.get(),
                                 .source = &again,
                                 .on_step = [](const RoleStep&) {}};
  const Status of_roles = TrainByRoles(training).status();
  EXPECT_TRUE(IsOutOfRange(of_one)) << of_one;
  EXPECT_TRUE(IsOutOfRange(of_roles)) << of_roles;
  EXPECT_NE(of_roles.message().find(of_one.message()), std::string_view::npos) << of_roles;
  for (size_t i = 0; i < one->tables().size(); ++i) {
    EXPECT_TRUE(RowsIn(by_roles->tables()[i]) == RowsIn(one->tables()[i]));
  }
}

// Gives its samples up to one, where its data are damaged.
class DamagedSamples final : public ClickSource {
 public:
  explicit DamagedSamples(uint64_t good) : good_(good), samples_(kSamples, kIds) {}

  const ClickColumns& columns() const override { return samples_.columns(); }
  StatusOr<uint32_t> Next(uint32_t samples_max, ClickBatch* batch) override {
    EMBANK_ASSIGN_OR_RETURN(const uint32_t samples, samples_.Next(samples_max, batch));
    if (samples_.position().place > good_) return DataLossError("a damaged file");
    return samples;
  }
  DataPosition position() const override { return samples_.position(); }
  Status SkipTo(DataPosition position) override { return samples_.SkipTo(position); }
  double FractionRead() const override { return 0.0; }

 private:
  const uint64_t good_;
  NumberedSamples samples_;
};

// The batches before it are trained, and a run can go on after them.
TEST(RoleTrainer, DataThatFailEndAfterTheBatchesBefore) {
  const TrainerOptions options = OptionsOf("deep-fm");
  const auto one = OpenTrainer(options);
  const std::vector<double> expected = TrainInOneProcess(one.get(), 0, 5 * kBatch);
  for (const Counts& counts : {Counts{1, 1, 1}, Counts{3, 2, 2}}) {
    const auto by_roles = OpenTrainer(options);
    DamagedSamples source(5 * kBatch + 7);
    std::vector<double> losses;
    const RoleTraining training = {
        .plan = PlanOf(counts, options),
        .options = options,
        .columns = source.columns(),
        .trainer = by_roles.get(),
        .source = &source,
        .on_step = [&](const RoleStep& step) { losses.push_back(step.loss); }};
    const StatusOr<RoleReport> report = TrainByRoles(training);
    ASSERT_TRUE(report.ok()) << report.status();
    EXPECT_EQ(report->failure_of_data, DataLossError("a damaged file"));
    EXPECT_EQ(report->end.position, DataPosition(5 * kBatch));
    EXPECT_EQ(losses, expected);
    ExpectSame(by_roles.get(), one.get());
  }
}

// The statuses of the ranks of a training; rank `absent` has ended before.
std::vector<Status> TrainOnRanks(const Counts& counts, const TrainerOptions& options,
                                 Trainer* trainer, uint32_t absent, std::vector<double>* losses) {
  const RolePlan plan = PlanOf(counts, options);
  std::vector<std::unique_ptr<Exchange>> exchanges =
      MakeLocalExchanges(RoundTransport::RanksOf(plan));
  std::vector<Status> statuses(exchanges.size());
  OnThreads(exchanges.size(), [&](uint64_t rank) {
    if (rank == absent) return exchanges[rank].reset();
    NumberedSamples source(kSamples, kIds);
    const RoleTraining training = {
        .plan = plan,
        .options = options,
        .columns = source.columns(),
        .trainer = trainer,
        .source = &source,
        .on_step = [&](const RoleStep& step) { losses->push_back(step.loss); }};
    statuses[rank] = TrainByRoleRanks(training, exchanges[rank].get()).status();
  });
  return statuses;
}

TEST(RoleTrainer, RanksHaveTheBitsOfOneProcess) {
  const TrainerOptions options = OptionsOf("wide-deep");
  const auto one = OpenTrainer(options);
  const std::vector<double> expected = TrainInOneProcess(one.get(), 0, kSamples);
  for (const Counts& counts : {Counts{1, 1, 1}, Counts{2, 1, 4}}) {
    const auto by_roles = OpenTrainer(options);
    std::vector<double> losses;
    for (const Status& status :
         TrainOnRanks(counts, options, by_roles.get(), UINT32_MAX, &losses)) {
      EXPECT_TRUE(status.ok()) << status;
    }
    EXPECT_EQ(losses, expected);
    ExpectSame(by_roles.get(), one.get());
  }
}

TEST(RoleTrainer, ARankThatEndsIsNamedWithItsRole) {
  const TrainerOptions options = OptionsOf("wide-deep");
  const auto trainer = OpenTrainer(options);
  std::vector<double> losses;
  const std::vector<Status> statuses = TrainOnRanks({1, 1, 2}, options, trainer.get(), 2, &losses);
  for (const uint32_t rank : {0, 1, 3}) {
    EXPECT_TRUE(IsCancelled(statuses[rank]));
    EXPECT_EQ(statuses[rank].message(),
              "rank 2: the rank ended; the ranks are 0 loader 0, 1 embedding worker 0, 2 NN worker "
              "0, 3 NN worker 1");
  }
}

// Counts the calls of a rank, and tells of each.
class CountedExchange final : public Exchange {
 public:
  CountedExchange(Exchange* inner, std::atomic<uint64_t>* runs)
      : Exchange(inner->rank(), inner->ranks()), inner_(inner), runs_(runs) {}
  Status Run(const ExchangeSource& source, const ExchangeTarget& target) override {
    Status status = inner_->Run(source, target);
    runs_->fetch_add(1);
    runs_->notify_all();
    return status;
  }
  std::unique_ptr<Exchange> Duplicate() override { return inner_->Duplicate(); }
  Status Barrier() override { return inner_->Barrier(); }
  void Abort(std::string_view reason) override { inner_->Abort(reason); }

 private:
  Exchange* const inner_;
  std::atomic<uint64_t>* const runs_;
};

// The work ends after the ranks have met several times.
TEST(RoleTrainer, RanksMeetWhileOneOfThemWorksLong) {
  for (const Status& expected : {OkStatus(), UnavailableError("a full disk")}) {
    std::vector<std::unique_ptr<Exchange>> exchanges = MakeLocalExchanges(3);
    std::atomic<uint64_t> runs{0};
    std::vector<Status> statuses(exchanges.size());
    OnThreads(exchanges.size(), [&](uint64_t rank) {
      CountedExchange counted(exchanges[rank].get(), &runs);
      statuses[rank] = RunLongWork(&counted, 1, /*interval_ns=*/1'000'000, [&] {
        EXPECT_EQ(rank, 1u);
        for (uint64_t seen = 0; seen < 60; seen = runs.load()) runs.wait(seen);
        return expected;
      });
    });
    EXPECT_EQ(statuses[1].code(), expected.code());
    for (const Status& status : statuses) EXPECT_EQ(status, statuses[1]);
  }
}

// A role that does nothing, and is never done.
class Idle : public Role {
 public:
  Idle(RoleAddress address, Transport* transport) : Role(address, transport) {}
  Status Receive(Message /*message*/) override { return OkStatus(); }
  bool is_done() const override { return false; }
};

class Failing final : public Idle {
 public:
  using Idle::Idle;
  Status Start() override { throw std::runtime_error("no power"); }
};

// The clock moves with each look at it, and so with each look for messages.
TEST(RoleTrainer, ARoleThatDisappearsIsNamed) {
  const RoleAddress roles[] = {{RoleKind::kLoader, 0}, {RoleKind::kNnWorker, 1}};
  const ManualClock clock(/*tick_ns=*/500'000'000);
  Mailboxes boxes(roles, 5'000'000'000, &clock);
  Idle loader(roles[0], &boxes);
  EXPECT_EQ(boxes.Run(&loader),
            UnavailableError("NN worker 1 has disappeared: it looked for no message for 5 s"));
}

// It looks for messages some times, and then it is done. Its clock moves beside it.
class Busy final : public Idle {
 public:
  Busy(RoleAddress address, Transport* transport, uint64_t looks, std::function<void()> on_look)
      : Idle(address, transport), looks_left_(looks), on_look_(std::move(on_look)) {}
  Status Tick() override {
    on_look_();
    --looks_left_;
    return OkStatus();
  }
  bool is_done() const override { return looks_left_ == 0; }

 private:
  uint64_t looks_left_;
  const std::function<void()> on_look_;
};

TEST(RoleTrainer, ARoleThatWaitsForDataHasNotDisappeared) {
  const RoleAddress roles[] = {{RoleKind::kLoader, 0}, {RoleKind::kNnWorker, 1}};
  const ManualClock clock(/*tick_ns=*/500'000'000);
  Mailboxes boxes(roles, 5'000'000'000, &clock);
  boxes.SetWaitsOutside(roles[0], true);
  Busy worker(roles[1], &boxes, 20, [] {});
  EXPECT_EQ(boxes.Run(&worker), OkStatus());
}

// A role that was stopped itself knows nothing of the others.
TEST(RoleTrainer, AProcessThatWasStoppedGoesOn) {
  const RoleAddress roles[] = {{RoleKind::kLoader, 0}, {RoleKind::kNnWorker, 1}};
  ManualClock clock(/*tick_ns=*/100'000'000);
  Mailboxes boxes(roles, 5'000'000'000, &clock);
  uint64_t looks = 0;
  Busy worker(roles[1], &boxes, 10, [&] {
    if (++looks == 5) clock.Advance(3'600'000'000'000);
  });
  EXPECT_EQ(boxes.Run(&worker), OkStatus());
}

// The system refuses the second thread.
class RefusedThread final : public Executor {
 public:
  void ParallelFor(uint32_t tasks, FunctionRef<void(uint32_t)> body) override {
    inner_->ParallelFor(tasks, body);
  }
  std::unique_ptr<BackgroundTask> MakeBackgroundTask(BackgroundStep step) override {
    return inner_->MakeBackgroundTask(std::move(step));
  }
  std::unique_ptr<JoinedThread> MakeThread(std::function<void()> body) override {
    return ++threads_ == 2 ? nullptr : inner_->MakeThread(std::move(body));
  }
  uint32_t concurrency() const override { return 1; }

 private:
  const std::unique_ptr<Executor> inner_ = MakeThreadPool(1);
  uint32_t threads_ = 0;
};

TEST(RoleTrainer, ARefusedThreadIsToldAtOnce) {
  const TrainerOptions options = OptionsOf("ffnn");
  const auto trainer = OpenTrainer(options);
  NumberedSamples source(kSamples, kIds);
  RefusedThread executor;
  const RoleTraining training = {.plan = PlanOf({1, 1, 2}, options),
                                 .options = options,
                                 .columns = source.columns(),
                                 .trainer = trainer.get(),
                                 .source = &source,
                                 .on_step = [](const RoleStep&) {},
                                 .executor = &executor};
  EXPECT_EQ(TrainByRoles(training).status(),
            UnavailableError("embedding worker 0: the system refuses a thread"));
}

TEST(RoleTrainer, AFailureOfOneRoleEndsAll) {
  const RolePlan plan;
  Mailboxes boxes(plan.Roles(), 5'000'000'000);
  std::vector<Status> statuses(plan.Roles().size());
  OnThreads(statuses.size(), [&](uint64_t i) {
    Idle idle(plan.Roles()[i], &boxes);
    Failing failing(plan.Roles()[i], &boxes);
    statuses[i] = boxes.Run(i == 1 ? &failing : &idle);
  });
  for (const Status& status : statuses) {
    EXPECT_EQ(status, UnavailableError("embedding worker 0: no power"));
  }
}

}  // namespace
}  // namespace embank::test::role_trainer_test
