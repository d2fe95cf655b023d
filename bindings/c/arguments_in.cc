#include "bindings/c/arguments_in.h"

#include "base/status_macros.h"
#include "base/str_cat.h"
#include "bindings/c/handles.h"
#include "store/batch/state.h"
#include "store/payload/payload_rows.h"

namespace embank {
namespace {

Status NullArgument(const char* argument) {
  return InvalidArgumentError(StrCat(argument, " is NULL"));
}

}  // namespace

Status CheckNotNull(const void* pointer, const char* argument) {
  return pointer != nullptr ? OkStatus() : NullArgument(argument);
}

Status CheckStore(const embank_store* store) {
  if (store == nullptr) return NullArgument("store");
  return store->owner.Check();
}

Status CheckTable(embank_table* table) {
  if (table == nullptr) return NullArgument("table");
  return TableOfHandle(table)->owner().Check();
}

Status CheckScan(const embank_scan* scan) {
  EMBANK_RETURN_IF_ERROR(CheckNotNull(scan, "scan"));
  return scan->scan.table().owner().Check();
}

StatusOr<Checkpoints*> CheckpointsOf(const embank_store& store) {
  if (store.store->checkpoints() != nullptr) return store.store->checkpoints();
  return FailedPreconditionError("the store has no path: it is in memory only");
}

StatusOr<KeySpan> EnterKeys(embank_table* table, const uint64_t* keys, uint64_t n) {
  EMBANK_RETURN_IF_ERROR(CheckTable(table));
  return EnterKeys(keys, n);
}

StatusOr<KeySpan> EnterKeys(const uint64_t* keys, uint64_t n) {
  if (n > kBatchKeysMax) {
    return InvalidArgumentError(
        StrCat("n is ", n, "; a batch has at most ", kBatchKeysMax, " keys"));
  }
  if (n > 0) EMBANK_RETURN_IF_ERROR(CheckNotNull(keys, "keys"));
  return KeySpan(keys, n);
}

Status CheckCap(uint64_t cap) {
  if (cap > 0 && cap <= kBatchKeysMax) return OkStatus();
  return InvalidArgumentError(StrCat("cap is ", cap, "; it must be 1 to ", kBatchKeysMax));
}

StatusOr<uint64_t> EnterStride(uint64_t n, uint64_t row_bytes, uint64_t row_stride,
                               const char* name) {
  const uint64_t stride_bytes = row_stride == 0 ? row_bytes : row_stride;
  if (stride_bytes < row_bytes) {
    return InvalidArgumentError(
        StrCat(name, " is ", row_stride, "; a row has ", row_bytes, " bytes"));
  }
  uint64_t end = 0;
  if (__builtin_mul_overflow(n, stride_bytes, &end) || end > uint64_t{1} << 62) {
    return InvalidArgumentError(
        StrCat(name, " is ", row_stride, "; ", n, " rows do not fit into memory"));
  }
  return stride_bytes;
}

StatusOr<RowSpan> EnterStates(const Table& table, float* state, uint64_t n, uint64_t state_stride) {
  EMBANK_RETURN_IF_ERROR(CheckHasState(table));
  EMBANK_RETURN_IF_ERROR(CheckOnHost(table, state, "state"));
  EMBANK_ASSIGN_OR_RETURN(const uint64_t stride_bytes, EnterStride(n, table.layout().state_bytes(),
                                                                   state_stride, "state_stride"));
  return RowSpan{reinterpret_cast<std::byte*>(state), stride_bytes};
}

StatusOr<ConstRowSpan> EnterStates(const Table& table, const float* state, uint64_t n,
                                   uint64_t state_stride) {
  EMBANK_ASSIGN_OR_RETURN(const RowSpan entered,
                          EnterStates(table, const_cast<float*>(state), n, state_stride));
  return ConstRowSpan{entered.data, entered.stride_bytes};
}

StatusOr<RowSpan> EnterRows(const Table& table, void* rows, const char* argument, uint64_t n,
                            uint64_t row_bytes, uint64_t row_stride) {
  if (n > 0) EMBANK_RETURN_IF_ERROR(CheckNotNull(rows, argument));
  EMBANK_RETURN_IF_ERROR(CheckOnHost(table, rows, argument));
  EMBANK_ASSIGN_OR_RETURN(const uint64_t stride_bytes, EnterStride(n, row_bytes, row_stride));
  return RowSpan{static_cast<std::byte*>(rows), stride_bytes};
}

StatusOr<ConstRowSpan> EnterRows(const Table& table, const void* rows, const char* argument,
                                 uint64_t n, uint64_t row_bytes, uint64_t row_stride) {
  if (n > 0) EMBANK_RETURN_IF_ERROR(CheckNotNull(rows, argument));
  EMBANK_RETURN_IF_ERROR(CheckOnHost(table, rows, argument));
  EMBANK_ASSIGN_OR_RETURN(const uint64_t stride_bytes, EnterStride(n, row_bytes, row_stride));
  return ConstRowSpan{static_cast<const std::byte*>(rows), stride_bytes};
}

StatusOr<MissingRule> EnterMissing(int32_t missing) {
  if (missing >= EMBANK_MISSING_CREATE && missing <= EMBANK_MISSING_SKIP) {
    return static_cast<MissingRule>(missing);
  }
  return InvalidArgumentError(
      StrCat("missing is ", missing, "; it must be an EMBANK_MISSING_* (0 to 3)"));
}

OutcomeSpan EnterOutcomes(uint8_t* outcomes, uint64_t n) {
  return outcomes == nullptr ? OutcomeSpan() : OutcomeSpan(outcomes, n);
}

Status CheckOnHost(const Table& table, const void* pointer, const char* argument) {
  PayloadRows* const payloads = table.store().payloads;
  if (payloads == nullptr || pointer == nullptr || !payloads->memory().device().Owns(pointer, 1)) {
    return OkStatus();
  }
  return InvalidArgumentError(
      StrCat(argument, " is in device memory; it must be in host memory for this call"));
}

StatusOr<DeviceArray> EnterDeviceRows(const Table& table, const void* rows, const char* argument,
                                      uint64_t n, uint64_t row_bytes, uint64_t row_stride,
                                      uint32_t value_bytes) {
  if (n > 0) EMBANK_RETURN_IF_ERROR(CheckNotNull(rows, argument));
  EMBANK_ASSIGN_OR_RETURN(const uint64_t stride_bytes, EnterStride(n, row_bytes, row_stride));
  PayloadRows* const payloads = table.store().payloads;
  if (payloads == nullptr) {
    return FailedPreconditionError(
        StrCat("the store has no hbm_bytes, and so no device: ", argument,
               " must be in host memory, for the call without _device"));
  }
  // The caller's memory is not const on the way: the device's interface has one kind of array.
  auto* const bytes = const_cast<std::byte*>(static_cast<const std::byte*>(rows));
  if (n == 0) return DeviceArray{bytes, stride_bytes};
  if (reinterpret_cast<uintptr_t>(rows) % value_bytes != 0) {
    return InvalidArgumentError(
        StrCat(argument, " is not at a multiple of ", value_bytes, " bytes, the size of a value"));
  }
  if (stride_bytes % value_bytes != 0) {
    return InvalidArgumentError(StrCat("row_stride is ", row_stride,
                                       "; in device memory it is a "
                                       "multiple of ",
                                       value_bytes, ", the size of a value"));
  }
  const uint64_t span_bytes = (n - 1) * stride_bytes + row_bytes;
  if (payloads->memory().device().Owns(rows, span_bytes)) return DeviceArray{bytes, stride_bytes};
  return InvalidArgumentError(StrCat(argument, " is not ", span_bytes,
                                     " bytes in memory of the store's device (",
                                     payloads->memory().device().figures().name, ")"));
}

}  // namespace embank
