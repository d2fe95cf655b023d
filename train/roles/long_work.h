// Work of one rank for which all others wait.
#ifndef EMBANK_TRAIN_ROLES_LONG_WORK_H_
#define EMBANK_TRAIN_ROLES_LONG_WORK_H_

#include <cstdint>

#include "base/function_ref.h"
#include "base/status.h"
#include "train/ranks/exchange.h"

namespace embank {

// Calls `work` on rank `worker`, and returns its status on all ranks, as Agree does. It may take
// longer than the time limit of the exchange: all ranks meet at least every `interval_ns`
// meanwhile, so that a rank which is lost is still noticed. `work` must not use the exchange. All
// ranks call it. The statuses of Exchange::Run.
Status RunLongWork(Exchange* exchange, uint32_t worker, uint64_t interval_ns,
                   FunctionRef<Status()> work);

}  // namespace embank

#endif  // EMBANK_TRAIN_ROLES_LONG_WORK_H_
