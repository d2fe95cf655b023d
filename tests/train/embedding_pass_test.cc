#include "train/pipeline/embedding_pass.h"

#include <gtest/gtest.h>

#include <limits>
#include <map>
#include <memory>
#include <vector>

#include "base/str_cat.h"
#include "store/batch/lookup.h"
#include "store/store.h"
#include "tests/support/random.h"
#include "train/pipeline/local_rows.h"

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

// Tables with SGD and a rate of 1: with whole numbers all sums are exact.
class EmbeddingPassTest : public ::testing::Test {
 protected:
  void SetUp() override {
    store_ = *Store::Open({.worker_threads = 2, .path = {}, .pmem_path = {}}, {});
    for (size_t i = 0; i < kFeatures; ++i) {
      const size_t number = TableOf(i);
      Table* const table =
          number < i ? features_[number].table
                     : *store_->CreateTable(
                           StrCat("t", i),
                           {.dim = DimOf(i),
                            .optimizer = Optimizer::kSgd,
                            .rule = {.learning_rate = 1.0f},
                            .initializer = {.kind = InitializerKind::kConstant, .a = kInitial}});
      features_.push_back({.table = table, .column = static_cast<uint32_t>(i), .dim = DimOf(i)});
      traffic_.push_back({.dim = DimOf(i), .ids = 1 + i, .table = static_cast<uint32_t>(number)});
    }
  }

  float& Row(size_t feature, Key id, uint32_t d) {
    auto& row = rows_[{TableOf(feature), id}];
    if (row.empty()) row.resize(DimOf(feature), kInitial);
    return row[d];
  }

  // Runs a step through the pass and through loops over a dense table.
  void Step(SparseRows* rows, EmbeddingPass* pass, std::span<const Pack> packs,
            const ClickBatch& batch, uint32_t micro_batches, Random* random) {
    pass->Begin(&batch);
    for (uint32_t m = 0; m < micro_batches; ++m) {
      const SampleRange range = SliceOf(kSlices, micro_batches, m);
      for (const Pack& pack : packs) {
        for (uint32_t slice = range.begin; slice < range.end; ++slice)
          pass->MakeUnique(pack, slice);
        ASSERT_TRUE(
            rows->Gather(pack, {range.begin, range.end}, MissingRule::kCreate, pass->ids()).ok());
        for (uint32_t slice = range.begin; slice < range.end; ++slice) {
          pass->StitchReduce(pack, slice);
        }
      }
    }
    for (size_t i = 0; i < kFeatures; ++i) CheckVectors(*pass, batch, i);
    for (size_t i = 0; i < kFeatures; ++i) {
      for (uint32_t slice = 0; slice < kSlices; ++slice) {
        const Matrix gradients = pass->Gradients(i, slice);
        const uint32_t begin = SliceOf(batch.samples, kSlices, slice).begin;
        for (uint32_t sample = 0; sample < gradients.rows; ++sample) {
          const SampleRange bag = BagOf(batch.features[i], begin + sample);
          for (uint32_t d = 0; d < DimOf(i); ++d) {
            const auto gradient = static_cast<float>(random->Bits() % 7) - 3.0f;
            gradients.Row(sample)[d] = gradient;
            for (uint32_t k = bag.begin; k < bag.end; ++k) {
              Row(i, batch.features[i].ids[k], d) -= WeightOf(batch.features[i], k) * gradient;
            }
          }
        }
      }
    }
    for (const Pack& pack : packs) {
      for (uint32_t slice = 0; slice < kSlices; ++slice) pass->SumGradients(pack, slice);
    }
    for (const Pack& pack : packs) {
      ASSERT_TRUE(rows->Update(pack, pass->AreSumsFinite()).ok());
    }
  }

  void CheckVectors(const EmbeddingPass& pass, const ClickBatch& batch, size_t i) {
    for (uint32_t slice = 0; slice < kSlices; ++slice) {
      const ConstMatrix vectors = pass.Vectors(i, slice);
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

  std::unique_ptr<Store> store_;
  std::vector<EmbeddingFeature> features_;
  std::vector<FeatureTraffic> traffic_;
  std::map<std::pair<size_t, Key>, std::vector<float>> rows_;
};

TEST_F(EmbeddingPassTest, IsADenseTableOfWholeNumbers) {
  Random random(1);
  LocalRows rows(features_, {0, kSlices});
  EmbeddingPass pass(features_, kSlices, {0, kSlices}, &rows);
  for (uint32_t step = 0; step < 60; ++step) {
    // Fewer samples than slices, too.
    const ClickBatch batch = MakeBatch(1 + step % 40, &random);
    const std::vector<Pack> packs =
        PlanPacks(traffic_, step % 3 == 0 ? PackRule::kNone : PackRule::kMean);
    ASSERT_NO_FATAL_FAILURE(Step(&rows, &pass, packs, batch, 1 + step % 4, &random))
        << "step " << step;
  }
  for (const auto& [place, row] : rows_) {
    const auto& [feature, id] = place;
    std::vector<float> stored(DimOf(feature));
    ASSERT_TRUE(Lookup(features_[feature].table, {&id, 1}, MissingRule::kZero,
                       {reinterpret_cast<std::byte*>(stored.data()), 0}, {})
                    .ok());
    EXPECT_EQ(stored, row);
  }
}

TEST_F(EmbeddingPassTest, AddsTheGradientsOfARowInTheOrderOfPositions) {
  ClickBatch batch;
  batch.samples = 3;
  batch.features.resize(kFeatures);
  for (size_t i = 0; i < kFeatures; ++i) {
    batch.features[i].ids = {7, 7, 7};
    if (HasBags(i)) batch.features[i].offsets = {0, 1, 2, 3};
  }
  LocalRows rows(features_, {0, 1});
  EmbeddingPass pass(features_, 1, {0, 1}, &rows);
  const std::vector<Pack> packs = PlanPacks(traffic_);
  pass.Begin(&batch);
  for (const Pack& pack : packs) {
    pass.MakeUnique(pack, 0);
    ASSERT_TRUE(rows.Gather(pack, {0, 1}, MissingRule::kCreate, pass.ids()).ok());
    pass.StitchReduce(pack, 0);
  }
  const float parts[] = {0x1p24f, 1.0f, 1.0f};
  for (size_t i = 0; i < kFeatures; ++i) {
    for (uint32_t sample = 0; sample < 3; ++sample) {
      for (float& value : pass.Gradients(i, 0).Row(sample)) value = parts[sample];
    }
  }
  for (const Pack& pack : packs) {
    pass.SumGradients(pack, 0);
  }
  for (const Pack& pack : packs) {
    ASSERT_TRUE(rows.Update(pack, pass.AreSumsFinite()).ok());
  }
  const Key id = 7;
  for (size_t i = 0; i < kFeatures; ++i) {
    std::vector<float> row(DimOf(i));
    ASSERT_TRUE(Lookup(features_[i].table, {&id, 1}, MissingRule::kZero,
                       {reinterpret_cast<std::byte*>(row.data()), 0}, {})
                    .ok());
    // 2^24 + 1 is rounded to 2^24, twice; last position first, the sum would be 2^24 + 2.
    const float gradient = TableOf(i) == 0 ? 0x1p25f : 0x1p24f;
    for (const float value : row) EXPECT_EQ(value, kInitial - gradient) << "feature " << i;
  }
}

// Gradients that are not finite, or whose sum is not, within a slice or over all. `bad_feature` is
// that of these gradients.
class NotFiniteTest : public EmbeddingPassTest, public ::testing::WithParamInterface<size_t> {};

TEST_P(NotFiniteTest, LeavesRowsWhoseStepsWouldNotBeFiniteAsTheyAre) {
  constexpr float kMax = std::numeric_limits<float>::max();
  const size_t bad_feature = GetParam();
  const std::vector<Pack> packs = PlanPacks(traffic_);
  const Key id = 7;
  const auto row_of = [&](size_t feature) {
    std::vector<float> row(DimOf(feature));
    EXPECT_TRUE(Lookup(features_[feature].table, {&id, 1}, MissingRule::kZero,
                       {reinterpret_cast<std::byte*>(row.data()), 0}, {})
                    .ok());
    return row;
  };
  LocalRows rows(features_, {0, kSlices});
  EmbeddingPass pass(features_, kSlices, {0, kSlices}, &rows);
  // Steps id 7 with 1 in each feature, and with `gradient` in the bad one, in its first slice or in
  // all.
  const auto step = [&](uint32_t samples, float gradient, bool is_in_all) {
    ClickBatch batch;
    batch.samples = samples;
    batch.features.resize(kFeatures);
    for (FeatureIds& feature : batch.features) feature.ids.assign(samples, id);
    pass.Begin(&batch);
    for (const Pack& pack : packs) {
      for (uint32_t slice = 0; slice < kSlices; ++slice) pass.MakeUnique(pack, slice);
      EXPECT_TRUE(rows.Gather(pack, {0, kSlices}, MissingRule::kCreate, pass.ids()).ok());
    }
    const std::vector<float> bad = row_of(bad_feature);
    const std::vector<float> good = row_of(2);
    const uint64_t left_out = pass.left_out();
    for (size_t i = 0; i < kFeatures; ++i) {
      for (uint32_t slice = 0; slice < kSlices; ++slice) {
        const Matrix gradients = pass.Gradients(i, slice);
        const bool is_bad = i == bad_feature && (is_in_all || slice == 0);
        for (uint32_t sample = 0; sample < gradients.rows; ++sample) {
          for (float& value : gradients.Row(sample)) value = is_bad ? gradient : 1.0f;
        }
      }
    }
    for (const Pack& pack : packs) {
      for (uint32_t slice = 0; slice < kSlices; ++slice) pass.SumGradients(pack, slice);
    }
    for (const Pack& pack : packs) {
      EXPECT_TRUE(rows.Update(pack, pass.AreSumsFinite()).ok());
    }
    EXPECT_NE(row_of(2), good) << "the other features make their steps";
    if (row_of(bad_feature) != bad) return uint64_t{0};
    return pass.left_out() - left_out;
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
INSTANTIATE_TEST_SUITE_P(, NotFiniteTest, ::testing::Values(3, 1));

}  // namespace
}  // namespace embank::test::embedding_pass_test
