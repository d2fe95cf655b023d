// `embank reshard` from the outside: which checkpoints of which directories it takes, what it
// refuses, and what an interrupted one leaves.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "base/files/posix_file_system.h"
#include "base/hash.h"
#include "base/str_cat.h"
#include "store/batch/write.h"
#include "store/inspect/verify.h"
#include "store/scan/scan.h"
#include "store/store.h"
#include "tests/support/files_below.h"
#include "tests/support/program.h"
#include "tests/support/random.h"
#include "tests/support/scratch_directory.h"

namespace embank::test::reshard_command_test {
namespace {

using testing::HasSubstr;

constexpr uint64_t kJob = 77;
constexpr uint32_t kRowDim = 4;
constexpr const char* kDense = "dense parameters";

std::string Blob(uint32_t rank, uint32_t ranks, uint64_t steps, uint64_t job = kJob,
                 uint32_t slices = 8, const std::string& data = "a log") {
  const std::string of_rank =
      ranks == 1 ? "" : StrCat("rank ", rank, " of ", ranks, "\njob ", job, "\nstart ", job, "\n");
  return StrCat("embank-train 2\nsteps ", steps, "\nposition 4000\nsteps of other data 0\n",
                of_rank, "batch 100\ndata ", data, "\nmodel ffnn\nslices ", slices,
                "\nid features 1\nid feature rank 3 of 4 dim 4\n");
}

std::span<const std::byte> BytesOf(const std::string& text) {
  return std::as_bytes(std::span(text));
}

ConstRowSpan RowsOf(const std::vector<float>& values) {
  return {reinterpret_cast<const std::byte*>(values.data()), kRowDim * sizeof(float)};
}

// All rows of a store and its blob.
struct Found {
  std::map<std::string, std::map<Key, std::vector<float>>> tables;
  std::string blob;
};

Found ReadStore(const std::string& directory) {
  Found found;
  const auto store = Store::Open({.path = directory, .read_only = true}, {});
  EXPECT_TRUE(store.ok()) << store.status();
  if (!store.ok()) return found;
  for (Table* const table : (*store)->catalog().List()) {
    const uint32_t dim = table->layout().dim;
    std::vector<Key> keys(1000);
    std::vector<float> values(keys.size() * dim);
    Scan scan(table);
    while (true) {
      const auto count =
          scan.Next(keys, {reinterpret_cast<std::byte*>(values.data()), dim * sizeof(float)});
      EXPECT_TRUE(count.ok()) << count.status();
      if (!count.ok() || *count == 0) break;
      for (size_t i = 0; i < *count; ++i) {
        const auto row = values.begin() + static_cast<ptrdiff_t>(i * dim);
        found.tables[table->name()][keys[i]] = {row, row + dim};
      }
    }
  }
  const auto blob = (*store)->checkpoints()->Blob();
  if (blob.ok()) found.blob.assign(reinterpret_cast<const char*>(blob->data()), blob->size());
  return found;
}

class ReshardCommand : public testing::Test {
 protected:
  static constexpr size_t kRows = 400;

  std::string In(const std::string& name) const { return scratch_.path() + "/" + name; }

  static std::unique_ptr<Store> Open(const std::string& directory, bool previous = false) {
    auto store =
        Store::Open({.worker_threads = 1, .seed = 5, .path = directory, .previous = previous}, {});
    EXPECT_TRUE(store.ok()) << store.status();
    return *std::move(store);
  }
  // Writes the rows that a rank owns, as they are after so many steps, and makes a checkpoint.
  static void Checkpoint(const std::string& directory, uint32_t rank, uint32_t ranks,
                         uint64_t steps, const std::string& blob, bool previous = false,
                         size_t rows = kRows) {
    std::filesystem::create_directories(directory);
    const auto store = Open(directory, previous);
    for (const char* name : {"id users", kDense}) {
      auto table = store->catalog().Open(name);
      if (!table.ok())
        table = store->CreateTable(name, {.dim = kRowDim, .rule = {}, .initializer = {}});
      std::vector<Key> keys(name == kDense ? size_t{3} : rows);
      std::iota(keys.begin(), keys.end(), Key{1});
      std::erase_if(keys, [&](Key key) {
        return name != kDense && OwnerOf((*table)->HashOf(key), ranks) != rank;
      });
      std::vector<float> values(keys.size() * kRowDim, static_cast<float>(steps));
      EXPECT_TRUE(Upsert(*table, keys, RowsOf(values), {}).ok());
    }
    EXPECT_TRUE(store->checkpoints()->Make(BytesOf(blob)).ok());
  }
  std::string MakeJob(const std::string& name, uint32_t ranks, uint64_t steps = 10,
                      size_t rows = kRows) {
    for (uint32_t rank = 0; rank < ranks; ++rank) {
      Checkpoint(ranks == 1 ? In(name) : StrCat(In(name), "/rank-", rank), rank, ranks, steps,
                 Blob(rank, ranks, steps), false, rows);
    }
    return In(name);
  }

  static Ended Reshard(const std::string& arguments) {
    return RunProgram("EMBANK_COMMAND", "reshard " + arguments);
  }
  void ExpectRefused(const std::string& arguments, const std::string& what) {
    const Ended ended = Reshard(arguments + " --out " + In("to"));
    EXPECT_EQ(ended.exit_code, 2) << ended.output;
    EXPECT_THAT(ended.output, HasSubstr(what));
    EXPECT_FALSE(std::filesystem::exists(In("to")));
    EXPECT_FALSE(std::filesystem::exists(In("to.unfinished")));
  }
  // The job has all rows of these steps on their owners, and the same text as before.
  static void ExpectJob(const std::string& directory, uint32_t ranks, uint64_t steps,
                        size_t rows = kRows, uint64_t job = kJob) {
    size_t users = 0;
    const auto files = MakePosixFileSystem({});
    for (uint32_t rank = 0; rank < ranks; ++rank) {
      const std::string path = ranks == 1 ? directory : StrCat(directory, "/rank-", rank);
      Found found = ReadStore(path);
      EXPECT_EQ(found.blob, Blob(rank, ranks, steps, job));
      EXPECT_EQ(found.tables[kDense].size(), 3u);
      users += found.tables["id users"].size();
      for (const auto& [name, rows_of_table] : found.tables) {
        for (const auto& [key, row] : rows_of_table) {
          ASSERT_EQ(row[3], static_cast<float>(steps)) << name << " " << key;
        }
      }
      const auto report = VerifyStore(files.get(), path, [](uint64_t, uint64_t) { return true; });
      EXPECT_TRUE(report.ok() && report->clean()) << path;
    }
    EXPECT_EQ(users, rows);
  }

  const ScratchDirectory scratch_;
};

TEST_F(ReshardCommand, MakesFourRanksIntoOneTwoThreeAndEightAndBack) {
  const std::string four = MakeJob("four", 4);
  const auto before = BytesBelow(four);
  for (const uint32_t ranks : {1, 2, 3, 8}) {
    const std::string to = In(StrCat("to", ranks));
    const std::string any = ranks == 3 ? " --any-ranks" : "";
    const Ended ended = Reshard(StrCat(four, " --to ", ranks, any, " --out ", to, "/"));
    ASSERT_EQ(ended.exit_code, 0) << ended.output;
    EXPECT_THAT(ended.output, HasSubstr("403 rows, "));
    ExpectJob(to, ranks, 10);
    ASSERT_EQ(Reshard(StrCat(to, " --to 4 --out ", to, "back")).exit_code, 0);
    const std::string blob = ReadStore(to + "back/rank-3").blob;
    EXPECT_THAT(blob, HasSubstr("rank 3 of 4\njob "));
    if (ranks > 1) ExpectJob(to + "back", 4, 10);
    EXPECT_FALSE(std::filesystem::exists(to + ".unfinished"));
  }
  EXPECT_TRUE(BytesBelow(four) == before);
}

// Without a job of its own it gets a number, which all ranks have.
TEST_F(ReshardCommand, ATrainingOfOneRankBecomesAJob) {
  const Ended ended = Reshard(MakeJob("one", 1) + " --to 8 --out " + In("to"));
  ASSERT_EQ(ended.exit_code, 0) << ended.output;
  const std::string blob = ReadStore(In("to/rank-0")).blob;
  const uint64_t job = std::stoull(blob.substr(blob.find("\njob ") + 5));
  EXPECT_GT(job, 0u);
  ExpectJob(In("to"), 8, 10, kRows, job);
}

TEST_F(ReshardCommand, TakesTheDirectoriesOfAllRanksInAnyOrder) {
  const std::string four = MakeJob("four", 4);
  std::filesystem::rename(four + "/rank-2", In("elsewhere"));
  std::filesystem::create_directory(In("to"));
  const Ended ended = Reshard(StrCat(four, "/rank-3 ", In("elsewhere"), " ", four, "/rank-0 ", four,
                                     "/rank-1 --to 2 --json --out ", In("to")));
  ASSERT_EQ(ended.exit_code, 0) << ended.output;
  const auto report = nlohmann::json::parse(ended.output);
  EXPECT_EQ(report["ranks"], 2);
  EXPECT_EQ(report["source_ranks"], 4);
  EXPECT_EQ(report["step"], 10);
  EXPECT_EQ(report["rows"], kRows + 3);
  EXPECT_EQ(report["tables"][1]["table"], kDense);
  EXPECT_EQ(report["tables"][1]["replicated"], true);
  ExpectJob(In("to"), 2, 10);
}

// Rank 1 went back to its first checkpoint, and so has other numbers than rank 0; rank 0 is one
// step ahead.
TEST_F(ReshardCommand, TakesTheNewestStepThatAllRanksHave) {
  for (uint32_t rank = 0; rank < 2; ++rank) {
    const std::string directory = In(StrCat("job/rank-", rank));
    const auto make = [&](uint64_t steps, bool previous = false) {
      Checkpoint(directory, rank, 2, steps, Blob(rank, 2, steps), previous);
    };
    make(10);
    make(20);
    if (rank == 1) make(20, /*previous=*/true);
    if (rank == 0) make(30);
  }
  const Ended ended = Reshard(In("job") + " --to 8 --out " + In("to"));
  ASSERT_EQ(ended.exit_code, 0) << ended.output;
  EXPECT_THAT(ended.output, HasSubstr("at step 20"));
  ExpectJob(In("to"), 8, 20);
}

TEST_F(ReshardCommand, AnOlderCheckpointStandsInForADamagedOne) {
  const std::string job = MakeJob("job", 2);
  for (uint32_t rank = 0; rank < 2; ++rank) {
    Checkpoint(StrCat(job, "/rank-", rank), rank, 2, 20, Blob(rank, 2, 20));
  }
  std::ofstream(job + "/rank-1/MANIFEST-00000002") << "nonsense";
  const Ended ended = Reshard(job + " --to 4 --out " + In("to"));
  ASSERT_EQ(ended.exit_code, 0) << ended.output;
  EXPECT_THAT(ended.output, HasSubstr("rank-1/MANIFEST-00000002"));
  ExpectJob(In("to"), 4, 10);
}

// ---- refused ----

TEST_F(ReshardCommand, WrongDirectoriesAreRefused) {
  std::filesystem::create_directory(In("empty"));
  ExpectRefused(In("nowhere") + " --to 2", "nowhere");
  ExpectRefused(In("empty") + " --to 2", "empty is not a store");
  Open(In("new")).reset();
  ExpectRefused(In("new") + " --to 2", "new has no checkpoint yet: train it first");
  const auto with_blob = [&](const std::string& name, const std::string& blob) {
    Checkpoint(In(name), 0, 1, 10, blob);
    return In(name) + " --to 2";
  };
  const std::string text = Blob(0, 2, 10);
  const auto without = [&](const std::string& line) {
    std::string rest = text;
    return rest.erase(rest.find(line), line.size());
  };
  for (const auto& [name, blob, what] : std::vector<std::array<std::string, 3>>{
           {"a", "a blob", "a: the store is of no training: its checkpoint has another blob"},
           {"b", "", "b: the store is of no training"},
           {"c", "embank-train 3\n", "has version 3, and this program knows 2"},
           {"d", "embank-train 1\n", "let embank-train make a new checkpoint"},
           {"e", without("steps 10\n"), "lacks the line \"steps \""},
           {"f", without("slices 8\n"), "lacks the line \"slices \""},
           {"g", without("job 77\n"), "lacks the line \"job \""},
           {"h", without("rank 0 of 2\n"), "lacks the line \"rank \""},
           {"i", without("steps of other data 0\n"), "lacks the line \"steps of other data \""},
           {"j", Blob(2, 2, 10), "lacks the line \"rank R of W\""}}) {
    const Ended ended = Reshard(with_blob(name, blob) + " --out " + In("to"));
    EXPECT_EQ(ended.exit_code, what.starts_with("lacks") ? 1 : 2) << name;
    EXPECT_THAT(ended.output, HasSubstr(what));
    EXPECT_FALSE(std::filesystem::exists(In("to")));
  }
}

TEST_F(ReshardCommand, RanksThatAreNotOneJobAreRefused) {
  const std::string four = MakeJob("four", 4);
  const auto ranks = [&](std::vector<int> numbers) {
    std::string all;
    for (const int number : numbers) StrAppend(&all, four, "/rank-", number, " ");
    return all + "--to 8 ";
  };
  ExpectRefused(ranks({0, 1, 3}), "the training has 4 ranks, and rank 2 is missing");
  ExpectRefused(ranks({1, 2, 3}), "rank 0 is missing");
  ExpectRefused(ranks({2}), "rank 0 is missing");
  ExpectRefused(ranks({0, 1, 2, 2, 3}), "rank-2 and " + four + "/rank-2 are both rank 2");
  const auto as_rank_1 = [&](const std::string& name, const std::string& blob,
                             uint64_t steps = 10) {
    Checkpoint(In(name), 1, 4, steps, blob);
    return ranks({0, 2, 3}) + In(name);
  };
  ExpectRefused(as_rank_1("a", Blob(1, 4, 10, 78)), " of job 78");
  ExpectRefused(as_rank_1("b", Blob(1, 5, 10)), "of one with 5");
  ExpectRefused(as_rank_1("c", Blob(1, 4, 10, kJob, 48)),
                "c are of other models: one has \"slices 8\", and the other one has "
                "\"slices 48\"");
  ExpectRefused(as_rank_1("d", Blob(1, 4, 11), 11),
                "no step of which all ranks have a checkpoint; their steps are " + four +
                    "/rank-0: 10; " + In("d") + ": 11;");
  // The words for the data may be paths of a machine.
  const Ended ended =
      Reshard(as_rank_1("e", Blob(1, 4, 10, kJob, 8, "another log")) + " --out " + In("to"));
  EXPECT_EQ(ended.exit_code, 0) << ended.output;
}

TEST_F(ReshardCommand, NumbersOfRanksThatDoNotFitAreRefused) {
  const std::string job = In("job");
  Checkpoint(job, 0, 1, 10, Blob(0, 1, 10, kJob, 24));
  for (const int ranks : {2, 4, 5, 8, 16, 256}) {
    ExpectRefused(StrCat(job, " --to ", ranks),
                  StrCat("the training has 24 slices, and it could not go on with ", ranks,
                         " ranks: slices divided by ranks must be a power of two. It can go on "
                         "with 1, 3, 6, 12, 24"));
  }
  for (const char* ranks : {"0", "257", "-1", "two"}) {
    ExpectRefused(job + " --to " + ranks, "--to");
  }
  EXPECT_EQ(Reshard(job + " --to 6 --out " + In("to")).exit_code, 0);
}

TEST_F(ReshardCommand, CopiesThatDifferAreRefused) {
  const std::string job = MakeJob("job", 4);
  {
    const auto store = Open(job + "/rank-3");
    const std::vector<Key> keys = {2};
    const std::vector<float> row = {10.0f, 10.0f, 10.5f, 10.0f};
    ASSERT_TRUE(Upsert(*store->catalog().Open(kDense), keys, RowsOf(row), {}).ok());
    ASSERT_TRUE(store->checkpoints()->Make(BytesOf(Blob(3, 4, 10))).ok());
  }
  ExpectRefused(job + " --to 2",
                "table \"dense parameters\" is replicated, and the row of key 2 on rank 0 differs "
                "from that on rank 3");
  // The step behind it has a table that all ranks should have, by its text.
  const auto replicate = [&](const std::string& table, uint64_t steps) {
    for (uint32_t rank = 0; rank < 4; ++rank) {
      std::string blob = Blob(rank, 4, steps);
      blob.insert(blob.find("batch"), StrCat("replicated ", table, "\n"));
      const auto store = Open(StrCat(job, "/rank-", rank));
      ASSERT_TRUE(store->checkpoints()->Make(BytesOf(blob)).ok());
    }
  };
  replicate("users", 20);
  ExpectRefused(job + " --to 2", "table \"id users\" is replicated, and key");
}

TEST_F(ReshardCommand, ATargetThatIsSomethingElseIsLeftAlone) {
  const std::string job = MakeJob("job", 2);
  const auto before = BytesBelow(scratch_.path());
  const std::string command = job + " --to 4 --out ";
  for (const auto& [target, what] :
       std::vector<std::array<std::string, 2>>{{job, "is within"},
                                               {job + "/rank-7", "is within"},
                                               {job + "/rank-0/x", "is within"},
                                               {scratch_.path(), "is not empty"},
                                               {In("no parent/to"), "no parent"},
                                               {job + "/rank-0/../../job/y", "is within"}}) {
    const Ended ended = Reshard(command + "'" + target + "'");
    EXPECT_EQ(ended.exit_code, 2) << target;
    EXPECT_THAT(ended.output, HasSubstr(what)) << target;
  }
  EXPECT_TRUE(BytesBelow(scratch_.path()) == before);
  std::ofstream(In("file")) << "text";
  EXPECT_EQ(Reshard(command + In("file")).exit_code, 2);
  std::filesystem::create_directory(In("to.unfinished"));
  std::ofstream(In("to.unfinished/notes")) << "mine";
  const Ended foreign = Reshard(command + In("to"));
  EXPECT_THAT(foreign.output, HasSubstr("to.unfinished has no file UNFINISHED"));
  EXPECT_TRUE(std::filesystem::exists(In("to.unfinished/notes")));
}

TEST_F(ReshardCommand, TwoProcessesDoNotMakeTheSameTarget) {
  const std::string command = MakeJob("job", 2) + " --to 4 --out " + In("to");
  std::filesystem::create_directory(In("to.unfinished"));
  const std::string mark = In("to.unfinished/UNFINISHED");
  const int held = open(mark.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600);
  ASSERT_EQ(flock(held, LOCK_EX), 0);
  const Ended refused = Reshard(command);
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.output, HasSubstr("another process works there"));
  close(held);
  EXPECT_EQ(Reshard(command).exit_code, 0);
  ExpectJob(In("to"), 4, 10);
}

// ---- killed ----

// Starts a program, which a timer kills after some microseconds unless it has ended by then.
void RunAndKill(const std::vector<std::string>& arguments, uint64_t microseconds) {
  std::vector<char*> words;
  for (const std::string& argument : arguments) words.push_back(const_cast<char*>(argument.data()));
  words.push_back(nullptr);
  const itimerval timer = {.it_interval = {},
                           .it_value = {.tv_sec = static_cast<time_t>(microseconds / 1'000'000),
                                        .tv_usec = static_cast<long>(microseconds % 1'000'000)}};
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    dup2(open("/dev/null", O_WRONLY), STDOUT_FILENO);
    setitimer(ITIMER_REAL, &timer, nullptr);
    execv(words[0], words.data());
    _exit(127);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status) || WEXITSTATUS(status) == 0) << status;
}

TEST_F(ReshardCommand, AKilledOneNeverLooksLikeAWholeOneAndTheNextOneGoesOn) {
  const char* const command = std::getenv("EMBANK_COMMAND");
  ASSERT_NE(command, nullptr) << "run it with ctest";
  constexpr size_t kManyRows = 20'000;
  const std::string job = MakeJob("job", 4, 10, kManyRows);
  const auto before = BytesBelow(job);
  const std::string to = In("to");
  const auto begin = std::chrono::steady_clock::now();
  ASSERT_EQ(Reshard(job + " --to 2 --out " + In("timed")).exit_code, 0);
  const auto whole_us = static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::microseconds>(
                                                  std::chrono::steady_clock::now() - begin)
                                                  .count());
  uint64_t left_behind = 0;
  for (uint64_t trial = 0; trial < 60; ++trial) {
    const uint64_t us = 1 + Random(trial).Below(whole_us * 5 / 4);
    RunAndKill({command, "reshard", job, "--to", "2", "--out", to}, static_cast<unsigned>(us));
    if (std::filesystem::exists(to)) {
      ASSERT_NO_FATAL_FAILURE(ExpectJob(to, 2, 10, kManyRows));
      std::filesystem::remove_all(to);
      continue;
    }
    left_behind += std::filesystem::exists(to + ".unfinished") ? 1 : 0;
    if (trial % 4 != 0) continue;  // others find what two have left
    const Ended ended = Reshard(job + " --to 2 --out " + to);
    ASSERT_EQ(ended.exit_code, 0) << ended.output;
    ASSERT_NO_FATAL_FAILURE(ExpectJob(to, 2, 10, kManyRows));
    EXPECT_FALSE(std::filesystem::exists(to + ".unfinished"));
    std::filesystem::remove_all(to);
  }
  EXPECT_GT(left_behind, 0u);
  EXPECT_TRUE(BytesBelow(job) == before);
}

}  // namespace
}  // namespace embank::test::reshard_command_test
