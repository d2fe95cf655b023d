// Embank for C++17 and later: owners, views and results over embank.h, which documents every call.
//
//   auto store = embank::api::Store::Open();
//   embank::api::TableOptions options;
//   options.dim = 16;
//   auto items = store->CreateTable("items", options);
//   std::vector<std::uint64_t> keys = {1, 2, 3};
//   std::vector<float> rows(3 * 16);
//   embank::api::Status status = items->Lookup(keys, rows);
//
// Store and Scan own their handles and are move-only; a Table is a handle that its store owns.
// Nothing throws: a call returns a Status or a Result, and value_or_throw() and or_throw() turn a
// failure into an exception. Sizes of buffers are checked against the number of keys. Functions
// without state are called as in C.
#ifndef EMBANK_HPP_
#define EMBANK_HPP_

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "embank.h"

namespace embank::api {

// The exception of or_throw() and value_or_throw().
struct Error : std::runtime_error {
  Error(embank_status failure, const std::string& message)
      : std::runtime_error(message), code(failure) {}
  embank_status code;
};

// A code and, for a failure, the message that explains it.
struct [[nodiscard]] Status {
  // The outcome of a C call that this thread has just made.
  static Status Of(embank_status code) {
    return code == EMBANK_OK ? Status{} : Status{code, embank_last_error()};
  }
  bool ok() const { return code == EMBANK_OK; }
  const char* name() const { return embank_status_name(code); }
  void or_throw() const {
    if (ok()) return;
#if defined(__cpp_exceptions)
    throw Error(code, std::string(name()) + ": " + message);
#else
    std::abort();
#endif
  }

  embank_status code = EMBANK_OK;
  std::string message;
};

// A value, or the status that says why there is none. Reading the value of a failure is a defect.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}
  Result(Status status) : status_(std::move(status)) {}
  // The value that a C call has just made, if it did.
  Result(embank_status code, T value) : status_(Status::Of(code)) {
    if (code == EMBANK_OK) value_ = std::move(value);
  }

  bool ok() const { return value_.has_value(); }
  const Status& status() const { return status_; }
  T& operator*() { return *value_; }
  T* operator->() { return &*value_; }
  T value_or_throw() && {
    status_.or_throw();
    return std::move(*value_);
  }

 private:
  Status status_;
  std::optional<T> value_;
};

// A borrowed array: of a pointer and a count, or of anything with data() and size().
template <typename T>
struct View {
  View() = default;
  View(T* first, std::uint64_t count) : data(first), size(count) {}
  template <typename Array, typename = decltype(static_cast<T*>(std::declval<Array&>().data()))>
  View(Array&& array) : data(array.data()), size(array.size()) {}
  T* data = nullptr;
  std::uint64_t size = 0;
};

// Borrowed rows of any value type: the bytes of an array of float, std::uint16_t, ...
template <typename Void>
struct RowView {
  RowView(Void* first, std::uint64_t count_bytes) : data(first), size_bytes(count_bytes) {}
  template <typename Array, typename = decltype(static_cast<Void*>(std::declval<Array&>().data()))>
  RowView(Array&& array) : data(array.data()), size_bytes(array.size() * sizeof(*array.data())) {}
  Void* data;
  std::uint64_t size_bytes;
};

using Keys = View<const std::uint64_t>;
using Outcomes = View<std::uint8_t>;  // empty: no outcomes wanted
using Rows = RowView<void>;
using ConstRows = RowView<const void>;

// Options with the defaults filled in.
struct StoreOptions : embank_store_options {
  StoreOptions() : embank_store_options() {
    embank_store_options_init(this, sizeof(embank_store_options));
  }
};
struct TableOptions : embank_table_options {
  TableOptions() : embank_table_options() {
    embank_table_options_init(this, sizeof(embank_table_options));
  }
};

namespace internal {

// Asks a "string out" call for the size, then for the string; again if the string grew meanwhile.
template <typename Call, typename... Arguments>
Result<std::string> ReadString(Call call, Arguments... arguments) {
  std::uint64_t needed = 0;
  std::string text;
  embank_status code = call(arguments..., nullptr, 0, &needed);
  for (int attempts = 0; code == EMBANK_OK && attempts < 8; ++attempts) {
    text.resize(needed);
    code = call(arguments..., text.data(), text.size(), &needed);
    if (code == EMBANK_OK) return text.substr(0, needed - 1);
    if (code == EMBANK_RESOURCE_EXHAUSTED && needed > text.size()) code = EMBANK_OK;
  }
  return Status::Of(code == EMBANK_OK ? EMBANK_RESOURCE_EXHAUSTED : code);
}

inline Status TooSmall(const char* name) {
  Status status;
  status.code = EMBANK_INVALID_ARGUMENT;
  status.message = name;
  status.message += ": too small for the keys";
  return status;
}

struct Closer {
  void operator()(embank_scan* scan) const { embank_scan_close(scan); }
  void operator()(embank_store* store) const { embank_store_close(store); }
};

}  // namespace internal

// Rows of a scan with states and heats: an array that is empty is not wanted.
struct FullRows {
  View<std::uint64_t> keys = {};
  Rows rows = {nullptr, 0};
  View<float> state = {};
  View<std::uint32_t> heat = {};
};

// A scan over a table; closes itself.
class Scan {
 public:
  Scan(embank_scan* scan, std::uint64_t row_bytes, std::uint64_t state_floats)
      : scan_(scan), row_bytes_(row_bytes), state_floats_(state_floats) {}

  // Returns how many rows were written to the front of `keys` and `rows`; 0: the end.
  Result<std::uint64_t> Next(View<std::uint64_t> keys, Rows rows) {
    if (rows.size_bytes / row_bytes_ < keys.size) {
      return Status{EMBANK_INVALID_ARGUMENT, "rows: too small for the keys"};
    }
    std::uint64_t n = 0;
    const embank_status code =
        embank_scan_next(scan_.get(), keys.data, rows.data, 0, keys.size, &n);
    return {code, n};
  }
  // Returns how many rows, at most `cap`, were written to the front of the arrays; 0: the end.
  Result<std::uint64_t> NextFull(const FullRows& to, std::uint64_t cap) {
    const auto is_small = [cap](std::uint64_t size, std::uint64_t each) {
      return size != 0 && each != 0 && size / each < cap;
    };
    if (is_small(to.keys.size, 1)) return internal::TooSmall("keys");
    if (is_small(to.rows.size_bytes, row_bytes_)) return internal::TooSmall("rows");
    if (is_small(to.state.size, state_floats_)) return internal::TooSmall("state");
    if (is_small(to.heat.size, 1)) return internal::TooSmall("heat");
    std::uint64_t n = 0;
    const embank_status code = embank_scan_next_full(scan_.get(), to.keys.data, to.rows.data, 0,
                                                     to.state.data, 0, to.heat.data, cap, &n);
    return {code, n};
  }

 private:
  std::unique_ptr<embank_scan, internal::Closer> scan_;
  std::uint64_t row_bytes_;
  std::uint64_t state_floats_;
};

// A handle of a table, valid as long as its store; copies name the same table.
class Table {
 public:
  // The table that a C call has just made or found.
  static Result<Table> Of(embank_status code, embank_table* table) {
    Table made(table);
    if (code == EMBANK_OK) code = embank_table_get_info(table, &made.info_);
    return {code, made};
  }

  embank_table* get() const { return table_; }
  std::uint32_t dim() const { return info_.dim; }
  // Bytes of one row in the caller's array, and floats of its optimizer state.
  std::uint64_t row_bytes() const {
    return std::uint64_t{info_.dim} * (info_.value_type == EMBANK_F32 ? 4 : 2);
  }
  std::uint64_t state_floats() const {
    const std::uint64_t dim = info_.dim;
    const std::uint64_t floats[] = {0, 0, dim, 1, 2 * dim + 1, 2 * dim};  // by EMBANK_OPT_*
    return info_.optimizer < 6 ? floats[info_.optimizer] : 0;
  }

  Status Lookup(Keys keys, Rows rows, std::int32_t missing = EMBANK_MISSING_CREATE,
                Outcomes outcomes = {}) {
    return Call({"rows", rows.size_bytes, row_bytes()}, embank_lookup, keys, outcomes, missing,
                rows.data, 0u);
  }
  Status Upsert(Keys keys, ConstRows rows, Outcomes outcomes = {}) {
    return Call({"rows", rows.size_bytes, row_bytes()}, embank_upsert, keys, outcomes, rows.data,
                0u);
  }
  // Writes whole rows. state empty: that of new rows; heat empty: kept, 0 for new rows.
  Status UpsertFull(Keys keys, ConstRows rows, View<const float> state,
                    View<const std::uint32_t> heat = {}, Outcomes outcomes = {}) {
    if (state.size != 0 && state_floats() != 0 && state.size / state_floats() < keys.size) {
      return internal::TooSmall("state");
    }
    if (heat.size != 0 && heat.size < keys.size) return internal::TooSmall("heat");
    return Call({"rows", rows.size_bytes, row_bytes()}, embank_upsert_full, keys, outcomes,
                rows.data, 0u, state.data, 0u, heat.data);
  }
  Status ApplyGradients(Keys keys, View<const float> gradients, Outcomes outcomes = {}) {
    return Call({"gradients", gradients.size, dim()}, embank_apply_gradients, keys, outcomes,
                gradients.data, 0u);
  }
  // The same with packed rows or gradients in device memory, as many as there are keys. Work behind
  // the call on the stream has them.
  Status LookupDevice(Keys keys, void* rows, std::int32_t missing = EMBANK_MISSING_CREATE,
                      Outcomes outcomes = {}, void* stream = nullptr) {
    return CallDevice(embank_lookup_device, keys, outcomes, stream, missing, rows);
  }
  Status UpsertDevice(Keys keys, const void* rows, Outcomes outcomes = {}, void* stream = nullptr) {
    return CallDevice(embank_upsert_device, keys, outcomes, stream, rows);
  }
  Status ApplyGradientsDevice(Keys keys, const float* gradients, Outcomes outcomes = {},
                              void* stream = nullptr) {
    return CallDevice(embank_apply_gradients_device, keys, outcomes, stream, gradients);
  }
  Status Erase(Keys keys, Outcomes outcomes = {}) { return Call({}, embank_erase, keys, outcomes); }
  Status Contains(Keys keys, Outcomes outcomes) {
    return Call({}, embank_contains, keys, outcomes);
  }
  // A hint: promotes the rows to memory, for a lookup that comes soon.
  Status Prefetch(Keys keys) { return Status::Of(embank_prefetch(table_, keys.data, keys.size)); }
  Status GetState(Keys keys, View<float> state, Outcomes outcomes = {}) {
    return Call({"state", state.size, state_floats()}, embank_get_state, keys, outcomes, state.data,
                0u);
  }
  Status SetState(Keys keys, View<const float> state, Outcomes outcomes = {}) {
    return Call({"state", state.size, state_floats()}, embank_set_state, keys, outcomes, state.data,
                0u);
  }
  Status GetHeat(Keys keys, View<std::uint32_t> heat, Outcomes outcomes = {}) {
    return Call({"heat", heat.size, 1}, embank_get_heat, keys, outcomes, heat.data);
  }
  Status SetLearningRate(float learning_rate) {
    return Status::Of(embank_set_learning_rate(table_, learning_rate));
  }
  // Returns the options of the table as they are now.
  Result<TableOptions> Options() const {
    TableOptions options;
    const embank_status code = embank_table_get_options(table_, &options);
    return {code, options};
  }
  // Changes the fields that `fields`, a sum of EMBANK_SET_*, names.
  Status SetOptions(const TableOptions& options, std::uint32_t fields) {
    return Status::Of(embank_table_set_options(table_, &options, fields));
  }
  // Returns facts about the table as it is now.
  Result<embank_table_info> Info() const {
    embank_table_info info = {};
    info.struct_size = sizeof(info);
    const embank_status code = embank_table_get_info(table_, &info);
    return {code, info};
  }
  Result<Scan> OpenScan() {
    embank_scan* scan = nullptr;
    const embank_status code = embank_scan_open(table_, &scan);
    return {code, Scan(scan, row_bytes(), state_floats())};
  }

 private:
  explicit Table(embank_table* table) : table_(table) { info_.struct_size = sizeof(info_); }

  // A buffer of the caller, and the bytes of it that each key uses.
  struct Buffer {
    const char* name = "";
    std::uint64_t size = 0, per_key = 0;
  };

  template <typename Function, typename... Arguments>
  Status Call(Buffer buffer, Function function, Keys keys, Outcomes outcomes,
              Arguments... arguments) {
    if (buffer.per_key != 0 && buffer.size / buffer.per_key < keys.size) {
      return internal::TooSmall(buffer.name);
    }
    if (outcomes.data != nullptr && outcomes.size < keys.size) {
      return internal::TooSmall("outcomes");
    }
    return Status::Of(function(table_, keys.data, keys.size, arguments..., outcomes.data));
  }

  template <typename Function, typename... Arguments>
  Status CallDevice(Function function, Keys keys, Outcomes outcomes, void* stream,
                    Arguments... arguments) {
    if (outcomes.data != nullptr && outcomes.size < keys.size) {
      return internal::TooSmall("outcomes");
    }
    return Status::Of(
        function(table_, keys.data, keys.size, arguments..., 0u, outcomes.data, stream));
  }

  embank_table* table_;
  embank_table_info info_ = {};
};

// An open store; closes itself.
class Store {
 public:
  static Result<Store> Open(const StoreOptions& options = StoreOptions()) {
    embank_store* store = nullptr;
    const embank_status code = embank_store_open(&options, &store);
    return {code, Store(store)};
  }
  embank_store* get() const { return store_.get(); }
  // Returns the options with which the store works. Their strings end with it.
  Result<embank_store_options> Options() const {
    embank_store_options options = {};
    options.struct_size = sizeof(options);
    const embank_status code = embank_store_get_options(get(), &options);
    return {code, options};
  }
  Result<Table> CreateTable(const char* name, const TableOptions& options) {
    embank_table* table = nullptr;
    const embank_status code = embank_table_create(get(), name, &options, &table);
    return Table::Of(code, table);
  }
  Result<Table> OpenTable(const char* name) {
    embank_table* table = nullptr;
    const embank_status code = embank_table_open(get(), name, &table);
    return Table::Of(code, table);
  }
  Status DropTable(const char* name) { return Status::Of(embank_table_drop(get(), name)); }
  Result<std::string> TableNames() { return internal::ReadString(embank_table_names, get()); }
  // Returns the checkpoint's number.
  Result<std::uint64_t> Checkpoint(View<const char> blob = {}) {
    std::uint64_t sequence = 0;
    const embank_status code = embank_checkpoint(get(), blob.data, blob.size, &sequence);
    return {code, sequence};
  }
  // Starts a checkpoint; FinishCheckpoint waits for its end, and returns its number.
  Status StartCheckpoint(View<const char> blob = {}) {
    return Status::Of(embank_checkpoint_start(get(), blob.data, blob.size));
  }
  Result<std::uint64_t> FinishCheckpoint() {
    std::uint64_t sequence = 0;
    const embank_status code = embank_checkpoint_finish(get(), &sequence);
    return {code, sequence};
  }
  Result<std::string> CheckpointBlob() {
    std::uint64_t needed = 0;
    std::string blob;
    embank_status code = embank_checkpoint_blob(get(), nullptr, 0, &needed);
    while (code == EMBANK_OK && needed > blob.size()) {
      blob.resize(needed);
      code = embank_checkpoint_blob(get(), blob.data(), blob.size(), &needed);
      if (code == EMBANK_RESOURCE_EXHAUSTED && needed > blob.size()) code = EMBANK_OK;
    }
    blob.resize(needed);
    return {code, blob};
  }
  // Describes the last checkpoint.
  Result<embank_checkpoint_info> CheckpointInfo() const {
    embank_checkpoint_info info = {};
    info.struct_size = sizeof(info);
    const embank_status code = embank_get_checkpoint_info(get(), &info);
    return {code, info};
  }
  Status Export(const char* directory, embank_progress progress = nullptr, void* user = nullptr) {
    return Status::Of(embank_export(get(), directory, progress, user));
  }
  // Makes device memory, which FreeDevice or the end of the store frees.
  Result<void*> AllocateDevice(std::uint64_t bytes) {
    void* memory = nullptr;
    const embank_status code = embank_device_allocate(get(), bytes, &memory);
    return {code, memory};
  }
  Status FreeDevice(void* memory) { return Status::Of(embank_device_free(get(), memory)); }
  Status CopyDevice(void* to, const void* from, std::uint64_t bytes, void* stream = nullptr) {
    return Status::Of(embank_device_copy(get(), to, from, bytes, stream));
  }
  Result<std::string> Metrics() { return internal::ReadString(embank_metrics, get()); }
  Result<std::string> MemoryReport() { return internal::ReadString(embank_memory_report, get()); }

 private:
  explicit Store(embank_store* store) : store_(store) {}

  std::unique_ptr<embank_store, internal::Closer> store_;
};

// Packed calls. outcomes: one for each key of all features, or none.
using Features = View<const embank_feature>;

inline Status LookupPacked(Features features, std::int32_t missing = EMBANK_MISSING_CREATE,
                           Outcomes outcomes = {}) {
  return Status::Of(embank_lookup_packed(features.data, features.size, missing, outcomes.data));
}
inline Status ApplyGradientsPacked(Features features, Outcomes outcomes = {}) {
  return Status::Of(embank_apply_gradients_packed(features.data, features.size, outcomes.data));
}
inline Status PrefetchPacked(Features features) {
  return Status::Of(embank_prefetch_packed(features.data, features.size));
}
// The same with rows or gradients in device memory. Work behind the call on the stream has them.
inline Status LookupPackedDevice(Features features, std::int32_t missing = EMBANK_MISSING_CREATE,
                                 Outcomes outcomes = {}, void* stream = nullptr) {
  return Status::Of(
      embank_lookup_packed_device(features.data, features.size, missing, outcomes.data, stream));
}
inline Status ApplyGradientsPackedDevice(Features features, Outcomes outcomes = {},
                                         void* stream = nullptr) {
  return Status::Of(
      embank_apply_gradients_packed_device(features.data, features.size, outcomes.data, stream));
}

// Returns the JSON report of embank_verify. The report of a damaged store is a value, too.
inline Result<std::string> Verify(const char* directory, embank_progress progress = nullptr,
                                  void* user = nullptr) {
  std::uint64_t needed = std::uint64_t{1} << 16;
  std::string report;
  embank_status code = EMBANK_RESOURCE_EXHAUSTED;
  while (code == EMBANK_RESOURCE_EXHAUSTED && needed > report.size()) {
    report.resize(needed);
    code = embank_verify(directory, progress, user, report.data(), report.size(), &needed);
  }
  if (code != EMBANK_OK && code != EMBANK_DATA_LOSS) return Status::Of(code);
  return report.substr(0, needed - 1);
}

// Returns the rank, of `ranks`, that owns each key of a table of this name.
inline Result<std::vector<std::uint32_t>> OwnersOf(const char* table_name, Keys keys,
                                                   std::uint32_t ranks) {
  std::vector<std::uint32_t> owners(keys.size);
  const embank_status code =
      embank_owner_of(table_name, keys.data, keys.size, ranks, owners.data());
  return {code, std::move(owners)};
}

// Returns, as JSON, the memory that a store with these tables needs; rows[i] belongs to tables[i].
inline Result<std::string> Estimate(const StoreOptions& options,
                                    const std::vector<embank_table_options>& tables,
                                    const std::vector<std::uint64_t>& rows) {
  if (tables.size() != rows.size()) {
    return Status{EMBANK_INVALID_ARGUMENT, "rows: one count per table"};
  }
  return internal::ReadString(embank_estimate, &options, tables.data(), rows.data(),
                              static_cast<std::uint32_t>(tables.size()));
}

// Does the same for a store with a path, in which a share of the lookups finds its row in DRAM.
inline Result<std::string> EstimateForHitRatio(const StoreOptions& options,
                                               const std::vector<embank_table_options>& tables,
                                               const std::vector<std::uint64_t>& rows,
                                               double zipf_exponent, double hit_ratio) {
  if (tables.size() != rows.size()) {
    return Status{EMBANK_INVALID_ARGUMENT, "rows: one count per table"};
  }
  return internal::ReadString(embank_estimate_for_hit_ratio, &options, tables.data(), rows.data(),
                              static_cast<std::uint32_t>(tables.size()), zipf_exponent, hit_ratio);
}

}  // namespace embank::api

#endif  // EMBANK_HPP_
