#include "train/roles/message.h"

#include "base/memory/memory.h"
#include "base/status_macros.h"
#include "base/str_cat.h"

namespace embank {
namespace {

static_assert(sizeof(MessageHeader) == kMessageAlignment);
static_assert(std::is_trivially_copyable_v<MessageHeader>);

Status NoMessage(const char* what, uint64_t number, uint64_t bytes) {
  return DataLossError(StrCat("of ", bytes, " received bytes, no message has ", what, " ", number));
}

}  // namespace

uint64_t Message::BytesOf(std::span<const uint64_t> array_bytes) {
  uint64_t bytes =
      RoundUp(sizeof(MessageHeader) + array_bytes.size() * sizeof(Entry), kMessageAlignment);
  for (const uint64_t of_array : array_bytes) bytes += RoundUp(of_array, kMessageAlignment);
  return bytes;
}

Message Message::Make(MessageHeader header, std::span<const uint64_t> array_bytes,
                      MemorySource* source) {
  Message message;
  message.memory_ = std::make_shared<MessageMemory>(BytesOf(array_bytes), source);
  message.data_ = message.memory_->data();
  message.Lay(header, array_bytes);
  return message;
}

// The padding between arrays is 0, so that no byte of an earlier message travels.
void Message::Lay(MessageHeader header, std::span<const uint64_t> array_bytes) {
  header.arrays = static_cast<uint32_t>(array_bytes.size());
  header.bytes = BytesOf(array_bytes);
  std::memcpy(data_, &header, sizeof(header));
  auto* const entries = reinterpret_cast<Entry*>(data_ + sizeof(header));
  uint64_t end = sizeof(header) + array_bytes.size() * sizeof(Entry);
  for (size_t i = 0; i <= array_bytes.size(); ++i) {
    const uint64_t begin = RoundUp(end, kMessageAlignment);
    std::memset(data_ + end, 0, begin - end);
    if (i == array_bytes.size()) break;
    entries[i] = {begin, array_bytes[i]};
    end = begin + array_bytes[i];
  }
}

StatusOr<Message> Message::Received(std::shared_ptr<MessageMemory> memory,
                                    std::span<std::byte> bytes) {
  EMBANK_CHECK(reinterpret_cast<uintptr_t>(bytes.data()) % kMessageAlignment == 0);
  Message message;
  message.memory_ = std::move(memory);
  message.data_ = bytes.data();
  if (bytes.size() < sizeof(MessageHeader)) return NoMessage("a header of", 64, bytes.size());
  const MessageHeader& header = message.header();
  if (header.kind >= MessageKind::kCount) {
    return NoMessage("kind", static_cast<uint32_t>(header.kind), bytes.size());
  }
  const uint64_t entries_bytes = uint64_t{header.arrays} * sizeof(Entry);
  if (header.bytes > bytes.size() || header.bytes % kMessageAlignment != 0 ||
      header.bytes < sizeof(header) + entries_bytes) {
    return NoMessage("bytes", header.bytes, bytes.size());
  }
  for (uint32_t i = 0; i < header.arrays; ++i) {
    const Entry& entry = message.EntryOf(i);
    const bool is_inside = entry.begin % kMessageAlignment == 0 && entry.begin <= header.bytes &&
                           entry.bytes <= header.bytes - entry.begin;
    if (!is_inside) return NoMessage("an array at byte", entry.begin, bytes.size());
  }
  return message;
}

}  // namespace embank
