#include "bench/rank_dense.h"

#include <memory>
#include <utility>

#include "base/check.h"
#include "base/status_macros.h"
#include "base/str_cat.h"
#include "base/threads/clock.h"
#include "base/threads/executor.h"
#include "bench/kv_samples.h"
#include "bench/measured_exchange.h"
#include "bench/rank_ids.h"
#include "train/dense/gemm.h"
#include "train/dense_pass.h"
#include "train/models/model_table.h"
#include "train/pipeline/operation_graph.h"
#include "train/ranks/dense_sums.h"
#include "train/trainer_options.h"

namespace embank {
namespace {

constexpr uint32_t kDenseFeatures = 13;
constexpr uint32_t kDenseWarmUp = 4;

enum class Buckets { kBeside, kBehind };

// The values of a slice, and memory for their gradients.
class SliceMemory {
 public:
  SliceMemory(std::span<const FeatureTable> features, uint32_t samples)
      : samples_(samples),
        dense_(uint64_t{samples} * kDenseFeatures, 0.5f),
        labels_(samples),
        logits_(samples) {
    uint64_t floats = 0;
    for (const FeatureTable& feature : features) floats += uint64_t{samples} * feature.dim;
    values_.assign(floats, 0.1f);
    gradients_.resize(floats);
    uint64_t begin = 0;
    for (const FeatureTable& feature : features) {
      vectors_.emplace_back(values_.data() + begin, samples, feature.dim);
      vector_gradients_.emplace_back(gradients_.data() + begin, samples, feature.dim);
      begin += uint64_t{samples} * feature.dim;
    }
  }

  DenseSlice Slice(uint32_t number, uint32_t batch) {
    return {.number = number,
            .batch_samples = batch,
            .input = {.dense = ConstMatrix(dense_.data(), samples_, kDenseFeatures),
                      .features = vectors_},
            .labels = labels_,
            .vector_gradients = vector_gradients_,
            .logits = logits_};
  }

 private:
  const uint32_t samples_;
  std::vector<float> dense_, labels_, logits_, values_, gradients_;
  std::vector<ConstMatrix> vectors_;
  std::vector<Matrix> vector_gradients_;
};

class DenseRun {
 public:
  // The graph outlives it.
  static StatusOr<std::unique_ptr<DenseRun>> Create(const TrainerOptions& options,
                                                    const ClickColumns& columns,
                                                    const LayerGraph* graph, Exchange* exchange) {
    const uint32_t slices = options.slices / exchange->ranks();
    EMBANK_ASSIGN_OR_RETURN(DensePass pass, DensePass::Create(options, graph, slices, 1));
    return std::unique_ptr<DenseRun>(
        new DenseRun(slices, options, columns, std::move(pass), exchange));
  }

  uint32_t buckets() const { return pass_.buckets(); }

  // Sets the time of this rank.
  Status Run(Buckets where, double* us) {
    EMBANK_RETURN_IF_ERROR(exchange_->Barrier());
    const uint64_t begin_ns = SteadyClock()->NowNs();
    OperationGraph graph;
    AddOperations(where, &graph);
    EMBANK_RETURN_IF_ERROR(graph.Run(executor_.get()));
    *us = static_cast<double>(SteadyClock()->NowNs() - begin_ns) * 1e-3;
    return OkStatus();
  }

 private:
  DenseRun(uint32_t slices, const TrainerOptions& options, const ClickColumns& columns,
           DensePass pass, Exchange* exchange)
      : slices_(slices),
        batch_(options.batch),
        memory_(TablesOf(options, columns), options.batch / options.slices),
        pass_(std::move(pass)),
        exchange_(exchange),
        sums_(exchange),
        executor_(MakeThreadPool(1)) {}

  // As BatchPass adds them: the last bucket is the first whose gradients are there.
  void AddOperations(Buckets where, OperationGraph* graph) {
    arrivals_.resize(buckets());
    const DensePass::BucketDone done = [this, where, graph](uint32_t bucket) {
      if (where == Buckets::kBeside) graph->Arrive(arrivals_[bucket]);
    };
    const OperationGraph::Id dense = graph->Add(
        {.kind = OperationKind::kDense}, slices_, {}, [this, done](uint32_t part, uint32_t thread) {
          pass_.RunSlice(memory_.Slice(part, batch_), thread, done);
          return OkStatus();
        });
    for (uint32_t bucket = buckets(); bucket-- > 0;) {
      const OperationLabel label = {.kind = OperationKind::kAllReduce};
      const OperationBody body = [this, bucket](uint32_t, uint32_t) {
        return sums_.Run(pass_.SumBucket(bucket));
      };
      arrivals_[bucket] = where == Buckets::kBeside ? graph->AddAwaiting(label, slices_, body)
                                                    : graph->Add(label, 1, {{dense}}, body);
    }
  }

  const uint32_t slices_;
  const uint32_t batch_;
  SliceMemory memory_;
  DensePass pass_;
  Exchange* const exchange_;
  DenseSums sums_;
  const std::unique_ptr<Executor> executor_;
  std::vector<OperationGraph::Id> arrivals_;
};

ClickColumns KaggleColumns() {
  ClickColumns columns;
  for (uint32_t i = 0; i < kDenseFeatures; ++i) columns.dense.push_back(StrCat("I", i));
  for (uint32_t i = 0; i < RankIds::kFields; ++i) columns.ids.push_back(StrCat("C", i));
  return columns;
}

StatusOr<RankDenseFigure> RunModel(const std::string& model, uint32_t batch, uint32_t rounds,
                                   Exchange* exchange) {
  TrainerOptions options;
  EMBANK_ASSIGN_OR_RETURN(options.model, FindModel(model));
  options.batch = batch;
  const ClickColumns columns = KaggleColumns();
  EMBANK_ASSIGN_OR_RETURN(const LayerGraph graph, MakeModel(options, columns));
  EMBANK_ASSIGN_OR_RETURN(const std::unique_ptr<DenseRun> run,
                          DenseRun::Create(options, columns, &graph, exchange));
  RankDenseFigure figure = {
      .model = model, .batch = batch, .parameters = graph.parameters(), .buckets = run->buckets()};
  std::vector<double> beside, behind, ratios;
  for (uint32_t round = 0; round < kDenseWarmUp + rounds; ++round) {
    double us[2] = {};
    for (uint32_t turn = 0; turn < 2; ++turn) {
      const uint32_t where = (round + turn) % 2;
      EMBANK_RETURN_IF_ERROR(run->Run(static_cast<Buckets>(where), &us[where]));
    }
    for (double& of_rank : us) of_rank = MaxOverRanks(exchange, of_rank);
    if (round < kDenseWarmUp) continue;
    beside.push_back(us[0]);
    behind.push_back(us[1]);
    ratios.push_back(us[1] / us[0]);
  }
  figure.beside_us = Median(beside);
  figure.behind_us = Median(behind);
  figure.ratio = Median(ratios);
  return figure;
}

}  // namespace

StatusOr<std::vector<RankDenseFigure>> RunRankDense(const RankDenseOptions& options,
                                                    Exchange* exchange) {
  EMBANK_RETURN_IF_ERROR(PrepareGemm());
  std::vector<RankDenseFigure> figures;
  for (const std::string& model : options.models) {
    for (const uint32_t batch : options.batches) {
      EMBANK_ASSIGN_OR_RETURN(RankDenseFigure figure,
                              RunModel(model, batch, options.rounds, exchange));
      figures.push_back(std::move(figure));
    }
  }
  return figures;
}

}  // namespace embank
