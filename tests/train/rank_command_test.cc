// embank-train on several ranks: threads of one process, and processes under mpirun.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "base/str_cat.h"
#include "tests/support/environment.h"
#include "tests/support/random.h"
#include "tests/support/scratch_directory.h"
#include "tests/train/mpi_job.h"
#include "tests/train/train_program.h"
#include "tests/train/trained_rows.h"

namespace embank::test::rank_command_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr const char* kModel =
    "--generate criteo-kaggle --divisor 3000 --batch 100 --dim 4 --model wide-deep "
    "--micro-batches 2 ";
const std::string kData = StrCat(kModel, "--samples 12000 ");
// Few rows, which are large and so fill all tiers in 300 steps.
const std::string kTieredData =
    "--generate criteo-kaggle --divisor 300 --field-divisor 6 --samples 30000 --batch 100 "
    "--model ffnn --dim 320 ";

class Trainings {
 protected:
  // Trains with these options, and returns the dense parameters.
  std::string WeightsOf(const std::string& options, uint32_t mpi_ranks = 0,
                        const std::string& data = kData) const {
    const std::string weights = directory_.path() + "/weights";
    const std::string words = StrCat(data, options, " --weights ", weights);
    const Ended ended = mpi_ranks == 0
                            ? Train(words)
                            : RunMpiJob(mpi_ranks, StrCat(std::getenv("EMBANK_TRAIN"), " ", words));
    EXPECT_EQ(ended.exit_code, 0) << ended.output;
    return TextIn(weights);
  }
  std::string Path(const std::string& name) const {
    return StrCat("--path ", directory_.path(), "/", name);
  }

  const ScratchDirectory directory_;
};

class RankCommand : public testing::Test, protected Trainings {};
class MpiCommand : public MpiTest, protected Trainings {};

TEST_F(RankCommand, HasTheWeightsOfOneRank) {
  const std::string one = WeightsOf("");
  EXPECT_GT(one.size(), 1000u);
  for (const uint32_t ranks : {2, 4}) {
    EXPECT_EQ(WeightsOf(StrCat("--ranks ", ranks, " --replicate C3")), one) << ranks;
  }
}

// Rows and gradients that are rounded, and sums of sums, have nearly the losses of one rank. Bags
// of one id have the same bits.
TEST_F(RankCommand, CodecsTrainNearlyTheSame) {
  const std::string json = directory_.path() + "/json";
  const std::string data = StrCat(
      "--generate product-3 --field-divisor 8 --divisor 2000 --samples 6000 --batch 100 "
      "--model wide-deep --json ",
      json, " ");
  const std::string one = WeightsOf("", 0, data);
  const double loss = NumberOf(TextIn(json), "logloss");
  for (const char* const codec : {"--wire-type f16", "--pool-at-owner bag84 id3",
                                  "--wire-type f16 --pool-at-owner bag84 --replicate id1"}) {
    const std::string options = StrCat("--ranks 2 ", codec);
    const std::string weights = WeightsOf(options, 0, data);
    EXPECT_NE(weights, one) << codec << " was not used";
    EXPECT_NEAR(NumberOf(TextIn(json), "logloss"), loss, 1e-3 * loss) << codec;
    EXPECT_EQ(WeightsOf(options, 0, data), weights) << codec;
  }
  EXPECT_EQ(WeightsOf("--ranks 4 --pool-at-owner id1 id3", 0, data), one);
}

// A rank has rows of other owners in replicated tables alone: a start without them, or with more,
// would train rows that nobody has updated.
TEST_F(RankCommand, AReplicatedTableStaysSo) {
  const std::string whole = WeightsOf("");
  const std::string job =
      Path("job") + " --dram-mib 48 --eval-samples 500 --eval-every 5 --ranks 2 ";
  WeightsOf(job + "--steps 7 --replicate C3");
  const Ended other = Train(StrCat(kData, job, "--resume --replicate C4"));
  EXPECT_NE(other.exit_code, 0);
  EXPECT_THAT(other.output, HasSubstr("on all ranks: \"C3\"; this start asks for: \"C4\""));
  EXPECT_EQ(WeightsOf(job + "--resume"), whole);
}

TEST_F(MpiCommand, HasTheWeightsOfOneRank) {
  const std::string one = WeightsOf("");
  for (const uint32_t ranks : {1, 2, 4}) {
    EXPECT_EQ(WeightsOf("--replicate C3", ranks), one) << ranks;
  }
}

// Also of several, each with lookups ahead of updates.
TEST_F(MpiCommand, StaleRowsHaveTheBitsOfOneRank) {
  const std::string fresh = WeightsOf("");
  const std::string stale = "--staleness 4 --deterministic --warmup-steps 10 ";
  const std::string one = WeightsOf(stale);
  EXPECT_TRUE(one != fresh);
  EXPECT_TRUE(WeightsOf(stale + "--replicate C3", 2) == one);
  EXPECT_TRUE(WeightsOf(stale + "--ranks 4") == one);
}

// The part of a report behind a name.
std::string Behind(const std::string& name, const std::string& json) {
  const size_t at = json.find(name);
  return at == std::string::npos ? "" : json.substr(at);
}

// Losses, weights, rows and states.
TEST_F(MpiCommand, HasTheBitsOfOneRankWithAllTiers) {
  const std::string at = directory_.path() + "/";
  const auto files = [&](const std::string& name) {
    return StrCat("--path ", at, name, " --json ", at, name, ".json --weights ", at, name, ".w ");
  };
  ASSERT_EQ(Train(kTieredData + files("one")).exit_code, 0);
  const std::map<std::string, TableRows> one = TablesIn(at + "one");
  EXPECT_EQ(one.size(), 5u) << "4 id features, and dense parameters";
  for (const uint32_t ranks : {1, 2, 4}) {
    SCOPED_TRACE(ranks);
    const std::string name = StrCat(ranks);
    const Ended ended = RunMpiJob(
        ranks, StrCat(std::getenv("EMBANK_TRAIN"), " ", kTieredData, files(name),
                      "--threads 1 --dram-mib 16 --hbm-mib 1 --hot-warmup 20 --hot-every 10 ",
                      "--pmem-mib ", 16 / ranks, " --pmem ", at, name, ".pmem"));
    ASSERT_EQ(ended.exit_code, 0) << ended.output;
    EXPECT_TRUE(TextIn(at + name + ".w") == TextIn(at + "one.w"));
    const std::string json = TextIn(at + name + ".json");
    EXPECT_EQ(NumberOf(json, "logloss"), NumberOf(TextIn(at + "one.json"), "logloss"));
    EXPECT_GT(NumberOf(Behind("hit_ratio", json), "hbm"), 0.1);
    for (const char* const tier : {"pmem", "ssd"}) {
      EXPECT_GT(NumberOf(Behind("prefetched_rows", json), tier), 10.0) << tier;
    }
    std::map<std::string, TableRows> all;
    for (uint32_t rank = 0; rank < ranks; ++rank) {
      const std::string of_rank = ranks == 1 ? "" : StrCat("/rank-", rank);
      auto tables = TablesIn(at + name + of_rank, at + name + ".pmem" + of_rank);
      for (auto& [table, rows] : tables) all[table].merge(rows);
    }
    EXPECT_TRUE(all == one);
  }
}

TEST_F(MpiCommand, GoesOnWhereThreadsWere) {
  const std::string whole = WeightsOf("--eval-samples 1000 --eval-every 30");
  // Threads and processes have the same directories.
  const std::string options = Path("job") + " --dram-mib 48 --eval-samples 1000 --eval-every 30";
  WeightsOf(options + " --ranks 2 --steps 50 --checkpoint-every 20");
  EXPECT_EQ(WeightsOf(options + " --resume", 2), whole);
  for (const char* const rank : {"rank-0", "rank-1", "rank-0.best", "rank-1.best"}) {
    EXPECT_TRUE(std::filesystem::is_directory(StrCat(directory_.path(), "/job/", rank))) << rank;
  }
}

// The processes of a job whose command line has a word, without mpirun.
std::vector<pid_t> ProcessesWith(const std::string& word) {
  std::vector<pid_t> found;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string name = entry.path().filename().string();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    // Nothing, where the process has ended meanwhile.
    const std::string line = TextIn(entry.path() / "cmdline");
    const std::string program = std::filesystem::path(line.c_str()).filename().string();
    if (program == "embank-train" && line.find(word) != std::string::npos) {
      found.push_back(std::stoi(name));
    }
  }
  return found;
}

// Waits until a process has worked so long, or has ended.
void WaitForWork(pid_t process, double seconds) {
  while (true) {
    const double worked = UserSeconds(process);
    if (worked < 0.0 || worked >= seconds) return;
    std::this_thread::yield();
  }
}

// The number of the newest checkpoint in a directory; 0: there is none.
uint64_t NewestCheckpoint(const std::string& path) {
  uint64_t newest = 0;
  std::error_code error;
  std::filesystem::directory_iterator entry(path, error);
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (!name.starts_with("MANIFEST-")) continue;
    newest = std::max<uint64_t>(newest, std::stoull(name.substr(9), nullptr, 16));
  }
  return newest;
}

// Each job is killed when one of its ranks has made none, one or two checkpoints more, and the next
// one goes on.
TEST_F(MpiCommand, AKilledRankEndsTheJobAndTheNextStartGoesOn) {
  const std::string whole = WeightsOf("--ranks 2 " + Path("whole"));
  const std::string path = directory_.path() + "/killed";
  const std::string weights = directory_.path() + "/killed.weights";
  const std::string command =
      StrCat(std::getenv("EMBANK_TRAIN"), " ", kData, " --resume --checkpoint-every 3 --path ",
             path, " --weights ", weights);
  const uint64_t kills_wanted = 3 * TestScale();
  Random random(2);
  for (uint64_t kills = 0; kills < kills_wanted; ++kills) {
    const std::string watched = StrCat(path, "/rank-", random.Below(2));
    const uint64_t former = NewestCheckpoint(watched);
    const uint64_t wanted = former + random.Below(3);
    Ended ended;
    std::atomic<bool> has_ended{false};
    std::thread job([&] {
      ended = RunMpiJob(2, command);
      has_ended = true;
    });
    std::vector<pid_t> ranks;
    while (!has_ended && ranks.size() < 2) ranks = ProcessesWith(path);
    if (!has_ended && wanted == former)
      WaitForWork(ranks[0], static_cast<double>(random.Below(20)) * 0.01);
    while (!has_ended && NewestCheckpoint(watched) < wanted) std::this_thread::yield();
    const auto killed = std::chrono::steady_clock::now();
    if (!has_ended) kill(ranks[random.Below(2)], SIGKILL);
    job.join();
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - killed;
    ASSERT_NE(ended.exit_code, 0) << "it ended before it was killed";
    EXPECT_LT(taken.count(), 10.0) << ended.output;
  }
  const Ended last = RunMpiJob(2, command);
  EXPECT_EQ(last.exit_code, 0) << last.output;
  EXPECT_TRUE(TextIn(weights) == whole);
  for (const char* const rank : {"/rank-0", "/rank-1"}) {
    EXPECT_TRUE(TablesIn(path + rank) == TablesIn(directory_.path() + "/whole" + rank)) << rank;
  }
}

// A job that was killed while its ranks replaced their best models has no whole one.
TEST_F(RankCommand, ABestModelOfTwoStepsIsNone) {
  const std::string job =
      Path("job") + " --dram-mib 48 --eval-samples 500 --eval-every 20 --ranks 2 ";
  const std::string best = directory_.path() + "/job/rank-1.best";
  WeightsOf(job + "--steps 20");
  std::filesystem::copy(best, best + ".kept", std::filesystem::copy_options::recursive);
  WeightsOf(job + "--resume --steps 60");
  std::filesystem::remove_all(best);
  std::filesystem::rename(best + ".kept", best);
  const Ended ended = Train(StrCat(kData, job, "--resume --steps 80 --wire-type f16"));
  EXPECT_EQ(ended.exit_code, 0) << ended.output;
  EXPECT_THAT(ended.output, AllOf(HasSubstr("the ranks do not have one best model"),
                                  HasSubstr("wire type f32 -> f16")));
  const Ended again = Train(StrCat(kData, job, "--resume"));
  EXPECT_EQ(again.exit_code, 0) << again.output;
  EXPECT_THAT(again.output, HasSubstr("the best model, in "));
}

// The other ranks wait for it no longer than for a step. Without their meeting at the end they
// would wait until --rank-seconds have gone by.
TEST_F(RankCommand, AFailureAtTheEndOfOneRankIsTold) {
  const Ended ended = Train(StrCat(kData, "--ranks 2 --rank-seconds 100000 --json /dev/full"));
  EXPECT_NE(ended.exit_code, 0);
  EXPECT_THAT(ended.output, HasSubstr("rank 0: "));
  EXPECT_THAT(ended.output, HasSubstr("/dev/full"));
}

// Options that say which calls a rank makes, and data that break on one rank alone.
TEST_F(MpiCommand, ARankOfItsOwnMindIsNamed) {
  // Ranks compare the first 64 KiB when they begin.
  std::string log = CriteoLog(3000);
  WriteFile(directory_.path() + "/log.0", log);
  log.replace(log.find('\n', log.size() / 2) + 1, 2, "no");
  WriteFile(directory_.path() + "/log.1", log);
  const std::string model = " --model ffnn --dim 4 --batch 100 --broken-share 0 ";
  const struct {
    std::string options;
    const char* words;
  } cases[] = {
      {StrCat(kData, "--steps 1$OMPI_COMM_WORLD_RANK"), "rank 1 has \"--steps 11\""},
      {StrCat(kData, "--eval-samples 50$OMPI_COMM_WORLD_RANK"), "--eval-samples 501"},
      {StrCat("--data ", directory_.path(), "/log.$OMPI_COMM_WORLD_RANK", model), "\"no"},
      {StrCat("--data ", directory_.path(), "/log.$OMPI_COMM_WORLD_RANK --staleness 4", model),
       "\"no"},
      // The line is in the first batch after an evaluation, when no step is under way.
      {StrCat("--data ", directory_.path(), "/log.$OMPI_COMM_WORLD_RANK --staleness 4 --eval ",
              directory_.path(), "/log.0 --eval-every 15", model),
       "\"no"}};
  for (const auto& [options, words] : cases) {
    const Ended ended = RunMpiJob(
        2, StrCat("sh -c '", std::getenv("EMBANK_TRAIN"), " ", options, " --rank-seconds 50'"));
    EXPECT_NE(ended.exit_code, 0) << options;
    EXPECT_THAT(ended.output, HasSubstr(words)) << options;
  }
}

TEST_F(RankCommand, ASignalEndsAllRanksInOneCheckpoint) {
  const std::string path = directory_.path() + "/stopped";
  Ended ended;
  std::atomic<bool> has_ended{false};
  std::thread job([&] {
    ended = Train(StrCat(kModel, "--ranks 2 --samples 100000000 --path ", path));
    has_ended = true;
  });
  while (!has_ended && !std::filesystem::exists(path + "/rank-1")) std::this_thread::yield();
  for (const pid_t process : ProcessesWith(path)) {
    while (!has_ended && !CatchesSignals(process)) std::this_thread::yield();
    WaitForWork(process, UserSeconds(process) + 0.1);
    kill(process, SIGTERM);
  }
  job.join();
  EXPECT_EQ(ended.exit_code, 0) << ended.output;
  EXPECT_THAT(ended.output, AllOf(HasSubstr("stopped by SIGTERM"), HasSubstr("of 2 ranks")));
  const size_t at = ended.output.find(" ranks, at step ");
  ASSERT_NE(at, std::string::npos) << ended.output;
  const int step = std::stoi(ended.output.substr(at + 16));
  const std::string options = StrCat(kModel, "--samples 100000000 --steps ", step + 5);
  const std::string json = directory_.path() + "/json";
  const Ended whole = Train(StrCat(options, " --json ", json));
  EXPECT_EQ(whole.exit_code, 0) << whole.output;
  const double weights = NumberOf(TextIn(json), "weights_crc32c");
  const Ended again = Train(StrCat(options, " --json ", json, " --ranks 2 --resume --path ", path));
  EXPECT_EQ(again.exit_code, 0) << again.output;
  EXPECT_EQ(NumberOf(TextIn(json), "weights_crc32c"), weights);
  EXPECT_EQ(NumberOf(TextIn(json), "ranks"), 2);
}

TEST_F(RankCommand, WrongInputsAreNamed) {
  WeightsOf(Path("one") + " --steps 2");
  WeightsOf(Path("two") + " --ranks 2 --steps 2");
  const struct {
    const char* options;
    std::string directory;
    std::vector<std::string> words;
  } cases[] = {
      {"--ranks 0", "", {"--ranks is 0", "1 to 256"}},
      {"--ranks 257", "", {"--ranks is 257", "1 to 256"}},
      {"--ranks 3", "", {"slices is 8", "3 ranks", "power of two"}},
      {"--ranks 16", "", {"slices is 8", "16 ranks"}},
      {"--ranks 2 --slices 6", "", {"slices is 6", "power of two"}},
      {"--ranks 2 --ablation", "", {"--ablation"}},
      {"--ranks 2 --replicate C99", "", {"\"C99\""}},
      {"--ranks 2 --pool-at-owner C99", "", {"--pool-at-owner: ", "\"C99\""}},
      {"--ranks 2 --replicate C3 --pool-at-owner C3", "", {"--pool-at-owner: ", "is replicated"}},
      {"--ranks 2 --rank-seconds 0", "", {"--rank-seconds is 0", "1 to 604800"}},
      {"--ranks 2 --wire-type bf16", "", {"--wire-type is bf16", "f32", "f16"}},
      {"--ranks 2 --resume --replicate C3", "two", {"--replicate: ", "none", "\"C3\""}},
      {"--ranks 2", "one", {"has the model of one rank", "embank reshard"}},
      {"--ranks 2 --resume", "one", {"has the model of one rank", "embank reshard"}},
      {"--ranks 4 --resume", "two", {"a job of 2 ranks", "has 4", "embank reshard"}},
      {"--ranks 2", "two", {"has a checkpoint of step 2", "--resume"}},
      {"--resume", "two", {"directories of several ranks", "embank reshard"}},
      {"", "two", {"directories of several ranks", "embank reshard"}},
      {"--resume", "two/rank-1", {"rank 1 of 2 alone"}},
  };
  for (const auto& one : cases) {
    const std::string path = one.directory.empty() ? "" : " " + Path(one.directory);
    const Ended ended = Train(StrCat(kData, one.options, path));
    EXPECT_NE(ended.exit_code, 0) << one.options << path;
    for (const std::string& word : one.words) {
      EXPECT_THAT(ended.output, HasSubstr(word)) << one.options << path;
    }
    EXPECT_EQ(CountOf(ended.output, "embank-train: "), 1u) << ended.output;
  }
  const Ended large = Train("--generate criteo-kaggle --ranks 2 --batch 131074 --pool-at-owner C3");
  EXPECT_THAT(large.output, AllOf(HasSubstr("--batch: "), HasSubstr("65540 samples of it")));
  const Ended piped = Train("--data - --ranks 2 < /dev/null");
  EXPECT_THAT(piped.output, HasSubstr("--ranks: a pipe or standard input"));
}

TEST_F(MpiCommand, RanksAreMpiruns) {
  const Ended both = RunMpiJob(2, StrCat(std::getenv("EMBANK_TRAIN"), " ", kData, "--ranks 2"));
  EXPECT_NE(both.exit_code, 0);
  EXPECT_THAT(both.output, HasSubstr("mpirun says how many"));
}

// The last rank has other options than those before it, and all end with one message.
TEST_F(MpiCommand, WrongInputsAreNamed) {
  const std::string rows = kTieredData + "--dram-mib 16 ";
  const std::string full = rows + Path("full") + " --checkpoint-every 20 ";
  const struct {
    uint32_t ranks;
    std::string options;
    std::string of_last;
    std::vector<std::string> words;
  } cases[] = {
      {3, kData, kData, {"slices is 8", "3 ranks", "power of two"}},
      {2, kData, "--generate avazu --batch 100 --dim 4", {"rank 1 has", "avazu", "and rank 0"}},
      {2, kData, kData + "--seed 5", {"rank 1 has \"seed 5\"", "rank 0 \"seed 1\""}},
      {2, kTieredData, rows, {"rank 1: ", "no space", "dram_bytes"}},
      {2, full, full + "--ssd-mib 10", {"rank 1: ", "no space", "ssd_bytes"}},
  };
  const std::string program = std::getenv("EMBANK_TRAIN");
  for (const auto& one : cases) {
    // The mpirun of Debian 13 does not survive a command of two programs.
    const Ended ended =
        RunMpiJob(one.ranks, StrCat("sh -c 'if [ $OMPI_COMM_WORLD_RANK -lt ", one.ranks - 1,
                                    " ]; then exec ", program, " ", one.options, "; else exec ",
                                    program, " ", one.of_last, "; fi'"));
    EXPECT_NE(ended.exit_code, 0) << one.of_last;
    for (const std::string& word : one.words) {
      EXPECT_THAT(ended.output, HasSubstr(word)) << one.of_last;
    }
    EXPECT_EQ(CountOf(ended.output, "embank-train: "), 1u) << ended.output;
  }
  const std::string weights = directory_.path() + "/weights";
  const Ended whole = Train(StrCat(kTieredData, "--steps 60 --weights ", weights));
  EXPECT_EQ(whole.exit_code, 0) << whole.output;
  const std::string expected = TextIn(weights);
  const Ended more =
      RunMpiJob(2, StrCat(program, " ", full, "--resume --steps 60 --weights ", weights));
  EXPECT_EQ(more.exit_code, 0) << more.output;
  EXPECT_THAT(more.output, HasSubstr("goes on behind step 40\n"));
  EXPECT_TRUE(TextIn(weights) == expected);
}

// The program alone, without the module beside it.
TEST_F(RankCommand, AMissingModuleIsNamed) {
  const std::string program = directory_.path() + "/embank-train";
  std::filesystem::copy_file(std::getenv("EMBANK_TRAIN"), program);
  setenv("EMBANK_LONE_TRAIN", ("OMPI_COMM_WORLD_SIZE=2 " + program).c_str(), 1);
  const Ended ended = RunProgram("EMBANK_LONE_TRAIN", kData);
  EXPECT_EQ(ended.exit_code, 1);
  EXPECT_THAT(ended.output, AllOf(HasSubstr("MPI needs libembank_mpi.so"),
                                  HasSubstr("libopenmpi-dev"), HasSubstr("openmpi-bin")));
}

// Ranks whose files differ would not make the same steps.
TEST_F(RankCommand, ADirectoryThatIsMissingIsNamed) {
  WeightsOf(Path("job") + " --ranks 2 --steps 3");
  std::filesystem::remove_all(directory_.path() + "/job/rank-1");
  const Ended ended = Train(StrCat(kData, Path("job"), " --ranks 2 --resume"));
  EXPECT_THAT(ended.output, HasSubstr("rank 1 has no checkpoint, and rank 0 one of step 3"));
}

}  // namespace
}  // namespace embank::test::rank_command_test
