// The files of paths, directories and patterns.
#include "train/data/click_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/support/scratch_directory.h"

namespace embank::test::click_files_test {
namespace {

using testing::HasSubstr;
using Names = std::vector<std::string>;

class ClickFilesTest : public ::testing::Test {
 protected:
  void Write(const std::string& name) { std::ofstream(directory_.path() + "/" + name) << "1"; }

  // The files of names in the directory, without its path.
  StatusOr<Names> Find(const Names& names) {
    Names words;
    for (const std::string& name : names) {
      words.push_back(name == "-" ? name : directory_.path() + "/" + name);
    }
    StatusOr<Names> files = FilesOf(words);
    if (!files.ok()) return files;
    for (std::string& file : *files) {
      if (file != "-") file = file.substr(directory_.path().size() + 1);
    }
    return files;
  }

  const ScratchDirectory directory_;
};

TEST_F(ClickFilesTest, AreThoseOfPatternsAndDirectoriesByName) {
  for (const char* const name : {"day_2", "day_1", "day_0", "day_10", "day_02", "other"}) {
    Write(name);
  }
  std::filesystem::create_directories(directory_.path() + "/parts/_temporary");
  for (const char* const name :
       {"parts/b.csv", "parts/a.csv", "parts/.crc", "parts/_SUCCESS", "parts/_temporary/c.csv"}) {
    Write(name);
  }
  EXPECT_EQ(*Find({"day_1"}), Names{"day_1"});
  EXPECT_EQ(*Find({"day_*"}), (Names{"day_0", "day_1", "day_02", "day_2", "day_10"}));
  EXPECT_EQ(*Find({"day_[12]", "-", "day_0*"}), (Names{"day_1", "day_2", "-", "day_0", "day_02"}));
  EXPECT_EQ(*Find({"parts"}), (Names{"parts/a.csv", "parts/b.csv"}));
  EXPECT_EQ(*Find({"p*"}), (Names{"parts/a.csv", "parts/b.csv"}));
  EXPECT_EQ(*Find({"parts/_SUCCESS"}), Names{"parts/_SUCCESS"}) << "it is named";
}

TEST_F(ClickFilesTest, MayHaveTheCharactersOfAPattern) {
  Write("day [1].csv");
  Write("day 1.csv");
  EXPECT_EQ(*Find({"day [1].csv"}), Names{"day [1].csv"});
}

// Half of the data would be left out in silence.
TEST_F(ClickFilesTest, AreNotThoseOfADirectoryInADirectory) {
  std::filesystem::create_directories(directory_.path() + "/parts/day=2");
  for (const char* const name : {"parts/a.csv", "parts/day=2/b.csv"}) Write(name);
  const Status status = Find({"parts"}).status();
  EXPECT_TRUE(IsInvalidArgument(status)) << status;
  const std::string path = directory_.path() + "/parts";
  EXPECT_THAT(std::string(status.message()),
              HasSubstr(path + ": has the directory day=2 in it, whose files are not read; give '" +
                        path + "/*' for all"));
  EXPECT_EQ(*Find({"parts/*"}), (Names{"parts/a.csv", "parts/day=2/b.csv"}));
}

// Its lines would be trained twice, and standard input has nothing left to give.
TEST_F(ClickFilesTest, AreNamedOnce) {
  std::filesystem::create_directories(directory_.path() + "/parts");
  for (const char* const name : {"parts/a.csv", "parts/b.csv", "day_1"}) Write(name);
  std::filesystem::create_symlink("parts/a.csv", directory_.path() + "/newest");
  struct Case {
    Names names;
    std::string message;
  };
  for (const auto& [names, message] :
       {Case{{"day_1", "day_1"}, "day_1: is named twice"},
        Case{{"day_*", "day_1"}, "day_1: is named twice"},
        Case{{"parts", "parts/../parts/b*"}, "parts/../parts/b.csv: is the same file as "},
        Case{{"parts/a.csv", "newest"}, "newest: is the same file as "},
        Case{{"-", "day_1", "-"}, "-: is named twice"}}) {
    const Status status = Find(names).status();
    EXPECT_TRUE(IsInvalidArgument(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(message));
    EXPECT_THAT(std::string(status.message()), HasSubstr("would be read twice; name it once"));
  }
}

TEST_F(ClickFilesTest, NameTheWordForWhichThereIsNone) {
  std::filesystem::create_directory(directory_.path() + "/empty");
  for (const char* const name : {"no-such-file", "no*", "empty"}) {
    const Status status = Find({name}).status();
    EXPECT_TRUE(IsNotFound(status)) << name;
    EXPECT_THAT(std::string(status.message()), HasSubstr(directory_.path() + "/" + name));
  }
  std::filesystem::create_directory(directory_.path() + "/empty/deeper");
  EXPECT_THAT(std::string(Find({"empty"}).status().message()),
              HasSubstr("give '" + directory_.path() + "/empty/*' for all files and directories"));
}

}  // namespace
}  // namespace embank::test::click_files_test
