#include "store/inspect/metrics.h"
#include "store/inspect/memory_report.h"

#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "store/batch/gradients.h"
#include "store/batch/lookup.h"
#include "store/batch/write.h"
#include "store/index/key_index.h"
#include "store/packed/packed_gradients.h"
#include "store/packed/packed_lookup.h"
#include "tests/support/store_world.h"
#include "tests/support/threads.h"

namespace embank::test::metrics_test {
namespace {

// The text format 0.0.4, read as strictly as a scraper would.
class Parsed {
 public:
  explicit Parsed(const std::string& text) {
    EXPECT_TRUE(text.empty() || text.back() == '\n');
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) Read(line);
  }
  // "name{labels}" as printed -> value.
  const std::map<std::string, double>& samples() const { return samples_; }
  double operator[](const std::string& sample) const {
    const auto found = samples_.find(sample);
    EXPECT_NE(found, samples_.end()) << sample;
    return found == samples_.end() ? -1.0 : found->second;
  }
  // The series of a histogram only grow, too.
  bool IsCounter(const std::string& sample) const {
    return TypeOf(sample.substr(0, sample.find('{'))) != "gauge";
  }

 private:
  void Read(const std::string& line) {
    std::istringstream words(line);
    std::string hash;
    std::string kind;
    std::string name;
    std::string rest;
    words >> hash >> kind >> name >> rest;
    if (hash != "#") return ReadSample(line);
    EXPECT_TRUE(IsName(name)) << line;
    EXPECT_FALSE(rest.empty()) << line;
    if (kind == "HELP") {
      EXPECT_TRUE(helped_.insert(name).second) << "helped twice: " << line;
      return;
    }
    EXPECT_EQ(kind, "TYPE") << line;
    EXPECT_TRUE(rest == "counter" || rest == "gauge" || rest == "histogram") << line;
    EXPECT_EQ(helped_.count(name), 1u) << "no help before: " << line;
    EXPECT_TRUE(types_.emplace(name, rest).second) << "typed twice: " << line;
  }
  // name{label="value",...} number
  void ReadSample(const std::string& line) {
    const size_t name_end = line.find_first_of("{ ");
    ASSERT_NE(name_end, std::string::npos) << line;
    const std::string name = line.substr(0, name_end);
    EXPECT_TRUE(IsName(name)) << line;
    EXPECT_NE(TypeOf(name), "") << "no type before: " << line;
    size_t end = name_end;
    if (line[name_end] == '{') end = EndOfLabels(line, name_end);
    ASSERT_EQ(line[end], ' ') << line;
    size_t number_chars = 0;
    const double value = std::stod(line.substr(end + 1), &number_chars);
    EXPECT_EQ(end + 1 + number_chars, line.size()) << "more than a number: " << line;
    EXPECT_TRUE(samples_.emplace(line.substr(0, end), value).second) << "twice: " << line;
  }
  // The place behind the brace that closes the labels.
  static size_t EndOfLabels(const std::string& line, size_t brace) {
    size_t at = brace;
    while (line[at] != '}') {
      const size_t quote = line.find("=\"", at);
      EXPECT_NE(quote, std::string::npos) << line;
      if (quote == std::string::npos) return 0;
      EXPECT_TRUE(IsName(line.substr(at + 1, quote - at - 1))) << line;
      at = quote + 2;
      while (at < line.size() && line[at] != '"') at += line[at] == '\\' ? 2 : 1;
      ++at;  // a comma or the brace follows the closing quote
      EXPECT_TRUE(at < line.size() && (line[at] == ',' || line[at] == '}')) << line;
      if (at >= line.size()) return 0;
    }
    return at + 1;
  }
  // "": the name has none.
  std::string TypeOf(const std::string& name) const {
    if (const auto own = types_.find(name); own != types_.end()) return own->second;
    for (const std::string suffix : {"_bucket", "_sum", "_count"}) {
      if (!name.ends_with(suffix)) continue;
      const auto of = types_.find(name.substr(0, name.size() - suffix.size()));
      if (of != types_.end() && of->second == "histogram") return of->second;
    }
    return "";
  }
  static bool IsName(const std::string& name) {
    return !name.empty() &&
           name.find_first_not_of("abcdefghijklmnopqrstuvwxyz_") == std::string::npos;
  }

  std::set<std::string> helped_;
  std::map<std::string, std::string> types_;
  std::map<std::string, double> samples_;
};

class MetricsTest : public testing::Test {
 protected:
  static constexpr uint64_t kTickNs = 250'000'000;
  static TableOptions Options() { return OptionsOf(2, Optimizer::kSgd); }
  Parsed Read() { return Parsed(FormatMetrics(*store_)); }
  // One batch of each kind.
  void Work(Table* table, Key first) {
    std::vector<float> rows(20);
    std::vector<uint8_t> outcomes(10);
    const std::vector<Key> keys = KeysFrom(first, 10);
    ASSERT_TRUE(
        Lookup(table, keys, MissingRule::kCreate, RowsIn(&rows, 2), std::span(outcomes)).ok());
    ASSERT_TRUE(Upsert(table, KeysFrom(first + 5, 10), RowsOf(rows, 2), outcomes).ok());
    ASSERT_TRUE(
        ApplyGradients(table, KeysFrom(first + 9, 7), RowsOf(rows, 2), std::span(outcomes).first(7))
            .ok());
    ASSERT_TRUE(Erase(table, KeysFrom(first + 12, 4), std::span(outcomes).first(4)).ok());
  }

  StoreWorld store_{{.dram_bytes = 32 << 20}, nullptr, kTickNs};
};

TEST_F(MetricsTest, CountPositionsByOperationAndOutcome) {
  Work(store_.Create("t", Options()), 0);
  const Parsed metrics = Read();
  EXPECT_EQ(metrics[R"(embank_keys_total{table="t",op="lookup",outcome="created"})"], 10);
  EXPECT_EQ(metrics[R"(embank_keys_total{table="t",op="upsert",outcome="found"})"], 5);
  EXPECT_EQ(metrics[R"(embank_keys_total{table="t",op="upsert",outcome="created"})"], 5);
  EXPECT_EQ(metrics[R"(embank_keys_total{table="t",op="gradients",outcome="found"})"], 6);
  EXPECT_EQ(metrics[R"(embank_keys_total{table="t",op="gradients",outcome="absent"})"], 1);
  EXPECT_EQ(metrics[R"(embank_keys_total{table="t",op="erase",outcome="found"})"], 3);
  EXPECT_EQ(metrics[R"(embank_keys_total{table="t",op="erase",outcome="absent"})"], 1);
  EXPECT_EQ(metrics[R"(embank_tier_rows{table="t",tier="dram"})"], 12);
  for (const char* op : {"lookup", "upsert", "gradients", "erase"}) {
    const std::string labels = R"({table="t",op=")" + std::string(op) + "\"}";
    EXPECT_EQ(metrics["embank_batches_total" + labels], 1) << op;
    // The clock ticks once between the beginning and the end of a batch.
    EXPECT_EQ(metrics["embank_batch_seconds_total" + labels], 0.25) << op;
  }
}

TEST_F(MetricsTest, DurationsAreInTheBucketsOfPowersOfTwo) {
  Table* const table = store_.Create("t", Options());
  Work(table, 0);
  Work(table, 100);
  const Parsed metrics = Read();
  const auto series = [&](const char* op, const std::string& part, const std::string& le = "") {
    const std::string bound = le.empty() ? "" : ",le=\"" + le + "\"";
    return metrics["embank_batch_duration_seconds" + part + R"({table="t",op=")" + op + "\"" +
                   bound + "}"];
  };
  for (const char* op : {"lookup", "upsert", "gradients", "erase"}) {
    // Each takes a tick, 0.25 s.
    EXPECT_EQ(series(op, "_bucket", "0.000001024"), 0) << op;
    EXPECT_EQ(series(op, "_bucket", "0.134217728"), 0) << op;
    EXPECT_EQ(series(op, "_bucket", "0.268435456"), 2) << op;
    EXPECT_EQ(series(op, "_bucket", "1.073741824"), 2) << op;
    EXPECT_EQ(series(op, "_bucket", "+Inf"), 2) << op;
    EXPECT_EQ(series(op, "_sum"), 0.5) << op;
    EXPECT_EQ(series(op, "_count"), 2) << op;
  }
  for (const auto& [sample, value] : metrics.samples()) {
    EXPECT_EQ(sample.find(R"(duration_seconds_count{table="t",op="prefetch")"), std::string::npos)
        << "a verb without a batch";
  }
}

TEST_F(MetricsTest, HitsAreCountedInTheTierOfTheRow) {
  Table* const table = store_.Create("t", Options());
  Work(table, 0);
  Work(table, 3);
  const Parsed metrics = Read();
  EXPECT_EQ(metrics[R"(embank_lookup_hits_total{table="t",tier="dram"})"],
            metrics[R"(embank_keys_total{table="t",op="lookup",outcome="found"})"]);
  EXPECT_EQ(metrics.samples().count(R"(embank_lookup_hits_total{table="t",tier="ssd"})"), 0u);
}

// A call looks at all its keys together; where it may change rows, it then goes shard by shard.
TEST_F(MetricsTest, WalksThroughTheIndexAreCounted) {
  Table* const table = store_.Create("t", Options());
  std::vector<Key> keys;
  std::set<uint32_t> shards;
  for (Key key = 0; shards.size() < 5; ++key) {
    const uint32_t shard = KeyIndex::ShardOf(table->HashOf(key));
    if (shard < 5 && shards.insert(shard).second) keys.insert(keys.end(), 3, key);
  }
  const auto walks_of = [&](auto call) {
    const uint64_t before = table->counters().calls.IndexWalks();
    EXPECT_TRUE(call().ok());
    return table->counters().calls.IndexWalks() - before;
  };
  std::vector<float> rows(keys.size() * table->layout().dim, 1.0f);
  const ConstRowSpan from = RowsOf(rows, table->layout().dim);
  const RowSpan to = RowsIn(&rows, table->layout().dim);
  EXPECT_EQ(walks_of([&] { return Upsert(table, keys, from, {}); }), 1u);
  EXPECT_EQ(walks_of([&] { return Upsert(table, KeySpan(keys).first(3), from, {}); }), 1u);
  EXPECT_EQ(walks_of([&] { return Lookup(table, keys, MissingRule::kZero, to, {}); }), 1u);
  EXPECT_EQ(walks_of([&] { return Lookup(table, {}, MissingRule::kZero, to, {}); }), 0u);
  EXPECT_EQ(walks_of([&] { return Erase(table, keys, {}); }), 1u);
}

// The call's time is that between two readings of the clock: one tick.
TEST_F(MetricsTest, APackedCallSharesItsTimeOutByKeys) {
  Table* const one = store_.Create("one", Options());
  Table* const three = store_.Create("three", Options());
  const std::vector<Key> few = KeysFrom(0, 10);
  const std::vector<Key> many = KeysFrom(0, 30);
  std::vector<float> few_rows(20);
  std::vector<float> many_rows(60);
  const auto lookup = [](Table* table, KeySpan keys, std::vector<float>* rows) {
    LookupFeature feature;
    feature.table = table;
    feature.keys = keys;
    feature.rows = RowsIn(rows, 2);
    return feature;
  };
  const auto gradients = [](Table* table, KeySpan keys, const std::vector<float>& rows) {
    GradientFeature feature;
    feature.table = table;
    feature.keys = keys;
    feature.gradients = RowsOf(rows, 2);
    return feature;
  };
  const LookupFeature lookups[] = {lookup(one, few, &few_rows), lookup(three, many, &many_rows)};
  ASSERT_TRUE(LookupPacked(lookups, MissingRule::kCreate).ok());
  const GradientFeature steps[] = {gradients(three, many, many_rows),
                                   gradients(one, few, few_rows)};
  ASSERT_TRUE(ApplyGradientsPacked(steps).ok());
  const Parsed metrics = Read();
  for (const std::string op : {"lookup", "gradients"}) {
    const auto seconds = [&](const std::string& table) {
      return metrics["embank_batch_seconds_total{table=\"" + table + "\",op=\"" + op + "\"}"];
    };
    EXPECT_EQ(seconds("one"), 0.25 * 10 / 40) << op;
    EXPECT_EQ(seconds("three"), 0.25 * 30 / 40) << op;
    EXPECT_EQ(metrics["embank_batches_total{table=\"three\",op=\"" + op + "\"}"], 1) << op;
  }
}

// A bag of rows in DRAM is one walk of the index. Rows that are missing end such walks: the more of
// them, the more keys go another way at once.
TEST(IndexWalks, AreFewWhereEachTenthRowOfABagIsMissing) {
  StoreWorld world;
  Table* const table = world.Create("t", OptionsOf(16));
  std::vector<Key> keys(4000);
  std::iota(keys.begin(), keys.end(), Key{0});
  std::vector<Key> present = keys;
  std::vector<float> rows(16 * keys.size());
  std::vector<float> sum(16);
  const std::vector<uint64_t> offsets = {0, keys.size()};
  LookupFeature feature;
  feature.table = table;
  feature.keys = keys;
  feature.pooling = Pooling::kSum;
  feature.offsets = offsets;
  feature.rows = RowsIn(&sum, 16);
  const auto walks = [&](const std::vector<Key>& rows_of) {
    EXPECT_TRUE(Upsert(table, rows_of, RowsOf(rows, 16), {}).ok());
    const uint64_t before = table->counters().calls.IndexWalks();
    EXPECT_TRUE(LookupPacked({&feature, 1}, MissingRule::kZero).ok());
    return table->counters().calls.IndexWalks() - before;
  };
  std::erase_if(present, [](Key key) { return key % 10 == 9; });
  const uint64_t few = walks(present);
  EXPECT_GT(few, 2u);
  EXPECT_LT(few, 40u);
  EXPECT_EQ(walks(keys), 1u);
}

TEST(CallDurations, HaveTheBucketWhoseBoundTheyDoNotExceed) {
  EXPECT_EQ(CallDurations::BucketOf(0), 0u);
  EXPECT_EQ(CallDurations::BucketOf(1024), 0u);
  EXPECT_EQ(CallDurations::BucketOf(1025), 1u);
  for (uint32_t bucket = 1; bucket + 1 < CallDurations::kBuckets; ++bucket) {
    const uint64_t bound = CallDurations::BoundNs(bucket);
    EXPECT_EQ(CallDurations::BucketOf(bound), bucket);
    EXPECT_EQ(CallDurations::BucketOf(bound + 1), bucket + 1);
  }
  EXPECT_EQ(CallDurations::BucketOf(UINT64_MAX), CallDurations::kBuckets - 1);
}

TEST(CallCounters, LoseNothingOfManyThreads) {
  CallCounters counters;
  constexpr uint64_t kThreads = 12;
  constexpr uint64_t kCalls = 20'000;
  OnThreads(kThreads, [&](uint64_t thread) {
    for (uint64_t i = 0; i < kCalls; ++i) {
      CallCounts counts;
      counts.keys_by_outcome[thread % kOutcomes] = 3;
      counts.found_in[i % kTiers] = 1;
      counters.Add(TableVerb::kLookup, 1000 << (i % 3), counts);
    }
  });
  const CallDurations durations = counters.Durations(TableVerb::kLookup);
  EXPECT_EQ(durations.count(), kThreads * kCalls);
  EXPECT_EQ(durations.batches[0], kThreads * ((kCalls + 2) / 3));
  const CallCounts counts = counters.Counts(TableVerb::kLookup);
  EXPECT_EQ(std::accumulate(counts.keys_by_outcome.begin(), counts.keys_by_outcome.end(), 0ul),
            3 * kThreads * kCalls);
  EXPECT_EQ(counts.found_in[0], kThreads * kCalls / kTiers);
  EXPECT_EQ(counters.Durations(TableVerb::kUpsert).count(), 0u);
}

TEST_F(MetricsTest, CountersOnlyGrow) {
  Table* const table = store_.Create("t", Options());
  Table* const other = store_.Create("other", Options());
  Work(table, 0);
  Work(other, 0);
  std::map<std::string, double> before = Read().samples();
  for (Key round = 1; round < 20; ++round) {
    Work(round % 3 == 0 ? other : table, round * 4);
    const Parsed after = Read();
    for (const auto& [sample, value] : before) {
      if (after.IsCounter(sample)) {
        EXPECT_GE(after[sample], value) << sample;
      }
    }
    before = after.samples();
  }
  EXPECT_EQ(before[R"(embank_batches_total{table="t",op="lookup"})"], 1 + 13);
}

TEST_F(MetricsTest, NamesOfTablesAreEscaped) {
  store_.Create(R"(a\b"c{},= d)", Options());
  const Parsed metrics = Read();
  EXPECT_EQ(metrics[R"(embank_tier_rows{table="a\\b\"c{},= d",tier="dram"})"], 0);
}

TEST_F(MetricsTest, MetricsOfAnEmptyStoreParseAsWell) {
  const Parsed metrics = Read();
  EXPECT_EQ(metrics[R"(embank_tier_capacity_bytes{tier="dram"})"], 32 << 20);
  EXPECT_GT(metrics[R"(embank_tier_bytes{tier="dram",kind="index"})"], 0);
}

TEST_F(MetricsTest, AgreeWithTheMemoryReportWhichAddsUp) {
  Table* const table = store_.Create("t", Options());
  Table* const wide = store_.Create("wide", OptionsOf(900, Optimizer::kAdam));
  Work(table, 0);
  std::vector<float> rows(50 * 900);
  ASSERT_TRUE(Upsert(wide, KeysFrom(0, 50), RowsOf(rows, 900), {}).ok());
  const MemoryReport report = ReportMemory(*store_);
  EXPECT_EQ(report.used_bytes, report.fixed_bytes + report.index_bytes + report.rows_bytes +
                                   report.state_bytes + report.slack_bytes);
  EXPECT_EQ(report.state_bytes, 50 * 1801 * 4u);
  EXPECT_EQ(report.rows_bytes + report.state_bytes,
            12u * table->layout().row_bytes + 50u * wide->layout().row_bytes);
  EXPECT_EQ(report.rows_bytes + report.state_bytes + report.slack_bytes, 2 * kHugePageBytes);
  const Parsed metrics = Read();
  const std::pair<const char*, uint64_t> kinds[] = {{"fixed", report.fixed_bytes},
                                                    {"index", report.index_bytes},
                                                    {"rows", report.rows_bytes},
                                                    {"state", report.state_bytes},
                                                    {"slack", report.slack_bytes}};
  for (const auto& [kind, bytes] : kinds) {
    EXPECT_EQ(metrics[R"(embank_tier_bytes{tier="dram",kind=")" + std::string(kind) + "\"}"],
              static_cast<double>(bytes));
  }
}

TEST_F(MetricsTest, MemoryReportIsJson) {
  store_.Create("t", Options());
  const MemoryReport report = ReportMemory(*store_);
  const nlohmann::json dram = nlohmann::json::parse(FormatMemoryReport(report)).at("dram");
  EXPECT_EQ(dram.at("budget"), 32 << 20);
  EXPECT_EQ(dram.at("used"), report.used_bytes);
  EXPECT_EQ(dram.at("fixed"), report.fixed_bytes);
  EXPECT_EQ(dram.at("index"), report.index_bytes);
  EXPECT_EQ(dram.at("rows"), 0);
  EXPECT_EQ(dram.at("state"), 0);
  EXPECT_EQ(dram.at("slack"), 0);
  EXPECT_EQ(dram.at("huge_pages_refused"), report.huge_pages_refused_bytes);
  EXPECT_EQ(dram.size(), 8u);
}

TEST(FormatEstimate, SaysWhetherTheBudgetIsEnough) {
  Estimate estimate = {.fixed_bytes = 1, .index_bytes = 2, .slab_bytes = 3, .dram_bytes = 100};
  estimate.fits = true;
  const nlohmann::json json = nlohmann::json::parse(FormatEstimate(estimate));
  EXPECT_EQ(json.at("dram_bytes"), 100);
  EXPECT_EQ(json.at("fixed_bytes"), 1);
  EXPECT_EQ(json.at("index_bytes"), 2);
  EXPECT_EQ(json.at("slab_bytes"), 3);
  EXPECT_EQ(json.at("fits"), true);
  estimate.fits = false;
  EXPECT_EQ(nlohmann::json::parse(FormatEstimate(estimate)).at("fits"), false);
}

}  // namespace
}  // namespace embank::test::metrics_test
