// The oracle and the store against golden.json (make_golden.py names the program behind each
// number). A test that compares only store and oracle would not see a rule that both misread.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bindings/c/embank.h"
#include "tests/support/c_api.h"
#include "tests/support/oracle.h"
#include "tests/support/oracle_numbers.h"
#include "tests/support/oracle_rules.h"
#include "tests/support/row_buffer.h"

namespace embank::golden_test {
namespace {

using Json = nlohmann::json;

const Json& Golden() {
  static const Json golden = Json::parse(std::ifstream(EMBANK_GOLDEN_FILE));
  return golden;
}

float FloatOf(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

double DoubleOf(uint64_t bits) {
  double value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

uint32_t BitsOf(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

std::vector<float> Floats(const Json& array) {
  std::vector<float> floats;
  for (const Json& bits : array) floats.push_back(FloatOf(bits.get<uint32_t>()));
  return floats;
}

// The verbs that the vectors need, of the store (through the C API) or of the oracle.
class Subject {
 public:
  Subject(bool is_store, uint64_t store_seed, const std::string& name,
          const embank_table_options& options)
      : oracle_(store_seed, name, options), is_store_(is_store) {
    if (!is_store) return;
    embank_store_options store_options = test::StoreOptions();
    store_options.seed = store_seed;
    store_ = test::OpenStore(store_options);
    table_ = test::CreateTable(store_.get(), name, options);
  }

  std::vector<float> Lookup(uint64_t key) {
    test::RowBuffer row(1, oracle_.row_bytes());
    EXPECT_EQ(is_store_
                  ? embank_lookup(table_, &key, 1, EMBANK_MISSING_CREATE, row.data(), 0, nullptr)
                  : oracle_.Lookup(&key, 1, EMBANK_MISSING_CREATE, row.data(), 0, nullptr),
              EMBANK_OK);
    return Values(row);
  }
  void Upsert(uint64_t key, const std::vector<float>& values) {
    int32_t type = oracle_.options().value_type;
    test::RowBuffer row(1, oracle_.row_bytes());
    for (size_t i = 0; i < values.size(); ++i) {
      oracle::StoreValue(values[i], type, row.row(0) + i * oracle::ValueBytes(type));
    }
    EXPECT_EQ(is_store_ ? embank_upsert(table_, &key, 1, row.data(), 0, nullptr)
                        : oracle_.Upsert(&key, 1, row.data(), 0, nullptr),
              EMBANK_OK);
  }
  void Apply(const std::vector<uint64_t>& keys, const std::vector<float>& gradients) {
    EXPECT_EQ(
        is_store_
            ? embank_apply_gradients(table_, keys.data(), keys.size(), gradients.data(), 0, nullptr)
            : oracle_.ApplyGradients(keys.data(), keys.size(), gradients.data(), 0, nullptr),
        EMBANK_OK);
  }
  std::vector<float> State(uint64_t key) {
    std::vector<float> state(oracle_.state_floats());
    if (state.empty()) return state;
    EXPECT_EQ(is_store_ ? embank_get_state(table_, &key, 1, state.data(), 0, nullptr)
                        : oracle_.GetState(&key, 1, state.data(), 0, nullptr),
              EMBANK_OK);
    return state;
  }

 private:
  std::vector<float> Values(const test::RowBuffer& row) const {
    int32_t type = oracle_.options().value_type;
    std::vector<float> values;
    for (uint64_t i = 0; i < oracle_.options().dim; ++i) {
      values.push_back(oracle::LoadValue(row.row(0) + i * oracle::ValueBytes(type), type));
    }
    return values;
  }

  oracle::Table oracle_;
  bool is_store_;
  test::StorePtr store_;
  embank_table* table_ = nullptr;
};

class GoldenTest : public testing::TestWithParam<bool> {
 protected:
  Subject Make(uint64_t seed, const std::string& name, const embank_table_options& options) {
    return Subject(GetParam(), seed, name, options);
  }
};

INSTANTIATE_TEST_SUITE_P(Of, GoldenTest, testing::Values(false, true),
                         [](const auto& param) { return param.param ? "Store" : "Oracle"; });

void ExpectSameBits(const std::vector<float>& actual, const std::vector<float>& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) {
    EXPECT_EQ(BitsOf(actual[i]), BitsOf(expected[i]))
        << "element " << i << ": " << actual[i] << " and " << expected[i];
  }
}

// Twelve steps whose roundings differ (fused multiply-adds, libm powers): a few units in the last
// place of the largest intermediate, which is near 1 in all vectors; states grow with their size.
void ExpectNear(const std::vector<float>& actual, const std::vector<float>& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) {
    EXPECT_NEAR(actual[i], expected[i], 2e-6 * std::fmax(1.0, std::fabs(expected[i])))
        << "element " << i;
  }
}

embank_table_options OptionsOf(const Json& vector) {
  static const std::map<std::string, int32_t> kRules = {
      {"sgd", EMBANK_OPT_SGD},
      {"adagrad", EMBANK_OPT_ADAGRAD},
      {"rowwise_adagrad", EMBANK_OPT_ROWWISE_ADAGRAD},
      {"adam", EMBANK_OPT_ADAM},
      {"ftrl", EMBANK_OPT_FTRL}};
  static const std::map<std::string, int32_t> kTypes = {
      {"f32", EMBANK_F32}, {"f16", EMBANK_F16}, {"bf16", EMBANK_BF16}};
  embank_table_options options = test::TableOptions(vector["dim"], kRules.at(vector["rule"]));
  options.value_type = kTypes.at(vector["value_type"]);
  options.learning_rate = FloatOf(vector["learning_rate"]);
  options.beta1 = FloatOf(vector["beta1"]);
  options.beta2 = FloatOf(vector["beta2"]);
  options.epsilon = FloatOf(vector["epsilon"]);
  options.weight_decay = FloatOf(vector["weight_decay"]);
  options.initial_accumulator = FloatOf(vector["initial_accumulator"]);
  options.ftrl_l1 = FloatOf(vector["ftrl_l1"]);
  options.ftrl_l2 = FloatOf(vector["ftrl_l2"]);
  options.decoupled_weight_decay = FloatOf(vector["decoupled_weight_decay"]);
  return options;
}

TEST_P(GoldenTest, OptimizersGiveTheBitsOfTheScriptAndAgreeWithTheWitness) {
  ASSERT_GE(Golden()["optimizers"].size(), 35u);
  int witnessed = 0;
  for (const Json& vector : Golden()["optimizers"]) {
    SCOPED_TRACE(vector["rule"].get<std::string>() + ", dim " + vector["dim"].dump() + ", " +
                 vector["value_type"].get<std::string>());
    Subject subject = Make(1, "t", OptionsOf(vector));
    subject.Upsert(9, Floats(vector["first_values"]));
    for (const Json& gradient : vector["gradients"]) subject.Apply({9}, Floats(gradient));
    ExpectSameBits(subject.Lookup(9), Floats(vector["values"]));
    ExpectSameBits(subject.State(9), Floats(vector["state"]));
    if (!vector.contains("witness")) continue;
    ++witnessed;
    ExpectNear(subject.Lookup(9), Floats(vector["witness"]["values"]));
    ExpectNear(subject.State(9), Floats(vector["witness"]["state"]));
  }
  EXPECT_EQ(witnessed, 22);
}

TEST_P(GoldenTest, DuplicatesAreSummedInRunsOf32) {
  ASSERT_EQ(Golden()["sums"].size(), 9u);
  embank_table_options options = test::TableOptions(1, EMBANK_OPT_SGD);
  options.learning_rate = 1.0f;
  for (const Json& vector : Golden()["sums"]) {
    std::vector<float> gradients = Floats(vector["gradients"]);
    SCOPED_TRACE(std::to_string(gradients.size()) + " occurrences");
    Subject subject = Make(1, "t", options);
    subject.Upsert(5, {0.0f});
    subject.Apply(std::vector<uint64_t>(gradients.size(), 5), gradients);
    ExpectSameBits(subject.Lookup(5), {-FloatOf(vector["sum"])});
  }
}

TEST_P(GoldenTest, FirstValuesComeFromSeedTableAndKey) {
  ASSERT_EQ(Golden()["first_values"].size(), 24u);
  for (const Json& vector : Golden()["first_values"]) {
    SCOPED_TRACE(vector.dump());
    bool uniform = vector["initializer"] == "uniform";
    std::vector<float> expected = Floats(vector["values"]);
    embank_table_options options = test::TableOptions(static_cast<uint32_t>(expected.size()));
    options.initializer = uniform ? EMBANK_INIT_UNIFORM : EMBANK_INIT_NORMAL;
    options.init_a = FloatOf(vector["a"]);
    options.init_b = FloatOf(vector["b"]);
    Subject subject = Make(vector["store_seed"], vector["name"], options);
    std::vector<float> actual = subject.Lookup(vector["key"]);
    if (uniform) {
      ExpectSameBits(actual, expected);
      continue;
    }
    // The witness takes its logarithm from libm: a last bit of float32 may fall the other way.
    for (size_t i = 0; i < expected.size(); ++i) {
      EXPECT_NEAR(actual[i], expected[i], 1.2e-7 * std::fabs(expected[i])) << "element " << i;
    }
  }
}

// With w = 0 and a learning rate of 1, a step with -x leaves x, rounded to the table's type. Those
// that are rounded to infinity make no step: they are left out.
TEST_P(GoldenTest, SixteenBitRowsRoundToNearestEven) {
  const Json& vectors = Golden()["rounding"];
  ASSERT_GE(vectors.size(), 140u);
  for (int32_t type : {EMBANK_F16, EMBANK_BF16}) {
    embank_table_options options =
        test::TableOptions(static_cast<uint32_t>(vectors.size()), EMBANK_OPT_SGD);
    options.value_type = type;
    options.learning_rate = 1.0f;
    Subject subject = Make(1, "t", options);
    const auto rounded = [type](const Json& vector) {
      uint16_t bits = vector[type == EMBANK_F16 ? "f16" : "bf16"];
      return type == EMBANK_F16 ? oracle::FloatFromHalf(bits) : oracle::FloatFromBfloat16(bits);
    };
    std::vector<float> gradient;
    for (const Json& vector : vectors) {
      gradient.push_back(std::isfinite(rounded(vector)) ? -FloatOf(vector["f32"]) : 0.0f);
    }
    subject.Upsert(3, std::vector<float>(vectors.size(), 0.0f));
    subject.Apply({3}, gradient);
    std::vector<float> values = subject.Lookup(3);
    for (size_t i = 0; i < values.size(); ++i) {
      float expected = rounded(vectors[i]);
      if (!std::isfinite(expected)) continue;
      // 0 - (-0 * 1) is +0, and so is 0 - 0.
      EXPECT_EQ(values[i], expected) << "rounding of " << vectors[i].dump();
    }
  }
}

TEST(GoldenNumbers, MixAndTableHashMatchTheirDefinitions) {
  ASSERT_EQ(Golden()["mix"].size(), 13u);
  for (const Json& vector : Golden()["mix"]) {
    EXPECT_EQ(oracle::Mix(vector["x"]), vector["mix"].get<uint64_t>());
  }
  ASSERT_EQ(Golden()["table_hash"].size(), 11u);
  for (const Json& vector : Golden()["table_hash"]) {
    EXPECT_EQ(oracle::TableHash(vector["name"]), vector["hash"].get<uint64_t>());
  }
}

TEST(GoldenNumbers, QuantileMatchesPython) {
  ASSERT_EQ(Golden()["quantile"].size(), 31u);
  for (const Json& vector : Golden()["quantile"]) {
    double p = DoubleOf(vector["p"]);
    double expected = DoubleOf(vector["value"]);
    EXPECT_NEAR(oracle::Quantile(p), expected, 4e-15 * std::fmax(1e-3, std::fabs(expected)))
        << "p = " << p;
  }
}

TEST(GoldenNumbers, RoundingMatchesPythonBitForBit) {
  for (const Json& vector : Golden()["rounding"]) {
    float value = FloatOf(vector["f32"]);
    EXPECT_EQ(oracle::HalfFromFloat(value), vector["f16"].get<uint16_t>()) << vector.dump();
    EXPECT_EQ(oracle::Bfloat16FromFloat(value), vector["bf16"].get<uint16_t>()) << vector.dump();
  }
}

TEST(GoldenNumbers, WideningAHalfAndRoundingItAgainIsTheIdentity) {
  for (uint32_t bits = 0; bits <= 0xFFFF; ++bits) {
    auto half = static_cast<uint16_t>(bits);
    bool nan = (bits & 0x7C00) == 0x7C00 && (bits & 0x3FF) != 0;
    ASSERT_EQ(std::isnan(oracle::FloatFromHalf(half)), nan) << bits;
    if (!nan) {
      ASSERT_EQ(oracle::HalfFromFloat(oracle::FloatFromHalf(half)), half) << bits;
    }
  }
}

}  // namespace
}  // namespace embank::golden_test
