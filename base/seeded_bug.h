// Mistakes that the library makes on purpose in one build of a test, which shows that the suites
// notice each (tests/seeded/). In every other build Seeded() is false, and the compiler removes the
// calls. Only sources call it, no headers: the suites' own objects are those of the other tests.
#ifndef EMBANK_BASE_SEEDED_BUG_H_
#define EMBANK_BASE_SEEDED_BUG_H_

#if defined(EMBANK_SEEDED_BUGS)
#include <thread>
#endif

namespace embank {

enum class SeededBug {
  kNone,
  // Durability: syncs that are missing or late.
  kNoSegmentSync,           // segments are not synced before their manifest
  kNoSegmentNameSync,       // nor is the directory in which their names are
  kManifestBeforeSegments,  // the manifest is made durable first, its segments afterwards
  kNoManifestSync,          // a manifest is renamed before its bytes are durable
  kNoManifestNameSync,      // the directory is not synced behind the rename
  kNoSyncAtOpening,         // nor at an opening that finds the manifest of a killed process
  kFailedSyncIgnored,       // a sync that failed is tried again as if nothing had happened
  kDoubtIgnored,            // so is that of the directory behind a manifest
  kBufferNeverWritten,      // a queued buffer is reported as written, and dropped
  // Reading: checks that are missing.
  kNoChecksum,        // a record's checksum is not compared
  kNoSalt,            // it does not cover the place
  kNoFooterIdentity,  // a footer may be another segment's
  kNoHeaderIdentity,  // so may a header
  kAnyRecord,         // a record is taken for the wanted row, unread
  kLossIsAbsence,     // a row whose record cannot be read counts as absent
  kSilentWayBack,     // a damaged newest checkpoint opens the older one
  kGapNotSeen,        // so does a newest one whose manifest is missing
  kDamageSealed,      // a damaged record gets a checksum that matches where it is exported to
  // Contents of a checkpoint.
  kNoPreImage,            // a row that changes before the flush pass comes to it is not saved
  kNoNextCheckpoint,      // changes behind a barrier count as before it
  kBitMissing,            // rows that come late to a checkpoint are left out of its bitmap
  kBitTooMany,            // rows of the next one get into it
  kFrozenLate,            // rows that die behind the barrier are missing in the bitmap
  kBarrierBetweenPieces,  // a barrier comes between two pieces of a batch
  kStartBeforeBarrier,    // a started checkpoint's call returns before the barrier
  // Memory of the index.
  kNoWaitForReaders,  // memory of shrunken shards goes back while readers may look at it
  // Liveness and location of rows.
  kChangedRowStaysClean,  // a changed row counts as one that the log has
  kDirtySlotNotMarked,    // a changed row's slot gets no dirty bit
  kRecordOutlivesChange,  // a changed row's record counts as live
  kKeptSegmentGivenUp,    // a segment that a kept checkpoint has is given up
  kFrozenSegmentGivenUp,  // so is a segment that the checkpoint under way has
  kNumbersUsedAgain,      // ids of segments and records begin again at each opening
  kVersionNotStepped,     // a row leaves its slot, and the slot's version stays
  kOldRecordPromoted,     // a record is promoted though the row has moved on
  kMovedWithoutLook,      // compaction moves a record that is not the row's any more
  // Tiers of logs.
  kDrainLeftOut,            // stores to PMem are not drained before they count as durable
  kPmemSegmentGivenUp,      // a segment of PMem that a checkpoint has is given up
  kDemotionForgets,         // a demoted row is erased in place of appended
  kMovedBeforeAppend,       // a demoted row's entry moves, and its record was not appended
  kStalePmemRecord,         // a row of PMem that is written anew keeps its former place
  kEvacuationLeftOut,       // rows of PMem that is gone are not moved to the SSD
  kMediumNotInManifest,     // a manifest says of all segments that they are on the SSD
  kNoCompactionDebt,        // changes of rows leave compaction's debt unpaid
  kTouchLost,               // a lookup does not touch one row of each shard in the order of LRU
  kRepeatedKeyCountedOnce,  // heat of a key that is looked up once for several positions is one
  // Rows in device memory.
  kNoWriteBack,        // a changed row that leaves device memory stays as it was before it came
  kStaleBytesBelow,    // a row that leaves it gets the bytes of another row
  kMovedBeforeCopied,  // a row leaves it before its bytes have arrived
  kNoWaitForDevice,    // a batch uses bytes before the device has copied them
  kFlushPassSkipsPayloads,  // the flush pass of a checkpoint leaves rows in device memory out
  kNoPayloadPreImage,       // a batch changes such a row before its pending flush
  kPayloadNoteNotMoved,  // compaction moves a record, and the note of a row in device memory stays
  kPayloadStampsNotRenewed,  // stamps of heat in device memory are not renewed
  kPayloadWrittenTwice,      // the first of two positions with one row counts, not the last
  kPayloadOutlivesTable,     // a drop leaves rows in device memory behind
  kPayloadHeatNotSaved,      // a checkpoint leaves the heat of such rows out
  kEarlyEpochsNotRenewed,    // epochs that a drift ends early renew no stamps
  // Calls whose rows are in device memory.
  kCallerNotJoined,    // a call does not wait for the caller's stream
  kCallerNotReleased,  // the caller's stream does not wait for a call
  // Training.
  kStitchOffByOne,         // a position gets the row behind its own
  kSumsInAnotherOrder,     // the gradients of a row are added last position first
  kSliceSummedTwice,       // the tree over slices adds one of them twice
  kPositionLate,           // a checkpoint has the position of the data one batch late
  kRowMissingInSum,        // the sum of a bag leaves out a row of each group
  kEmptyBagDivided,        // the sum of an empty bag is divided by its number of keys
  kBarrierInsideStep,      // a checkpoint may begin between two tables of a packed call
  kPinLapsesEarly,         // pins lapse before the step of their rows
  kFusedAcrossClasses,     // an operation does primitives of two resources
  kDroppedCursorNotMoved,  // a row behind a lost update gets the sum of the row before it
  // Ranks.
  kOwnerByHashBits,           // the owner of a row follows from bits of its hash
  kOwnerRuleDiffers,          // one rank has another rule
  kCountsSwapped,             // the numbers of ids stand in another order than the ids
  kPlanDiffers,               // one rank has other packs
  kVoteLeftOut,               // ranks do not vote before they update rows
  kExchangesInAnotherOrder,   // operations of the link begin as soon as they are ready
  kBucketSummedTwice,         // the slices of a bucket are added twice
  kCheckpointWithoutBarrier,  // a rank starts one before the others have finished the former
  kNewestBySequence,          // a rank goes on at its newest checkpoint, whatever its step
  kPaddingNotZeroed,          // a part is sent with bytes of an earlier batch
  kEmptyPartSkipped,          // a rank that sends nothing does not come to an exchange
  // Rows of several batches under way.
  kStalenessUnbounded,     // a lookup may miss any number of updates
  kUpdatesOutOfOrder,      // of two updates that wait, the later one is made
  kPendingUpdatesSkipped,  // a deterministic lookup does not wait for the updates before it
  // Roles.
  kSampleIdUsedAgain,       // a worker gives the ids of samples again
  kGradientCursorNotMoved,  // behind a lost sample gradients are those of its neighbours
  kExpiryLeaks,             // samples that are given up stay in the buffer
  kDuplicateApplied,        // a gradient is applied whether its sample is still there or not
  // Hot batches.
  kSampledWithReplacement,  // an input may be in a sample twice
  kChunksNotShuffled,       // a chunk of a table's entries has ids that came one behind the other
  kWrongDegrees,            // the quantile of t has one degree of freedom, however many chunks
  kOneColdIdIsHot,          // an input is hot though one of its ids is cold
  kPlaceUsedTwice,          // two hot ids have one place
  kStartsHot,               // an epoch begins with a hot batch though it has cold ones
  kBatchIssuedTwice,        // a rate that falls brings the last batch of a phase again
  kStatesNotSwapped,        // states of the optimizer stay behind at a swap to cold batches
  kDirtyBitLost,            // so does a row that a hot batch changed
  kReplicaInOtherOrder,     // one replica adds the sums of ranks last rank first
  // Numbers.
  kNotFiniteStepMade,      // a step is made though its results are not finite
  kGradientCallsNotSaved,  // a checkpoint leaves the number of gradient calls out
  kCount,
};

#if defined(EMBANK_SEEDED_BUGS)
// Set before anything else, by the main function of the test.
inline SeededBug seeded_bug = SeededBug::kNone;
inline bool Seeded(SeededBug bug) { return bug == seeded_bug; }
// Lets other threads run, on any number of cores, while a mistake that is soon over can be seen.
inline void GiveSeededBugTime() {
  for (int times = 0; times < 1000; ++times) std::this_thread::yield();
}
#else
constexpr bool Seeded(SeededBug) { return false; }
constexpr void GiveSeededBugTime() {}
#endif

}  // namespace embank

#endif  // EMBANK_BASE_SEEDED_BUG_H_
