#include "train/pipeline/embedding_pass.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "base/str_cat.h"
#include "store/batch/lookup.h"
#include "store/store.h"
#include "tests/support/random.h"
#include "tests/support/threads.h"
#include "train/pipeline/local_rows.h"
#include "train/ranks/local_exchange.h"
#include "train/ranks/sharded_rows.h"

namespace embank::test::embedding_pass_test {
namespace {

constexpr uint32_t kSlices = 8;
constexpr uint32_t kFeatures = 5;
constexpr float kInitial = 3.0f;

// Features 0 and 1 have the same table.
size_t TableOf(size_t feature) { return feature == 1 ? 0 : feature; }
uint32_t DimOf(size_t feature) { return feature < 3 ? 4 : 8; }
bool HasBags(size_t feature) { return feature % 2 == 1; }
bool HasWeights(size_t feature) { return feature == 3; }

// Ragged and empty bags for every other feature, one of them with weights.
ClickBatch MakeBatch(uint32_t samples, Random* random) {
  ClickBatch batch;
  batch.samples = samples;
  batch.features.resize(kFeatures);
  for (size_t i = 0; i < kFeatures; ++i) {
    FeatureIds& feature = batch.features[i];
    if (HasBags(i)) feature.offsets.push_back(0);
    for (uint32_t sample = 0; sample < samples; ++sample) {
      const uint64_t ids = HasBags(i) ? random->Bits() % 5 : 1;
      for (uint64_t k = 0; k < ids; ++k) {
        feature.ids.push_back(random->Bits() % 20);
        if (HasWeights(i)) feature.weights.push_back(static_cast<float>(random->Bits() % 5) - 2.0f);
      }
      if (HasBags(i)) feature.offsets.push_back(static_cast<uint32_t>(feature.ids.size()));
    }
  }
  return batch;
}

float WeightOf(const FeatureIds& feature, uint32_t position) {
  return feature.weights.empty() ? 1.0f : feature.weights[position];
}

SampleRange BagOf(const FeatureIds& feature, uint32_t sample) {
  if (feature.offsets.empty()) return {sample, sample + 1};
  return {feature.offsets[sample], feature.offsets[sample + 1]};
}

// The processes that have the rows.
struct Holders {
  uint32_t ranks;
  bool is_local;           // one process, by LocalRows
  bool is_replicated;      // every other table is
  bool is_pooled = false;  // all tables but one are
  ValueType wire = ValueType::kF32;
};

// A rank with a store, whose tables have SGD and a rate of 1: with whole numbers all sums are
// exact.
struct Rank {
  Rank(const Holders& holders, Exchange* exchange, uint32_t slices) {
    store = *Store::Open({.worker_threads = 2, .path = {}, .pmem_path = {}}, {});
    for (size_t i = 0; i < kFeatures; ++i) {
      const size_t number = TableOf(i);
      Table* const table =
          number < i ? features[number].table
                     : *store->CreateTable(
                           StrCat("t", i),
                           {.dim = DimOf(i),
                            .optimizer = Optimizer::kSgd,
                            .rule = {.learning_rate = 1.0f},
                            .initializer = {.kind = InitializerKind::kConstant, .a = kInitial}});
      features.push_back({.table = table,
                          .column = static_cast<uint32_t>(i),
                          .dim = DimOf(i),
                          .is_replicated = holders.is_replicated && number % 2 == 0,
                          .is_pooled = holders.is_pooled && number != 2});
    }
    const uint32_t number = exchange == nullptr ? 0 : exchange->rank();
    const SampleRange own = SliceOf(slices, holders.ranks, number);
    const SliceRange range = {own.begin, own.end};
    if (holders.is_local) {
      rows = std::make_unique<LocalRows>(features, range);
    } else {
      rows = std::make_unique<ShardedRows>(features, range, RowExchanges{exchange, exchange},
                                           holders.wire);
    }
    pass = std::make_unique<EmbeddingPass>(features, slices, range, rows.get());
  }

  void Forward(std::span<const Pack> packs, const ClickBatch& batch, uint32_t micro_batches) {
    pass->Begin(&batch);
    const SliceRange own = pass->slices();
    for (uint32_t m = 0; m < micro_batches; ++m) {
      const SampleRange part = SliceOf(own.size(), micro_batches, m);
      const SliceRange range = {own.begin + part.begin, own.begin + part.end};
      for (const Pack& pack : packs) {
        for (uint32_t slice = range.begin; slice < range.end; ++slice) {
          pass->MakeUnique(pack, slice);
        }
        EXPECT_TRUE(rows->ShuffleIds(pack, range, pass->ids()).ok());
        EXPECT_TRUE(rows->Gather(pack, range, MissingRule::kCreate, pass->ids()).ok());
        EXPECT_TRUE(rows->ShuffleRows(pack, range).ok());
        for (uint32_t slice = range.begin; slice < range.end; ++slice) {
          pass->StitchReduce(pack, slice);
        }
      }
    }
  }

  // `update` has what the vote of the other ranks says.
  void Backward(std::span<const Pack> packs, uint32_t micro_batches, RowUpdate update) {
    const SliceRange own = pass->slices();
    for (const Pack& pack : packs) {
      for (uint32_t slice = own.begin; slice < own.end; ++slice) pass->SumGradients(pack, slice);
    }
    for (const Pack& pack : packs) {
      for (uint32_t m = 0; m < micro_batches; ++m) {
        const SampleRange part = SliceOf(own.size(), micro_batches, m);
        const SliceRange range = {own.begin + part.begin, own.begin + part.end};
        EXPECT_TRUE(rows->ShuffleSums(pack, range).ok());
      }
      update.are_sums_finite &= pass->AreSumsFinite();
      EXPECT_TRUE(rows->Update(pack, update).ok());
    }
  }

  std::unique_ptr<Store> store;
  std::vector<EmbeddingFeature> features;
  std::unique_ptr<SparseRows> rows;
  std::unique_ptr<EmbeddingPass> pass;
};

class EmbeddingPassTest : public ::testing::TestWithParam<Holders> {
 protected:
  void Open(uint32_t slices) {
    if (!GetParam().is_local) exchanges_ = MakeLocalExchanges(GetParam().ranks);
    for (uint32_t r = 0; r < GetParam().ranks; ++r) {
      ranks_.push_back(std::make_unique<Rank>(
          GetParam(), exchanges_.empty() ? nullptr : exchanges_[r].get(), slices));
    }
    for (size_t i = 0; i < kFeatures; ++i) {
      traffic_.push_back({.dim = DimOf(i),
                          .ids = 1 + i,
                          .is_replicated = ranks_[0]->features[i].is_replicated,
                          .is_pooled = ranks_[0]->features[i].is_pooled,
                          .table = static_cast<uint32_t>(TableOf(i))});
    }
  }

  // Calls body(rank) for all of them at once.
  template <typename Body>
  void OnRanks(const Body& body) {
    OnThreads(ranks_.size(), [&](uint64_t rank) { body(ranks_[rank].get()); });
  }

  // The ranks that have a row.
  std::vector<Rank*> HoldersOf(size_t feature, Key id) const {
    std::vector<Rank*> holders;
    const EmbeddingFeature& of_first = ranks_[0]->features[feature];
    const auto count = static_cast<uint32_t>(ranks_.size());
    const uint32_t owner = OwnerOf(HashKey(TableHash(of_first.table->name()), id), count);
    for (uint32_t r = 0; r < count; ++r) {
      if (of_first.is_replicated || r == owner) holders.push_back(ranks_[r].get());
    }
    return holders;
  }

  // The row that all of its holders have. No other rank has it.
  std::vector<float> Stored(size_t feature, Key id) {
    std::vector<float> first;
    const std::vector<Rank*> holders = HoldersOf(feature, id);
    for (const std::unique_ptr<Rank>& rank : ranks_) {
      std::vector<float> row(DimOf(feature));
      uint8_t outcome = 0;
      EXPECT_TRUE(Lookup(rank->features[feature].table, {&id, 1}, MissingRule::kZero,
                         {reinterpret_cast<std::byte*>(row.data()), 0}, {&outcome, 1})
                      .ok());
      const bool holds = std::ranges::find(holders, rank.get()) != holders.end();
      EXPECT_EQ(outcome, static_cast<uint8_t>(holds ? Outcome::kFound : Outcome::kAbsent));
      if (!holds) continue;
      if (first.empty()) first = row;
      EXPECT_EQ(row, first) << "of another holder";
    }
    return first;
  }

  // The pass of a slice.
  Rank& RankOf(uint32_t slice) {
    for (const std::unique_ptr<Rank>& rank : ranks_) {
      if (slice < rank->pass->slices().end) return *rank;
    }
    return *ranks_.back();
  }

  // Writes gradient(feature, sample) into all elements of each vector.
  template <typename GradientOf>
  void WriteGradients(const ClickBatch& batch, uint32_t slices, const GradientOf& gradient) {
    for (size_t i = 0; i < kFeatures; ++i) {
      for (uint32_t slice = 0; slice < slices; ++slice) {
        const Matrix gradients = RankOf(slice).pass->Gradients(i, slice);
        const uint32_t begin = SliceOf(batch.samples, slices, slice).begin;
        for (uint32_t sample = 0; sample < gradients.rows; ++sample) {
          std::ranges::fill(gradients.Row(sample), gradient(i, slice, begin + sample));
        }
      }
    }
  }

  float& Row(size_t feature, Key id, uint32_t d) {
    auto& row = rows_[{TableOf(feature), id}];
    if (row.empty()) row.resize(DimOf(feature), kInitial);
    return row[d];
  }

  // Whether the update loses that of a row; counts each row of a step once.
  bool IsLost(const RowUpdate& update, size_t feature, Key id) {
    const std::string& table = ranks_[0]->features[feature].table->name();
    if (update.lost == nullptr || !update.lost->Has(update.step, HashKey(TableHash(table), id))) {
      return false;
    }
    lost_.insert({update.step, TableOf(feature), id});
    return true;
  }

  // Runs a step through the pass and through loops over a dense table.
  void Step(std::span<const Pack> packs, const ClickBatch& batch, uint32_t micro_batches,
            Random* random, const RowUpdate& update = {}) {
    OnRanks([&](Rank* rank) { rank->Forward(packs, batch, micro_batches); });
    for (size_t i = 0; i < kFeatures; ++i) CheckVectors(batch, i);
    WriteGradients(batch, kSlices, [&](size_t i, uint32_t, uint32_t sample) {
      const auto gradient = static_cast<float>(random->Bits() % 7) - 3.0f;
      const SampleRange bag = BagOf(batch.features[i], sample);
      for (uint32_t k = bag.begin; k < bag.end; ++k) {
        const Key id = batch.features[i].ids[k];
        ++touches_[{TableOf(i), id}];
        if (IsLost(update, i, id)) continue;
        for (uint32_t d = 0; d < DimOf(i); ++d) {
          Row(i, id, d) -= WeightOf(batch.features[i], k) * gradient;
        }
      }
      return gradient;
    });
    OnRanks([&](Rank* rank) { rank->Backward(packs, micro_batches, update); });
  }

  void CheckVectors(const ClickBatch& batch, size_t i) {
    for (uint32_t slice = 0; slice < kSlices; ++slice) {
      const ConstMatrix vectors = RankOf(slice).pass->Vectors(i, slice);
      const uint32_t begin = SliceOf(batch.samples, kSlices, slice).begin;
      for (uint32_t sample = 0; sample < vectors.rows; ++sample) {
        const SampleRange bag = BagOf(batch.features[i], begin + sample);
        for (uint32_t d = 0; d < DimOf(i); ++d) {
          float sum = 0.0f;
          for (uint32_t k = bag.begin; k < bag.end; ++k) {
            sum += WeightOf(batch.features[i], k) * Row(i, batch.features[i].ids[k], d);
          }
          ASSERT_EQ(vectors.Row(sample)[d], sum) << "feature " << i << ", sample " << sample;
        }
      }
    }
  }

  std::vector<std::unique_ptr<Exchange>> exchanges_;
  std::vector<std::unique_ptr<Rank>> ranks_;
  std::vector<FeatureTraffic> traffic_;
  std::map<std::pair<size_t, Key>, std::vector<float>> rows_;
  std::map<std::pair<size_t, Key>, uint32_t> touches_;
  std::set<std::tuple<uint64_t, size_t, Key>> lost_;  // of which step, table and id
};

TEST_P(EmbeddingPassTest, IsADenseTableOfWholeNumbers) {
  Random random(1);
  Open(kSlices);
  const uint32_t micro_batches_max = std::min(4u, kSlices / GetParam().ranks);
  for (uint32_t step = 0; step < 60; ++step) {
    // Fewer samples than slices, too.
    const ClickBatch batch = MakeBatch(1 + step % 40, &random);
    const std::vector<Pack> packs =
        PlanPacks(traffic_, step % 3 == 0 ? PackRule::kNone : PackRule::kMean);
    ASSERT_NO_FATAL_FAILURE(Step(packs, batch, 1 + step % micro_batches_max, &random))
        << "step " << step;
  }
  for (const auto& [place, touches] : touches_) {
    const auto& [feature, id] = place;
    for (const Rank* const holder : HoldersOf(feature, id)) {
      uint32_t heat = 0;
      ASSERT_TRUE(GetHeat(holder->features[feature].table, {&id, 1}, {&heat, 1}, {}).ok());
      EXPECT_EQ(heat, touches);
    }
  }
  for (const auto& [place, row] : rows_) EXPECT_EQ(Stored(place.first, place.second), row);
}

// The rows beside a lost one get their own sums, whatever slices, ranks and micro-batches are.
TEST_P(EmbeddingPassTest, LosesTheUpdatesOfChosenRowsAlone) {
  Random random(2);
  Open(kSlices);
  LostUpdates lost(0.3, 5);
  const std::vector<Pack> packs = PlanPacks(traffic_);
  const uint32_t micro_batches = std::min(2u, kSlices / GetParam().ranks);
  for (uint32_t step = 0; step < 20; ++step) {
    ASSERT_NO_FATAL_FAILURE(
        Step(packs, MakeBatch(30, &random), micro_batches, &random, {.step = step, .lost = &lost}))
        << "step " << step;
  }
  EXPECT_GT(lost_.size(), 100u);
  EXPECT_EQ(lost.count(), lost_.size());
  for (const auto& [place, row] : rows_) EXPECT_EQ(Stored(place.first, place.second), row);
}

// Each update of a row is lost with the same chance, whatever was lost before.
TEST(LostUpdates, AreTheirShareOfAllUpdates) {
  constexpr double kShare = 0.1;
  constexpr uint64_t kSteps = 100, kRows = 2'000;
  const LostUpdates lost(kShare, 3);
  const LostUpdates of_other_seed(kShare, 4);
  uint64_t in_all = 0, in_both_steps = 0, with_both_seeds = 0;
  for (uint64_t step = 0; step < kSteps; ++step) {
    for (Key key = 0; key < kRows; ++key) {
      const KeyHash hash = HashKey(TableHash("t"), key);
      if (!lost.Has(step, hash)) continue;
      ++in_all;
      in_both_steps += lost.Has(step + 1, hash) ? 1 : 0;
      with_both_seeds += of_other_seed.Has(step, hash) ? 1 : 0;
    }
  }
  // Four standard deviations of a binomial number.
  const auto expect_near = [](uint64_t count, double share) {
    constexpr double kDraws = kSteps * kRows;
    EXPECT_NEAR(static_cast<double>(count), kDraws * share,
                4.0 * std::sqrt(kDraws * share * (1.0 - share)));
  };
  expect_near(in_all, kShare);
  expect_near(in_both_steps, kShare * kShare);
  expect_near(with_both_seeds, kShare * kShare);
  EXPECT_FALSE(LostUpdates(0.0, 3).has_any());
}

TEST_P(EmbeddingPassTest, AddsTheGradientsOfARowInTheOrderOfPositions) {
  const uint32_t ranks = GetParam().ranks;
  ClickBatch batch;
  batch.samples = 3 * ranks;
  batch.features.resize(kFeatures);
  for (size_t i = 0; i < kFeatures; ++i) {
    batch.features[i].ids.assign(batch.samples, 7);
    if (!HasBags(i)) continue;
    for (uint32_t k = 0; k <= batch.samples; ++k) batch.features[i].offsets.push_back(k);
  }
  Open(ranks);
  const std::vector<Pack> packs = PlanPacks(traffic_);
  OnRanks([&](Rank* rank) { rank->Forward(packs, batch, 1); });
  const float parts[] = {0x1p24f, 1.0f, 1.0f};
  WriteGradients(batch, ranks, [&](size_t, uint32_t slice, uint32_t sample) {
    // The first slice has the large number, and the others small ones.
    return slice == 0 ? parts[sample % 3] : 0.5f * static_cast<float>(sample % 3);
  });
  OnRanks([&](Rank* rank) { rank->Backward(packs, 1, {}); });
  for (size_t i = 0; i < kFeatures; ++i) {
    // 2^24 + 1 is rounded to 2^24, twice; last position first, the sum would be 2^24 + 2. So is
    // each other slice's 1.5, to 2^24 + 2 and on; all of them together first would be more or less.
    float sum = 0x1p24f;
    for (uint32_t slice = 1; slice < ranks; ++slice) sum += 1.5f;
    for (uint32_t feature = 1; TableOf(i) == 0 && feature < 2; ++feature) {
      sum += 0x1p24f;
      for (uint32_t slice = 1; slice < ranks; ++slice) sum += 1.5f;
    }
    for (const float value : Stored(i, 7)) EXPECT_EQ(value, kInitial - sum) << "feature " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(, EmbeddingPassTest,
                         ::testing::Values(Holders{1, true, false}, Holders{1, false, false},
                                           Holders{2, false, false}, Holders{4, false, false},
                                           Holders{8, false, false}, Holders{2, false, true},
                                           Holders{4, false, true}, Holders{1, false, false, true},
                                           Holders{4, false, false, true},
                                           Holders{2, false, true, false, ValueType::kF16},
                                           Holders{4, false, false, true, ValueType::kF16}),
                         [](const auto& param) {
                           const Holders& holders = param.param;
                           return StrCat(holders.is_local ? "Local" : "Of", holders.ranks,
                                         holders.is_replicated ? "Replicated" : "",
                                         holders.is_pooled ? "Pooled" : "",
                                         holders.wire == ValueType::kF16 ? "Halves" : "");
                         });

// Gradients that are not finite, or whose sum is not, within a slice or over all. `bad_feature` is
// that of these gradients.
class NotFiniteTest : public EmbeddingPassTest {
 protected:
  void LeavesRowsAsTheyAre(size_t bad_feature);
};

void NotFiniteTest::LeavesRowsAsTheyAre(size_t bad_feature) {
  constexpr float kMax = std::numeric_limits<float>::max();
  Open(kSlices);
  const std::vector<Pack> packs = PlanPacks(traffic_);
  const auto left_out = [&] {
    uint64_t sum = 0;
    for (const std::unique_ptr<Rank>& rank : ranks_) {
      sum += rank->rows->left_out() + rank->pass->StepsWith(Outcome::kNotFinite);
    }
    return sum;
  };
  // Steps id 7 with 1 in each feature, and with `gradient` in the bad one, in its first slice or in
  // all.
  const auto step = [&](uint32_t samples, float gradient, bool is_in_all) {
    ClickBatch batch;
    batch.samples = samples;
    batch.features.resize(kFeatures);
    for (FeatureIds& feature : batch.features) feature.ids.assign(samples, 7);
    OnRanks([&](Rank* rank) { rank->Forward(packs, batch, 1); });
    const std::vector<float> bad = Stored(bad_feature, 7);
    const std::vector<float> good = Stored(2, 7);
    const uint64_t before = left_out();
    WriteGradients(batch, kSlices, [&](size_t i, uint32_t slice, uint32_t) {
      return i == bad_feature && (is_in_all || slice == 0) ? gradient : 1.0f;
    });
    // Owners that sum bags see for themselves that a sum of finite gradients is not.
    const bool are_finite = GetParam().is_pooled && std::isfinite(gradient);
    OnRanks([&](Rank* rank) { rank->Backward(packs, 1, {.are_sums_finite = are_finite}); });
    EXPECT_NE(Stored(2, 7), good) << "the other features make their steps";
    if (Stored(bad_feature, 7) != bad) return uint64_t{0};
    return left_out() - before;
  };
  // The row of a table is left out in each of its features.
  const uint64_t slices = TableOf(bad_feature) == 0 ? 2 * kSlices : kSlices;
  EXPECT_EQ(step(kSlices, 2.0f, true), 0u);
  EXPECT_EQ(step(kSlices, -kMax / 2, true), slices) << "each slice's sum is finite";
  EXPECT_EQ(step(4 * kSlices, kMax / 3, true), slices);
  EXPECT_EQ(step(4 * kSlices, kMax / 3, false), slices) << "none of its gradients counts";
  EXPECT_EQ(step(kSlices, std::numeric_limits<float>::quiet_NaN(), false), slices);
  EXPECT_EQ(step(kSlices, 2.0f, true), 0u) << "the row goes on";
}

TEST_P(NotFiniteTest, LeavesTheRowOfAFeatureAsItIs) { LeavesRowsAsTheyAre(3); }
TEST_P(NotFiniteTest, LeavesTheRowOfTwoFeaturesAsItIs) { LeavesRowsAsTheyAre(1); }
INSTANTIATE_TEST_SUITE_P(, NotFiniteTest,
                         ::testing::Values(Holders{1, true, false}, Holders{4, false, false},
                                           Holders{2, false, true},
                                           Holders{2, false, false, true}));

}  // namespace
}  // namespace embank::test::embedding_pass_test
