// The calls that read and change the options of a table.
#include <cstddef>

#include "base/status_macros.h"
#include "base/str_cat.h"
#include "bindings/c/arguments_in.h"
#include "bindings/c/embank.h"
#include "bindings/c/handles.h"
#include "bindings/c/last_error.h"
#include "bindings/c/options_in.h"

namespace embank {
namespace {

constexpr uint32_t kKnownFields = EMBANK_SET_LEARNING_RATE | EMBANK_SET_BETAS | EMBANK_SET_EPSILON |
                                  EMBANK_SET_WEIGHT_DECAY | EMBANK_SET_CLIPPING |
                                  EMBANK_SET_ROUNDING | EMBANK_SET_FTRL;

struct NamedField {
  uint32_t flag;
  const char* name;
  // The size of a struct that has all members of the flag's first version. Members that are added
  // to it later have their defaults in a struct that ends before them.
  size_t struct_bytes_min;
};
constexpr NamedField kFields[] = {
    {EMBANK_SET_LEARNING_RATE, "LEARNING_RATE", offsetof(embank_table_options, beta1)},
    {EMBANK_SET_BETAS, "BETAS", offsetof(embank_table_options, epsilon)},
    {EMBANK_SET_EPSILON, "EPSILON", offsetof(embank_table_options, weight_decay)},
    {EMBANK_SET_WEIGHT_DECAY, "WEIGHT_DECAY",
     offsetof(embank_table_options, decoupled_weight_decay) + sizeof(float)},
    {EMBANK_SET_CLIPPING, "CLIPPING", offsetof(embank_table_options, rounding)},
    {EMBANK_SET_ROUNDING, "ROUNDING", offsetof(embank_table_options, expected_rows_log2)},
    {EMBANK_SET_FTRL, "FTRL", offsetof(embank_table_options, decoupled_weight_decay)},
};

// A default in the place of a number that the caller does not have would be no change he asked for.
Status CheckReached(uint32_t fields, uint32_t struct_size) {
  for (const NamedField& field : kFields) {
    if ((fields & field.flag) == 0 || struct_size >= field.struct_bytes_min) continue;
    return InvalidArgumentError(StrCat("fields has EMBANK_SET_", field.name,
                                       ", and struct_size is ", struct_size,
                                       "; it must be at least ", field.struct_bytes_min));
  }
  return OkStatus();
}

// Takes over the fields that `fields` names.
void TakeFields(const UpdateRule& from, uint32_t fields, UpdateRule* rule) {
  const auto has = [fields](uint32_t field) { return (fields & field) != 0; };
  if (has(EMBANK_SET_LEARNING_RATE)) rule->learning_rate = from.learning_rate;
  if (has(EMBANK_SET_BETAS)) {
    rule->beta1 = from.beta1;
    rule->beta2 = from.beta2;
  }
  if (has(EMBANK_SET_EPSILON)) rule->epsilon = from.epsilon;
  if (has(EMBANK_SET_WEIGHT_DECAY)) {
    rule->weight_decay = from.weight_decay;
    rule->decoupled_weight_decay = from.decoupled_weight_decay;
  }
  if (has(EMBANK_SET_CLIPPING)) {
    rule->max_gradient_norm = from.max_gradient_norm;
    rule->max_gradient_value = from.max_gradient_value;
  }
  if (has(EMBANK_SET_ROUNDING)) rule->rounding = from.rounding;
  if (has(EMBANK_SET_FTRL)) {
    rule->ftrl_l1 = from.ftrl_l1;
    rule->ftrl_l2 = from.ftrl_l2;
  }
}

}  // namespace
}  // namespace embank

using embank::CheckNotNull;
using embank::CheckTable;
using embank::Guard;
using embank::Table;
using embank::TableOfHandle;

embank_status embank_table_get_options(embank_table* table, embank_table_options* options) {
  return Guard([&]() -> embank::Status {
    EMBANK_RETURN_IF_ERROR(CheckTable(table));
    EMBANK_RETURN_IF_ERROR(CheckNotNull(options, "options"));
    const Table& opened = *TableOfHandle(table);
    EMBANK_RETURN_IF_ERROR(opened.CheckAlive());
    return embank::WriteOptions(opened.options(), options);
  });
}

embank_status embank_table_set_options(embank_table* table, const embank_table_options* options,
                                       uint32_t fields) {
  return Guard([&]() -> embank::Status {
    EMBANK_RETURN_IF_ERROR(CheckTable(table));
    if ((fields & ~embank::kKnownFields) != 0) {
      return embank::InvalidArgumentError(
          embank::StrCat("fields is ", fields, "; it must be a sum of EMBANK_SET_* (0 to ",
                         embank::kKnownFields, ")"));
    }
    EMBANK_ASSIGN_OR_RETURN(const embank::UpdateRule from, embank::ReadRule(options));
    EMBANK_RETURN_IF_ERROR(embank::CheckReached(fields, options->struct_size));
    Table* const opened = TableOfHandle(table);
    EMBANK_RETURN_IF_ERROR(opened->CheckMayChange());
    return opened->ChangeRule(
        [&](embank::UpdateRule* rule) { embank::TakeFields(from, fields, rule); });
  });
}
