// Models as graphs: their sizes, their gradients, and the same bits for any number of threads.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/threads/executor.h"
#include "tests/train/dense_values.h"
#include "train/dense/gemm.h"
#include "train/dense/loss.h"
#include "train/dense/optimizer.h"
#include "train/dense/slices.h"
#include "train/models/deep_fm.h"
#include "train/models/dlrm.h"
#include "train/models/ffnn.h"
#include "train/models/graph_run.h"
#include "train/models/layer_graph.h"
#include "train/models/mmoe.h"
#include "train/models/model_table.h"
#include "train/models/wide_deep.h"

namespace embank::test::models_test {
namespace {

// Models of a few nodes each; the first two id features of some have dim 1.
const ModelInputs kSame = {.dense = 3, .feature_dims = {4, 4, 4}};
const ModelInputs kWide = {.dense = 3, .feature_dims = {1, 1, 4, 4}};
const std::vector<uint32_t> kWidths = {6, 5};

// A model that no file of the library has: two towers, which meet in an inner product.
LayerGraph MakeTwoTowers(const ModelInputs& inputs) {
  LayerGraph graph(inputs);
  const NodeId left = graph.LinearRelu(graph.Concat({graph.Feature(0), graph.Dense()}), 4);
  const NodeId right = graph.Linear(graph.Feature(1), 4);
  const NodeId product = graph.DotInteraction({left, right});
  graph.Sum({product, graph.Linear(graph.Sum({left, right, graph.Feature(2)}), 1)});
  return graph;
}

struct NamedModel {
  std::string name;
  LayerGraph graph;
};

std::vector<NamedModel> SmallModels() {
  return {{"dlrm", MakeDlrm(kSame, {{5, 4}, {6}})},
          {"wide and deep", MakeWideDeep(kWide, kWidths)},
          {"deep fm", MakeDeepFm(kWide, kWidths)},
          {"ffnn", MakeFfnn(kSame, kWidths)},
          {"mmoe", MakeMmoe(kSame, {.experts = 3, .tasks = 2, .expert = {5, 4}, .tower = {3}})},
          {"two towers", MakeTwoTowers(kSame)}};
}

// A batch of a model, and gradients of its id features.
class ModelBatch {
 public:
  ModelBatch(const ModelInputs& inputs, uint32_t samples, Random* random)
      : dense_(samples, inputs.dense) {
    dense_.FillSigned(random);
    for (const uint32_t dim : inputs.feature_dims) {
      features_.emplace_back(samples, dim, 1).FillSigned(random);
      gradients_.emplace_back(samples, dim, 2).FillSigned(random);
    }
  }

  // The samples from `begin` to `end`, valid until the next call with the same `views`.
  struct Views {
    std::vector<ConstMatrix> features;
    std::vector<Matrix> gradients;
    SliceInput input;
  };
  void Slice(uint32_t begin, uint32_t end, Views* views) {
    *views = {};
    for (size_t f = 0; f < features_.size(); ++f) {
      views->features.emplace_back(features_[f].view().RowsFrom(begin, end));
      views->gradients.push_back(gradients_[f].view().RowsFrom(begin, end));
    }
    views->input = {dense_.view().RowsFrom(begin, end), views->features};
  }

  OwnedMatrix& feature(size_t f) { return features_[f]; }
  OwnedMatrix& gradient(size_t f) { return gradients_[f]; }
  size_t size() const { return features_.size(); }

 private:
  OwnedMatrix dense_;
  std::vector<OwnedMatrix> features_, gradients_;
};

TEST(Models, HaveTheGradientsOfDifferences) {
  ASSERT_TRUE(PrepareGemm().ok());
  constexpr uint32_t kSamples = 3;
  constexpr float kStep = 0x1p-10f;
  for (NamedModel& model : SmallModels()) {
    SCOPED_TRACE(model.name);
    Random random(41);
    ModelBatch batch(model.graph.inputs(), kSamples, &random);
    ModelBatch::Views views;
    batch.Slice(0, kSamples, &views);
    std::vector<float> weights(model.graph.parameters()), gradients(weights.size(), 9.0f);
    model.graph.Initialize(1, weights);
    GraphRun run(&model.graph, kSamples);
    const ConstMatrix logits = run.Forward(views.input, weights);
    OwnedMatrix output_gradient(kSamples, logits.columns), used(kSamples, logits.columns);
    // The second pass overwrites everything that the first one has left.
    for (uint32_t pass = 0; pass < 2; ++pass) {
      output_gradient.FillSigned(&random);
      for (uint32_t s = 0; s < kSamples; ++s) {
        std::ranges::copy(output_gradient.view().Row(s), used.view().Row(s).begin());
      }
      run.Backward(views.input, weights, used.view(), {gradients, views.gradients});
    }
    const auto Loss = [&] {
      return WeightedSum(run.Forward(views.input, weights), output_gradient.view());
    };
    for (size_t f = 0; f < batch.size(); ++f) {
      ExpectDifferences(batch.feature(f).view(), batch.gradient(f).view(), Loss, 4e-3, kStep);
      batch.gradient(f).ExpectPaddingIntact();
    }
    const auto count = static_cast<uint32_t>(weights.size());
    ExpectDifferences(Matrix(weights.data(), 1, count), ConstMatrix(gradients.data(), 1, count),
                      Loss, 4e-3, kStep);
  }
}

// Trains for some steps on one batch and returns all losses, and the weights behind them.
std::vector<double> Train(const LayerGraph& graph, Executor* executor,
                          std::vector<float>* weights) {
  constexpr uint32_t kSamples = 100, kSteps = 20;
  Random random(43);
  ModelBatch batch(graph.inputs(), kSamples, &random);
  std::vector<float> labels(kSamples);
  for (float& label : labels) label = random.OneIn(3) ? 1.0f : 0.0f;
  weights->resize(graph.parameters());
  graph.Initialize(1, *weights);
  DenseOptimizer optimizer =
      *DenseOptimizer::Create(Optimizer::kAdam, {.learning_rate = 0.01f}, graph.parameters());
  std::vector<GraphRun> runs(kSlicesDefault, GraphRun(&graph, kSamples));
  std::vector<float> gradients(kSlicesDefault * weights->size());
  std::vector<double> losses;
  for (uint32_t step = 0; step < kSteps; ++step) {
    std::vector<double> slice_losses(kSlicesDefault);
    executor->ParallelFor(kSlicesDefault, [&](uint32_t slice) {
      const auto [begin, end] = SliceOf(kSamples, kSlicesDefault, slice);
      ModelBatch::Views views;
      batch.Slice(begin, end, &views);
      const ConstMatrix logits = runs[slice].Forward(views.input, *weights);
      std::vector<float> logit_gradients(end - begin);
      slice_losses[slice] = SumLogLossBackward({logits.data, end - begin},
                                               std::span(labels).subspan(begin, end - begin),
                                               1.0f / kSamples, logit_gradients);
      const std::span<float> all(gradients);
      runs[slice].Backward(
          views.input, *weights, {logit_gradients.data(), end - begin, 1},
          {all.subspan(slice * weights->size(), weights->size()), views.gradients});
    });
    losses.push_back(SumSlices(slice_losses));
    SumSlices(executor, kSlicesDefault, gradients);
    optimizer.Step(executor, std::span(gradients).first(weights->size()), *weights);
  }
  return losses;
}

TEST(Models, TrainToTheSameBitsForAnyNumberOfThreads) {
  ASSERT_TRUE(PrepareGemm().ok());
  for (const NamedModel& model : SmallModels()) {
    SCOPED_TRACE(model.name);
    if (model.graph.nodes().back().columns > 1) continue;
    std::vector<float> expected, weights;
    const std::vector<double> losses = Train(model.graph, MakeThreadPool(1).get(), &expected);
    EXPECT_LT(losses.back(), 0.9 * losses.front());
    for (const uint32_t threads : {2u, 5u}) {
      EXPECT_EQ(Train(model.graph, MakeThreadPool(threads).get(), &weights), losses);
      EXPECT_EQ(weights, expected);
    }
  }
}

TEST(Models, HaveTheSizesOfThePapers) {
  auto Parameters = [](std::vector<uint32_t> widths) {
    uint64_t sum = 0;
    for (size_t i = 1; i < widths.size(); ++i) sum += uint64_t{widths[i]} * (widths[i - 1] + 1);
    return sum;
  };
  const std::vector<uint32_t> dims(26, 16);
  EXPECT_EQ(MakeDlrm({13, dims}, Rmc2Layers()).parameters(),
            Parameters({13, 512, 256, 64, 16}) + Parameters({367, 512, 256, 1}));
  EXPECT_EQ(MakeDlrm({13, std::vector<uint32_t>(26, 64)}, Rmc3Layers()).parameters(),
            Parameters({13, 512, 256, 64}) + Parameters({415, 512, 512, 256, 1}));
  EXPECT_EQ(MakeDlrm({1, std::vector<uint32_t>(21, 16)}, Rmc4Layers()).parameters(),
            Parameters({1, 512, 256, 64, 16}) + Parameters({247, 512, 256, 1}));
  EXPECT_EQ(MakeFfnn({13, dims}, PersiaWidths()).parameters(),
            Parameters({429, 4096, 2048, 1024, 512, 256, 1}));
  const ModelInputs terabyte = {13, std::vector<uint32_t>(26, 64)};
  EXPECT_EQ(MakeDlrm(terabyte, SynM1Layers()).parameters(),
            Parameters({13, 64}) + Parameters({415, 512, 1}));
  EXPECT_EQ(MakeDlrm(terabyte, SynM2Layers()).parameters(),
            Parameters({13, 512, 64}) + Parameters({415, 512, 256, 1}));
  EXPECT_EQ(MakeDlrm(terabyte, SynM3Layers()).parameters(),
            Parameters({13, 1024, 512, 64}) + Parameters({415, 512, 1024, 256, 1}));
  EXPECT_EQ(MakeDlrm(terabyte, SynM4Layers()).parameters(),
            Parameters({13, 1024, 512, 256, 64}) + Parameters({415, 512, 1024, 512, 256, 1}));
}

TEST(Models, AreFoundByName) {
  struct Case {
    const char* name;
    uint32_t dim;
    LayerGraph graph;
  };
  const auto inputs = [](uint32_t dim) { return ModelInputs{13, std::vector<uint32_t>(26, dim)}; };
  for (const Case& c : {Case{"dlrm", 0, MakeDlrm(inputs(16), Rmc2Layers())},
                        Case{"rmc2", 16, MakeDlrm(inputs(16), Rmc2Layers())},
                        Case{"rmc3", 64, MakeDlrm(inputs(64), Rmc3Layers())},
                        Case{"rmc4", 16, MakeDlrm(inputs(16), Rmc4Layers())},
                        Case{"syn-m1", 64, MakeDlrm(inputs(64), SynM1Layers())},
                        Case{"syn-m2", 64, MakeDlrm(inputs(64), SynM2Layers())},
                        Case{"syn-m3", 64, MakeDlrm(inputs(64), SynM3Layers())},
                        Case{"syn-m4", 64, MakeDlrm(inputs(64), SynM4Layers())},
                        Case{"ffnn-persia", 0, MakeFfnn(inputs(16), PersiaWidths())}}) {
    SCOPED_TRACE(c.name);
    const StatusOr<ClickModel> model = FindModel(c.name);
    ASSERT_TRUE(model.ok()) << model.status();
    EXPECT_EQ(model->name, c.name);
    EXPECT_EQ(model->dim, c.dim);
    EXPECT_EQ(TextOf(model->make(c.graph.inputs())), TextOf(c.graph));
  }
  for (const ClickModel& model : AllModels()) EXPECT_TRUE(FindModel(model.name).ok());
  const Status status = FindModel("rmc9").status();
  EXPECT_TRUE(IsInvalidArgument(status));
  EXPECT_EQ(status.message(), "model is \"rmc9\"; it must be " + ModelNames());
}

TEST(Models, AreTextsThatDifferWithTheirGraphs) {
  const auto text = [](auto add) {
    LayerGraph graph(kSame);
    add(&graph);
    return TextOf(graph);
  };
  EXPECT_EQ(text([](LayerGraph* g) { g->LinearRelu(g->Feature(1), 5); }),
            "node 0 feature 1 width 4\nnode 1 linear relu width 5 0\n");
  EXPECT_EQ(text([](LayerGraph* g) { g->Linear(g->Dense(), 5); }),
            "node 0 dense width 3\nnode 1 linear width 5 0\n");
  EXPECT_EQ(text([](LayerGraph* g) { g->Fm(g->Features()); }),
            "node 0 feature 0 width 4\nnode 1 feature 1 width 4\nnode 2 feature 2 width 4\n"
            "node 3 fm width 1 0 1 2\n");
}

TEST(Models, GiveZerosToFeaturesAndLayersThatNothingUses) {
  ASSERT_TRUE(PrepareGemm().ok());
  LayerGraph graph(kSame);
  const NodeId unused = graph.LinearRelu(graph.Feature(1), 3);
  graph.Linear(graph.Feature(0), 1);
  Random random(47);
  ModelBatch batch(kSame, 2, &random);
  ModelBatch::Views views;
  batch.Slice(0, 2, &views);
  std::vector<float> weights(graph.parameters(), 1.0f), gradients(weights.size(), 9.0f);
  GraphRun run(&graph, 2);
  run.Forward(views.input, weights);
  OwnedMatrix output_gradient(2, 1);
  run.Backward(views.input, weights, output_gradient.FillSigned(&random).view(),
               {gradients, views.gradients});
  EXPECT_EQ(batch.gradient(0).At(1, 2), output_gradient.At(1, 0));
  for (uint32_t d = 0; d < 4; ++d) {
    EXPECT_EQ(batch.gradient(1).At(1, d), 0.0f);
    EXPECT_EQ(batch.gradient(2).At(0, d), 0.0f);
  }
  const GraphNode& layer = graph.nodes()[unused];
  EXPECT_THAT(std::span(gradients).subspan(layer.first_parameter, layer.parameters),
              testing::Each(0.0f));
}

}  // namespace
}  // namespace embank::test::models_test
