// The files of a store in its directory, known by their names:
//
//   LOCK             is locked while the store is open (store/checkpoint/store_lock.h)
//   MANIFEST-<n>     checkpoint n (store/checkpoint/manifest.h), hexadecimal; the newest is kept,
//                    and the one that it names as previous
//   COMPLETED-<n>    checkpoint n was completed, its manifest and its name were durable. If
//                    no manifest is as new as that, the newest one has been lost
//   HEAT-<n>         the heat of checkpoint n's rows (store/checkpoint/heat_file.h), if its
//                    manifest says so
//   segment-<id>     a segment of the log (tiers/log/row_log.h)
//   PMEM-<id>        the PMem directory with this id is the store's
//                    (store/checkpoint/pmem_directory.h)
//
// A file that is in no kept manifest is left from a crash.
#ifndef EMBANK_STORE_CHECKPOINT_STORE_LISTING_H_
#define EMBANK_STORE_CHECKPOINT_STORE_LISTING_H_

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "store/checkpoint/manifest.h"

namespace embank {

// Return the names of a checkpoint's files.
std::string ManifestName(uint32_t checkpoint);
std::string CompletedName(uint32_t checkpoint);
std::string HeatName(uint32_t checkpoint);
// Returns the name of the file that the directory of PMem with this id and its store both have.
std::string DirectoryMarkName(uint64_t id);

// It is a value: its owner keeps it true while files come and go.
struct StoreListing {
  // Sorts the names of a directory's files, and leaves out names that are not a store's. Throws
  // std::bad_alloc.
  static StoreListing Of(std::span<const std::string> names);

  // Says whether a store is, or was, in the directory.
  bool is_store() const { return !checkpoints.empty() || !segments.empty() || !completed.empty(); }
  // Returns a number that no checkpoint has had, as far as the names tell; UINT32_MAX: none is
  // left.
  uint32_t next_checkpoint() const;

  // Returns the names of segments that none of these manifests has on the medium of the directory,
  // in order.
  std::vector<std::string> SegmentsBeside(std::span<const Manifest* const> kept, Tier tier) const;
  // Returns the names of unfinished manifests, and of manifests of other checkpoints than these.
  std::vector<std::string> ManifestsBeside(std::span<const uint32_t> kept) const;
  // Returns the names of files with heat that none of these manifests has, in order.
  std::vector<std::string> HeatBeside(std::span<const Manifest* const> kept) const;

  std::vector<uint32_t> checkpoints;  // with a manifest, in order
  std::set<uint32_t> completed;
  std::vector<uint64_t> segments;      // in order
  std::map<uint32_t, uint64_t> heats;  // checkpoints that may have a file with heat: its bytes
  std::vector<std::string> drafts;     // manifests that a crash has left unfinished
  // The directories of PMem of a store, or its own; as they were when the files were listed.
  std::set<uint64_t> directory_ids;
  ByTier<uint64_t> next_segment_ids = kFirstSegmentIds;  // from which on names of each log are new
};

}  // namespace embank

#endif  // EMBANK_STORE_CHECKPOINT_STORE_LISTING_H_
