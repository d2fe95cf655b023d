#include "train/pipeline/embedding_pass.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <unordered_set>
#include <utility>

#include "base/check.h"
#include "base/hash.h"
#include "base/memory/grown_array.h"
#include "base/seeded_bug.h"
#include "train/pipeline/row_steps.h"

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

std::vector<uint32_t> OwnersOf(std::span<const EmbeddingFeature> features, const SparseRows& rows) {
  std::vector<uint32_t> owners;
  for (size_t i = 0; i < features.size(); ++i) owners.push_back(rows.OwnersOf(i));
  return owners;
}

}  // namespace

// The bags of a slice. Places and weights begin with those of its first bag.
struct EmbeddingPass::SliceBags {
  struct Bag {
    uint32_t begin;
    uint32_t end;
  };
  Bag Of(uint32_t sample) const {
    if (offsets == nullptr) return {sample, sample + 1};
    return {offsets[sample] - offsets[0], offsets[sample + 1] - offsets[0]};
  }

  const IdPlace* places = nullptr;
  const uint32_t* offsets = nullptr;  // nullptr: each sample has one place
  const float* weights = nullptr;     // nullptr: all are 1
};

EmbeddingPass::EmbeddingPass(std::vector<EmbeddingFeature> features, uint32_t slices,
                             SliceRange own, SparseRows* rows)
    : features_(std::move(features)),
      slices_(slices),
      own_(own),
      rows_(rows),
      ids_(OwnersOf(features_, *rows), own),
      memory_(features_.size()) {
  EMBANK_CHECK(own.begin < own.end && own.end <= slices);
  for (size_t i = 0; i < memory_.size(); ++i) {
    memory_[i].table_hash = TableHash(features_[i].table->name());
    memory_[i].is_pooled = rows->IsPooled(i);
  }
}

void EmbeddingPass::Begin(const ClickBatch* batch) {
  batch_ = batch;
  samples_ = {SamplesOf(own_.begin).begin, SamplesOf(own_.end - 1).end};
  const uint64_t samples = samples_.end - samples_.begin;
  std::vector<uint64_t> ids_max;
  for (size_t i = 0; i < features_.size(); ++i) {
    const FeatureIds& ids = Ids(i);
    EMBANK_CHECK(ids.offsets.empty() ? ids.ids.size() == batch->samples
                                     : ids.offsets.size() == uint64_t{batch->samples} + 1);
    EMBANK_CHECK(ids.weights.empty() || ids.weights.size() == ids.ids.size());
    FeatureMemory& memory = memory_[i];
    memory.positions = PositionsOf(i, samples_);
    ids_max.push_back(Positions(i));
    Grow(ids_max[i], &memory.unique);
    Grow(ids_max[i], &memory.touches);
    Grow(ids_max[i], &memory.index);
    Grow(samples * features_[i].dim, &memory.vectors);
    if (memory.is_pooled) {
      Grow(ids_max[i], &memory.bags);
      Grow(ids.weights.empty() ? 0 : ids_max[i], &memory.bag_weights);
      Grow(samples + own_.size(), &memory.bag_offsets);
    }
    Grow(samples * features_[i].dim, &memory.gradients);
  }
  rows_->Begin(ids_max);
}

SampleRange EmbeddingPass::PositionsOf(size_t feature, SampleRange samples) const {
  const FeatureIds& ids = Ids(feature);
  if (ids.offsets.empty()) return samples;
  return {ids.offsets[samples.begin], ids.offsets[samples.end]};
}

void EmbeddingPass::MakeUnique(const Pack& pack, uint32_t slice) {
  UniquePartition unique(rows_->OwnersOf(pack.features[0]));
  for (const uint32_t i : pack.features) {
    FeatureMemory& memory = memory_[i];
    const SampleRange range = PositionsOf(i, SamplesOf(slice));
    const uint32_t begin = range.begin - memory.positions.begin;
    const uint32_t size = range.end - range.begin;
    const UniqueIds written = {.unique = std::span(memory.unique).subspan(begin, size),
                               .touches = std::span(memory.touches).subspan(begin, size),
                               .index = std::span(memory.index).subspan(begin, size)};
    const bool is_other = Seeded(SeededBug::kOwnerRuleDiffers) && own_.begin > 0;
    const uint64_t hash = memory.table_hash + (is_other ? 1 : 0);
    const uint32_t count =
        unique.Run(KeySpan(Ids(i).ids).subspan(range.begin, size), hash, written);
    SliceIds& ids = ids_.Of(i, slice);
    ids.ids = written.unique.first(count);
    ids.touches = written.touches.first(count);
    std::ranges::copy(unique.counts(), ids.counts.begin());
    ids.ids_before = begin;
    if (memory.is_pooled) MapBags(i, slice, &ids);
  }
}

// Each slice has one offset more than samples.
uint64_t EmbeddingPass::FirstOffset(uint32_t slice) const {
  return SamplesOf(slice).begin - samples_.begin + slice - own_.begin;
}

// Bags that owners sum have a place for each owner.
EmbeddingPass::SliceBags EmbeddingPass::BagsOf(size_t feature, uint32_t slice) const {
  const FeatureMemory& memory = memory_[feature];
  const FeatureIds& ids = Ids(feature);
  const SampleRange samples = SamplesOf(slice);
  const uint32_t first = PositionsOf(feature, samples).begin;
  SliceBags bags;
  bags.places = memory.index.data() + (first - memory.positions.begin);
  if (memory.is_pooled) {
    bags.offsets = memory.bag_offsets.data() + FirstOffset(slice);
    return bags;
  }
  if (!ids.offsets.empty()) bags.offsets = ids.offsets.data() + samples.begin;
  if (!ids.weights.empty()) bags.weights = ids.weights.data() + first;
  return bags;
}

// Replaces the places of ids by those of bags.
void EmbeddingPass::MapBags(size_t feature, uint32_t slice, SliceIds* ids) {
  FeatureMemory& memory = memory_[feature];
  const SampleRange samples = SamplesOf(slice);
  const SampleRange range = PositionsOf(feature, samples);
  const uint32_t begin = range.begin - memory.positions.begin;
  const uint32_t size = range.end - range.begin;
  uint32_t* const offsets = memory.bag_offsets.data() + FirstOffset(slice);
  offsets[0] = 0;
  const std::span<uint32_t> ends(offsets + 1, samples.end - samples.begin);
  for (uint32_t i = 0; i < ends.size(); ++i) {
    ends[i] = PositionsOf(feature, {samples.begin + i, samples.begin + i + 1}).end - range.begin;
  }
  std::span<const float> weights = Ids(feature).weights;
  if (!weights.empty()) weights = weights.subspan(range.begin, size);
  ids->bags = std::span(memory.bags).subspan(begin, size);
  ids->bag_weights =
      std::span(memory.bag_weights).subspan(weights.empty() ? 0 : begin, weights.size());
  ids->bag_counts.resize(ids->counts.size());
  const UniqueIds written = {.unique = std::span(memory.unique).subspan(begin, size),
                             .touches = std::span(memory.touches).subspan(begin, size),
                             .index = std::span(memory.index).subspan(begin, size)};
  BagMap map(rows_->OwnersOf(feature));
  map.Run(written, ids->counts,
          {.ends = ends,
           .weights = weights,
           .bags = ids->bags,
           .weights_by_id = ids->bag_weights,
           .bag_counts = ids->bag_counts});
  const uint32_t count = std::accumulate(ids->counts.begin(), ids->counts.end(), 0u);
  ids->ids = written.unique.first(count);
  ids->touches = written.touches.first(count);
}

void EmbeddingPass::StitchReduce(const Pack& pack, uint32_t slice) {
  const SampleRange samples = SamplesOf(slice);
  for (const uint32_t i : pack.features) {
    FeatureMemory& memory = memory_[i];
    const uint32_t dim = features_[i].dim;
    const SliceIds& ids = ids_.Of(i, slice);
    // The compiler knows of these variables alone that no copy of a row changes them.
    const SliceBags bags = BagsOf(i, slice);
    const std::span<const float* const> rows = ids.rows;
    const std::span<const uint32_t> counts = ids.row_counts();
    float* vector = memory.vectors.data() + uint64_t{samples.begin - samples_.begin} * dim;
    const auto row = [&](IdPlace place) {
      uint64_t number = place.number();
      if (Seeded(SeededBug::kStitchOffByOne)) number = (number + 1) % counts[place.owner()];
      return rows[place.owner()] + number * dim;
    };
    for (uint32_t k = 0; k < samples.end - samples.begin; ++k, vector += dim) {
      const SliceBags::Bag bag = bags.Of(k);
      if (bag.begin == bag.end) {
        std::fill_n(vector, dim, 0.0f);
        continue;
      }
      if (bags.weights != nullptr) {
        AssignTimes(bags.weights[bag.begin], row(bags.places[bag.begin]), dim, vector);
        for (uint32_t at = bag.begin + 1; at < bag.end; ++at) {
          AddTimes(bags.weights[at], row(bags.places[at]), dim, vector);
        }
        continue;
      }
      Assign(row(bags.places[bag.begin]), dim, vector);
      for (uint32_t at = bag.begin + 1; at < bag.end; ++at) {
        AddTo(row(bags.places[at]), dim, vector);
      }
    }
  }
}

void EmbeddingPass::SumGradients(const Pack& pack, uint32_t slice) {
  const SampleRange samples = SamplesOf(slice);
  std::vector<uint32_t> next_unseen(rows_->OwnersOf(pack.features[0]));
  for (const uint32_t i : pack.features) {
    FeatureMemory& memory = memory_[i];
    const uint32_t dim = features_[i].dim;
    SliceIds& ids = ids_.Of(i, slice);
    std::ranges::fill(next_unseen, 0u);
    if (Seeded(SeededBug::kSumsInAnotherOrder)) {
      std::reverse(memory.gradients.begin(),
                   memory.gradients.begin() + int64_t{samples_.end - samples_.begin} * dim);
    }
    const SliceBags bags = BagsOf(i, slice);
    const float* gradient =
        memory.gradients.data() + uint64_t{samples.begin - samples_.begin} * dim;
    for (uint32_t k = 0; k < samples.end - samples.begin; ++k, gradient += dim) {
      const SliceBags::Bag bag = bags.Of(k);
      for (uint32_t at = bag.begin; at < bag.end; ++at) {
        const IdPlace place = bags.places[at];
        float* const sum = ids.sums[place.owner()] + uint64_t{place.number()} * dim;
        // Places follow first occurrences.
        uint32_t& unseen = next_unseen[place.owner()];
        const bool is_first = place.number() == unseen;
        if (is_first) ++unseen;
        if (bags.weights == nullptr) {
          is_first ? Assign(gradient, dim, sum) : AddTo(gradient, dim, sum);
        } else if (is_first) {
          AssignTimes(bags.weights[at], gradient, dim, sum);
        } else {
          AddTimes(bags.weights[at], gradient, dim, sum);
        }
      }
    }
    ids.are_sums_finite = true;
    const std::span<const uint32_t> counts = ids.row_counts();
    for (size_t owner = 0; owner < next_unseen.size(); ++owner) {
      EMBANK_CHECK(next_unseen[owner] == counts[owner]);
      ids.are_sums_finite &= AreFinite({ids.sums[owner], uint64_t{counts[owner]} * dim});
    }
  }
}

bool EmbeddingPass::AreSumsFinite() const {
  bool are_finite = true;
  for (size_t i = 0; i < features_.size(); ++i) {
    for (uint32_t slice = own_.begin; slice < own_.end; ++slice) {
      are_finite &= ids_.Of(i, slice).are_sums_finite;
    }
  }
  return are_finite;
}

uint64_t EmbeddingPass::StepsWith(Outcome outcome) const {
  uint64_t steps = 0;
  std::unordered_set<const Table*> counted;
  for (const EmbeddingFeature& feature : features_) {
    if (!counted.insert(feature.table).second) continue;
    // All ranks make the same steps of replicated rows: the first one counts them.
    if (feature.is_replicated && own_.begin > 0) continue;
    const CallCounts counts = feature.table->counters().calls.Counts(TableVerb::kGradients);
    steps += counts.keys_by_outcome[static_cast<size_t>(outcome) - 1];
  }
  return steps;
}

ConstMatrix EmbeddingPass::Vectors(size_t feature, uint32_t slice) const {
  const SampleRange samples = SamplesOf(slice);
  return ConstMatrix(memory_[feature].vectors.data(), samples_.end - samples_.begin,
                     features_[feature].dim)
      .RowsFrom(samples.begin - samples_.begin, samples.end - samples_.begin);
}

Matrix EmbeddingPass::Gradients(size_t feature, uint32_t slice) {
  const SampleRange samples = SamplesOf(slice);
  return Matrix(memory_[feature].gradients.data(), samples_.end - samples_.begin,
                features_[feature].dim)
      .RowsFrom(samples.begin - samples_.begin, samples.end - samples_.begin);
}

}  // namespace embank
