// `embank get`, `dump`, `write-table` and `read-table` from the outside: the bits of rows, what is
// refused, and what an interrupted or refused one leaves.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <tuple>
#include <vector>

#include "base/str_cat.h"
#include "bindings/c/embank.h"
#include "tests/support/c_api.h"
#include "tests/support/files_below.h"
#include "tests/support/program.h"
#include "tests/support/random.h"
#include "tests/support/scratch_directory.h"

namespace embank::test::table_commands_test {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr uint32_t kStateOfDim5[] = {0, 0, 5, 1, 11, 10};  // by EMBANK_OPT_*

class TableCommands : public testing::Test {
 protected:
  TableCommands() {
    std::filesystem::create_directory(In("files"));
    StorePtr store = OpenToChange(EMBANK_OPEN_CREATE);
    embank_table* const items = Create(store.get(), "items", 2, EMBANK_F32, EMBANK_OPT_ADAGRAD);
    const uint64_t keys[] = {7, 255, UINT64_MAX};
    const float rows[] = {1.5f,
                          -2.0f,
                          0.1f,
                          std::numeric_limits<float>::infinity(),
                          std::numeric_limits<float>::quiet_NaN(),
                          3.0f};
    const float state[] = {0.5f, 0.25f, 1.0f, 2.0f, 3.0f, 4.0f};
    const uint32_t heat[] = {9, 0, 1048575};
    EXPECT_EQ(embank_upsert_full(items, keys, 3, rows, 0, state, 0, heat, nullptr), EMBANK_OK);
    Create(store.get(), "plain", 2, EMBANK_F32, EMBANK_OPT_NONE);
    Create(store.get(), "half", 2, EMBANK_F16, EMBANK_OPT_ADAGRAD);
    Create(store.get(), "ftrl", 2, EMBANK_F32, EMBANK_OPT_FTRL);
    Create(store.get(), "narrow", 1, EMBANK_F32, EMBANK_OPT_ADAGRAD);
    Create(store.get(), "rowwise", 1, EMBANK_F32, EMBANK_OPT_ROWWISE_ADAGRAD);
    EXPECT_EQ(embank_checkpoint(store.get(), "a blob", 6, nullptr), EMBANK_OK);
  }

  std::string In(const std::string& name) const { return scratch_.path() + "/" + name; }
  std::string StorePath() const { return In("store"); }
  std::string File(const std::string& name) const { return In("files/" + name); }

  StorePtr OpenToChange(uint32_t flags = 0) const {
    embank_store_options options = StoreOptions();
    const std::string path = StorePath();
    options.path = path.c_str();
    options.flags = flags;
    options.seed = flags == EMBANK_OPEN_READ_ONLY ? 0 : 3;
    return OpenStore(options);
  }
  static embank_table* Create(embank_store* store, const std::string& name, uint32_t dim,
                              int32_t value_type, int32_t optimizer) {
    embank_table_options options = TableOptions(dim, optimizer);
    options.value_type = value_type;
    return CreateTable(store, name, options);
  }

  // Runs a command on the store.
  Ended Run(const std::string& command, const std::string& arguments) const {
    return RunProgram("EMBANK_COMMAND", StrCat(command, " '", StorePath(), "' ", arguments));
  }
  void ExpectRun(const std::string& command, const std::string& arguments) const {
    const Ended ended = Run(command, arguments);
    EXPECT_EQ(ended.exit_code, 0) << ended.output;
  }
  // Starts a command, and returns its process.
  pid_t Start(const std::vector<std::string>& words) const {
    std::vector<char*> arguments;
    for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    const char* const program = std::getenv("EMBANK_COMMAND");
    const pid_t process = fork();
    if (process == 0) {
      close(STDERR_FILENO);  // what it says about its signal
      execv(program, arguments.data());
      _exit(127);
    }
    return process;
  }

  // All rows of a table with their states and heats, as bytes by key.
  std::map<uint64_t, std::string> Rows(const std::string& name, uint64_t row_bytes,
                                       uint32_t state_floats) const {
    const StorePtr store = OpenToChange(EMBANK_OPEN_READ_ONLY);
    embank_table* table = nullptr;
    EXPECT_EQ(embank_table_open(store.get(), name.c_str(), &table), EMBANK_OK) << name;
    std::map<uint64_t, std::string> found;
    if (table == nullptr) return found;
    const ScanPtr scan = OpenScan(table);
    uint64_t key = 0;
    uint32_t heat = 0;
    std::string row(row_bytes, '\0');
    std::vector<float> state(state_floats + 1);
    uint64_t count = 0;
    while (embank_scan_next_full(scan.get(), &key, row.data(), 0,
                                 state_floats == 0 ? nullptr : state.data(), 0, &heat, 1,
                                 &count) == EMBANK_OK &&
           count == 1) {
      found[key] = StrCat(
          row, std::string(reinterpret_cast<const char*>(state.data()), 4 * state_floats), heat);
    }
    return found;
  }

  // A table with `rows` rows of 1,024 bytes.
  void MakeLarge(uint64_t rows) const {
    const StorePtr store = OpenToChange();
    embank_table* const large = Create(store.get(), "large", 256, EMBANK_F32, EMBANK_OPT_NONE);
    const std::vector<float> values(256 * rows, 0.5f);
    EXPECT_EQ(embank_upsert(large, KeyRange(1, rows).data(), rows, values.data(), 0, nullptr),
              EMBANK_OK);
    EXPECT_EQ(embank_checkpoint(store.get(), nullptr, 0, nullptr), EMBANK_OK);
  }

  const ScratchDirectory scratch_;
};

TEST_F(TableCommands, WriteTableAndReadTableKeepAllBits) {
  constexpr const char* kTypes[] = {"f32", "f16", "bf16"};
  constexpr uint64_t kRows = 300;
  Random random(1);
  for (int32_t type = EMBANK_F32; type <= EMBANK_BF16; ++type) {
    for (int32_t optimizer = EMBANK_OPT_NONE; optimizer <= EMBANK_OPT_FTRL; ++optimizer) {
      const std::string name = StrCat(kTypes[type], " ", optimizer);
      const uint64_t row_bytes = type == EMBANK_F32 ? 20 : 10;
      const uint32_t floats = kStateOfDim5[optimizer];
      std::vector<uint64_t> keys(kRows);
      std::string rows(kRows * row_bytes, '\0');
      std::vector<float> state(kRows * floats + 1);
      std::vector<uint32_t> heat(kRows);
      for (uint64_t& key : keys) key = random.Bits();
      for (char& byte : rows) byte = static_cast<char>(random.Bits());
      for (float& number : state) number = static_cast<float>(random.Bits() % 100);
      for (uint32_t& number : heat) number = static_cast<uint32_t>(random.Bits() % 1048576);
      {
        const StorePtr store = OpenToChange();
        embank_table* const table = Create(store.get(), name, 5, type, optimizer);
        ASSERT_EQ(embank_upsert_full(table, keys.data(), kRows, rows.data(), 0,
                                     floats == 0 ? nullptr : state.data(), 0, heat.data(), nullptr),
                  EMBANK_OK);
        ASSERT_EQ(embank_checkpoint(store.get(), nullptr, 0, nullptr), EMBANK_OK);
      }
      constexpr const char* kNames[] = {"none", "sgd", "adagrad", "rowwise_adagrad",
                                        "adam", "ftrl"};
      const std::string file = StrCat("'", File(name), ".safetensors'");
      const std::string of_npy = StrCat(" --format npy --in '", File(name), "' --optimizer ");
      const std::array<std::string, 2> ways[] = {
          {StrCat(" --out ", file), StrCat(" --in ", file)},
          {StrCat(" --shard-bytes 8KiB --out ", file), StrCat(" --in ", file)},
          {StrCat(" --format npy --out '", File(name), "'"), StrCat(of_npy, kNames[optimizer])}};
      const auto& [out, in] = ways[(type + optimizer) % 3];
      ExpectRun("write-table", StrCat("'", name, "'", out));
      ExpectRun("read-table", StrCat("'", name, " copy'", in));
      const auto expected = Rows(name, row_bytes, floats);
      EXPECT_EQ(expected.size(), kRows);
      EXPECT_TRUE(Rows(name + " copy", row_bytes, floats) == expected) << name << out;
    }
  }
}

TEST_F(TableCommands, GetPrintsRowsAndSaysWhichKeysHaveNone) {
  const Ended found = Run("get", "items 7 0xff 0xFFFFFFFFFFFFFFFF");
  EXPECT_EQ(found.exit_code, 0);
  EXPECT_EQ(found.output,
            "key 7: tier ssd, heat 9\n  values 1.5 -2\n  state 0.5 0.25\n"
            "key 255: tier ssd, heat 0\n  values 0.1 inf\n  state 1 2\n"
            "key 18446744073709551615: tier ssd, heat 1048575\n  values nan 3\n  state 3 4\n");
  const Ended ended = Run("get", "items 8 7");
  EXPECT_EQ(ended.exit_code, 3);
  EXPECT_THAT(ended.output, HasSubstr("key 8: no row in table items\nkey 7: tier ssd"));
  const json told = json::parse(Run("get", "items --json 255 9 7").output);
  EXPECT_EQ(told["absent"], json::array({9}));
  EXPECT_EQ(told["rows"][0],
            json::parse("{\"key\":255,\"values\":[0.1,\"inf\"],\"state\":[1,2],\"heat\":0,"
                        "\"tier\":\"ssd\"}"));
  EXPECT_EQ(told["rows"][1]["key"], 7);
}

TEST_F(TableCommands, DumpPrintsAllRowsAsLines) {
  std::string text = Run("dump", "items --state --heat").output;
  EXPECT_THAT(text, testing::StartsWith("key,value_0,value_1,state_0,state_1,heat\n"));
  for (const char* line : {"\n7,1.5,-2,0.5,0.25,9\n", "\n255,0.1,inf,1,2,0\n",
                           "\n18446744073709551615,nan,3,3,4,1048575\n"}) {
    EXPECT_THAT(text, HasSubstr(line));
  }
  EXPECT_EQ(Run("dump", "plain").output, "key,value_0,value_1\n");
  const auto lines = [](const std::string& all) { return std::ranges::count(all, '\n'); };
  EXPECT_EQ(lines(text), 4);
  EXPECT_EQ(lines(Run("dump", "items --limit 2").output), 3);
  EXPECT_EQ(lines(Run("dump", "items --limit 0").output), 1);
  const Ended told = Run("dump", "items --json --heat --limit 1");
  const json row = json::parse(told.output);
  EXPECT_TRUE(row.contains("heat"));
  EXPECT_FALSE(row.contains("state"));
  ExpectRun("dump", "items --out " + File("items.csv"));
  EXPECT_EQ(BytesBelow(In("files")).size(), 1u);
  EXPECT_EQ(BytesBelow(In("files"))[File("items.csv")], Run("dump", "items").output);
}

TEST_F(TableCommands, DumpEndsWellWhenItsReaderHasEnough) {
  MakeLarge(2000);
  const std::string program = std::getenv("EMBANK_COMMAND");
  const std::string command = StrCat("bash -o pipefail -c \"'", program, "' dump '", StorePath(),
                                     "' large 2>'", In("error"), "' | head -n 1\" >/dev/null");
  EXPECT_EQ(std::system(command.c_str()), 0);
  EXPECT_EQ(BytesBelow(scratch_.path())[In("error")], "");
  const Ended full = Run("dump", "large 2>&1 >/dev/full #");
  EXPECT_EQ(full.exit_code, 2);
  EXPECT_THAT(full.output, HasSubstr("the output could not be written"));
}

TEST_F(TableCommands, AWrongCommandNamesItsMistakeAndChangesNothing) {
  ExpectRun("write-table", "items --out " + File("items.safetensors"));
  ExpectRun("write-table", "items --format npy --out " + File("items"));
  ExpectRun("write-table", "narrow --out " + File("narrow.safetensors"));
  std::ofstream(File("short.safetensors")) << "short";
  const auto before = BytesBelow(scratch_.path());
  const std::string in = " --in " + File("items.safetensors");
  for (const auto& [command, arguments, exit_code, message] :
       std::vector<std::tuple<std::string, std::string, int, std::string>>{
           {"get", "nothing 1", 2, "NOT_FOUND"},
           {"get", "items", 2, "KEY is required"},
           {"get", "items 0x", 2, "KEY is 0x; it must be 0 to 18446744073709551615"},
           {"get", "items 7x", 2, "KEY is 7x"},
           {"get", "items 18446744073709551616", 2, "KEY is 18446744073709551616"},
           {"dump", "plain --state", 2, "--state: rows of table plain have no state"},
           {"dump", "items --limit -1", 2, "--limit"},
           {"dump", "items --out " + In("no/x"), 2, "--out: cannot write"},
           {"dump", "items --out " + In("files"), 2, "is a directory"},
           {"write-table", "items", 2, "--out is required"},
           {"write-table", "items --out " + File("x"), 2, "it must end with .safetensors"},
           {"write-table", "items --out " + File("x.safetensors --shard-bytes 10"), 2,
            "--shard-bytes is 10; a header and one row of table items need 4124"},
           {"write-table", "items --out " + File("x.safetensors --shard-bytes 1GB"), 2,
            "--shard-bytes is 1GB"},
           {"write-table", "items --format csv --out " + File("x"), 2, "--format"},
           {"write-table", "items --out " + In("no/x.safetensors"), 2, "--out: cannot write"},
           {"write-table", "items --out " + StorePath() + "/x.safetensors", 2, "is within"},
           {"read-table", "items", 2, "--in is required"},
           {"read-table", "items --in " + File("no.safetensors"), 2, "there is no such file"},
           {"read-table", "items --in " + In("files"), 2, "is no regular file"},
           {"read-table", "items --in " + File("short.safetensors"), 1, "ends at byte 5"},
           {"read-table", "large" + in + " --optimizer best", 2, "--optimizer is best"},
           {"read-table", "large" + in + " --optimizer adam", 2, "optimizer adam with 5 numbers"},
           {"read-table", "large" + in + " --learning-rate -1", 2, "learning_rate is -1"},
           {"read-table", "a/b" + in, 2, "name"},
           {"read-table", "items" + in + " --learning-rate 1", 2, "is for a new table"},
           {"read-table", "items" + in + " --optimizer sgd", 2, "has optimizer adagrad"},
           {"read-table", "items" + in + " --dram-bytes 1", 2, "dram_bytes is 1"},
           {"read-table", "half" + in, 2, "value_type is F32; table half has value_type F16"},
           {"read-table", "plain" + in, 2, "--no-state leaves states out"},
           {"read-table", "ftrl" + in, 2, "table ftrl has optimizer ftrl with 4 numbers"},
           {"read-table", "ftrl --format npy --in " + File("items"), 2,
            "that the files do not name"},
           {"read-table", "rowwise --in " + File("narrow.safetensors"), 2,
            "1 numbers for each row, of the optimizer adagrad"},
           {"read-table", "large --format npy --in " + File("items"), 2, "give --optimizer"},
           {"read-table", "items --format npy --in a b", 2, "--in has 2 names"}}) {
    const Ended ended = Run(command, arguments);
    EXPECT_EQ(ended.exit_code, exit_code) << command << " " << arguments << ended.output;
    EXPECT_THAT(ended.output, HasSubstr(message)) << command << " " << arguments;
    EXPECT_TRUE(BytesBelow(scratch_.path()) == before) << command << " " << arguments;
  }
  for (const char* command : {"get", "dump", "write-table", "read-table"}) {
    const Ended ended = RunProgram(
        "EMBANK_COMMAND",
        StrCat(command, " ", In("nowhere"), " items ", std::string(command) == "get" ? "7" : "",
               std::string(command) == "write-table" ? "--out x.safetensors" : "",
               std::string(command) == "read-table" ? in : ""));
    EXPECT_EQ(ended.exit_code, 2) << command;
    EXPECT_THAT(ended.output, HasSubstr("nowhere")) << command;
  }
}

TEST_F(TableCommands, ReadTableKeepsTheBlobAndAddsToTheTable) {
  ExpectRun("write-table", "items --no-heat --out " + File("items.safetensors"));
  {
    const StorePtr store = OpenToChange();
    embank_table* items = nullptr;
    ASSERT_EQ(embank_table_open(store.get(), "items", &items), EMBANK_OK);
    const uint64_t keys[] = {7, 1};
    const float rows[] = {0, 0, 1, 1};
    ASSERT_EQ(embank_erase(items, keys, 1, nullptr), EMBANK_OK);
    ASSERT_EQ(embank_upsert(items, keys + 1, 1, rows, 0, nullptr), EMBANK_OK);
    ASSERT_EQ(embank_checkpoint(store.get(), "a blob", 6, nullptr), EMBANK_OK);
  }
  const json told =
      json::parse(Run("read-table", "items --json --in " + File("items.safetensors")).output);
  EXPECT_EQ(told, json::parse("{\"table\":\"items\",\"table_created\":false,\"rows\":3,"
                              "\"rows_created\":1,\"checkpoint\":3}"));
  ExpectRun("get", "items 1 7 255");
  // A row that is there keeps its heat, and a new one has none.
  EXPECT_THAT(Run("get", "items 7").output, HasSubstr("heat 0\n  values 1.5 -2\n  state 0.5 0.25"));
  EXPECT_THAT(RunProgram("EMBANK_COMMAND", "info --json '" + StorePath() + "'").output,
              HasSubstr("\"blob_bytes\":6"));
  // Without states, a row has that of a new row.
  ExpectRun("read-table", "plain --no-state --in " + File("items.safetensors"));
  ExpectRun("read-table",
            "new --no-state --optimizer sgd --learning-rate 0.5 --in " + File("items.safetensors"));
  EXPECT_THAT(Run("get", "new 7").output, Not(HasSubstr("state")));
}

TEST_F(TableCommands, WriteTableReplacesEarlierFilesWhenItsOwnAreWhole) {
  const std::string out = "items --out " + File("items.safetensors");
  ExpectRun("write-table", out + " --shard-bytes 4140");
  EXPECT_EQ(BytesBelow(In("files")).size(), 4u);
  EXPECT_THAT(Run("write-table", out).output, HasSubstr(".json exists; --overwrite"));
  EXPECT_EQ(BytesBelow(In("files")).size(), 4u);
  ExpectRun("write-table", "--overwrite " + out);
  EXPECT_EQ(BytesBelow(In("files")).size(), 1u);
  ExpectRun("write-table", "items --format npy --out " + File("items"));
  EXPECT_EQ(BytesBelow(In("files")).size(), 5u);
  ExpectRun("write-table",
            "items --overwrite --format npy --no-state --no-heat --out " + File("items"));
  EXPECT_EQ(BytesBelow(In("files")).size(), 3u);
  std::filesystem::rename(File("items.safetensors"), File("target"));
  std::filesystem::create_symlink("target", File("items.safetensors"));
  const json told = json::parse(Run("write-table", out + " --overwrite --json").output);
  EXPECT_TRUE(std::filesystem::is_symlink(File("items.safetensors")));
  EXPECT_EQ(told["rows"], 3);
  EXPECT_EQ(told["bytes"], 4096 + 3 * (8 + 8 + 4 + 8));
  EXPECT_EQ(told["files"], json::array({File("items.safetensors")}));
}

TEST_F(TableCommands, ALimitOfMemoryThatIsTooSmallIsSaidWithTheNeed) {
  constexpr uint64_t kRows = 1'200'000;
  {
    const StorePtr store = OpenToChange();
    embank_table* const many = Create(store.get(), "many", 1, EMBANK_F32, EMBANK_OPT_NONE);
    const std::vector<float> values(kRows, 0.5f);
    ASSERT_EQ(embank_upsert(many, KeyRange(1, kRows).data(), kRows, values.data(), 0, nullptr),
              EMBANK_OK);
    ASSERT_EQ(embank_checkpoint(store.get(), nullptr, 0, nullptr), EMBANK_OK);
  }
  const std::string path = StorePath();
  std::map<std::string, int> refusals;
  constexpr uint64_t kStepBytes = 256 << 10;
  for (uint64_t bytes = 16 << 20;; bytes += kStepBytes) {
    ASSERT_LT(bytes, 256 << 20);
    embank_store_options options = StoreOptions();
    options.path = path.c_str();
    options.seed = 3;
    options.dram_bytes = bytes;
    embank_store* store = nullptr;
    if (embank_store_open(&options, &store) == EMBANK_OK) {
      embank_store_close(store);
      break;
    }
    const std::string message = embank_last_error();
    EXPECT_THAT(message, testing::StartsWith(StrCat("dram_bytes is ", bytes, "; ")));
    EXPECT_THAT(message, HasSubstr(path));
    ++refusals[message.find("the index of the") != std::string::npos ? "index" : "budget"];
  }
  EXPECT_GT(refusals["index"], 0);
  EXPECT_GT(refusals["budget"], 0);
  ExpectRun("write-table", "items --out " + File("items.safetensors"));
  const Ended ended =
      Run("read-table", "items --dram-bytes 16MiB --in " + File("items.safetensors"));
  EXPECT_EQ(ended.exit_code, 2);
  EXPECT_THAT(ended.output, HasSubstr("RESOURCE_EXHAUSTED: --dram-bytes is 16MiB; the store needs "
                                      "about "));
  EXPECT_THAT(ended.output, HasSubstr("dram_bytes is 16777216; "));
  // Other resources are exhausted whatever the limit of memory is.
  setenv(
      "EMBANK_COMMAND_FEW_FILES",
      StrCat("bash -c 'ulimit -n 6; exec \"$0\" \"$@\"' ", std::getenv("EMBANK_COMMAND")).c_str(),
      1);
  const Ended full =
      RunProgram("EMBANK_COMMAND_FEW_FILES",
                 StrCat("read-table '", StorePath(), "' items --dram-bytes 1GiB --in ",
                        File("items.safetensors")));
  EXPECT_EQ(full.exit_code, 2);
  EXPECT_THAT(full.output, HasSubstr("RESOURCE_EXHAUSTED: open "));
  EXPECT_THAT(full.output, Not(HasSubstr("--dram-bytes")));
}

TEST_F(TableCommands, ADamagedRecordEndsThemWithoutFiles) {
  const Ended whole = Run("dump", "items");
  for (auto& [path, content] : BytesBelow(StorePath())) {
    if (path.find("segment-") == std::string::npos) continue;
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    for (std::streamoff at = 4096; at < static_cast<std::streamoff>(content.size()); ++at) {
      // All bytes of all records; the footer, which follows them, may be damaged, too.
      if (at >= 4096 + 512) break;
      file.seekp(at);
      file.put(static_cast<char>(content[static_cast<size_t>(at)] ^ 1));
    }
  }
  for (const auto& [command, arguments] : std::vector<std::pair<std::string, std::string>>{
           {"get", "items 7"},
           {"dump", "items --out " + File("x.csv")},
           {"write-table", "items --out " + File("x.safetensors")},
           {"write-table", "items --format npy --out " + File("x")}}) {
    const Ended ended = Run(command, arguments);
    EXPECT_EQ(ended.exit_code, 1) << command << ended.output;
    EXPECT_THAT(BytesBelow(In("files")), IsEmpty()) << command;
  }
}

TEST_F(TableCommands, ASignalLeavesWholeFilesOrNone) {
  constexpr uint64_t kRows = 40'000;
  MakeLarge(kRows);
  const std::string path = File("large.safetensors");
  int interrupted = 0;
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGINT, SIGTERM}) {
    const pid_t process = Start({"embank", "write-table", StorePath(), "large", "--out", path});
    int status = 0;
    pid_t ended = 0;
    while (ended == 0 && !std::filesystem::exists(path + ".part")) {
      ended = waitpid(process, &status, WNOHANG);
    }
    if (ended == 0) {
      kill(process, number);
      ASSERT_EQ(waitpid(process, &status, 0), process);
    }
    ASSERT_TRUE(WIFEXITED(status)) << status;
    interrupted += WEXITSTATUS(status) == 2;
    EXPECT_EQ(std::filesystem::exists(path), WEXITSTATUS(status) == 0);
    EXPECT_FALSE(std::filesystem::exists(path + ".part"));
    std::filesystem::remove(path);
  }
  EXPECT_GT(interrupted, 0);
}

TEST_F(TableCommands, ASignalLeavesAllRowsInTheStoreOrNone) {
  constexpr uint64_t kRows = 40'000;
  MakeLarge(kRows);
  const std::string path = File("large.safetensors");
  ExpectRun("write-table", "large --out " + path);
  int interrupted = 0;
  for (int i = 0; i < 6; ++i) {
    const std::string name = StrCat("copy", i);
    const pid_t process = Start({"embank", "read-table", StorePath(), name, "--in", path});
    // It has the file open when it reads the header, and for all of its rows.
    const std::string descriptors = StrCat("/proc/", process, "/fd");
    bool is_open = false;
    int status = 0;
    pid_t ended = 0;
    while (ended == 0 && !is_open) {
      std::error_code error;
      for (const auto& entry : std::filesystem::directory_iterator(descriptors, error)) {
        is_open = is_open || std::filesystem::read_symlink(entry, error) == path;
      }
      ended = waitpid(process, &status, WNOHANG);
    }
    if (ended == 0) {
      kill(process, SIGINT);
      ASSERT_EQ(waitpid(process, &status, 0), process);
    }
    const bool is_done = WIFEXITED(status) && WEXITSTATUS(status) == 0;
    interrupted += !is_done;
    uint64_t rows = 0;
    const json info =
        json::parse(RunProgram("EMBANK_COMMAND", "info --json '" + StorePath() + "'").output);
    for (const json& table : info["tables"]) {
      if (table["table"] == name) rows = table["rows"];
    }
    EXPECT_EQ(rows, is_done ? kRows : 0);
    EXPECT_EQ(RunProgram("EMBANK_COMMAND", "verify '" + StorePath() + "'").exit_code, 0);
  }
  EXPECT_GT(interrupted, 0);
}

}  // namespace
}  // namespace embank::test::table_commands_test
