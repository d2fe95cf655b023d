// Tells hot inputs from cold ones.
#ifndef EMBANK_TRAIN_FAE_INPUT_CLASSIFIER_H_
#define EMBANK_TRAIN_FAE_INPUT_CLASSIFIER_H_

#include <cstdint>
#include <span>
#include <vector>

#include "base/threads/executor.h"
#include "train/popularity/id_places.h"
#include "train/samples/click_batch.h"

namespace embank {

// FAE's input classifier (Adnan et al. 2021, section 4.2). A part of a batch begins with the id
// features that had the most cold ids in the batch before, because a cold input needs no more
// probes. One thread at a time.
class InputClassifier {
 public:
  // `hot_ids` outlives this. It may get more ids between two calls.
  explicit InputClassifier(const HotIds* hot_ids) : hot_ids_(*hot_ids) {}

  // Sets `is_hot` to 1 for each sample whose ids are all hot, those of bags included, and to 0 for
  // the others. A sample with empty bags alone is hot. The batch has the id features of the hot
  // ids; those in `hot_columns` have only ids in this batch that are known to be hot, and are not
  // looked up. `executor` may be nullptr: the calling thread does all.
  void Classify(const ClickBatch& batch, std::span<const uint32_t> hot_columns, Executor* executor,
                std::vector<uint8_t>* is_hot);

 private:
  // The work of one thread, with memory that is kept from batch to batch.
  struct Part {
    std::vector<uint32_t> hot;       // samples without a cold id as yet, where some are cold
    std::vector<Key> ids;            // of a feature of these samples
    std::vector<uint32_t> places;    // of these ids
    std::vector<uint32_t> columns;   // in the order of probes
    std::vector<double> cold_share;  // of the samples probed, for each column, when it last was
  };

  void ClassifyPart(const ClickBatch& batch, uint32_t begin, uint32_t end, Part* part,
                    uint8_t* is_hot) const;
  void OrderColumns(Part* part) const;

  const HotIds& hot_ids_;
  std::vector<uint8_t> is_known_hot_;  // of each column
  std::vector<Part> parts_;
};

}  // namespace embank

#endif  // EMBANK_TRAIN_FAE_INPUT_CLASSIFIER_H_
