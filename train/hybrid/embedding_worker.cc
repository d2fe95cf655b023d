#include "train/hybrid/embedding_worker.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/check.h"
#include "base/seeded_bug.h"
#include "base/status_macros.h"
#include "train/hybrid/sample_messages.h"

namespace embank {
namespace {

constexpr uint32_t kNotPooled = UINT32_MAX;

}  // namespace

EmbeddingWorker::EmbeddingWorker(uint16_t number, const RolePlan& plan, SliceRows* rows,
                                 Transport* transport, const Clock* clock)
    : Role({RoleKind::kEmbeddingWorker, number}, transport),
      plan_(plan),
      rows_(rows),
      clock_(clock),
      sample_ids_(number),
      window_(
          {.begin = number,
           .stride = plan.embedding_workers,
           .count = (plan.slices - number + plan.embedding_workers - 1) / plan.embedding_workers},
          plan.window()),
      stepped_ns_(clock->NowNs()) {}

Status EmbeddingWorker::Receive(Message message) {
  const MessageHeader& header = message.header();
  switch (header.kind) {
    case MessageKind::kIds:
      TakeIds(std::move(message));
      return OkStatus();
    case MessageKind::kPull:
      return TakePull(std::move(message));
    case MessageKind::kGradients:
      return TakeGradients(message);
    case MessageKind::kRowsStepped:
      return NoteSteps();
    case MessageKind::kAskProgress:
      window_.OpenUpTo(header.number, clock_->NowNs());
      SendNumber(MessageKind::kProgress, header.from, window_.done());
      return OkStatus();
    case MessageKind::kEnd:
      batches_ = header.number;
      window_.OpenUpTo(*batches_, clock_->NowNs());
      return OkStatus();
    default:
      return UnexpectedMessage(header);
  }
}

// Step 1: numbers the samples, and keeps their ids.
void EmbeddingWorker::TakeIds(Message message) {
  const MessageHeader& header = message.header();
  const uint32_t samples = header.samples;
  const bool is_early = window_.IsFull(header.key.batch);
  const uint64_t now_ns = clock_->NowNs();
  Slice* const slice = window_.Find(header.key, now_ns);
  if (!is_early && (slice == nullptr || slice->ids || slice->has_ended)) {
    ++counts_.dropped_messages;
    return;
  }
  if (is_early) {
    counts_.refused += samples;
    return;
  }
  const SampleId first = sample_ids_.Take(samples);
  Message reply = Message::Make(Header(MessageKind::kSampleIds, header.from, header.key),
                                {samples * sizeof(SampleId)});
  const std::span<SampleId> ids = reply.Array<SampleId>(0);
  std::iota(ids.begin(), ids.end(), first);
  for (uint32_t place = 0; place < samples; ++place) {
    buffer_.Insert(first + place, {header.key, place});
  }
  counts_.taken += samples;
  counts_.samples_most = std::max(counts_.samples_most, buffer_.samples());
  slice->since_ns = now_ns;
  slice->first = first;
  slice->samples = samples;
  slice->ids = std::move(message);
  Send(std::move(reply));
}

Status EmbeddingWorker::TakePull(Message message) {
  const SliceKey key = message.header().key;
  Slice* const slice = window_.Find(key, clock_->NowNs());
  const bool is_next =
      slice != nullptr && slice->ids && !slice->pull && !slice->is_pooled && !slice->has_ended;
  if (!is_next) {
    ++counts_.dropped_messages;
    return OkStatus();
  }
  slice->since_ns = clock_->NowNs();
  slice->pull = std::move(message);
  return key.batch <= rows_->stepped() ? Answer(key, slice) : OkStatus();
}

// Returns the places of those samples of a slice that are still there.
std::vector<uint32_t> EmbeddingWorker::FindPlaces(SliceKey key,
                                                  std::span<const SampleId> ids) const {
  std::vector<uint32_t> places;
  for (const SampleId id : ids) {
    const std::optional<SamplePlace> place = buffer_.Find(id);
    if (place && place->key == key) places.push_back(place->place);
  }
  return places;
}

// Step 4: sends a vector of each feature for each sample.
Status EmbeddingWorker::Answer(SliceKey key, Slice* slice) {
  const Message pull = std::move(slice->pull);
  const std::vector<uint32_t> places = FindPlaces(key, pull.View<SampleId>(0));
  const auto samples = static_cast<uint32_t>(places.size());
  slice->since_ns = clock_->NowNs();
  slice->is_pooled = true;
  slice->numbers.assign(slice->samples, kNotPooled);
  MessageHeader header = Header(MessageKind::kVectors, pull.header().from, key);
  header.samples = samples;
  header.batch_samples = slice->ids.header().batch_samples;
  Message reply = MakeVectors(header, rows_->features());
  const std::span<SampleId> ids = reply.Array<SampleId>(0);
  for (uint32_t i = 0; i < samples; ++i) {
    ids[i] = slice->first + places[i];
    slice->numbers[places[i]] = i;
  }
  if (samples > 0) {
    ClickBatch batch = SamplesAt(slice->ids, places);
    uint64_t copied_bytes = IdBytesOf(batch);
    for (const PooledFeature& feature : rows_->features()) {
      copied_bytes += uint64_t{samples} * feature.dim * sizeof(float);
      counts_.row_bytes += batch.features[feature.column].ids.size() * feature.dim * sizeof(float);
    }
    EMBANK_RETURN_IF_ERROR(
        rows_->Pool(key, std::move(batch), VectorsOf(&reply, rows_->features())));
    reply.add_copied_bytes(copied_bytes);
  }
  Send(std::move(reply));
  return OkStatus();
}

// Step 7: finds the samples of the gradients.
Status EmbeddingWorker::TakeGradients(const Message& message) {
  const SliceKey key = message.header().key;
  Slice* const slice = window_.Find(key, clock_->NowNs());
  if (slice == nullptr || !slice->is_pooled) {
    ++counts_.dropped_messages;
    return OkStatus();
  }
  const std::vector<KeptSample> kept = TakeKept(message, *slice);
  if (kept.empty() && slice->has_ended) {
    ++counts_.dropped_messages;
    return OkStatus();
  }
  return EndSlice(key, slice, kept, GradientsOf(message, rows_->features()));
}

// The rows of the gradients go on with the ids, also past those of samples that are lost.
std::vector<KeptSample> EmbeddingWorker::TakeKept(const Message& message, const Slice& slice) {
  std::vector<KeptSample> kept;
  uint32_t row = 0;
  for (const SampleId id : message.View<SampleId>(0)) {
    std::optional<SamplePlace> place = buffer_.Take(id);
    if (Seeded(SeededBug::kDuplicateApplied)) {
      place = {message.header().key, static_cast<uint32_t>(id - slice.first)};
    }
    const bool is_pooled =
        place && place->key == message.header().key && slice.numbers[place->place] != kNotPooled;
    if (is_pooled) kept.push_back({slice.numbers[place->place], row});
    if (place && !is_pooled) ++counts_.lost;
    if (is_pooled || !Seeded(SeededBug::kGradientCursorNotMoved)) ++row;
  }
  return kept;
}

// The samples that are left have no gradient, and are lost.
Status EmbeddingWorker::EndSlice(SliceKey key, Slice* slice, std::span<const KeptSample> kept,
                                 std::span<const ConstMatrix> gradients) {
  counts_.done += kept.size();
  const bool are_any_left = kept.size() < slice->samples;
  if (are_any_left && (!Seeded(SeededBug::kExpiryLeaks) || !kept.empty())) {
    for (uint32_t place = 0; place < slice->samples; ++place) Lose(slice->first + place);
  }
  slice->has_ended = true;
  slice->ids = Message();
  slice->pull = Message();
  EMBANK_RETURN_IF_ERROR(rows_->End(key, kept, gradients));
  CloseBatches();
  if (rows_->stepped() == stepped_) return OkStatus();
  for (const RoleAddress worker : plan_.EmbeddingWorkers()) {
    if (worker != address()) SendNumber(MessageKind::kRowsStepped, worker, rows_->stepped());
  }
  return NoteSteps();
}

void EmbeddingWorker::Lose(SampleId id) {
  if (buffer_.Take(id)) ++counts_.lost;
}

void EmbeddingWorker::CloseBatches() {
  const uint64_t before = window_.done();
  while (window_.IsFirstDone()) window_.PopFirst();
  if (window_.done() == before) return;
  if (batches_) window_.OpenUpTo(*batches_, clock_->NowNs());
  for (const RoleAddress loader : plan_.Loaders()) {
    SendNumber(MessageKind::kProgress, loader, window_.done());
  }
}

// Answers the pulls that waited for the rows of the batch before.
Status EmbeddingWorker::NoteSteps() {
  const uint64_t stepped = rows_->stepped();
  if (stepped == stepped_) return OkStatus();
  stepped_ = stepped;
  stepped_ns_ = clock_->NowNs();
  Status status;
  window_.ForEach(stepped, [&](SliceKey key, Slice* slice) {
    if (slice->pull && status.ok()) status = Answer(key, slice);
  });
  return status;
}

Status EmbeddingWorker::Tick() {
  EMBANK_RETURN_IF_ERROR(NoteSteps());
  const uint64_t now_ns = clock_->NowNs();
  std::vector<SliceKey> expired;
  window_.ForEach(stepped_, [&](SliceKey key, const Slice* slice) {
    const uint64_t since_ns = std::max(slice->since_ns, stepped_ns_);
    if (!slice->has_ended && now_ns - since_ns > plan_.expiry_ns) expired.push_back(key);
  });
  for (const SliceKey& key : expired) {
    EMBANK_RETURN_IF_ERROR(EndSlice(key, window_.Find(key, now_ns), {}, {}));
  }
  return OkStatus();
}

bool EmbeddingWorker::is_done() const { return batches_ && window_.done() >= *batches_; }

}  // namespace embank
