#include "bench/workload.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <unordered_set>

#include "tests/bench/temporary_file.h"
#include "train/generator/zipf.h"

namespace embank::workload_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

KvOptions ZipfOptions(uint64_t rows, IdMode mode) {
  KvOptions options;
  options.rows = rows;
  options.distribution = *ParseDistribution("zipf:1.05");
  options.id_mode = mode;
  options.batch = 1000;
  return options;
}

KvOptions TraceOptions(const std::string& path) {
  KvOptions options;
  options.distribution = *ParseDistribution("trace:" + path);
  return options;
}

TEST(Workload, StreamHasAsManyPositionsAsRowsWithinLimits) {
  EXPECT_EQ(StreamPositions(10, 1), uint64_t{1} << 22);
  EXPECT_EQ(StreamPositions(5'000'000, 1), 5'000'000u);
  EXPECT_EQ(StreamPositions(5'000'001, 4096), 4096u * 1221);
  EXPECT_EQ(StreamPositions(uint64_t{1} << 39, 1), kPositionsMax);
  EXPECT_EQ(StreamPositions(1'000'000, 1, 16), 16'000'000u);
  EXPECT_EQ(StreamPositions(uint64_t{1} << 39, 1, 16), kPositionsMax);
}

// The workload is made on all cores; this is the workload of one thread.
TEST(Workload, IsWhatOneThreadWouldMake) {
  for (const IdMode mode : {IdMode::kPermuted, IdMode::kFirstAppearance, IdMode::kHashed}) {
    const KvOptions options = ZipfOptions(200'000, mode);
    const Workload workload = *MakeWorkload(options);
    const ZipfSampler sampler = *ZipfSampler::Create(options.rows, 1.05, options.seed);
    IdMapper mapper = *IdMapper::Create(mode, options.rows, options.seed);
    ASSERT_EQ(workload.rows.size(), options.rows);
    for (uint64_t i = 0; i < options.rows; ++i) ASSERT_EQ(workload.rows[i], mapper.KeyOf(i));
    for (uint64_t i = 0; i < 300'000; ++i) {
      uint64_t key[] = {sampler.Rank(i)};
      mapper.Map(key);
      ASSERT_EQ(workload.positions[i], key[0]) << IdModeName(mode) << " " << i;
    }
  }
}

TEST(Workload, EveryPositionIsARow) {
  KvOptions options = ZipfOptions(3000, IdMode::kHashed);
  options.distribution = *ParseDistribution("uniform");
  const Workload workload = *MakeWorkload(options);
  const std::unordered_set<Key> rows(workload.rows.begin(), workload.rows.end());
  ASSERT_EQ(rows.size(), 3000u);
  std::unordered_set<Key> met;
  for (const Key key : workload.positions) {
    ASSERT_TRUE(rows.contains(key));
    met.insert(key);
  }
  EXPECT_EQ(met.size(), 3000u);
}

TEST(Workload, TheWorkloadOfATraceIsTheTrace) {
  const TemporaryFile file(".txt", "5\n9\n5\n5\n0\n");
  const Workload workload = *MakeWorkload(TraceOptions(file.path()));
  EXPECT_THAT(workload.positions, ElementsAre(5, 9, 5, 5, 0));
  EXPECT_THAT(workload.rows, ElementsAre(5, 9, 0));
  EXPECT_TRUE(workload.trace_is_whole);
}

TEST(Workload, NamesWhatIsWrongWithATrace) {
  const TemporaryFile empty(".txt");
  EXPECT_THAT(std::string(MakeWorkload(TraceOptions(empty.path())).status().message()),
              HasSubstr("no keys"));
  const TemporaryFile broken(".txt", "1\n2x\n");
  const Status status = MakeWorkload(TraceOptions(broken.path())).status();
  EXPECT_EQ(status.code(), StatusCode::kDataLoss);
  EXPECT_THAT(std::string(status.message()), HasSubstr(":2: "));
  EXPECT_THAT(std::string(MakeWorkload(TraceOptions("/no/such.txt")).status().message()),
              HasSubstr("--dist: /no/such.txt"));
}

}  // namespace
}  // namespace embank::workload_test
