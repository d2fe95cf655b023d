// Waits that stand for a slower link or disk than the machine has.
#ifndef EMBANK_TOOLS_EMULATED_WAITS_H_
#define EMBANK_TOOLS_EMULATED_WAITS_H_

#include <string>

#include "base/status_or.h"
#include "train/pipeline/operation_graph.h"

namespace embank {

// Returns a hook that waits before the first part of each operation that `text` names, for the
// milliseconds that it gives: "Gather=10,AllReduce=2.5". The last wait of a name counts. An empty
// text has no hook. INVALID_ARGUMENT lists the names.
StatusOr<OperationHook> EmulatedWaits(const std::string& text);

}  // namespace embank

#endif  // EMBANK_TOOLS_EMULATED_WAITS_H_
