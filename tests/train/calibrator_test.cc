// The calibrator: hot rows of a log, and its inputs parted into hot and cold ones.
#include "train/fae/calibrator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <numeric>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "base/str_cat.h"
#include "base/threads/executor.h"
#include "tests/support/scratch_directory.h"
#include "train/fae/fae_file.h"
#include "train/fae/input_classifier.h"
#include "train/generator/click_generator.h"
#include "train/popularity/cutoff.h"

namespace embank::test::calibrator_test {
namespace {

using testing::HasSubstr;

// Samples of a batch, given in parts.
class BatchSource final : public ClickSource {
 public:
  // `samples` outlives this, which gives the first ones.
  BatchSource(ClickColumns columns, const ClickBatch& samples, uint32_t given)
      : columns_(std::move(columns)), samples_(samples), given_(given) {}
  BatchSource(ClickColumns columns, const ClickBatch& samples)
      : BatchSource(std::move(columns), samples, samples.samples) {}

  const ClickColumns& columns() const override { return columns_; }
  StatusOr<uint32_t> Next(uint32_t samples_max, ClickBatch* batch) override {
    batch->Clear(columns_.ids.size());
    const uint32_t begin = std::exchange(next_, std::min(next_ + samples_max, given_));
    AppendSamples(samples_, begin, next_, batch);
    return batch->samples;
  }
  DataPosition position() const override { return next_; }
  Status SkipTo(DataPosition /*position*/) override { return OkStatus(); }
  double FractionRead() const override { return static_cast<double>(next_) / given_; }

 private:
  const ClickColumns columns_;
  const ClickBatch& samples_;
  const uint32_t given_;
  uint32_t next_ = 0;
};

// A source that gives fewer samples at a time than it is asked for.
class ShortBatches final : public ClickSource {
 public:
  ShortBatches(std::unique_ptr<ClickSource> source, uint32_t samples_max)
      : source_(std::move(source)), samples_max_(samples_max) {}

  const ClickColumns& columns() const override { return source_->columns(); }
  StatusOr<uint32_t> Next(uint32_t samples_max, ClickBatch* batch) override {
    return source_->Next(std::min(samples_max, samples_max_), batch);
  }
  DataPosition position() const override { return source_->position(); }
  Status SkipTo(DataPosition position) override { return source_->SkipTo(std::move(position)); }
  double FractionRead() const override { return source_->FractionRead(); }

 private:
  const std::unique_ptr<ClickSource> source_;
  const uint32_t samples_max_;
};

// Three large tables, one of them with bags, and a small one.
constexpr uint32_t kFields = 4;

constexpr uint32_t kSamplesMax = 200'000;

std::unique_ptr<ClickGenerator> Generator() {
  ClickSchema schema = {.name = "hot", .dense = 1, .fields = {}};
  schema.fields.push_back({.name = "user", .cardinality = 200'000, .exponent = 1.2});
  schema.fields.push_back({.name = "place", .cardinality = 500, .exponent = 0.79});
  schema.fields.push_back({.name = "item", .cardinality = 50'000, .exponent = 1.3});
  schema.fields.push_back({.name = "seen", .cardinality = 20'000, .exponent = 1.4, .bag_max = 3});
  ClickGeneratorOptions options;
  options.samples = kSamplesMax;
  auto log = ClickGenerator::Create(schema, options, nullptr);
  EXPECT_TRUE(log.ok()) << log.status();
  return *std::move(log);
}

// The first samples of one log, which is made once.
std::unique_ptr<ClickSource> Log(uint32_t samples) {
  static const ClickColumns columns = Generator()->columns();
  static const ClickBatch all = [] {
    ClickBatch batch;
    Generator()->Generate(0, kSamplesMax, nullptr, &batch);
    return batch;
  }();
  return std::make_unique<BatchSource>(columns, all, samples);
}

CalibrationOptions OptionsOf(uint64_t budget_bytes) {
  return {.budget_bytes = budget_bytes, .row_bytes = std::vector<uint32_t>(kFields, 500)};
}

Status NoProgress(double /*fraction*/, uint64_t /*samples*/) { return OkStatus(); }

Calibration CalibrationOf(ClickSource* log, const CalibrationOptions& options) {
  StatusOr<Calibration> calibration =
      Calibrate(log, options, [](double part, uint64_t n) { return NoProgress(part, n); });
  EXPECT_TRUE(calibration.ok()) << calibration.status();
  return calibration.ok() ? *std::move(calibration) : Calibration();
}

struct Parted {
  ClassifiedLog log;
  std::vector<bool> is_hot;                // of each sample
  std::vector<std::vector<uint64_t>> ids;  // of each sample, with its tables
};

Parted PartedBy(ClickSource* log, const Calibration& calibration) {
  Parted parted;
  const auto add = [&](const ClickBatch& batch, uint32_t sample, bool is_hot) {
    parted.is_hot.push_back(is_hot);
    std::vector<uint64_t>& ids = parted.ids.emplace_back();
    for (size_t i = 0; i < batch.features.size(); ++i) {
      for (const uint64_t id : batch.features[i].OfSample(sample)) {
        ids.push_back(calibration.table_of_column[i]);
        ids.push_back(id);
      }
    }
    return OkStatus();
  };
  StatusOr<ClassifiedLog> classified = ClassifyLog(
      log, calibration, add, [](double part, uint64_t n) { return NoProgress(part, n); });
  EXPECT_TRUE(classified.ok()) << classified.status();
  if (classified.ok()) parted.log = *std::move(classified);
  return parted;
}

// A sample is hot if all of its ids are hot at the end, and only then.
void ExpectRightClasses(const Parted& parted, const CalibrationOptions& options) {
  const std::vector<IdPlaces>& tables = parted.log.hot_ids.tables;
  uint64_t hot = 0;
  for (size_t i = 0; i < parted.is_hot.size(); ++i) {
    bool all_hot = true;
    for (size_t k = 0; k < parted.ids[i].size(); k += 2) {
      all_hot &= tables[parted.ids[i][k]].PlaceOf(parted.ids[i][k + 1]) != IdPlaces::kNone;
    }
    ASSERT_EQ(parted.is_hot[i], all_hot) << "sample " << i;
    hot += all_hot ? 1 : 0;
  }
  EXPECT_EQ(parted.log.hot_samples, hot);
  EXPECT_EQ(parted.log.samples, parted.is_hot.size());
  uint64_t bytes = 0;
  for (const IdPlaces& table : tables) bytes += table.size() * options.row_bytes[0];
  EXPECT_EQ(parted.log.hot_bytes, bytes);
  EXPECT_LE(bytes, options.budget_bytes);
}

TEST(InputClassifier, IsBruteForceForBagsAndSharedTables) {
  constexpr uint32_t kSamples = 5'000;
  const CounterRandom random(1);
  uint64_t drawn = 0;
  // Three features, of which the first and the bags share a table, and bags of 0 to 3 ids.
  HotIds hot_ids = {.tables = std::vector<IdPlaces>(2), .table_of_column = {0, 1, 0}};
  for (uint64_t id = 0; id < 100; ++id) {
    if (random.Bits(drawn++) % 4 != 0) hot_ids.tables[0].Add(id);
    if (random.Bits(drawn++) % 4 != 0) hot_ids.tables[1].Add(id + 1'000);
  }
  ClickBatch batch;
  batch.Clear(3);
  std::vector<uint8_t> expected;
  for (uint32_t i = 0; i < kSamples; ++i) {
    RowBag bag = {.feature = 2};
    const uint64_t size = random.Bits(drawn++) % 4;
    for (uint64_t k = 0; k < size; ++k) bag.ids.push_back(random.Bits(drawn++) % 100);
    bag.weights.assign(size, 0.5f);
    const uint64_t first = random.Bits(drawn++) % 100;
    const uint64_t second = 1'000 + random.Bits(drawn++) % 100;
    bool is_hot = hot_ids.tables[0].PlaceOf(first) != IdPlaces::kNone &&
                  hot_ids.tables[1].PlaceOf(second) != IdPlaces::kNone;
    for (const uint64_t id : bag.ids) is_hot &= hot_ids.tables[0].PlaceOf(id) != IdPlaces::kNone;
    expected.push_back(is_hot ? 1 : 0);
    AppendRow({.ids = {first, second, 0}, .bags = {bag}}, &batch);
  }
  InputClassifier classifier(&hot_ids);
  std::vector<uint8_t> is_hot = {7, 7, 7};
  classifier.Classify(batch, {}, nullptr, &is_hot);
  EXPECT_EQ(is_hot, expected);
  // The order of probes is that of the batch before: the last feature has the most cold bags.
  for (const uint32_t threads : {1, 2, 5}) {
    const std::unique_ptr<Executor> executor = MakeThreadPool(threads);
    for (int i = 0; i < 2; ++i) {
      classifier.Classify(batch, {}, executor.get(), &is_hot);
      EXPECT_EQ(is_hot, expected) << threads << " threads";
    }
  }
  const auto hot = static_cast<size_t>(std::ranges::count(expected, 1));
  EXPECT_GT(hot, kSamples / 5);
  EXPECT_LT(hot, kSamples / 2);
}

TEST(InputClassifier, EmptyBagsAreHotAndNoIdsMakeAllOthersCold) {
  const HotIds none = {.tables = std::vector<IdPlaces>(1), .table_of_column = {0}};
  ClickBatch batch;
  batch.Clear(1);
  for (const std::vector<uint64_t>& ids : std::vector<std::vector<uint64_t>>{{}, {5}, {}, {5, 6}}) {
    AppendRow({.ids = {0}, .bags = {{.feature = 0, .ids = ids}}}, &batch);
  }
  std::vector<uint8_t> is_hot;
  InputClassifier classifier(&none);
  classifier.Classify(batch, {}, nullptr, &is_hot);
  EXPECT_THAT(is_hot, testing::ElementsAre(1, 0, 1, 0));
  classifier.Classify(batch, std::vector<uint32_t>{0}, nullptr, &is_hot);
  EXPECT_THAT(is_hot, testing::Each(1)) << "a feature that is known to be hot is not looked up";
  classifier.Classify(batch, {}, nullptr, &is_hot);
  EXPECT_THAT(is_hot, testing::ElementsAre(1, 0, 1, 0)) << "it was known for one batch";
}

// Parts of a batch whose first samples are all hot, whose last ones are, and that have one cold id
// or one hot sample alone.
TEST(InputClassifier, FindsColdIdsAtAnyPlaceOfAPart) {
  HotIds hot_ids = {.tables = std::vector<IdPlaces>(2), .table_of_column = {0, 1}};
  hot_ids.tables[0].Add(0);
  hot_ids.tables[1].Add(0);
  for (const uint32_t samples : {1u, 1023u, 1024u, 4096u, 4097u, 10'000u}) {
    InputClassifier classifier(&hot_ids);
    for (const uint32_t at : {0u, samples / 2, samples - 1}) {
      for (const bool is_one_hot : {false, true}) {
        ClickBatch batch;
        batch.Clear(2);
        for (uint32_t i = 0; i < samples; ++i) {
          AppendRow({.ids = {0, (i == at) == is_one_hot ? 0u : 1u}}, &batch);
        }
        std::vector<uint8_t> expected(samples, is_one_hot ? 0 : 1);
        expected[at] = is_one_hot ? 1 : 0;
        std::vector<uint8_t> is_hot;
        classifier.Classify(batch, {}, nullptr, &is_hot);
        EXPECT_EQ(is_hot, expected) << samples << ", " << at << ", " << is_one_hot;
      }
    }
  }
}

TEST(Calibrator, CountsASmallLogAsAWhole) {
  constexpr uint32_t kSamples = 20'000;
  const CalibrationOptions options = OptionsOf(2'000'000);
  const Calibration calibration = CalibrationOf(Log(kSamples).get(), options);
  ASSERT_EQ(calibration.tables.size(), kFields);
  EXPECT_EQ(calibration.samples, kSamples);
  EXPECT_EQ(calibration.counted_share, 1.0);
  EXPECT_GE(calibration.choice.hot_bytes, 1'800'000u);
  EXPECT_EQ(calibration.tables[1].name, "place");
  EXPECT_TRUE(calibration.tables[1].is_small);
  EXPECT_FALSE(calibration.tables[0].is_small);

  const Parted parted = PartedBy(Log(kSamples).get(), calibration);
  ExpectRightClasses(parted, options);
  // All inputs were kept.
  EXPECT_EQ(static_cast<double>(parted.log.hot_samples) / kSamples, calibration.hot_input_share);
  EXPECT_GT(calibration.hot_input_share, 0.05);
  EXPECT_LT(calibration.hot_input_share, 0.95);
  EXPECT_EQ(parted.log.hot_bytes, calibration.choice.hot_bytes) << "the reserve is exact";
  EXPECT_EQ(parted.log.hot_ids.tables[1].size(), calibration.tables[1].hot_rows);
}

// The rows of large tables in the order of their shares of lookups, which are counted in a map.
TEST(Calibrator, TheHotIdsAreTheMostPopularOnesOfTheLog) {
  constexpr uint32_t kSamples = 20'000;
  const CalibrationOptions options = OptionsOf(2'000'000);
  const Calibration calibration = CalibrationOf(Log(kSamples).get(), options);
  ASSERT_EQ(calibration.tables.size(), kFields);
  ClickBatch log;
  ASSERT_EQ(*Log(kSamples)->Next(kSamples, &log), kSamples);
  std::vector<std::map<Key, uint32_t>> counts(kFields);
  uint64_t left = options.budget_bytes;
  struct Row {
    double share;
    uint32_t table;
    Key id;
  };
  std::vector<Row> rows;
  for (uint32_t table = 0; table < kFields; ++table) {
    const std::vector<uint64_t>& ids = log.features[table].ids;
    for (const Key id : ids) ++counts[table][id];
    const bool is_small = counts[table].size() * options.row_bytes[table] < kSmallTableBytes;
    EXPECT_EQ(calibration.tables[table].is_small, is_small) << table;
    if (is_small) left -= counts[table].size() * options.row_bytes[table];
    for (const auto& [id, count] : counts[table]) {
      if (is_small) continue;
      rows.push_back({ScoreOf({id, count}) / static_cast<double>(ids.size()), table, id});
    }
  }
  std::ranges::sort(rows, std::ranges::greater(), &Row::share);
  std::vector<std::vector<std::pair<int64_t, Key>>> expected(kFields);
  for (const Row& row : rows) {
    if (left < options.row_bytes[row.table]) break;
    left -= options.row_bytes[row.table];
    expected[row.table].emplace_back(-int64_t{counts[row.table][row.id]}, row.id);
  }
  for (uint32_t table = 0; table < kFields; ++table) {
    std::ranges::sort(expected[table]);
    std::vector<Key> ids;
    for (const auto& [count, id] : expected[table]) ids.push_back(id);
    EXPECT_EQ(calibration.choice.ids[table], ids) << table;
    EXPECT_EQ(ids.empty(), calibration.tables[table].is_small) << table;
  }
}

// Each input has an id of its own, so that one that were counted twice would be seen.
TEST(Calibrator, CountsEachInputOfTheSampleOnce) {
  constexpr uint32_t kSamples = 130'000;
  constexpr uint32_t kColumns = 8;
  static_assert(uint64_t{kSamples} * kColumns > kFullProfileIdsMax);
  ClickColumns columns;
  ClickBatch samples;
  samples.Clear(kColumns);
  samples.samples = kSamples;
  for (uint32_t column = 0; column < kColumns; ++column) {
    columns.ids.push_back(StrCat("feature ", column));
    samples.features[column].ids.resize(kSamples);
    std::iota(samples.features[column].ids.begin(), samples.features[column].ids.end(), Key{7});
  }
  BatchSource log(columns, samples);
  const Calibration calibration = CalibrationOf(
      &log, {.budget_bytes = 1'000'000, .row_bytes = std::vector<uint32_t>(kColumns, 64)});
  ASSERT_EQ(calibration.tables.size(), kColumns);
  EXPECT_EQ(calibration.counted_share, kSampledShareDefault);
  for (const CalibratedTable& table : calibration.tables) {
    EXPECT_EQ(table.rows_seen, table.accesses) << "an input was counted twice";
    // 130,000 x 0.05, and four times its deviation.
    EXPECT_NEAR(static_cast<double>(table.accesses), 6'500, 4 * 79);
  }
}

TEST(Calibrator, ASampleOfALargeLogFillsTheBudgetAndTellsTheShareOfHotInputs) {
  constexpr uint32_t kSamples = kSamplesMax;  // twice those whose ids are kept
  const CalibrationOptions options = OptionsOf(2'000'000);
  const Calibration calibration = CalibrationOf(Log(kSamples).get(), options);
  ASSERT_EQ(calibration.tables.size(), kFields);
  EXPECT_GT(calibration.ids, kFullProfileIdsMax);
  EXPECT_EQ(calibration.counted_share, kSampledShareDefault);
  EXPECT_NEAR(static_cast<double>(calibration.tables[0].accesses), 10'000, 400);
  EXPECT_LE(calibration.choice.bound_bytes, 2e6);
  EXPECT_GE(calibration.choice.hot_bytes, 1'800'000u);

  const Parted parted = PartedBy(Log(kSamples).get(), calibration);
  ExpectRightClasses(parted, options);
  const double share = static_cast<double>(parted.log.hot_samples) / kSamples;
  EXPECT_NEAR(calibration.hot_input_share, share, 0.01);
  EXPECT_GT(share, 0.05);
  EXPECT_LT(share, 0.95);
  EXPECT_EQ(parted.log.hot_bytes, calibration.choice.hot_bytes) << "small tables are counted";
}

TEST(Calibrator, ATableIsSmallBelowAMillionBytes) {
  const ClickColumns columns = {.dense = {}, .ids = {"a", "b", "c"}, .tables = {"t", "u", "t"}};
  // Half of the rows of table t are in its first feature, and the others in its last.
  constexpr uint32_t kRowBytes = 80;
  constexpr uint32_t kRows = kSmallTableBytes / kRowBytes;
  ClickBatch samples;
  samples.Clear(3);
  for (uint64_t i = 0; i < kRows; i += 2) AppendRow({.ids = {i, i % 7, i + 1}}, &samples);
  for (const bool is_small : {false, true}) {
    BatchSource log(columns, samples, samples.samples - (is_small ? 1 : 0));
    const Calibration calibration = CalibrationOf(
        &log, {.budget_bytes = 10'000'000, .row_bytes = std::vector<uint32_t>(3, kRowBytes)});
    ASSERT_EQ(calibration.tables.size(), 2);
    EXPECT_EQ(calibration.tables[0].is_small, is_small);
    EXPECT_EQ(calibration.tables[0].rows, kRows - (is_small ? 2 : 0));
    EXPECT_TRUE(calibration.tables[1].is_small);
    EXPECT_EQ(calibration.choice.reserved_bytes,
              is_small ? (kRows - 2 + 7) * kRowBytes : 7 * kRowBytes);
  }
}

TEST(Calibrator, DependsOnNeitherThreadsNorBatches) {
  constexpr uint32_t kSamples = kSamplesMax;
  CalibrationOptions options = OptionsOf(1'500'000);
  const Calibration expected = CalibrationOf(Log(kSamples).get(), options);
  const Parted parts = PartedBy(Log(kSamples).get(), expected);
  options.threads = 3;
  ShortBatches log(Log(kSamples), 777);
  const Calibration other = CalibrationOf(&log, options);
  EXPECT_EQ(other.choice.threshold, expected.choice.threshold);
  EXPECT_EQ(other.choice.ids, expected.choice.ids);
  EXPECT_EQ(other.hot_input_share, expected.hot_input_share);
  ShortBatches again(Log(kSamples), 1'001);
  const Parted other_parts = PartedBy(&again, other);
  EXPECT_EQ(other_parts.is_hot, parts.is_hot);
  for (size_t i = 0; i < kFields; ++i) {
    const auto ids = other_parts.log.hot_ids.tables[i].ids();
    EXPECT_THAT(std::vector(ids.begin(), ids.end()),
                testing::ElementsAreArray(parts.log.hot_ids.tables[i].ids()))
        << "the places of table " << i;
  }
}

// A log that has got more ids since it was counted takes no more memory for them.
TEST(Calibrator, IdsOfSmallTablesAreHotFromTheirFirstSampleOnUpToTheirNumber) {
  const ClickColumns columns = {.dense = {}, .ids = {"a", "b"}, .tables = {"t", "t"}};
  ClickBatch samples;
  samples.Clear(2);
  const std::vector<std::pair<uint64_t, uint64_t>> ids = {{5, 6}, {6, 5}, {7, 8}, {7, 7},
                                                          {8, 5}, {9, 7}, {5, 5}};
  for (const auto& [a, b] : ids) AppendRow({.ids = {a, b}}, &samples);
  Calibration calibration;
  calibration.options.budget_bytes = 35;
  calibration.table_of_column = {0, 0};
  calibration.tables = {{.name = "t", .is_small = true, .row_bytes = 10, .hot_rows = 3}};
  calibration.choice.reserved_bytes = calibration.choice.hot_bytes = 30;
  calibration.choice.ids.resize(1);
  calibration.samples = ids.size();
  for (const uint32_t batch : {1, 2, 100}) {
    ShortBatches log(std::make_unique<BatchSource>(columns, samples), batch);
    const Parted parted = PartedBy(&log, calibration);
    EXPECT_THAT(parted.log.hot_ids.tables[0].ids(), testing::ElementsAre(5, 6, 7));
    EXPECT_THAT(parted.is_hot, testing::ElementsAre(true, true, false, true, false, false, true));
    EXPECT_EQ(parted.log.hot_bytes, 30);
  }
}

TEST(Calibrator, TheCurveFallsAndIsPictured) {
  const Calibration calibration = CalibrationOf(Log(20'000).get(), OptionsOf(2'000'000));
  const std::vector<PopularityPoint>& curve = calibration.curve;
  ASSERT_GT(curve.size(), 100u);
  EXPECT_EQ(curve.front().rows_share, 1.0);
  EXPECT_EQ(curve.front().inputs_share, 1.0) << "the whole log was counted";
  EXPECT_EQ(curve.back().rows_share, 0.0);
  for (size_t i = 1; i < curve.size(); ++i) {
    EXPECT_GT(curve[i].threshold, curve[i - 1].threshold);
    EXPECT_LE(curve[i].rows_share, curve[i - 1].rows_share);
    EXPECT_LE(curve[i].inputs_share, curve[i - 1].inputs_share);
    if (curve[i - 1].threshold <= calibration.choice.threshold &&
        calibration.choice.threshold < curve[i].threshold) {
      EXPECT_LE(curve[i].inputs_share, calibration.hot_input_share);
      EXPECT_GE(curve[i - 1].inputs_share, calibration.hot_input_share);
    }
  }
  const std::string svg = CalibrationSvg(curve, calibration.choice.threshold);
  EXPECT_THAT(svg, testing::StartsWith("<svg "));
  EXPECT_THAT(svg, testing::EndsWith("</svg>\n"));
  EXPECT_THAT(svg, HasSubstr(StrCat("chosen: ", calibration.choice.threshold)));
  EXPECT_THAT(svg, testing::Not(HasSubstr("nan")));
  size_t lines = 0;
  for (size_t at = svg.find("<polyline"); at != std::string::npos;
       at = svg.find("<polyline", at + 1))
    ++lines;
  EXPECT_EQ(lines, 2);
}

TEST(Calibrator, WithoutLargeTablesThereIsNoThreshold) {
  const CalibrationOptions options = {.budget_bytes = 1 << 30,
                                      .row_bytes = std::vector<uint32_t>(kFields, 1)};
  const Calibration calibration = CalibrationOf(Log(5'000).get(), options);
  EXPECT_TRUE(std::isinf(calibration.choice.threshold));
  EXPECT_EQ(calibration.hot_input_share, 1.0);
  EXPECT_THAT(CalibrationSvg(calibration.curve, calibration.choice.threshold),
              HasSubstr("All tables are small"));
  const Parted parted = PartedBy(Log(5'000).get(), calibration);
  ExpectRightClasses(parted, options);
  EXPECT_EQ(parted.log.hot_samples, 5'000u);
}

TEST(Calibrator, AllRowsAreHotWithinALargeBudget) {
  const CalibrationOptions options = OptionsOf(uint64_t{1} << 30);
  const Calibration calibration = CalibrationOf(Log(5'000).get(), options);
  EXPECT_TRUE(calibration.choice.has_all);
  EXPECT_EQ(calibration.hot_input_share, 1.0);
  const Parted parted = PartedBy(Log(5'000).get(), calibration);
  ExpectRightClasses(parted, options);
  EXPECT_EQ(parted.log.hot_samples, 5'000u);
}

TEST(Calibrator, WritesTheSamplesOfEachClassInTheOrderOfTheLog) {
  constexpr uint32_t kSamples = 10'000;
  const CalibrationOptions options = OptionsOf(1'700'000);
  const std::unique_ptr<ClickSource> log = Log(kSamples);
  const Calibration calibration = CalibrationOf(log.get(), options);
  ASSERT_EQ(calibration.tables.size(), kFields);
  const Parted parted = PartedBy(Log(kSamples).get(), calibration);

  const ScratchDirectory directory;
  const std::string path = directory.path() + "/log.fae";
  auto writer = FaeWriter::Create(path, log->columns());
  ASSERT_TRUE(writer.ok()) << writer.status();
  const auto progress = [](double part, uint64_t n) { return NoProgress(part, n); };
  const auto written = WriteBatches(Log(kSamples).get(), calibration, writer->get(), progress);
  ASSERT_TRUE(written.ok()) << written.status();
  FaeHeader header;
  header.columns = log->columns();
  header.dims.assign(kFields, 16);
  header.row_bytes = options.row_bytes;
  ASSERT_EQ((*writer)->Finish(header, written->hot_ids), OkStatus());

  const auto file = FaeFile::Open(path);
  ASSERT_TRUE(file.ok()) << file.status();
  for (const bool is_hot : {false, true}) {
    std::vector<uint64_t> expected;  // the users of the class
    for (size_t i = 0; i < kSamples; ++i) {
      if (parted.is_hot[i] == is_hot) expected.push_back(parted.ids[i][1]);
    }
    std::vector<uint64_t> read;
    ClickBatch block;
    for (size_t i = 0; i < (*file)->blocks(is_hot); ++i) {
      ASSERT_EQ((*file)->ReadBlock(is_hot, i, &block), OkStatus());
      read.insert(read.end(), block.features[0].ids.begin(), block.features[0].ids.end());
    }
    EXPECT_GT(expected.size(), 100u);
    EXPECT_EQ(read, expected) << (is_hot ? "hot" : "cold");
  }
}

TEST(Calibrator, RefusesWrongOptionsAndLogs) {
  const ClickColumns columns = {.dense = {}, .ids = {"a", "b"}, .tables = {"t", "t"}};
  ClickBatch samples;
  samples.Clear(2);
  for (uint64_t i = 0; i < 10; ++i) AppendRow({.ids = {i, i + 1}}, &samples);
  const CalibrationOptions right = {.budget_bytes = 10'000, .row_bytes = {8, 8}};
  struct Case {
    CalibrationOptions options;
    std::string words;
  };
  std::vector<Case> cases(7, {right, ""});
  cases[0].options.row_bytes = {8};
  cases[0].words = "1 id features";
  cases[1].options.row_bytes = {8, 12};
  cases[1].words = "another feature of their table";
  cases[2].options.row_bytes = {8, 0};
  cases[2].words = "at least 1";
  cases[3].options.sampled_share = 0.0;
  cases[3].words = "sampled share";
  cases[4].options.sampled_share = 1.1;
  cases[4].words = "sampled share";
  cases[5].options.threads = 0;
  cases[5].words = "threads";
  cases[6].options.budget_bytes = 87;  // 11 rows are needed
  cases[6].words = "88";
  const auto progress = [](double part, uint64_t n) { return NoProgress(part, n); };
  for (const auto& [options, words] : cases) {
    BatchSource log(columns, samples);
    const Status status = Calibrate(&log, options, progress).status();
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << words;
    EXPECT_THAT(std::string(status.message()), HasSubstr(words));
  }
  BatchSource log(columns, samples);
  const Calibration calibration = CalibrationOf(&log, right);
  const auto add = [](const ClickBatch&, uint32_t, bool) { return OkStatus(); };
  EXPECT_EQ(ClassifyLog(&log, calibration, add, progress).status().code(),
            StatusCode::kFailedPrecondition)
      << "the log is at its end";
  EXPECT_EQ(Calibrate(&log, right, progress).status().code(), StatusCode::kInvalidArgument)
      << "so it has no samples";
  const auto refuse = [](double, uint64_t) { return CancelledError("stop"); };
  BatchSource another(columns, samples);
  EXPECT_EQ(Calibrate(&another, right, refuse).status(), CancelledError("stop"));
  BatchSource last(columns, samples);
  const auto fail = [](const ClickBatch&, uint32_t, bool) { return UnavailableError("disk"); };
  EXPECT_EQ(ClassifyLog(&last, calibration, fail, progress).status(), UnavailableError("disk"));
}

}  // namespace
}  // namespace embank::test::calibrator_test
