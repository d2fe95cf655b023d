#include "base/nearest_word.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace embank::nearest_word_test {
namespace {

const std::vector<std::string> kWords = {"verify", "info", "stat"};

TEST(NearestWord, IsOneChangeAway) {
  for (const char* typed : {"infoo", "inf", "infp", "ifno", "Info", "info"}) {
    EXPECT_EQ(NearestWord(typed, kWords), "info") << typed;
  }
  EXPECT_EQ(NearestWord("verfiy", kWords), "verify");
  EXPECT_EQ(NearestWord("verifies", kWords), "verify");
}

TEST(NearestWord, TheNearerOfTwoIsFound) {
  EXPECT_EQ(NearestWord("statt", {"starts", "stat"}), "stat");
  EXPECT_EQ(NearestWord("starrt", {"stat", "start"}), "start");
}

TEST(NearestWord, IsNoneWhereHalfOfTheLettersChange) {
  for (const char* typed : {"", "x", "io", "stop", "mend", "something-quite-else"}) {
    EXPECT_EQ(NearestWord(typed, kWords), "") << typed;
  }
  EXPECT_EQ(NearestWord("info", {}), "");
}

}  // namespace
}  // namespace embank::nearest_word_test
