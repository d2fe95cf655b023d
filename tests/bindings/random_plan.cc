#include "tests/bindings/random_plan.h"

#include "tests/support/c_api.h"
#include "tests/support/hbm_tier.h"

namespace embank::test {
namespace {

constexpr uint64_t kTightBytes = 16 << 20;
constexpr uint64_t kCrashSsdBytes = 16 << 20;  // nothing is refused
constexpr uint64_t kElementsMax = 1 << 17;  // 5000 rows of dim 26; keeps a step near a millisecond

uint64_t KeyOfIndex(uint64_t style, uint64_t i) {
  switch (style) {
    case 0:
      return i;
    case 1:
      return ~i;
    case 2:
      return i << 52;  // all differ in the top bits only
    default:
      return Random(i).Bits();
  }
}

std::vector<uint64_t> Universe(uint64_t size, Random* random) {
  std::vector<uint64_t> keys = {0, ~uint64_t{0}};
  uint64_t style = random->Below(4);
  for (uint64_t i = 1; keys.size() < size; ++i) keys.push_back(KeyOfIndex(style, i));
  return keys;
}

// A creating verb is always there: nothing can be said of an empty table for long.
std::vector<Verb> SomeVerbs(Random* random) {
  std::vector<Verb> verbs = {random->OneIn(3) ? Verb::kUpsert : Verb::kLookup};
  for (Verb verb : {Verb::kLookup, Verb::kUpsert, Verb::kGradients}) {
    if (!random->OneIn(4)) verbs.insert(verbs.end(), 4, verb);
  }
  for (Verb verb : {Verb::kBadGradients, Verb::kErase, Verb::kContains, Verb::kGetState,
                    Verb::kSetState, Verb::kGetHeat, Verb::kLearningRate, Verb::kScan,
                    Verb::kUpsertFull, Verb::kScanFull, Verb::kSetOptions}) {
    if (!random->OneIn(3)) verbs.push_back(verb);
  }
  if (random->OneIn(2)) {
    verbs.push_back(Verb::kOpenScan);
    verbs.insert(verbs.end(), 3, Verb::kContinueScan);
  }
  if (random->OneIn(3)) verbs.push_back(Verb::kDrop);
  return verbs;
}

uint32_t RandomDim(Random* random) {
  switch (random->Below(8)) {
    case 0:
      return static_cast<uint32_t>(random->Between(1, 4096));
    case 1:
      return static_cast<uint32_t>(random->Between(1, 300));
    case 2:
    case 3:
      return static_cast<uint32_t>(2 * random->Below(33) + 1);
    default:
      return static_cast<uint32_t>(random->Between(1, 9));
  }
}

void RandomInitializer(embank_table_options* options, Random* random) {
  options->initializer = static_cast<int32_t>(random->Below(4));
  options->init_a = random->Signed();
  options->init_b = options->initializer == EMBANK_INIT_NORMAL
                        ? random->Unit()
                        : options->init_a + random->Unit() + 0.01f;
  if (random->OneIn(4)) {
    options->init_a = -0.05f;
    options->init_b = 0.05f;
  }
}

void MakeTight(Plan* plan, Random* random) {
  plan->tight = true;
  plan->store.dram_bytes = kTightBytes + random->Below(1 << 20);
  plan->keys = Universe(random->Between(3000, 6000), random);
  plan->verbs.insert(plan->verbs.end(), 6, random->OneIn(2) ? Verb::kUpsert : Verb::kLookup);
  plan->verbs.push_back(Verb::kErase);
  plan->steps = 60;
  plan->batch_elements_max = 1 << 19;
}

// About four times as many rows as memory has space for, by the end of most seeds.
void MakeOnDisk(Plan* plan, Random* random) {
  plan->on_disk = true;
  plan->reopens_early = plan->seed / 8 % 2 == 0;  // few seeds meet it by chance
  plan->store.dram_bytes = kTightBytes + random->Below(1 << 20);
  plan->keys = Universe(random->Between(2000, 6000), random);
  plan->tables = random->Between(1, 2);
  plan->verbs.insert(plan->verbs.end(), 4, random->OneIn(2) ? Verb::kUpsert : Verb::kLookup);
  plan->verbs.insert(plan->verbs.end(), 2, Verb::kCheckpoint);
  plan->verbs.insert(plan->verbs.end(), {Verb::kStartCheckpoint, Verb::kFinishCheckpoint});
  plan->verbs.insert(plan->verbs.end(), {Verb::kReopen, Verb::kPrefetch, Verb::kPrefetch});
  std::erase(plan->verbs, Verb::kGetHeat);
  plan->steps = 100;
  plan->batch_elements_max = 1 << 20;
}

void MakeHot(Plan* plan) {
  plan->hot = true;
  plan->verbs.insert(plan->verbs.end(), 12, Verb::kLookup);
  plan->verbs.push_back(Verb::kGetHeat);
  plan->steps = 40;
  plan->tables = 1;
  plan->batch_max = 300'000;
  plan->batch_elements_max = 600'000;
}

void AddHotRows(Plan* plan) {
  if (!WithHbm()) return;
  AddHbm(&plan->store, plan->seed);
  plan->verbs.insert(plan->verbs.end(), plan->verbs.size() / 6 + 1, Verb::kFlushHot);
}

}  // namespace

Plan MakePlan(uint64_t seed) {
  Random random(seed);
  Plan plan;
  plan.seed = seed;
  plan.store = StoreOptions();
  plan.store.seed = random.OneIn(4) ? random.Bits() : random.Below(3);
  plan.store.worker_threads = static_cast<uint32_t>(random.Below(4));
  plan.verbs = SomeVerbs(&random);
  plan.keys = Universe(random.OneIn(3) ? random.Between(3, 40) : random.Between(40, 4000), &random);
  plan.tables = random.Between(1, 4);
  plan.steps = random.Between(30, 120);
  plan.batch_max = 5000;
  plan.batch_elements_max = kElementsMax;
  if (seed % 8 == 5) MakeTight(&plan, &random);
  if (seed % 16 == 7) MakeHot(&plan);
  if (seed % 8 == 3) MakeOnDisk(&plan, &random);
  AddHotRows(&plan);
  return plan;
}

// Few rows fill memory where they are of many classes, each of which has pages of its own.
Plan MakeCrashPlan(uint64_t seed) {
  Random random(seed);
  Plan plan;
  plan.seed = seed;
  plan.on_disk = true;
  plan.crashes = true;
  plan.store = StoreOptions();
  plan.store.seed = random.Bits();
  plan.store.dram_bytes = kTightBytes + random.Below(1 << 20);
  if (random.OneIn(2)) plan.store.ssd_bytes = kCrashSsdBytes;
  plan.keys = Universe(random.Between(30, 200), &random);
  plan.tables = seed % 2 == 0 ? random.Between(1, 4) : random.Between(9, 12);
  plan.verbs = SomeVerbs(&random);
  plan.verbs.insert(plan.verbs.end(), 4, random.OneIn(2) ? Verb::kUpsert : Verb::kLookup);
  plan.verbs.insert(plan.verbs.end(), plan.verbs.size() / 8 + 1, Verb::kCheckpoint);
  plan.verbs.insert(plan.verbs.end(), {Verb::kStartCheckpoint, Verb::kFinishCheckpoint});
  std::erase(plan.verbs, Verb::kGetHeat);
  plan.steps = random.Between(40, 80);
  plan.batch_elements_max = 1 << 14;
  AddHotRows(&plan);
  if (WithHbm()) plan.store.hbm_bytes = kHbmBytesMin;
  return plan;
}

embank_table_options RandomTableOptions(const Plan& plan, Random* random) {
  embank_table_options options = TableOptions(RandomDim(random));
  if (plan.tight) options.dim = static_cast<uint32_t>(random->Between(300, 2000));
  if (plan.on_disk) options.dim = static_cast<uint32_t>(random->Between(300, 1000));
  if (plan.crashes) options.dim = static_cast<uint32_t>(random->Between(1, 120));
  if (plan.hot) options.dim = static_cast<uint32_t>(random->Between(1, 2));
  options.value_type = static_cast<int32_t>(random->Below(3));
  options.optimizer = static_cast<int32_t>(random->Below(6));
  options.learning_rate = RandomLearningRate(options.optimizer, random);
  options.beta1 = random->OneIn(4) ? 0.0f : 0.9f;
  options.beta2 = random->OneIn(4) ? 0.0f : 0.999f;
  options.epsilon = random->OneIn(3) ? 0.0f : 1e-6f;
  options.weight_decay = random->OneIn(2) ? 0.0f : 0.01f;
  options.initial_accumulator = random->OneIn(2) ? 0.0f : 0.1f;
  options.eviction = static_cast<int32_t>(random->Below(3));  // EMBANK_EVICT_*
  RandomInitializer(&options, random);
  RandomRule(random, &options);
  if (random->OneIn(8)) options.expected_rows_log2 = static_cast<uint32_t>(random->Below(13));
  return options;
}

void RandomRule(Random* random, embank_table_options* options) {
  const bool is_ftrl = options->optimizer == EMBANK_OPT_FTRL;
  options->max_gradient_norm = random->OneIn(4) ? 4.0f * random->Unit() : 0.0f;
  options->max_gradient_value = random->OneIn(4) ? 2.0f * random->Unit() : 0.0f;
  options->ftrl_l1 = is_ftrl && random->OneIn(2) ? 0.1f * random->Unit() : 0.0f;
  options->ftrl_l2 = is_ftrl && random->OneIn(2) ? random->Unit() : 0.0f;
  options->decoupled_weight_decay = !is_ftrl && random->OneIn(4) ? 0.1f * random->Unit() : 0.0f;
  const bool is_wide = options->value_type == EMBANK_F32;
  options->rounding =
      !is_wide && random->OneIn(2) ? EMBANK_ROUNDING_STOCHASTIC : EMBANK_ROUNDING_NEAREST;
}

float RandomLearningRate(int32_t optimizer, Random* random) {
  if (optimizer != EMBANK_OPT_FTRL && random->OneIn(8)) return 0.0f;
  return random->OneIn(4) ? 1.0f : 0.001f + random->Unit();
}

}  // namespace embank::test
