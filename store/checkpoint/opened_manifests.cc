#include "store/checkpoint/opened_manifests.h"

#include <algorithm>

#include "base/check.h"
#include "base/hash.h"
#include "base/seeded_bug.h"
#include "base/status_macros.h"
#include "base/str_cat.h"
#include "base/threads/log.h"

namespace embank {
namespace {

// Makes the manifest of a store that has no checkpoint yet.
StatusOr<Manifest> MakeFirst(CheckpointDirectory* directory, uint64_t seed, uint64_t now_ns) {
  Manifest first;
  first.store_id = HashKey(seed, now_ns);
  first.seed = seed;
  bool in_doubt = false;
  EMBANK_RETURN_IF_ERROR(directory->Keep(first, &in_doubt));
  return first;
}

// Says whether a store is opened though its newest manifest cannot be read: that may only be as its
// previous checkpoint.
Status CheckMayFail(std::span<const KeptCheckpoint> found, const StoreOptions& options) {
  const Status& newest = found[0].manifest.status();
  if (IsFailedPrecondition(newest) || found.size() == 1) return newest;
  if (!options.previous && !Seeded(SeededBug::kSilentWayBack)) {
    return Status(newest.code(), StrCat(newest.message(), "; checkpoint ", found[1].checkpoint,
                                        " can be opened as the previous one"));
  }
  Log(LogLevel::kWarning, StrCat("the newest checkpoint: ", newest.ToString()));
  return OkStatus();
}

// Loads the kept manifests of a store that has some, the one that is opened first. *are_all: as far
// as can be told there is no other.
StatusOr<std::vector<Manifest>> LoadFound(const CheckpointDirectory& directory,
                                          const StoreOptions& options, bool* are_all) {
  *are_all = true;
  std::vector<KeptCheckpoint> found = directory.LoadKept();
  EMBANK_CHECK(found.size() == 1 || found.size() == 2);
  std::vector<Manifest> kept;
  if (found[0].manifest.ok()) {
    kept.push_back(*std::move(found[0].manifest));
  } else {
    EMBANK_RETURN_IF_ERROR(CheckMayFail(found, options));
    *are_all = false;
  }
  if (found.size() == 1) {
    if (!options.previous) return kept;
    return FailedPreconditionError(
        StrCat("flags: ", options.path, " has one checkpoint, and none previous to it"));
  }
  StatusOr<Manifest>& older = found[1].manifest;
  if (older.ok()) {
    kept.insert(options.previous ? kept.begin() : kept.end(), *std::move(older));
    return kept;
  }
  if (options.previous) return older.status();
  // The checkpoint that is not opened may be damaged or missing.
  *are_all = IsNotFound(older.status());
  Log(LogLevel::kWarning, StrCat("the previous checkpoint: ", older.status().ToString()));
  return kept;
}

}  // namespace

StatusOr<OpenedManifests> OpenedManifests::Load(CheckpointDirectory* directory,
                                                const StoreOptions& options, uint64_t now_ns) {
  std::vector<Manifest> kept;
  bool are_all = true;
  const bool is_new = directory->listing().checkpoints.empty();
  if (is_new && options.previous) {
    return FailedPreconditionError(
        StrCat("flags: ", options.path, " is not a store, and has no previous checkpoint"));
  }
  if (is_new) {
    EMBANK_ASSIGN_OR_RETURN(Manifest first, MakeFirst(directory, options.seed, now_ns));
    kept.push_back(std::move(first));
  } else {
    EMBANK_ASSIGN_OR_RETURN(kept, LoadFound(*directory, options, &are_all));
  }
  EMBANK_CHECK(!kept.empty());
  const uint64_t seed = kept.front().seed;
  if (seed != options.seed && !options.read_only) {
    return FailedPreconditionError(
        StrCat("seed: ", options.path, " was made with ", seed, ", not ", options.seed));
  }
  return OpenedManifests(std::move(kept), are_all);
}

uint64_t OpenedManifests::next_segment_id(Tier tier) const {
  uint64_t next = kFirstSegmentIds[tier];
  if (Seeded(SeededBug::kNumbersUsedAgain)) return next;
  for (const Manifest& manifest : kept_) next = std::max(next, manifest.next_segment_ids[tier]);
  return next;
}

uint64_t OpenedManifests::next_sequence() const {
  uint64_t next = 1;
  if (Seeded(SeededBug::kNumbersUsedAgain)) return next;
  for (const Manifest& manifest : kept_) next = std::max(next, manifest.next_sequence);
  return next;
}

}  // namespace embank
