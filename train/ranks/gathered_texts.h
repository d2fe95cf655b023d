// A text of each rank, which all of them get.
#ifndef EMBANK_TRAIN_RANKS_GATHERED_TEXTS_H_
#define EMBANK_TRAIN_RANKS_GATHERED_TEXTS_H_

#include <string>
#include <string_view>
#include <vector>

#include "base/status_or.h"
#include "train/ranks/exchange.h"

namespace embank {

// Returns the texts of all ranks, in their order. All ranks call it. The statuses of Exchange::Run.
StatusOr<std::vector<std::string>> GatherTexts(Exchange* exchange, std::string_view text);

// Returns what all ranks return: OK where `status` is OK on each, and else the first one that is
// not, with the number of its rank. Where the exchange fails: `status`, or that of Exchange::Run.
Status Agree(Exchange* exchange, const Status& status);

}  // namespace embank

#endif  // EMBANK_TRAIN_RANKS_GATHERED_TEXTS_H_
