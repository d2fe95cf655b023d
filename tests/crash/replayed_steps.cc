#include "tests/crash/replayed_steps.h"

#include "tests/support/c_api.h"
#include "tests/support/random.h"

namespace embank::test {
namespace {

constexpr uint32_t kDimOfRows = 500;
constexpr uint64_t kStepsPerCheckpoint = 5;

// Random streams of a step's operation, and of its other properties.
Random RandomOf(uint64_t seed, uint64_t step, uint64_t use) {
  return Random(Random(seed).Bits() ^ Random(3 * step + use).Bits());
}

std::string DifferenceOf(const char* verb, embank_status found, embank_status expected,
                         const std::vector<uint8_t>& outcomes,
                         const std::vector<uint8_t>& expected_outcomes) {
  if (found != expected) return std::string(verb) + ": " + embank_last_error();
  return outcomes == expected_outcomes ? "" : std::string(verb) + ": other outcomes";
}

}  // namespace

embank_store_options ReplayedStoreOptions(uint64_t seed) {
  embank_store_options options = StoreOptions();
  options.dram_bytes = uint64_t{16} << 20;
  options.flags = EMBANK_OPEN_CREATE;
  options.worker_threads = 2;
  options.seed = seed;
  return options;
}

embank_table_options ReplayedTableOptions() {
  embank_table_options options = TableOptions(kDimOfRows, EMBANK_OPT_ADAGRAD);
  options.learning_rate = 0.1f;
  options.epsilon = 1e-6f;
  options.initializer = EMBANK_INIT_UNIFORM;
  options.init_a = -0.5f;
  options.init_b = 0.5f;
  return options;
}

std::string ReplayedSteps::Do(uint64_t step, oracle::Table* oracle, embank_table* table) const {
  Random random = RandomOf(seed_, step, 0);
  const uint64_t verb = random.Below(8);
  const uint64_t crowd = random.OneIn(3) ? 500 : kReplayedKeys;
  std::vector<uint64_t> keys(random.Between(100, 400));
  for (uint64_t& key : keys) key = random.Below(crowd);
  std::vector<float> values(keys.size() * kDimOfRows);
  if (verb < 5) {
    for (float& value : values) value = random.Signed();
  }
  std::vector<float> found = values;
  std::vector<uint8_t> expected_outcomes(keys.size());
  std::vector<uint8_t> outcomes(keys.size());
  const size_t n = keys.size();
  embank_status status = EMBANK_OK;
  if (verb < 3) {
    const embank_status expected =
        oracle->Upsert(keys.data(), n, values.data(), 0, expected_outcomes.data());
    if (table == nullptr) return "";
    status = embank_upsert(table, keys.data(), n, values.data(), 0, outcomes.data());
    return DifferenceOf("upsert", status, expected, outcomes, expected_outcomes);
  }
  if (verb < 5) {
    const embank_status expected =
        oracle->ApplyGradients(keys.data(), n, values.data(), 0, expected_outcomes.data());
    if (table == nullptr) return "";
    status = embank_apply_gradients(table, keys.data(), n, values.data(), 0, outcomes.data());
    return DifferenceOf("gradients", status, expected, outcomes, expected_outcomes);
  }
  if (verb < 7) {
    const embank_status expected = oracle->Lookup(keys.data(), n, EMBANK_MISSING_CREATE,
                                                  values.data(), 0, expected_outcomes.data());
    if (table == nullptr) return "";
    status = embank_lookup(table, keys.data(), n, EMBANK_MISSING_CREATE, found.data(), 0,
                           outcomes.data());
    if (found != values) return "lookup: other rows";
    return DifferenceOf("lookup", status, expected, outcomes, expected_outcomes);
  }
  const embank_status expected = oracle->Erase(keys.data(), n, expected_outcomes.data());
  if (table == nullptr) return "";
  status = embank_erase(table, keys.data(), n, outcomes.data());
  return DifferenceOf("erase", status, expected, outcomes, expected_outcomes);
}

bool ReplayedSteps::HasCheckpoint(uint64_t step) const {
  return RandomOf(seed_, step, 1).OneIn(kStepsPerCheckpoint);
}

uint64_t ReplayedSteps::NextCheckpoint(uint64_t step) const {
  do ++step;
  while (!HasCheckpoint(step));
  return step;
}

std::vector<uint64_t> ReplayedSteps::Blob(uint64_t sequence, uint64_t step) const {
  Random random = RandomOf(seed_, step, 2);
  std::vector<uint64_t> blob(2 + random.Below(400));
  for (uint64_t& word : blob) word = random.Bits();
  blob[0] = sequence;
  blob[1] = step;
  return blob;
}

}  // namespace embank::test
