// The manifests with which a store is opened: those of the checkpoint that it continues, and of the
// other checkpoint that its directory keeps.
#ifndef EMBANK_STORE_CHECKPOINT_OPENED_MANIFESTS_H_
#define EMBANK_STORE_CHECKPOINT_OPENED_MANIFESTS_H_

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "base/status_or.h"
#include "store/checkpoint/checkpoint_directory.h"
#include "store/checkpoint/manifest.h"

namespace embank {

class OpenedManifests {
 public:
  // Loads the manifests that the options choose. A new store first gets the manifest of checkpoint
  // 0, with an id made of seed and `now_ns`. Throws std::bad_alloc.
  // kFailedPrecondition: the store has another seed, and is not only read; a newer format; or no
  // previous checkpoint.
  // kDataLoss: a manifest is damaged or missing; the message names an older one that can be opened.
  // The statuses of files.
  static StatusOr<OpenedManifests> Load(CheckpointDirectory* directory, const StoreOptions& options,
                                        uint64_t now_ns);

  // Returns the manifest of the checkpoint that is opened.
  const Manifest& opened() const { return kept_.front(); }
  // Returns both manifests, the opened one first, or the opened one alone.
  std::span<const Manifest> kept() const { return kept_; }
  // Says whether these are all manifests that the directory should keep. If so, files that are in
  // none of them are in no checkpoint.
  bool are_all() const { return are_all_; }

  // Return the first number of segments of a log, and of records, that no kept checkpoint has used.
  uint64_t next_segment_id(Tier tier) const;
  uint64_t next_sequence() const;

 private:
  OpenedManifests(std::vector<Manifest> kept, bool are_all)
      : kept_(std::move(kept)), are_all_(are_all) {}

  std::vector<Manifest> kept_;
  bool are_all_;
};

}  // namespace embank

#endif  // EMBANK_STORE_CHECKPOINT_OPENED_MANIFESTS_H_
