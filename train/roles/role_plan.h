// The roles of a job, and which of them does what with a slice of a batch.
#ifndef EMBANK_TRAIN_ROLES_ROLE_PLAN_H_
#define EMBANK_TRAIN_ROLES_ROLE_PLAN_H_

#include <compare>
#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"

namespace embank {

enum class RoleKind : uint16_t { kLoader, kEmbeddingWorker, kNnWorker, kTrainer };

struct RoleAddress {
  RoleKind kind = RoleKind::kTrainer;
  uint16_t number = 0;

  auto operator<=>(const RoleAddress&) const = default;  // NOLINT(modernize-use-nullptr)
};

// "loader 0", "embedding worker 1", "NN worker 0", "trainer".
std::string TextOf(RoleAddress role);

// One slice of one batch: the samples of a message.
struct SliceKey {
  uint64_t batch = 0;
  uint32_t slice = 0;
  uint32_t unused = 0;  // it is a part of messages, and has no byte without a name

  auto operator<=>(const SliceKey&) const = default;  // NOLINT(modernize-use-nullptr)
};

struct RolePlan {
  static constexpr uint32_t kRolesMax = 256;  // of a kind
  // A buffer has two batches while rows of the first are stepped, and two on their way.
  static constexpr uint64_t kBufferedBatches = 4;
  static constexpr uint64_t kBufferedBatchesMax = 1024;

  uint32_t loaders = 1;
  uint32_t embedding_workers = 1;
  uint32_t nn_workers = 1;
  uint32_t slices = 8;
  uint32_t batch = 1024;                              // samples of a batch, at most
  uint64_t buffer_samples = kBufferedBatches * 1024;  // of a worker, at most
  uint64_t expiry_ns = 120'000'000'000;  // that a worker waits for a sample's next message
  uint64_t retry_ns = 1'000'000'000;     // that a loader waits for space before it asks

  // Loaders have the batches in turn.
  uint32_t LoaderOf(uint64_t number) const { return static_cast<uint32_t>(number % loaders); }
  uint32_t EmbeddingWorkerOf(uint32_t slice) const { return slice % embedding_workers; }
  // NN workers have runs of slices, so that their sums are branches of the tree over all slices.
  uint32_t NnWorkerOf(uint32_t slice) const { return slice / slices_of_nn_worker(); }
  uint32_t slices_of_nn_worker() const { return slices / nn_workers; }
  // The batches that a worker takes before the first of them is done.
  uint64_t window() const { return buffer_samples / batch; }

  std::vector<RoleAddress> Loaders() const { return All(RoleKind::kLoader, loaders); }
  std::vector<RoleAddress> EmbeddingWorkers() const {
    return All(RoleKind::kEmbeddingWorker, embedding_workers);
  }
  std::vector<RoleAddress> NnWorkers() const { return All(RoleKind::kNnWorker, nn_workers); }
  // All roles: loaders, embedding workers, NN workers, and the trainer.
  std::vector<RoleAddress> Roles() const;

 private:
  static std::vector<RoleAddress> All(RoleKind kind, uint32_t count);
};

// INVALID_ARGUMENT: a number of roles is 0, above kRolesMax, or does not suit the slices; or the
// buffer holds no batch, or more than kBufferedBatchesMax.
Status Validate(const RolePlan& plan);

}  // namespace embank

#endif  // EMBANK_TRAIN_ROLES_ROLE_PLAN_H_
