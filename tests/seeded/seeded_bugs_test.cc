// Each mistake that the library can make on purpose (base/seeded_bug.h) is noticed by a test of the
// suites; without one the same tests pass.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <set>
#include <string>
#include <utility>

#include "base/seeded_bug.h"

namespace embank::test::seeded_bugs_test {
namespace {

struct Case {
  SeededBug bug;
  const char* what;
  const char* test;        // that notices it
  bool with_pmem = false;  // its stores have a PMem tier (tests/support/pmem_tier.h)
  bool with_hbm = false;   // its stores have device memory (tests/support/hbm_tier.h)
};

constexpr Case kCases[] = {
    {SeededBug::kNoSegmentSync, "segments not synced", "Checkpoints.SurviveEveryCrash"},
    {SeededBug::kNoSegmentNameSync, "segments' names not synced", "Checkpoints.SurviveEveryCrash"},
    {SeededBug::kManifestBeforeSegments, "manifest before segments",
     "Checkpoints.SurviveEveryCrash"},
    {SeededBug::kNoManifestSync, "manifest not synced", "Checkpoints.SurviveEveryCrash"},
    {SeededBug::kNoManifestNameSync, "manifest's name not synced", "Checkpoints.SurviveEveryCrash"},
    {SeededBug::kNoSyncAtOpening, "no sync at opening",
     "CheckpointDirectoryTest.AFoundCheckpointOutlivesACrash"},
    {SeededBug::kFailedSyncIgnored, "failed sync ignored",
     "RowLogCheckpoints.AfterASegmentsSyncThatFailedThereIsNone"},
    {SeededBug::kDoubtIgnored, "doubt ignored",
     "CheckpointFailures.AFailedSyncOfTheManifestIsNotMadeUpForByLaterOnes"},
    {SeededBug::kBufferNeverWritten, "buffer never written",
     "EvictedRows.StateComesBackWithItsRow"},
    {SeededBug::kNoChecksum, "checksum not compared", "RowLog.DamageIsTheDamagedRowsAlone"},
    {SeededBug::kNoSalt, "checksum without its place", "LogRecord.IsWholeAtItsPlaceOnly"},
    {SeededBug::kNoFooterIdentity, "another's footer", "SegmentFooterTest.IsOfItsSegmentOnly"},
    {SeededBug::kNoHeaderIdentity, "another's header",
     "TwoCheckpoints.AnotherSegmentsBytesAreNamed"},
    {SeededBug::kAnyRecord, "another row's record",
     "EvictedRows.ARowInTheLogIsNotTakenForAnotherOfTheSameTag"},
    {SeededBug::kLossIsAbsence, "loss taken for absence",
     "EvictedRows.ARowThatCannotBeReadIsLostAloneAndSaysSo"},
    {SeededBug::kSilentWayBack, "silent way back",
     "TwoCheckpoints.ADamagedNewestOneNamesTheOlderWhichCanBeOpened"},
    {SeededBug::kGapNotSeen, "missing manifest not seen",
     "TwoCheckpoints.AMissingNewestManifestIsNamedAndNothingIsRemoved"},
    {SeededBug::kDamageSealed, "damage sealed", "Restarts.ADamagedRowIsDamagedInAnExport"},
    {SeededBug::kNoPreImage, "no pre-image", "ChangesBesideCheckpoints.AreWhollyBehindThem"},
    {SeededBug::kNoNextCheckpoint, "no next checkpoint",
     "ChangesBesideCheckpoints.AreWhollyBehindThem"},
    {SeededBug::kBitMissing, "a bit too few", "ChangesBesideCheckpoints.AreWhollyBehindThem"},
    {SeededBug::kBitTooMany, "a bit too many",
     "ChangesBesideCheckpoints.RepeatedChangesOfAllRowsAreWhollyBehindThem"},
    {SeededBug::kFrozenLate, "bitmap of later", "ChangesBesideCheckpoints.AreWhollyBehindThem"},
    {SeededBug::kBarrierBetweenPieces, "barrier between pieces",
     "BatchGate.ABarrierWaitsForABatchInPiecesAndWriteGuardsDoNotWaitForIt"},
    {SeededBug::kNoWaitForReaders, "readers not waited for",
     "Checkpoints.GiveTheIndexsMemoryBackWhenReadersHaveLeftIt"},
    {SeededBug::kStartBeforeBarrier, "start before the barrier",
     "StartedCheckpointTest.HasNoRowThatIsWrittenOnceItsStartHasReturned"},
    {SeededBug::kChangedRowStaysClean, "changed row stays clean",
     "LargerThanMemory.AgreesWithAMapWhateverIsWhere"},
    {SeededBug::kDirtySlotNotMarked, "dirty slot not marked",
     "Checkpoints.HaveTheRowOfEachSlotAlone"},
    {SeededBug::kRecordOutlivesChange, "record outlives change",
     "EvictedRows.TheLogHasNoRecordOfARowThatHasChanged"},
    {SeededBug::kKeptSegmentGivenUp, "kept segment given up",
     "CheckpointSpace.SpaceOfAKeptOneIsNotUsedAgain"},
    {SeededBug::kFrozenSegmentGivenUp, "frozen segment given up",
     "ChangesBesideCheckpoints.RepeatedChangesOfAllRowsAreWhollyBehindThem"},
    {SeededBug::kNumbersUsedAgain, "numbers used again", "TwoCheckpoints.NumbersGoOnBehindACrash"},
    {SeededBug::kVersionNotStepped, "version not stepped",
     "EvictedRows.ASlotThatARowHasLeftIsNobodys"},
    {SeededBug::kOldRecordPromoted, "old record promoted",
     "EvictedRows.AnOlderRecordIsNotPromoted"},
    {SeededBug::kMovedWithoutLook, "moved without a look",
     "Compaction.LeavesARowThatHasChangedMeanwhile"},
    {SeededBug::kDrainLeftOut, "drain left out", "Checkpoints.SurviveEveryCrash", true},
    {SeededBug::kPmemSegmentGivenUp, "PMem segment given up",
     "PmemTier.RowsOfAKeptCheckpointStayInPmem"},
    {SeededBug::kDemotionForgets, "demotion forgets",
     "PmemTier.FullPmemDemotesItsOldestRowsToTheSsd"},
    {SeededBug::kMovedBeforeAppend, "entry moved before the append",
     "PmemTier.FullPmemDemotesItsOldestRowsToTheSsd"},
    {SeededBug::kStalePmemRecord, "stale record in PMem",
     "PmemTier.ARowOfPmemThatChangesIsNotAnsweredAsItWas"},
    {SeededBug::kEvacuationLeftOut, "rows of PMem that is gone left there",
     "PmemFailures.ADirectoryThatIsRemovedLeavesItsRowsToTheSsd"},
    {SeededBug::kMediumNotInManifest, "medium not in the manifest",
     "PmemTier.AStoreIsReopenedWithItsRowsInAllTiers"},
    {SeededBug::kNoCompactionDebt, "no compaction debt",
     "WriteScope.SettingStatesPaysForCompaction"},
    {SeededBug::kTouchLost, "a touch that LRU loses",
     "BesideExactLru.TheSameKeysRemainWhateverTheBatchesAre"},
    {SeededBug::kRepeatedKeyCountedOnce, "heat of repeated positions lost",
     "LookupsOfRepeatedKeys.AnswerAndCountEachPosition"},
    {SeededBug::kNoWriteBack, "no write-back", "HbmRows.ThatChangedLeaveAsTheyAre"},
    {SeededBug::kStaleBytesBelow, "stale bytes below", "HbmRows.AreReplacedWhenOthersGetHotter"},
    {SeededBug::kMovedBeforeCopied, "entry moved before the copy",
     "HbmRows.AreReplacedWhenOthersGetHotter"},
    {SeededBug::kNoWaitForDevice, "no wait for the device", "HbmRows.AreThoseWithTheMostHeat"},
    {SeededBug::kFlushPassSkipsPayloads, "flush pass skips HBM rows",
     "HbmRows.AreSavedByACheckpoint"},
    {SeededBug::kNoPayloadPreImage, "no pre-image of an HBM row",
     "ChangesBesideCheckpoints.RepeatedChangesOfAllRowsAreWhollyBehindThem", false, true},
    {SeededBug::kPayloadNoteNotMoved, "note of an HBM row not moved",
     "HbmRows.KnowTheirRecordsWhereCompactionMovesThem"},
    {SeededBug::kPayloadStampsNotRenewed, "stamps of HBM rows not renewed",
     "HbmRows.CoolDownHoweverLongNobodyLooksAtThem"},
    {SeededBug::kEarlyEpochsNotRenewed, "stamps not renewed in early epochs",
     "HbmRows.CoolDownInEpochsThatEndEarly"},
    {SeededBug::kPayloadWrittenTwice, "two writers of one row",
     "HbmRows.TakeTheLastOfTwoUpsertsOfOneKey"},
    {SeededBug::kPayloadOutlivesTable, "HBM row outlives its table",
     "HbmRows.ADroppedTableLeavesNoHbmRows"},
    {SeededBug::kPayloadHeatNotSaved, "heat of HBM rows not saved",
     "HbmRows.ComeBackByTheirSavedHeat"},
    {SeededBug::kCallerNotJoined, "caller's stream not joined",
     "DeviceCalls.ReadRowsBehindTheCallersEarlierWork"},
    {SeededBug::kCallerNotReleased, "caller's stream not released",
     "DeviceCalls.AreAheadOfTheCallersLaterWork"},
    {SeededBug::kRowMissingInSum, "row missing in a sum",
     "Threads/PackedCalls.PoolLargeFeaturesInChunks/0"},
    {SeededBug::kEmptyBagDivided, "empty bag divided by zero",
     "Threads/PackedCalls.DoTheWorkOfCallsForEachFeature/0"},
    {SeededBug::kBarrierInsideStep, "barrier inside a step",
     "Threads/PackedCalls.AreWhollyInACheckpointOrNotAtAll/1"},
    {SeededBug::kNotFiniteStepMade, "a step that is not finite made",
     "NotFinite.AStepIsNotMadeWhereverTheGradientIsTooLarge"},
    {SeededBug::kGradientCallsNotSaved, "gradient calls not saved",
     "Checkpoints.GoOnWithTablesIdsAndOptions"},
#ifdef EMBANK_HAS_TRAIN
    {SeededBug::kStitchOffByOne, "stitch off by one",
     "EmbeddingPassTest.IsADenseTableOfWholeNumbers/Local1"},
    {SeededBug::kSumsInAnotherOrder, "sums in another order",
     "EmbeddingPassTest.AddsTheGradientsOfARowInTheOrderOfPositions/Local1"},
    {SeededBug::kSliceSummedTwice, "slice summed twice", "Trainer.TheLossIsThatOfItsLogits"},
    {SeededBug::kPositionLate, "position one batch late",
     "Trainer.GoesOnAtItsCheckpointAsIfItHadNotEnded"},
    {SeededBug::kPinLapsesEarly, "pin lapsed under micro-batches",
     "Trainer.PrefetchedRowsStayUntilTheStepBehindTheNext"},
    {SeededBug::kFusedAcrossClasses, "fused across resource classes",
     "Operations.AreFusedWithinOneResource"},
    {SeededBug::kDroppedCursorNotMoved, "a row behind a lost one gets its sum",
     "EmbeddingPassTest.LosesTheUpdatesOfChosenRowsAlone/Local1"},
    {SeededBug::kOwnerByHashBits, "owner by bits of the hash",
     "EmbeddingPassTest.IsADenseTableOfWholeNumbers/Of2"},
    {SeededBug::kOwnerRuleDiffers, "owner rule that differs on one rank",
     "EmbeddingPassTest.IsADenseTableOfWholeNumbers/Of2"},
    {SeededBug::kCountsSwapped, "counts and ids swapped",
     "EmbeddingPassTest.IsADenseTableOfWholeNumbers/Of2"},
    {SeededBug::kPlanDiffers, "plan of another rank", "RankTrainer.HasTheBitsOfOneRank"},
    {SeededBug::kVoteLeftOut, "vote left out", "RankTrainer.AFailureOfOneRankIsThatOfAll"},
    {SeededBug::kExchangesInAnotherOrder, "exchanges in another order",
     "OperationGraph.OperationsOfTheLinkHaveOneOrderAndAThread"},
    {SeededBug::kBucketSummedTwice, "a bucket summed twice",
     "RankCheckpoints.AJobGoesOnAsIfItHadNotEnded"},
    {SeededBug::kCheckpointWithoutBarrier, "checkpoint without its barrier",
     "RankCheckpoints.NoneBeginsWithoutTheOtherRanks"},
    {SeededBug::kNewestBySequence, "newest checkpoint by sequence",
     "RankCheckpoints.AJobGoesOnAtTheNewestStepOfAllRanks"},
    {SeededBug::kPaddingNotZeroed, "padding not zeroed", "PartBuffer.HasPartsOfWholeUnits"},
    {SeededBug::kEmptyPartSkipped, "an empty part skipped on a rank",
     "LocalExchange.ARankThatSendsNothingComesToo"},
    {SeededBug::kStalenessUnbounded, "staleness without its bound",
     "RowRing.StalenessHasItsBoundUnderDelays"},
    {SeededBug::kUpdatesOutOfOrder, "updates out of order",
     "RowRing.StalenessHasItsBoundUnderDelays"},
    {SeededBug::kPendingUpdatesSkipped, "pending updates skipped",
     "RowRing.ADeterministicLookupWaitsForTheUpdatesBegunBeforeIt"},
    {SeededBug::kSampleIdUsedAgain, "sample ids used again",
     "RoleProtocol.EachSampleIsAppliedOnceOrLost"},
    {SeededBug::kGradientCursorNotMoved, "gradient cursor not moved",
     "RoleProtocol.EachSampleIsAppliedOnceOrLost"},
    {SeededBug::kExpiryLeaks, "expiry that leaks", "RoleProtocol.EachSampleIsAppliedOnceOrLost"},
    {SeededBug::kDuplicateApplied, "a duplicate applied",
     "RoleProtocol.EachSampleIsAppliedOnceOrLost"},
    {SeededBug::kSampledWithReplacement, "sampled with replacement",
     "Calibrator.CountsEachInputOfTheSampleOnce"},
    {SeededBug::kChunksNotShuffled, "chunks not shuffled",
     "ChunkEstimator.IntervalsHoldTheTruthInFourHundredRepetitions"},
    {SeededBug::kWrongDegrees, "t of other degrees of freedom",
     "ChunkEstimator.CountsFewChunksWhereManyEntriesAreHot"},
    {SeededBug::kOneColdIdIsHot, "an input hot with one cold id",
     "InputClassifier.IsBruteForceForBagsAndSharedTables"},
    {SeededBug::kPlaceUsedTwice, "a place used twice", "IdPlaces.AreABijection"},
    {SeededBug::kStartsHot, "an epoch that starts hot", "HotColdSamples.AlternateInPhases"},
    {SeededBug::kBatchIssuedTwice, "a batch issued twice after a rise",
     "HotColdSamples.GiveEachBatchOnceForAnyLosses"},
    {SeededBug::kStatesNotSwapped, "states not swapped", "HotBag.HasTheBitsOfTheStore"},
    {SeededBug::kDirtyBitLost, "a dirty bit lost", "HotBag.HasTheBitsOfTheStore"},
    {SeededBug::kReplicaInOtherOrder, "a replica summed in another order",
     "HotBag.HasTheBitsOfTheStoreOnRanks"},
#endif
};

struct Ended {
  bool by_difference = false;  // a test has failed
  bool by_check = false;       // a check of the library's own has stopped it
  bool passed = false;
  std::string output;
};

Ended RunSuites(SeededBug bug, const std::string& tests, bool with_pmem = false,
                bool with_hbm = false) {
  const char* const program = std::getenv("EMBANK_SEEDED_SUITES");
  EXPECT_NE(program, nullptr) << "EMBANK_SEEDED_SUITES must name the program (ctest sets it)";
  const std::string command = std::string(with_pmem ? "EMBANK_TEST_PMEM=1 " : "") +
                              (with_hbm ? "EMBANK_TEST_HBM=1 " : "") + "exec " +
                              std::string(program == nullptr ? "false" : program) + " " +
                              std::to_string(static_cast<int>(bug)) + " --gtest_fail_fast" +
                              " --gtest_filter=" + tests + " 2>&1";
  std::FILE* const pipe = popen(command.c_str(), "r");
  Ended ended;
  if (pipe == nullptr) {
    ADD_FAILURE() << "no process for " << command;
    return ended;
  }
  std::array<char, 4096> part;
  for (size_t n; (n = std::fread(part.data(), 1, part.size(), pipe)) > 0;) {
    ended.output.append(part.data(), n);
  }
  const int status = pclose(pipe);
  const auto says = [&](const char* text) { return ended.output.find(text) != std::string::npos; };
  ended.passed = WIFEXITED(status) && WEXITSTATUS(status) == 0;
  ended.by_difference = WIFEXITED(status) && WEXITSTATUS(status) == 1 && says("[  FAILED  ]");
  ended.by_check = WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT && says(": broken: ");
  return ended;
}

TEST(SeededBugs, AreAllHere) {
  std::set<SeededBug> bugs;
  for (const Case& c : kCases) bugs.insert(c.bug);
  EXPECT_EQ(bugs.size(), std::size(kCases)) << "one of them stands here twice";
#ifdef EMBANK_HAS_TRAIN
  EXPECT_EQ(bugs.size(), static_cast<size_t>(SeededBug::kCount) - 1);
#endif
}

// In a build that is broken by itself, each test fails, and each mistake seems to be noticed.
TEST(SeededBugs, WithoutOneSomeTestsPass) {
  for (const char* const suite : {
           "EvictedRows",
           "LogRecord",
           "NotFinite",
#ifdef EMBANK_HAS_TRAIN
           "UniquePartition",
#endif
       }) {
    const Ended ended = RunSuites(SeededBug::kNone, std::string(suite) + ".*");
    EXPECT_TRUE(ended.passed) << ended.output;
    EXPECT_EQ(ended.output.find("[  PASSED  ] 0 tests"), std::string::npos) << suite << " is gone";
  }
}

TEST(SeededBugs, WithoutOneTheSuitesPass) {
  for (const auto& [with_pmem, with_hbm] :
       {std::pair(false, false), std::pair(true, false), std::pair(false, true)}) {
    std::set<std::string> tests;
    std::string filter;
    for (const Case& c : kCases) {
      if (c.with_pmem != with_pmem || c.with_hbm != with_hbm) continue;
      if (!tests.insert(c.test).second) continue;
      filter += (filter.empty() ? "" : ":") + std::string(c.test);
    }
    const Ended ended = RunSuites(SeededBug::kNone, filter, with_pmem, with_hbm);
    EXPECT_TRUE(ended.passed) << ended.output;
    // A name that no test has would be missed by nobody else.
    const std::string all =
        "[  PASSED  ] " + std::to_string(tests.size()) + (tests.size() == 1 ? " test." : " tests.");
    EXPECT_NE(ended.output.find(all), std::string::npos) << ended.output;
  }
}

TEST(SeededBugs, AreAllNoticed) {
  for (const Case& c : kCases) {
    const Ended ended = RunSuites(c.bug, c.test, c.with_pmem, c.with_hbm);
    EXPECT_TRUE(ended.by_difference || ended.by_check) << c.what << ", " << c.test << "\n"
                                                       << ended.output;
    std::printf("  %-28s%s by %s\n", c.what,
                ended.by_difference ? "noticed" : (ended.by_check ? "stopped" : "not noticed"),
                c.test);
  }
}

}  // namespace
}  // namespace embank::test::seeded_bugs_test
