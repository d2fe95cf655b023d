#include <cfloat>
#include <cmath>
#include <cstring>

#include "tests/bindings/bad_input.h"

namespace embank::test {
namespace {

using Options = embank_table_options;
using Change = std::function<void(Options*)>;

constexpr embank_status kInvalid = EMBANK_INVALID_ARGUMENT;
constexpr embank_status kMissing = EMBANK_UNIMPLEMENTED;

BadInput Create(const std::string& name, embank_status status, std::vector<std::string> mentions,
                const Change& change) {
  auto call = [change](Scene& scene) {
    Options options = TableOptions(3, EMBANK_OPT_ADAM);
    change(&options);
    return embank_table_create(scene.store, "new", &options, &scene.out->table);
  };
  return {"create: " + name, call, status, std::move(mentions)};
}

BadInput Named(const std::string& name, const char* table_name, embank_status status,
               std::vector<std::string> mentions) {
  std::string copy = table_name == nullptr ? "" : table_name;
  bool null = table_name == nullptr;
  auto call = [copy, null](Scene& scene) {
    Options options = TableOptions(3);
    return embank_table_create(scene.store, null ? nullptr : copy.c_str(), &options,
                               &scene.out->table);
  };
  return {"create: name " + name, call, status, std::move(mentions)};
}

// A float option that must be finite and not negative.
void AddFloatCases(const std::string& name, float Options::*field, int32_t optimizer,
                   std::vector<BadInput>* cases) {
  for (float value : {NAN, INFINITY, -INFINITY, -0.5f}) {
    cases->push_back(Create(name + " " + std::to_string(value), kInvalid, {name},
                            [field, optimizer, value](Options* o) {
                              o->optimizer = optimizer;
                              o->*field = value;
                            }));
  }
}

void AddBetaCases(const std::string& name, float Options::*field, std::vector<BadInput>* cases) {
  AddFloatCases(name, field, EMBANK_OPT_ADAM, cases);
  for (float value : {1.0f, 2.0f}) {
    cases->push_back(Create(name + " " + std::to_string(value), kInvalid, {name},
                            [field, value](Options* o) { o->*field = value; }));
  }
}

void AddInitializerCases(std::vector<BadInput>* cases) {
  auto add = [cases](const std::string& name, int32_t initializer, float a, float b,
                     const std::string& mention) {
    cases->push_back(Create(name, kInvalid, {mention}, [=](Options* o) {
      o->initializer = initializer;
      o->init_a = a;
      o->init_b = b;
    }));
  };
  add("constant NaN", EMBANK_INIT_CONSTANT, NAN, 0, "init_a");
  add("constant infinity", EMBANK_INIT_CONSTANT, INFINITY, 0, "init_a");
  add("uniform from NaN", EMBANK_INIT_UNIFORM, NAN, 1, "init_a");
  add("uniform to infinity", EMBANK_INIT_UNIFORM, 0, INFINITY, "init_b");
  add("empty uniform", EMBANK_INIT_UNIFORM, 1, 1, "init_b");
  add("uniform backwards", EMBANK_INIT_UNIFORM, 2, 1, "init_b");
  add("uniform of infinite width", EMBANK_INIT_UNIFORM, -FLT_MAX, FLT_MAX, "init_b");
  add("normal of NaN", EMBANK_INIT_NORMAL, NAN, 1, "init_a");
  add("normal of negative deviation", EMBANK_INIT_NORMAL, 0, -1, "init_b");
  add("normal of NaN deviation", EMBANK_INIT_NORMAL, 0, NAN, "init_b");
  add("normal of infinite deviation", EMBANK_INIT_NORMAL, 0, INFINITY, "init_b");
}

void AddEnumCases(std::vector<BadInput>* cases) {
  auto add = [cases](const std::string& name, int32_t Options::*field, int32_t last) {
    for (int32_t value : {-1, last + 1, INT32_MAX, INT32_MIN}) {
      cases->push_back(Create(name + " " + std::to_string(value), kInvalid, {name},
                              [field, value](Options* o) { o->*field = value; }));
    }
  };
  add("value_type", &Options::value_type, EMBANK_BF16);
  add("optimizer", &Options::optimizer, EMBANK_OPT_FTRL);
  add("initializer", &Options::initializer, EMBANK_INIT_NORMAL);
  add("eviction", &Options::eviction, EMBANK_EVICT_LFU);
  add("on_full", &Options::on_full, EMBANK_FULL_FORGET);
  add("rounding", &Options::rounding, EMBANK_ROUNDING_STOCHASTIC);
}

embank_status CreateWithUnknownTail(Scene& scene) {
  struct {
    Options options;
    uint8_t unknown[8];
  } larger;
  std::memset(&larger, 0, sizeof larger);
  embank_table_options_init(&larger.options, sizeof larger);
  larger.options.dim = 3;
  larger.unknown[0] = 1;
  return embank_table_create(scene.store, "new", &larger.options, &scene.out->table);
}

embank_status CreateWithoutOptions(Scene& scene) {
  return embank_table_create(scene.store, "new", nullptr, &scene.out->table);
}

embank_status CreateInNoStore(Scene& scene) {
  Options options = TableOptions(3);
  return embank_table_create(nullptr, "new", &options, &scene.out->table);
}

embank_status CreateNowhere(Scene& scene) {
  Options options = TableOptions(3);
  return embank_table_create(scene.store, "new", &options, nullptr);
}

// A name that no table can have, where one is looked for.
void AddNameCases(std::vector<BadInput>* cases) {
  for (const std::string& name : {std::string(), std::string(256, 'n'), std::string("a/b")}) {
    const std::string what = name.size() == 256 ? "name of 256 bytes" : "name \"" + name + "\"";
    const std::string limit = name == "a/b" ? "/" : "255";
    cases->push_back(
        {"table_open: " + what,
         [name](Scene& s) { return embank_table_open(s.store, name.c_str(), &s.out->table); },
         kInvalid,
         {"name", limit}});
    cases->push_back({"table_drop: " + what,
                      [name](Scene& s) { return embank_table_drop(s.store, name.c_str()); },
                      kInvalid,
                      {"name", limit}});
  }
}

void AddInfoSizeCases(std::vector<BadInput>* cases) {
  for (uint32_t size : {0u, 3u, 62u, 4100u}) {
    auto call = [size](Scene& s) {
      embank_table_info info = {};
      info.struct_size = size;
      return embank_table_get_info(s.adagrad, &info);
    };
    cases->push_back(
        {"get_info: size " + std::to_string(size), call, kInvalid, {"struct_size", "4096"}});
  }
}

BadInput SetOptions(const std::string& name, uint32_t fields, std::vector<std::string> mentions,
                    const Change& change) {
  auto call = [fields, change](Scene& s) {
    Options options = TableOptions(3);
    change(&options);
    return embank_table_set_options(s.adagrad, &options, fields);
  };
  return {"set_options: " + name, call, kInvalid, std::move(mentions)};
}

std::vector<BadInput> OptionCases() {
  return {
      {"get_options: table NULL",
       [](Scene&) {
         Options options = TableOptions(3);
         return embank_table_get_options(nullptr, &options);
       },
       kInvalid,
       {"table"}},
      {"get_options: options NULL",
       [](Scene& s) { return embank_table_get_options(s.adagrad, nullptr); },
       kInvalid,
       {"options"}},
      {"get_options: size 3",
       [](Scene& s) {
         Options options = TableOptions(3);
         options.struct_size = 3;
         return embank_table_get_options(s.adagrad, &options);
       },
       kInvalid,
       {"struct_size", "4096"}},
      {"set_options: table NULL",
       [](Scene&) {
         Options options = TableOptions(3);
         return embank_table_set_options(nullptr, &options, 0);
       },
       kInvalid,
       {"table"}},
      {"set_options: options NULL",
       [](Scene& s) { return embank_table_set_options(s.adagrad, nullptr, 0); },
       kInvalid,
       {"options"}},
      SetOptions("unknown field", 128, {"fields", "127"}, [](Options*) {}),
      SetOptions("size 0", 0, {"struct_size"}, [](Options* o) { o->struct_size = 0; }),
      SetOptions("rate", EMBANK_SET_LEARNING_RATE, {"learning_rate"},
                 [](Options* o) { o->learning_rate = NAN; }),
      SetOptions("beta", EMBANK_SET_BETAS, {"beta2"}, [](Options* o) { o->beta2 = 1.0f; }),
      SetOptions("epsilon", EMBANK_SET_EPSILON, {"epsilon"},
                 [](Options* o) { o->epsilon = -1.0f; }),
      SetOptions("decay", EMBANK_SET_WEIGHT_DECAY, {"weight_decay"},
                 [](Options* o) { o->weight_decay = INFINITY; }),
      SetOptions("norm", EMBANK_SET_CLIPPING, {"max_gradient_norm"},
                 [](Options* o) { o->max_gradient_norm = -1.0f; }),
      SetOptions("rounding of F32", EMBANK_SET_ROUNDING, {"rounding", "EMBANK_F32"},
                 [](Options* o) { o->rounding = EMBANK_ROUNDING_STOCHASTIC; }),
      SetOptions("l1 without FTRL", EMBANK_SET_FTRL, {"ftrl_l1"},
                 [](Options* o) { o->ftrl_l1 = 1.0f; }),
  };
}

std::vector<BadInput> OpenDropAndInfoCases() {
  return {
      {"table_open: store NULL",
       [](Scene& s) { return embank_table_open(nullptr, "adagrad", &s.out->table); },
       kInvalid,
       {"store"}},
      {"table_open: name NULL",
       [](Scene& s) { return embank_table_open(s.store, nullptr, &s.out->table); },
       kInvalid,
       {"name"}},
      {"table_open: table NULL",
       [](Scene& s) { return embank_table_open(s.store, "adagrad", nullptr); },
       kInvalid,
       {"table"}},
      {"table_open: no such table",
       [](Scene& s) { return embank_table_open(s.store, "ghost", &s.out->table); },
       EMBANK_NOT_FOUND,
       {"ghost"}},
      {"table_drop: store NULL",
       [](Scene&) { return embank_table_drop(nullptr, "adagrad"); },
       kInvalid,
       {"store"}},
      {"table_drop: name NULL",
       [](Scene& s) { return embank_table_drop(s.store, nullptr); },
       kInvalid,
       {"name"}},
      {"table_drop: no such table",
       [](Scene& s) { return embank_table_drop(s.store, "ghost"); },
       EMBANK_NOT_FOUND,
       {"ghost"}},
      {"get_info: table NULL",
       [](Scene&) {
         embank_table_info info = {};
         info.struct_size = sizeof info;
         return embank_table_get_info(nullptr, &info);
       },
       kInvalid,
       {"table"}},
      {"get_info: info NULL",
       [](Scene& s) { return embank_table_get_info(s.adagrad, nullptr); },
       kInvalid,
       {"info"}},
  };
}

}  // namespace

std::vector<BadInput> BadTableInputs() {
  std::vector<BadInput> cases = OpenDropAndInfoCases();
  cases.insert(
      cases.end(),
      {{"create: store NULL", CreateInNoStore, kInvalid, {"store"}},
       {"create: table NULL", CreateNowhere, kInvalid, {"table"}},
       {"create: options NULL", CreateWithoutOptions, kInvalid, {"options"}},
       {"create: unknown tail", CreateWithUnknownTail, kMissing, {"struct_size"}},
       Named("NULL", nullptr, kInvalid, {"name"}),
       Named("empty", "", kInvalid, {"name"}),
       Named("of 256 bytes", std::string(256, 'n').c_str(), kInvalid, {"name", "255"}),
       Named("with a slash", "a/b", kInvalid, {"name", "/"}),
       Named("with a newline", "a\nb", kInvalid, {"name", "newline"}),
       Named("taken", "adagrad", EMBANK_ALREADY_EXISTS, {"adagrad"}),
       Create("size 0", kInvalid, {"struct_size"}, [](Options* o) { o->struct_size = 0; }),
       Create("size 62", kInvalid, {"struct_size", "4096"},
              [](Options* o) { o->struct_size = 62; }),
       Create("size beyond 4096", kInvalid, {"struct_size", "4096"},
              [](Options* o) { o->struct_size = 4100; }),
       Create("dim 0", kInvalid, {"dim", "4096"}, [](Options* o) { o->dim = 0; }),
       Create("dim 4097", kInvalid, {"dim", "4096"}, [](Options* o) { o->dim = 4097; }),
       Create("largest dim", kInvalid, {"dim", "4096"}, [](Options* o) { o->dim = UINT32_MAX; }),
       Create("FTRL at rate 0", kInvalid, {"learning_rate"},
              [](Options* o) {
                o->optimizer = EMBANK_OPT_FTRL;
                o->learning_rate = 0;
              }),
       Create("l1 without FTRL", kInvalid, {"ftrl_l1", "FTRL"},
              [](Options* o) { o->ftrl_l1 = 0.5f; }),
       Create("l2 without FTRL", kInvalid, {"ftrl_l2", "FTRL"},
              [](Options* o) { o->ftrl_l2 = 0.5f; }),
       Create("decoupled decay of FTRL", kInvalid, {"decoupled_weight_decay", "ftrl_l2"},
              [](Options* o) {
                o->optimizer = EMBANK_OPT_FTRL;
                o->decoupled_weight_decay = 0.5f;
              }),
       Create("stochastic F32", kInvalid, {"rounding", "EMBANK_F32"},
              [](Options* o) { o->rounding = EMBANK_ROUNDING_STOCHASTIC; }),
       Create("expected rows", kInvalid, {"expected_rows_log2", "40"},
              [](Options* o) { o->expected_rows_log2 = 41; }),
       Create("admission", kMissing, {"admission_count"},
              [](Options* o) { o->admission_count = 2; })});
  AddFloatCases("learning_rate", &Options::learning_rate, EMBANK_OPT_SGD, &cases);
  AddFloatCases("epsilon", &Options::epsilon, EMBANK_OPT_ADAGRAD, &cases);
  AddFloatCases("weight_decay", &Options::weight_decay, EMBANK_OPT_SGD, &cases);
  AddFloatCases("initial_accumulator", &Options::initial_accumulator, EMBANK_OPT_FTRL, &cases);
  AddFloatCases("max_gradient_norm", &Options::max_gradient_norm, EMBANK_OPT_SGD, &cases);
  AddFloatCases("max_gradient_value", &Options::max_gradient_value, EMBANK_OPT_SGD, &cases);
  AddFloatCases("ftrl_l1", &Options::ftrl_l1, EMBANK_OPT_FTRL, &cases);
  AddFloatCases("ftrl_l2", &Options::ftrl_l2, EMBANK_OPT_FTRL, &cases);
  AddFloatCases("decoupled_weight_decay", &Options::decoupled_weight_decay, EMBANK_OPT_ADAM,
                &cases);
  AddBetaCases("beta1", &Options::beta1, &cases);
  AddBetaCases("beta2", &Options::beta2, &cases);
  const std::vector<BadInput> option_cases = OptionCases();
  cases.insert(cases.end(), option_cases.begin(), option_cases.end());
  AddNameCases(&cases);
  AddInfoSizeCases(&cases);
  AddInitializerCases(&cases);
  AddEnumCases(&cases);
  return cases;
}

}  // namespace embank::test
