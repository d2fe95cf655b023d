#include "train/roles/round_transport.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "base/check.h"
#include "base/status_macros.h"
#include "base/str_cat.h"
#include "train/ranks/gathered_texts.h"

namespace embank {

// A rank says this to each other one at the beginning of a round.
struct alignas(kExchangeUnitBytes) RoundTransport::RoundHeader {
  uint64_t bytes = 0;       // of the messages to it
  uint32_t is_done = 0;     // all roles of the rank are, and it sends nothing to anybody
  uint32_t has_failed = 0;  // one of them has
};

RoundTransport::RoundTransport(const RolePlan& plan, Exchange* exchange)
    : plan_(plan),
      exchange_(exchange),
      sent_(exchange->ranks()),
      sent_headers_(exchange->ranks()),
      received_headers_(exchange->ranks()) {
  EMBANK_CHECK(exchange->ranks() == RanksOf(plan));
}

uint32_t RoundTransport::RanksOf(const RolePlan& plan) {
  return plan.loaders + plan.embedding_workers + plan.nn_workers;
}

uint32_t RoundTransport::RankOf(const RolePlan& plan, RoleAddress role) {
  switch (role.kind) {
    case RoleKind::kLoader:
      return role.number;
    case RoleKind::kEmbeddingWorker:
      return plan.loaders + role.number;
    case RoleKind::kNnWorker:
      return plan.loaders + plan.embedding_workers + role.number;
    case RoleKind::kTrainer:
      return plan.loaders;
  }
  return 0;
}

std::vector<RoleAddress> RoundTransport::RolesOf(const RolePlan& plan, uint32_t rank) {
  std::vector<RoleAddress> roles = plan.Roles();
  std::erase_if(roles, [&](RoleAddress role) { return RankOf(plan, role) != rank; });
  return roles;
}

// Those of this rank need no exchange.
void RoundTransport::Deliver(Message message) {
  const uint32_t rank = RankOf(plan_, message.header().to);
  if (rank == exchange_->rank()) {
    received_.push_back(std::move(message));
  } else {
    sent_[rank].push_back(std::move(message));
  }
}

RoundTransport::~RoundTransport() = default;

Status RoundTransport::Start(std::span<const std::unique_ptr<Role>> roles) {
  for (const auto& role : roles) {
    EMBANK_RETURN_IF_ERROR(CallRole(*role, [&] { return role->Start(); }));
  }
  return OkStatus();
}

// Gives the roles of this rank all that has come.
Status RoundTransport::React(std::span<const std::unique_ptr<Role>> roles) {
  while (!received_.empty()) {
    Message message = std::move(received_.front());
    received_.pop_front();
    const auto role = std::ranges::find_if(
        roles, [&](const auto& one) { return one->address() == message.header().to; });
    EMBANK_CHECK(role != roles.end());
    EMBANK_RETURN_IF_ERROR(CallRole(**role, [&] { return (*role)->Receive(std::move(message)); }));
  }
  for (const auto& role : roles) {
    EMBANK_RETURN_IF_ERROR(CallRole(*role, [&] { return role->Tick(); }));
  }
  return OkStatus();
}

Status RoundTransport::WithRoles(const Status& status) const {
  if (status.ok()) return status;
  std::string text = StrCat(status.message(), "; the ranks are");
  for (uint32_t rank = 0; rank < exchange_->ranks(); ++rank) {
    StrAppend(&text, rank == 0 ? " " : ", ", rank, " ", TextOf(RolesOf(plan_, rank)[0]));
  }
  return Status(status.code(), text);
}

Status RoundTransport::RunRound(const Status& own, bool is_done, bool* is_last) {
  const uint32_t ranks = exchange_->ranks();
  std::vector<ExchangePart> parts;
  std::vector<uint64_t> sent_bytes(ranks), received_bytes(ranks);
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    for (const Message& message : sent_[rank]) sent_bytes[rank] += message.bytes().size();
    is_done &= sent_bytes[rank] == 0;
    parts.push_back({rank * sizeof(RoundHeader), sizeof(RoundHeader)});
  }
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    sent_headers_[rank] = {
        .bytes = sent_bytes[rank], .is_done = is_done ? 1u : 0u, .has_failed = own.ok() ? 0u : 1u};
  }
  EMBANK_RETURN_IF_ERROR(
      exchange_->Run({reinterpret_cast<const std::byte*>(sent_headers_.data()), parts},
                     {reinterpret_cast<std::byte*>(received_headers_.data()), parts}));
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    received_bytes[rank] = received_headers_[rank].bytes;
  }
  const auto has_failed = [](const RoundHeader& header) { return header.has_failed != 0; };
  if (std::ranges::any_of(received_headers_, has_failed)) return Agree(exchange_, own);
  *is_last = std::ranges::all_of(received_headers_, [](const auto& h) { return h.is_done != 0; });
  return *is_last ? OkStatus() : ExchangeMessages(sent_bytes, received_bytes);
}

// Messages to a rank are copied into one part; those from a rank are read where they arrive.
Status RoundTransport::ExchangeMessages(std::span<const uint64_t> sent_bytes,
                                        std::span<const uint64_t> received_bytes) {
  sent_buffer_.Lay(sent_bytes);
  std::vector<ExchangePart> parts;
  uint64_t end = 0;
  for (uint32_t rank = 0; rank < exchange_->ranks(); ++rank) {
    std::byte* to = sent_buffer_.data() + sent_buffer_.parts()[rank].begin;
    for (const Message& message : sent_[rank]) {
      std::memcpy(to, message.bytes().data(), message.bytes().size());
      to += message.bytes().size();
    }
    add_copied_bytes(sent_bytes[rank]);
    sent_[rank].clear();
    parts.push_back({end, received_bytes[rank]});
    end += received_bytes[rank];
  }
  received_memory_ = std::make_shared<MessageMemory>(std::max<uint64_t>(end, kMessageAlignment));
  std::byte* const received = received_memory_->data();
  EMBANK_RETURN_IF_ERROR(exchange_->Run(sent_buffer_.source(), {received, parts}));
  for (std::span<std::byte> bytes = {received, end}; !bytes.empty();) {
    EMBANK_ASSIGN_OR_RETURN(Message message, Message::Received(received_memory_, bytes));
    bytes = bytes.subspan(message.bytes().size());
    received_.push_back(std::move(message));
  }
  received_memory_.reset();
  return OkStatus();
}

Status RoundTransport::Run(std::span<const std::unique_ptr<Role>> roles) {
  Status own = Start(roles);
  bool is_last = false;
  while (!is_last) {
    if (own.ok()) own = React(roles);
    const bool is_done = received_.empty() && std::ranges::all_of(roles, [](const auto& role) {
                           return role->is_done();
                         });
    const Status round = RunRound(own, is_done, &is_last);
    if (!round.ok()) return WithRoles(round);
  }
  return OkStatus();
}

}  // namespace embank
