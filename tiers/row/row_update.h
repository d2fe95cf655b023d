// The update rules on whole rows: their first state, and one step. They work on a row's image: the
// row itself, or a copy laid out as it is.
#ifndef EMBANK_TIERS_ROW_ROW_UPDATE_H_
#define EMBANK_TIERS_ROW_ROW_UPDATE_H_

#include <cstddef>
#include <span>

#include "tiers/row/row_layout.h"
#include "tiers/row/update_rule.h"

namespace embank {

// Writes the state of a new row, whose vector is in the image already.
void ResetState(const RowLayout& layout, const UpdateRule& rule, std::byte* image);

// One step of layout.optimizer (not kNone) with `gradient` (layout.dim floats). Allocates nothing.
void StepRow(const RowLayout& layout, const UpdateRule& rule, const float* gradient,
             std::byte* image);

// sum[i] = gradients[0][i] + gradients[1][i] + ..., one after the other; unaligned, at least one.
void SumGradients(std::span<const std::byte* const> gradients, uint32_t dim, float* sum);

// sum[i] += other[i].
void AddSum(const float* other, uint32_t dim, float* sum);

// Whether none of `dim` unaligned floats is NaN or infinite.
bool AllFinite(const std::byte* gradient, uint32_t dim);

}  // namespace embank

#endif  // EMBANK_TIERS_ROW_ROW_UPDATE_H_
