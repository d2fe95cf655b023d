#include <cmath>

#include "tests/bindings/bad_input.h"

namespace embank::test {
namespace {

constexpr embank_status kInvalid = EMBANK_INVALID_ARGUMENT;
constexpr embank_status kState = EMBANK_FAILED_PRECONDITION;
constexpr uint64_t kTooMany = uint64_t{1} << 32;
constexpr uint64_t kTooWide = ~uint64_t{0} - 3;

// The cases of every data call, for keys and rows, are in bad_data_inputs.cc.
BadInput UpsertFull(const std::string& name, embank_status status,
                    std::vector<std::string> mentions, embank_table* Scene::*table,
                    const float* state, uint64_t state_stride, uint32_t second_heat) {
  auto run = [=](Scene& s) {
    s.heat[1] = second_heat;
    return embank_upsert_full(s.*table, s.keys, 2, s.values, 0, state, state_stride, s.heat,
                              s.out->outcomes);
  };
  return {"upsert_full: " + name, run, status, std::move(mentions)};
}

std::vector<BadInput> UpsertFullCases() {
  static constexpr float kStates[14] = {};
  static float steps[14] = {};
  steps[13] = NAN;
  return {
      UpsertFull("no state", kState, {"state"}, &Scene::plain, kStates, 0, 0),
      UpsertFull("SGD has no state", kState, {"state"}, &Scene::sgd, kStates, 0, 0),
      UpsertFull("state_stride 11", kInvalid, {"state_stride", "12"}, &Scene::adagrad, kStates, 11,
                 0),
      UpsertFull("state_stride beyond the address space", kInvalid, {"state_stride"},
                 &Scene::adagrad, kStates, kTooWide, 0),
      UpsertFull("heat above the limit", kInvalid, {"heat", "12", "1048576", "1048575"},
                 &Scene::adagrad, kStates, 0, 1048576),
      UpsertFull("heat far above the limit", kInvalid, {"heat", "1048575"}, &Scene::adagrad,
                 nullptr, 0, UINT32_MAX),
      UpsertFull("Adam steps", kInvalid, {"state", "12", "16777216"}, &Scene::adam, steps, 0, 0),
  };
}

// The arguments of a call that is right; a case changes one of them.
struct ScanArguments {
  embank_scan* scan;
  uint64_t row_stride = 0;
  uint64_t state_stride = 0;
  uint64_t cap = 2;
  uint64_t* n;
};

BadInput ScanNextFull(const std::string& name, std::vector<std::string> mentions,
                      const std::function<void(ScanArguments*)>& change) {
  auto run = [change](Scene& s) {
    ScanArguments a = {.scan = s.scan, .n = &s.out->n};
    change(&a);
    return embank_scan_next_full(a.scan, s.out->keys, s.out->rows, a.row_stride, s.out->rows + 32,
                                 a.state_stride, s.out->heat, a.cap, a.n);
  };
  return {"scan_next_full: " + name, run, kInvalid, std::move(mentions)};
}

std::vector<BadInput> ScanNextFullCases() {
  return {
      ScanNextFull("scan NULL", {"scan"}, [](ScanArguments* a) { a->scan = nullptr; }),
      ScanNextFull("n NULL", {"n"}, [](ScanArguments* a) { a->n = nullptr; }),
      ScanNextFull("cap 0", {"cap"}, [](ScanArguments* a) { a->cap = 0; }),
      ScanNextFull("cap too large", {"cap", "4294967295"},
                   [](ScanArguments* a) { a->cap = kTooMany; }),
      ScanNextFull("row_stride 11", {"row_stride", "12"},
                   [](ScanArguments* a) { a->row_stride = 11; }),
      ScanNextFull("state_stride 8", {"state_stride", "12"},
                   [](ScanArguments* a) { a->state_stride = 8; }),
      ScanNextFull("state_stride beyond the address space", {"state_stride"},
                   [](ScanArguments* a) { a->state_stride = kTooWide; }),
      {"scan_next_full: no state",
       [](Scene& s) {
         const ScanPtr scan = OpenScan(s.plain);
         return embank_scan_next_full(scan.get(), s.out->keys, s.out->rows, 0, s.out->rows + 32, 0,
                                      nullptr, 2, &s.out->n);
       },
       kState,
       {"state"}},
  };
}

template <typename Struct, embank_status (*call)(embank_store*, Struct*)>
void AddStructCases(const std::string& name, const std::string& argument,
                    std::vector<BadInput>* cases) {
  cases->push_back({name + ": store NULL",
                    [](Scene&) {
                      Struct filled = {};
                      filled.struct_size = sizeof filled;
                      return call(nullptr, &filled);
                    },
                    kInvalid,
                    {"store"}});
  cases->push_back({name + ": " + argument + " NULL",
                    [](Scene& s) { return call(s.store, nullptr); },
                    kInvalid,
                    {argument}});
}

BadInput GetOptionsOfSize(uint32_t size) {
  auto run = [size](Scene& s) {
    embank_store_options options = {};
    options.struct_size = size;
    return embank_store_get_options(s.store, &options);
  };
  return {
      "store_get_options: size " + std::to_string(size), run, kInvalid, {"struct_size", "4096"}};
}

BadInput OwnerOf(const std::string& name, std::vector<std::string> mentions, const char* table_name,
                 bool has_keys, uint64_t n, uint32_t ranks, bool has_owners) {
  auto run = [=](Scene& s) {
    return embank_owner_of(table_name, has_keys ? s.keys : nullptr, n, ranks,
                           has_owners ? s.out->heat : nullptr);
  };
  return {"owner_of: " + name, run, kInvalid, std::move(mentions)};
}

std::vector<BadInput> FactCases() {
  static const std::string too_long(256, 'x');
  std::vector<BadInput> cases = {
      GetOptionsOfSize(0),
      GetOptionsOfSize(3),
      GetOptionsOfSize(4100),
      {"get_checkpoint_info: memory only",
       [](Scene& s) {
         embank_checkpoint_info info = {};
         info.struct_size = sizeof info;
         return embank_get_checkpoint_info(s.store, &info);
       },
       kState,
       {"no path"}},
      OwnerOf("table_name NULL", {"table_name"}, nullptr, true, 2, 2, true),
      OwnerOf("no name", {"table_name", "1 to 255"}, "", true, 2, 2, true),
      OwnerOf("long name", {"table_name", "1 to 255"}, too_long.c_str(), true, 2, 2, true),
      OwnerOf("name of a path", {"table_name", "'/'"}, "a/b", true, 2, 2, true),
      OwnerOf("keys NULL", {"keys"}, "t", false, 2, 2, true),
      OwnerOf("n too large", {"n", "4294967295"}, "t", true, kTooMany, 2, true),
      OwnerOf("0 ranks", {"ranks", "1 to 256"}, "t", true, 2, 0, true),
      OwnerOf("257 ranks", {"ranks", "1 to 256"}, "t", true, 2, 257, true),
      OwnerOf("0 ranks for no key", {"ranks"}, "t", false, 0, 0, false),
      OwnerOf("owners NULL", {"owners"}, "t", true, 2, 2, false),
  };
  AddStructCases<embank_store_options, embank_store_get_options>("store_get_options", "options",
                                                                 &cases);
  AddStructCases<embank_checkpoint_info, embank_get_checkpoint_info>("get_checkpoint_info", "info",
                                                                     &cases);
  return cases;
}

}  // namespace

std::vector<BadInput> BadWholeRowInputs() {
  std::vector<BadInput> cases = UpsertFullCases();
  for (BadInput& bad : ScanNextFullCases()) cases.push_back(std::move(bad));
  for (BadInput& bad : FactCases()) cases.push_back(std::move(bad));
  return cases;
}

}  // namespace embank::test
