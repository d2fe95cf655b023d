#include "train/pipeline/embedding_pass.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <unordered_set>
#include <utility>

#include "base/check.h"
#include "base/hash.h"
#include "base/seeded_bug.h"
#include "store/packed/packed_gradients.h"
#include "store/packed/packed_lookup.h"
#include "train/pipeline/unique_partition.h"

namespace embank {
namespace {

void AddTo(const float* __restrict from, uint32_t dim, float* __restrict sum) {
  for (uint32_t i = 0; i < dim; ++i) sum[i] += from[i];
}

// The first one of a sum is copied: nothing is added to 0, which would change the sign of -0.
void Assign(const float* __restrict from, uint32_t dim, float* __restrict sum) {
  std::memcpy(sum, from, dim * sizeof(float));
}

void AddTimes(float weight, const float* __restrict from, uint32_t dim, float* __restrict sum) {
  for (uint32_t i = 0; i < dim; ++i) sum[i] += weight * from[i];
}

void AssignTimes(float weight, const float* __restrict from, uint32_t dim, float* __restrict sum) {
  for (uint32_t i = 0; i < dim; ++i) sum[i] = weight * from[i];
}

bool AreFinite(std::span<const float> numbers) {
  bool are_finite = true;
  for (const float number : numbers) {
    are_finite &= std::abs(number) <= std::numeric_limits<float>::max();  // a NaN is not
  }
  return are_finite;
}

// Makes an array have at least so many values, whatever they are. The next batch may have more.
template <typename Value>
void Grow(size_t size, std::vector<Value>* array) {
  if (size <= array->size()) return;
  if (size > array->capacity()) {
    *array = {};
    array->reserve(size + size / 8);
  }
  array->resize(size);
}

}  // namespace

EmbeddingPass::EmbeddingPass(std::vector<EmbeddingFeature> features, uint32_t slices)
    : features_(std::move(features)),
      slices_(slices),
      forgets_(std::ranges::any_of(
          features_,
          [](const auto& feature) { return feature.table->options().on_full == OnFull::kForget; })),
      memory_(features_.size()) {
  for (size_t i = 0; i < memory_.size(); ++i) {
    FeatureMemory& memory = memory_[i];
    memory.table_hash = TableHash(features_[i].table->name());
    memory.unique_count.resize(slices);
    memory.unique_begin.resize(slices);
    memory.micro_batch.resize(slices);
    memory.is_finite.resize(slices);
  }
}

void EmbeddingPass::Begin(const ClickBatch* batch) {
  batch_ = batch;
  for (size_t i = 0; i < features_.size(); ++i) {
    const FeatureIds& ids = Ids(i);
    EMBANK_CHECK(ids.offsets.empty() ? ids.ids.size() == batch->samples
                                     : ids.offsets.size() == uint64_t{batch->samples} + 1);
    EMBANK_CHECK(ids.weights.empty() || ids.weights.size() == ids.ids.size());
    const uint32_t dim = features_[i].dim;
    FeatureMemory& memory = memory_[i];
    Grow(ids.ids.size(), &memory.unique);
    Grow(ids.ids.size(), &memory.index);
    Grow(ids.ids.size() * dim, &memory.rows);
    Grow(ids.ids.size() * dim, &memory.sums);
    Grow(uint64_t{batch->samples} * dim, &memory.vectors);
    Grow(uint64_t{batch->samples} * dim, &memory.gradients);
  }
}

SampleRange EmbeddingPass::PositionsOf(size_t feature, SampleRange samples) const {
  const FeatureIds& ids = Ids(feature);
  if (ids.offsets.empty()) return samples;
  return {ids.offsets[samples.begin], ids.offsets[samples.end]};
}

void EmbeddingPass::MakeUnique(const Pack& pack, uint32_t slice) {
  UniquePartition unique;
  for (const uint32_t i : pack.features) {
    const SampleRange range = PositionsOf(i, SamplesOf(slice));
    const uint32_t size = range.end - range.begin;
    FeatureMemory& memory = memory_[i];
    memory.unique_begin[slice] = range.begin;
    memory.unique_count[slice] =
        unique.Run(KeySpan(Ids(i).ids).subspan(range.begin, size), memory.table_hash,
                   std::span(memory.unique).subspan(range.begin, size),
                   std::span(memory.index).subspan(range.begin, size));
  }
}

// Returns the number of distinct ids.
uint32_t EmbeddingPass::JoinSlices(size_t feature, SliceRange micro_batch) {
  FeatureMemory& memory = memory_[feature];
  const uint64_t begin = memory.unique_begin[micro_batch.begin];
  uint64_t end = begin;
  for (uint32_t slice = micro_batch.begin; slice < micro_batch.end; ++slice) {
    const uint32_t count = memory.unique_count[slice];
    const auto from = memory.unique.begin() + static_cast<int64_t>(memory.unique_begin[slice]);
    std::copy(from, from + count, memory.unique.begin() + static_cast<int64_t>(end));
    memory.unique_begin[slice] = end;
    memory.micro_batch[slice] = micro_batch.begin;
    end += count;
  }
  return static_cast<uint32_t>(end - begin);
}

Status EmbeddingPass::Gather(const Pack& pack, SliceRange micro_batch, MissingRule rule) {
  std::vector<LookupFeature> features;
  for (const uint32_t i : pack.features) {
    const uint32_t count = JoinSlices(i, micro_batch);
    FeatureMemory& memory = memory_[i];
    const uint64_t begin = memory.unique_begin[micro_batch.begin];
    const uint32_t dim = features_[i].dim;
    LookupFeature feature;
    feature.table = features_[i].table;
    feature.keys = KeySpan(memory.unique).subspan(begin, count);
    feature.rows = {reinterpret_cast<std::byte*>(memory.rows.data() + begin * dim),
                    dim * sizeof(float)};
    features.push_back(feature);
  }
  return LookupPacked(features, rule);
}

void EmbeddingPass::StitchReduce(const Pack& pack, uint32_t slice) {
  const SampleRange samples = SamplesOf(slice);
  for (const uint32_t i : pack.features) {
    FeatureMemory& memory = memory_[i];
    const uint32_t dim = features_[i].dim;
    const float* const rows = memory.rows.data() + memory.unique_begin[slice] * dim;
    const auto row = [&](uint32_t position) {
      const uint32_t place = memory.index[position];
      if (Seeded(SeededBug::kStitchOffByOne)) {
        return rows + uint64_t{(place + 1) % memory.unique_count[slice]} * dim;
      }
      return rows + uint64_t{place} * dim;
    };
    for (uint32_t sample = samples.begin; sample < samples.end; ++sample) {
      const SampleRange bag = PositionsOf(i, {sample, sample + 1});
      float* const vector = memory.vectors.data() + uint64_t{sample} * dim;
      if (bag.begin == bag.end) {
        std::fill_n(vector, dim, 0.0f);
        continue;
      }
      const std::span<const float> weights = Ids(i).weights;
      if (!weights.empty()) {
        AssignTimes(weights[bag.begin], row(bag.begin), dim, vector);
        for (uint32_t position = bag.begin + 1; position < bag.end; ++position) {
          AddTimes(weights[position], row(position), dim, vector);
        }
        continue;
      }
      Assign(row(bag.begin), dim, vector);
      for (uint32_t position = bag.begin + 1; position < bag.end; ++position) {
        AddTo(row(position), dim, vector);
      }
    }
  }
}

void EmbeddingPass::SumGradients(const Pack& pack, uint32_t slice) {
  const SampleRange samples = SamplesOf(slice);
  for (const uint32_t i : pack.features) {
    FeatureMemory& memory = memory_[i];
    const uint32_t dim = features_[i].dim;
    float* const sums = memory.sums.data() + memory.unique_begin[slice] * dim;
    const std::span<const float> weights = Ids(i).weights;
    uint32_t next_unseen = 0;
    if (Seeded(SeededBug::kSumsInAnotherOrder)) {
      std::reverse(memory.gradients.begin(),
                   memory.gradients.begin() + int64_t{batch_->samples} * dim);
    }
    for (uint32_t sample = samples.begin; sample < samples.end; ++sample) {
      const float* const gradient = memory.gradients.data() + uint64_t{sample} * dim;
      const SampleRange bag = PositionsOf(i, {sample, sample + 1});
      for (uint32_t position = bag.begin; position < bag.end; ++position) {
        const uint32_t place = memory.index[position];
        float* const sum = sums + uint64_t{place} * dim;
        // Places follow first occurrences.
        const bool is_first = place == next_unseen;
        if (is_first) ++next_unseen;
        if (weights.empty()) {
          is_first ? Assign(gradient, dim, sum) : AddTo(gradient, dim, sum);
        } else if (is_first) {
          AssignTimes(weights[position], gradient, dim, sum);
        } else {
          AddTimes(weights[position], gradient, dim, sum);
        }
      }
    }
    EMBANK_CHECK(next_unseen == memory.unique_count[slice]);
    memory.is_finite[slice] = AreFinite({sums, uint64_t{next_unseen} * dim}) ? 1 : 0;
  }
}

bool EmbeddingPass::IsFinite(size_t feature) const {
  return std::ranges::all_of(memory_[feature].is_finite, [](uint8_t is) { return is != 0; });
}

// Takes the ids of features of one table that have a sum which is not finite out of all of their
// slices, so that none of their gradients counts. Slices keep their begins.
void EmbeddingPass::LeaveOutNotFinite(std::span<const uint32_t> features) {
  std::unordered_set<Key> left_out;
  for (const uint32_t feature : features) {
    const FeatureMemory& memory = memory_[feature];
    const uint32_t dim = features_[feature].dim;
    for (uint32_t slice = 0; slice < slices_; ++slice) {
      for (uint64_t i = 0; i < memory.unique_count[slice]; ++i) {
        const uint64_t place = memory.unique_begin[slice] + i;
        const float* const sum = memory.sums.data() + place * dim;
        if (!AreFinite({sum, dim})) left_out.insert(memory.unique[place]);
      }
    }
  }
  for (const uint32_t feature : features) {
    FeatureMemory& memory = memory_[feature];
    const uint32_t dim = features_[feature].dim;
    const auto sum = [&](uint64_t place) { return memory.sums.data() + place * dim; };
    for (uint32_t slice = 0; slice < slices_; ++slice) {
      const uint64_t begin = memory.unique_begin[slice];
      uint32_t kept = 0;
      for (uint64_t i = 0; i < memory.unique_count[slice]; ++i) {
        if (left_out.contains(memory.unique[begin + i])) continue;
        memory.unique[begin + kept] = memory.unique[begin + i];
        std::memmove(sum(begin + kept), sum(begin + i), dim * sizeof(float));
        ++kept;
      }
      left_out_.fetch_add(memory.unique_count[slice] - kept, std::memory_order_relaxed);
      memory.unique_count[slice] = kept;
      // Its ids do not follow those of the slice before any more.
      memory.micro_batch[slice] = slice;
    }
  }
}

Status EmbeddingPass::Update(const Pack& pack) {
  for (const uint32_t i : pack.features) {
    if (IsFinite(i)) continue;
    std::vector<uint32_t> of_table;
    for (const uint32_t other : pack.features) {
      if (features_[other].table == features_[i].table) of_table.push_back(other);
    }
    LeaveOutNotFinite(of_table);
  }
  std::vector<GradientFeature> features;
  for (const uint32_t i : pack.features) {
    const FeatureMemory& memory = memory_[i];
    const uint32_t dim = features_[i].dim;
    for (uint32_t slice = 0; slice < slices_;) {
      const uint64_t begin = memory.unique_begin[slice];
      const uint32_t micro_batch = memory.micro_batch[slice];
      uint64_t count = 0;
      for (; slice < slices_ && memory.micro_batch[slice] == micro_batch; ++slice) {
        count += memory.unique_count[slice];
      }
      GradientFeature feature;
      feature.table = features_[i].table;
      feature.keys = KeySpan(memory.unique).subspan(begin, count);
      feature.gradients = {reinterpret_cast<const std::byte*>(memory.sums.data() + begin * dim),
                           dim * sizeof(float)};
      features.push_back(feature);
    }
  }
  Status status = ApplyGradientsPacked(features);
  // The counters of the tables have the steps that were not made.
  if (IsOutOfRange(status) || (forgets_ && IsNotFound(status))) return OkStatus();
  return status;
}

uint64_t EmbeddingPass::left_out() const {
  uint64_t left_out = left_out_.load(std::memory_order_relaxed);
  constexpr auto kNotFinite = static_cast<size_t>(Outcome::kNotFinite) - 1;
  std::unordered_set<const Table*> counted;
  for (const EmbeddingFeature& feature : features_) {
    if (!counted.insert(feature.table).second) continue;
    const CallCounts counts = feature.table->counters().calls.Counts(TableVerb::kGradients);
    left_out += counts.keys_by_outcome[kNotFinite];
  }
  return left_out;
}

ConstMatrix EmbeddingPass::Vectors(size_t feature, uint32_t slice) const {
  const SampleRange samples = SamplesOf(slice);
  return ConstMatrix(memory_[feature].vectors.data(), batch_->samples, features_[feature].dim)
      .RowsFrom(samples.begin, samples.end);
}

Matrix EmbeddingPass::Gradients(size_t feature, uint32_t slice) {
  const SampleRange samples = SamplesOf(slice);
  return Matrix(memory_[feature].gradients.data(), batch_->samples, features_[feature].dim)
      .RowsFrom(samples.begin, samples.end);
}

}  // namespace embank
