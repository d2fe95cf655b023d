#include "base/str_cat.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "base/function_ref.h"

namespace embank::test::str_cat_test {
namespace {

TEST(StrCat, PutsWordsAndNumbersTogether) {
  const std::string text = "c";
  EXPECT_EQ(StrCat("a", std::string_view("b"), text, 1, uint8_t{255}, -2L, 1.5, 0.1F),
            "abc1255-21.50.1");
  EXPECT_EQ(StrCat(std::numeric_limits<uint64_t>::max(), " ", std::numeric_limits<int64_t>::min()),
            "18446744073709551615 -9223372036854775808");
  EXPECT_EQ(StrCat(), "");
}

TEST(StrCat, WritesSixDigitsOfAFraction) {
  EXPECT_EQ(StrCat(1.0 / 3, " ", 1e300, " ", 1234567.0, " ", -0.0),
            "0.333333 1e+300 1.23457e+06 -0");
  EXPECT_EQ(
      StrCat(std::numeric_limits<double>::infinity(), " ", -std::numeric_limits<float>::infinity(),
             " ", -std::numeric_limits<double>::quiet_NaN()),
      "inf -inf nan");
}

TEST(StrCat, FillsUpWithZeros) {
  EXPECT_EQ(StrCat(Hex(0xabcU, 8), " ", Hex(uint64_t{0}), " ", Dec(42U, 9)),
            "00000abc 0 000000042");
  EXPECT_EQ(StrCat(Hex(std::numeric_limits<uint64_t>::max(), 4), Dec(1234U, 2)),
            "ffffffffffffffff1234");
}

TEST(StrAppend, GoesOnWithAText) {
  std::string text = "a";
  StrAppend(&text, "b", 1);
  StrAppend(&text);
  EXPECT_EQ(text, "ab1");
}

TEST(StrJoin, PutsSomethingBetween) {
  const std::vector<int> numbers = {1, 2, 3};
  EXPECT_EQ(StrJoin(numbers, ", "), "1, 2, 3");
  EXPECT_EQ(StrJoin(std::vector<int>(), ", "), "");
  EXPECT_EQ(StrJoin(numbers, "", [](std::string* out, int n) { out->append(n, 'x'); }), "xxxxxx");
}

TEST(FunctionRef, CallsTheObjectItself) {
  int calls = 0;
  auto count = [&calls](int by) { return calls += by; };
  const FunctionRef<int(int)> ref = count;
  const FunctionRef<int(int)> copy = ref;
  EXPECT_EQ(ref(2), 2);
  EXPECT_EQ(copy(3), 5);
}

}  // namespace
}  // namespace embank::test::str_cat_test
