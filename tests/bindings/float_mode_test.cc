// Callers with any floating-point mode: results are those of the default mode, bit for bit, on any
// thread, and the caller's mode and exception flags do not change.
#include <gtest/gtest.h>

#include <cfenv>
#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "bindings/c/embank.h"
#include "tests/support/c_api.h"
#include "tests/support/random.h"

namespace embank::test::float_mode_test {
namespace {

constexpr uint32_t kDim = 3;
constexpr uint64_t kKeys = 9'000;                             // a batch that workers share
constexpr uint64_t kRowBytes = kKeys * kDim * sizeof(float);  // of all keys

// The mode of a thread, as one number.
#if defined(__x86_64__)
struct Mode {
  std::string name;
  unsigned bits;
};
// Rounding, flush to zero (15), denormals are zero (6), masked exceptions (7 to 12), flags (0 to
// 5).
const std::vector<Mode>& Modes() {
  static const std::vector<Mode> modes = {{"default", 0x1F80},
                                          {"down", 0x3F80},
                                          {"up", 0x5F80},
                                          {"toward zero", 0x7F80},
                                          {"flush to zero", 0x9F80},
                                          {"denormals are zero", 0x1FC0},
                                          {"all at once", 0xFFC0},
                                          {"exceptions are signals", 0x0000},
                                          {"with all flags up", 0x1FBF},
                                          {"toward zero, with some flags up", 0x7F95}};
  return modes;
}
void SetMode(unsigned bits) { __builtin_ia32_ldmxcsr(bits); }
unsigned GetMode() { return __builtin_ia32_stmxcsr(); }
constexpr unsigned kDefaultMode = 0x1F80;
#else
struct Mode {
  std::string name;
  int bits;
};
const std::vector<Mode>& Modes() {
  static const std::vector<Mode> modes = {{"default", FE_TONEAREST},
                                          {"down", FE_DOWNWARD},
                                          {"up", FE_UPWARD},
                                          {"toward zero", FE_TOWARDZERO}};
  return modes;
}
void SetMode(int bits) { std::fesetround(bits); }
int GetMode() { return std::fegetround(); }
constexpr int kDefaultMode = FE_TONEAREST;
#endif

struct Shape {
  std::string name;
  embank_table_options options;
};

// Each optimizer and each initializer with each type of values.
std::vector<Shape> Shapes() {
  std::vector<Shape> shapes;
  for (const int32_t type : {EMBANK_F32, EMBANK_F16, EMBANK_BF16}) {
    const auto add = [&](int32_t optimizer, int32_t initializer) {
      embank_table_options options = TableOptions(kDim, optimizer);
      options.value_type = type;
      options.initializer = initializer;
      options.init_a = initializer == EMBANK_INIT_CONSTANT ? 1e-39f : -0.3f;
      options.init_b = 0.7f;
      options.learning_rate = 0.1f;
      options.weight_decay = 1e-3f;
      options.initial_accumulator = 0.1f;
      shapes.push_back({"type " + std::to_string(type) + " optimizer " + std::to_string(optimizer) +
                            " initializer " + std::to_string(initializer),
                        options});
    };
    for (int32_t optimizer = EMBANK_OPT_SGD; optimizer <= EMBANK_OPT_FTRL; ++optimizer) {
      add(optimizer, EMBANK_INIT_UNIFORM);
    }
    for (int32_t init = EMBANK_INIT_ZERO; init <= EMBANK_INIT_NORMAL; ++init) {
      add(EMBANK_OPT_ADAGRAD, init);
    }
  }
  return shapes;
}

// The inputs of the calls, made in the default mode.
struct Inputs {
  Inputs() : keys(KeyRange(0, kKeys)), gradients(kKeys * kDim), weights(kKeys) {
    for (uint64_t i = 0; i < kKeys; i += 5) keys[i] = i / 2;  // sums of several gradients
    Random random(5);
    // Ordinary numbers, tiny ones, and such as round.
    const float scales[] = {1.0f, 1e-3f, 1e-30f, 1e-40f};
    for (float& value : gradients) value = random.Signed() * scales[random.Below(4)];
    for (float& weight : weights) weight = random.Signed();
  }
  std::vector<uint64_t> keys;
  std::vector<float> gradients;
  std::vector<float> weights;
};

// The contents of a table after some calls.
using Shown = std::vector<uint8_t>;

// Bags of ten keys, summed with weights, as the gradients' calls see them too. The sums follow the
// rows.
embank_status MakePackedCalls(embank_table* table, const Inputs& inputs, Shown* rows) {
  constexpr uint64_t kBagKeys = 10;
  constexpr uint64_t kBags = kKeys / kBagKeys;
  std::vector<uint64_t> offsets(kBags + 1);
  for (uint64_t bag = 0; bag <= kBags; ++bag) offsets[bag] = bag * kBagKeys;
  std::vector<float> gradients(inputs.gradients.begin(), inputs.gradients.begin() + kBags * kDim);
  embank_feature feature = {};
  feature.struct_size = sizeof feature;
  feature.pooling = EMBANK_POOL_SUM;
  feature.table = table;
  feature.keys = inputs.keys.data();
  feature.n = kKeys;
  feature.offsets = offsets.data();
  feature.bags = kBags;
  feature.weights = inputs.weights.data();
  feature.rows = gradients.data();
  const embank_status applied = embank_apply_gradients_packed(&feature, 1, nullptr);
  if (applied != EMBANK_OK) return applied;
  feature.rows = rows->data() + kRowBytes;
  return embank_lookup_packed(&feature, 1, EMBANK_MISSING_ZERO, nullptr);
}

// Makes the calls in the mode that the thread has.
embank_status MakeCalls(embank_table* table, const Inputs& inputs, Shown* rows, Shown* states) {
  const uint64_t* const keys = inputs.keys.data();
  embank_status worst = EMBANK_OK;
  const auto call = [&worst](embank_status status) {
    if (status != EMBANK_OK) worst = status;
  };
  call(embank_lookup(table, keys, kKeys, EMBANK_MISSING_CREATE, rows->data(), 0, nullptr));
  for (int step = 0; step < 3; ++step) {
    call(embank_apply_gradients(table, keys, kKeys, inputs.gradients.data(), 0, nullptr));
  }
  call(embank_set_learning_rate(table, 0.03f));
  call(embank_apply_gradients(table, keys, kKeys, inputs.gradients.data(), 0, nullptr));
  call(MakePackedCalls(table, inputs, rows));
  call(embank_lookup(table, keys, kKeys, EMBANK_MISSING_ZERO, rows->data(), 0, nullptr));
  if (!states->empty()) {
    auto* const state = reinterpret_cast<float*>(states->data());
    call(embank_get_state(table, keys, kKeys, state, 0, nullptr));
  }
  return worst;
}

uint64_t StateFloats(int32_t optimizer) {
  switch (optimizer) {
    case EMBANK_OPT_ADAGRAD:
      return kDim;
    case EMBANK_OPT_ROWWISE_ADAGRAD:
      return 1;
    case EMBANK_OPT_ADAM:
      return 2 * kDim + 1;
    case EMBANK_OPT_FTRL:
      return 2 * kDim;
    default:
      return 0;
  }
}

// The contents of each shape's table when everything, from the opening of its store on, is done in
// a mode.
std::map<std::string, Shown> RunInMode(const Mode& mode, uint32_t workers, const Inputs& inputs) {
  std::map<std::string, Shown> shown;
  embank_store_options options = StoreOptions();
  options.worker_threads = workers;
  options.seed = 9;
  for (const Shape& shape : Shapes()) {
    Shown rows(2 * kRowBytes);
    Shown states(kKeys * StateFloats(shape.options.optimizer) * sizeof(float));
    embank_store* store = nullptr;
    embank_table* table = nullptr;
    SetMode(mode.bits);
    const embank_status opened = embank_store_open(&options, &store);
    const embank_status created =
        opened == EMBANK_OK ? embank_table_create(store, "t", &shape.options, &table) : opened;
    const embank_status ran =
        created == EMBANK_OK ? MakeCalls(table, inputs, &rows, &states) : created;
    const embank_status closed = embank_store_close(store);
    const auto left = GetMode();
    SetMode(kDefaultMode);
    EXPECT_EQ(ran, EMBANK_OK) << embank_last_error();
    EXPECT_EQ(closed, EMBANK_OK);
    EXPECT_EQ(left, mode.bits) << mode.name << ": the caller's mode or flags changed";
    rows.insert(rows.end(), states.begin(), states.end());
    shown[shape.name] = std::move(rows);
  }
  return shown;
}

TEST(FloatMode, ResultsAreThoseOfTheDefaultModeAndTheCallersModeStays) {
  const Inputs inputs;
  const std::map<std::string, Shown> right = RunInMode(Modes().front(), 1, inputs);
  for (const Mode& mode : Modes()) {
    for (const uint32_t workers : {1u, 2u}) {
      const std::map<std::string, Shown> shown = RunInMode(mode, workers, inputs);
      for (const auto& [name, bytes] : right) {
        EXPECT_TRUE(shown.at(name) == bytes)
            << mode.name << ", " << workers << " workers: another result of " << name;
      }
    }
  }
}

// The first call that needs a worker may come later than the opening, in another mode.
TEST(FloatMode, AStoreThatWasOpenedInTheDefaultModeIsUsedInAnyOther) {
  const Inputs inputs;
  const Shape shape = Shapes().front();
  const Shown right = RunInMode(Modes().front(), 1, inputs).at(shape.name);
  embank_store_options options = StoreOptions();
  options.worker_threads = 2;
  options.seed = 9;
  for (const Mode& mode : Modes()) {
    const StorePtr store = OpenStore(options);
    embank_table* const table = CreateTable(store.get(), "t", shape.options);
    Shown rows(right.size());
    Shown states;
    SetMode(mode.bits);
    const embank_status ran = MakeCalls(table, inputs, &rows, &states);
    const auto left = GetMode();
    SetMode(kDefaultMode);
    EXPECT_EQ(ran, EMBANK_OK) << embank_last_error();
    EXPECT_EQ(left, mode.bits) << mode.name;
    EXPECT_TRUE(rows == right) << mode.name;
  }
}

}  // namespace
}  // namespace embank::test::float_mode_test
