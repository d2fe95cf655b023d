// An export: a checkpoint becomes a store of its own, in another directory.
//
//   source:  MANIFEST-n      segment, finished      segment that takes records
//                |                |                      |
//            with no other   a second name of       a copy, up to the last
//            checkpoint      the same file          row of the checkpoint
//                |                |                      |
//   target:  MANIFEST-n      segment                segment
//
// Its heat is shared like a finished segment. Segments in PMem are copied, to the SSD: an export
// needs no PMem.
//
// Two stores may share the file of a finished segment because neither changes a byte of it: records
// go into segments that a store has begun itself, names of segments are never used again, a dead
// one is removed, not cut or overwritten. A footer is written anew only where it is damaged, maybe
// for fewer slots by who opens an older checkpoint; who needs more asks the records. What a
// checkpoint says to be finished was so, and durable, before its manifest was written. Others are
// copied: their store goes on in them, and whoever opens the copy ends it with a footer of its own.
//
// The target has the source's id, without which the records would not pass for its own.
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

// Told of bytes linked or copied, `done` of `total`, first of none; false: stop.
using ExportProgress = FunctionRef<bool(uint64_t done, uint64_t total)>;

// What an export works with; all of it outlives it.
struct ExportParts {
  FileSystem* files;
  MemorySource* memory;       // of a copy's buffer, 1 MiB, which is in no budget
  Directory* source;          // of the store
  Directory* pmem = nullptr;  // of its PMem; nullptr: it has none
};

// Makes a store of a checkpoint, whose segments stay meanwhile. Once it returns OK the target is
// durable. kAlreadyExists: the target's directory is not empty; kCancelled: progress said so;
// kDataLoss: a segment is missing or cut off; kUnavailable: the target is open, or the device
// fails; kResourceExhausted; other statuses of files. Then what was made is removed; only what
// fails after the manifest got its name stays, and may turn out to be the store, whole.
// std::bad_alloc leaves it only before anything is made.
Status ExportCheckpoint(const ExportParts& parts, Manifest checkpoint, const std::string& directory,
                        ExportProgress progress);

}  // namespace embank

#endif  // EMBANK_STORE_CHECKPOINT_EXPORT_H_
