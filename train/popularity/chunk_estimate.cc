#include "train/popularity/chunk_estimate.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/random.h"
#include "base/seeded_bug.h"
#include "train/popularity/cutoff.h"
#include "train/popularity/student_t.h"

namespace embank {

ChunkEstimator::ChunkEstimator(std::span<const IdCount> entries, uint64_t seed)
    : chunks_(static_cast<uint32_t>(entries.size() / kChunkEntries)) {
  scores_.reserve(entries.size());
  for (const IdCount& entry : entries) scores_.push_back(ScoreOf(entry));
  const CounterRandom random(seed);
  for (size_t left = scores_.size(); left > 1; --left) {
    if (Seeded(SeededBug::kChunksNotShuffled)) break;
    std::swap(scores_[left - 1], scores_[random.Bits(left) % left]);
  }
  // Half as many more each time: at most 1.5 times the chunks that were needed are counted.
  for (uint32_t chunks = kChunksFirst; chunks < chunks_; chunks += chunks / 2) {
    const uint32_t degrees = Seeded(SeededBug::kWrongDegrees) ? 1 : chunks - 1;
    stages_.push_back({chunks, StudentT(kConfidence, degrees)});
  }
}

uint32_t ChunkEstimator::Count(size_t begin, size_t end, double cutoff) const {
  uint32_t count = 0;
  for (size_t i = begin; i < end; ++i) count += scores_[i] >= cutoff ? 1 : 0;
  return count;
}

ChunkEstimator::Estimate ChunkEstimator::EntriesFrom(double cutoff, uint32_t chunks_min) const {
  const double all = chunks_;
  const uint32_t rest = Count(size_t{chunks_} * kChunkEntries, scores_.size(), cutoff);
  double sum = 0.0;
  double squares = 0.0;
  uint32_t counted = 0;
  const auto count_up_to = [&](uint32_t chunks) {
    for (; counted < chunks; ++counted) {
      const size_t begin = size_t{counted} * kChunkEntries;
      const double hot = Count(begin, begin + kChunkEntries, cutoff);
      sum += hot;
      squares += hot * hot;
    }
  };
  for (const Stage& stage : stages_) {
    if (stage.chunks < chunks_min) continue;
    count_up_to(stage.chunks);
    const double n = stage.chunks;
    const double mean = sum / n;
    const double variance = std::max(0.0, squares - sum * mean) / (n - 1.0);
    const double entries = mean * all + rest;
    const double half_width = stage.quantile * all * std::sqrt((all - n) / all * variance / n);
    // Chunks without any hot entry say nothing about how rare they are.
    if (sum == 0.0 || half_width > kHalfWidthMax * entries) continue;
    const double uncounted = (all - n) * kChunkEntries;
    return {entries, std::min(entries + half_width, sum + rest + uncounted), counted};
  }
  count_up_to(chunks_);
  return {sum + rest, sum + rest, counted};
}

}  // namespace embank
