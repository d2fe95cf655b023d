// The loss to which rows converge that are looked up s batches before their update, on planted
// least squares: Persia (Lian et al. 2022), theorem 1. It bounds the loss by that of s = 0 and a
// term that grows with s and with alpha, the probability of the most popular id in a sample.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <memory>
#include <numeric>
#include <span>
#include <vector>

#include "store/batch/lookup.h"
#include "store/store.h"
#include "tests/support/random.h"
#include "train/pipeline/embedding_pass.h"
#include "train/pipeline/local_rows.h"

namespace embank::test::staleness_convergence_test {
namespace {

constexpr uint32_t kSamples = 32;  // of a batch, each with two ids
constexpr Key kOthers = 2000;      // that are equally popular: ids 1, 2, ...
constexpr uint32_t kBatches = 400;
constexpr float kRate = 0.3f / kSamples;
constexpr float kPlantedMax = 0.05f;
constexpr uint32_t kSeeds = 20;
constexpr uint32_t kStaleness[] = {0, 1, 4, 16};
constexpr double kAlphas[] = {0.01, 0.1, 1.0};

// The sum of the planted weights of each sample's ids, and noise of variance 1.
struct LabelledBatch {
  ClickBatch samples;
  std::vector<float> labels;
};

class Planted {
 public:
  Planted(uint64_t seed, double alpha) : random_(seed), alpha_(alpha) {
    for (float& weight : weights_) weight = kPlantedMax * random_.Signed();
  }

  LabelledBatch Draw() {
    LabelledBatch batch;
    batch.samples.samples = kSamples;
    FeatureIds& feature = batch.samples.features.emplace_back();
    feature.offsets.push_back(0);
    for (uint32_t i = 0; i < kSamples; ++i) {
      const Key first = random_.Unit() < alpha_ ? 0 : Other();
      feature.ids.insert(feature.ids.end(), {first, Other()});
      feature.offsets.push_back(static_cast<uint32_t>(feature.ids.size()));
      const float noise = std::sqrt(3.0f) * random_.Signed();
      batch.labels.push_back(weights_[first] + weights_[feature.ids.back()] + noise);
    }
    return batch;
  }

  // The mean over all samples of half the squared error, without that of the noise.
  double LossOf(std::span<const float> rows) const {
    const auto error = [&](Key id) { return double{rows[id]} - weights_[id]; };
    double mean = 0.0;  // of the errors of the others, and their squares
    double square = 0.0;
    for (Key id = 1; id <= kOthers; ++id) {
      mean += error(id) / kOthers;
      square += error(id) * error(id) / kOthers;
    }
    const double first_mean = alpha_ * error(0) + (1.0 - alpha_) * mean;
    const double first_square = alpha_ * error(0) * error(0) + (1.0 - alpha_) * square;
    return (first_square + square + 2.0 * first_mean * mean) / 2.0;
  }

 private:
  Key Other() { return 1 + random_.Below(kOthers); }

  Random random_;
  const double alpha_;
  std::array<float, kOthers + 1> weights_;
};

class Training {
 public:
  Training(uint64_t seed, double alpha, uint32_t staleness)
      : planted_(seed, alpha),
        staleness_(staleness),
        store_(*Store::Open({.worker_threads = 1, .path = {}, .pmem_path = {}}, {})) {
    TableOptions options;
    options.dim = 1;
    options.optimizer = Optimizer::kSgd;
    options.rule.learning_rate = kRate;
    options.initializer.kind = InitializerKind::kZero;
    table_ = *store_->CreateTable("t", options);
    ring_.resize(staleness + 1);
    for (Pass& pass : ring_) {
      const std::vector<EmbeddingFeature> features = {{.table = table_, .column = 0, .dim = 1}};
      pass.rows = std::make_unique<LocalRows>(features, kSlices);
      pass.pass = std::make_unique<EmbeddingPass>(features, 1, kSlices, pass.rows.get());
    }
  }

  // Returns the mean of the losses behind some updates of the second half.
  double Run() {
    double losses = 0.0;
    uint32_t count = 0;
    for (uint32_t batch = 0; batch < kBatches + staleness_; ++batch) {
      if (batch < kBatches) LookUp(&ring_[batch % ring_.size()]);
      if (batch < staleness_) continue;
      const uint32_t updated = batch - staleness_;
      Update(&ring_[updated % ring_.size()]);
      if (updated < kBatches / 2 || updated % 10 != 0) continue;
      losses += planted_.LossOf(Rows());
      ++count;
    }
    return losses / count;
  }

 private:
  static constexpr SliceRange kSlices = {0, 1};
  struct Pass {
    std::unique_ptr<LocalRows> rows;
    std::unique_ptr<EmbeddingPass> pass;
    LabelledBatch batch;
  };

  void LookUp(Pass* one) {
    one->batch = planted_.Draw();
    one->pass->Begin(&one->batch.samples);
    one->pass->MakeUnique(pack_, 0);
    EXPECT_TRUE(one->rows->Gather(pack_, kSlices, MissingRule::kCreate, one->pass->ids()).ok());
    one->pass->StitchReduce(pack_, 0);
  }

  void Update(Pass* one) {
    const ConstMatrix predictions = one->pass->Vectors(0, 0);
    const Matrix gradients = one->pass->Gradients(0, 0);
    for (uint32_t i = 0; i < kSamples; ++i) {
      gradients.Row(i)[0] = predictions.Row(i)[0] - one->batch.labels[i];
    }
    one->pass->SumGradients(pack_, 0);
    EXPECT_TRUE(one->rows->Update(pack_, {}).ok());
  }

  std::vector<float> Rows() {
    std::vector<Key> keys(kOthers + 1);
    std::iota(keys.begin(), keys.end(), Key{0});
    std::vector<float> rows(keys.size());
    EXPECT_TRUE(Lookup(table_, keys, MissingRule::kDefault,
                       {reinterpret_cast<std::byte*>(rows.data()), sizeof(float)}, {})
                    .ok());
    return rows;
  }

  Planted planted_;
  const uint32_t staleness_;
  const std::unique_ptr<Store> store_;
  Table* table_ = nullptr;
  const Pack pack_ = PlanPacks(std::vector<FeatureTraffic>(1))[0];
  std::vector<Pass> ring_;
};

// The least number of signs among `draws` that are positive by chance with at most this
// probability.
uint32_t LeastPositives(uint32_t draws, double probability) {
  double ways = 1.0;  // to have `positives` of them
  double sum = 0.0;   // of all ways to have as many or more
  for (uint32_t positives = draws;; --positives) {
    sum += ways;
    if (std::ldexp(sum, -static_cast<int>(draws)) > probability) return positives + 1;
    ways *= positives / (draws - positives + 1.0);
  }
}

using LogLosses = std::array<double, kSeeds>;  // of each seed

// Expects that `more` is above `less` in more seeds than chance gives.
void ExpectMore(const LogLosses& more, const LogLosses& less, const char* what) {
  uint32_t positives = 0;
  for (uint32_t seed = 0; seed < kSeeds; ++seed) positives += more[seed] > less[seed] ? 1 : 0;
  // (1 + 20 + 190 + 1140 + 4845) / 2^20 = 0.006; with 15 it is 0.02. Five tests have 0.03.
  EXPECT_EQ(LeastPositives(kSeeds, 0.01), 16u);
  EXPECT_GE(positives, LeastPositives(kSeeds, 0.01)) << what;
}

TEST(StalenessConvergence, TheGapGrowsWithStalenessAndWithThePopularityOfAnId) {
  // How much larger the loss is than that of s = 0 with the same samples, as a logarithm.
  std::array<std::array<LogLosses, std::size(kStaleness)>, std::size(kAlphas)> gaps;
  std::printf("  loss / loss of s = 0 (geometric mean of %u seeds)\n  alpha", kSeeds);
  for (const uint32_t staleness : kStaleness) std::printf("  s = %-8u", staleness);
  for (size_t a = 0; a < std::size(kAlphas); ++a) {
    std::printf("\n  %-5g", kAlphas[a]);
    for (size_t s = 0; s < std::size(kStaleness); ++s) {
      LogLosses& of_seeds = gaps[a][s];
      for (uint32_t seed = 0; seed < kSeeds; ++seed) {
        of_seeds[seed] = std::log(Training(seed + 1, kAlphas[a], kStaleness[s]).Run());
        if (s > 0) of_seeds[seed] -= gaps[a][0][seed];
      }
      const double mean = std::accumulate(of_seeds.begin(), of_seeds.end(), 0.0) / kSeeds;
      std::printf("  %-12.4g", s > 0 ? std::exp(mean) : 1.0);
    }
    gaps[a][0].fill(0.0);
  }
  std::printf("\n");
  for (size_t s = 1; s < std::size(kStaleness); ++s) {
    ExpectMore(gaps[2][s], gaps[2][s - 1], "more staleness");
  }
  for (size_t a = 1; a < std::size(kAlphas); ++a) {
    ExpectMore(gaps[a][3], gaps[a - 1][3], "a more popular id");
  }
}

}  // namespace
}  // namespace embank::test::staleness_convergence_test
