// A C++ program against the installed library and its wrapper: every call, with known values.
#include <unistd.h>
#include <array>
#include <cstdint>
#include <cstdio>
#include <embank.hpp>
#include <filesystem>
#include <set>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace api = embank::api;

namespace {

int differences = 0;

void Expect(bool holds, const char* what, int line) {
  if (holds) return;
  ++differences;
  std::fprintf(stderr, "consumer.cc:%d: not so: %s (%s)\n", line, what, embank_last_error());
}
#define EXPECT(what) Expect((what), #what, __LINE__)

static_assert(!std::is_copy_constructible_v<api::Store> && !std::is_copy_assignable_v<api::Scan>);
static_assert(std::is_nothrow_move_constructible_v<api::Store>);

api::TableOptions Options(int optimizer) {
  api::TableOptions options;
  options.dim = 2;
  options.optimizer = optimizer;
  options.learning_rate = 0.5f;
  options.epsilon = 1.0f;
  options.initializer = EMBANK_INIT_CONSTANT;
  options.init_a = 2.0f;
  return options;
}

void LookUpAndTrain(api::Table table) {
  const std::vector<std::uint64_t> keys = {0, UINT64_MAX, 5};
  std::vector<float> rows(keys.size() * 2), state(keys.size() * 2);
  std::array<std::uint8_t, 3> outcomes{};
  EXPECT(table.Lookup(keys, rows, EMBANK_MISSING_CREATE, outcomes).ok());
  EXPECT(outcomes[0] == EMBANK_ROW_CREATED && rows == std::vector<float>(6, 2.0f));
  const std::vector<float> gradients = {3, 3, 0, 0, 3, 3};
  EXPECT(table.ApplyGradients(keys, gradients).ok());
  EXPECT(table.Lookup(keys, rows, EMBANK_MISSING_SKIP).ok());
  EXPECT(rows == (std::vector<float>{1.625f, 1.625f, 2, 2, 1.625f, 1.625f}));
  EXPECT(table.GetState(keys, state).ok() && state == (std::vector<float>{9, 9, 0, 0, 9, 9}));
  EXPECT(table.SetState(keys, rows).ok() && table.GetState(keys, state).ok() && state == rows);
  std::vector<std::uint32_t> heat(3);
  EXPECT(table.GetHeat(keys, heat).ok() && heat == std::vector<std::uint32_t>(3, 2));
  const std::vector<float> written = {7, 8, 9, 10, 11, 12};
  EXPECT(table.Upsert(keys, written).ok() && table.Lookup(keys, rows).ok() && rows == written);
  EXPECT(table.SetLearningRate(0.25f).ok() && table.ApplyGradients(keys, gradients).ok());
  EXPECT(table.Lookup(keys, rows).ok() && rows[0] == 7 - 0.25f * 3 / 4);
  auto options = table.Options();
  EXPECT(options.ok() && options->learning_rate == 0.25f);
  options->epsilon = 2.0f;
  EXPECT(table.SetOptions(*options, EMBANK_SET_EPSILON).ok() && table.Options()->epsilon == 2.0f);
  EXPECT(table.Erase({&keys[2], 1}, outcomes).ok() && outcomes[0] == EMBANK_ROW_FOUND);
  EXPECT(table.Prefetch(keys).ok());
  EXPECT(table.Contains(keys, outcomes).ok() && outcomes[2] == EMBANK_ROW_ABSENT);
}

void Pool() {
  api::StoreOptions options;
  options.hbm_bytes = 1 << 20;
  api::Store store = std::move(*api::Store::Open(options));
  api::Table table = store.CreateTable("items", Options(EMBANK_OPT_SGD)).value_or_throw();
  const std::vector<std::uint32_t> keys = {1, 2, 3};
  std::vector<float> rows(6);
  std::vector<std::uint8_t> outcomes(3);
  embank_feature feature = {};
  feature.struct_size = sizeof(feature);
  feature.table = table.get();
  feature.n = 3;
  feature.key_type = EMBANK_INDEX_U32;
  feature.typed_keys = keys.data();
  feature.rows = rows.data();
  feature.flags = EMBANK_FEATURE_PADDING;
  feature.padding_key = 2;
  EXPECT(api::LookupPacked({&feature, 1}, EMBANK_MISSING_CREATE, outcomes).ok());
  EXPECT(rows == (std::vector<float>{2, 2, 0, 0, 2, 2}) && outcomes[1] == EMBANK_ROW_ABSENT);
  EXPECT(api::ApplyGradientsPacked({&feature, 1}).ok() && api::PrefetchPacked({&feature, 1}).ok());
  void* const memory = *store.AllocateDevice(24);
  feature.rows = memory;
  EXPECT(api::LookupPackedDevice({&feature, 1}, EMBANK_MISSING_ZERO, outcomes).ok());
  EXPECT(store.CopyDevice(rows.data(), memory, 24).ok());
  EXPECT(rows == (std::vector<float>{1, 1, 0, 0, 1, 1}));
  EXPECT(api::ApplyGradientsPackedDevice({&feature, 1}).ok());
}

void ScanAll(api::Table table) {
  auto opened = table.OpenScan();
  EXPECT(opened.ok());
  api::Scan scan = std::move(*opened);
  std::vector<std::uint64_t> keys(1);
  std::vector<float> rows(2);
  std::multiset<std::uint64_t> seen;
  for (auto n = scan.Next(keys, rows); n.ok() && *n > 0; n = scan.Next(keys, rows)) {
    seen.insert(keys[0]);
  }
  EXPECT(seen == (std::multiset<std::uint64_t>{0, UINT64_MAX}));
  keys.resize(2);
  EXPECT(scan.Next(keys, rows).status().code == EMBANK_INVALID_ARGUMENT);
}

// Rows go out with state and heat, are erased, and come back as they were.
void WholeRows(api::Table table) {
  api::Scan scan = table.OpenScan().value_or_throw();
  std::vector<std::uint64_t> keys(4);
  std::vector<float> rows(8), state(8), again(4);
  std::vector<std::uint32_t> heat(4), told(2);
  EXPECT(*scan.NextFull({keys, rows, state, heat}, 4) == 2);
  EXPECT(*scan.NextFull({}, 4) == 0);
  keys.resize(2);
  EXPECT(table.Erase(keys).ok() && table.UpsertFull(keys, rows, state, heat).ok());
  EXPECT(table.GetState(keys, again).ok() && table.GetHeat(keys, told).ok());
  state.resize(4);
  heat.resize(2);
  EXPECT(again == state && told == heat && heat[0] > 0);
  EXPECT(table.UpsertFull(keys, rows, {state.data(), 3}).code == EMBANK_INVALID_ARGUMENT);
  EXPECT(scan.NextFull({{}, {nullptr, 0}, {}, heat}, 3).status().code == EMBANK_INVALID_ARGUMENT);
}

void Facts() {
  const std::string path =
      (std::filesystem::temp_directory_path() / ("embank_" + std::to_string(getpid()))).string();
  api::StoreOptions options;
  options.path = path.c_str();
  options.flags = EMBANK_OPEN_CREATE;
  options.dram_bytes = 64 << 20;
  {
    api::Store store = api::Store::Open(options).value_or_throw();
    const embank_store_options used = *store.Options();
    EXPECT(used.path == path && used.dram_bytes == options.dram_bytes && used.worker_threads > 0);
    EXPECT(store.CheckpointInfo().status().code == EMBANK_NOT_FOUND);
    EXPECT(*store.Checkpoint(std::string("blob")) == store.CheckpointInfo()->sequence);
    EXPECT(store.CheckpointInfo()->blob_bytes == 4 && store.CheckpointInfo()->rows == 0);
    EXPECT(store.CheckpointInfo()->unix_ns > 0);
  }
  std::filesystem::remove_all(path);
  // The numbers of docs/arithmetic.md.
  const std::vector<std::uint64_t> keys = {0, 42};
  EXPECT(*api::OwnersOf("users", keys, 256) == (std::vector<std::uint32_t>{137, 63}));
  EXPECT(!api::OwnersOf("users", keys, 0).ok());
}

void HalfRows(api::Store& store) {
  api::TableOptions options = Options(EMBANK_OPT_NONE);
  options.value_type = EMBANK_F16;
  api::Table table = store.CreateTable("half", options).value_or_throw();
  const std::vector<std::uint64_t> keys = {1};
  std::vector<std::uint16_t> rows(2);
  EXPECT(table.Lookup(keys, rows).ok() && rows[0] == 0x4000);  // 2.0
  EXPECT(table.row_bytes() == 4);
}

void Refusals(api::Store& store, api::Table table) {
  const std::vector<std::uint64_t> keys = {1, 2};
  std::vector<float> rows(3);
  const api::Status status = table.Lookup(keys, rows);
  EXPECT(status.code == EMBANK_INVALID_ARGUMENT && status.message.find("rows") == 0);
  std::vector<std::uint8_t> outcomes(1);
  EXPECT(table.Contains(keys, outcomes).code == EMBANK_INVALID_ARGUMENT);
  auto missing = store.OpenTable("nobody");
  EXPECT(!missing.ok() && missing.status().code == EMBANK_NOT_FOUND);
  EXPECT(std::string(missing.status().name()) == "NOT_FOUND" && !missing.status().message.empty());
  bool thrown = false;
  try {
    store.CreateTable("items", Options(EMBANK_OPT_SGD)).value_or_throw();
  } catch (const api::Error& error) {
    thrown = error.code == EMBANK_ALREADY_EXISTS;
  }
  EXPECT(thrown);
}

void Ask(api::Store& store) {
  EXPECT(*store.TableNames() == "items\nhalf\n");
  EXPECT(store.Metrics()->find("embank_") != std::string::npos);
  EXPECT(store.MemoryReport()->find("\"dram\"") != std::string::npos);
  auto needs = api::Estimate({}, {Options(EMBANK_OPT_ADAM)}, {1000});
  EXPECT(needs.ok() && needs->find("\"dram_bytes\"") != std::string::npos);
  EXPECT(!api::Estimate({}, {}, {1}).ok());
  EXPECT(!api::EstimateForHitRatio({}, {Options(EMBANK_OPT_ADAM)}, {1000}, 1.05, 0.9).ok());
}

void StateSizes(api::Store& store) {
  const std::pair<int, std::uint64_t> floats[] = {
      {EMBANK_OPT_NONE, 0}, {EMBANK_OPT_SGD, 0},  {EMBANK_OPT_ADAGRAD, 2},
      {EMBANK_OPT_FTRL, 4}, {EMBANK_OPT_ADAM, 5}, {EMBANK_OPT_ROWWISE_ADAGRAD, 1}};
  for (const auto& [optimizer, count] : floats) {
    api::Table table = *store.CreateTable("state", Options(optimizer));
    const std::vector<std::uint64_t> keys = {1};
    std::vector<float> rows(2), state(count);
    EXPECT(table.state_floats() == count && table.Lookup(keys, rows).ok());
    EXPECT(table.GetState(keys, state).ok() == (count > 0));
    EXPECT(store.DropTable("state").ok());
  }
}

}  // namespace

int main() {
  auto opened = api::Store::Open();
  EXPECT(opened.ok());
  api::Store store = std::move(*opened);
  api::Table table = store.CreateTable("items", Options(EMBANK_OPT_ADAGRAD)).value_or_throw();
  LookUpAndTrain(table);
  Pool();
  ScanAll(*store.OpenTable("items"));
  WholeRows(table);
  EXPECT(table.Info()->rows == 2);
  Facts();
  HalfRows(store);
  Refusals(store, table);
  Ask(store);
  StateSizes(store);
  std::printf("C++: %d differences\n", differences);
  return differences != 0;
}
