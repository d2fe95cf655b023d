#include "bench/hot_stream.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/random.h"
#include "base/status_macros.h"
#include "bench/id_mode.h"
#include "train/generator/zipf.h"

namespace embank {
namespace {

class ZipfStream final : public HotStream {
 public:
  ZipfStream(const Shape& shape, const ZipfSampler& sampler)
      : HotStream(shape.rows, shape.batch), shape_(shape), sampler_(sampler), ranks_(shape.batch) {
    const Permutation permutation(shape.rows, shape.seed);
    order_.resize(shape.rows);
    for (uint32_t i = 0; i < shape.rows; ++i) order_[i] = static_cast<uint32_t>(permutation(i));
  }

 private:
  void Fill(uint64_t iteration, std::vector<uint32_t>* ids) override {
    if (shape_.drift_at != 0 && iteration == shape_.drift_at + 1) Drift();
    sampler_.Ranks(iteration * shape_.batch, ranks_);
    for (size_t i = 0; i < ids->size(); ++i) (*ids)[i] = order_[ranks_[i] - 1];
  }

  // The cold partners are a random choice without repetition.
  void Drift() {
    const uint32_t top = shape_.rows / 5;
    std::vector<uint32_t> cold(shape_.rows - top);
    std::iota(cold.begin(), cold.end(), top);
    const CounterRandom random(shape_.seed + 1);
    uint32_t chosen = 0;
    for (uint32_t rank = 0; rank < top; rank += 2, ++chosen) {
      const uint64_t left = cold.size() - chosen;
      std::swap(cold[chosen], cold[chosen + random.Bits(chosen) % left]);
      std::swap(order_[rank], order_[cold[chosen]]);
    }
  }

  const Shape shape_;
  const ZipfSampler sampler_;
  std::vector<uint64_t> ranks_;
};

class TraceStream final : public HotStream {
 public:
  TraceStream(std::vector<uint32_t> positions, uint32_t rows, uint64_t batch)
      : HotStream(rows, batch), positions_(std::move(positions)) {
    std::vector<uint64_t> counts(rows);
    for (const uint32_t id : positions_) ++counts[id];
    order_.resize(rows);
    std::iota(order_.begin(), order_.end(), 0u);
    std::stable_sort(order_.begin(), order_.end(),
                     [&](uint32_t a, uint32_t b) { return counts[a] > counts[b]; });
  }

 private:
  void Fill(uint64_t /*iteration*/, std::vector<uint32_t>* ids) override {
    const size_t count = std::min(ids->size(), positions_.size() - next_);
    ids->resize(count);
    std::copy_n(positions_.begin() + static_cast<ptrdiff_t>(next_), count, ids->begin());
    next_ += count;
  }

  const std::vector<uint32_t> positions_;
  size_t next_ = 0;
};

}  // namespace

StatusOr<std::unique_ptr<HotStream>> HotStream::Zipf(const Shape& shape) {
  EMBANK_ASSIGN_OR_RETURN(const ZipfSampler sampler,
                          ZipfSampler::Create(shape.rows, shape.skew, shape.seed));
  return std::unique_ptr<HotStream>(std::make_unique<ZipfStream>(shape, sampler));
}

std::unique_ptr<HotStream> HotStream::Trace(std::vector<uint32_t> positions, uint32_t rows,
                                            uint64_t batch) {
  return std::make_unique<TraceStream>(std::move(positions), rows, batch);
}

const HotBatch& HotStream::Next() {
  Fill(iteration_, &ids_);
  distinct_.clear();
  counts_.clear();
  for (const uint32_t id : ids_) {
    uint32_t& number = number_of_[id];
    if (number == 0) {
      distinct_.push_back(id);
      counts_.push_back(0);
      number = static_cast<uint32_t>(distinct_.size());
    }
    ++counts_[number - 1];
  }
  for (const uint32_t id : distinct_) number_of_[id] = 0;
  batch_ = {iteration_++, ids_, distinct_, counts_};
  return batch_;
}

}  // namespace embank
