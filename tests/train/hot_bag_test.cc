// Hot batches with the rows of a bag against the same batches with those of the store: losses,
// weights, rows and states, bit for bit, on any number of ranks; and what crosses the link.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "base/str_cat.h"
#include "tests/support/random.h"
#include "tests/support/scratch_directory.h"
#include "tests/support/threads.h"
#include "tests/train/rank_scene.h"
#include "tests/train/trained_rows.h"
#include "tests/train/trainer_scene.h"
#include "train/hot/hot_bag.h"
#include "train/popularity/id_places.h"

namespace embank::test::hot_bag_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr size_t kBatches = 32;  // each takes up to ten times as long
constexpr uint32_t kTimes = 2;   // that a hot id occurs, so that some half of the batches are hot
#else
constexpr size_t kBatches = 300;
constexpr uint32_t kTimes = 8;
#endif
constexpr uint32_t kBatch = 100;
constexpr uint64_t kHotBatches = 4;  // of a phase; as many cold ones come before them

// Batches that are all hot or all cold, and the hot ids.
struct HotColdData {
  ClickColumns columns;
  std::shared_ptr<const HotIds> hot_ids;
  std::vector<ClickBatch> batches;
};

// Ids that occur often enough are hot. Hot and cold batches have samples in their order, and phases
// alternate.
HotColdData Split(ClickSource* source, uint64_t samples, uint32_t times) {
  HotColdData data = {.columns = source->columns(), .hot_ids = nullptr, .batches = {}};
  const std::vector<std::string>& names =
      data.columns.tables.empty() ? data.columns.ids : data.columns.tables;
  HotIds ids;
  ids.table_of_column = HotIds::TablesOfColumns(names);
  ids.tables.resize(*std::ranges::max_element(ids.table_of_column) + 1);
  ClickBatch all;
  EXPECT_EQ(source->Next(static_cast<uint32_t>(samples), &all).value_or(0), samples);
  std::vector<std::map<Key, uint32_t>> counts(ids.tables.size());
  for (size_t i = 0; i < all.features.size(); ++i) {
    for (const Key id : all.features[i].ids) {
      const uint32_t table = ids.table_of_column[i];
      if (++counts[table][id] == times) ids.tables[table].Add(id);
    }
  }
  const auto is_hot = [&](uint32_t sample) {
    for (size_t i = 0; i < all.features.size(); ++i) {
      const FeatureIds& feature = all.features[i];
      const uint32_t begin = feature.offsets.empty() ? sample : feature.offsets[sample];
      const uint32_t end = feature.offsets.empty() ? sample + 1 : feature.offsets[sample + 1];
      for (uint32_t k = begin; k < end; ++k) {
        if (ids.OfColumn(static_cast<uint32_t>(i)).PlaceOf(feature.ids[k]) == IdPlaces::kNone)
          return false;
      }
    }
    return true;
  };
  std::vector<std::vector<ClickBatch>> classes(2);
  std::vector<ClickBatch> open(2);
  for (ClickBatch& batch : open) batch.Clear(all.features.size());
  for (uint32_t sample = 0; sample < samples; ++sample) {
    const bool hot = is_hot(sample);
    AppendSample(all, sample, &open[hot]);
    if (open[hot].samples < kBatch) continue;
    open[hot].is_hot = hot;
    classes[hot].push_back(open[hot]);
    open[hot].Clear(all.features.size());
  }
  std::vector<size_t> next(2);
  for (uint64_t phase = 0; next[0] < classes[0].size() || next[1] < classes[1].size(); ++phase) {
    const size_t hot = phase % 2;
    for (uint64_t i = 0; i < kHotBatches && next[hot] < classes[hot].size(); ++i) {
      data.batches.push_back(classes[hot][next[hot]++]);
    }
  }
  data.hot_ids = std::make_shared<const HotIds>(std::move(ids));
  return data;
}

const HotColdData& ClickData() {
  static const HotColdData data = [] {
    const uint64_t samples = (kBatches + 2) * kBatch;  // the rest of a class has less than a batch
    const auto source = Data(samples);
    HotColdData split = Split(source.get(), samples, kTimes);
    EXPECT_GE(split.batches.size(), kBatches);
    split.batches.resize(kBatches);
    const auto hot =
        static_cast<size_t>(std::ranges::count(split.batches, true, &ClickBatch::is_hot));
    EXPECT_TRUE(hot >= kBatches / 4 && hot <= kBatches * 3 / 4) << hot;
    return split;
  }();
  return data;
}

// Two features of one table, one with bags, and one with bags and weights.
class BagSource final : public ClickSource {
 public:
  BagSource() {
    columns_.dense = {"d"};
    columns_.ids = {"a", "b", "c"};
    columns_.tables = {"shared", "shared", "c"};
  }
  const ClickColumns& columns() const override { return columns_; }
  StatusOr<uint32_t> Next(uint32_t samples_max, ClickBatch* batch) override {
    batch->Clear(3);
    for (uint32_t i = 0; i < samples_max; ++i) {
      ClickRow row = {.label = static_cast<float>(random_.Below(2)), .ids = {SkewedId(), 0, 0}};
      row.dense = {static_cast<float>(random_.Below(100)) * 0.01f};
      for (uint32_t feature : {1u, 2u}) {
        RowBag& bag = row.bags.emplace_back(RowBag{.feature = feature});
        for (uint64_t k = random_.Below(4); k > 0; --k) {
          bag.ids.push_back(SkewedId());
          if (feature == 2) bag.weights.push_back(static_cast<float>(k) * 0.5f);
        }
      }
      AppendRow(row, batch);
    }
    return samples_max;
  }
  DataPosition position() const override { return {}; }
  Status SkipTo(DataPosition) override { return OkStatus(); }
  double FractionRead() const override { return 0.0; }

 private:
  // A third of all ids is rare.
  Key SkewedId() { return random_.Below(3) == 0 ? 1000 + random_.Below(400) : random_.Below(20); }

  ClickColumns columns_;
  Random random_{5};
};

const HotColdData& BagData() {
  static const HotColdData data = [] {
    BagSource source;
    return Split(&source, 6000, 60);
  }();
  return data;
}

std::vector<double> TrainOn(Trainer* trainer, const std::vector<ClickBatch>& batches,
                            uint64_t end = UINT64_MAX) {
  std::vector<double> losses;
  std::vector<float> logits;
  for (uint64_t i = trainer->steps(); i < std::min<uint64_t>(end, batches.size()); ++i) {
    const StatusOr<double> loss = trainer->Step(batches[i], &logits);
    EXPECT_TRUE(loss.ok()) << loss.status();
    if (!loss.ok()) break;
    losses.push_back(*loss);
  }
  return losses;
}

std::unique_ptr<Trainer> OpenOn(const HotColdData& data, TrainerOptions options, bool has_bag) {
  if (has_bag) options.hot_ids = data.hot_ids;
  StatusOr<std::unique_ptr<Trainer>> trainer = Trainer::Open(options, data.columns);
  EXPECT_TRUE(trainer.ok()) << trainer.status();
  return trainer.ok() ? *std::move(trainer) : nullptr;
}

void ExpectSameTables(Trainer* trainer, Trainer* expected) {
  EXPECT_TRUE(std::ranges::equal(trainer->weights(), expected->weights()));
  ASSERT_EQ(trainer->tables().size(), expected->tables().size());
  for (size_t i = 0; i < expected->tables().size(); ++i) {
    const TableRows rows = RowsIn(expected->tables()[i]);
    EXPECT_GT(rows.size(), 0u);
    EXPECT_TRUE(RowsIn(trainer->tables()[i]) == rows) << expected->tables()[i]->name();
  }
}

uint64_t LookupsOf(Trainer* trainer) {
  uint64_t lookups = 0;
  for (Table* const table : trainer->tables()) {
    lookups += table->counters().calls.Durations(TableVerb::kLookup).count();
  }
  return lookups;
}

// The kinds of training that the bag must not tell from the store.
struct Kind {
  const char* name;
  std::function<void(TrainerOptions*)> change;
};

const Kind kKinds[] = {
    {"adagrad", [](TrainerOptions*) {}},
    {"sgd", [](TrainerOptions* o) { o->row.optimizer = Optimizer::kSgd; }},
    {"row-wise", [](TrainerOptions* o) { o->row.optimizer = Optimizer::kRowwiseAdagrad; }},
    {"adam", [](TrainerOptions* o) { o->row.optimizer = Optimizer::kAdam; }},
    {"ftrl", [](TrainerOptions* o) { o->row.optimizer = Optimizer::kFtrl; }},
    {"clipped",
     [](TrainerOptions* o) {
       o->row.rule.max_gradient_value = 1e-3f;
       o->row.rule.max_gradient_norm = 2e-3f;
       o->row.rule.weight_decay = 0.01f;
     }},
    {"schedule",
     [](TrainerOptions* o) {
       o->schedule = {.curve = RateCurve::kStep, .steps = 5, .factor = 0.7f};
     }},
    {"lost updates", [](TrainerOptions* o) { o->hybrid.drop_updates = 0.1; }},
    {"threads", [](TrainerOptions* o) {
       o->threads = o->store.worker_threads = 3;
       o->micro_batches = 2;
       o->packs.warmup_steps = 3;
     }}};

TEST(HotBag, HasTheBitsOfTheStore) {
  for (const Kind& kind : kKinds) {
    SCOPED_TRACE(kind.name);
    TrainerOptions options = OptionsOf("wide-deep");
    kind.change(&options);
    const auto store = OpenOn(ClickData(), options, false);
    const std::vector<double> expected = TrainOn(store.get(), ClickData().batches, 30);
    const auto bag = OpenOn(ClickData(), options, true);
    EXPECT_EQ(TrainOn(bag.get(), ClickData().batches, 30), expected);
    ASSERT_EQ(bag->WriteBack(), OkStatus());
    ExpectSameTables(bag.get(), store.get());
    EXPECT_EQ(bag->pass()->lost_updates(), store->pass()->lost_updates());
  }
}

// Two ids that occur with weights so large that the sum of the gradients of one, and the step of
// the other, are not finite. Their rows are zeros and stay so.
HotColdData DataWithLargeWeights() {
  constexpr Key kLargeSum = 777;
  constexpr Key kLargeStep = 778;
  constexpr uint32_t kRepeated = 4000;
  HotColdData data = BagData();
  HotIds ids = *data.hot_ids;
  ids.tables[1].Add(kLargeSum);
  ids.tables[1].Add(kLargeStep);
  data.hot_ids = std::make_shared<const HotIds>(std::move(ids));
  for (ClickBatch& batch : data.batches) {
    FeatureIds& feature = batch.features[2];
    const uint32_t more = kRepeated + 1;
    feature.ids.insert(feature.ids.begin(), kRepeated, kLargeSum);
    feature.weights.insert(feature.weights.begin(), kRepeated, 3e38f);
    feature.ids.insert(feature.ids.begin(), kLargeStep);
    feature.weights.insert(feature.weights.begin(), 1e30f);
    for (uint32_t i = 1; i <= batch.samples; ++i) feature.offsets[i] += more;
  }
  return data;
}

TEST(HotBag, LeavesOutWhatIsNotFiniteAsTheStoreDoes) {
  const HotColdData data = DataWithLargeWeights();
  TrainerOptions options = OptionsOf("ffnn");
  options.row_range = 0.0f;
  const auto store = OpenOn(data, options, false);
  const std::vector<double> expected = TrainOn(store.get(), data.batches);
  // Both ids in each batch.
  EXPECT_EQ(store->left_out().rows, 2 * data.batches.size());
  const auto bag = OpenOn(data, options, true);
  EXPECT_EQ(TrainOn(bag.get(), data.batches), expected);
  EXPECT_EQ(bag->left_out().rows, store->left_out().rows);
  ASSERT_EQ(bag->WriteBack(), OkStatus());
  ExpectSameTables(bag.get(), store.get());
}

TEST(HotBag, HasTheBitsOfTheStoreWithBagsAndSharedTables) {
  TrainerOptions options = OptionsOf("ffnn");
  options.micro_batches = 2;
  const auto store = OpenOn(BagData(), options, false);
  const std::vector<double> expected = TrainOn(store.get(), BagData().batches);
  const auto bag = OpenOn(BagData(), options, true);
  EXPECT_EQ(TrainOn(bag.get(), BagData().batches), expected);
  const SwapCounts& swaps = bag->pass()->rows().bag()->swaps();
  EXPECT_GT(swaps.to_hot, 1u);
  EXPECT_GT(swaps.to_cold, 1u);
  ASSERT_EQ(bag->WriteBack(), OkStatus());
  ExpectSameTables(bag.get(), store.get());
}

TEST(HotBag, HasTheBitsOfTheStoreOnRanks) {
  TrainerOptions options = OptionsOf("wide-deep");
  options.hybrid.drop_updates = 0.05;
  const auto store = OpenOn(ClickData(), options, false);
  const std::vector<double> expected = TrainOn(store.get(), ClickData().batches);
  // Both lost updates and those that were not are in many rows.
  EXPECT_GT(store->pass()->lost_updates(), 100u);
  for (const uint32_t ranks : {1u, 2u, 4u}) {
    for (const bool replicates : {false, true}) {
      if (replicates && ranks != 2) continue;
      SCOPED_TRACE(StrCat(ranks, " ranks", replicates ? ", replicated" : ""));
      Job job(ranks);
      if (replicates) job.set_replicated({2, 28});
      ASSERT_EQ(job.Open([&](uint32_t) {
        TrainerOptions of_rank = options;
        of_rank.micro_batches = std::min(2u, options.slices / ranks);
        of_rank.packs.warmup_steps = 7;
        of_rank.threads = 2;
        of_rank.hot_ids = ClickData().hot_ids;
        if (replicates) of_rank.ranks.replicated = {"C3"};
        return of_rank;
      }),
                OkStatus());
      std::vector<std::vector<double>> losses(ranks);
      ASSERT_EQ(job.OnRanks([&](uint32_t rank) {
        losses[rank] = TrainOn(job.trainer(rank), ClickData().batches);
        return job.trainer(rank)->WriteBack();
      }),
                OkStatus());
      for (uint32_t rank = 0; rank < ranks; ++rank) {
        EXPECT_EQ(losses[rank], expected);
        const HotBag* const bag = job.trainer(rank)->pass()->rows().bag();
        EXPECT_EQ(bag->Crc32c(), job.trainer(0)->pass()->rows().bag()->Crc32c());
        EXPECT_EQ(bag->rows(), job.trainer(0)->pass()->rows().bag()->rows());
      }
      job.ExpectState(store.get());
    }
  }
}

// The bag of one rank has another row than the others, as a defect would leave it.
TEST(HotBag, ReplicasThatDifferAreNamed) {
  const auto exchanges = MakeLocalExchanges(2);
  std::vector<Status> statuses(2);
  OnThreads(2, [&](uint64_t rank) {
    RankTeam team(exchanges[rank].get(), false);
    std::vector<double> losses(2);
    std::vector<float> logits(2);
    const Ballot ballot = {
        .status = {}, .step = 3, .samples = 2, .hot_rows_crc32c = rank == 1 ? 8u : 7u};
    statuses[rank] = team.Vote(ballot, {losses, logits},
                               {static_cast<uint32_t>(rank), static_cast<uint32_t>(rank) + 1})
                         .status();
  });
  for (const Status& status : statuses) {
    EXPECT_THAT(status.ToString(), HasSubstr("rank 1 has other hot rows than rank 0 after step 3"));
  }
}

// The store of one rank cannot be read at the second swap.
TEST(HotBag, ASwapThatFailsOnOneRankIsNamedOnAll) {
  const std::vector<ClickBatch>& batches = ClickData().batches;
  const auto first_hot =
      static_cast<uint64_t>(std::ranges::find_if(batches, &ClickBatch::is_hot) - batches.begin());
  for (const uint32_t ranks : {1u, 2u}) {
    Job job(ranks);
    ASSERT_EQ(job.Open([&](uint32_t) {
      TrainerOptions options = OptionsOf("dlrm");
      options.hot_ids = ClickData().hot_ids;
      options.ranks.replicated = {"C1"};
      return options;
    }),
              OkStatus());
    ASSERT_EQ(job.OnRanks([&](uint32_t rank) {
      TrainOn(job.trainer(rank), batches, first_hot);
      return OkStatus();
    }),
              OkStatus());
    job.trainer(ranks - 1)->tables()[0]->MarkDropped();
    const Status status = job.OnRanks([&](uint32_t rank) {
      std::vector<float> logits;
      return job.trainer(rank)->Step(batches[first_hot], &logits).status();
    });
    EXPECT_TRUE(IsFailedPrecondition(status)) << status;
    EXPECT_THAT(std::string(status.message()),
                AllOf(HasSubstr(ranks == 1 ? "" : "rank 1: "), HasSubstr("was dropped")));
    EXPECT_EQ(job.trainer(0)->pass()->rows().bag()->swaps().to_hot, 0u);
  }
}

// The distinct hot ids of each phase, over all tables, as the batches have them.
std::vector<uint64_t> HotIdsOfPhases(const HotColdData& data) {
  std::vector<uint64_t> phases;
  std::vector<std::set<Key>> ids(data.hot_ids->tables.size());
  for (size_t i = 0; i < data.batches.size(); ++i) {
    for (uint32_t column = 0; column < data.columns.ids.size(); ++column) {
      for (const Key id : data.batches[i].features[column].ids) {
        if (data.hot_ids->OfColumn(column).PlaceOf(id) == IdPlaces::kNone) continue;
        ids[data.hot_ids->table_of_column[column]].insert(id);
      }
    }
    const bool is_last = i + 1 == data.batches.size();
    if (!is_last && data.batches[i + 1].is_hot == data.batches[i].is_hot) continue;
    phases.push_back(0);
    for (std::set<Key>& of_table : ids) {
      phases.back() += of_table.size();
      of_table.clear();
    }
  }
  return phases;
}

// At a swap to hot the rows of the cold phase before it go, and at one to cold those of the hot
// phase.
TEST(HotBag, SwapsMoveTheRowsOfThePhaseBeforeThem) {
  const std::vector<ClickBatch>& batches = ClickData().batches;
  const std::vector<uint64_t> phases = HotIdsOfPhases(ClickData());
  ASSERT_GT(phases.size(), 4u);
  for (const uint32_t ranks : {1u, 2u}) {
    Job job(ranks);
    ASSERT_EQ(job.Open([&](uint32_t) {
      TrainerOptions options = OptionsOf("ffnn");
      options.hot_ids = ClickData().hot_ids;
      return options;
    }),
              OkStatus());
    ASSERT_EQ(job.OnRanks([&](uint32_t rank) {
      TrainOn(job.trainer(rank), batches);
      return job.trainer(rank)->WriteBack();
    }),
              OkStatus());
    uint64_t rows_to_hot = 0;
    uint64_t rows_to_cold = 0;
    uint64_t cold = 0;
    for (const ClickBatch& batch : batches) cold += batch.is_hot ? 0 : 1;
    // The first phase is cold. No swap comes behind the last one, but the write-back of its rows.
    for (size_t i = 0; i < phases.size(); ++i) {
      if (i % 2 == 1) rows_to_cold += phases[i];
      if (i % 2 == 0 && i + 1 < phases.size()) rows_to_hot += phases[i];
    }
    const uint64_t row_bytes = HotRowBytes(8, Optimizer::kAdagrad);
    uint64_t written = 0;
    for (uint32_t rank = 0; rank < ranks; ++rank) {
      const SwapCounts& swaps = job.trainer(rank)->pass()->rows().bag()->swaps();
      const LinkBytes link = job.trainer(rank)->pass()->device_link().bytes();
      const uint64_t vectors = cold * kBatch / ranks * 26 * 8 * sizeof(float);
      EXPECT_EQ(swaps.rows_to_hot, rows_to_hot);
      EXPECT_NEAR(static_cast<double>(link.to_device),
                  static_cast<double>(vectors + rows_to_hot * row_bytes),
                  static_cast<double>(cold * 26 * 8 * sizeof(float)));
      written += swaps.rows_to_cold;
    }
    EXPECT_EQ(written, rows_to_cold) << "each row by its owner";
  }
}

TEST(HotBag, HotBatchesUseNeitherTheStoreNorTheLink) {
  const auto trainer = OpenOn(ClickData(), OptionsOf("ffnn"), true);
  const HotBag& bag = *trainer->pass()->rows().bag();
  std::vector<float> logits;
  bool was_hot = false;
  uint64_t hot = 0;
  for (const ClickBatch& batch : ClickData().batches) {
    const uint64_t lookups = LookupsOf(trainer.get());
    const uint64_t bytes = trainer->pass()->device_link().bytes().all();
    const uint64_t swapped = bag.swaps().bytes;
    ASSERT_TRUE(trainer->Prefetch(batch).ok());
    ASSERT_TRUE(trainer->Step(batch, &logits).ok());
    const uint64_t moved = trainer->pass()->device_link().bytes().all() - bytes;
    const uint64_t vectors = batch.is_hot ? 0 : 2 * kBatch * 26 * 8 * sizeof(float);
    EXPECT_EQ(moved, vectors + bag.swaps().bytes - swapped);
    if (was_hot && batch.is_hot) {
      EXPECT_EQ(LookupsOf(trainer.get()), lookups);
      EXPECT_EQ(moved, 0u);
      ++hot;
    }
    was_hot = batch.is_hot;
  }
  EXPECT_GT(hot, 5u);
  // Only rows that changed go.
  EXPECT_GT(bag.swaps().to_hot, 1u);
  EXPECT_LT(bag.swaps().bytes, bag.swaps().bytes_of_all_rows);
  EXPECT_LE(bag.swaps().rows_to_hot, bag.rows() * bag.swaps().to_hot);
  EXPECT_GT(bag.swaps().rows_to_cold, 0u);
  EXPECT_EQ(bag.bytes(), bag.rows() * HotRowBytes(8, Optimizer::kAdagrad));
}

TEST(HotBag, ACheckpointAndAPredictionOfAHotPhaseHaveItsRows) {
  const std::vector<ClickBatch>& batches = ClickData().batches;
  uint64_t middle = 0;  // inside of the second hot phase
  for (uint64_t i = 1, phases = 0; i < batches.size() && middle == 0; ++i) {
    if (batches[i].is_hot && !batches[i - 1].is_hot) ++phases;
    if (phases == 2 && batches[i].is_hot && batches[i - 1].is_hot) middle = i;
  }
  ASSERT_GT(middle, 0u);
  const ScratchDirectory directory;
  const auto store = OpenOn(ClickData(), OptionsOf("ffnn"), false);
  std::vector<double> expected = TrainOn(store.get(), batches, middle);
  std::vector<float> expected_logits, logits;
  ASSERT_TRUE(store->Predict(batches[0], &expected_logits).ok());
  const std::vector<double> rest = TrainOn(store.get(), batches);
  {
    const auto trainer = OpenOn(ClickData(), OptionsOf("ffnn", directory.path()), true);
    EXPECT_EQ(TrainOn(trainer.get(), batches, middle), expected);
    ASSERT_TRUE(trainer->Predict(batches[0], &logits).ok());
    EXPECT_EQ(logits, expected_logits);
    ASSERT_EQ(trainer->Checkpoint({}), OkStatus());
    // Steps behind the checkpoint are in no other one.
    TrainOn(trainer.get(), batches, middle + 3);
  }
  for (const bool has_bag : {true, false}) {
    const auto resumed = OpenOn(ClickData(), OptionsOf("ffnn", directory.path()), has_bag);
    EXPECT_EQ(resumed->steps(), middle);
    EXPECT_EQ(TrainOn(resumed.get(), batches), rest);
    ASSERT_EQ(resumed->WriteBack(), OkStatus());
    ExpectSameTables(resumed.get(), store.get());
  }
}

TEST(HotBag, AHotBatchWithAColdIdIsRefusedOnAllRanks) {
  ClickBatch batch = *std::ranges::find_if(ClickData().batches, &ClickBatch::is_hot);
  batch.features[7].ids.back() = 123456789;
  const auto trainer = OpenOn(ClickData(), OptionsOf("dlrm"), true);
  std::vector<float> logits;
  const Status status = trainer->Step(batch, &logits).status();
  EXPECT_TRUE(IsDataLoss(status));
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("id 123456789 of table \"id C8\""), HasSubstr("calibrate")));
  Job job(2);
  ASSERT_EQ(job.Open([&](uint32_t) {
    TrainerOptions options = OptionsOf("dlrm");
    options.hot_ids = ClickData().hot_ids;
    return options;
  }),
            OkStatus());
  const Status of_ranks = job.OnRanks([&](uint32_t rank) {
    std::vector<float> of_rank;
    return job.trainer(rank)->Step(batch, &of_rank).status();
  });
  // The last sample is in a slice of rank 1.
  EXPECT_THAT(of_ranks.ToString(), HasSubstr("rank 1: a hot batch has the id 123456789"));
}

// The rows stay in the bag where the store has no space for them, and go later.
TEST(HotBag, AStoreWithoutSpaceLosesNoRow) {
  const Status full = [&] {
    TrainerOptions options = OptionsOf("dlrm");
    options.dim = 64;
    options.store.dram_bytes = kDramBytesMin;
    options.hot_ids = ClickData().hot_ids;
    const auto trainer = *Trainer::Open(options, ClickData().columns);
    // Rows of ids that no batch has.
    Table* const table = trainer->tables()[2];
    std::vector<Key> ids(1000);
    std::vector<float> rows(ids.size() * 64);
    std::vector<float> logits;
    const ClickBatch& hot = *std::ranges::find_if(ClickData().batches, &ClickBatch::is_hot);
    EXPECT_TRUE(trainer->Step(hot, &logits).ok());
    Status filled;
    for (Key next = 1 << 20; filled.ok(); next += ids.size()) {
      for (size_t i = 0; i < ids.size(); ++i) ids[i] = next + i;
      filled = Lookup(table, ids, MissingRule::kCreate, SpanOf(&rows, 64), {});
    }
    EXPECT_TRUE(IsResourceExhausted(filled)) << filled;
    const Status first = trainer->WriteBack();
    const Status again = trainer->WriteBack();
    EXPECT_EQ(first.code(), again.code());
    // Nothing is out of the bag: it goes on.
    EXPECT_TRUE(trainer->Step(hot, &logits).ok());
    return first;
  }();
  EXPECT_TRUE(IsResourceExhausted(full)) << full;
}

TEST(HotBag, OptionsThatDoNotGoWithItAreNamed) {
  const auto message = [](const std::function<void(TrainerOptions*)>& change) {
    TrainerOptions options = OptionsOf("dlrm");
    options.hot_ids = ClickData().hot_ids;
    change(&options);
    return std::string(Trainer::Open(options, ClickData().columns).status().message());
  };
  EXPECT_EQ(message([](TrainerOptions*) {}), "");
  EXPECT_THAT(message([](TrainerOptions* o) { o->hybrid.staleness = 2; }),
              AllOf(HasSubstr("staleness is 2"), HasSubstr("hot batches")));
  EXPECT_THAT(message([](TrainerOptions* o) { o->on_full = OnFull::kForget; }),
              HasSubstr("--forget"));
  EXPECT_THAT(message([](TrainerOptions* o) { o->ranks.pooled = {"C3"}; }),
              HasSubstr("pool at owner: with hot batches"));
  EXPECT_THAT(message([](TrainerOptions* o) { o->hot_ids = BagData().hot_ids; }),
              HasSubstr("other id features"));
}

}  // namespace
}  // namespace embank::test::hot_bag_test
