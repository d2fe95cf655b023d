// The layers over a sample's vectors: dot interaction and factorization machine.
#include "train/dense/interaction.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/train/dense_values.h"
#include "train/dense/fm.h"
#include "train/dense/gemm.h"

namespace embank::test::interaction_test {
namespace {

// Some vectors of each sample, with strides of their own, and their gradients.
class Vectors {
 public:
  Vectors(uint32_t count, uint32_t samples, uint32_t dim) {
    for (uint32_t v = 0; v < count; ++v) {
      values_.emplace_back(samples, dim, v % 3);
      gradients_.emplace_back(samples, dim, v % 2);
    }
  }

  template <typename Fill>
  void FillAll(Fill fill) {
    for (OwnedMatrix& value : values_) fill(&value);
  }
  std::vector<ConstMatrix> values() {
    const std::vector<Matrix> views = Views(&values_);
    return {views.begin(), views.end()};
  }
  std::vector<Matrix> gradients() { return Views(&gradients_); }
  OwnedMatrix& operator[](uint32_t v) { return values_[v]; }
  OwnedMatrix& gradient(uint32_t v) { return gradients_[v]; }

 private:
  static std::vector<Matrix> Views(std::vector<OwnedMatrix>* matrices) {
    std::vector<Matrix> views;
    for (OwnedMatrix& matrix : *matrices) views.push_back(matrix.view());
    return views;
  }

  std::vector<OwnedMatrix> values_, gradients_;
};

constexpr uint32_t kVectors = 6, kSamples = 5, kDim = 4;

class OverVectors : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(PrepareGemm().ok()); }

  Random random_{11};
  Vectors vectors_{kVectors, kSamples, kDim};
  OwnedMatrix output_{kSamples, PairCount(kVectors), 3};
  OwnedMatrix output_gradient_{kSamples, PairCount(kVectors), 1};
};

// Compares the interaction of some vectors with plain loops, bit for bit: sums have one order.
void ExpectPlainLoops(uint32_t count, uint32_t dim) {
  SCOPED_TRACE(testing::Message() << count << " vectors of " << dim);
  Random random(count * 100 + dim);
  Vectors vectors(count, kSamples, dim);
  OwnedMatrix output(kSamples, PairCount(count), 3), output_gradient(kSamples, PairCount(count), 1);
  vectors.FillAll([&](OwnedMatrix* m) { m->FillSigned(&random); });
  output_gradient.FillSigned(&random);
  const std::vector<ConstMatrix> values = vectors.values();
  DotInteractionForward(values, output.view());
  DotInteractionBackward(values, output_gradient.view(), vectors.gradients());
  for (uint32_t s = 0; s < kSamples; ++s) {
    std::vector<float> expected(uint64_t{count} * dim);
    uint32_t pair = 0;
    for (uint32_t i = 1; i < count; ++i) {
      for (uint32_t j = 0; j < i; ++j, ++pair) {
        float sum = 0.0f;
        for (uint32_t d = 0; d < dim; ++d) {
          sum += vectors[i].At(s, d) * vectors[j].At(s, d);
          expected[i * dim + d] += output_gradient.At(s, pair) * vectors[j].At(s, d);
          expected[j * dim + d] += output_gradient.At(s, pair) * vectors[i].At(s, d);
        }
        ASSERT_EQ(output.At(s, pair), sum) << i << ", " << j;
      }
    }
    for (uint32_t v = 0; v < count; ++v) {
      for (uint32_t d = 0; d < dim; ++d) {
        ASSERT_EQ(vectors.gradient(v).At(s, d), expected[v * dim + d]) << v << ", " << d;
      }
    }
  }
  output.ExpectPaddingIntact();
  for (uint32_t v = 0; v < count; ++v) vectors.gradient(v).ExpectPaddingIntact();
}

TEST(DotInteraction, HasTheBitsOfThePlainLoop) {
  for (const uint32_t count : {2u, 3u, 4u, 5u, 6u, 16u, 17u, 27u, 33u}) {
    for (const uint32_t dim : {1u, 4u, 15u, 16u, 17u, 40u}) ExpectPlainLoops(count, dim);
  }
}

TEST_F(OverVectors, DotInteractionHasTheGradientsOfDifferences) {
  vectors_.FillAll([&](OwnedMatrix* m) { m->FillSigned(&random_); });
  output_gradient_.FillSigned(&random_);
  const std::vector<ConstMatrix> values = vectors_.values();
  DotInteractionBackward(values, output_gradient_.view(), vectors_.gradients());
  auto Loss = [&] {
    DotInteractionForward(values, output_.view());
    return WeightedSum(output_.view(), output_gradient_.view());
  };
  for (uint32_t v = 0; v < kVectors; ++v) {
    ExpectDifferences(vectors_[v].view(), vectors_.gradient(v).view(), Loss, 1e-3);
  }
}

TEST_F(OverVectors, FmIsTheSumOfAllPairsForWholeNumbers) {
  vectors_.FillAll([&](OwnedMatrix* m) { m->FillWhole(&random_, 20); });
  OwnedMatrix output(kSamples, 1, 2), output_gradient(kSamples, 1);
  output_gradient.FillWhole(&random_, 9);
  const std::vector<ConstMatrix> values = vectors_.values();
  FmForward(values, output.view());
  FmBackward(values, output_gradient.view(), vectors_.gradients());
  for (uint32_t s = 0; s < kSamples; ++s) {
    float sum = 0.0f;
    for (uint32_t d = 0; d < kDim; ++d) {
      float others[kVectors] = {};
      for (uint32_t i = 0; i < kVectors; ++i) {
        for (uint32_t j = 0; j < kVectors; ++j) {
          if (j < i) sum += vectors_[i].At(s, d) * vectors_[j].At(s, d);
          if (j != i) others[i] += vectors_[j].At(s, d);
        }
        EXPECT_EQ(vectors_.gradient(i).At(s, d), output_gradient.At(s, 0) * others[i]);
      }
    }
    EXPECT_EQ(output.At(s, 0), sum);
  }
}

TEST_F(OverVectors, FmHasTheGradientsOfDifferences) {
  vectors_.FillAll([&](OwnedMatrix* m) { m->FillSigned(&random_); });
  OwnedMatrix output(kSamples, 1), output_gradient(kSamples, 1);
  output_gradient.FillSigned(&random_);
  const std::vector<ConstMatrix> values = vectors_.values();
  FmBackward(values, output_gradient.view(), vectors_.gradients());
  auto Loss = [&] {
    FmForward(values, output.view());
    return WeightedSum(output.view(), output_gradient.view());
  };
  for (uint32_t v = 0; v < kVectors; ++v) {
    ExpectDifferences(vectors_[v].view(), vectors_.gradient(v).view(), Loss, 1e-3);
  }
}

TEST(PairCount, IsThatOfTheModels) {
  EXPECT_EQ(PairCount(27), 351u);
  EXPECT_EQ(PairCount(22), 231u);
  EXPECT_EQ(PairCount(1), 0u);
}

}  // namespace
}  // namespace embank::test::interaction_test
