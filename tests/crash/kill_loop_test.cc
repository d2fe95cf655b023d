// A process that is killed at any moment, again and again, on the system's own files. When it is
// started anew, it finds the last checkpoint that it noted, or the one that was under way, bit for
// bit. EMBANK_TEST_SCALE: more stores, each with a seed of its own.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "tests/crash/checkpoint_notes.h"
#include "tests/crash/killed_process.h"
#include "tests/crash/replayed_steps.h"
#include "tests/support/environment.h"
#include "tests/support/events.h"
#include "tests/support/random.h"
#include "tests/support/scratch_directory.h"

namespace embank::test::kill_loop_test {
namespace {

constexpr const char* kOpening = "killed while it opened the store";
constexpr const char* kStopped = "killed where it stopped";
constexpr const char* kInFlight = "killed in flight";

// The moment of a kill: the count-th mark of a kind since the process began. It stops there and
// waits; or goes on, and is met a little later.
struct Kill {
  Mark mark;
  uint64_t count;
  bool stops;
  bool opens_previous = false;
};

// Starts this program as the process to be killed; its marks come through *marks_fd.
pid_t Start(const std::string& directory, uint64_t seed, const Kill& kill, int* marks_fd) {
  int ends[2];
  EXPECT_EQ(pipe(ends), 0);
  const std::string seed_text = std::to_string(seed);
  const std::string fd_text = std::to_string(ends[1]);
  const std::string mark_text(1, static_cast<char>(kill.mark));
  const std::string count_text = std::to_string(kill.stops ? kill.count : 0);
  const pid_t pid = fork();
  if (pid == 0) {
    close(ends[0]);
    execl("/proc/self/exe", "kill_loop_test", "--to-be-killed", directory.c_str(),
          seed_text.c_str(), fd_text.c_str(), mark_text.c_str(), count_text.c_str(),
          kill.opens_previous ? "previous" : "newest", nullptr);
    _exit(127);
  }
  close(ends[1]);
  *marks_fd = ends[0];
  return pid;
}

// Kills it when the mark is met; all marks that it made, or "" if it ended by itself.
std::string RunAndKill(const std::string& directory, uint64_t seed, const Kill& target) {
  int marks_fd = -1;
  const pid_t pid = Start(directory, seed, target, &marks_fd);
  std::string marks;
  uint64_t count = 0;
  bool killed = false;
  std::array<char, 64> part;
  for (ssize_t n; (n = read(marks_fd, part.data(), part.size())) > 0;) {
    for (const char mark : std::string_view(part.data(), static_cast<size_t>(n))) {
      marks += mark;
      // An opening may take fewer calls than that.
      const bool too_late = target.mark == Mark::kOpeningCall && mark == char(Mark::kOpened);
      if (mark == char(target.mark)) ++count;
      if (killed || (count < target.count && !too_late)) continue;
      kill(pid, SIGKILL);
      killed = true;
    }
  }
  close(marks_fd);
  int status = 0;
  waitpid(pid, &status, 0);
  const bool is_right = killed && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
  EXPECT_TRUE(is_right) << "it ended with status " << status << " after " << marks.size()
                        << " marks";
  return is_right ? marks : "";
}

// Where the process was when it was killed.
const char* PlaceOf(const std::string& marks) {
  const auto last = [&](Mark mark) { return marks.rfind(char(mark)) + 1; };  // 0: never
  if (last(Mark::kOpened) == 0) return kOpening;
  if (last(Mark::kCompared) == 0) return "killed while rows were compared";
  const size_t began = last(Mark::kCheckpoint);
  if (began > last(Mark::kNoted)) {
    return last(Mark::kRenamed) > began ? "killed in a checkpoint, behind its rename"
                                        : "killed in a checkpoint, before its rename";
  }
  return "killed between checkpoints";
}

// The notes must be consistent with each other.
class NotesReader {
 public:
  NotesReader(std::string path, uint64_t seed) : path_(std::move(path)), steps_(seed) {}

  // Checks the notes since the last call.
  void Check(Events* events) {
    const std::vector<CheckpointNote> notes = ReadNotes(path_);
    ASSERT_GE(notes.size(), read_);
    for (; read_ < notes.size(); ++read_) {
      const CheckpointNote& note = notes[read_];
      const bool is_last = note.sequence == last_.sequence && note.step == last_.step;
      const bool is_next =
          note.sequence == last_.sequence + 1 && note.step == steps_.NextCheckpoint(last_.step);
      const bool found = note.what == 'f';
      ASSERT_TRUE(is_next || (found && is_last))
          << (found ? "found" : "made") << " checkpoint " << note.sequence << " of step "
          << note.step << " behind " << last_.sequence << " of step " << last_.step;
      if (is_next) previous_ = last_;
      last_ = note;
      if (note.rows_in_log > 0) events->Count("checkpoints of more rows than in memory");
      if (!found) events->Count("checkpoints made");
      if (!found) continue;
      events->Count(note.sequence == 0 ? "opened without a checkpoint"
                    : is_last          ? "opened at the last checkpoint"
                                       : "opened at the one under way");
    }
  }
  const CheckpointNote& last() const { return last_; }
  // The checkpoint before the last.
  const CheckpointNote& previous() const { return previous_; }

 private:
  const std::string path_;
  const ReplayedSteps steps_;
  size_t read_ = 0;
  CheckpointNote last_;
  CheckpointNote previous_;
};

// The first kill of a kind waits at its mark, the second is met in flight, and so on.
class KillPlan {
 public:
  explicit KillPlan(uint64_t seed) : random_(seed) {}

  Kill Next(Mark mark) {
    Kill kill = {mark, 1, ++kills_[mark] % 2 == 1};
    if (mark == Mark::kStep) kill.count = random_.Between(5, 30);
    if (mark == Mark::kCheckpointCall) kill.count = random_.Between(1, 40);
    const bool renames = mark == Mark::kRenaming || mark == Mark::kRenamed;
    if (renames) kill.count = random_.Between(1, 3);
    if (mark == Mark::kOpeningCall) {
      // No opening takes fewer calls than ten: where it stops, it is not open yet.
      const bool is_early = kill.stops || random_.OneIn(2);
      kill.count = is_early ? random_.Between(1, 10) : random_.Between(11, 80);
    }
    return kill;
  }

 private:
  Random random_;
  std::map<Mark, int> kills_;
};

// Openings are killed up to three times in a row.
constexpr Mark kKills[] = {
    Mark::kStep,        Mark::kCheckpointCall, Mark::kOpeningCall, Mark::kRenamed,
    Mark::kOpeningCall, Mark::kOpeningCall,    Mark::kOpeningCall, Mark::kCheckpointCall,
    Mark::kRenaming,    Mark::kRenamed,        Mark::kOpeningCall, Mark::kStep,
};

// One store, and a further one for each so much of the scale.
#if defined(__SANITIZE_ADDRESS__)
constexpr uint64_t kScalePerStore = 5;
#else
constexpr uint64_t kScalePerStore = 2;
#endif

void KillAgainAndAgain(uint64_t seed, Events* events) {
  const ScratchDirectory directory;
  NotesReader notes(directory.path() + "/notes", seed);
  KillPlan plan(seed);
  for (const Mark mark : kKills) {
    const Kill kill = plan.Next(mark);
    SCOPED_TRACE("seed " + std::to_string(seed) + ", mark " + char(kill.mark) + " " +
                 std::to_string(kill.count));
    const std::string marks = RunAndKill(directory.path(), seed, kill);
    ASSERT_NE(marks, "");
    events->Count(PlaceOf(marks));
    events->Count(kill.stops ? kStopped : kInFlight);
    ASSERT_NO_FATAL_FAILURE(notes.Check(events));
  }
  ASSERT_NE(RunAndKill(directory.path(), seed, {Mark::kCompared, 1, true}), "");
  ASSERT_NO_FATAL_FAILURE(notes.Check(events));
  EXPECT_GT(notes.last().step, 20u);
  ASSERT_NE(RunAndKill(directory.path(), seed, {Mark::kCompared, 1, true, true}), "");
  const CheckpointNote found = ReadNotes(directory.path() + "/notes").back();
  EXPECT_EQ(found.sequence, notes.previous().sequence);
  EXPECT_EQ(found.step, notes.previous().step);
}

TEST(KillLoop, TheLastCheckpointOrTheOneUnderWayIsThereBitForBit) {
  Events events;
  for (const char* const name :
       {kOpening, "killed in a checkpoint, behind its rename",
        "killed in a checkpoint, before its rename", "killed between checkpoints", kStopped,
        kInFlight, "opened without a checkpoint", "opened at the last checkpoint",
        "opened at the one under way", "checkpoints made",
        "checkpoints of more rows than in memory"}) {
    events.Expect(name);
  }
  const uint64_t stores = 1 + TestScale() / kScalePerStore;
  for (uint64_t i = 0; i < stores; ++i) {
    ASSERT_NO_FATAL_FAILURE(KillAgainAndAgain(FirstSeed() + i, &events));
  }
  const uint64_t kills = events.Times(kStopped) + events.Times(kInFlight);
  std::printf("%squantities: %llu kills of a process, %llu of them while it opened its store\n",
              events.Table().c_str(), static_cast<unsigned long long>(kills),
              static_cast<unsigned long long>(events.Times(kOpening)));
  EXPECT_EQ(kills, stores * std::size(kKills));
  EXPECT_EQ(events.Missing(), "");
}

}  // namespace
}  // namespace embank::test::kill_loop_test

int main(int argc, char** argv) {
  if (argc == 8 && std::strcmp(argv[1], "--to-be-killed") == 0) {
    return embank::test::RunUntilKilled({.directory = argv[2],
                                         .seed = std::strtoull(argv[3], nullptr, 10),
                                         .previous = std::strcmp(argv[7], "previous") == 0,
                                         .progress_fd = std::atoi(argv[4]),
                                         .stop = static_cast<embank::test::Mark>(argv[5][0]),
                                         .stop_count = std::strtoull(argv[6], nullptr, 10)});
  }
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
