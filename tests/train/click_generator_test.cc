// Generated click logs: their bytes, and the figures of their distributions.
#include "train/generator/click_generator.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <unordered_set>
#include <vector>

#include "base/crc32c.h"
#include "tests/bench/temporary_file.h"
#include "train/data/click_reader.h"
#include "train/dense/auc.h"
#include "train/generator/criteo_writer.h"

namespace embank::test::click_generator_test {
namespace {

std::unique_ptr<ClickGenerator> Make(const ClickSchema& schema,
                                     const ClickGeneratorOptions& options = {},
                                     Executor* executor = nullptr) {
  return *ClickGenerator::Create(schema, options, executor);
}

std::unique_ptr<ClickGenerator> Make(const char* name, const ClickGeneratorOptions& options = {}) {
  return Make(*MakeClickSchema(name, {.divisor = 100}), options);
}

// A schema of one id feature, whose ids are ranks of popularity.
ClickSchema OneField(uint64_t cardinality, double exponent, uint32_t bag_max = 1) {
  ClickSchema schema{.name = "one", .dense = 2, .fields = {}};
  schema.fields.push_back({.name = "id",
                           .cardinality = cardinality,
                           .exponent = exponent,
                           .bag_max = bag_max,
                           .missing_share = 0.0});
  return schema;
}

constexpr ClickGeneratorOptions kRanks = {.ids = {.order = IdOrder::kByPopularity}};

void ExpectEqual(const ClickBatch& a, const ClickBatch& b) {
  EXPECT_EQ(a.samples, b.samples);
  EXPECT_EQ(a.labels, b.labels);
  EXPECT_EQ(a.dense, b.dense);
  ASSERT_EQ(a.features.size(), b.features.size());
  for (size_t f = 0; f < a.features.size(); ++f) {
    EXPECT_EQ(a.features[f].ids, b.features[f].ids) << f;
    EXPECT_EQ(a.features[f].offsets, b.features[f].offsets) << f;
  }
}

uint32_t LinesCrc(uint64_t seed) {
  std::string lines;
  const auto generator = Make("criteo-kaggle", {.ids = {.seed = seed}});
  EXPECT_TRUE(AppendCriteoLines(*generator, 5, 1000, &lines).ok());
  return ExtendCrc32c(0, std::as_bytes(std::span(lines)));
}

TEST(ClickGenerator, GivesTheSameBytesForASeed) {
  EXPECT_EQ(LinesCrc(1), 1554978754u);  // released bytes
  EXPECT_NE(LinesCrc(2), LinesCrc(1));
  ClickBatch bags;
  Make("product-3")->Generate(5, 100, nullptr, &bags);
  const std::span<const uint64_t> ids(bags.features[90].ids);
  EXPECT_EQ(ExtendCrc32c(0, std::as_bytes(ids)), 766431135u);
}

TEST(ClickGenerator, GivesTheSameSamplesForAnyPartsAndThreads) {
  for (const char* name : {"criteo-kaggle", "product-3"}) {
    const auto generator = Make(name);
    ClickBatch whole, part;
    generator->Generate(100, 700, nullptr, &whole);
    for (const uint32_t threads : {1u, 2u, 5u}) {
      generator->Generate(100, 700, MakeThreadPool(threads).get(), &part);
      ExpectEqual(whole, part);
    }
    generator->Generate(350, 3, nullptr, &part);
    for (uint32_t s = 0; s < 3; ++s) {
      EXPECT_EQ(part.labels[s], whole.labels[250 + s]);
      EXPECT_EQ(part.features[7].ids[s], whole.features[7].ids[250 + s]);
    }
  }
}

TEST(ClickGenerator, IsASourceWithAPosition) {
  const auto executor = MakeThreadPool(2);
  const ClickSchema schema = *MakeClickSchema("avazu", {.divisor = 100});
  const auto generator = Make(schema, {.samples = 1000}, executor.get());
  ClickBatch batch, expected;
  ASSERT_TRUE(generator->SkipTo(300).ok());
  EXPECT_EQ(*generator->Next(600, &batch), 600u);
  generator->Generate(300, 600, nullptr, &expected);
  ExpectEqual(batch, expected);
  EXPECT_EQ(generator->position(), 900u);
  EXPECT_EQ(*generator->Next(600, &batch), 100u);
  EXPECT_EQ(*generator->Next(600, &batch), 0u);
  EXPECT_EQ(generator->SkipTo(1001).code(), StatusCode::kOutOfRange);
}

TEST(ClickGenerator, WritesLinesThatAReaderTakesBack) {
  const auto generator = Make("criteo-kaggle");
  std::string lines;
  ASSERT_TRUE(AppendCriteoLines(*generator, 40, 500, &lines).ok());
  EXPECT_NE(lines.find("\t-"), std::string::npos);
  EXPECT_NE(lines.find("\t\t"), std::string::npos);
  const TemporaryFile file(".txt", lines);
  ClickBatch generated, read;
  generator->Generate(40, 500, nullptr, &generated);
  auto reader = *ClickReader::OpenCriteo(file.path(), 0.0);
  ASSERT_EQ(*reader->Next(1000, &read), 500u);
  ExpectEqual(read, generated);
  EXPECT_TRUE(IsInvalidArgument(AppendCriteoLines(*Make("product-3"), 0, 1, &lines)));
}

TEST(ClickGenerator, WritesALogOfItsFirstSamples) {
  const auto generator = Make("criteo-kaggle");
  const TemporaryFile file(".txt", "");
  ASSERT_TRUE(WriteCriteoLog(*generator, 5000, file.path()).ok());
  ClickBatch generated, read;
  generator->Generate(0, 5000, nullptr, &generated);
  auto reader = *ClickReader::OpenCriteo(file.path(), 0.0);
  ASSERT_EQ(*reader->Next(6000, &read), 5000u);
  ExpectEqual(read, generated);
  EXPECT_TRUE(IsInvalidArgument(WriteCriteoLog(*Make("product-3"), 1, file.path())));
  EXPECT_TRUE(IsNotFound(WriteCriteoLog(*generator, 1, "/no/such/file")));
  EXPECT_EQ(WriteCriteoLog(*generator, 100, "/dev/full").code(), StatusCode::kResourceExhausted);
}

// The share of ids below `top`.
double Coverage(const std::vector<uint64_t>& ids, uint64_t top) {
  const auto covered = std::ranges::count_if(ids, [&](uint64_t id) { return id < top; });
  return static_cast<double>(covered) / static_cast<double>(ids.size());
}

TEST(ClickGenerator, CoversWhatThePapersSay) {
  constexpr uint64_t kRows = 1'000'000;
  for (const double correlation : {0.0, 0.8}) {
    ClickGeneratorOptions options = kRanks;
    options.ids.correlation = correlation;
    ClickBatch batch;
    Make(OneField(kRows, 0.791), options)->Generate(0, 200'000, nullptr, &batch);
    EXPECT_NEAR(Coverage(batch.features[0].ids, kRows / 5), 0.70, 0.01);
    Make(OneField(kRows, 0.954), options)->Generate(0, 200'000, nullptr, &batch);
    EXPECT_NEAR(Coverage(batch.features[0].ids, kRows * 68 / 1000), 0.76, 0.01);
    Make(OneField(kRows, 1.113), options)->Generate(0, 200'000, nullptr, &batch);
    EXPECT_NEAR(Coverage(batch.features[0].ids, kRows * 7 / 1000), 0.816, 0.01);
  }
}

TEST(ClickGenerator, HasTheUniqueIdsOfABatch) {
  struct Case {
    double exponent, unique_share;
  };
  for (const Case& c : {Case{0.79, 0.858}, Case{1.05, 0.463}}) {
    const auto generator = Make(OneField(1'000'000, c.exponent));
    double unique = 0.0;
    for (uint64_t b = 0; b < 5; ++b) {
      ClickBatch batch;
      generator->Generate(b * 8192, 8192, nullptr, &batch);
      const std::vector<uint64_t>& ids = batch.features[0].ids;
      unique += static_cast<double>(std::set<uint64_t>(ids.begin(), ids.end()).size());
    }
    EXPECT_NEAR(unique / (5.0 * 8192.0), c.unique_share, 0.01) << c.exponent;
  }
}

TEST(ClickGenerator, MakesPopularIdsMeetWhereFieldsAreCorrelated) {
  constexpr uint32_t kSamples = 50'000;
  constexpr uint64_t kRows = 10'000, kTop = 200;
  ClickSchema schema = OneField(kRows, 0.9);
  for (const char* name : {"second", "third"}) {
    schema.fields.push_back(schema.fields[0]);
    schema.fields.back().name = name;
  }
  auto AllPopular = [&](double correlation) {
    ClickGeneratorOptions options = kRanks;
    options.ids.correlation = correlation;
    ClickBatch batch;
    Make(schema, options)->Generate(0, kSamples, nullptr, &batch);
    double samples = 0.0;
    for (uint32_t s = 0; s < kSamples; ++s) {
      const bool all = std::ranges::all_of(
          batch.features, [&](const FeatureIds& feature) { return feature.ids[s] < kTop; });
      samples += all ? 1.0 : 0.0;
    }
    const double alone = Coverage(batch.features[0].ids, kTop);
    return samples / kSamples / (alone * alone * alone);
  };
  EXPECT_NEAR(AllPopular(0.0), 1.0, 0.05);
  EXPECT_GT(AllPopular(0.5), 1.2);
  EXPECT_GT(AllPopular(1.0), AllPopular(0.5) + 0.5);
}

TEST(ClickGenerator, DriftsByChangingPlacesOfPopularIds) {
  for (const uint64_t rows : {1u, 2u, 3u, 7u, 1000u}) {
    const IdField field = *IdField::Create(
        OneField(rows, 0.9).fields[0],
        {.order = IdOrder::kByPopularity, .drift = {.interval = 100, .share = 0.5}});
    for (uint64_t interval = 0; interval < 5; ++interval) {
      std::set<uint64_t> ids;
      uint64_t stayed = 0;
      for (uint64_t rank = 0; rank < rows; ++rank) {
        const uint64_t id = field.IdOfRank(100 * interval + 99, rank);
        EXPECT_LT(id, rows);
        ids.insert(id);
        stayed += rank < rows / 5 && id == rank ? 1 : 0;
      }
      EXPECT_EQ(ids.size(), rows) << "interval " << interval;
      if (rows == 1000) {
        EXPECT_NEAR(static_cast<double>(stayed), interval == 0 ? 200.0 : 100.0,
                    interval == 0 ? 0.0 : 30.0);
      }
    }
  }
}

TEST(ClickGenerator, OrdersIdsAsItIsTold) {
  const IdFieldSchema schema = OneField(5000, 0.9).fields[0];
  auto Ids = [&](IdOrder order) {
    const IdField field = *IdField::Create(schema, {.order = order});
    std::vector<uint64_t> ids;
    for (uint64_t rank = 0; rank < 5000; ++rank) ids.push_back(field.IdOfRank(0, rank));
    return ids;
  };
  auto Distinct = [](const std::vector<uint64_t>& ids) {
    return std::unordered_set<uint64_t>(ids.begin(), ids.end()).size();
  };
  const std::vector<uint64_t> ranks = Ids(IdOrder::kByPopularity);
  std::vector<uint64_t> permuted = Ids(IdOrder::kPermuted);
  const std::vector<uint64_t> hashed = Ids(IdOrder::kHashed);
  EXPECT_TRUE(std::ranges::is_sorted(ranks));
  EXPECT_NE(permuted, ranks);
  std::ranges::sort(permuted);
  EXPECT_EQ(permuted, ranks);
  EXPECT_EQ(Distinct(hashed), 5000u);
  EXPECT_GT(std::ranges::max(hashed), 0xFF000000u);
  EXPECT_LE(std::ranges::max(hashed), 0xFFFFFFFFu);
}

TEST(ClickGenerator, FillsBagsOfManySizes) {
  ClickSchema schema = OneField(100'000, 0.8, 50);
  schema.fields[0].missing_share = 0.05;
  ClickBatch batch;
  Make(schema)->Generate(0, 20'000, nullptr, &batch);
  const FeatureIds& feature = batch.features[0];
  ASSERT_EQ(feature.offsets.size(), 20'001u);
  EXPECT_EQ(feature.offsets.back(), feature.ids.size());
  uint32_t empty = 0, full = 0;
  double repeated = 0.0;
  for (uint32_t s = 0; s < 20'000; ++s) {
    const uint32_t size = feature.offsets[s + 1] - feature.offsets[s];
    ASSERT_LE(size, 50u);
    empty += size == 0 ? 1 : 0;
    full += size == 50 ? 1 : 0;
    const auto begin = feature.ids.begin() + feature.offsets[s];
    repeated += size - static_cast<double>(std::set<uint64_t>(begin, begin + size).size());
  }
  EXPECT_NEAR(empty, 1000.0, 150.0);
  // 0.95 x 0.95^49 of the bags reach the limit; sizes have the mean 0.95 x (1 - 0.95^50) / 0.05.
  EXPECT_NEAR(full, 20'000.0 * std::pow(0.95, 50), 200.0);
  const double mean = 0.95 * (1.0 - std::pow(0.95, 50)) / 0.05;
  EXPECT_NEAR(static_cast<double>(feature.ids.size()) / 20'000.0, mean, 0.5);
  // Half of all ids but the first of a bag repeat one before.
  EXPECT_NEAR(repeated / static_cast<double>(feature.ids.size()), 0.5 * (mean - 0.95) / mean, 0.02);
}

TEST(ClickGenerator, PlantsLabelsWithAKnownBestAuc) {
  constexpr uint32_t kSamples = 100'000;
  for (const char* name : {"criteo-kaggle", "avazu"}) {
    const auto generator = Make(name);
    const uint64_t behind_the_pilot = 1'000'000;
    ClickBatch batch;
    generator->Generate(behind_the_pilot, kSamples, nullptr, &batch);
    double clicks = 0.0;
    for (const float label : batch.labels) clicks += static_cast<double>(label);
    EXPECT_NEAR(clicks / kSamples, generator->schema().click_share, 0.01) << name;
    EXPECT_NEAR(generator->BestAuc(behind_the_pilot, kSamples), 0.80, 0.01) << name;
  }
}

TEST(PlantedModelTest, HasTheExpectedAucOfItsOwnLabels) {
  constexpr uint32_t kSamples = 200'000;
  const CounterRandom random(31);
  std::vector<double> logits(kSamples);
  std::vector<float> scores(kSamples), labels(kSamples);
  for (uint32_t i = 0; i < kSamples; ++i) {
    logits[i] = std::round(40.0 * random.UnitDouble(2 * i)) / 10.0 - 3.0;  // with ties
    scores[i] = static_cast<float>(logits[i]);
    labels[i] = random.UnitDouble(2 * i + 1) < ClickProbability(logits[i]) ? 1.0f : 0.0f;
  }
  EXPECT_NEAR(ExpectedAuc(logits), *Auc(scores, labels), 0.004);
  // Two samples: the first wins with p0 (1 - p1), the second with p1 (1 - p0).
  const double p = ClickProbability(1.0), q = ClickProbability(-1.0);
  const std::vector<double> two = {1.0, -1.0};
  EXPECT_NEAR(ExpectedAuc(two), p * (1 - q) / (p * (1 - q) + q * (1 - p)), 1e-12);
  EXPECT_NEAR(ExpectedAuc(std::vector{0.7, 0.7, 0.7}), 0.5, 1e-12);
}

TEST(PlantedModelTest, ReachesTheShareAndTheAucThatAreAskedFor) {
  const CounterRandom random(37);
  std::vector<double> scores(4096);
  for (size_t i = 0; i < scores.size(); ++i) scores[i] = 8.0 * random.UnitDouble(i) - 1.0;
  for (const double auc : {0.5, 0.7, 0.95}) {
    for (const double share : {0.001, 0.03, 0.5, 0.97}) {
      PlantedModel model(1);
      model.Calibrate(scores, share, auc);
      std::vector<double> logits;
      double clicks = 0.0;
      for (const double score : scores) {
        logits.push_back(model.Logit(score));
        clicks += ClickProbability(logits.back());
      }
      EXPECT_NEAR(ExpectedAuc(logits), auc, 1e-8);
      EXPECT_NEAR(clicks / static_cast<double>(scores.size()), share, 1e-8);
    }
  }
  // No scale tells equal scores apart. A double near 16 times the last one is not exact to 1e-8.
  for (const double score : {-3.0, 1.0, 2.0, 1e8}) {
    PlantedModel model(1);
    model.Calibrate({score, score, score}, 0.2, 0.7);
    EXPECT_NEAR(ClickProbability(model.Logit(score)), 0.2, score < 10.0 ? 1e-8 : 1e-6) << score;
  }
}

TEST(ClickGenerator, RefusesNumbersOutOfRange) {
  const ClickSchema schema = OneField(10, 0.9);
  auto Refuses = [&](const ClickSchema& refused, const ClickGeneratorOptions& options) {
    return IsInvalidArgument(ClickGenerator::Create(refused, options, nullptr).status());
  };
  EXPECT_TRUE(Refuses(schema, {.ids = {.correlation = 1.5}}));
  EXPECT_TRUE(Refuses(schema, {.ids = {.drift = {.share = -0.1}}}));
  EXPECT_TRUE(Refuses(schema, {.auc = 0.4}));
  EXPECT_TRUE(Refuses(schema, {.auc = 1.0}));
  EXPECT_TRUE(Refuses(OneField(0, 0.9), {}));
  EXPECT_TRUE(Refuses(OneField(uint64_t{1} << 32, 0.9), {}));
  EXPECT_TRUE(Refuses(OneField(10, -1.0), {}));
  ClickSchema never = schema;
  never.click_share = 0.0;
  EXPECT_TRUE(Refuses(never, {}));
}

}  // namespace
}  // namespace embank::test::click_generator_test
