#include <cstddef>
#include <limits>
#include <utility>

#include "tests/bindings/bad_input.h"

namespace embank::test {
namespace {

constexpr embank_status kInvalid = EMBANK_INVALID_ARGUMENT;

using TextCall = embank_status (*)(embank_store*, char*, uint64_t, uint64_t*);

void AddTextCases(const std::string& name, const std::string& text_name, TextCall text_call,
                  std::vector<BadInput>* cases) {
  cases->push_back(
      {name + ": store NULL",
       [text_call](Scene& s) { return text_call(nullptr, s.out->text, 64, &s.out->needed); },
       kInvalid,
       {"store"}});
  cases->push_back({name + ": needed NULL",
                    [text_call](Scene& s) { return text_call(s.store, s.out->text, 64, nullptr); },
                    kInvalid,
                    {"needed"}});
  cases->push_back(
      {name + ": " + text_name + " NULL",
       [text_call](Scene& s) { return text_call(s.store, nullptr, 64, &s.out->needed); },
       kInvalid,
       {text_name}});
}

// The arguments of an estimate; a case changes one of them.
struct Estimate {
  embank_store_options options = StoreOptions();
  embank_table_options tables[2] = {TableOptions(3), TableOptions(4, EMBANK_OPT_ADAM)};
  uint32_t tail[2] = {};  // directly behind, where a larger tables[1] goes on
  uint64_t rows[2] = {10, 20};
  uint32_t count = 2;
  const embank_table_options* tables_pointer = tables;
  const uint64_t* rows_pointer = rows;
  bool no_text = false;
  bool no_needed = false;
};

BadInput EstimateCase(const std::string& name, embank_status status,
                      std::vector<std::string> mentions,
                      const std::function<void(Estimate*)>& change) {
  auto call = [change](Scene& s) {
    Estimate e;
    change(&e);
    return embank_estimate(&e.options, e.tables_pointer, e.rows_pointer, e.count,
                           e.no_text ? nullptr : s.out->text, 64,
                           e.no_needed ? nullptr : &s.out->needed);
  };
  return {"estimate: " + name, call, status, std::move(mentions)};
}

std::vector<BadInput> EstimateCases() {
  return {
      EstimateCase("tables NULL", kInvalid, {"tables"},
                   [](Estimate* e) { e->tables_pointer = nullptr; }),
      EstimateCase("rows NULL", kInvalid, {"rows"}, [](Estimate* e) { e->rows_pointer = nullptr; }),
      EstimateCase("json NULL", kInvalid, {"json"}, [](Estimate* e) { e->no_text = true; }),
      EstimateCase("needed NULL", kInvalid, {"needed"}, [](Estimate* e) { e->no_needed = true; }),
      EstimateCase("bad store options", kInvalid, {"dram_bytes", "16 MiB"},
                   [](Estimate* e) { e->options.dram_bytes = 5; }),
      EstimateCase("hbm_bytes for no row", EMBANK_INVALID_ARGUMENT, {"hbm_bytes"},
                   [](Estimate* e) { e->options.hbm_bytes = 1; }),
      EstimateCase("bad table options", kInvalid, {"tables[1]: dim", "4096"},
                   [](Estimate* e) { e->tables[1].dim = 4097; }),
      EstimateCase("table options not built", EMBANK_UNIMPLEMENTED, {"tables[0]: admission_count"},
                   [](Estimate* e) { e->tables[0].admission_count = 2; }),
      EstimateCase("size 0", kInvalid, {"tables[1]: struct_size"},
                   [](Estimate* e) { e->tables[1].struct_size = 0; }),
      EstimateCase("unknown tail", EMBANK_UNIMPLEMENTED, {"tables[0]: struct_size"},
                   [](Estimate* e) {
                     e->tables_pointer = &e->tables[1];
                     e->count = 1;
                     e->tables[1].struct_size += sizeof e->tail;
                     e->tail[1] = 1;
                   }),
      // Its bytes would be those after the array.
      EstimateCase("another size than the first", kInvalid,
                   {"tables[1]: struct_size is 4088", "tables[0]"},
                   [](Estimate* e) { e->tables[1].struct_size = 4088; }),
      EstimateCase("too many tables", kInvalid, {"table_count", "4095"},
                   [](Estimate* e) { e->count = 4096; }),
      EstimateCase("too many rows", kInvalid, {"rows[0]", "274877906944"},
                   [](Estimate* e) { e->rows[0] = (uint64_t{1} << 38) + 1; }),
      EstimateCase("too many rows in all", kInvalid, {"rows[1]", "274877906944"},
                   [](Estimate* e) { e->rows[0] = (uint64_t{1} << 38) - 19; }),
      EstimateCase("rows whose sum wraps around", kInvalid, {"rows[1]"},
                   [](Estimate* e) { e->rows[1] = ~uint64_t{0}; }),
  };
}

BadInput HitRatioCase(const std::string& name, std::vector<std::string> mentions, const char* path,
                      double zipf_exponent, double hit_ratio) {
  auto call = [=](Scene& s) {
    Estimate e;
    e.options.path = path;
    return embank_estimate_for_hit_ratio(&e.options, e.tables, e.rows, e.count, zipf_exponent,
                                         hit_ratio, s.out->text, 64, &s.out->needed);
  };
  return {"estimate for hit ratio: " + name, call, kInvalid, std::move(mentions)};
}

std::vector<BadInput> HitRatioCases() {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  return {
      HitRatioCase("no path", {"path"}, nullptr, 1, 0.5),
      HitRatioCase("exponent below 0", {"zipf_exponent", "0 to 4"}, "p", -0.1, 0.5),
      HitRatioCase("exponent above 4", {"zipf_exponent", "0 to 4"}, "p", 4.1, 0.5),
      HitRatioCase("exponent NaN", {"zipf_exponent"}, "p", nan, 0.5),
      HitRatioCase("ratio below 0", {"hit_ratio", "0 to 1"}, "p", 1, -0.1),
      HitRatioCase("ratio above 1", {"hit_ratio", "0 to 1"}, "p", 1, 1.1),
      HitRatioCase("ratio NaN", {"hit_ratio"}, "p", 1, nan),
  };
}

BadInput VerifyCase(const std::string& name, embank_status status,
                    std::vector<std::string> mentions, const char* directory, bool has_report,
                    bool has_needed) {
  auto call = [=](Scene& s) {
    return embank_verify(directory, nullptr, nullptr, has_report ? s.out->text : nullptr, 64,
                         has_needed ? &s.out->needed : nullptr);
  };
  return {"verify: " + name, call, status, std::move(mentions)};
}

std::vector<BadInput> VerifyCases() {
  static const std::string too_long(5000, 'x');
  return {
      VerifyCase("directory too long", kInvalid, {"directory"}, too_long.c_str(), true, true),
      VerifyCase("directory NULL", kInvalid, {"directory"}, nullptr, true, true),
      VerifyCase("directory empty", kInvalid, {"directory"}, "", true, true),
      VerifyCase("report NULL", kInvalid, {"report"}, "nowhere", false, true),
      VerifyCase("needed NULL", kInvalid, {"needed"}, "nowhere", true, false),
      VerifyCase("no store", EMBANK_NOT_FOUND, {"nowhere/at/all"}, "nowhere/at/all", true, true),
  };
}

static_assert(offsetof(Estimate, tail) ==
              offsetof(Estimate, tables) + 2 * sizeof(embank_table_options));

}  // namespace

std::vector<BadInput> BadInsightInputs() {
  std::vector<BadInput> cases = EstimateCases();
  for (BadInput& bad : HitRatioCases()) cases.push_back(std::move(bad));
  AddTextCases("metrics", "text", embank_metrics, &cases);
  AddTextCases("memory_report", "json", embank_memory_report, &cases);
  AddTextCases("table_names", "names", embank_table_names, &cases);
  for (BadInput& bad : VerifyCases()) cases.push_back(std::move(bad));
  return cases;
}

}  // namespace embank::test
