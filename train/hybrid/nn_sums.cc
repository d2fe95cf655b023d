#include "train/hybrid/nn_sums.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "train/dense/slices.h"

namespace embank {
namespace {

constexpr uint64_t kUnitFloats = kMessageAlignment / sizeof(float);

}  // namespace

MessageHeader NnSums::Header(MessageKind kind, uint32_t worker) const {
  MessageHeader header;
  header.kind = kind;
  header.from = own_;
  header.to = {RoleKind::kNnWorker, static_cast<uint16_t>(worker)};
  header.key.batch = batch_;
  header.batch_samples = batch_samples_;
  return header;
}

NnSums::Meeting* NnSums::MeetingOf(uint64_t batch) {
  Meeting& meeting = meetings_[batch];
  meeting.parts.resize(plan_.nn_workers);
  meeting.sums.resize(plan_.nn_workers);
  return &meeting;
}

uint64_t NnSums::PartBegin(uint32_t worker) const {
  const uint64_t units = (sums_.size() + kUnitFloats - 1) / kUnitFloats;
  return std::min<uint64_t>(sums_.size(), units * worker / plan_.nn_workers * kUnitFloats);
}

std::span<float> NnSums::PartOf(uint32_t worker) {
  const uint64_t begin = PartBegin(worker);
  return sums_.subspan(begin, PartBegin(worker + 1) - begin);
}

void NnSums::Begin(uint32_t batch_samples, std::span<float> sums, std::span<double> losses) {
  EMBANK_CHECK(!has_begun_ && losses.size() == plan_.slices);
  has_begun_ = true;
  batch_samples_ = batch_samples;
  sums_ = sums;
  losses_ = losses;
  const uint32_t slices = plan_.slices_of_nn_worker();
  const std::span<const double> own = losses.subspan(uint64_t{own_.number} * slices, slices);
  for (uint32_t worker = 0; worker < plan_.nn_workers; ++worker) {
    if (worker == own_.number) continue;
    const std::span<const float> part = PartOf(worker);
    Message message = Message::Make(Header(MessageKind::kDenseParts, worker),
                                    {part.size_bytes(), own.size_bytes()});
    message.Place(0, part);
    message.Place(1, own);
    transport_->Send(std::move(message));
  }
}

bool NnSums::Receive(Message message) {
  const MessageHeader& header = message.header();
  if (header.key.batch < batch_) return false;
  Meeting* const meeting = MeetingOf(header.key.batch);
  std::vector<Message>& messages =
      header.kind == MessageKind::kDenseParts ? meeting->parts : meeting->sums;
  if (messages[header.from.number]) return false;
  messages[header.from.number] = std::move(message);
  return true;
}

bool NnSums::HasAll(const std::vector<Message>& messages) const {
  return static_cast<uint64_t>(std::ranges::count_if(messages, [](const Message& m) {
           return static_cast<bool>(m);
         })) == plan_.nn_workers - 1;
}

// Adds the parts of this worker, and takes the losses that came with them.
void NnSums::AddParts(const Meeting& meeting) {
  if (plan_.nn_workers == 1) return;
  const std::span<float> own = PartOf(own_.number);
  std::vector<float> parts;
  for (uint32_t worker = 0; worker < plan_.nn_workers; ++worker) {
    const Message& message = meeting.parts[worker];
    const std::span<const float> part =
        worker == own_.number ? std::span<const float>(own) : message.View<float>(0);
    EMBANK_CHECK(part.size() == own.size());
    parts.insert(parts.end(), part.begin(), part.end());
    if (worker == own_.number) continue;
    const std::span<const double> losses = message.View<double>(1);
    std::ranges::copy(losses, losses_.subspan(worker * losses.size()).begin());
    batch_samples_ = std::max(batch_samples_, message.header().batch_samples);
  }
  embank::SumSlices(plan_.nn_workers, parts);
  std::copy_n(parts.begin(), own.size(), own.begin());
  for (uint32_t worker = 0; worker < plan_.nn_workers; ++worker) {
    if (worker == own_.number) continue;
    Message message =
        Message::Make(Header(MessageKind::kDenseSums, worker), {std::span(own).size_bytes()});
    message.Place(0, std::span<const float>(own));
    transport_->Send(std::move(message));
  }
}

bool NnSums::End() {
  EMBANK_CHECK(has_begun_);
  const Meeting& meeting = *MeetingOf(batch_);
  if (!has_added_ && HasAll(meeting.parts)) {
    AddParts(meeting);
    has_added_ = true;
  }
  if (!has_added_ || !HasAll(meeting.sums)) return false;
  for (uint32_t worker = 0; worker < plan_.nn_workers; ++worker) {
    if (worker == own_.number) continue;
    const std::span<const float> part = meeting.sums[worker].View<float>(0);
    EMBANK_CHECK(part.size() == PartOf(worker).size());
    std::ranges::copy(part, PartOf(worker).begin());
  }
  meetings_.erase(batch_);
  ++batch_;
  has_begun_ = has_added_ = false;
  return true;
}

}  // namespace embank
