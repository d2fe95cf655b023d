// Messages between roles: the buffer is the wire format.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstring>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "tests/support/failing_memory.h"
#include "train/roles/message.h"

namespace embank::test::message_test {
namespace {

Message MakeExample() {
  MessageHeader header;
  header.kind = MessageKind::kVectors;
  header.from = {RoleKind::kEmbeddingWorker, 3};
  header.key = {7, 2};
  Message message = Message::Make(header, {3 * sizeof(uint64_t), 0, 5 * sizeof(float)});
  std::iota(message.Array<uint64_t>(0).begin(), message.Array<uint64_t>(0).end(), 10);
  const std::vector<float> values = {1.0f, 2.0f, 3.0f, 4.0f, 5.0f};
  message.Place(2, std::span<const float>(values));
  return message;
}

// The bytes of a message in memory of their own.
std::pair<std::shared_ptr<MessageMemory>, std::span<std::byte>> Sent(const Message& message) {
  auto memory = std::make_shared<MessageMemory>(message.bytes().size());
  std::memcpy(memory->data(), message.bytes().data(), message.bytes().size());
  return {memory, {memory->data(), message.bytes().size()}};
}

TEST(Message, IsReadWhereItWasReceived) {
  const Message message = MakeExample();
  EXPECT_EQ(message.copied_bytes(), 20u) << "what was written in place is not copied";
  EXPECT_EQ(message.bytes().size() % kMessageAlignment, 0u);
  const auto [memory, bytes] = Sent(message);
  const StatusOr<Message> received = Message::Received(memory, bytes);
  ASSERT_TRUE(received.ok()) << received.status();
  EXPECT_EQ(received->header().key, (SliceKey{7, 2}));
  EXPECT_EQ(received->View<uint64_t>(0)[2], 12u);
  EXPECT_TRUE(received->View<float>(1).empty());
  EXPECT_EQ(received->View<float>(2)[4], 5.0f);
  const auto* const first = reinterpret_cast<const std::byte*>(received->View<float>(2).data());
  EXPECT_TRUE(first > bytes.data() && first < bytes.data() + bytes.size()) << "not a copy";
  EXPECT_EQ(reinterpret_cast<uintptr_t>(first) % kMessageAlignment, 0u);
  EXPECT_EQ(received->copied_bytes(), 0u);
}

TEST(Message, ReceivedBytesAreChecked) {
  const Message message = MakeExample();
  const auto change = [&](uint64_t at, uint64_t value, uint64_t size) {
    const auto [memory, bytes] = Sent(message);
    std::memcpy(bytes.data() + at, &value, sizeof(value));
    return Message::Received(memory, bytes.first(size)).status();
  };
  const uint64_t size = message.bytes().size();
  const uint64_t kind_at = offsetof(MessageHeader, kind);
  const uint64_t bytes_at = offsetof(MessageHeader, bytes);
  const struct {
    uint64_t at, value, size;
  } cases[] = {{kind_at, 99, size},
               {bytes_at, size + 64, size},
               {bytes_at, size - 1, size},
               {bytes_at, 64, size},
               {64, 32, size},
               {64, size + 64, size},
               {64 + 8, ~uint64_t{0}, size},
               {bytes_at, size, size - 64},
               {bytes_at, size, 32}};
  for (const auto& c : cases) {
    EXPECT_TRUE(IsDataLoss(change(c.at, c.value, c.size))) << c.at << " " << c.value;
  }
}

TEST(Message, MemoryIsOfTheHeapWhereThereAreNoPages) {
  const MessageMemory small(kHugePageBytes - 1);
  const MessageMemory large(kHugePageBytes);
  EXPECT_TRUE(small.is_on_heap());
  EXPECT_FALSE(large.is_on_heap());
  FailingMemory source;
  source.FailEveryCall(true);
  MessageMemory without(kHugePageBytes, &source);
  EXPECT_TRUE(without.is_on_heap());
  std::memset(without.data(), 1, kHugePageBytes);
}

}  // namespace
}  // namespace embank::test::message_test
