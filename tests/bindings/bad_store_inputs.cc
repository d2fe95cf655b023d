#include <cstring>

#include "tests/bindings/bad_input.h"

namespace embank::test {
namespace {

using Change = std::function<void(embank_store_options*)>;

BadInput Open(const std::string& name, embank_status status, std::vector<std::string> mentions,
              const Change& change) {
  auto call = [change](Scene& scene) {
    embank_store_options options = StoreOptions();
    change(&options);
    return embank_store_open(&options, &scene.out->store);
  };
  return {"open: " + name, call, status, std::move(mentions)};
}

struct LargerOptions {
  embank_store_options options;
  uint8_t unknown[8];
};

embank_status OpenWithUnknownTail(Scene& scene) {
  LargerOptions larger;
  std::memset(&larger, 0, sizeof larger);
  embank_store_options_init(&larger.options, sizeof larger);
  larger.unknown[5] = 1;
  return embank_store_open(&larger.options, &scene.out->store);
}

embank_status OpenNowhere(Scene&) {
  embank_store_options options = StoreOptions();
  return embank_store_open(&options, nullptr);
}

embank_status ExportTo(embank_store* store, const char* directory) {
  return embank_export(store, directory, nullptr, nullptr);
}

constexpr embank_status kInvalid = EMBANK_INVALID_ARGUMENT;
constexpr embank_status kMissing = EMBANK_UNIMPLEMENTED;
const std::string kLongPath(5000, 'p');
const std::string kLongName(300, 'p');  // more than a file system takes

std::vector<BadInput> BadFlags() {
  using Options = embank_store_options;
  return {
      Open("unknown flag", kInvalid, {"flags"}, [](Options* o) { o->flags = 8; }),
      Open("read-only without a path", kInvalid, {"flags", "READ_ONLY", "path"},
           [](Options* o) { o->flags = EMBANK_OPEN_READ_ONLY; }),
      Open("read-only and created", kInvalid, {"flags", "READ_ONLY", "CREATE"},
           [](Options* o) {
             o->path = "no such directory";
             o->flags = EMBANK_OPEN_READ_ONLY | EMBANK_OPEN_CREATE;
           }),
      Open("read-only path of nothing", EMBANK_NOT_FOUND, {"path", "not a store"},
           [](Options* o) {
             o->path = "no such directory";
             o->flags = EMBANK_OPEN_READ_ONLY;
           }),
      Open("path with too long a name", kInvalid, {"path", "too long"},
           [](Options* o) {
             o->path = kLongName.c_str();
             o->flags = EMBANK_OPEN_CREATE;
           }),
      Open("read-only path with too long a name", kInvalid, {"path", "too long"},
           [](Options* o) {
             o->path = kLongName.c_str();
             o->flags = EMBANK_OPEN_READ_ONLY;
           }),
      Open("previous", kInvalid, {"flags", "PREVIOUS"},
           [](Options* o) { o->flags = EMBANK_OPEN_PREVIOUS; }),
  };
}

std::vector<BadInput> BadPmem() {
  using Options = embank_store_options;
  return {
      Open("pmem_path without a path", kInvalid, {"pmem_path", "path"},
           [](Options* o) { o->pmem_path = "file"; }),
      Open("pmem_path of no bytes", kInvalid, {"pmem_path", "1 to"},
           [](Options* o) { o->pmem_path = ""; }),
      Open("pmem_bytes without pmem_path", kInvalid, {"pmem_bytes", "0 without"},
           [](Options* o) { o->pmem_bytes = 1; }),
      Open("pmem_bytes below the least", kInvalid, {"pmem_bytes", "4194304"},
           [](Options* o) {
             o->path = "somewhere";
             o->pmem_path = "file";
             o->pmem_bytes = 4194303;
           }),
  };
}

std::vector<BadInput> BadHbm() {
  using Options = embank_store_options;
  return {
      Open("hbm_bytes for no row", kInvalid, {"hbm_bytes", "65536"},
           [](Options* o) { o->hbm_bytes = 65535; }),
      Open("a CUDA device without hbm_bytes", kInvalid, {"cuda_device", "hbm_bytes"},
           [](Options* o) { o->cuda_device = 0; }),
      Open("more hbm_bytes than there are", EMBANK_RESOURCE_EXHAUSTED,
           {"hbm_bytes is 1152921504606846976", "bytes free"},
           [](Options* o) { o->hbm_bytes = uint64_t{1} << 60; }),
      Open("warmup_iters without hbm_bytes", kInvalid, {"warmup_iters", "hbm_bytes"},
           [](Options* o) { o->warmup_iters = 1; }),
      Open("flush_iters without hbm_bytes", kInvalid, {"flush_iters", "hbm_bytes"},
           [](Options* o) { o->flush_iters = 1; }),
  };
}

std::vector<BadInput> BadStartedCheckpoints() {
  return {
      {"checkpoint_start: store NULL",
       [](Scene&) { return embank_checkpoint_start(nullptr, nullptr, 0); },
       kInvalid,
       {"store"}},
      {"checkpoint_start: blob NULL",
       [](Scene& s) { return embank_checkpoint_start(s.store, nullptr, 1); },
       kInvalid,
       {"blob"}},
      {"checkpoint_start: memory only",
       [](Scene& s) { return embank_checkpoint_start(s.store, "b", 1); },
       EMBANK_FAILED_PRECONDITION,
       {"no path"}},
      {"checkpoint_finish: store NULL",
       [](Scene& s) { return embank_checkpoint_finish(nullptr, &s.out->n); },
       kInvalid,
       {"store"}},
      {"checkpoint_finish: memory only",
       [](Scene& s) { return embank_checkpoint_finish(s.store, &s.out->n); },
       EMBANK_FAILED_PRECONDITION,
       {"no path"}},
  };
}

}  // namespace

std::vector<BadInput> BadStoreInputs() {
  using Options = embank_store_options;
  std::vector<BadInput> inputs = BadFlags();
  for (const BadInput& input : BadPmem()) inputs.push_back(input);
  for (const BadInput& input : BadHbm()) inputs.push_back(input);
  for (const BadInput& input : BadStartedCheckpoints()) inputs.push_back(input);
  const std::vector<BadInput> others = {
      {"open: store NULL", OpenNowhere, kInvalid, {"store"}},
      {"open: unknown tail", OpenWithUnknownTail, kMissing, {"struct_size"}},
      Open("size 0", kInvalid, {"struct_size"}, [](Options* o) { o->struct_size = 0; }),
      Open("size 3", kInvalid, {"struct_size"}, [](Options* o) { o->struct_size = 3; }),
      Open("size beyond 4096", kInvalid, {"struct_size", "4096"},
           [](Options* o) { o->struct_size = 4100; }),
      Open("no path", kInvalid, {"path"}, [](Options* o) { o->path = ""; }),
      Open("long path", kInvalid, {"path", "4000"},
           [](Options* o) { o->path = kLongPath.c_str(); }),
      Open("path of nothing", EMBANK_NOT_FOUND, {"path", "not a store"},
           [](Options* o) { o->path = "no such directory"; }),
      Open("path in nothing", EMBANK_NOT_FOUND, {"no such parent"},
           [](Options* o) {
             o->path = "no such parent/directory";
             o->flags = EMBANK_OPEN_CREATE;
           }),
      Open("path without durability", kMissing, {"durability"},
           [](Options* o) {
             o->path = "directory";
             o->durability = EMBANK_DURABLE_NONE;
           }),
      Open("tiny budget", kInvalid, {"dram_bytes", "16 MiB"},
           [](Options* o) { o->dram_bytes = 1; }),
      Open("budget one byte short", kInvalid, {"dram_bytes", "16 MiB"},
           [](Options* o) { o->dram_bytes = (16 << 20) - 1; }),
      Open("budget beyond 4 TiB", kInvalid, {"dram_bytes", "4 TiB"},
           [](Options* o) { o->dram_bytes = (uint64_t{1} << 42) + 1; }),
      Open("ssd_bytes", kInvalid, {"ssd_bytes"}, [](Options* o) { o->ssd_bytes = 1; }),
      Open("no CUDA device", kInvalid, {"cuda_device"}, [](Options* o) { o->cuda_device = -2; }),
      Open("worker_threads", kInvalid, {"worker_threads", "1024"},
           [](Options* o) { o->worker_threads = 1025; }),
      Open("durable batches", kMissing, {"durability"},
           [](Options* o) { o->durability = EMBANK_DURABLE_BATCH; }),
      Open("durability 3", kInvalid, {"durability"}, [](Options* o) { o->durability = 3; }),
      Open("durability -1", kInvalid, {"durability"}, [](Options* o) { o->durability = -1; }),
      Open("reserved", kInvalid, {"reserved is 1"}, [](Options* o) { o->reserved = 1; }),
      Open("reserved_2", kInvalid, {"reserved_2 is 1"}, [](Options* o) { o->reserved_2 = 1; }),
      Open("pin_batches", kInvalid, {"pin_batches is 1025", "1024"},
           [](Options* o) { o->pin_batches = 1025; }),
      {"export: store NULL", [](Scene&) { return ExportTo(nullptr, "d"); }, kInvalid, {"store"}},
      {"export: directory NULL",
       [](Scene& s) { return ExportTo(s.store, nullptr); },
       kInvalid,
       {"directory"}},
      {"export: no directory",
       [](Scene& s) { return ExportTo(s.store, ""); },
       kInvalid,
       {"directory", "4000"}},
      {"export: long directory",
       [](Scene& s) { return ExportTo(s.store, kLongPath.c_str()); },
       kInvalid,
       {"directory", "4000"}},
      {"export: memory only",
       [](Scene& s) { return ExportTo(s.store, "directory"); },
       EMBANK_FAILED_PRECONDITION,
       {"no path"}},
  };
  inputs.insert(inputs.end(), others.begin(), others.end());
  return inputs;
}

}  // namespace embank::test
