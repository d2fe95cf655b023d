// A batch as text, for a person who looks for what is wrong with it, and for a reader that trains
// it once more.
#ifndef EMBANK_TRAIN_DATA_CLICK_TEXT_H_
#define EMBANK_TRAIN_DATA_CLICK_TEXT_H_

#include <string>

#include "train/data/column_file.h"
#include "train/samples/click_batch.h"

namespace embank {

// Returns a line for each sample: label, dense features, ids and bags, with their weights. A reader
// with ColumnsOf gets the same bits, but for numbers that are not finite. The batch has samples,
// with labels.
std::string TextOf(const ClickBatch& batch);
// Returns the columns of such lines.
ColumnFile ColumnsOf(const ClickBatch& batch);

}  // namespace embank

#endif  // EMBANK_TRAIN_DATA_CLICK_TEXT_H_
