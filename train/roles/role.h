// A role: an object that reacts to messages and to time, and sends messages.
#ifndef EMBANK_TRAIN_ROLES_ROLE_H_
#define EMBANK_TRAIN_ROLES_ROLE_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "base/function_ref.h"
#include "base/status.h"
#include "train/roles/message.h"
#include "train/roles/role_plan.h"

namespace embank {

// The messages and bytes that were sent, by kind, and the bytes that were copied into them.
struct MessageCounts {
  std::array<uint64_t, static_cast<size_t>(MessageKind::kCount)> messages = {};
  std::array<uint64_t, static_cast<size_t>(MessageKind::kCount)> bytes = {};
  uint64_t copied_bytes = 0;

  // Sums over all kinds.
  uint64_t all_messages() const;
  uint64_t all_bytes() const;
  uint64_t bytes_of(MessageKind kind) const { return bytes[static_cast<size_t>(kind)]; }
  MessageCounts& operator+=(const MessageCounts& other);
};

// The way of messages between roles. They may come in any order; a transport between processes of
// one job loses none.
class Transport {
 public:
  Transport() = default;
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;
  virtual ~Transport() = default;

  // Sends a message to the role of its header, and counts it. Never waits.
  void Send(Message message);
  // Says whether a role waits for something that is no role, such as the lines of a pipe: the time
  // limit of the transport does not count meanwhile.
  virtual void SetWaitsOutside(RoleAddress /*role*/, bool /*waits*/) {}

  // So far.
  MessageCounts counts() const;

 protected:
  virtual void Deliver(Message message) = 0;
  void add_copied_bytes(uint64_t bytes) {
    copied_bytes_.fetch_add(bytes, std::memory_order_relaxed);
  }

 private:
  static constexpr auto kKinds = static_cast<size_t>(MessageKind::kCount);

  std::array<std::atomic<uint64_t>, kKinds> messages_ = {};
  std::array<std::atomic<uint64_t>, kKinds> bytes_ = {};
  std::atomic<uint64_t> copied_bytes_{0};
};

// One thread. A failure ends the job.
class Role {
 public:
  // The transport outlives it.
  Role(RoleAddress address, Transport* transport) : address_(address), transport_(transport) {}
  Role(const Role&) = delete;
  Role& operator=(const Role&) = delete;
  virtual ~Role() = default;

  RoleAddress address() const { return address_; }

  // Sends the first messages. Called once, before all others.
  virtual Status Start() { return OkStatus(); }
  // Reacts to a message for this role.
  virtual Status Receive(Message message) = 0;
  // Looks at the time. Called again and again.
  virtual Status Tick() { return OkStatus(); }
  // Whether all of the training is done that this role does. Messages may still come.
  virtual bool is_done() const = 0;

 protected:
  // A header of a message from this role.
  MessageHeader Header(MessageKind kind, RoleAddress to, SliceKey key = {}) const {
    MessageHeader header;
    header.kind = kind;
    header.from = address_;
    header.to = to;
    header.key = key;
    return header;
  }
  void Send(Message message) { transport_->Send(std::move(message)); }
  // Runs a body that may wait for something that is no role.
  void RunOutside(FunctionRef<void()> body) {
    transport_->SetWaitsOutside(address_, true);
    body();
    transport_->SetWaitsOutside(address_, false);
  }
  // Sends a message without arrays.
  void SendNumber(MessageKind kind, RoleAddress to, uint64_t number) {
    MessageHeader header = Header(kind, to);
    header.number = number;
    Send(Message::Make(header, {}));
  }

 private:
  const RoleAddress address_;
  Transport* const transport_;
};

// Returns the status of a call of a role. A failure has its name, and an exception is one:
// RESOURCE_EXHAUSTED where there is no memory, else UNAVAILABLE.
Status CallRole(const Role& role, FunctionRef<Status()> call);

}  // namespace embank

#endif  // EMBANK_TRAIN_ROLES_ROLE_H_
