// A batch as text, for a person who looks for what is wrong with it.
#ifndef EMBANK_TRAIN_DATA_CLICK_TEXT_H_
#define EMBANK_TRAIN_DATA_CLICK_TEXT_H_

#include <string>

#include "train/data/click_batch.h"

namespace embank {

// Returns a line for each sample: label, dense features, ids; those of a bag with commas. The batch
// has samples.
std::string TextOf(const ClickBatch& batch);

}  // namespace embank

#endif  // EMBANK_TRAIN_DATA_CLICK_TEXT_H_
