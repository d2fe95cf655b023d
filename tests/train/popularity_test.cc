// The popularity of rows: samples, counts, estimates, and the choice of hot rows.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <map>
#include <numeric>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/str_cat.h"
#include "base/threads/executor.h"
#include "train/generator/permutation.h"
#include "train/generator/zipf.h"
#include "train/popularity/chunk_estimate.h"
#include "train/popularity/cutoff.h"
#include "train/popularity/hot_choice.h"
#include "train/popularity/id_counts.h"
#include "train/popularity/sample.h"
#include "train/popularity/student_t.h"
#include "train/samples/click_batch.h"

namespace embank::test::popularity_test {
namespace {

constexpr double kNumberOfPi = 3.14159265358979323846;

// Whether ids follow the popularity of their rows, as those of Criteo's preprocessing do.
enum class Ids { kSortedByPopularity, kScattered };

// Ranks of a table's rows, drawn one for each access.
std::vector<uint64_t> Ranks(uint64_t rows, double exponent, uint64_t accesses) {
  std::vector<uint64_t> ranks(accesses);
  ZipfSampler::Create(rows, exponent, 7)->Ranks(0, ranks);
  return ranks;
}

std::vector<IdCount> EntriesOf(uint64_t rows, const std::vector<uint64_t>& ranks, Ids order) {
  const Permutation permutation(rows, 3);
  std::vector<uint32_t> counts(rows);
  for (const uint64_t rank : ranks) {
    ++counts[order == Ids::kScattered ? permutation(rank - 1) : rank - 1];
  }
  std::vector<IdCount> entries;
  for (uint64_t id = 0; id < rows; ++id) {
    if (counts[id] > 0) entries.push_back({id, counts[id]});
  }
  return entries;
}

// The 5 % sample of 11.25 million accesses to a million rows, as in the table of the reference.
constexpr uint64_t kRows = 1'000'000;
constexpr uint64_t kAccesses = 562'500;

const std::vector<IdCount>& SampledEntries(double exponent, Ids order) {
  static std::map<std::pair<double, Ids>, std::vector<IdCount>> made;
  std::vector<IdCount>& entries = made[{exponent, order}];
  if (entries.empty()) entries = EntriesOf(kRows, Ranks(kRows, exponent, kAccesses), order);
  return entries;
}

TablePopularity TableOf(std::vector<IdCount> entries, uint32_t row_bytes) {
  TablePopularity table = {.entries = std::move(entries), .row_bytes = row_bytes};
  for (const IdCount& entry : table.entries) table.accesses += entry.count;
  return table;
}

uint64_t HotEntries(const std::vector<IdCount>& entries, double cutoff) {
  return static_cast<uint64_t>(std::ranges::count_if(
      entries, [&](const IdCount& entry) { return ScoreOf(entry) >= cutoff; }));
}

TEST(InputSample, HasItsShareOfTheInputs) {
  constexpr uint64_t kInputs = 1'000'000;
  for (const double share : {0.05, 0.01, 0.5}) {
    for (const uint64_t seed : {1, 2}) {
      const InputSample sample(share, seed);
      uint64_t size = 0;
      for (uint64_t i = 0; i < kInputs; ++i) size += sample.Has(i) ? 1 : 0;
      const double deviation = std::sqrt(kInputs * share * (1.0 - share));
      EXPECT_NEAR(static_cast<double>(size), kInputs * share, 4.0 * deviation)
          << share << " with seed " << seed;
    }
  }
}

TEST(InputSample, IsAPartOfALargerOneAndDiffersBySeed) {
  const InputSample small(0.05, 1);
  const InputSample large(0.1, 1);
  const InputSample other(0.05, 2);
  uint32_t common = 0;
  for (uint64_t i = 0; i < 100'000; ++i) {
    EXPECT_LE(small.Has(i), large.Has(i)) << i;
    common += small.Has(i) && other.Has(i) ? 1 : 0;
    EXPECT_TRUE(InputSample(1.0, 1).Has(i)) << i;
  }
  EXPECT_NEAR(common, 250, 4 * std::sqrt(250)) << "0.05 x 0.05 of 100,000 in both";
}

TEST(FeatureIds, AreThoseOfSomeSamples) {
  const FeatureIds one_each = {.ids = {5, 6, 7}, .offsets = {}, .weights = {}};
  const FeatureIds bags = {.ids = {5, 6, 7}, .offsets = {0, 2, 2, 3}, .weights = {}};
  for (const FeatureIds& feature : {one_each, bags}) {
    for (const std::vector<uint32_t>& samples :
         std::vector<std::vector<uint32_t>>{{}, {0}, {1}, {2, 0, 1, 0, 0}}) {
      std::vector<uint64_t> appended = {1}, expected = {1};
      feature.AppendIdsOf(samples, &appended);
      for (const uint32_t sample : samples) {
        for (const uint64_t id : feature.OfSample(sample)) expected.push_back(id);
      }
      EXPECT_EQ(appended, expected);
    }
  }
}

TEST(IdCounts, CountsExactlyFromAnyNumberOfThreads) {
  constexpr uint32_t kParts = 16;
  constexpr size_t kPart = 5'000;
  std::vector<Key> ids(kParts * kPart);
  ZipfSampler::Create(50'000, 1.05, 1)->Ranks(0, ids);
  std::map<Key, uint32_t> counts;
  for (const Key id : ids) ++counts[id];
  // Empty slots have the id 0, and an empty field the id ~0.
  const std::vector<Key> equal_ids(2'000, kMissingId);
  counts[0] += 1;
  counts[kMissingId] += 2'000;
  std::vector<IdCount> expected;
  for (const auto& [id, count] : counts) expected.push_back({id, count});

  for (const uint32_t threads : {1, 2, 4}) {
    IdCounts counted;
    EXPECT_EQ(counted.Entries(), std::vector<IdCount>());
    counted.Add({});
    counted.Add(std::vector<Key>{0});
    const std::unique_ptr<Executor> executor = MakeThreadPool(threads);
    executor->ParallelFor(
        kParts, [&](uint32_t part) { counted.Add(std::span(ids).subspan(part * kPart, kPart)); });
    counted.Add(equal_ids);
    EXPECT_EQ(counted.Entries(), expected) << threads << " threads";
    EXPECT_EQ(counted.occurrences(), ids.size() + 2'001);
    EXPECT_EQ(counted.size(), expected.size());
  }
}

// Ids [0, ids), each of them `times` times in sequence.
std::vector<Key> RepeatedIds(uint64_t ids, uint64_t times) {
  std::vector<Key> repeated(ids * times);
  for (size_t i = 0; i < repeated.size(); ++i) repeated[i] = i / times;
  return repeated;
}

TEST(IdCounts, TakeLittleMemoryForRepeatedIds) {
  struct Case {
    uint64_t ids;
    uint64_t times;
    uint64_t added_at_once;
  };
  for (const auto& [ids, times, added_at_once] : std::vector<Case>{{0, 0, 1},
                                                                   {1, 1, 1},
                                                                   {1, 1'024, 1'024},
                                                                   {1, 100'000, 100'000},
                                                                   {2, 1'000, 2'000},
                                                                   {500, 3, 1},
                                                                   {1'000, 100, 100'000},
                                                                   {70'000, 2, 140'000}}) {
    IdCounts counted;
    const std::vector<Key> all = RepeatedIds(ids, times);
    for (size_t i = 0; i < all.size(); i += added_at_once) {
      counted.Add(std::span(all).subspan(i, std::min(added_at_once, all.size() - i)));
      const uint64_t shards = std::min<uint64_t>(counted.size(), 16);
      EXPECT_LE(counted.memory_bytes(), 64 * counted.size() + 8'192 * shards)
          << ids << " ids, " << i << " added";
    }
    EXPECT_EQ(counted.size(), ids);
    EXPECT_GE(counted.memory_bytes(), ids * sizeof(IdCount));
  }
}

TEST(StudentT, HasTheQuantilesOfTables) {
  struct Case {
    double confidence;
    uint32_t degrees;
    double t;
  };
  for (const auto& [confidence, degrees, t] : std::vector<Case>{{0.95, 34, 2.0322445},
                                                                {0.99, 34, 2.7283944},
                                                                {0.999, 34, 3.6007157},
                                                                {0.95, 10, 2.2281389},
                                                                {0.99, 5, 4.0321430},
                                                                {0.999, 120, 3.3734538}}) {
    EXPECT_NEAR(StudentT(confidence, degrees), t, 1e-6 * t) << confidence << " of " << degrees;
  }
}

TEST(StudentT, IsThatOfTheClosedFormsOfOneTwoAndManyDegrees) {
  for (const double confidence : {0.001, 0.5, 0.95, 0.999, 0.999999}) {
    const double one = std::tan(confidence * kNumberOfPi / 2.0);
    EXPECT_NEAR(StudentT(confidence, 1), one, 1e-6 * one) << confidence;
    const double two = confidence * std::sqrt(2.0 / (1.0 - confidence * confidence));
    EXPECT_NEAR(StudentT(confidence, 2), two, 1e-6 * two) << confidence;
  }
  // Normal quantiles, and the first term of the series in 1 / degrees.
  for (const auto& [confidence, z] :
       std::map<double, double>{{0.5, 0.67448975}, {0.95, 1.95996398}, {0.999, 3.29052673}}) {
    const double many = z + (z * z * z + z) / 4e6;
    EXPECT_NEAR(StudentT(confidence, 1'000'000), many, 1e-6 * many) << confidence;
  }
}

TEST(Cutoff, IsTheSampledPartOfTheShareOfAllAccesses) {
  EXPECT_DOUBLE_EQ(CutoffOf(1e-4, 60'500'000, 0.05), 302.5);
  EXPECT_DOUBLE_EQ(CutoffOf(1e-4, 3'025'000, 1.0), 302.5) << "by the accesses of the sample";
}

TEST(Cutoff, PartsRowsOfOneCountEvenly) {
  std::vector<IdCount> entries(100'000);
  for (uint64_t i = 0; i < entries.size(); ++i) entries[i] = {i, 7};
  EXPECT_EQ(HotEntries(entries, 7.0), entries.size());
  EXPECT_NEAR(static_cast<double>(HotEntries(entries, 7.25)), 75'000, 600);
  EXPECT_EQ(HotEntries(entries, 8.0), 0);
}

struct Repetitions {
  uint32_t all = 0;
  uint32_t covered = 0;
  double overshoot_max = 0.0;  // of the bound
};

void Add(const ChunkEstimator::Estimate& estimate, double truth, Repetitions* repetitions) {
  ++repetitions->all;
  repetitions->covered +=
      std::abs(truth - estimate.entries) <= estimate.upper_bound - estimate.entries + 1e-6 ? 1 : 0;
  const double overshoot = estimate.upper_bound / truth - 1.0;
  repetitions->overshoot_max = std::max(repetitions->overshoot_max, overshoot);
}

#if defined(__SANITIZE_ADDRESS__)
constexpr uint64_t kRepetitions = 40;  // 20 times as slow
#else
constexpr uint64_t kRepetitions = 400;
#endif

TEST(ChunkEstimator, IntervalsHoldTheTruthInFourHundredRepetitions) {
  for (const double exponent : {0.79, 1.05}) {
    for (const Ids order : {Ids::kSortedByPopularity, Ids::kScattered}) {
      const std::vector<IdCount>& entries = SampledEntries(exponent, order);
      std::map<double, double> truths;  // by threshold
      for (const double threshold : {1e-5, 3e-6, 2e-6}) {
        truths[threshold] =
            static_cast<double>(HotEntries(entries, CutoffOf(threshold, kAccesses, 1.0)));
      }
      std::map<double, Repetitions> repetitions;
      for (uint64_t seed = 0; seed < kRepetitions; ++seed) {
        const ChunkEstimator estimator(entries, seed);
        for (const auto& [threshold, truth] : truths) {
          Add(estimator.EntriesFrom(CutoffOf(threshold, kAccesses, 1.0)), truth,
              &repetitions[threshold]);
        }
      }
      for (const auto& [threshold, of_threshold] : repetitions) {
        const std::string what = StrCat("s ", exponent, ", t ", threshold, ", ",
                                        order == Ids::kScattered ? "scattered" : "sorted");
        RecordProperty(what, StrCat(of_threshold.covered, " ", of_threshold.overshoot_max));
        EXPECT_EQ(of_threshold.all, kRepetitions) << what;
        EXPECT_GE(of_threshold.covered, kRepetitions * 99 / 100) << what;
        EXPECT_LE(of_threshold.overshoot_max, 0.10) << what;
      }
    }
  }
}

TEST(ChunkEstimator, CountsFewChunksWhereManyEntriesAreHot) {
  const std::vector<IdCount>& entries = SampledEntries(0.79, Ids::kSortedByPopularity);
  // The highest cutoff that leaves a quarter of the entries hot.
  std::vector<double> scores;
  for (const IdCount& entry : entries) scores.push_back(ScoreOf(entry));
  std::ranges::sort(scores);
  const double cutoff = scores[scores.size() / 4 * 3];
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const ChunkEstimator::Estimate estimate = ChunkEstimator(entries, seed).EntriesFrom(cutoff);
    EXPECT_EQ(estimate.chunks, ChunkEstimator::kChunksFirst) << seed;
    EXPECT_GT(estimate.upper_bound, estimate.entries) << seed;
    // A binomial's deviation over 35 chunks, times 3.6, is 1.6 % of its mean of 256 x 35.
    EXPECT_NEAR(estimate.upper_bound / estimate.entries, 1.03, 0.02) << seed;
  }
}

TEST(ChunkEstimator, CountsMoreChunksWhereFewEntriesAreHot) {
  const std::vector<IdCount>& entries = SampledEntries(0.79, Ids::kSortedByPopularity);
  const auto chunks_max = static_cast<uint32_t>(entries.size() / ChunkEstimator::kChunkEntries);
  for (const double cutoff : {500.0, 2000.0, 1e9}) {
    const ChunkEstimator::Estimate estimate = ChunkEstimator(entries, 1).EntriesFrom(cutoff);
    const auto truth = static_cast<double>(HotEntries(entries, cutoff));
    EXPECT_LE(truth, 100) << "the case is one of few hot entries";
    EXPECT_NEAR(estimate.entries, truth, 0.05 * truth) << cutoff;
    EXPECT_GE(estimate.upper_bound, truth) << cutoff;
    EXPECT_GE(estimate.chunks, chunks_max / 10 * 9) << cutoff;
  }
  EXPECT_EQ(ChunkEstimator(entries, 1).EntriesFrom(1e9).chunks, chunks_max)
      << "no chunk has a hot entry";
}

TEST(ChunkEstimator, IsExactForSmallTablesAndWhereItCountsAll) {
  for (const uint64_t size : {0, 1, 1023, 1024, 1025, 35 * 1024, 36 * 1024 - 1, 60 * 1024 + 5}) {
    std::vector<IdCount> entries(size);
    for (uint64_t i = 0; i < size; ++i) entries[i] = {i, i % 3 == 0 ? 5u : 1u};
    const auto truth = static_cast<double>(HotEntries(entries, 5.0));
    const ChunkEstimator estimator(entries, 9);
    const ChunkEstimator::Estimate all = estimator.EntriesFrom(5.0, UINT32_MAX);
    EXPECT_EQ(all.entries, truth) << size;
    EXPECT_EQ(all.upper_bound, truth) << size;
    const ChunkEstimator::Estimate estimate = estimator.EntriesFrom(5.0);
    if (size < 36 * 1024) {
      EXPECT_EQ(estimate.entries, truth) << size;
    }
    EXPECT_NEAR(estimate.entries, truth, 0.05 * truth) << size;
    EXPECT_LE(estimate.upper_bound, static_cast<double>(size)) << size;
  }
}

// Several tables of different sizes and rows.
std::vector<TablePopularity> ThreeTables() {
  std::vector<TablePopularity> tables;
  tables.push_back(TableOf(SampledEntries(0.79, Ids::kScattered), 64));
  tables.push_back(TableOf(SampledEntries(1.05, Ids::kSortedByPopularity), 128));
  tables.push_back(TableOf(EntriesOf(20'000, Ranks(20'000, 1.05, 100'000), Ids::kScattered), 16));
  return tables;
}

uint64_t BytesOf(const std::vector<TablePopularity>& tables, const HotChoice& choice) {
  uint64_t bytes = 0;
  for (size_t i = 0; i < tables.size(); ++i) bytes += choice.ids[i].size() * tables[i].row_bytes;
  return bytes;
}

TEST(HotChoice, FillsTheBudgetAndNeverExceedsIt) {
  const std::vector<TablePopularity> tables = ThreeTables();
  uint64_t all_bytes = 0;
  for (const TablePopularity& table : tables) all_bytes += table.entries.size() * table.row_bytes;
  for (const uint64_t budget : {uint64_t{100'000}, uint64_t{1} << 20, uint64_t{5'000'000},
                                uint64_t{20'000'000}, all_bytes - 1, all_bytes, 2 * all_bytes}) {
    for (const uint64_t seed : {1, 2, 3}) {
      const StatusOr<HotChoice> choice = ChooseHot(tables, {budget, seed});
      ASSERT_TRUE(choice.ok()) << choice.status();
      EXPECT_EQ(choice->hot_bytes, BytesOf(tables, *choice)) << budget;
      EXPECT_LE(choice->hot_bytes, budget);
      EXPECT_LE(choice->bound_bytes, static_cast<double>(budget)) << "the upper bound counts";
      EXPECT_LE(choice->estimated_bytes, choice->bound_bytes);
      EXPECT_LE(choice->steps, 20) << budget;
      EXPECT_EQ(choice->has_all, budget >= all_bytes) << budget;
      if (!choice->has_all) {
        EXPECT_GE(static_cast<double>(choice->hot_bytes), 0.9 * static_cast<double>(budget));
      }
    }
  }
}

TEST(HotChoice, HotRowsAreThoseFromTheCutoffOn) {
  const std::vector<TablePopularity> tables = ThreeTables();
  const StatusOr<HotChoice> choice = ChooseHot(tables, {3'000'000, 1});
  ASSERT_TRUE(choice.ok()) << choice.status();
  for (size_t i = 0; i < tables.size(); ++i) {
    const double cutoff = choice->threshold * static_cast<double>(tables[i].accesses);
    std::vector<std::pair<int64_t, Key>> expected;
    for (const IdCount& entry : tables[i].entries) {
      if (ScoreOf(entry) >= cutoff) expected.emplace_back(-int64_t{entry.count}, entry.id);
    }
    std::ranges::sort(expected);
    ASSERT_EQ(choice->ids[i].size(), expected.size()) << i;
    for (size_t row = 0; row < expected.size(); ++row) {
      ASSERT_EQ(choice->ids[i][row], expected[row].second) << "place " << row << " of table " << i;
    }
  }
}

TEST(HotChoice, MeetsABudgetInTheMidstOfRowsOfOneCount) {
  std::vector<IdCount> entries(200'000);
  for (uint64_t i = 0; i < entries.size(); ++i) entries[i] = {i, 1};
  const std::vector<TablePopularity> tables = {TableOf(entries, 100)};
  for (const auto& choose : {ChooseHot, ChooseByFullProfile}) {
    const StatusOr<HotChoice> choice = choose(tables, {7'000'000, 1});
    ASSERT_TRUE(choice.ok()) << choice.status();
    EXPECT_LE(choice->hot_bytes, 7'000'000u);
    EXPECT_GE(choice->hot_bytes, 6'300'000u);
  }
}

TEST(HotChoice, SizeAndInputsFallAsTheThresholdRisesAndSizeFallsFaster) {
  // An input has two ids of the table, and is hot if both are.
  const std::vector<uint64_t> ranks = Ranks(kRows, 1.05, kAccesses);
  const std::vector<IdCount> entries = EntriesOf(kRows, ranks, Ids::kSortedByPopularity);
  std::vector<double> scores(kRows, 0.0);
  for (const IdCount& entry : entries) scores[entry.id] = ScoreOf(entry);
  double last_rows = 0.0;
  double last_inputs = 0.0;
  for (double threshold = 1e-2; threshold > 3e-6; threshold /= 2.0) {
    const double cutoff = CutoffOf(threshold, kAccesses, 1.0);
    const auto rows = static_cast<double>(HotIdsOf(entries, cutoff).size());
    double inputs = 0.0;
    for (size_t i = 0; i + 1 < ranks.size(); i += 2) {
      inputs += scores[ranks[i] - 1] >= cutoff && scores[ranks[i + 1] - 1] >= cutoff ? 1.0 : 0.0;
    }
    EXPECT_GE(rows, last_rows) << threshold;
    EXPECT_GE(inputs, last_inputs) << threshold;
    // From a threshold at which hundreds of rows are hot on.
    if (last_rows > 200.0) {
      EXPECT_GT(rows / last_rows, inputs / last_inputs) << threshold;
    }
    last_rows = rows;
    last_inputs = inputs;
  }
  EXPECT_GT(last_inputs, 0.0);
}

TEST(HotChoice, TheFullProfileTakesTheMostPopularRowsThatFit) {
  const std::vector<TablePopularity> tables = {
      TableOf({{10, 9}, {11, 5}, {12, 5}, {13, 1}}, 10),       // of 20 accesses
      TableOf({{20, 50}, {21, 30}, {22, 10}, {23, 10}}, 40)};  // of 100
  struct Case {
    uint64_t budget;
    std::vector<Key> first;
    std::vector<Key> second;
  };
  // The shares of accesses, plus fractions of one: 50 %, 45 %, 30 %, twice 25 %, twice 10 %, 5 %.
  for (const auto& [budget, first, second] :
       std::vector<Case>{{9, {}, {}},
                         {49, {}, {20}},
                         {50, {10}, {20}},
                         {89, {10}, {20}},
                         {110, {10, 11, 12}, {20, 21}},
                         {191, {10, 11, 12}, {20, 21, 22, 23}},
                         {200, {10, 11, 12, 13}, {20, 21, 22, 23}}}) {
    const StatusOr<HotChoice> choice = ChooseByFullProfile(tables, {budget, 1});
    ASSERT_TRUE(choice.ok()) << choice.status();
    EXPECT_EQ(choice->ids[0], first) << budget;
    EXPECT_EQ(choice->ids[1], second) << budget;
    EXPECT_LE(choice->hot_bytes, budget);
  }
}

TEST(HotChoice, EstimatesTakeNearlyTheRowsOfTheFullProfile) {
  const std::vector<TablePopularity> tables = ThreeTables();
  for (const uint64_t budget : {uint64_t{1'000'000}, uint64_t{10'000'000}}) {
    const StatusOr<HotChoice> estimated = ChooseHot(tables, {budget, 1});
    const StatusOr<HotChoice> oracle = ChooseByFullProfile(tables, {budget, 1});
    ASSERT_TRUE(estimated.ok() && oracle.ok());
    EXPECT_GE(oracle->hot_bytes + 128, budget) << "rows of up to 128 bytes are left";
    for (size_t i = 0; i < tables.size(); ++i) {
      const std::set<Key> all(oracle->ids[i].begin(), oracle->ids[i].end());
      for (const Key id : estimated->ids[i]) ASSERT_TRUE(all.contains(id)) << id;
      EXPECT_GE(static_cast<double>(estimated->ids[i].size()),
                0.85 * static_cast<double>(all.size()))
          << "table " << i;
    }
  }
}

TEST(HotChoice, EstimatesTheRowsOfTheWholeLog) {
  for (const uint64_t rows : {100, 3'000, 20'000}) {
    for (const double exponent : {0.0, 0.79, 1.05}) {
      const std::vector<uint64_t> ranks = Ranks(rows, exponent, 1'000'000);
      const InputSample sample(0.05, 1);
      std::vector<uint64_t> sampled;
      for (size_t i = 0; i < ranks.size(); ++i) {
        if (sample.Has(i)) sampled.push_back(ranks[i]);
      }
      const auto truth =
          static_cast<double>(EntriesOf(rows, ranks, Ids::kSortedByPopularity).size());
      const std::vector<IdCount> entries = EntriesOf(rows, sampled, Ids::kSortedByPopularity);
      // It is a lower bound where popularities differ.
      EXPECT_GE(EstimateRows(entries, 0.05), 0.7 * truth) << rows << ", s " << exponent;
      EXPECT_LE(EstimateRows(entries, 0.05), 1.02 * truth) << rows << ", s " << exponent;
      if (exponent == 0.0) {
        EXPECT_GE(EstimateRows(entries, 0.05), 0.98 * truth) << rows;
      }
    }
  }
  EXPECT_DOUBLE_EQ(EstimateRows(std::vector<IdCount>{{1, 1}, {2, 1}, {3, 1}, {4, 2}}, 1.0), 4.0);
  // 4 + 3 x 2 / (2 x 2 + 3 x 0.25 / 0.75) = 5.2.
  EXPECT_DOUBLE_EQ(EstimateRows(std::vector<IdCount>{{1, 1}, {2, 1}, {3, 1}, {4, 2}}, 0.25), 5.2);
}

TEST(HotChoice, ReservesMemoryForSmallTablesFirst) {
  std::vector<TablePopularity> tables = ThreeTables();
  std::vector<IdCount> entries(1'000);
  for (uint64_t i = 0; i < entries.size(); ++i) entries[i] = {i, 3};
  tables.push_back(TableOf(entries, 100));
  tables.back().is_small = true;
  tables.back().rows = 1'050;  // more than the sample has
  constexpr uint64_t kReserved = 1'050 * 100;
  for (const auto& choose : {ChooseHot, ChooseByFullProfile}) {
    const StatusOr<HotChoice> choice = choose(tables, {2'000'000, 1});
    ASSERT_TRUE(choice.ok()) << choice.status();
    EXPECT_EQ(choice->reserved_bytes, kReserved);
    EXPECT_THAT(choice->ids.back(), testing::IsEmpty());
    EXPECT_EQ(choice->hot_bytes, kReserved + BytesOf(tables, *choice));
    EXPECT_LE(choice->hot_bytes, 2'000'000u);
    EXPECT_GE(choice->hot_bytes, kReserved + (2'000'000 - kReserved) / 10 * 9);

    EXPECT_TRUE(choose(tables, {kReserved, 1}).ok());
    const Status refused = choose(tables, {kReserved - 1, 1}).status();
    EXPECT_EQ(refused.code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(refused.message()), testing::HasSubstr("105000"));
  }
}

// The largest difference of the two shares of lookups that the most popular rows of the log have,
// for any number of them (Kolmogorov and Smirnov).
double DistanceOf(const TablePopularity& log, const TablePopularity& sample) {
  std::map<Key, uint32_t> of_sample;
  for (const IdCount& entry : sample.entries) of_sample[entry.id] = entry.count;
  std::vector<IdCount> by_count = log.entries;
  std::ranges::sort(by_count, std::ranges::greater(), &IdCount::count);
  double difference = 0.0;
  double distance = 0.0;
  for (const IdCount& entry : by_count) {
    difference += entry.count / static_cast<double>(log.accesses) -
                  of_sample[entry.id] / static_cast<double>(sample.accesses);
    distance = std::max(distance, std::abs(difference));
  }
  EXPECT_NEAR(difference, 0.0, 1e-9) << "the log has all rows of the sample";
  return distance;
}

// The hot rows that a sample of 5 % gives are those of the full profile, up to the rows whose
// lookups in the sample are too few to tell their order. At 0.7 % of the rows, the share of Adnan
// et al. 2021, the last hot row has some 40 lookups in the sample, and 95 % are the same. The bar
// of 90 % ends between 1.4 % of the rows, 20 lookups and 92 %, and 2 %, 14 lookups and 87 %.
TEST(Popularity, ASampleHasTheHotRowsOfTheWholeLog) {
  constexpr uint64_t kLogRows = 100'000;
  constexpr uint32_t kRowBytes = 64;
  const std::vector<uint64_t> ranks = Ranks(kLogRows, 1.05, 8'000'000);
  const InputSample sample(kSampledShareDefault, 1);
  std::vector<uint64_t> picked;
  for (size_t i = 0; i < ranks.size(); ++i) {
    if (sample.Has(i)) picked.push_back(ranks[i]);
  }
  const TablePopularity all = TableOf(EntriesOf(kLogRows, ranks, Ids::kScattered), kRowBytes);
  const TablePopularity sampled = TableOf(EntriesOf(kLogRows, picked, Ids::kScattered), kRowBytes);
  EXPECT_LE(DistanceOf(all, sampled), 0.02);
  struct Case {
    double share;  // of all rows: those that fit into the budget
    bool is_enough;
  };
  for (const auto& [share, is_enough] : {Case{0.007, true}, {0.014, true}, {0.02, false}}) {
    const auto rows = static_cast<uint64_t>(share * kLogRows);
    const HotBudget budget = {.bytes = rows * kRowBytes};
    const StatusOr<HotChoice> oracle = ChooseByFullProfile(std::vector{all}, budget);
    const StatusOr<HotChoice> choice = ChooseHot(std::vector{sampled}, budget);
    ASSERT_TRUE(oracle.ok() && choice.ok());
    ASSERT_EQ(oracle->ids[0].size(), rows);
    const std::set<Key> hot(oracle->ids[0].begin(), oracle->ids[0].end());
    const auto common =
        std::ranges::count_if(choice->ids[0], [&](Key id) { return hot.contains(id); });
    const double overlap = static_cast<double>(common) / static_cast<double>(rows);
    RecordProperty(StrCat("overlap at ", share), StrCat(overlap));
    EXPECT_EQ(overlap >= 0.9, is_enough) << overlap << " at " << share;
  }
}

TEST(HotChoice, WithoutLargeTablesTheThresholdIsInfinite) {
  TablePopularity small = TableOf({{1, 2}, {2, 1}}, 10);
  small.is_small = true;
  small.rows = 2;
  for (const auto& choose : {ChooseHot, ChooseByFullProfile}) {
    const StatusOr<HotChoice> choice = choose(std::vector{small, small}, {40, 1});
    ASSERT_TRUE(choice.ok()) << choice.status();
    EXPECT_TRUE(std::isinf(choice->threshold));
    EXPECT_TRUE(choice->has_all);
    EXPECT_EQ(choice->hot_bytes, 40u);
  }
}

}  // namespace
}  // namespace embank::test::popularity_test
