// A message between roles. Its buffer is the wire format: it is written where it is sent from, and
// read where it was received.
//
//   | header | begin and bytes of each array | array 0 | array 1 | ...
//   0        64                              at multiples of 64 bytes
//
// All numbers are those of this machine: the ranks of a job have one build.
#ifndef EMBANK_TRAIN_ROLES_MESSAGE_H_
#define EMBANK_TRAIN_ROLES_MESSAGE_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>

#include "base/check.h"
#include "base/status_or.h"
#include "train/roles/message_memory.h"
#include "train/roles/role_plan.h"

namespace embank {

// Persia's steps (Lian et al. 2022, 4.1) have their numbers here.
enum class MessageKind : uint32_t {
  kIds,          // 1 loader -> embedding worker: [ids, offsets, weights] of each id feature
  kSampleIds,    // 1 the way back: [sample ids]
  kSamples,      // 2 loader -> NN worker: [sample ids, labels, dense features]
  kPull,         // 3 NN worker -> embedding worker: [sample ids]
  kVectors,      // 4 the way back: [sample ids, vectors of each feature]
  kGradients,    // 6 NN worker -> embedding worker: [sample ids, gradients of each feature]
  kDenseParts,   // 5 between NN workers: [a part of their dense sums, losses of their slices]
  kDenseSums,    // 5 between NN workers: [a part of the sums of all]
  kResults,      // NN worker -> trainer: [losses of its slices, logits, labels]
  kParameters,   // trainer -> NN worker at the beginning, and back: [weights, state]
  kProgress,     // worker -> loader: `number` batches are done
  kAskProgress,  // loader -> worker: there are `number` batches at least
  kRowsStepped,  // between embedding workers: rows of `number` batches were stepped
  kEnd,          // loader -> all: the data have `number` batches: [EndOfData]
  kCount,
};

struct MessageHeader {
  MessageKind kind = MessageKind::kEnd;
  uint32_t arrays = 0;  // Message::Make sets it, and `bytes`
  RoleAddress from;
  RoleAddress to;
  SliceKey key;
  uint32_t samples = 0;        // of the message
  uint32_t batch_samples = 0;  // of the batch
  uint64_t number = 0;
  uint64_t bytes = 0;  // of the message
  uint64_t unused = 0;
};

class Message {
 public:
  Message() = default;
  Message(Message&& other) noexcept
      : memory_(std::move(other.memory_)),
        data_(std::exchange(other.data_, nullptr)),
        copied_bytes_(other.copied_bytes_) {}
  Message& operator=(Message&& other) noexcept {
    memory_ = std::move(other.memory_);
    data_ = std::exchange(other.data_, nullptr);
    copied_bytes_ = other.copied_bytes_;
    return *this;
  }

  // Makes a message with arrays of these bytes, which the caller writes. The source of its memory
  // outlives it. Throws std::bad_alloc.
  static Message Make(MessageHeader header, std::span<const uint64_t> array_bytes,
                      MemorySource* source = SystemMemorySource());
  static Message Make(MessageHeader header, std::initializer_list<uint64_t> array_bytes) {
    return Make(header, std::span(array_bytes.begin(), array_bytes.size()));
  }
  static uint64_t BytesOf(std::span<const uint64_t> array_bytes);
  // Views the message at the beginning of received bytes, which are in `memory`, at a multiple of
  // kMessageAlignment. DATA_LOSS: they are no message.
  static StatusOr<Message> Received(std::shared_ptr<MessageMemory> memory,
                                    std::span<std::byte> bytes);

  explicit operator bool() const { return data_ != nullptr; }
  const MessageHeader& header() const { return *reinterpret_cast<const MessageHeader*>(data_); }
  std::span<const std::byte> bytes() const { return {data_, header().bytes}; }

  // An array of the message, to be written in place or to be read.
  template <typename T>
  std::span<T> Array(uint32_t array) {
    const Entry& entry = EntryOf(array);
    EMBANK_CHECK(entry.bytes % sizeof(T) == 0);
    return {reinterpret_cast<T*>(data_ + entry.begin), entry.bytes / sizeof(T)};
  }
  template <typename T>
  std::span<const T> View(uint32_t array) const {
    return const_cast<Message*>(this)->Array<T>(array);
  }
  // Copies values into an array of their size, and counts them.
  template <typename T>
  void Place(uint32_t array, std::span<const T> values) {
    const std::span<T> to = Array<T>(array);
    EMBANK_CHECK(to.size() == values.size());
    if (!values.empty()) std::memcpy(to.data(), values.data(), values.size_bytes());
    copied_bytes_ += values.size_bytes();
  }

  // The bytes that Place has copied, and those that the caller says it did.
  uint64_t copied_bytes() const { return copied_bytes_; }
  void add_copied_bytes(uint64_t bytes) { copied_bytes_ += bytes; }

 private:
  struct Entry {
    uint64_t begin;
    uint64_t bytes;
  };

  const Entry& EntryOf(uint32_t array) const {
    EMBANK_CHECK(array < header().arrays);
    return reinterpret_cast<const Entry*>(data_ + sizeof(MessageHeader))[array];
  }
  void Lay(MessageHeader header, std::span<const uint64_t> array_bytes);

  std::shared_ptr<MessageMemory> memory_;
  std::byte* data_ = nullptr;
  uint64_t copied_bytes_ = 0;
};

}  // namespace embank

#endif  // EMBANK_TRAIN_ROLES_MESSAGE_H_
