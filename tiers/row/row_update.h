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

// Makes one step of layout.optimizer (not kNone) with `gradient` (layout.dim floats), the sum of a
// key's gradients, unless it would leave a value or a state that is not finite. Returns whether the
// step was made; if not, the image is as it was. Allocates nothing.
//   rounding_seed  RoundingSeed of row and call; of no matter unless rule.rounding is stochastic
//   former         space for an image of the row, apart from it; overwritten
bool StepRow(const RowLayout& layout, const UpdateRule& rule, uint64_t rounding_seed,
             const float* gradient, std::byte* image, std::byte* former);

// The gradients of a key are summed in runs of this many occurrences, then the runs are
// (docs/arithmetic.md).
inline constexpr uint32_t kSumRun = 32;

// sum[i] = gradients[0][i] + gradients[1][i] + ..., one after the other; unaligned, at least one.
// Each number is first clipped to `limit` (0: is not).
void SumGradients(std::span<const std::byte* const> gradients, uint32_t dim, float limit,
                  float* sum);

// sum[i] += other[i].
void AddSum(const float* other, uint32_t dim, float* sum);

// Whether none of `dim` unaligned floats is NaN or infinite.
bool AllFinite(const std::byte* gradient, uint32_t dim);

}  // namespace embank

#endif  // EMBANK_TIERS_ROW_ROW_UPDATE_H_
