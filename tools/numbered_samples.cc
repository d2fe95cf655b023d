#include "tools/numbered_samples.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/status_macros.h"

namespace embank {
namespace {

// Adds the sample of a batch of one. A new part of a batch has to be added, too: the bindings do
// not compile with it.
void Append(const ClickBatch& one, ClickBatch* batch) {
  const auto& [samples, labels, dense, features] = one;
  EMBANK_CHECK(samples == 1);
  ++batch->samples;
  batch->labels.push_back(labels[0]);
  batch->dense.insert(batch->dense.end(), dense.begin(), dense.end());
  for (size_t i = 0; i < features.size(); ++i) {
    const auto& [ids, offsets] = features[i];
    FeatureIds& all = batch->features[i];
    all.ids.insert(all.ids.end(), ids.begin(), ids.end());
    if (offsets.empty()) continue;
    if (all.offsets.empty()) all.offsets.push_back(0);
    all.offsets.push_back(static_cast<uint32_t>(all.ids.size()));
  }
}

}  // namespace

// A reader counts broken lines, and does not say where they are: so it is asked sample by sample.
StatusOr<uint32_t> NumberedSamples::Next(uint32_t samples_max, ClickBatch* batch) {
  batch->Clear(columns().ids.size());
  BrokenBeside broken;
  while (batch->samples < samples_max) {
    EMBANK_ASSIGN_OR_RETURN(const uint32_t samples, log_->Next(1, &one_));
    if (samples == 0) {
      broken.behind = CountBroken();
      break;
    }
    Append(one_, batch);
    broken.before.push_back(CountBroken());
  }
  MutexLock lock(&mutex_);
  batches_.push_back(std::move(broken));
  return batch->samples;
}

// Returns the broken lines since the last call.
uint64_t NumberedSamples::CountBroken() {
  const uint64_t before = std::exchange(broken_, log_->broken_lines().count);
  return broken_ - before;
}

BrokenBeside NumberedSamples::TakeBroken() {
  MutexLock lock(&mutex_);
  EMBANK_CHECK(!batches_.empty());
  BrokenBeside oldest = std::move(batches_.front());
  batches_.pop_front();
  return oldest;
}

}  // namespace embank
