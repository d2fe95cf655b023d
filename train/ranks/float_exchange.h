// The exchange of floats, as they are or as blocks of 16-bit floats.
#ifndef EMBANK_TRAIN_RANKS_FLOAT_EXCHANGE_H_
#define EMBANK_TRAIN_RANKS_FLOAT_EXCHANGE_H_

#include "base/status.h"
#include "base/types.h"
#include "train/ranks/exchange.h"
#include "train/ranks/part_buffer.h"

namespace embank {

// One thread at a time. It keeps its memory from call to call.
class FloatExchange {
 public:
  // `wire`: kF32, or kF16 as half_blocks.h has it. Then all floats are rounded, also those of a
  // rank for itself, so that all ranks that get a number get the same one.
  explicit FloatExchange(ValueType wire) : wire_(wire) {}

  // Whether floats are rounded.
  bool rounds() const { return wire_ != ValueType::kF32; }

  // Sends the parts of a buffer of floats, and receives those of another one. The statuses of
  // Exchange::Run.
  Status Run(Exchange* exchange, PartBuffer* from, PartBuffer* to);

 private:
  ValueType wire_;
  PartBuffer sent_halves_;
  PartBuffer received_halves_;
};

}  // namespace embank

#endif  // EMBANK_TRAIN_RANKS_FLOAT_EXCHANGE_H_
