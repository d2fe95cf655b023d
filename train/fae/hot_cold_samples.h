// The samples of a file of hot and cold batches as pure batches, in phases.
//
//   cold batches:  c0 c1 c2 c3 c4 c5         rate 50 %: half of the batches of a class in a phase
//   hot batches:   h0 h1 h2 h3
//   given:         c0 c1 c2 | h0 h1 | c3 c4 c5 | h2 h3 |     a loss is awaited at each |
#ifndef EMBANK_TRAIN_FAE_HOT_COLD_SAMPLES_H_
#define EMBANK_TRAIN_FAE_HOT_COLD_SAMPLES_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "base/status.h"
#include "base/status_or.h"
#include "train/fae/fae_file.h"
#include "train/fae/shuffle_schedule.h"
#include "train/samples/click_batch.h"
#include "train/samples/click_source.h"
#include "train/samples/data_position.h"

namespace embank {

struct HotColdOptions {
  bool hot_only = false;  // cold batches are left out
};

// One epoch (Adnan et al. 2021, sections 3 and 4.3). A batch has samples of one class, in the order
// of the file, and each batch is given once whatever the losses are. Phases of cold and of hot
// batches alternate, and cold ones are first. Where a class is at its end, the phase of the other
// lasts to its end. One thread at a time.
class HotColdSamples final : public ClickSource {
 public:
  // The schedule goes on from the epoch before.
  HotColdSamples(std::shared_ptr<const FaeFile> file, uint32_t batch_samples,
                 const ShuffleSchedule& schedule, const HotColdOptions& options);

  const ClickColumns& columns() const override { return file_->header().columns; }
  // `samples_max` is the size of batches; the last one of a class may be shorter. The statuses of
  // FaeFile::ReadBlock. INVALID_ARGUMENT: samples of a batch have not all labels, bags and weights.
  StatusOr<uint32_t> Next(uint32_t samples_max, ClickBatch* batch) override;
  // Its order has all from which another source of the same file goes on.
  DataPosition position() const override;
  // A position without an order is the beginning. INVALID_ARGUMENT: it is none of such batches, or
  // they had another size, or not the same classes. OUT_OF_RANGE: the file has fewer.
  Status SkipTo(DataPosition position) override;
  double FractionRead() const override;

  // Returns whether the last batch ended a phase, and no loss was applied since. It does after
  // SkipTo to such a position, too, and then a loss is applied there.
  bool awaits_loss() const { return state_.awaits_loss; }
  // Takes the loss, which is awaited. Without it the next phase has the same rate.
  void ApplyLoss(double loss);
  const ShuffleSchedule& schedule() const { return state_.schedule; }

 private:
  // From where the batches go on.
  struct State {
    std::array<uint64_t, 2> given = {};  // batches, cold and hot ones
    bool is_hot = false;                 // the class of the phase
    uint64_t given_in_phase = 0;
    bool awaits_loss = false;
    ShuffleSchedule schedule;
  };
  // The block of a class that was read last.
  struct Block {
    size_t number = SIZE_MAX;  // SIZE_MAX: none
    ClickBatch samples;
  };

  struct Order;  // a state, and the settings of its source

  static bool ReadOrder(std::string_view text, Order* order);
  uint64_t SamplesGiven(const State& state) const;
  uint64_t PhaseBatchesLeft(const State& state) const;
  Status Append(uint64_t begin, uint64_t end, ClickBatch* batch);
  Status CheckSetting(const Order& order) const;

  const std::shared_ptr<const FaeFile> file_;
  const uint32_t batch_samples_;
  const HotColdOptions options_;
  std::array<uint64_t, 2> batches_;  // of the epoch, cold and hot ones
  std::array<Block, 2> blocks_;
  State state_;
};

}  // namespace embank

#endif  // EMBANK_TRAIN_FAE_HOT_COLD_SAMPLES_H_
