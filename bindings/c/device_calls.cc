// The calls whose rows are in device memory.
#include "base/status_macros.h"
#include "base/str_cat.h"
#include "bindings/c/arguments_in.h"
#include "bindings/c/embank.h"
#include "bindings/c/handles.h"
#include "bindings/c/last_error.h"
#include "store/device/device_gradients.h"
#include "store/device/device_lookup.h"
#include "store/device/device_upsert.h"

namespace embank {
namespace {

StatusOr<CallerMemory*> EnterDevice(embank_store* store) {
  EMBANK_RETURN_IF_ERROR(CheckStore(store));
  if (store->device_memory.has_value()) return &*store->device_memory;
  return FailedPreconditionError("the store has no hbm_bytes, and so no device");
}

// Keys and outcomes are in host memory, whatever the rows are in.
StatusOr<KeySpan> EnterHostKeys(embank_table* table, const uint64_t* keys, uint64_t n,
                                const uint8_t* outcomes) {
  EMBANK_ASSIGN_OR_RETURN(const KeySpan entered, EnterKeys(table, keys, n));
  EMBANK_RETURN_IF_ERROR(CheckOnHost(*TableOfHandle(table), keys, "keys"));
  EMBANK_RETURN_IF_ERROR(CheckOnHost(*TableOfHandle(table), outcomes, "outcomes"));
  return entered;
}

StatusOr<DeviceArray> EnterVectors(const Table& table, const void* rows, uint64_t n,
                                   uint64_t row_stride) {
  const RowLayout& layout = table.layout();
  return EnterDeviceRows(table, rows, "rows", n, layout.vector_bytes, row_stride,
                         layout.vector_bytes / layout.dim);
}

// kInvalidArgument: bytes that begin in device memory do not end there.
Status CheckSide(const Device& device, const void* memory, const char* argument, uint64_t bytes) {
  EMBANK_RETURN_IF_ERROR(CheckNotNull(memory, argument));
  if (!device.Owns(memory, 1) || device.Owns(memory, bytes)) return OkStatus();
  return InvalidArgumentError(
      StrCat(argument, " has less than ", bytes, " bytes in its device memory"));
}

Status DeviceCopy(embank_store* store, void* to, const void* from, uint64_t bytes, void* stream) {
  EMBANK_ASSIGN_OR_RETURN(CallerMemory* const memory, EnterDevice(store));
  if (bytes == 0) return OkStatus();
  const Device& device = store->store->payloads()->memory().device();
  EMBANK_RETURN_IF_ERROR(CheckSide(device, to, "to", bytes));
  EMBANK_RETURN_IF_ERROR(CheckSide(device, from, "from", bytes));
  if (!device.Owns(to, 1) && !device.Owns(from, 1)) {
    return InvalidArgumentError("to and from are both not in memory of the store's device");
  }
  return memory->Copy(static_cast<std::byte*>(to), static_cast<const std::byte*>(from), bytes,
                      stream);
}

}  // namespace
}  // namespace embank

using embank::EnterOutcomes;
using embank::Guard;
using embank::Table;
using embank::TableOfHandle;

embank_status embank_device_allocate(embank_store* store, uint64_t bytes, void** out) {
  return Guard([&]() -> embank::Status {
    EMBANK_ASSIGN_OR_RETURN(embank::CallerMemory* const memory, embank::EnterDevice(store));
    EMBANK_RETURN_IF_ERROR(embank::CheckNotNull(out, "out"));
    if (bytes == 0) return embank::InvalidArgumentError("bytes is 0; it must be at least 1");
    EMBANK_ASSIGN_OR_RETURN(*out, memory->Allocate(bytes));
    return embank::OkStatus();
  });
}

embank_status embank_device_free(embank_store* store, void* memory) {
  return Guard([&]() -> embank::Status {
    EMBANK_ASSIGN_OR_RETURN(embank::CallerMemory* const owner, embank::EnterDevice(store));
    return memory == nullptr ? embank::OkStatus() : owner->Free(static_cast<std::byte*>(memory));
  });
}

embank_status embank_device_copy(embank_store* store, void* to, const void* from, uint64_t bytes,
                                 void* stream) {
  return Guard([&] { return embank::DeviceCopy(store, to, from, bytes, stream); });
}

embank_status embank_lookup_device(embank_table* table, const uint64_t* keys, uint64_t n,
                                   int32_t missing, void* rows, uint64_t row_stride,
                                   uint8_t* outcomes, void* stream) {
  return Guard([&]() -> embank::Status {
    EMBANK_ASSIGN_OR_RETURN(const embank::KeySpan entered,
                            embank::EnterHostKeys(table, keys, n, outcomes));
    EMBANK_ASSIGN_OR_RETURN(const embank::MissingRule rule, embank::EnterMissing(missing));
    Table* const opened = TableOfHandle(table);
    EMBANK_ASSIGN_OR_RETURN(const embank::DeviceArray out,
                            embank::EnterVectors(*opened, rows, n, row_stride));
    return LookupToDevice(opened, entered, rule, out, stream, EnterOutcomes(outcomes, n));
  });
}

embank_status embank_upsert_device(embank_table* table, const uint64_t* keys, uint64_t n,
                                   const void* rows, uint64_t row_stride, uint8_t* outcomes,
                                   void* stream) {
  return Guard([&]() -> embank::Status {
    EMBANK_ASSIGN_OR_RETURN(const embank::KeySpan entered,
                            embank::EnterHostKeys(table, keys, n, outcomes));
    Table* const opened = TableOfHandle(table);
    EMBANK_ASSIGN_OR_RETURN(const embank::DeviceArray in,
                            embank::EnterVectors(*opened, rows, n, row_stride));
    return UpsertFromDevice(opened, entered, in, stream, EnterOutcomes(outcomes, n));
  });
}

embank_status embank_apply_gradients_device(embank_table* table, const uint64_t* keys, uint64_t n,
                                            const float* gradients, uint64_t row_stride,
                                            uint8_t* outcomes, void* stream) {
  return Guard([&]() -> embank::Status {
    EMBANK_ASSIGN_OR_RETURN(const embank::KeySpan entered,
                            embank::EnterHostKeys(table, keys, n, outcomes));
    Table* const opened = TableOfHandle(table);
    EMBANK_ASSIGN_OR_RETURN(const embank::DeviceArray in,
                            embank::EnterDeviceRows(*opened, gradients, "gradients", n,
                                                    uint64_t{opened->layout().dim} * sizeof(float),
                                                    row_stride, sizeof(float)));
    return ApplyGradientsFromDevice(opened, entered, in, stream, EnterOutcomes(outcomes, n));
  });
}
