// The protocol of loaders and workers, with messages that are late, lost, doubled and in any order:
// each sample is applied once, or counted as lost.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "tests/support/environment.h"
#include "tests/support/manual_clock.h"
#include "tests/support/random.h"
#include "tests/train/role_scene.h"
#include "train/hybrid/embedding_worker.h"
#include "train/hybrid/loader.h"
#include "train/hybrid/nn_worker.h"
#include "train/hybrid/sample_buffer.h"
#include "train/hybrid/sample_messages.h"
#include "train/hybrid/trainer_role.h"

namespace embank::test::role_protocol_test {
namespace {

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr uint64_t kSeeds = 10;
#else
constexpr uint64_t kSeeds = 100;
#endif
constexpr float kGradientOffset = 0.5f;

// A fault hits one of this many messages or samples; 0: none.
struct Faults {
  uint64_t lost = 0;
  uint64_t doubled = 0;
  uint64_t late = 0;          // come after their slice has expired
  uint64_t lost_samples = 0;  // inside of messages
};

bool IsOfSamples(MessageKind kind) { return kind <= MessageKind::kGradients; }

// Whether a role counts a message that comes again. Of the others the last one holds.
bool IsCounted(const MessageHeader& header) {
  return IsOfSamples(header.kind) || header.kind == MessageKind::kDenseParts ||
         header.kind == MessageKind::kDenseSums ||
         (header.kind == MessageKind::kParameters && header.to.kind == RoleKind::kNnWorker);
}

Message CopyOf(const Message& message) {
  const std::span<const std::byte> bytes = message.bytes();
  auto memory = std::make_shared<MessageMemory>(bytes.size());
  std::memcpy(memory->data(), bytes.data(), bytes.size());
  StatusOr<Message> copy = Message::Received(memory, {memory->data(), bytes.size()});
  EXPECT_TRUE(copy.ok()) << copy.status();
  return *std::move(copy);
}

// Gives messages in any order.
class FaultyTransport final : public Transport {
 public:
  FaultyTransport(uint64_t seed, const Faults& faults) : random_(seed), faults_(faults) {}

  bool empty() const { return messages_.empty(); }
  Message Take() {
    std::swap(messages_[random_.Below(messages_.size())], messages_.back());
    Message message = std::move(messages_.back());
    messages_.pop_back();
    return message;
  }
  void ReleaseLate() {
    for (Message& message : late_) messages_.push_back(std::move(message));
    late_.clear();
  }
  // An id that was given lately; 0: none yet.
  SampleId AnyId() { return ids_.empty() ? 0 : ids_[random_.Below(ids_.size())]; }

  Random* random() { return &random_; }
  uint64_t doubled() const { return doubled_; }
  bool are_ids_used_again() const { return are_ids_used_again_; }

 private:
  static constexpr size_t kLately = 32;

  bool Is(uint64_t one_in) { return one_in > 0 && random_.OneIn(one_in); }
  void Deliver(Message message) override {
    const MessageHeader& header = message.header();
    if (header.kind == MessageKind::kSampleIds) NoteIds(message);
    const bool may_be_lost = IsOfSamples(header.kind) || header.kind == MessageKind::kProgress ||
                             header.kind == MessageKind::kAskProgress ||
                             header.kind == MessageKind::kRowsStepped;
    if (may_be_lost && Is(faults_.lost)) return;
    if (Is(faults_.doubled)) {
      doubled_ += IsCounted(header) ? 1 : 0;
      messages_.push_back(CopyOf(message));
    }
    (may_be_lost && Is(faults_.late) ? late_ : messages_).push_back(std::move(message));
  }
  void NoteIds(const Message& message) {
    for (const SampleId id : message.View<SampleId>(0)) {
      const uint64_t worker = id >> SampleIds::kCountBits;
      auto [next, is_first] = next_ids_.try_emplace(worker, id);
      are_ids_used_again_ |= id < next->second;
      next->second = id + 1;
      if (ids_.size() < kLately) ids_.push_back(id);
      ids_[id % ids_.size()] = id;
    }
  }

  Random random_;
  const Faults faults_;
  std::vector<Message> messages_, late_;
  std::vector<SampleId> ids_;
  std::map<uint64_t, SampleId> next_ids_;
  uint64_t doubled_ = 0;
  bool are_ids_used_again_ = false;
};

// The vector of a sample is its number, and so is its gradient, with an offset.
class NumberedRows final : public SliceRows {
 public:
  NumberedRows(uint64_t samples, uint32_t slices) : applied_(samples), slices_(slices) {}

  std::span<const PooledFeature> features() const override { return features_; }
  Status Pool(SliceKey key, ClickBatch samples, std::span<const Matrix> vectors) override {
    wrong_ += key.batch > stepped_;
    for (uint32_t i = 0; i < samples.samples; ++i) {
      vectors[0].Row(i)[0] = static_cast<float>(samples.features[0].ids[i]);
      const std::vector<uint32_t>& bags = samples.features[1].offsets;
      vectors[1].Row(i)[0] = static_cast<float>(bags[i + 1] - bags[i]);
      vectors[1].Row(i)[1] = vectors[0].Row(i)[0];
    }
    pooled_[key] = std::move(samples.features[0].ids);
    return OkStatus();
  }
  Status End(SliceKey key, std::span<const KeptSample> kept,
             std::span<const ConstMatrix> gradients) override {
    for (const KeptSample& sample : kept) {
      const uint64_t number = pooled_.at(key)[sample.sample];
      wrong_ += gradients[0].Row(sample.row)[0] != static_cast<float>(number) + kGradientOffset;
      wrong_ += gradients[1].Row(sample.row)[1] != static_cast<float>(number);
      ++applied_[number];
    }
    wrong_ += !ended_[key.batch].insert(key.slice).second;
    while (ended_.contains(stepped_) && ended_[stepped_].size() == slices_) ++stepped_;
    return OkStatus();
  }
  uint64_t stepped() const override { return stepped_; }

  uint64_t wrong() const { return wrong_; }
  uint64_t applied() const { return std::ranges::count(applied_, 1u); }
  bool is_any_applied_again() const {
    return std::ranges::any_of(applied_, [](uint32_t times) { return times > 1; });
  }

 private:
  const std::array<PooledFeature, 2> features_ = {PooledFeature{0, 1}, PooledFeature{1, 2}};
  std::vector<uint32_t> applied_;  // times of each sample
  const uint32_t slices_;
  std::map<SliceKey, std::vector<uint64_t>> pooled_;
  std::map<uint64_t, std::set<uint32_t>> ended_;
  uint64_t stepped_ = 0;
  uint64_t wrong_ = 0;
};

// Compares the parts of samples, and counts them in the place of dense gradients.
class NumberedWork final : public DenseWork {
 public:
  double RunSlice(const DenseSlice& slice) override {
    for (uint32_t i = 0; i < slice.logits.size(); ++i) {
      const float number = slice.input.features[0].Row(i)[0];
      wrong_ += slice.input.dense.Row(i)[0] != number;
      wrong_ += slice.input.features[1].Row(i)[1] != number;
      wrong_ += slice.labels[i] != NumberedSamples::LabelOf(static_cast<uint64_t>(number));
      slice.vector_gradients[0].Row(i)[0] = number + kGradientOffset;
      slice.vector_gradients[1].Row(i)[0] = 0.0f;
      slice.vector_gradients[1].Row(i)[1] = number;
      slice.logits[i] = number;
    }
    sums_[40] += static_cast<float>(slice.logits.size());
    return static_cast<double>(slice.logits.size());
  }
  std::span<float> SumSlices() override { return sums_; }
  bool Step(uint64_t step) override {
    wrong_ += step != steps_++;
    trained_ += static_cast<uint64_t>(sums_[40]);
    std::ranges::fill(sums_, 0.0f);
    return step % 3 != 0;
  }
  std::array<std::span<float>, 2> parameters() override { return {weights_, state_}; }

  uint64_t wrong() const { return wrong_; }
  uint64_t trained() const { return trained_; }  // by all workers

 private:
  std::vector<float> sums_ = std::vector<float>(70);
  std::vector<float> weights_ = std::vector<float>(3);
  std::vector<float> state_ = std::vector<float>(2);
  uint64_t steps_ = 0;
  uint64_t trained_ = 0;
  uint64_t wrong_ = 0;
};

class World {
 public:
  World(uint64_t seed, uint64_t samples, const Faults& faults)
      : transport_(seed, faults),
        faults_(faults),
        plan_(PlanOf(seed)),
        source_(samples),
        supply_(&source_, {.batch = plan_.batch}),
        rows_(samples, plan_.slices),
        samples_(samples) {
    for (uint16_t i = 0; i < plan_.loaders; ++i) {
      loaders_.push_back(std::make_unique<Loader>(i, plan_, &supply_, &transport_, &clock_));
      roles_[loaders_.back()->address()] = loaders_.back().get();
    }
    for (uint16_t i = 0; i < plan_.embedding_workers; ++i) {
      embedding_workers_.push_back(
          std::make_unique<EmbeddingWorker>(i, plan_, &rows_, &transport_, &clock_));
      roles_[embedding_workers_.back()->address()] = embedding_workers_.back().get();
    }
    const std::span<const PooledFeature> features = rows_.features();
    work_.resize(plan_.nn_workers);
    for (uint16_t i = 0; i < plan_.nn_workers; ++i) {
      nn_workers_.push_back(std::make_unique<NnWorker>(
          i, plan_, std::vector<PooledFeature>(features.begin(), features.end()), &work_[i],
          &transport_, &clock_));
      roles_[nn_workers_.back()->address()] = nn_workers_.back().get();
    }
    trainer_ = std::make_unique<TrainerRole>(
        plan_, std::array<std::span<float>, 2>{weights_, state_}, 0,
        [this](const RoleStep& step) { results_ += step.logits.size(); }, &transport_);
    roles_[trainer_->address()] = trainer_.get();
  }

  void Run() {
    for (const auto& [address, role] : roles_) EXPECT_TRUE(role->Start().ok());
    // Each role waits for an expiry of its own, and few batches have none.
    uint64_t waits_left = 100 + 20 * (samples_ / plan_.batch);
    while (!AreAllDone() && waits_left > 0) {
      if (!transport_.empty()) {
        DeliverOne();
        continue;
      }
      --waits_left;
      clock_.Advance(plan_.expiry_ns / 2);
      for (const auto& [address, role] : roles_) EXPECT_TRUE(role->Tick().ok());
      if (transport_.random()->OneIn(2)) transport_.ReleaseLate();
    }
    EXPECT_TRUE(AreAllDone()) << "the roles wait for each other";
    transport_.ReleaseLate();
    while (!transport_.empty()) DeliverOne();
  }

  // Checks the counts of a run.
  void ExpectEachSampleOnceOrLost() {
    uint64_t sent = 0, unanswered = 0, buffered = 0, wrong = rows_.wrong(), results = 0;
    for (const auto& loader : loaders_) {
      sent += loader->counts().sent;
      unanswered += loader->counts().unanswered;
      dropped_ += loader->counts().dropped_messages;
      delays_ += loader->counts().delays;
    }
    for (const auto& worker : embedding_workers_) {
      counts_ += worker->counts();
      buffered += worker->samples_buffered();
    }
    WorkerCounts nn_counts;
    for (const auto& worker : nn_workers_) {
      nn_counts += worker->counts();
      buffered += worker->samples_buffered();
    }
    for (const NumberedWork& work : work_) {
      wrong += work.wrong();
      EXPECT_EQ(work.trained(), nn_counts.done) << "a sum over NN workers";
    }
    results = results_;
    dropped_ += counts_.dropped_messages + nn_counts.dropped_messages;
    EXPECT_EQ(wrong, 0u);
    EXPECT_EQ(buffered, 0u);
    EXPECT_EQ(sent, samples_);
    EXPECT_EQ(trainer_->steps(), (samples_ + plan_.batch - 1) / plan_.batch);
    EXPECT_EQ(trainer_->left_out_steps(), (trainer_->steps() + 2) / 3);
    EXPECT_EQ(results, nn_counts.done);
    EXPECT_FALSE(transport_.are_ids_used_again());
    EXPECT_FALSE(rows_.is_any_applied_again());
    EXPECT_EQ(rows_.applied(), counts_.done);
    EXPECT_EQ(counts_.taken, counts_.done + counts_.lost);
    EXPECT_EQ(nn_counts.taken, nn_counts.done + nn_counts.lost);
    EXPECT_EQ(counts_.refused, 0u);
    // The ids of the others never came, or came too late.
    EXPECT_GE(unanswered, sent - counts_.taken);
    EXPECT_LE(counts_.samples_most, plan_.buffer_samples);
    if (plan_.window() == 1) {
      EXPECT_GE(delays_, trainer_->steps() - plan_.loaders);
    }
    lost_ = sent - counts_.done;
  }

  uint64_t lost() const { return lost_; }
  uint64_t dropped() const { return dropped_; }
  const FaultyTransport& transport() const { return transport_; }

 private:
  static RolePlan PlanOf(uint64_t seed) {
    Random random(seed + 1000);
    RolePlan plan;
    plan.loaders = static_cast<uint32_t>(random.Between(1, 3));
    plan.embedding_workers = static_cast<uint32_t>(random.Between(1, 4));
    plan.nn_workers = 1u << random.Below(3);
    plan.slices = 4;
    // Some slices have one sample, and some none.
    plan.batch = random.OneIn(4) ? 6 : 40;
    plan.buffer_samples = plan.batch * random.Between(1, 4);
    plan.expiry_ns = 1000;
    plan.retry_ns = 100;
    return plan;
  }

  bool AreAllDone() const {
    return std::ranges::all_of(roles_, [](const auto& role) { return role.second->is_done(); });
  }

  void DeliverOne() {
    Message message = transport_.Take();
    Role* const role = roles_.at(message.header().to);
    const Status status = role->Receive(std::move(message));
    EXPECT_TRUE(status.ok()) << status;
    Random* const random = transport_.random();
    if (faults_.lost_samples == 0 || !random->OneIn(faults_.lost_samples)) return;
    const SampleId id = transport_.AnyId();
    if (random->OneIn(2)) {
      embedding_workers_[id >> SampleIds::kCountBits]->Lose(id);
    } else {
      nn_workers_[random->Below(nn_workers_.size())]->Lose(id);
    }
  }

  FaultyTransport transport_;
  const Faults faults_;
  const RolePlan plan_;
  ManualClock clock_;
  NumberedSamples source_;
  BatchSupply supply_;
  NumberedRows rows_;
  const uint64_t samples_;
  std::vector<NumberedWork> work_;
  std::vector<std::unique_ptr<Loader>> loaders_;
  std::vector<std::unique_ptr<EmbeddingWorker>> embedding_workers_;
  std::vector<std::unique_ptr<NnWorker>> nn_workers_;
  std::unique_ptr<TrainerRole> trainer_;
  std::map<RoleAddress, Role*> roles_;
  std::vector<float> weights_ = std::vector<float>(3);
  std::vector<float> state_ = std::vector<float>(2);
  uint64_t results_ = 0;
  WorkerCounts counts_;  // of embedding workers
  uint64_t lost_ = 0;
  uint64_t dropped_ = 0;
  uint64_t delays_ = 0;
};

TEST(RoleProtocol, EachSampleIsAppliedOnceOrLost) {
  uint64_t lost = 0;
  for (uint64_t seed = FirstSeed(); seed < FirstSeed() + kSeeds; ++seed) {
    SCOPED_TRACE(seed);
    World world(seed, 10'000, {.lost = 100, .doubled = 50, .late = 200, .lost_samples = 50});
    world.Run();
    world.ExpectEachSampleOnceOrLost();
    lost += world.lost();
    if (HasFailure()) break;
  }
  EXPECT_GT(lost, kSeeds * 100);
}

TEST(RoleProtocol, NothingIsLostWhereMessagesComeLateAndTwice) {
  for (uint64_t seed = FirstSeed(); seed < FirstSeed() + 10; ++seed) {
    SCOPED_TRACE(seed);
    World world(seed, 10'000, {.doubled = 10});
    world.Run();
    world.ExpectEachSampleOnceOrLost();
    EXPECT_EQ(world.lost(), 0u);
    EXPECT_GT(world.dropped(), 100u);
    EXPECT_EQ(world.dropped(), world.transport().doubled());
  }
}

TEST(RoleProtocol, EachOfManySamplesIsAppliedOnceOrLost) {
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
  const uint64_t samples = 20'000;
#else
  const uint64_t samples = 1'000'000;
#endif
  World world(FirstSeed(), samples, {.lost = 100, .doubled = 100, .late = 500});
  world.Run();
  world.ExpectEachSampleOnceOrLost();
}

// A transport that keeps what was sent.
class KeptMessages final : public Transport {
 public:
  std::vector<Message> messages;

 private:
  void Deliver(Message message) override { messages.push_back(std::move(message)); }
};

TEST(RoleProtocol, ASampleIsTakenOnce) {
  constexpr uint64_t kSamples = 1'000;
  SampleBuffer buffer;
  for (SampleId id = 0; id < kSamples; ++id)
    buffer.Insert(id, {{id, 1}, static_cast<uint32_t>(id)});
  EXPECT_EQ(buffer.samples(), kSamples);
  EXPECT_FALSE(buffer.Find(kSamples));
  for (SampleId id = 0; id < kSamples; ++id) {
    const std::optional<SamplePlace> found = buffer.Find(id), taken = buffer.Take(id);
    ASSERT_TRUE(found && taken);
    EXPECT_TRUE(taken->key.batch == id && taken->place == id && found->place == id);
    EXPECT_FALSE(buffer.Take(id));
    EXPECT_EQ(buffer.samples(), kSamples - 1 - id);
  }
}

TEST(RoleProtocol, ABatchThatComesTooEarlyIsRefused) {
  const RolePlan plan = {.slices = 1, .batch = 8, .buffer_samples = 8};
  KeptMessages kept;
  NumberedRows rows(100, 1);
  EmbeddingWorker worker(0, plan, &rows, &kept);
  NumberedSamples source(100);
  ClickBatch batch;
  ASSERT_TRUE(source.Next(8, &batch).ok());
  for (const uint64_t number : {1, 0, 2}) {
    MessageHeader header;
    header.kind = MessageKind::kIds;
    header.from = {RoleKind::kLoader, 0};
    header.key = {number, 0};
    EXPECT_TRUE(worker.Receive(MakeIds(header, batch, {0, 8})).ok());
  }
  EXPECT_EQ(worker.counts().refused, 16u) << "batches 1 and 2 come too early";
  EXPECT_EQ(worker.counts().taken, 8u);
  ASSERT_EQ(kept.messages.size(), 1u);
  EXPECT_EQ(kept.messages[0].header().key.batch, 0u);
}

TEST(RoleProtocol, APlanIsChecked) {
  const struct {
    RolePlan plan;
    const char* words;
  } cases[] = {
      {{.loaders = 0}, "there are 0 loaders"},
      {{.embedding_workers = 9}, "9 embedding workers for 8 slices"},
      {{.nn_workers = 3}, "3 NN workers for 8 slices"},
      {{.buffer_samples = 0}, "it holds 0; it must hold a batch, which has 1024"},
      {{.buffer_samples = 1024 * 1024 + 1}, "at most 1024 batches, which have 1048576"},
  };
  for (const auto& [plan, words] : cases) {
    const Status status = Validate(plan);
    EXPECT_TRUE(IsInvalidArgument(status));
    EXPECT_NE(status.message().find(words), std::string_view::npos) << status;
  }
  EXPECT_TRUE(Validate(RolePlan()).ok());
}

}  // namespace
}  // namespace embank::test::role_protocol_test
