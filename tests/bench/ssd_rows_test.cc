#include "bench/ssd_rows.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <vector>

namespace embank::ssd_rows_test {
namespace {

TEST(SsdRows, ARowTellsItsKeyAndItsVersion) {
  for (const size_t bytes : {6, 8, 256}) {
    std::vector<std::byte> row(bytes);
    WriteVersion(7, 123, row);
    EXPECT_TRUE(IsVersionOf(7, row)) << bytes;
    EXPECT_FALSE(IsVersionOf(8, row)) << bytes;
    EXPECT_EQ(VersionIn(row), 123u) << bytes;
  }
}

TEST(SsdRows, ATornRowIsNoVersion) {
  for (const size_t wrong : {0, 5, 40, 65}) {
    std::vector<std::byte> row(66);
    WriteVersion(7, 1, row);
    std::vector<std::byte> next(66);
    WriteVersion(7, 2, next);
    std::memcpy(&row[wrong / 4 * 4], &next[wrong / 4 * 4], wrong / 4 * 4 + 4 > 66 ? 2 : 4);
    EXPECT_FALSE(IsVersionOf(7, row)) << wrong;
  }
}

TEST(SsdRows, ValuesAreFinite) {
  std::vector<std::byte> row(4);
  for (Key key = 0; key < 1000; ++key) {
    WriteVersion(key, kRowVersionMax, row);
    float value = 0.0f;
    std::memcpy(&value, row.data(), sizeof(value));
    EXPECT_TRUE(std::isfinite(value));
  }
}

}  // namespace
}  // namespace embank::ssd_rows_test
