// One seed of the random operations suite: the same steps on a store and on its oracle, compared
// bit for bit after each.
#ifndef EMBANK_TESTS_BINDINGS_RANDOM_RUN_H_
#define EMBANK_TESTS_BINDINGS_RANDOM_RUN_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tests/bindings/kept_checkpoint.h"
#include "tests/bindings/random_plan.h"
#include "tests/bindings/tracked_scan.h"
#include "tests/support/c_api.h"
#include "tests/support/events.h"
#include "tests/support/random.h"
#include "tests/support/row_buffer.h"
#include "tests/support/simulated_disk.h"

namespace embank::test {

// A plan for crashes that has run: the closed store's disk, and its checkpoints in their order, of
// which the first is none.
struct CrashedWorkload {
  Plan plan;
  std::unique_ptr<SimulatedDisk> disk;
  std::vector<std::shared_ptr<const KeptCheckpoint>> checkpoints;
};

// Events: how many rows' operations there were, each key of a batch one of its own.
inline constexpr const char* kOperationsOnDisk = "operations of stores on disk";
inline constexpr const char* kOperationsInMemory = "operations of stores in memory";

class RandomRun {
 public:
  RandomRun(const Plan& plan, Events* events);

  // Runs all steps. "" or the first difference in words, with the step and the verb.
  std::string Run();
  // Once, after Run, of a plan for crashes.
  CrashedWorkload TakeWorkload();

  // The events that a whole suite must have met.
  static void ExpectAll(Events* events);

 private:
  struct LiveTable {
    embank_table* table = nullptr;
    std::unique_ptr<oracle::Table> oracle;
    std::unique_ptr<TrackedScan> scan;
  };
  // Outcomes of the store and of the oracle for one batch, or the choice to ask for none.
  struct Outcomes {
    std::vector<uint8_t> store;
    std::vector<uint8_t> oracle;
    bool asked = true;
    uint8_t* store_pointer() { return asked ? store.data() : nullptr; }
    uint8_t* oracle_pointer() { return asked ? oracle.data() : nullptr; }
  };

  std::string Step(LiveTable* live, Verb verb);
  std::string Lookup(LiveTable* live);
  std::string Upsert(LiveTable* live);
  std::string UpsertFull(LiveTable* live);
  std::string Gradients(LiveTable* live);
  std::string BadGradients(LiveTable* live);
  std::string Erase(LiveTable* live);
  std::string Contains(LiveTable* live);
  std::string Prefetch(LiveTable* live);
  std::string GetState(LiveTable* live);
  std::string SetState(LiveTable* live);
  std::string GetHeat(LiveTable* live);
  std::string Scan(LiveTable* live);
  std::string ScanFull(LiveTable* live);
  std::string OpenTrackedScan(LiveTable* live);
  std::string ContinueScan(LiveTable* live);
  std::string DropAndCreate(LiveTable* live);
  std::string CompareAll();
  std::string HitsDifference();
  std::string Compare(const LiveTable& live);
  embank_status ApplyGradients(const LiveTable& live, const std::vector<uint64_t>& keys,
                               const RowBuffer& gradients, Outcomes* outcomes);
  // Whether a call of the verb has its rows in device memory: with such a tier, one of three.
  bool DrawsDevice(const char* verb);

  // random_options.cc
  std::string LearningRate(LiveTable* live);
  std::string SetOptions(LiveTable* live);

  // random_reopen.cc
  std::string Open(uint32_t flags);
  std::string Checkpoint();
  std::string StartCheckpoint();
  std::string FinishCheckpoint();
  std::shared_ptr<KeptCheckpoint> CheckpointOfNow();
  void Keep(const std::shared_ptr<KeptCheckpoint>& checkpoint);
  void KeepStarted();
  void CountLog();
  void CountHotRows();
  void FollowEarlyEpochs(const LiveTable& live);
  std::string FlushHot();
  std::string Reopen();
  void CloseStore();
  std::string ReadOnly(bool previous);
  std::string FindTables(bool previous);

  std::string CreateRandomTable(LiveTable* live);
  std::vector<uint64_t> Keys(uint64_t row_elements);
  Outcomes MakeOutcomes(uint64_t n, bool always);
  RowBuffer Buffer(uint64_t n, uint64_t row_bytes);
  RowBuffer RandomGradients(const LiveTable& live, uint64_t n);
  RowBuffer RandomRows(const LiveTable& live, uint64_t n);
  RowBuffer RandomStates(const LiveTable& live, uint64_t n);
  void CountOutcomes(const std::string& verb, const Outcomes& outcomes);

  const Plan plan_;
  Events* const events_;
  Random random_;
  Random device_random_;                 // so that the steps are those of a run without such a tier
  std::unique_ptr<SimulatedDisk> disk_;  // of a plan on disk
  size_t durable_changes_ = 0;           // of the disk, when the last checkpoint was done
  // The checkpoints that can be opened, at most two; of a plan for crashes, all that were made.
  std::vector<std::shared_ptr<const KeptCheckpoint>> kept_;
  std::shared_ptr<const KeptCheckpoint> base_;  // of them the one that was opened or made last
  // The checkpoint that is started and not finished, or nullptr; and whether kept_ has it, because
  // it has ended.
  std::shared_ptr<KeptCheckpoint> started_;
  bool started_is_kept_ = false;
  StorePtr store_;
  oracle::HeatClock heat_clock_;
  std::vector<LiveTable> tables_;
  uint64_t tables_made_ = 0;
  uint64_t reopenings_ = 0;
};

}  // namespace embank::test

#endif  // EMBANK_TESTS_BINDINGS_RANDOM_RUN_H_
