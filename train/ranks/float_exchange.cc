#include "train/ranks/float_exchange.h"

#include <cstdint>
#include <span>
#include <vector>

#include "base/status_macros.h"
#include "train/ranks/half_blocks.h"

namespace embank {
namespace {

std::span<float> FloatsOf(PartBuffer* buffer, uint32_t rank) {
  const ExchangePart& part = buffer->parts()[rank];
  return {reinterpret_cast<float*>(buffer->data() + part.begin), part.bytes / sizeof(float)};
}

std::byte* HalvesOf(PartBuffer* buffer, uint32_t rank) {
  return buffer->data() + buffer->parts()[rank].begin;
}

void LayHalves(PartBuffer* floats, PartBuffer* halves) {
  std::vector<uint64_t> bytes;
  for (const ExchangePart& part : floats->parts()) {
    bytes.push_back(HalfBlocksBytes(part.bytes / sizeof(float)));
  }
  if (floats->is_one_part()) {
    halves->LayOne(bytes[0], static_cast<uint32_t>(bytes.size()));
  } else {
    halves->Lay(bytes);
  }
  for (uint32_t rank = 0; rank < bytes.size(); ++rank) halves->ClearPadding(rank, bytes[rank]);
}

}  // namespace

Status FloatExchange::Run(Exchange* exchange, PartBuffer* from, PartBuffer* to) {
  if (wire_ == ValueType::kF32) return exchange->Run(from->source(), to->target());
  LayHalves(from, &sent_halves_);
  LayHalves(to, &received_halves_);
  // A part that all ranks get is encoded once.
  const uint32_t encoded = from->is_one_part() ? 1 : exchange->ranks();
  for (uint32_t rank = 0; rank < encoded; ++rank) {
    EncodeHalfBlocks(FloatsOf(from, rank), HalvesOf(&sent_halves_, rank));
  }
  EMBANK_RETURN_IF_ERROR(exchange->Run(sent_halves_.source(), received_halves_.target()));
  for (uint32_t rank = 0; rank < exchange->ranks(); ++rank) {
    DecodeHalfBlocks(HalvesOf(&received_halves_, rank), FloatsOf(to, rank));
  }
  return OkStatus();
}

}  // namespace embank
