// The calls that tell facts: the options of a store, its last checkpoint, the owners of keys.
#include <cstring>

#include "base/hash.h"
#include "base/status_macros.h"
#include "base/str_cat.h"
#include "bindings/c/arguments_in.h"
#include "bindings/c/embank.h"
#include "bindings/c/handles.h"
#include "bindings/c/last_error.h"
#include "bindings/c/options_in.h"
#include "store/table/pins.h"

namespace embank {
namespace {

embank_store_options OptionsOf(const Store& store) {
  const StoreOptions& options = store.options();
  const TopkFlushOptions flush_defaults;
  const auto iters_or = [&](uint32_t iters, uint32_t if_unset) {
    return options.hbm_bytes != 0 && iters == 0 ? if_unset : iters;
  };
  embank_store_options full = DefaultStoreOptions();
  const auto flag_if = [](bool is_set, uint32_t flag) { return is_set ? flag : 0u; };
  full.flags = flag_if(options.may_create && !options.read_only, EMBANK_OPEN_CREATE) |
               flag_if(options.read_only, EMBANK_OPEN_READ_ONLY) |
               flag_if(options.previous, EMBANK_OPEN_PREVIOUS);
  if (!options.path.empty()) full.path = options.path.c_str();
  if (!options.pmem_path.empty()) full.pmem_path = options.pmem_path.c_str();
  full.dram_bytes = options.dram_bytes;
  full.ssd_bytes = options.read_only ? 0 : options.ssd_bytes;
  full.pmem_bytes = options.read_only ? 0 : options.pmem_bytes;
  full.hbm_bytes = options.hbm_bytes;
  full.cuda_device = options.cuda_device;
  full.worker_threads = WorkerThreads(options);
  full.seed = options.seed;
  full.durability = options.path.empty() ? EMBANK_DURABLE_NONE : EMBANK_DURABLE_CHECKPOINT;
  full.warmup_iters = iters_or(options.warmup_iters, flush_defaults.warmup_iters);
  full.flush_iters = iters_or(options.flush_iters, flush_defaults.flush_iters);
  full.pin_batches = options.pin_batches == 0 ? Pins::kBatches : options.pin_batches;
  return full;
}

Status FillOwners(const char* table_name, const uint64_t* keys, uint64_t n, uint32_t ranks,
                  uint32_t* owners) {
  EMBANK_RETURN_IF_ERROR(CheckNotNull(table_name, "table_name"));
  const std::string_view name(table_name, strnlen(table_name, kTableNameBytesMax + 1));
  if (const Status valid = ValidateTableName(name); !valid.ok()) {
    return Status(valid.code(), StrCat("table_", valid.message()));
  }
  EMBANK_ASSIGN_OR_RETURN(const KeySpan entered, EnterKeys(keys, n));
  if (ranks < 1 || ranks > kOwnersMax) {
    return InvalidArgumentError(StrCat("ranks is ", ranks, "; it must be 1 to ", kOwnersMax));
  }
  if (n > 0) EMBANK_RETURN_IF_ERROR(CheckNotNull(owners, "owners"));
  const uint64_t table_hash = TableHash(name);
  for (size_t i = 0; i < entered.size(); ++i) {
    owners[i] = OwnerOf(HashKey(table_hash, entered[i]), ranks);
  }
  return OkStatus();
}

}  // namespace
}  // namespace embank

using embank::CheckNotNull;
using embank::CheckStore;
using embank::Guard;

embank_status embank_store_get_options(embank_store* store, embank_store_options* options) {
  return Guard([&]() -> embank::Status {
    EMBANK_RETURN_IF_ERROR(CheckStore(store));
    EMBANK_RETURN_IF_ERROR(CheckNotNull(options, "options"));
    return embank::WriteOptions(embank::OptionsOf(*store->store), options);
  });
}

embank_status embank_get_checkpoint_info(embank_store* store, embank_checkpoint_info* info) {
  return Guard([&]() -> embank::Status {
    EMBANK_RETURN_IF_ERROR(CheckStore(store));
    EMBANK_RETURN_IF_ERROR(CheckNotNull(info, "info"));
    EMBANK_ASSIGN_OR_RETURN(const embank::Checkpoints* const checkpoints,
                            embank::CheckpointsOf(*store));
    EMBANK_ASSIGN_OR_RETURN(const embank::CheckpointFacts facts, checkpoints->Facts());
    const embank_checkpoint_info full = {.struct_size = sizeof full,
                                         .reserved = 0,
                                         .sequence = facts.checkpoint,
                                         .unix_ns = facts.unix_ns,
                                         .bytes = facts.bytes,
                                         .blob_bytes = facts.blob_bytes,
                                         .rows = facts.rows};
    return embank::WriteInfo(full, info);
  });
}

embank_status embank_owner_of(const char* table_name, const uint64_t* keys, uint64_t n,
                              uint32_t ranks, uint32_t* owners) {
  return Guard([&] { return embank::FillOwners(table_name, keys, n, ranks, owners); });
}
