// The update rules on whole rows in memory: their first state, and one step.
#ifndef EMBANK_TIERS_ROW_UPDATE_H_
#define EMBANK_TIERS_ROW_UPDATE_H_

#include <cstddef>

#include "tiers/row_layout.h"
#include "tiers/update_rule.h"

namespace embank {

// Writes the state of a new row, whose vector is written already. The caller owns the row.
void ResetState(const RowLayout& layout, const UpdateRule& rule, std::byte* row);

// One step of layout.optimizer (not kNone) with `gradient` (layout.dim floats, overwritten: it is
// the scratch of the step). The caller owns the row. Allocates nothing.
void StepRow(const RowLayout& layout, const UpdateRule& rule, float* gradient, std::byte* row);

}  // namespace embank

#endif  // EMBANK_TIERS_ROW_UPDATE_H_
