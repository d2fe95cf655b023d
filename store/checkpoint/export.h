// An export: a checkpoint becomes an independent store in another directory.
//
//   source:  MANIFEST-n      segment, finished      segment that takes records
//                |                |                      |
//            with no other   a second name of       a copy of the checkpoint's rows,
//            checkpoint      the same file          without gaps, finished
//                |                |                      |
//   target:  MANIFEST-n      segment                segment
//
// Its heat is shared like a finished segment. Segments in PMem are copied, to the SSD: an export
// needs no PMem.
//
// Two stores may share the file of a finished segment, because neither changes a byte of it:
// records go into segments that a store has begun itself, names of segments are never used again,
// and a dead segment is removed, not cut or overwritten. A footer is written anew only if it is
// damaged. A store that opened an older checkpoint may then write it for fewer slots; a reader that
// needs more slots reads the records. A segment that a checkpoint calls finished was finished, and
// durable, before the manifest was written. Other segments are copied: their store continues to
// write them. Of these the target has the living rows alone, in a segment that ends behind them
// (tiers/segment/dense_segment.h).
//
// The target has the source's id, which the checksums of records cover.
#ifndef EMBANK_STORE_CHECKPOINT_EXPORT_H_
#define EMBANK_STORE_CHECKPOINT_EXPORT_H_

#include <cstdint>
#include <string>

#include "base/files/file_system.h"
#include "base/function_ref.h"
#include "base/memory/memory.h"
#include "base/status.h"
#include "store/checkpoint/manifest.h"

namespace embank {

// Reports that `done` of `total` bytes are linked or copied, first 0; returns false to stop.
using ExportProgress = FunctionRef<bool(uint64_t done, uint64_t total)>;

// The parts that an export uses; all of them outlive it.
struct ExportParts {
  FileSystem* files;
  MemorySource* memory;        // of a copy's buffers, 2 MiB or two footers, which are in no budget
  ByTier<Directory*> sources;  // of the segments of each log; the SSD's is the store's
};

// Returns the bytes of a segment's file that an export copies: 0 if it gives it a second name,
// where the file system can.
uint64_t BytesToCopy(const SegmentRows& rows);

// Makes a store of a checkpoint, whose segments stay meanwhile. The target is durable when it
// returns OK. After an error it removes what it made. Only files of an error behind the manifest's
// rename stay, and may turn out to be the whole store. Throws std::bad_alloc only before anything
// is made.
// kAlreadyExists: the target's directory is not empty.
// kCancelled: progress returned false.
// kDataLoss: a segment is missing or cut off.
// kUnavailable: the target is open, or the device fails.
// kResourceExhausted, and other statuses of files.
Status ExportCheckpoint(const ExportParts& parts, Manifest checkpoint, const std::string& directory,
                        ExportProgress progress);

}  // namespace embank

#endif  // EMBANK_STORE_CHECKPOINT_EXPORT_H_
