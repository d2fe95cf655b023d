#include "train/hybrid/loader.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "train/dense/slices.h"
#include "train/hybrid/sample_id.h"
#include "train/hybrid/sample_messages.h"

namespace embank {

Loader::Loader(uint16_t number, const RolePlan& plan, BatchSupply* supply, Transport* transport,
               const Clock* clock)
    : Role({RoleKind::kLoader, number}, transport),
      plan_(plan),
      supply_(supply),
      clock_(clock),
      next_(number) {
  for (const RoleAddress worker : Workers()) progress_[worker] = 0;
}

std::vector<RoleAddress> Loader::Workers() const {
  std::vector<RoleAddress> workers = plan_.EmbeddingWorkers();
  const std::vector<RoleAddress> nn_workers = plan_.NnWorkers();
  workers.insert(workers.end(), nn_workers.begin(), nn_workers.end());
  return workers;
}

Status Loader::Start() {
  SendBatches();
  return OkStatus();
}

Status Loader::Receive(Message message) {
  const MessageHeader& header = message.header();
  switch (header.kind) {
    case MessageKind::kSampleIds:
      SendSamples(message);
      return OkStatus();
    case MessageKind::kProgress: {
      uint64_t& progress = progress_.at(header.from);
      progress = std::max(progress, header.number);
      SendBatches();
      return OkStatus();
    }
    case MessageKind::kEnd:
      batches_ = header.number;
      SendBatches();
      return OkStatus();
    default:
      return UnexpectedMessage(header);
  }
}

void Loader::SendBatches() {
  while (!has_ended_) {
    // It may have no space for a batch after the end, and would not see it.
    if (batches_ && next_ >= *batches_) {
      has_ended_ = true;
      break;
    }
    const auto least = std::ranges::min_element(
        progress_, {}, [](const auto& of_worker) { return of_worker.second; });
    if (next_ >= least->second + plan_.window()) {
      if (!is_blocked_) {
        ++counts_.delays;
        blocked_ns_ = clock_->NowNs();
      }
      is_blocked_ = true;
      return;
    }
    is_blocked_ = false;
    ClickBatch batch;
    bool is_there = false;
    RunOutside([&] { is_there = supply_->Take(next_, &batch); });
    if (is_there) {
      SendIds(next_, batch);
      open_[next_].samples = std::move(batch);
      next_ += plan_.loaders;
      continue;
    }
    has_ended_ = true;
    SendEnd();
  }
}

void Loader::SendEnd() {
  const EndOfData end = supply_->end();
  for (const RoleAddress role : plan_.Roles()) {
    if (role == address()) continue;
    MessageHeader header = Header(MessageKind::kEnd, role);
    header.number = supply_->batches();
    Message message = Message::Make(header, {sizeof(end)});
    message.Place(0, std::span<const EndOfData>(&end, 1));
    Send(std::move(message));
  }
}

// Step 1.
void Loader::SendIds(uint64_t number, const ClickBatch& batch) {
  EMBANK_CHECK(batch.labels.size() == batch.samples);
  OpenBatch& open = open_[number];
  open.since_ns = clock_->NowNs();
  open.is_answered.resize(plan_.slices);
  open.unanswered = plan_.slices;
  counts_.sent += batch.samples;
  for (uint32_t slice = 0; slice < plan_.slices; ++slice) {
    const RoleAddress worker = {RoleKind::kEmbeddingWorker,
                                static_cast<uint16_t>(plan_.EmbeddingWorkerOf(slice))};
    Send(MakeIds(Header(MessageKind::kIds, worker, {number, slice}), batch,
                 SliceOf(batch.samples, plan_.slices, slice)));
  }
}

// Step 2.
void Loader::SendSamples(const Message& sample_ids) {
  const SliceKey key = sample_ids.header().key;
  const auto found = open_.find(key.batch);
  if (found == open_.end() || found->second.is_answered[key.slice]) {
    ++counts_.dropped_messages;
    return;
  }
  OpenBatch& open = found->second;
  const ClickBatch& batch = open.samples;
  const SampleRange range = SliceOf(batch.samples, plan_.slices, key.slice);
  const uint64_t samples = range.end - range.begin;
  const uint64_t dense = batch.dense.size() / batch.samples;
  const std::span<const SampleId> ids = sample_ids.View<SampleId>(0);
  EMBANK_CHECK(ids.size() == samples);
  const RoleAddress worker = {RoleKind::kNnWorker,
                              static_cast<uint16_t>(plan_.NnWorkerOf(key.slice))};
  MessageHeader header = Header(MessageKind::kSamples, worker, key);
  header.samples = static_cast<uint32_t>(samples);
  header.batch_samples = batch.samples;
  Message message = Message::Make(
      header, {ids.size_bytes(), samples * sizeof(float), samples * dense * sizeof(float)});
  message.Place(0, ids);
  message.Place(1, std::span(batch.labels).subspan(range.begin, samples));
  message.Place(2, std::span(batch.dense).subspan(range.begin * dense, samples * dense));
  Send(std::move(message));
  open.is_answered[key.slice] = true;
  if (--open.unanswered == 0) open_.erase(found);
}

Status Loader::Tick() {
  const uint64_t now_ns = clock_->NowNs();
  std::erase_if(open_, [&](const auto& numbered) {
    const OpenBatch& open = numbered.second;
    if (now_ns - open.since_ns <= plan_.expiry_ns) return false;
    for (uint32_t slice = 0; slice < plan_.slices; ++slice) {
      if (open.is_answered[slice]) continue;
      const SampleRange range = SliceOf(open.samples.samples, plan_.slices, slice);
      counts_.unanswered += range.end - range.begin;
    }
    return true;
  });
  if (has_ended_ || !is_blocked_ || now_ns - blocked_ns_ <= plan_.retry_ns) return OkStatus();
  blocked_ns_ = now_ns;
  // All batches before one that was sent are there, of other loaders, too.
  const uint64_t sent_end = next_ < plan_.loaders ? 0 : next_ - plan_.loaders + 1;
  for (const RoleAddress worker : Workers()) {
    SendNumber(MessageKind::kAskProgress, worker, sent_end);
  }
  return OkStatus();
}

}  // namespace embank
