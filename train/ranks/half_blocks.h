// Floats as blocks of 16-bit floats, with a power of two for each block: half the bytes.
//
//   floats   [256 of a block][256][rest]
//   halves   [exponent of each block, 2 bytes each][a half for each float]
//
// Lossy compression of values of Persia (Lian et al. 2022), section 4.2.3, with the largest
// magnitude as the norm of a block and powers of two as its factors, which are exact: the largest
// number of a block is scaled to the top of the range of a half. A number that is at least 1.9e-9
// of the largest one of its block comes back with a relative error of at most 2^-11. A smaller one
// is off by at most 2^-39 of the largest. Zeros and their signs, infinities and NaN come back as
// they are; the payload of a NaN does not. Infinities and NaN do not count as the largest.
#ifndef EMBANK_TRAIN_RANKS_HALF_BLOCKS_H_
#define EMBANK_TRAIN_RANKS_HALF_BLOCKS_H_

#include <cstddef>
#include <cstdint>
#include <span>

namespace embank {

// The floats of a block; the last one may have fewer. Its exponent adds 2 bytes to 512.
inline constexpr uint64_t kHalfBlock = 256;

// The bytes that `floats` numbers take.
constexpr uint64_t HalfBlocksBytes(uint64_t floats) {
  return ((floats + kHalfBlock - 1) / kHalfBlock + floats) * sizeof(uint16_t);
}

// Writes HalfBlocksBytes of the floats; `halves` is aligned to 2.
void EncodeHalfBlocks(std::span<const float> floats, std::byte* halves);
// Reads them back.
void DecodeHalfBlocks(const std::byte* halves, std::span<float> floats);

}  // namespace embank

#endif  // EMBANK_TRAIN_RANKS_HALF_BLOCKS_H_
