#include "train/hybrid/nn_worker.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "base/check.h"
#include "base/status_macros.h"
#include "base/str_cat.h"
#include "train/dense/slices.h"
#include "train/hybrid/sample_messages.h"

namespace embank {
namespace {

// Copies the rows of a matrix that are kept.
std::vector<float> RowsAt(ConstMatrix from, std::span<const uint32_t> rows) {
  std::vector<float> kept;
  for (const uint32_t row : rows) {
    const std::span<const float> values = from.Row(row);
    kept.insert(kept.end(), values.begin(), values.end());
  }
  return kept;
}

}  // namespace

// Samples whose vectors have come: their rows there, and their places among those of the slice.
struct NnWorker::Trained {
  std::vector<uint32_t> rows;
  std::vector<uint32_t> places;
};

NnWorker::NnWorker(uint16_t number, const RolePlan& plan, std::vector<PooledFeature> features,
                   DenseWork* work, Transport* transport, const Clock* clock)
    : Role({RoleKind::kNnWorker, number}, transport),
      plan_(plan),
      features_(std::move(features)),
      work_(work),
      clock_(clock),
      window_({.begin = number * plan.slices_of_nn_worker(),
               .stride = 1,
               .count = plan.slices_of_nn_worker()},
              plan.window()),
      sums_(address(), plan, transport),
      losses_(plan.slices),
      batch_ns_(clock->NowNs()) {}

Status NnWorker::Receive(Message message) {
  const MessageHeader& header = message.header();
  switch (header.kind) {
    case MessageKind::kSamples:
      TakeSamples(std::move(message));
      return OkStatus();
    case MessageKind::kVectors:
      TakeVectors(std::move(message));
      return Advance();
    case MessageKind::kDenseParts:
    case MessageKind::kDenseSums:
      if (!sums_.Receive(std::move(message))) ++counts_.dropped_messages;
      return Advance();
    case MessageKind::kParameters:
      TakeParameters(message);
      return Advance();
    case MessageKind::kAskProgress:
      window_.OpenUpTo(header.number, clock_->NowNs());
      SendNumber(MessageKind::kProgress, header.from, window_.done());
      return OkStatus();
    case MessageKind::kEnd:
      batches_ = header.number;
      window_.OpenUpTo(*batches_, clock_->NowNs());
      return Advance();
    default:
      return UnexpectedMessage(header);
  }
}

// Steps 2 and 3: keeps samples, and asks for their vectors.
void NnWorker::TakeSamples(Message message) {
  const MessageHeader& header = message.header();
  const SliceKey key = header.key;
  const bool is_early = window_.IsFull(key.batch);
  const uint64_t now_ns = clock_->NowNs();
  Slice* const slice = window_.Find(key, now_ns);
  if (!is_early && (slice == nullptr || slice->samples || slice->has_ended)) {
    ++counts_.dropped_messages;
    return;
  }
  if (is_early) {
    counts_.refused += header.samples;
    return;
  }
  const std::span<const SampleId> ids = message.View<SampleId>(0);
  for (uint32_t place = 0; place < ids.size(); ++place) {
    buffer_.Insert(ids[place], {key, place});
  }
  counts_.taken += ids.size();
  counts_.samples_most = std::max(counts_.samples_most, buffer_.samples());
  MessageHeader pull_header = Header(
      MessageKind::kPull,
      {RoleKind::kEmbeddingWorker, static_cast<uint16_t>(plan_.EmbeddingWorkerOf(key.slice))}, key);
  pull_header.samples = header.samples;
  Message pull = Message::Make(pull_header, {ids.size_bytes()});
  pull.Place(0, ids);
  slice->since_ns = now_ns;
  slice->samples = std::move(message);
  Send(std::move(pull));
}

void NnWorker::TakeVectors(Message message) {
  Slice* const slice = window_.Find(message.header().key, clock_->NowNs());
  const bool is_next = slice != nullptr && slice->samples && !slice->vectors && !slice->has_ended;
  if (!is_next) {
    ++counts_.dropped_messages;
    return;
  }
  slice->since_ns = clock_->NowNs();
  slice->vectors = std::move(message);
}

void NnWorker::TakeParameters(const Message& message) {
  if (has_parameters_) {
    ++counts_.dropped_messages;
    return;
  }
  has_parameters_ = true;
  first_step_ = message.header().number;
  const std::array<std::span<float>, 2> parameters = work_->parameters();
  for (uint32_t i = 0; i < parameters.size(); ++i) {
    const std::span<const float> given = message.View<float>(i);
    EMBANK_CHECK(given.size() == parameters[i].size());
    std::ranges::copy(given, parameters[i].begin());
  }
}

// Trains what has come of the batch under way, and goes on to the next one.
Status NnWorker::Advance() {
  while (has_parameters_) {
    if (batches_ && window_.done() >= *batches_) {
      SendParameters();
      return OkStatus();
    }
    window_.ForEach(window_.done(), [&](SliceKey key, Slice* slice) {
      if (slice->vectors && !slice->has_ended) Train(key, slice);
    });
    if (!window_.IsFirstDone()) return OkStatus();
    if (!sums_.has_begun()) sums_.Begin(batch_samples_, work_->SumSlices(), losses_);
    if (!sums_.End()) return OkStatus();
    EMBANK_RETURN_IF_ERROR(StepBatch());
  }
  return OkStatus();
}

// Step 5: finds the samples of the vectors; the others of the slice are lost.
void NnWorker::Train(SliceKey key, Slice* slice) {
  Trained samples;
  uint32_t row = 0;
  for (const SampleId id : slice->vectors.View<SampleId>(0)) {
    const std::optional<SamplePlace> place = buffer_.Take(id);
    if (place && place->key == key) {
      samples.rows.push_back(row);
      samples.places.push_back(place->place);
    }
    ++row;
  }
  const std::span<const SampleId> all = slice->samples.View<SampleId>(0);
  if (samples.rows.size() < all.size()) {
    for (const SampleId id : all) Lose(id);
  }
  batch_samples_ = std::max(batch_samples_, slice->samples.header().batch_samples);
  counts_.done += samples.rows.size();
  RunSlice(key, slice, samples);
  slice->vectors = Message();
  slice->samples = Message();
}

// The gradients of the vectors are written where they will be sent from. Where no sample is
// missing, dense features and vectors are read where they were received.
void NnWorker::RunSlice(SliceKey key, Slice* slice, const Trained& samples) {
  const auto count = static_cast<uint32_t>(samples.rows.size());
  MessageHeader header = Header(
      MessageKind::kGradients,
      {RoleKind::kEmbeddingWorker, static_cast<uint16_t>(plan_.EmbeddingWorkerOf(key.slice))}, key);
  header.samples = count;
  slice->gradients = MakeVectors(header, features_);
  slice->logits.resize(count);
  std::vector<ConstMatrix> vectors(features_.size());
  std::vector<std::vector<float>> kept;
  ConstMatrix dense;
  if (count > 0) {
    const std::span<const SampleId> ids = slice->vectors.View<SampleId>(0);
    const std::span<const SampleId> all = slice->samples.View<SampleId>(0);
    const std::span<const float> numbers = slice->samples.View<float>(2);
    dense = ConstMatrix(numbers.data(), static_cast<uint32_t>(all.size()),
                        static_cast<uint32_t>(numbers.size() / all.size()));
    vectors = GradientsOf(slice->vectors, features_);
    const bool is_whole = count == ids.size() && count == all.size();
    const auto keep = [&](ConstMatrix* matrix, std::span<const uint32_t> rows) {
      if (is_whole) return;
      kept.push_back(RowsAt(*matrix, rows));
      *matrix = ConstMatrix(kept.back().data(), count, matrix->columns);
    };
    keep(&dense, samples.places);
    for (ConstMatrix& matrix : vectors) keep(&matrix, samples.rows);
    const std::span<SampleId> of_gradients = slice->gradients.Array<SampleId>(0);
    const std::span<const float> labels = slice->samples.View<float>(1);
    for (uint32_t i = 0; i < count; ++i) {
      of_gradients[i] = ids[samples.rows[i]];
      slice->labels.push_back(labels[samples.places[i]]);
    }
  }
  const std::vector<Matrix> gradients = VectorsOf(&slice->gradients, features_);
  losses_[key.slice] = work_->RunSlice({.number = key.slice % plan_.slices_of_nn_worker(),
                                        .batch_samples = batch_samples_,
                                        .input = {.dense = dense, .features = vectors},
                                        .labels = slice->labels,
                                        .vector_gradients = gradients,
                                        .logits = slice->logits});
  slice->has_ended = true;
}

void NnWorker::LoseSlice(SliceKey key, Slice* slice) {
  if (slice->samples) {
    for (const SampleId id : slice->samples.View<SampleId>(0)) Lose(id);
  }
  RunSlice(key, slice, {});
}

void NnWorker::Lose(SampleId id) {
  if (buffer_.Take(id)) ++counts_.lost;
}

// Steps 5 and 6: the dense step, and the gradients of the vectors.
Status NnWorker::StepBatch() {
  const uint64_t batch = window_.done();
  const uint64_t step = first_step_ + batch;
  const double loss = SumSlices(losses_) / std::max(1u, sums_.batch_samples());
  if (!std::isfinite(loss)) {
    return OutOfRangeError(StrCat("the loss of step ", step + 1, " is not finite"));
  }
  if (!work_->Step(step)) ++left_out_steps_;
  window_.ForEach(batch, [&](SliceKey, Slice* slice) { Send(std::move(slice->gradients)); });
  SendResults();
  window_.PopFirst();
  std::ranges::fill(losses_, 0.0);
  batch_samples_ = 0;
  batch_ns_ = clock_->NowNs();
  if (batches_) window_.OpenUpTo(*batches_, batch_ns_);
  for (const RoleAddress loader : plan_.Loaders()) {
    SendNumber(MessageKind::kProgress, loader, window_.done());
  }
  return OkStatus();
}

void NnWorker::SendResults() {
  std::vector<float> labels, logits;
  window_.ForEach(window_.done(), [&](SliceKey, const Slice* slice) {
    labels.insert(labels.end(), slice->labels.begin(), slice->labels.end());
    logits.insert(logits.end(), slice->logits.begin(), slice->logits.end());
  });
  MessageHeader header =
      Header(MessageKind::kResults, {RoleKind::kTrainer, 0}, {.batch = window_.done()});
  header.samples = static_cast<uint32_t>(labels.size());
  header.batch_samples = sums_.batch_samples();
  const uint32_t slices = plan_.slices_of_nn_worker();
  const auto own =
      std::span<const double>(losses_).subspan(uint64_t{address().number} * slices, slices);
  Message message = Message::Make(
      header, {own.size_bytes(), std::span(logits).size_bytes(), std::span(labels).size_bytes()});
  message.Place(0, own);
  message.Place(1, std::span<const float>(logits));
  message.Place(2, std::span<const float>(labels));
  Send(std::move(message));
}

// All workers have the same ones: the first sends them.
void NnWorker::SendParameters() {
  if (std::exchange(is_done_, true) || address().number != 0) return;
  const std::array<std::span<float>, 2> parameters = work_->parameters();
  MessageHeader header = Header(MessageKind::kParameters, {RoleKind::kTrainer, 0});
  header.number = left_out_steps_;
  Message message = Message::Make(header, {parameters[0].size_bytes(), parameters[1].size_bytes()});
  for (uint32_t i = 0; i < parameters.size(); ++i) {
    message.Place(i, std::span<const float>(parameters[i]));
  }
  Send(std::move(message));
}

Status NnWorker::Tick() {
  if (!has_parameters_) return OkStatus();
  const uint64_t now_ns = clock_->NowNs();
  window_.ForEach(window_.done(), [&](SliceKey key, Slice* slice) {
    const uint64_t since_ns = std::max(slice->since_ns, batch_ns_);
    if (!slice->has_ended && now_ns - since_ns > plan_.expiry_ns) LoseSlice(key, slice);
  });
  return Advance();
}

}  // namespace embank
