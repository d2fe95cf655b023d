#include <cmath>

#include "tests/bindings/bad_input.h"

namespace embank::test {
namespace {

constexpr embank_status kInvalid = EMBANK_INVALID_ARGUMENT;
constexpr embank_status kState = EMBANK_FAILED_PRECONDITION;
constexpr uint64_t kTooMany = uint64_t{1} << 32;
constexpr uint64_t kTooWide = ~uint64_t{0} - 3;  // two such rows reach past the address space
constexpr uint64_t kRowBytes = 12;               // of every table of the scene

// The arguments that most data calls have; a case changes one of them.
struct Arguments {
  embank_table* table;
  const uint64_t* keys;
  uint64_t n = 2;
  void* rows;
  uint64_t stride = 0;
};

using Change = std::function<void(Scene&, Arguments*)>;
using Verb = std::function<embank_status(Scene&, const Arguments&)>;

struct DataCall {
  std::string name;
  std::string rows_name;  // "": the call has no rows
  bool has_stride;
  bool writes_rows;
  Verb verb;
};

std::vector<DataCall> DataCalls() {
  return {
      {"lookup", "rows", true, true,
       [](Scene& s, const Arguments& a) {
         return embank_lookup(a.table, a.keys, a.n, EMBANK_MISSING_CREATE, a.rows, a.stride,
                              s.out->outcomes);
       }},
      {"upsert", "rows", true, false,
       [](Scene& s, const Arguments& a) {
         return embank_upsert(a.table, a.keys, a.n, a.rows, a.stride, s.out->outcomes);
       }},
      {"upsert_full", "rows", true, false,
       [](Scene& s, const Arguments& a) {
         return embank_upsert_full(a.table, a.keys, a.n, a.rows, a.stride, s.values, 0, s.heat,
                                   s.out->outcomes);
       }},
      {"apply_gradients", "gradients", true, false,
       [](Scene& s, const Arguments& a) {
         return embank_apply_gradients(a.table, a.keys, a.n, static_cast<float*>(a.rows), a.stride,
                                       s.out->outcomes);
       }},
      {"erase", "", false, false,
       [](Scene& s, const Arguments& a) {
         return embank_erase(a.table, a.keys, a.n, s.out->outcomes);
       }},
      {"contains", "", false, false,
       [](Scene& s, const Arguments& a) {
         return embank_contains(a.table, a.keys, a.n, s.out->outcomes);
       }},
      {"prefetch", "", false, false,
       [](Scene&, const Arguments& a) { return embank_prefetch(a.table, a.keys, a.n); }},
      {"get_state", "state", true, true,
       [](Scene& s, const Arguments& a) {
         return embank_get_state(a.table, a.keys, a.n, static_cast<float*>(a.rows), a.stride,
                                 s.out->outcomes);
       }},
      {"set_state", "state", true, false,
       [](Scene& s, const Arguments& a) {
         return embank_set_state(a.table, a.keys, a.n, static_cast<float*>(a.rows), a.stride,
                                 s.out->outcomes);
       }},
      {"get_heat", "heat", false, true,
       [](Scene& s, const Arguments& a) {
         return embank_get_heat(a.table, a.keys, a.n, static_cast<uint32_t*>(a.rows),
                                s.out->outcomes);
       }},
  };
}

BadInput CaseOf(const DataCall& call, const std::string& name, embank_status status,
                std::vector<std::string> mentions, const Change& change) {
  auto run = [call, change](Scene& scene) {
    Arguments arguments = {scene.adagrad, scene.keys, 2, scene.values, 0};
    if (call.writes_rows) arguments.rows = scene.out->rows;
    change(scene, &arguments);
    return call.verb(scene, arguments);
  };
  return {call.name + ": " + name, run, status, std::move(mentions)};
}

void AddShapeCases(const DataCall& call, std::vector<BadInput>* cases) {
  auto add = [&](const std::string& name, std::vector<std::string> mentions, const Change& change) {
    cases->push_back(CaseOf(call, name, kInvalid, std::move(mentions), change));
  };
  add("table NULL", {"table"}, [](Scene&, Arguments* a) { a->table = nullptr; });
  add("keys NULL", {"keys"}, [](Scene&, Arguments* a) { a->keys = nullptr; });
  add("n too large", {"n", "4294967295"}, [](Scene&, Arguments* a) { a->n = kTooMany; });
  if (!call.rows_name.empty()) {
    add(call.rows_name + " NULL", {call.rows_name},
        [](Scene&, Arguments* a) { a->rows = nullptr; });
  }
  if (!call.has_stride) return;
  for (uint64_t stride : {uint64_t{1}, kRowBytes - 1}) {
    add("stride " + std::to_string(stride), {"row_stride", "12"},
        [stride](Scene&, Arguments* a) { a->stride = stride; });
  }
  add("stride beyond the address space", {"row_stride"},
      [](Scene&, Arguments* a) { a->stride = kTooWide; });
}

void AddPreconditionCases(std::vector<BadInput>* cases) {
  Change plain = [](Scene& s, Arguments* a) { a->table = s.plain; };
  Change sgd = [](Scene& s, Arguments* a) { a->table = s.sgd; };
  for (const DataCall& call : DataCalls()) {
    if (call.name == "apply_gradients") {
      cases->push_back(CaseOf(call, "no optimizer", kState, {"optimizer"}, plain));
    }
    if (call.rows_name == "state") {
      cases->push_back(CaseOf(call, "no optimizer", kState, {"state"}, plain));
      cases->push_back(CaseOf(call, "SGD has no state", kState, {"state"}, sgd));
    }
  }
}

void AddGradientCases(std::vector<BadInput>* cases) {
  for (float bad : {NAN, INFINITY, -INFINITY}) {
    for (size_t element = 0; element < 6; ++element) {
      auto call = [bad, element](Scene& s) {
        s.values[element] = bad;
        return embank_apply_gradients(s.adagrad, s.keys, 2, s.values, 0, s.out->outcomes);
      };
      cases->push_back(
          {"apply_gradients: " + std::to_string(bad) + " in element " + std::to_string(element),
           call,
           kInvalid,
           {"gradients", element < 3 ? "11" : "12"}});
    }
  }
}

// The step count of an Adam row is the last of its 2 * 3 + 1 floats.
void AddAdamStepCases(std::vector<BadInput>* cases) {
  for (float steps : {-1.0f, -INFINITY, NAN, 16777218.0f, INFINITY}) {
    for (size_t row = 0; row < 2; ++row) {
      auto call = [steps, row](Scene& s) {
        float state[14] = {};
        state[7 * row + 6] = steps;
        return embank_set_state(s.adam, s.keys, 2, state, 0, s.out->outcomes);
      };
      cases->push_back(
          {"set_state: " + std::to_string(steps) + " Adam steps in row " + std::to_string(row),
           call,
           kInvalid,
           {"state", row == 0 ? "11" : "12", "16777216"}});
    }
  }
}

void AddMissingAndRateCases(std::vector<BadInput>* cases) {
  for (int32_t missing : {-1, 4, INT32_MAX}) {
    auto call = [missing](Scene& s) {
      return embank_lookup(s.adagrad, s.keys, 2, missing, s.out->rows, 0, s.out->outcomes);
    };
    cases->push_back({"lookup: missing " + std::to_string(missing), call, kInvalid, {"missing"}});
  }
  for (float rate : {NAN, INFINITY, -INFINITY, -1.0f}) {
    auto call = [rate](Scene& s) { return embank_set_learning_rate(s.adagrad, rate); };
    cases->push_back(
        {"set_learning_rate: " + std::to_string(rate), call, kInvalid, {"learning_rate"}});
  }
  cases->push_back({"set_learning_rate: 0 for FTRL",
                    [](Scene& s) { return embank_set_learning_rate(s.ftrl, 0.0f); },
                    kInvalid,
                    {"learning_rate"}});
  cases->push_back({"set_learning_rate: table NULL",
                    [](Scene&) { return embank_set_learning_rate(nullptr, 0.5f); },
                    kInvalid,
                    {"table"}});
}

// The store of the scene has no device.
void AddDeviceCases(std::vector<BadInput>* cases) {
  constexpr embank_status kNoDevice = EMBANK_FAILED_PRECONDITION;
  const auto add = [&](const std::string& name, embank_status status, const std::string& mention,
                       const std::function<embank_status(Scene&)>& call) {
    cases->push_back({name, call, status, {mention}});
  };
  add("lookup_device: no device", kNoDevice, "hbm_bytes", [](Scene& s) {
    return embank_lookup_device(s.adagrad, s.keys, 2, 0, s.out->rows, 0, s.out->outcomes, nullptr);
  });
  add("lookup_device: missing 4", kInvalid, "missing", [](Scene& s) {
    return embank_lookup_device(s.adagrad, s.keys, 2, 4, s.out->rows, 0, s.out->outcomes, nullptr);
  });
  add("upsert_device: no device", kNoDevice, "hbm_bytes", [](Scene& s) {
    return embank_upsert_device(s.adagrad, s.keys, 2, s.values, 0, s.out->outcomes, nullptr);
  });
  add("upsert_device: rows NULL", kInvalid, "rows", [](Scene& s) {
    return embank_upsert_device(s.adagrad, s.keys, 2, nullptr, 0, s.out->outcomes, nullptr);
  });
  add("upsert_device: keys NULL", kInvalid, "keys", [](Scene& s) {
    return embank_upsert_device(s.adagrad, nullptr, 2, s.values, 0, s.out->outcomes, nullptr);
  });
  add("apply_gradients_device: no device", kNoDevice, "hbm_bytes", [](Scene& s) {
    return embank_apply_gradients_device(s.adagrad, s.keys, 2, s.values, 0, s.out->outcomes,
                                         nullptr);
  });
  add("apply_gradients_device: table NULL", kInvalid, "table", [](Scene& s) {
    return embank_apply_gradients_device(nullptr, s.keys, 2, s.values, 0, s.out->outcomes, nullptr);
  });
  const auto feature_of = [](const Scene& s) {
    embank_feature feature = {};
    feature.struct_size = sizeof feature;
    feature.table = s.adagrad;
    feature.keys = s.keys;
    feature.n = 2;
    feature.rows = s.out->rows;
    return feature;
  };
  add("lookup_packed_device: no device", kNoDevice, "hbm_bytes", [feature_of](Scene& s) {
    const embank_feature feature = feature_of(s);
    return embank_lookup_packed_device(&feature, 1, 0, s.out->outcomes, nullptr);
  });
  add("lookup_packed_device: features NULL", kInvalid, "features", [](Scene& s) {
    return embank_lookup_packed_device(nullptr, 1, 0, s.out->outcomes, nullptr);
  });
  add("lookup_packed_device: missing 4", kInvalid, "missing", [feature_of](Scene& s) {
    const embank_feature feature = feature_of(s);
    return embank_lookup_packed_device(&feature, 1, 4, s.out->outcomes, nullptr);
  });
  add("apply_gradients_packed_device: no device", kNoDevice, "hbm_bytes", [feature_of](Scene& s) {
    const embank_feature feature = feature_of(s);
    return embank_apply_gradients_packed_device(&feature, 1, s.out->outcomes, nullptr);
  });
  add("device_allocate: no device", kNoDevice, "hbm_bytes", [](Scene& s) {
    return embank_device_allocate(s.store, 16, reinterpret_cast<void**>(&s.out->store));
  });
  add("device_allocate: store NULL", kInvalid, "store", [](Scene& s) {
    return embank_device_allocate(nullptr, 16, reinterpret_cast<void**>(&s.out->store));
  });
  add("device_free: no device", kNoDevice, "hbm_bytes",
      [](Scene& s) { return embank_device_free(s.store, s.values); });
  add("device_copy: no device", kNoDevice, "hbm_bytes",
      [](Scene& s) { return embank_device_copy(s.store, s.out->rows, s.values, 4, nullptr); });
  add("device_copy: store NULL", kInvalid, "store",
      [](Scene& s) { return embank_device_copy(nullptr, s.out->rows, s.values, 4, nullptr); });
}

BadInput ScanNext(const std::string& name, std::vector<std::string> mentions,
                  const std::function<embank_status(embank_scan*, Outputs*)>& call) {
  auto run = [call](Scene& s) { return call(s.scan, s.out); };
  return {"scan_next: " + name, run, kInvalid, std::move(mentions)};
}

void AddScanCases(std::vector<BadInput>* cases) {
  cases->insert(cases->end(),
                {{"scan_open: table NULL",
                  [](Scene& s) { return embank_scan_open(nullptr, &s.out->scan); },
                  kInvalid,
                  {"table"}},
                 {"scan_open: scan NULL",
                  [](Scene& s) { return embank_scan_open(s.adagrad, nullptr); },
                  kInvalid,
                  {"scan"}},
                 ScanNext("scan NULL", {"scan"},
                          [](embank_scan*, Outputs* o) {
                            return embank_scan_next(nullptr, o->keys, o->rows, 0, 1, &o->n);
                          }),
                 ScanNext("keys NULL", {"keys"},
                          [](embank_scan* scan, Outputs* o) {
                            return embank_scan_next(scan, nullptr, o->rows, 0, 1, &o->n);
                          }),
                 ScanNext("rows NULL", {"rows"},
                          [](embank_scan* scan, Outputs* o) {
                            return embank_scan_next(scan, o->keys, nullptr, 0, 1, &o->n);
                          }),
                 ScanNext("n NULL", {"n"},
                          [](embank_scan* scan, Outputs* o) {
                            return embank_scan_next(scan, o->keys, o->rows, 0, 1, nullptr);
                          }),
                 ScanNext("cap 0", {"cap"},
                          [](embank_scan* scan, Outputs* o) {
                            return embank_scan_next(scan, o->keys, o->rows, 0, 0, &o->n);
                          }),
                 ScanNext("cap too large", {"cap", "4294967295"},
                          [](embank_scan* scan, Outputs* o) {
                            return embank_scan_next(scan, o->keys, o->rows, 0, kTooMany, &o->n);
                          }),
                 ScanNext("stride beyond the address space", {"row_stride"},
                          [](embank_scan* scan, Outputs* o) {
                            return embank_scan_next(scan, o->keys, o->rows, kTooWide, 2, &o->n);
                          }),
                 ScanNext("stride 11", {"row_stride", "12"}, [](embank_scan* scan, Outputs* o) {
                   return embank_scan_next(scan, o->keys, o->rows, 11, 1, &o->n);
                 })});
}

}  // namespace

std::vector<BadInput> BadDataInputs() {
  std::vector<BadInput> cases;
  for (const DataCall& call : DataCalls()) AddShapeCases(call, &cases);
  AddPreconditionCases(&cases);
  AddGradientCases(&cases);
  AddAdamStepCases(&cases);
  AddMissingAndRateCases(&cases);
  AddDeviceCases(&cases);
  AddScanCases(&cases);
  return cases;
}

}  // namespace embank::test
