// Samples as messages: features, vectors and their gradients.
#ifndef EMBANK_TRAIN_HYBRID_SAMPLE_MESSAGES_H_
#define EMBANK_TRAIN_HYBRID_SAMPLE_MESSAGES_H_

#include <cstdint>
#include <span>
#include <vector>

#include "base/status.h"
#include "train/dense/slices.h"
#include "train/dense/tensor.h"
#include "train/hybrid/slice_rows.h"
#include "train/roles/message.h"
#include "train/samples/click_batch.h"

namespace embank {

// The feature ids of a run of samples: kIds. The header's `samples` are set.
Message MakeIds(MessageHeader header, const ClickBatch& batch, SampleRange range);
// The samples at places of such a message: their id features alone.
ClickBatch SamplesAt(const Message& ids, std::span<const uint32_t> places);
// The bytes of the id features of samples.
uint64_t IdBytesOf(const ClickBatch& batch);

// A message of as many samples as the header has, with a vector for each sample and feature, or a
// gradient of it: kVectors, kGradients. The caller writes it.
Message MakeVectors(MessageHeader header, std::span<const PooledFeature> features);
std::vector<Matrix> VectorsOf(Message* message, std::span<const PooledFeature> features);
std::vector<ConstMatrix> GradientsOf(const Message& message,
                                     std::span<const PooledFeature> features);

// INTERNAL: a role got a message that it knows nothing of.
Status UnexpectedMessage(const MessageHeader& header);

}  // namespace embank

#endif  // EMBANK_TRAIN_HYBRID_SAMPLE_MESSAGES_H_
