// The `embank` command from the outside: its exit codes and its output.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "bindings/c/embank.h"
#include "tests/support/c_api.h"
#include "tests/support/scratch_directory.h"

namespace embank::test::commands_test {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

struct Ran {
  int exit_code = -1;
  std::string out;
  std::string error;
};

std::string ReadText(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

class Commands : public testing::Test {
 protected:
  Commands() : directory_(scratch_.path() + "/a store") {
    embank_store_options options = StoreOptions();
    options.path = directory_.c_str();
    options.flags = EMBANK_OPEN_CREATE;
    options.dram_bytes = uint64_t{16} << 20;
    options.seed = 3;
    options_ = options;
    store_ = OpenStore(options);
    Fill(CreateTable(store_.get(), "items", TableOptions(16, EMBANK_OPT_ADAM)), 16, 1000);
    Fill(CreateTable(store_.get(), "users", TableOptions(4)), 4, 300);
    EXPECT_EQ(embank_checkpoint(store_.get(), "blob", 4, nullptr), EMBANK_OK);
    store_.reset();
  }

  static void Fill(embank_table* table, uint64_t dim, uint64_t rows) {
    const std::vector<uint64_t> keys = KeyRange(1, rows);
    const std::vector<float> values(dim * rows, 2.5f);
    EXPECT_EQ(embank_upsert(table, keys.data(), rows, values.data(), 0, nullptr), EMBANK_OK);
  }
  // Where standard error goes.
  std::string ErrorPath() const { return scratch_.path() + "/error"; }
  // The exit code.
  int Execute(const std::string& arguments, const std::string& out) const {
    const char* const command = std::getenv("EMBANK_COMMAND");
    EXPECT_NE(command, nullptr) << "run it with ctest";
    if (command == nullptr) return -1;
    const int status = std::system(
        ("'" + std::string(command) + "' " + arguments + " >" + out + " 2>" + ErrorPath()).c_str());
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  Ran Run(const std::string& arguments) const {
    const std::string out = scratch_.path() + "/out";
    const int exit_code = Execute(arguments, out);
    return {exit_code, ReadText(out), ReadText(ErrorPath())};
  }
  Ran RunOn(const std::string& command) { return Run(command + " '" + directory_ + "'"); }
  json JsonOf(const std::string& command, int exit_code) {
    const Ran ran = RunOn(command + " --json");
    EXPECT_EQ(ran.exit_code, exit_code) << ran.error;
    EXPECT_THAT(ran.error, IsEmpty());
    return json::parse(ran.out);
  }
  // A command may find a new checkpoint in each of its tries: it says so, and is run again.
  json JsonBesideCheckpoints(const std::string& command) {
    Ran ran = RunOn(command + " --json");
    while (ran.exit_code == 2 && ran.error.find("UNAVAILABLE") != std::string::npos) {
      ran = RunOn(command + " --json");
    }
    EXPECT_EQ(ran.exit_code, 0) << ran.error;
    return json::parse(ran.out);
  }
  // Reads all files of the store; the keys are their names.
  std::map<std::string, std::string> Contents() const {
    std::map<std::string, std::string> contents;
    for (const auto& entry : std::filesystem::directory_iterator(directory_)) {
      contents[entry.path().filename()] = ReadText(entry.path());
    }
    return contents;
  }
  // Turns bits of a byte of the first record of the last segment.
  std::string DamageARecord() {
    std::string last;
    for (const auto& entry : std::filesystem::directory_iterator(directory_)) {
      const std::string name = entry.path().filename();
      if (name.starts_with("segment-")) last = std::max(last, name);
    }
    std::fstream file(directory_ + "/" + last, std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(4096 + 33);
    const int was = file.get();
    file.seekp(4096 + 33);
    file.put(static_cast<char>(was ^ 4));
    return last;
  }

  ScratchDirectory scratch_;
  const std::string directory_;
  embank_store_options options_;
  StorePtr store_;
};

TEST_F(Commands, VerifyOfACleanStoreExitsWith0) {
  const Ran ran = RunOn("verify");
  EXPECT_EQ(ran.exit_code, 0) << ran.error;
  EXPECT_THAT(ran.out, HasSubstr("clean"));
  EXPECT_THAT(ran.out, HasSubstr("items"));
  const json report = JsonOf("verify", 0);
  EXPECT_EQ(report["clean"], true);
  EXPECT_EQ(report["checkpoints"][0]["rows"], 1300);
  EXPECT_THAT(report["damage"], IsEmpty());
}

TEST_F(Commands, VerifyOfADamagedStoreExitsWith1AndNamesTheRow) {
  const std::string segment = DamageARecord();
  const Ran ran = RunOn("verify");
  EXPECT_EQ(ran.exit_code, 1);
  EXPECT_THAT(ran.out, HasSubstr("DAMAGED"));
  EXPECT_THAT(ran.out, HasSubstr(segment + ": records 0: the record is damaged"));
  const json report = JsonOf("verify", 1);
  EXPECT_EQ(report["damage_count"], 1);
  const json lost = report["damage"][0]["lost"][0];
  EXPECT_EQ(lost["rows"], 1);
  EXPECT_THAT(ran.out, HasSubstr("1 rows of table " + lost["table"].get<std::string>() +
                                 " in checkpoint 1: keys " + lost["keys"][0].dump()));
}

TEST_F(Commands, RepairMakesAStoreOfADamagedOneAndNamesWhatIsLost) {
  const std::string to = scratch_.path() + "/saved";
  const Ran whole = Run("repair '" + directory_ + "' --to " + to);
  EXPECT_EQ(whole.exit_code, 0) << whole.error;
  EXPECT_THAT(whole.out, HasSubstr("1300 rows saved, 0 rows lost"));
  const std::string segment = DamageARecord();
  const Ran ran = Run("repair '" + directory_ + "' --to " + to + "2");
  EXPECT_EQ(ran.exit_code, 1) << ran.error;
  EXPECT_THAT(ran.out, HasSubstr("1299 rows saved, 1 rows lost"));
  EXPECT_THAT(ran.out, HasSubstr(segment + ": the record is damaged: 1 rows of table "));
  const Ran told = Run("repair '" + directory_ + "' --json --to " + to + "3");
  EXPECT_EQ(told.exit_code, 1) << told.error;
  const json report = json::parse(told.out);
  EXPECT_EQ(report["whole"], false);
  EXPECT_EQ(report["rows_lost"], 1);
  EXPECT_THAT(ran.out, HasSubstr("keys " + report["losses"][0]["keys"][0].dump()));
  EXPECT_EQ(Run("verify " + to + "3").exit_code, 0);
  EXPECT_THAT(Run("stat " + to + "3").out, HasSubstr("1 rows were lost before this checkpoint"));
  EXPECT_EQ(json::parse(Run("stat --json " + to + "3").out)["rows_lost"], 1);
  EXPECT_EQ(json::parse(Run("stat --json " + to).out)["rows_lost"], 0);
  // A row of the store that was made.
  embank_store_options options = options_;
  options.path = to.c_str();
  options.flags = 0;
  store_ = OpenStore(options);
  embank_table* users = nullptr;
  ASSERT_EQ(embank_table_open(store_.get(), "users", &users), EMBANK_OK);
  const uint64_t key = 300;
  float row[4] = {};
  EXPECT_EQ(embank_lookup(users, &key, 1, EMBANK_MISSING_ZERO, row, 0, nullptr), EMBANK_OK);
  EXPECT_EQ(row[3], 2.5f);
}

TEST_F(Commands, RepairOfAStoreThatNobodyMayWriteTo) {
  const std::filesystem::perms writers = std::filesystem::perms::owner_write |
                                         std::filesystem::perms::group_write |
                                         std::filesystem::perms::others_write;
  for (const auto& entry : std::filesystem::directory_iterator(directory_)) {
    std::filesystem::permissions(entry.path(), writers, std::filesystem::perm_options::remove);
  }
  std::filesystem::permissions(directory_, writers, std::filesystem::perm_options::remove);
  const std::map<std::string, std::string> before = Contents();
  const Ran ran = Run("repair '" + directory_ + "' --to " + scratch_.path() + "/saved");
  std::filesystem::permissions(directory_, std::filesystem::perms::owner_write,
                               std::filesystem::perm_options::add);
  EXPECT_EQ(ran.exit_code, 0) << ran.error;
  // No permission keeps root from writing.
  EXPECT_EQ(Contents(), before);
}

TEST_F(Commands, RepairSaysWhenItIsNotTheNewestCheckpoint) {
  store_ = OpenStore(options_);
  ASSERT_EQ(embank_checkpoint(store_.get(), nullptr, 0, nullptr), EMBANK_OK);
  store_.reset();
  std::ofstream(directory_ + "/MANIFEST-00000002") << "nonsense";
  const std::string command = "repair '" + directory_ + "' --to " + scratch_.path();
  const Ran ran = Run(command + "/saved");
  EXPECT_EQ(ran.exit_code, 1) << ran.error;
  EXPECT_THAT(ran.out, HasSubstr("checkpoint 1 (previous)"));
  EXPECT_THAT(ran.out, HasSubstr("MANIFEST-00000002"));
  EXPECT_EQ(Run(command + "/other --previous").exit_code, 1);
  // Neither can be read: no store is made.
  std::ofstream(directory_ + "/MANIFEST-00000001") << "nonsense";
  const Ran none = Run(command + "/none");
  EXPECT_EQ(none.exit_code, 2);
  EXPECT_THAT(none.error, HasSubstr("MANIFEST-00000001"));
  EXPECT_FALSE(std::filesystem::exists(scratch_.path() + "/none"));
}

TEST_F(Commands, RepairGoesNeitherIntoItsSourceNorIntoWhatIsNotEmpty) {
  for (const std::string& to : {directory_ + "/saved", directory_, directory_ + "/../a store/x"}) {
    const Ran ran = Run("repair '" + directory_ + "' --to '" + to + "'");
    EXPECT_EQ(ran.exit_code, 2) << to;
    EXPECT_THAT(ran.error, HasSubstr("is within")) << to;
  }
  const Ran full = Run("repair '" + directory_ + "' --to " + scratch_.path());
  EXPECT_EQ(full.exit_code, 2);
  EXPECT_THAT(full.error, HasSubstr("not empty"));
  EXPECT_EQ(RunOn("verify").exit_code, 0);
}

TEST_F(Commands, InfoTellsIdentityCheckpointsAndTables) {
  const Ran ran = RunOn("info");
  EXPECT_EQ(ran.exit_code, 0) << ran.error;
  EXPECT_THAT(ran.out, HasSubstr("users"));
  const json info = JsonOf("info", 0);
  EXPECT_THAT(ran.out, HasSubstr(info["store_id"].get<std::string>()));
  EXPECT_EQ(info["seed"], 3);
  EXPECT_EQ(info["format_version"], 4);
  EXPECT_EQ(info["blob_bytes"], 4);
  EXPECT_EQ(info["unknown_rows"], 0);
  ASSERT_EQ(info["checkpoints"].size(), 2u);
  EXPECT_EQ(info["checkpoints"][0]["checkpoint"], 1);
  EXPECT_EQ(info["checkpoints"][0]["rows"], 1300);
  EXPECT_EQ(info["checkpoints"][1]["rows"], 0);
  ASSERT_EQ(info["tables"].size(), 2u);
  EXPECT_EQ(info["tables"][0]["table"], "items");
  EXPECT_EQ(info["tables"][0]["rows"], 1000);
  EXPECT_EQ(info["tables"][0]["dim"], 16);
  EXPECT_EQ(info["tables"][0]["value_type"], "f32");
  EXPECT_EQ(info["tables"][0]["optimizer"], "adam");
  EXPECT_EQ(info["tables"][1]["rows"], 300);
}

TEST_F(Commands, StatTellsWhatLivesAndWhatIsDead) {
  const json before = JsonOf("stat", 0);
  EXPECT_EQ(before["classes"][0]["live_rows"], 1000);
  EXPECT_LT(before["classes"][0]["dead_rows"], 20) << "left out between buffers";
  const uint64_t rows_bytes = before["classes"][0]["live_bytes"].get<uint64_t>() +
                              before["classes"][1]["live_bytes"].get<uint64_t>();
  EXPECT_EQ(before["kept_bytes"], rows_bytes);
  EXPECT_GE(before["disk_bytes"], rows_bytes);
  EXPECT_EQ(before["pmem_bytes"], 0);
  EXPECT_LE(before["disk_bytes"], 2 * rows_bytes + (uint64_t{1} << 20));
  // The segments of both classes were not full.
  EXPECT_GE(before["export_bytes"], rows_bytes);
  EXPECT_LE(before["export_bytes"], rows_bytes * 12 / 10 + 8 * 4096);
  store_ = OpenStore(options_);
  embank_table* items = nullptr;
  ASSERT_EQ(embank_table_open(store_.get(), "items", &items), EMBANK_OK);
  const std::vector<uint64_t> keys = KeyRange(1, 400);
  ASSERT_EQ(embank_erase(items, keys.data(), 400, nullptr), EMBANK_OK);
  ASSERT_EQ(embank_checkpoint(store_.get(), nullptr, 0, nullptr), EMBANK_OK);
  store_.reset();
  const json after = JsonOf("stat", 0);
  EXPECT_EQ(after["checkpoint"], 2);
  EXPECT_EQ(after["tables"][0]["rows"], 600);
  const json of_items = after["classes"][after["tables"][0]["class"].get<size_t>()];
  EXPECT_EQ(of_items["live_rows"], 600);
  EXPECT_GE(of_items["dead_rows"], 400);
  EXPECT_EQ(of_items["live_bytes"], 600 * of_items["record_bytes"].get<uint64_t>());
  EXPECT_EQ(of_items["live_bytes"], after["tables"][0]["live_bytes"]);
  EXPECT_LT(of_items["utilisation"], before["classes"][0]["utilisation"]);
  const Ran ran = RunOn("stat");
  EXPECT_EQ(ran.exit_code, 0) << ran.error;
  EXPECT_THAT(ran.out, HasSubstr("utilisation"));
  EXPECT_THAT(ran.out, HasSubstr("an export would copy "));
  EXPECT_GT(after["kept_bytes"], of_items["live_bytes"])
      << "the erased ones, and the other table's";
}

// By the blocks of a real file system.
TEST_F(Commands, RestartsLeaveFilesAsLargeAsTheRows) {
  for (uint64_t night = 0; night < 12; ++night) {
    store_ = OpenStore(options_);
    embank_table* items = nullptr;
    ASSERT_EQ(embank_table_open(store_.get(), "items", &items), EMBANK_OK);
    const std::vector<uint64_t> keys = KeyRange(100 * night, 100);
    const std::vector<float> rows(keys.size() * 16, 1.0f);
    ASSERT_EQ(embank_upsert(items, keys.data(), keys.size(), rows.data(), 0, nullptr), EMBANK_OK);
    ASSERT_EQ(embank_checkpoint(store_.get(), nullptr, 0, nullptr), EMBANK_OK);
    store_.reset();
    const json stat = JsonOf("stat", 0);
    EXPECT_LE(stat["disk_bytes"], 2 * stat["kept_bytes"].get<uint64_t>() +
                                      stat["classes"].size() * (uint64_t{4} << 20));
  }
}

TEST_F(Commands, ADamagedManifestIsDamageToAll) {
  std::ofstream(directory_ + "/MANIFEST-00000001") << "nonsense";
  EXPECT_EQ(RunOn("verify").exit_code, 1);
  for (const char* command : {"info", "stat"}) {
    const Ran ran = RunOn(command);
    EXPECT_EQ(ran.exit_code, 1);
    EXPECT_THAT(ran.out, IsEmpty());
    EXPECT_THAT(ran.error, HasSubstr("MANIFEST-00000001"));
  }
}

TEST_F(Commands, VerifyOfAStoreThatIsOpenExitsWith2) {
  store_ = OpenStore(options_);
  const Ran open = RunOn("verify");
  EXPECT_EQ(open.exit_code, 2);
  EXPECT_THAT(open.error, HasSubstr("UNAVAILABLE"));
  EXPECT_THAT(open.error, HasSubstr("LOCK"));
  EXPECT_THAT(open.out, IsEmpty());
}

TEST_F(Commands, InfoAndStatOfAStoreThatIsOpenShowItsLastCheckpoint) {
  store_ = OpenStore(options_);
  embank_table* items = nullptr;
  ASSERT_EQ(embank_table_open(store_.get(), "items", &items), EMBANK_OK);
  Fill(items, 16, 2000);
  EXPECT_EQ(JsonOf("info", 0)["tables"][0]["rows"], 1000) << "what no checkpoint has is not shown";
  ASSERT_EQ(embank_checkpoint(store_.get(), nullptr, 0, nullptr), EMBANK_OK);
  EXPECT_EQ(JsonOf("info", 0)["tables"][0]["rows"], 2000);
  EXPECT_EQ(JsonOf("stat", 0)["tables"][0]["rows"], 2000);
  EXPECT_EQ(JsonOf("stat", 0)["checkpoint"], 2);
}

// Files are removed while they are looked at; each picture is of one checkpoint all the same.
TEST_F(Commands, InfoAndStatWorkWhileOneCheckpointFollowsTheOther) {
  store_ = OpenStore(options_);
  embank_table* items = nullptr;
  ASSERT_EQ(embank_table_open(store_.get(), "items", &items), EMBANK_OK);
  std::atomic<bool> is_over{false};
  std::atomic<uint64_t> made{0};
  std::thread writer([&] {
    // All rows twice: whole segments die.
    while (!is_over) {
      Fill(items, 16, 1000);
      EXPECT_EQ(embank_checkpoint(store_.get(), nullptr, 0, nullptr), EMBANK_OK);
      ++made;
    }
  });
  for (int i = 0; i < 15 || made <= 2; ++i) {
    const json info = JsonBesideCheckpoints("info");
    EXPECT_EQ(info["tables"][0]["rows"], 1000);
    EXPECT_EQ(info["unknown_rows"], 0);
    EXPECT_EQ(info["checkpoints"].size(), 2u);
    EXPECT_EQ(info["checkpoints"][1]["readable"], true);
    EXPECT_EQ(JsonBesideCheckpoints("stat")["tables"][0]["rows"], 1000);
  }
  is_over = true;
  writer.join();
  EXPECT_GT(made.load(), 2u);
}

TEST_F(Commands, APathWithoutAStoreExitsWith2) {
  for (const char* command : {"verify", "info", "stat"}) {
    for (const char* place : {"/nowhere", "", "/out"}) {
      const Ran ran = Run(std::string(command) + " " + scratch_.path() + place);
      EXPECT_EQ(ran.exit_code, 2) << place;
      EXPECT_THAT(ran.error, HasSubstr(scratch_.path() + place));
      EXPECT_THAT(ran.out, IsEmpty());
    }
  }
}

// A report of which the end is missing must not look like a clean one.
TEST_F(Commands, OutputThatIsLostExitsWith2) {
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP() << "no /dev/full here";
  for (const char* command : {"verify", "info", "stat", "verify --json", "stat --json"}) {
    EXPECT_EQ(Execute(std::string(command) + " '" + directory_ + "'", "/dev/full"), 2) << command;
    EXPECT_THAT(ReadText(ErrorPath()), HasSubstr("the output could not be written")) << command;
  }
}

TEST_F(Commands, AWrongCommandLineExitsWith2AndHelpWith0) {
  for (const char* wrong : {"", "verify", "mend x", "verify --jsno x", "info a b", "repair x"}) {
    const Ran ran = Run(wrong);
    EXPECT_EQ(ran.exit_code, 2) << wrong;
    EXPECT_NE(ran.error, "") << wrong;
  }
  EXPECT_EQ(Run("--help").exit_code, 0);
  EXPECT_EQ(Run("info --help").exit_code, 0);
  EXPECT_THAT(Run("--version").out, HasSubstr(embank_version()));
}

TEST_F(Commands, AnUnknownCommandIsNamedWithTheNearestAndAll) {
  const Ran ran = Run("infoo '" + directory_ + "'");
  EXPECT_EQ(ran.exit_code, 2);
  EXPECT_THAT(ran.out, IsEmpty());
  EXPECT_THAT(ran.error, HasSubstr("there is no command 'infoo'. Did you mean 'info'?"));
  for (const char* command : {"\n  verify ", "\n  info ", "\n  stat "}) {
    EXPECT_THAT(ran.error, HasSubstr(command));
    EXPECT_THAT(Run("").error, HasSubstr(command));
  }
  EXPECT_THAT(Run("''").error, HasSubstr("there is no command ''."));
  EXPECT_THAT(Run("verfiy x").error, HasSubstr("Did you mean 'verify'?"));
  EXPECT_THAT(Run("completely-else x").error, Not(HasSubstr("Did you mean")));
}

TEST_F(Commands, EveryColumnOfATableIsExplainedBelowIt) {
  const std::string info = RunOn("info").out;
  for (const char* column : {"rows: ", "dim: ", "type: ", "optimizer: ", "row bytes: "}) {
    EXPECT_THAT(info.substr(info.find("row bytes\n")), HasSubstr(column));
  }
  const std::string stat = RunOn("stat").out;
  for (const char* column :
       {"class: ", "rows: ", "live: ", "record bytes: ", "segments: ", "dead: ", "utilisation: ",
        "on disk, in PMem: ", "kept: ", "an export would copy: "}) {
    EXPECT_THAT(stat, HasSubstr(column));
  }
  const std::string verify = RunOn("verify").out;
  for (const char* column : {"  rows: ", "; lost: "}) EXPECT_THAT(verify, HasSubstr(column));
  const std::string repair =
      Run("repair '" + directory_ + "' --to " + scratch_.path() + "/saved").out;
  for (const char* column : {"  saved: ", "; lost: "}) EXPECT_THAT(repair, HasSubstr(column));
}

}  // namespace
}  // namespace embank::test::commands_test
