#include "train/ranks/gathered_texts.h"

#include <cstring>

#include "base/status_macros.h"
#include "base/str_cat.h"
#include "train/ranks/part_buffer.h"

namespace embank {
namespace {

// Gives all ranks the bytes of each, which has `sizes` of them, in *from.
Status GatherBytes(Exchange* exchange, std::string_view own, std::span<const uint64_t> sizes,
                   PartBuffer* from) {
  PartBuffer to;
  to.LayOne(own.size(), exchange->ranks());
  if (!own.empty()) std::memcpy(to.data(), own.data(), own.size());
  to.ClearPadding(0, own.size());
  from->Lay(sizes);
  return exchange->Run(to.source(), from->target());
}

}  // namespace

StatusOr<std::vector<std::string>> GatherTexts(Exchange* exchange, std::string_view text) {
  const uint32_t ranks = exchange->ranks();
  std::vector<uint64_t> sizes(ranks, sizeof(uint64_t));
  PartBuffer buffer;
  const uint64_t size = text.size();
  EMBANK_RETURN_IF_ERROR(
      GatherBytes(exchange, {reinterpret_cast<const char*>(&size), sizeof(size)}, sizes, &buffer));
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    std::memcpy(&sizes[rank], buffer.data() + buffer.parts()[rank].begin, sizeof(uint64_t));
  }
  EMBANK_RETURN_IF_ERROR(GatherBytes(exchange, text, sizes, &buffer));
  std::vector<std::string> texts;
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    const std::byte* const begin = buffer.data() + buffer.parts()[rank].begin;
    texts.emplace_back(reinterpret_cast<const char*>(begin), sizes[rank]);
  }
  return texts;
}

Status Agree(Exchange* exchange, const Status& status) {
  const char code = static_cast<char>(status.code());
  const StatusOr<std::vector<std::string>> texts =
      GatherTexts(exchange, StrCat(std::string(1, code), status.message()));
  if (!texts.ok()) return status.ok() ? texts.status() : status;
  for (size_t rank = 0; rank < texts->size(); ++rank) {
    const std::string& text = (*texts)[rank];
    const auto of_rank = static_cast<StatusCode>(text[0]);
    if (of_rank == StatusCode::kOk) continue;
    const std::string message = text.substr(1);
    // One on which all have agreed before has its rank.
    return Status(of_rank,
                  message.starts_with("rank ") ? message : StrCat("rank ", rank, ": ", message));
  }
  return OkStatus();
}

}  // namespace embank
