// The slices of the batches that a worker has not done yet: a window over all batches, in order.
//
//   batches   0 1 2 │ 3 4 5 │ 6 7 ...
//              done │ open  │ refused: their loader waits
#ifndef EMBANK_TRAIN_HYBRID_SLICE_WINDOW_H_
#define EMBANK_TRAIN_HYBRID_SLICE_WINDOW_H_

#include <algorithm>
#include <cstdint>
#include <deque>
#include <vector>

#include "base/check.h"
#include "train/roles/role_plan.h"

namespace embank {

// One thread. `Slice` has members `uint64_t since_ns`, set when its batch opens, and `has_ended`.
template <typename Slice>
class SliceWindow {
 public:
  // A worker has the slices begin, begin + stride, ..., `count` of them.
  struct Own {
    uint32_t begin;
    uint32_t stride;
    uint32_t count;
  };
  SliceWindow(const Own& own, uint64_t batches_max) : own_(own), batches_max_(batches_max) {}

  // The number of batches that are done.
  uint64_t done() const { return done_; }
  // Whether messages of a batch come too early.
  bool IsFull(uint64_t batch) const { return batch >= done_ + batches_max_; }

  // Opens all batches below `end`, as far as the window goes.
  void OpenUpTo(uint64_t end, uint64_t now_ns) {
    end = std::min(end, done_ + batches_max_);
    while (done_ + batches_.size() < end) {
      for (Slice& slice : batches_.emplace_back(own_.count)) slice.since_ns = now_ns;
    }
  }
  // Returns a slice of a batch that is open, which is opened with all batches before it; nullptr:
  // the batch is done, or comes too early.
  Slice* Find(SliceKey key, uint64_t now_ns) {
    if (key.batch < done_ || IsFull(key.batch)) return nullptr;
    OpenUpTo(key.batch + 1, now_ns);
    const uint32_t number = (key.slice - own_.begin) / own_.stride;
    EMBANK_CHECK(key.slice >= own_.begin && number < own_.count &&
                 own_.begin + number * own_.stride == key.slice);
    return &batches_[key.batch - done_][number];
  }

  // Calls use(key, slice) for each open slice of a batch.
  template <typename Use>
  void ForEach(uint64_t batch, Use use) {
    if (batch < done_ || batch - done_ >= batches_.size()) return;
    for (uint32_t i = 0; i < own_.count; ++i) {
      use(SliceKey{batch, own_.begin + i * own_.stride}, &batches_[batch - done_][i]);
    }
  }
  // Whether the first batch is open, and all of its slices have ended.
  bool IsFirstDone() const {
    return !batches_.empty() &&
           std::ranges::all_of(batches_.front(), [](const Slice& s) { return s.has_ended; });
  }
  void PopFirst() {
    batches_.pop_front();
    ++done_;
  }

 private:
  const Own own_;
  const uint64_t batches_max_;
  uint64_t done_ = 0;
  std::deque<std::vector<Slice>> batches_;
};

}  // namespace embank

#endif  // EMBANK_TRAIN_HYBRID_SLICE_WINDOW_H_
