#include "bench/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

namespace embank::options_test {
namespace {

using testing::HasSubstr;

TEST(Options, WordsAreParsedBack) {
  for (const char* name : {"f32", "f16", "bf16"}) {
    EXPECT_STREQ(ValueTypeName(*ParseValueType(name)), name);
  }
  for (const char* name : {"none", "sgd", "adagrad", "rowwise-adagrad", "adam", "ftrl"}) {
    EXPECT_STREQ(OptimizerName(*ParseOptimizer(name)), name);
  }
  for (const char* name : {"fill", "lookup", "update", "small"}) {
    EXPECT_STREQ(PhaseName(*ParsePhase(name)), name);
  }
  for (const char* name :
       {"fill", "lookup", "pmem", "scan", "overwrite", "checkpoint", "recover"}) {
    EXPECT_STREQ(PhaseName(*ParseSsdPhase(name)), name);
  }
  for (const char* name : {"uniform", "zipf:1.05", "zipf:0", "trace:a.txt"}) {
    EXPECT_EQ(DistributionName(*ParseDistribution(name)), name);
  }
}

TEST(Options, UnknownWordsListTheKnownOnes) {
  EXPECT_THAT(std::string(ParseValueType("f64").status().message()),
              HasSubstr("'f64' is none of f32, f16, bf16"));
  EXPECT_THAT(std::string(ParseOptimizer("lamb").status().message()),
              HasSubstr("none, sgd, adagrad, rowwise-adagrad, adam, ftrl"));
  EXPECT_THAT(std::string(ParsePhase("scan").status().message()),
              HasSubstr("fill, lookup, update, small"));
  for (const char* text :
       {"", "zipf", "zipf:", "zipf:x", "zipf:-1", "zipf:nan", "zipf:101", "trace:", "normal"}) {
    EXPECT_EQ(ParseDistribution(text).status().code(), StatusCode::kInvalidArgument) << text;
  }
}

// Each changes one option of a valid run; the message must name it.
TEST(Options, NonsenseNamesTheOption) {
  EXPECT_TRUE(Validate(KvOptions()).ok());
  struct Case {
    const char* option;
    void (*spoil)(KvOptions*);
  };
  const Case cases[] = {
      {"--engines: is empty", [](KvOptions* o) { o->engines.clear(); }},
      {"--engines: 'redis'", [](KvOptions* o) { o->engines = {"redis"}; }},
      {"--engines: names one twice",
       [](KvOptions* o) {
         o->engines = {"absl", "absl"};
       }},
      {"--phases: is empty", [](KvOptions* o) { o->phases.clear(); }},
      {"--phases: names one twice",
       [](KvOptions* o) {
         o->phases = {Phase::kFill, Phase::kFill};
       }},
      {"--phases: update", [](KvOptions* o) { o->shape.optimizer = Optimizer::kNone; }},
      {"--rows: 0", [](KvOptions* o) { o->rows = 0; }},
      {"--rows: ", [](KvOptions* o) { o->rows = kBenchRowsMax + 1; }},
      {"--dim: 0", [](KvOptions* o) { o->shape.dim = 0; }},
      {"--dim: 4097", [](KvOptions* o) { o->shape.dim = 4097; }},
      {"--batch: 0", [](KvOptions* o) { o->batch = 0; }},
      {"--batch: ", [](KvOptions* o) { o->batch = kBatchMax + 1; }},
      {"--threads: 0",
       [](KvOptions* o) {
         o->threads = {1, 0};
       }},
      {"--threads: 257", [](KvOptions* o) { o->threads = {257}; }},
      {"--threads: is empty", [](KvOptions* o) { o->threads.clear(); }},
      {"--threads: names one twice",
       [](KvOptions* o) {
         o->threads = {2, 1, 2};
       }},
      {"--seconds: 0", [](KvOptions* o) { o->seconds = 0; }},
      {"--seconds: -1", [](KvOptions* o) { o->seconds = -1; }},
      {"--seconds: nan", [](KvOptions* o) { o->seconds = std::nan(""); }},
      {"--rounds: 0", [](KvOptions* o) { o->rounds = 0; }},
  };
  for (const Case& spoilt : cases) {
    KvOptions options;
    spoilt.spoil(&options);
    const Status status = Validate(options);
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << spoilt.option;
    EXPECT_THAT(std::string(status.message()), HasSubstr(spoilt.option));
  }
}

TEST(Options, SsdChecksItsOwn) {
  SsdOptions valid;
  valid.path = "somewhere";
  EXPECT_TRUE(Validate(valid).ok());
  struct Case {
    const char* option;
    void (*spoil)(SsdOptions*);
  };
  const Case cases[] = {
      {"--path: names no directory", [](SsdOptions* o) { o->path.clear(); }},
      {"--engines: is empty", [](SsdOptions* o) { o->engines.clear(); }},
      {"--engines: 'absl' is none of embank, embank-lfu, embank-memory, rocksdb, rocksdb-rows",
       [](SsdOptions* o) { o->engines = {"absl"}; }},
      {"--phases: names one twice",
       [](SsdOptions* o) {
         o->phases = {SsdPhase::kFill, SsdPhase::kFill};
       }},
      {"--phases: embank-memory takes fill, lookup and scan only",
       [](SsdOptions* o) { o->engines = {"embank-memory"}; }},
      {"--rows: 0", [](SsdOptions* o) { o->rows = 0; }},
      {"--dim: 0", [](SsdOptions* o) { o->shape.dim = 0; }},
      {"--dram-fraction: 0", [](SsdOptions* o) { o->dram_fraction = 0.0; }},
      {"--dram-fraction: nan", [](SsdOptions* o) { o->dram_fraction = std::nan(""); }},
      {"--utilisation: 1.1", [](SsdOptions* o) { o->utilisation = 1.1; }},
      {"--utilisation: nan", [](SsdOptions* o) { o->utilisation = std::nan(""); }},
      {"--batch: 0", [](SsdOptions* o) { o->batch = 0; }},
      {"--threads: 0", [](SsdOptions* o) { o->threads = 0; }},
      {"--peer-threads: 257", [](SsdOptions* o) { o->peer_threads = {257}; }},
      {"--peer-threads: is empty", [](SsdOptions* o) { o->peer_threads.clear(); }},
      {"--depth: 0", [](SsdOptions* o) { o->depth = 0; }},
      {"--seconds: 0", [](SsdOptions* o) { o->seconds = 0; }},
      {"--warmup: -1", [](SsdOptions* o) { o->warmup = -1; }},
      {"--overwrites: 0", [](SsdOptions* o) { o->overwrites = 0; }},
      {"--overwrites: 2", [](SsdOptions* o) { o->overwrites = 2; }},
      {"--changed: 1000001", [](SsdOptions* o) { o->changed = 1'000'001; }},
      {"--sync-us: 1000001", [](SsdOptions* o) { o->sync_us = 1'000'001; }},
      {"--rounds: 0", [](SsdOptions* o) { o->rounds = 0; }},
      {"--phases: pmem needs --pmem", [](SsdOptions* o) { o->phases = {SsdPhase::kPmem}; }},
      {"--pmem-bytes: needs --pmem", [](SsdOptions* o) { o->pmem_bytes = uint64_t{4} << 20; }},
      {"--pmem-bytes: 4194303",
       [](SsdOptions* o) {
         o->pmem_path = "elsewhere";
         o->pmem_bytes = (uint64_t{4} << 20) - 1;
       }},
  };
  for (const Case& spoilt : cases) {
    SsdOptions options = valid;
    spoilt.spoil(&options);
    const Status status = Validate(options);
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << spoilt.option;
    EXPECT_THAT(std::string(status.message()), HasSubstr(spoilt.option));
  }
}

TEST(Options, ReplayChecksItsOwn) {
  EXPECT_TRUE(Validate(ReplayOptions()).ok());
  ReplayOptions options;
  options.shape.dim = 0;
  EXPECT_THAT(std::string(Validate(options).message()), HasSubstr("--dim"));
  options = ReplayOptions();
  options.batch = 0;
  EXPECT_THAT(std::string(Validate(options).message()), HasSubstr("--batch"));
  options = ReplayOptions();
  options.threads = kThreadsMax + 1;
  EXPECT_THAT(std::string(Validate(options).message()), HasSubstr("--threads"));
}

TEST(Options, LimitsChecksItsOwn) {
  EXPECT_TRUE(Validate(LimitsOptions()).ok());
  struct Case {
    const char* option;
    void (*spoil)(LimitsOptions*);
  };
  const Case cases[] = {
      {"--rows-bytes: is empty", [](LimitsOptions* o) { o->row_bytes.clear(); }},
      {"--rows-bytes: 0", [](LimitsOptions* o) { o->row_bytes = {0}; }},
      {"--rows-bytes: 66 is no multiple of 4", [](LimitsOptions* o) { o->row_bytes = {66}; }},
      {"--rows-bytes: 16388", [](LimitsOptions* o) { o->row_bytes = {16388}; }},
      {"--threads: 0", [](LimitsOptions* o) { o->threads = {0}; }},
      {"--seconds: 0", [](LimitsOptions* o) { o->seconds = 0; }},
      {"--memory-mib: ", [](LimitsOptions* o) { o->memory_mib = kMibMax + 1; }},
  };
  for (const Case& spoilt : cases) {
    LimitsOptions options;
    spoilt.spoil(&options);
    EXPECT_THAT(std::string(Validate(options).message()), HasSubstr(spoilt.option));
  }
}

TEST(Options, TracesChecksItsOwn) {
  EXPECT_TRUE(Validate(TracesOptions()).ok());
  struct Case {
    const char* option;
    std::vector<double> fractions;
  };
  const Case cases[] = {{"--fractions: is empty", {}},
                        {"--fractions: names one twice", {0.5, 0.5}},
                        {"--fractions: 0 ", {0.5, 0.0}},
                        {"--fractions: 1.1", {1.1}},
                        {"--fractions: nan", {std::nan("")}}};
  for (const Case& wrong : cases) {
    TracesOptions options;
    options.fractions = wrong.fractions;
    EXPECT_THAT(std::string(Validate(options).message()), HasSubstr(wrong.option));
  }
}

}  // namespace
}  // namespace embank::options_test
