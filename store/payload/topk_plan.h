// The plan of a top-k flush: the rows that leave device memory, and those that arrive.
//
//   every row:  heat per byte ──▶ histogram in bytes ──▶ threshold ──▶ exact order at the threshold
//
// The plan is a pure function of what its source tells. It takes no lock and moves no row.
#ifndef EMBANK_STORE_PAYLOAD_TOPK_PLAN_H_
#define EMBANK_STORE_PAYLOAD_TOPK_PLAN_H_

#include <cstdint>
#include <vector>

#include "base/function_ref.h"
#include "base/status_or.h"
#include "base/types.h"
#include "tiers/row/location.h"
#include "tiers/row/row_header.h"

namespace embank {

// A row that a top-k flush ranks: it is in HBM, or may get there.
struct TopkCandidate {
  Location location;
  uint32_t heat;           // at most kHeatMax
  uint32_t payload_bytes;  // bytes that the row takes in device memory: 1 .. kPlannedBytesMax
  TableId table;
  Key key;
  bool in_hbm;  // whether device memory holds the row now
};

// Larger than any row: 4,096 f32 elements with the state of Adam are 49,156 bytes.
inline constexpr uint32_t kPlannedBytesMax = (1u << 24) - 1;

using TopkVisit = FunctionRef<void(const TopkCandidate&)>;
// Calls the visitor for every candidate, in the order of memory. The planner calls it twice. The
// two walks may tell different heats and rows, because rows change meanwhile. The plan is then
// slightly off, but it stays within the budget.
using TopkSource = FunctionRef<void(TopkVisit)>;

struct TopkPlanOptions {
  uint64_t budget_bytes;
  // A row of DRAM replaces an HBM row only if its heat per byte is more than 1.25 times as
  // high. Rows of nearly equal heat do not swap places at each flush.
  bool hysteresis = true;
};

// A row that moves. The mover looks whether the row is still there.
struct PlannedRow {
  Location location;
  TableId table;
  uint32_t payload_bytes;
  Key key;
};

// Both lists are in the order of location. No row is in both lists.
struct TopkPlan {
  std::vector<PlannedRow> leavers;   // HBM rows that lose their place
  std::vector<PlannedRow> arrivals;  // rows that become HBM rows
  uint64_t candidate_rows = 0;
  uint64_t candidate_bytes = 0;  // payloads of all candidates
  uint64_t hbm_bytes = 0;        // payloads of the HBM rows after the plan
  bool fits_all = false;         // all candidates are HBM rows after the plan
};

// Ranks the candidates by heat per payload byte, exactly; the next criteria are heat (higher
// first), table and key (lower first). The HBM rows are the longest beginning of this ranking whose
// payloads fit in the budget. A row that is larger than the whole budget is left out of the
// ranking. With hysteresis the score of an HBM row counts 5/4, and between equal scores an HBM row
// comes first.
//
// The plan is the same for the same candidates, in whatever order the source tells them. If the
// two walks differ, `hbm_bytes` is still at most the budget, unless the rows that are there already
// and stay exceed it alone. Time: linear in the candidates; bench/README.md has figures.
// kResourceExhausted: there is no memory for the lists.
StatusOr<TopkPlan> PlanTopk(TopkSource source, const TopkPlanOptions& options);

}  // namespace embank

#endif  // EMBANK_STORE_PAYLOAD_TOPK_PLAN_H_
