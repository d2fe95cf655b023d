#include "tests/crash/killed_process.h"

#include <sys/prctl.h>

#include <csignal>
#include <cstdio>
#include <utility>
#include <vector>

#include "base/files/posix_file_system.h"
#include "bindings/c/handles.h"
#include "tests/crash/checkpoint_notes.h"
#include "tests/crash/replayed_steps.h"
#include "tests/support/c_api.h"
#include "tests/support/pmem_tier.h"
#include "tests/support/small_log.h"

namespace embank::test {
namespace {

constexpr uint64_t kStepsMax = 2000;  // nobody is killed as late as that

class KilledProcess {
 public:
  explicit KilledProcess(const KilledProcessOptions& options)
      : options_(options),
        notes_path_(options.directory + "/notes"),
        progress_(options.progress_fd, options.stop, options.stop_count),
        files_(MakePosixFileSystem({}), &progress_),
        steps_(options.seed),
        oracle_(options.seed, kReplayedTable, ReplayedTableOptions()) {}

  // "" never: it is killed before.
  std::string Run() {
    std::string wrong = Open();
    if (!wrong.empty()) return "open: " + wrong;
    progress_.Enter(Mark::kOpened, Mark::kStepCall);
    wrong = Find();
    if (!wrong.empty()) return "found: " + wrong;
    progress_.Tell(Mark::kCompared);
    for (uint64_t i = 0; i < kStepsMax; ++i) {
      progress_.Enter(Mark::kStep, Mark::kStepCall);
      wrong = steps_.Do(++step_, &oracle_, table_);
      if (wrong.empty() && steps_.HasCheckpoint(step_)) wrong = Checkpoint();
      if (!wrong.empty()) return "step " + std::to_string(step_) + ": " + wrong;
    }
    return "nobody has killed it";
  }

 private:
  std::string Open() {
    const std::string path = options_.directory + "/store";
    embank_store_options options = ReplayedStoreOptions(options_.seed);
    options.path = path.c_str();
    if (options_.previous) options.flags |= EMBANK_OPEN_PREVIOUS;
    embank_store* store = nullptr;
    StoreEnvironment environment;
    environment.files = &files_;
    environment.log = SmallLog();
    const std::string pmem_path = options_.directory + "/pmem";
    if (WithPmem()) {
      AddPmem(&environment);
      options.pmem_path = pmem_path.c_str();
      options.pmem_bytes = kPmemBytes;
    }
    const Status opened = OpenStoreIn(&options, std::move(environment), &store);
    store_.reset(store);
    return opened.ok() ? "" : opened.ToString();
  }

  // Which checkpoint is there, and whether the rows are its.
  std::string Find() {
    uint64_t bytes = 0;
    const embank_status status = embank_checkpoint_blob(store_.get(), nullptr, 0, &bytes);
    if (status == EMBANK_NOT_FOUND) {
      const embank_table_options options = ReplayedTableOptions();
      if (embank_table_create(store_.get(), kReplayedTable, &options, &table_) != EMBANK_OK) {
        return embank_last_error();
      }
      AddNote(notes_path_, {.what = 'f'});
      return "";
    }
    std::vector<uint64_t> blob(bytes / sizeof(uint64_t));
    if (embank_checkpoint_blob(store_.get(), blob.data(), bytes, &bytes) != EMBANK_OK ||
        embank_table_open(store_.get(), kReplayedTable, &table_) != EMBANK_OK) {
      return embank_last_error();
    }
    if (blob.size() < 2 || blob != steps_.Blob(blob[0], blob[1])) return "another blob";
    sequence_ = blob[0];
    while (step_ < blob[1]) steps_.Do(++step_, &oracle_, nullptr);
    const std::string wrong = DifferenceButHeat(table_, oracle_);
    if (wrong.empty()) AddNote(notes_path_, {.what = 'f', .sequence = sequence_, .step = step_});
    return wrong;
  }

  std::string Checkpoint() {
    const std::vector<uint64_t> blob = steps_.Blob(sequence_ + 1, step_);
    progress_.Enter(Mark::kCheckpoint, Mark::kCheckpointCall);
    uint64_t sequence = 0;
    const embank_status status =
        embank_checkpoint(store_.get(), blob.data(), blob.size() * sizeof blob[0], &sequence);
    if (status != EMBANK_OK) return std::string("checkpoint: ") + embank_last_error();
    if (sequence != ++sequence_) return "checkpoint " + std::to_string(sequence);
    embank_table_info info = {};
    info.struct_size = sizeof info;
    if (embank_table_get_info(table_, &info) != EMBANK_OK) return embank_last_error();
    AddNote(notes_path_,
            {.what = 'm', .sequence = sequence_, .step = step_, .rows_in_log = info.rows_ssd});
    progress_.Enter(Mark::kNoted, Mark::kStepCall);
    return "";
  }

  const KilledProcessOptions options_;
  const std::string notes_path_;
  Progress progress_;
  ProgressFileSystem files_;
  const ReplayedSteps steps_;
  oracle::Table oracle_;
  uint64_t sequence_ = 0;
  uint64_t step_ = 0;
  StorePtr store_;
  embank_table* table_ = nullptr;
};

}  // namespace

int RunUntilKilled(const KilledProcessOptions& options) {
  // It does not outlive a test that has been stopped.
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const std::string wrong = KilledProcess(options).Run();
  std::fprintf(stderr, "the process to be killed: %s\n", wrong.c_str());
  return EXIT_FAILURE;
}

}  // namespace embank::test
