#include "train/dense_pass.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "base/check.h"
#include "base/seeded_bug.h"
#include "base/status_macros.h"
#include "tiers/row/row_update.h"
#include "train/dense/loss.h"
#include "train/dense/slices.h"

namespace embank {
namespace {

// Units of exchanges (train/ranks/exchange.h), and a line of the cache.
constexpr uint64_t kUnitFloats = 16;
// An exchange of 1 MiB takes 1 ms, and 10 to 40 us of it for any size.
constexpr uint64_t kBucketFloats = (uint64_t{1} << 20) / sizeof(float);

uint64_t RoundedUp(uint64_t floats) {
  return (floats + kUnitFloats - 1) / kUnitFloats * kUnitFloats;
}

// Tells the buckets of a slice, from the last one on, each once.
class BucketTeller {
 public:
  BucketTeller(const DensePass::BucketDone& done, uint32_t buckets,
               const std::function<uint64_t(uint32_t)>& begin_of)
      : done_(done), begin_of_(begin_of), left_(done ? buckets : 0) {}
  ~BucketTeller() { TellFrom(0); }
  BucketTeller(const BucketTeller&) = delete;
  BucketTeller& operator=(const BucketTeller&) = delete;

  void TellFrom(uint64_t first_parameter) {
    while (left_ > 0 && begin_of_(left_ - 1) >= first_parameter) done_(--left_);
  }

 private:
  const DensePass::BucketDone& done_;
  const std::function<uint64_t(uint32_t)>& begin_of_;
  uint32_t left_;
};

}  // namespace

StatusOr<DensePass> DensePass::Create(const TrainerOptions& options, const LayerGraph* graph,
                                      uint32_t slices, uint32_t threads) {
  EMBANK_ASSIGN_OR_RETURN(
      DenseOptimizer optimizer,
      DenseOptimizer::Create(options.dense.optimizer, options.dense.rule, graph->parameters()));
  return DensePass(options, graph, slices, threads, std::move(optimizer));
}

DensePass::DensePass(const TrainerOptions& options, const LayerGraph* graph, uint32_t slices,
                     uint32_t threads, DenseOptimizer optimizer)
    : slices_(slices),
      stride_(RoundedUp(graph->parameters())),
      optimizer_(std::move(optimizer)),
      weights_(graph->parameters()),
      weight_gradients_(options.store.read_only ? 0 : slices * stride_) {
  const uint32_t samples_max = (options.batch + options.slices - 1) / options.slices;
  for (uint32_t i = 0; i < threads; ++i) runs_.emplace_back(graph, samples_max);
  graph->Initialize(options.seed, weights_);
}

double DensePass::RunSlice(const DenseSlice& slice, uint32_t thread, const BucketDone& done) {
  if (!done) return RunForwardBackward(slice, thread, nullptr);
  const std::function<uint64_t(uint32_t)> begin_of = [this](uint32_t b) { return BucketBegin(b); };
  BucketTeller teller(done, buckets(), begin_of);
  return RunForwardBackward(slice, thread, [&](uint64_t first) { teller.TellFrom(first); });
}

double DensePass::RunForwardBackward(const DenseSlice& slice, uint32_t thread,
                                     const GraphRun::WeightsDone& done) {
  EMBANK_CHECK(thread < runs_.size() && slice.number < slices_);
  const bool trains = !slice.vector_gradients.empty();
  EMBANK_CHECK(!trains || weight_gradients_.size() == slices_ * stride_);
  const std::span<float> gradients =
      trains ? std::span(weight_gradients_).subspan(slice.number * stride_, weights_.size())
             : std::span<float>();
  const auto samples = static_cast<uint32_t>(slice.logits.size());
  EMBANK_CHECK(slice.labels.size() == samples || (!trains && slice.labels.empty()));
  if (samples == 0) {
    if (trains) std::ranges::fill(gradients, 0.0f);
    return 0.0;
  }
  GraphRun& run = runs_[thread];
  const ConstMatrix output = run.Forward(slice.input, weights_);
  EMBANK_CHECK(output.rows == samples && output.columns == 1);
  for (uint32_t i = 0; i < samples; ++i) slice.logits[i] = output.Row(i)[0];
  if (slice.labels.empty()) return 0.0;
  if (!trains) return SumLogLoss(slice.logits, slice.labels);
  std::vector<float> output_gradient(samples);
  const double loss = SumLogLossBackward(
      slice.logits, slice.labels, 1.0f / static_cast<float>(slice.batch_samples), output_gradient);
  run.Backward(slice.input, weights_, Matrix(output_gradient.data(), samples, 1),
               {.weights = gradients, .features = slice.vector_gradients}, done);
  return loss;
}

bool DensePass::SumGradients(Executor* executor) {
  return SumSlices(executor, slices_, weight_gradients_);
}

uint32_t DensePass::buckets() const {
  return static_cast<uint32_t>((stride_ + kBucketFloats - 1) / kBucketFloats);
}

uint64_t DensePass::BucketBegin(uint32_t bucket) const {
  return std::min(stride_, RoundedUp(stride_ * bucket / buckets()));
}

std::span<float> DensePass::SumBucket(uint32_t bucket) {
  const uint64_t begin = BucketBegin(bucket);
  const uint64_t count = BucketBegin(bucket + 1) - begin;
  SumSlices(slices_, begin, count, weight_gradients_);
  if (Seeded(SeededBug::kBucketSummedTwice)) SumSlices(slices_, begin, count, weight_gradients_);
  return std::span(weight_gradients_).subspan(begin, count);
}

bool DensePass::AreSumsFinite(Executor* executor) const {
  const auto first = std::span(weight_gradients_).first(stride_);
  std::atomic<bool> are_finite = true;
  executor->ParallelFor(buckets(), [&](uint32_t bucket) {
    const uint64_t begin = BucketBegin(bucket);
    const auto count = static_cast<uint32_t>(BucketBegin(bucket + 1) - begin);
    const auto* const sums = reinterpret_cast<const std::byte*>(first.data() + begin);
    if (!AllFinite(sums, count)) are_finite.store(false, std::memory_order_relaxed);
  });
  return are_finite.load(std::memory_order_relaxed);
}

void DensePass::Step(Executor* executor) {
  optimizer_.Step(executor, std::span(weight_gradients_).first(weights_.size()), weights_);
}

}  // namespace embank
