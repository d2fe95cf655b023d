// `embank write-table` where files are: what it replaces and refuses, and what its end leaves.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <tuple>
#include <vector>

#include "base/str_cat.h"
#include "bindings/c/embank.h"
#include "tests/support/c_api.h"
#include "tests/support/files_below.h"
#include "tests/support/program.h"
#include "tests/support/scratch_directory.h"
#include "tests/tools/traced_program.h"
#include "tools/output_files.h"

namespace embank::test::replaced_files_test {
namespace {

using testing::HasSubstr;

// The tables "even" and "odd" have three rows each, which differ in all bytes.
class ReplacedFiles : public testing::Test {
 protected:
  ReplacedFiles() {
    std::filesystem::create_directory(Files());
    embank_store_options options = StoreOptions();
    const std::string path = StorePath();
    options.path = path.c_str();
    options.flags = EMBANK_OPEN_CREATE;
    const StorePtr store = OpenStore(options);
    for (uint64_t first = 0; first < 2; ++first) {
      embank_table* const table = CreateTable(store.get(), first == 0 ? "even" : "odd",
                                              TableOptions(2, EMBANK_OPT_ADAGRAD));
      const uint64_t keys[] = {first, first + 2, first + 4};
      const std::vector<float> rows(6, static_cast<float>(first));
      const std::vector<uint32_t> heat(3, static_cast<uint32_t>(first));
      EXPECT_EQ(
          embank_upsert_full(table, keys, 3, rows.data(), 0, rows.data(), 0, heat.data(), nullptr),
          EMBANK_OK);
    }
    EXPECT_EQ(embank_checkpoint(store.get(), nullptr, 0, nullptr), EMBANK_OK);
  }

  std::string StorePath() const { return scratch_.path() + "/store"; }
  std::string Files() const { return scratch_.path() + "/files"; }
  std::string File(const std::string& name) const { return StrCat(Files(), "/", name); }

  Ended Run(const std::string& command, const std::string& arguments) const {
    return RunProgram("EMBANK_COMMAND", StrCat(command, " '", StorePath(), "' ", arguments));
  }
  void ExpectRun(const std::string& command, const std::string& arguments) const {
    const Ended ended = Run(command, arguments);
    EXPECT_EQ(ended.exit_code, 0) << ended.output;
  }
  // The rows of a table, in the order of their text.
  std::vector<std::string> Rows(const std::string& table) const {
    std::istringstream text(Run("dump", table).output);
    std::vector<std::string> lines;
    for (std::string line; std::getline(text, line);) lines.push_back(line);
    std::ranges::sort(lines);
    return lines;
  }
  // Writes "even" to files, and replaces them by "odd"; ends that before its call `calls_max`.
  Traced Replace(const std::string& out, const std::string& before, const std::string& after,
                 size_t calls_max) const {
    std::filesystem::remove_all(Files());
    std::filesystem::create_directory(Files());
    ExpectRun("write-table", StrCat("even ", before, " ", out));
    std::vector<std::string> words = {"write-table", StorePath(), "odd", "--overwrite"};
    std::istringstream text(StrCat(out, " ", after));
    for (std::string word; text >> word;) words.push_back(word);
    return RunTraced("EMBANK_COMMAND", words, Files(), calls_max);
  }
  // Which table files have: "even", "odd", or the exit status of a read that refuses them.
  std::string Read(const std::string& in) {
    const std::string copy = StrCat("copy", ++copies_);
    const Ended read = Run("read-table", StrCat(copy, " --optimizer adagrad ", in));
    if (read.exit_code != 0) return StrCat("exit ", read.exit_code);
    const std::vector<std::string> rows = Rows(copy);
    for (const char* table : {"even", "odd"}) {
      if (rows == Rows(table)) return table;
    }
    return "a mixture";
  }

  const ScratchDirectory scratch_;
  int copies_ = 0;
};

TEST_F(ReplacedFiles, AreRefusedWithoutOverwrite) {
  ExpectRun("write-table", "even --out " + File("t.safetensors"));
  ExpectRun("write-table", "even --format npy --out " + File("t"));
  std::ofstream(File("stale.heat.npy")) << "heat";
  ASSERT_EQ(mkfifo(File("pipe.safetensors").c_str(), 0600), 0);
  const auto before = BytesBelow(scratch_.path());
  for (const auto& [arguments, message] : std::vector<std::pair<std::string, std::string>>{
           {File("t.safetensors"),
            "ALREADY_EXISTS: --out: " + File("t.safetensors exists; --overwrite replaces it")},
           {File("t.safetensors --shard-bytes 4140"), "t.safetensors exists"},
           {File("t --no-heat --format npy"), "npy exists"},
           {File("stale --no-heat --format npy"), "stale.heat.npy exists"},
           {File("pipe.safetensors --overwrite"), "is no regular file"}}) {
    const Ended ended = Run("write-table", "odd --out " + arguments);
    EXPECT_EQ(ended.exit_code, 2) << arguments;
    EXPECT_THAT(ended.output, HasSubstr(message));
    EXPECT_TRUE(BytesBelow(scratch_.path()) == before) << arguments;
  }
}

TEST_F(ReplacedFiles, AreNoneOfOthers) {
  const std::string header = "{\"w\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]}}";
  const std::string model =
      StrCat(std::string(1, static_cast<char>(header.size())), std::string(7, '\0'), header);
  const std::string shard = "model-00001-of-00002.safetensors";
  std::ofstream(File(shard)) << model;
  std::ofstream(File("model.safetensors.index.json"))
      << "{\"weight_map\":{\"w\":\"" << shard << "\"}}";
  std::ofstream(File("model.safetensors.part")) << "a part of another program";
  const auto before = BytesBelow(Files());
  for (const char* overwrite : {"", "--overwrite "}) {
    ExpectRun("write-table", StrCat(overwrite, "even --out ", File("model.safetensors")));
    auto after = BytesBelow(Files());
    EXPECT_EQ(after.erase(File("model.safetensors")), 1u);
    EXPECT_TRUE(after == before);
  }
}

TEST_F(ReplacedFiles, HaveOneTableOrNoneAfterAnEndAnywhere) {
  const std::string shards = "--shard-bytes 4140";
  const std::string safetensors = "--out " + File("t.safetensors");
  const std::string npy = "--format npy --out " + File("t");
  for (const auto& [out, before, after] :
       std::vector<std::tuple<std::string, std::string, std::string>>{
           {safetensors, "", shards},
           {safetensors, shards, ""},
           {safetensors, shards, shards},
           {safetensors, shards, "--shard-bytes 4180"},
           {npy, "", ""},
           {npy, "--no-heat", ""}}) {
    std::map<std::string, int> found;
    for (size_t calls = 0, is_done = 0; is_done == 0; ++calls) {
      const Traced traced = Replace(out, before, after, calls);
      if (!traced.is_possible) GTEST_SKIP() << "this machine lets no process trace its child";
      is_done = WIFEXITED(traced.wait_status) ? 1 : 0;
      std::string in = out;
      in.replace(in.find("--out"), 5, "--in");
      ++found[Read(in)];
      if (out == safetensors && is_done == 0) ++found[Read(in + ".index.json")];
    }
    std::vector<std::string> ends;
    for (const auto& [end, count] : found) ends.push_back(end);
    EXPECT_THAT(ends, testing::ElementsAre("even", "exit 2", "odd")) << before << " " << after;
  }
}

TEST_F(ReplacedFiles, HaveNoHeadAfterAnError) {
  const std::vector<std::string> names = {File("a"), File("b"), File("head"), File("z")};
  for (size_t wrong = 0; wrong < names.size(); ++wrong) {
    std::filesystem::remove_all(Files());
    std::filesystem::create_directory(Files());
    OutputFiles files;
    for (const std::string& name : names) {
      std::ofstream(name) << "old";
      ASSERT_TRUE(files.Open(name).ok());
      ASSERT_TRUE(files.file(name)->Write("new").ok());
    }
    // A directory that has come meanwhile, with a file: neither is replaced nor removed.
    std::filesystem::remove(names[wrong]);
    std::filesystem::create_directory(names[wrong]);
    std::ofstream(names[wrong] + "/file") << "of another program";
    const Status finished = files.Finish(File("head"), {});
    EXPECT_EQ(finished.code(), StatusCode::kUnavailable);
    EXPECT_THAT(finished.ToString(), HasSubstr(names[wrong]));
    const auto found = BytesBelow(Files());
    EXPECT_EQ(found.at(names[wrong] + "/file"), "of another program");
    EXPECT_FALSE(found.contains(File("head")));
    EXPECT_EQ(finished.message().find("is not there") == std::string::npos, wrong == 2);
    EXPECT_EQ(std::ranges::count_if(found, [](const auto& file) { return file.second == "old"; }),
              std::vector<int>({2, 1, 3, 0})[wrong]);
  }
}

TEST_F(ReplacedFiles, StayWhereTheirDirectoryCannotBeSynced) {
  rlimit descriptors = {};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &descriptors), 0);
  const rlimit none = {.rlim_cur = 0, .rlim_max = descriptors.rlim_max};
  for (const std::vector<std::string>& names :
       {std::vector<std::string>{"head"}, std::vector<std::string>{"a", "head"}}) {
    {
      OutputFiles files;
      for (const std::string& name : names) {
        std::ofstream(File(name)) << "old";
        ASSERT_TRUE(files.Open(File(name)).ok());
      }
      ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
      const Status finished = files.Finish(File("head"), {});
      ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &descriptors), 0);
      EXPECT_EQ(finished.code(), StatusCode::kResourceExhausted);
    }
    const auto found = BytesBelow(Files());
    EXPECT_EQ(found.size(), names.size());
    for (const std::string& name : names) EXPECT_EQ(found.at(File(name)), "old");
  }
}

TEST_F(ReplacedFiles, AreReadAsTheMessageSaysIfAStaleOneCannotBeRemoved) {
  std::filesystem::create_directories(File("stale/directory"));
  const std::string stale[] = {File("stale")};
  for (const auto& [names, has_old, message] :
       std::vector<std::tuple<std::vector<std::string>, bool, std::string>>{
           {{"head"}, false, File("head is in place and whole")},
           {{"a", "head"}, true, File("head is not there, so that nobody reads a part")},
           {{"a", "head"}, false, File("head is not there, so that nobody reads a part")}}) {
    for (const char* name : {"a", "head"}) std::filesystem::remove(File(name));
    if (has_old) std::ofstream(File("head")) << "old";
    OutputFiles files;
    for (const std::string& name : names) ASSERT_TRUE(files.Open(File(name)).ok());
    const Status finished = files.Finish(File("head"), stale);
    EXPECT_THAT(finished.ToString(), HasSubstr(message));
    EXPECT_EQ(std::filesystem::exists(File("head")), names.size() == 1);
    EXPECT_THAT(finished.ToString(),
                HasSubstr(stale[0] + " of an earlier table cannot be removed"));
  }
}

TEST_F(ReplacedFiles, AreNoTableWithTheNameOfAShard) {
  const std::string named = File("t-00001-of-00002.safetensors");
  ExpectRun("write-table", "even --out " + named);
  ExpectRun("write-table", "odd --overwrite --out " + File("t.safetensors"));
  EXPECT_EQ(Read("--in " + named), "even");
}

TEST_F(ReplacedFiles, GetTheirNamesInTheOrderInWhichReadersNeedThem) {
  ExpectRun("write-table", "even --shard-bytes 4140 --out " + File("t.safetensors"));
  const auto calls_of = [&](std::vector<std::string> words) {
    const std::string place = Files();
    Traced traced = RunTraced("EMBANK_COMMAND", words, place);
    for (std::string& call : traced.calls) {
      for (size_t at; (at = call.find(place)) != std::string::npos;) call.erase(at, place.size());
    }
    return traced;
  };
  const Traced table = calls_of({"write-table", StorePath(), "even", "--overwrite", "--out",
                                 File("t.safetensors"), "--shard-bytes", "4170"});
  if (!table.is_possible) GTEST_SKIP() << "this machine lets no process trace its child";
  const std::vector<std::string> files = {"/t-00001-of-00002.safetensors",
                                          "/t-00002-of-00002.safetensors",
                                          "/t.safetensors.index.json"};
  std::vector<std::string> expected;
  for (const std::string& file : files) expected.push_back(StrCat("fsync ", file, ".part"));
  for (const char* call :
       {"fsync ", "unlink /t.safetensors.index.json", "fsync ", "unlink /t.safetensors",
        "unlink stale", "unlink stale", "unlink stale"}) {
    expected.push_back(call);
  }
  for (const std::string& file : files) {
    if (file == files[2]) expected.push_back("fsync ");
    expected.push_back(StrCat("rename ", file, ".part ", file));
  }
  expected.push_back("fsync ");
  std::vector<std::string> calls = table.calls;
  for (std::string& call : calls) {
    if (call.ends_with("-of-00003.safetensors")) call = "unlink stale";
  }
  EXPECT_EQ(calls, expected);
  EXPECT_EQ(calls_of({"dump", StorePath(), "even", "--out", File("x")}).calls,
            (std::vector<std::string>{"fsync /x.part", "fsync ", "rename /x.part /x", "fsync "}));
}

}  // namespace
}  // namespace embank::test::replaced_files_test
