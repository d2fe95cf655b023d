// The structs behind the opaque handles; for tests that open a store in a given environment.
#ifndef EMBANK_BINDINGS_C_HANDLES_H_
#define EMBANK_BINDINGS_C_HANDLES_H_

#include <memory>
#include <optional>
#include <utility>

#include "base/threads/owner_process.h"
#include "bindings/c/embank.h"
#include "store/device/caller_memory.h"
#include "store/scan/scan.h"
#include "store/store.h"

struct embank_store {
  std::unique_ptr<embank::Store> store;
  std::optional<embank::CallerMemory> device_memory;  // none: the store has no hbm_bytes
  embank::OwnerProcess owner;
};

struct embank_scan {
  embank::Scan scan;
};

namespace embank {

// A table handle is the table itself, which its store owns.
inline embank_table* TableHandle(Table* table) { return reinterpret_cast<embank_table*>(table); }
inline Table* TableOfHandle(embank_table* handle) { return reinterpret_cast<Table*>(handle); }

// embank_store_open in a given environment.
Status OpenStoreIn(const embank_store_options* options, StoreEnvironment environment,
                   embank_store** store);

}  // namespace embank

#endif  // EMBANK_BINDINGS_C_HANDLES_H_
