#include "store/table/options.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <string>

#include "tiers/dram/dram_tier.h"

namespace embank::test::options_test {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kLargest = std::numeric_limits<float>::max();

TableOptions Valid() {
  TableOptions options;
  options.dim = 8;
  return options;
}

// A message must name the option and its limit.
void ExpectInvalid(const Status& status, const char* option, const char* limit) {
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << option;
  const std::string message(status.message());
  EXPECT_EQ(message.find(option), 0u) << message;
  EXPECT_NE(message.find(limit), std::string::npos) << message;
}

struct TableCase {
  const char* option;
  const char* limit;
  std::function<void(TableOptions*)> spoil;
};

const TableCase kBadTables[] = {
    {"dim", "1 to 4096", [](TableOptions* o) { o->dim = 0; }},
    {"dim", "1 to 4096", [](TableOptions* o) { o->dim = 4097; }},
    {"dim", "1 to 4096", [](TableOptions* o) { o->dim = 0xFFFFFFFF; }},
    {"value_type", "0 to 2", [](TableOptions* o) { o->value_type = ValueType{3}; }},
    {"value_type", "0 to 2", [](TableOptions* o) { o->value_type = ValueType{-1}; }},
    {"optimizer", "0 to 5", [](TableOptions* o) { o->optimizer = Optimizer{6}; }},
    {"optimizer", "0 to 5", [](TableOptions* o) { o->optimizer = Optimizer{-1}; }},
    {"learning_rate", "finite", [](TableOptions* o) { o->rule.learning_rate = kNan; }},
    {"learning_rate", "finite", [](TableOptions* o) { o->rule.learning_rate = kInfinity; }},
    {"learning_rate", "at least 0", [](TableOptions* o) { o->rule.learning_rate = -0.1f; }},
    {"learning_rate", "above 0",
     [](TableOptions* o) {
       o->optimizer = Optimizer::kFtrl;
       o->rule.learning_rate = 0.0f;
     }},
    {"beta1", "below 1", [](TableOptions* o) { o->rule.beta1 = 1.0f; }},
    {"beta1", "at least 0", [](TableOptions* o) { o->rule.beta1 = -0.1f; }},
    {"beta1", "below 1", [](TableOptions* o) { o->rule.beta1 = kNan; }},
    {"beta2", "below 1", [](TableOptions* o) { o->rule.beta2 = 1.0f; }},
    {"beta2", "at least 0", [](TableOptions* o) { o->rule.beta2 = -0.1f; }},
    {"beta2", "below 1", [](TableOptions* o) { o->rule.beta2 = kNan; }},
    {"epsilon", "at least 0", [](TableOptions* o) { o->rule.epsilon = -1e-9f; }},
    {"epsilon", "finite", [](TableOptions* o) { o->rule.epsilon = kInfinity; }},
    {"epsilon", "finite", [](TableOptions* o) { o->rule.epsilon = kNan; }},
    {"weight_decay", "at least 0", [](TableOptions* o) { o->rule.weight_decay = -1.0f; }},
    {"weight_decay", "finite", [](TableOptions* o) { o->rule.weight_decay = kNan; }},
    {"initial_accumulator", "at least 0",
     [](TableOptions* o) { o->rule.initial_accumulator = -1.0f; }},
    {"initial_accumulator", "finite",
     [](TableOptions* o) { o->rule.initial_accumulator = kInfinity; }},
    {"max_gradient_norm", "at least 0", [](TableOptions* o) { o->rule.max_gradient_norm = -1.0f; }},
    {"max_gradient_value", "finite", [](TableOptions* o) { o->rule.max_gradient_value = kNan; }},
    {"ftrl_l1", "FTRL", [](TableOptions* o) { o->rule.ftrl_l1 = 1.0f; }},
    {"ftrl_l2", "FTRL", [](TableOptions* o) { o->rule.ftrl_l2 = 1.0f; }},
    {"decoupled_weight_decay", "finite",
     [](TableOptions* o) { o->rule.decoupled_weight_decay = kInfinity; }},
    {"decoupled_weight_decay", "FTRL",
     [](TableOptions* o) {
       o->optimizer = Optimizer::kFtrl;
       o->rule.decoupled_weight_decay = 1.0f;
     }},
    {"rounding", "0 to 1", [](TableOptions* o) { o->rule.rounding = Rounding{2}; }},
    {"rounding", "EMBANK_F32", [](TableOptions* o) { o->rule.rounding = Rounding::kStochastic; }},
    {"expected_rows_log2", "40", [](TableOptions* o) { o->expected_rows_log2 = 41; }},
    {"initializer", "0 to 3", [](TableOptions* o) { o->initializer.kind = InitializerKind{4}; }},
    {"initializer", "0 to 3", [](TableOptions* o) { o->initializer.kind = InitializerKind{-1}; }},
    {"init_a", "finite", [](TableOptions* o) { o->initializer.a = kNan; }},
    {"init_a", "finite",
     [](TableOptions* o) {
       o->initializer = {InitializerKind::kConstant, kInfinity, 0.0f};
     }},
    {"init_b", "finite", [](TableOptions* o) { o->initializer.b = kNan; }},
    {"init_b", "above init_a",
     [](TableOptions* o) {
       o->initializer = {InitializerKind::kUniform, 1.0f, 1.0f};
     }},
    {"init_b", "above init_a",
     [](TableOptions* o) {
       o->initializer = {InitializerKind::kUniform, 1.0f, -1.0f};
     }},
    {"init_b", "finite distance",
     [](TableOptions* o) {
       o->initializer = {InitializerKind::kUniform, -kLargest, kLargest};
     }},
    {"init_b", "at least 0",
     [](TableOptions* o) {
       o->initializer = {InitializerKind::kNormal, 0.0f, -1.0f};
     }},
};

TEST(TableOptions, NonsenseIsNamedWithItsLimit) {
  for (const TableCase& bad : kBadTables) {
    TableOptions options = Valid();
    bad.spoil(&options);
    ExpectInvalid(Validate(options), bad.option, bad.limit);
  }
}

TEST(TableOptions, TheValueIsInTheMessage) {
  TableOptions options = Valid();
  options.dim = 4097;
  EXPECT_NE(std::string(Validate(options).message()).find("4097"), std::string::npos);
  options = Valid();
  options.rule.beta1 = 1.25f;
  EXPECT_NE(std::string(Validate(options).message()).find("1.25"), std::string::npos);
}

const std::function<void(TableOptions*)> kGoodTables[] = {
    [](TableOptions*) {},
    [](TableOptions* o) { o->dim = 1; },
    [](TableOptions* o) { o->dim = 4096; },
    [](TableOptions* o) { o->value_type = ValueType::kBf16; },
    [](TableOptions* o) { o->optimizer = Optimizer::kFtrl; },
    [](TableOptions* o) { o->rule.learning_rate = 0.0f; },
    [](TableOptions* o) { o->rule.learning_rate = kLargest; },
    [](TableOptions* o) { o->rule.beta1 = o->rule.beta2 = 0.0f; },
    [](TableOptions* o) { o->rule.beta1 = o->rule.beta2 = std::nextafterf(1.0f, 0.0f); },
    [](TableOptions* o) { o->rule.epsilon = 0.0f; },
    [](TableOptions* o) {
      o->initializer = {InitializerKind::kNormal, -3.0f, 0.0f};
    },
    [](TableOptions* o) {
      o->initializer = {InitializerKind::kUniform, -0.0f, 1e-45f};
    },
    [](TableOptions* o) {
      o->initializer = {InitializerKind::kUniform, -1.7e38f, 1.7e38f};
    },
    [](TableOptions* o) {
      o->initializer = {InitializerKind::kConstant, -5.0f, -9.0f};
    },
};

TEST(TableOptions, TheEdgesOfWhatIsAllowedAreAllowed) {
  for (size_t i = 0; i < std::size(kGoodTables); ++i) {
    TableOptions options = Valid();
    kGoodTables[i](&options);
    EXPECT_TRUE(Validate(options).ok()) << i << ": " << Validate(options);
  }
}

TEST(StoreOptions, NonsenseIsNamedWithItsLimit) {
  StoreOptions options;
  options.dram_bytes = kDramBytesMin - 1;
  ExpectInvalid(Validate(options), "dram_bytes", "16777216 (16 MiB)");
  options.dram_bytes = 1;
  ExpectInvalid(Validate(options), "dram_bytes", "16 MiB");
  options.dram_bytes = DramTier::kAddressBytesMax + 1;
  ExpectInvalid(Validate(options), "dram_bytes", "4 TiB");
  options.dram_bytes = ~uint64_t{0};
  ExpectInvalid(Validate(options), "dram_bytes", "4 TiB");
  options.dram_bytes = 0;
  options.worker_threads = 1025;
  ExpectInvalid(Validate(options), "worker_threads", "1024");
}

TEST(StoreOptions, TheEdgesOfWhatIsAllowedAreAllowed) {
  EXPECT_TRUE(Validate(StoreOptions{}).ok());
  EXPECT_TRUE(Validate(StoreOptions{.dram_bytes = kDramBytesMin}).ok());
  EXPECT_TRUE(Validate(StoreOptions{.dram_bytes = DramTier::kAddressBytesMax}).ok());
  EXPECT_TRUE(Validate(StoreOptions{.worker_threads = 1024, .seed = ~uint64_t{0}}).ok());
}

TEST(TableName, HasOneTo255BytesAndNoSlashOrNewline) {
  EXPECT_TRUE(ValidateTableName("a").ok());
  EXPECT_TRUE(ValidateTableName(std::string(255, 'x')).ok());
  EXPECT_TRUE(ValidateTableName("a b\t\"\\\xC3\xA4").ok());
  ExpectInvalid(ValidateTableName(""), "name", "1 to 255");
  ExpectInvalid(ValidateTableName(std::string(256, 'x')), "name", "1 to 255");
  for (const char* name : {"/", "a/b", "\n", "ab\n"}) {
    ExpectInvalid(ValidateTableName(name), "name", "must not");
  }
}

TEST(LearningRate, IsCheckedAloneAsWell) {
  EXPECT_TRUE(ValidateLearningRate(Optimizer::kSgd, 0.0f).ok());
  EXPECT_TRUE(ValidateLearningRate(Optimizer::kFtrl, 1e-45f).ok());
  ExpectInvalid(ValidateLearningRate(Optimizer::kFtrl, 0.0f), "learning_rate", "above 0");
  ExpectInvalid(ValidateLearningRate(Optimizer::kAdam, kNan), "learning_rate", "finite");
}

}  // namespace
}  // namespace embank::test::options_test
