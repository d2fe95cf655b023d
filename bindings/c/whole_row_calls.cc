// The calls that read and write rows with their states and heats.
#include "base/status_macros.h"
#include "bindings/c/arguments_in.h"
#include "bindings/c/embank.h"
#include "bindings/c/handles.h"
#include "bindings/c/last_error.h"
#include "store/batch/write.h"

namespace embank {
namespace {

StatusOr<ScannedRows> EnterScannedRows(const Table& table, uint64_t* keys, void* rows,
                                       uint64_t row_stride, float* state, uint64_t state_stride,
                                       uint32_t* heat, uint64_t cap) {
  EMBANK_RETURN_IF_ERROR(CheckCap(cap));
  EMBANK_RETURN_IF_ERROR(CheckOnHost(table, keys, "keys"));
  EMBANK_RETURN_IF_ERROR(CheckOnHost(table, heat, "heat"));
  ScannedRows entered;
  if (keys != nullptr) entered.keys = std::span(keys, cap);
  if (rows != nullptr) {
    EMBANK_ASSIGN_OR_RETURN(entered.vectors, EnterRows(table, rows, "rows", cap,
                                                       table.layout().vector_bytes, row_stride));
  }
  if (state != nullptr) {
    EMBANK_ASSIGN_OR_RETURN(entered.states, EnterStates(table, state, cap, state_stride));
  }
  entered.heats = heat;
  return entered;
}

Status UpsertFull(embank_table* handle, KeySpan keys, const void* rows, uint64_t row_stride,
                  const float* state, uint64_t state_stride, const uint32_t* heat,
                  OutcomeSpan outcomes) {
  Table* const table = TableOfHandle(handle);
  EMBANK_ASSIGN_OR_RETURN(
      const ConstRowSpan vectors,
      EnterRows(*table, rows, "rows", keys.size(), table->layout().vector_bytes, row_stride));
  RowsToWrite entered(vectors);
  if (state != nullptr) {
    EMBANK_ASSIGN_OR_RETURN(entered.states, EnterStates(*table, state, keys.size(), state_stride));
  }
  EMBANK_RETURN_IF_ERROR(CheckOnHost(*table, heat, "heat"));
  entered.heats = heat;
  return Upsert(table, keys, entered, outcomes);
}

}  // namespace
}  // namespace embank

using embank::Guard;

embank_status embank_scan_next_full(embank_scan* scan, uint64_t* keys, void* rows,
                                    uint64_t row_stride, float* state, uint64_t state_stride,
                                    uint32_t* heat, uint64_t cap, uint64_t* n) {
  return Guard([&]() -> embank::Status {
    EMBANK_RETURN_IF_ERROR(embank::CheckScan(scan));
    EMBANK_RETURN_IF_ERROR(embank::CheckNotNull(n, "n"));
    EMBANK_ASSIGN_OR_RETURN(const embank::ScannedRows out,
                            embank::EnterScannedRows(scan->scan.table(), keys, rows, row_stride,
                                                     state, state_stride, heat, cap));
    EMBANK_ASSIGN_OR_RETURN(*n, scan->scan.Next(out, cap));
    return embank::OkStatus();
  });
}

embank_status embank_upsert_full(embank_table* table, const uint64_t* keys, uint64_t n,
                                 const void* rows, uint64_t row_stride, const float* state,
                                 uint64_t state_stride, const uint32_t* heat, uint8_t* outcomes) {
  return Guard([&]() -> embank::Status {
    EMBANK_ASSIGN_OR_RETURN(const embank::KeySpan entered, embank::EnterKeys(table, keys, n));
    return embank::UpsertFull(table, entered, rows, row_stride, state, state_stride, heat,
                              embank::EnterOutcomes(outcomes, n));
  });
}
