// Checks the arguments of calls, and turns them into those of the store.
#ifndef EMBANK_BINDINGS_C_ARGUMENTS_IN_H_
#define EMBANK_BINDINGS_C_ARGUMENTS_IN_H_

#include <cstddef>
#include <cstdint>

#include "base/status.h"
#include "base/status_or.h"
#include "base/types.h"
#include "bindings/c/embank.h"
#include "gpu/device.h"
#include "store/checkpoint/checkpoints.h"
#include "store/table/table.h"

namespace embank {

// Each returns kInvalidArgument with a message that begins with the argument's name, unless it says
// otherwise.
Status CheckNotNull(const void* pointer, const char* argument);

// The handles enter here, and are checked. kFailedPrecondition: they were inherited by fork().
Status CheckStore(const embank_store* store);
Status CheckTable(embank_table* table);
Status CheckScan(const embank_scan* scan);

// kFailedPrecondition: the store has no path.
StatusOr<Checkpoints*> CheckpointsOf(const embank_store& store);

// The keys of a batch enter here alone, and are checked; with a table, also that.
StatusOr<KeySpan> EnterKeys(const uint64_t* keys, uint64_t n);
StatusOr<KeySpan> EnterKeys(embank_table* table, const uint64_t* keys, uint64_t n);
// Checks the number of rows that a call of a scan wants.
Status CheckCap(uint64_t cap);
// Returns the stride of `n` rows of `row_bytes`, where 0 means packed; `name` is the argument's.
StatusOr<uint64_t> EnterStride(uint64_t n, uint64_t row_bytes, uint64_t row_stride,
                               const char* name = "row_stride");
// Optimizer states in host memory. kFailedPrecondition: the table has none.
StatusOr<RowSpan> EnterStates(const Table& table, float* state, uint64_t n, uint64_t state_stride);
StatusOr<ConstRowSpan> EnterStates(const Table& table, const float* state, uint64_t n,
                                   uint64_t state_stride);
// Rows in host memory.
StatusOr<RowSpan> EnterRows(const Table& table, void* rows, const char* argument, uint64_t n,
                            uint64_t row_bytes, uint64_t row_stride);
StatusOr<ConstRowSpan> EnterRows(const Table& table, const void* rows, const char* argument,
                                 uint64_t n, uint64_t row_bytes, uint64_t row_stride);
// Rows in device memory, of values of `value_bytes`. kFailedPrecondition: the store has no device.
StatusOr<DeviceArray> EnterDeviceRows(const Table& table, const void* rows, const char* argument,
                                      uint64_t n, uint64_t row_bytes, uint64_t row_stride,
                                      uint32_t value_bytes);
// The answer of a lookup for a key without a row.
StatusOr<MissingRule> EnterMissing(int32_t missing);
OutcomeSpan EnterOutcomes(uint8_t* outcomes, uint64_t n);
// Checks that a pointer (NULL: none) is not one of the store's device.
Status CheckOnHost(const Table& table, const void* pointer, const char* argument);

}  // namespace embank

#endif  // EMBANK_BINDINGS_C_ARGUMENTS_IN_H_
