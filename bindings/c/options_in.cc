#include "bindings/c/options_in.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "base/status_macros.h"
#include "base/str_cat.h"

namespace embank {
namespace {

// As long as the longest path that the system takes.
constexpr size_t kPathBytesMax = 4000;

// A larger size is no struct of a later version, but memory that was never filled.
constexpr uint32_t kStructBytesMax = 4096;

template <typename Options>
void InitStruct(const Options& defaults, Options* options, uint32_t struct_size) {
  if (options == nullptr || struct_size < sizeof(uint32_t)) return;
  Options filled = defaults;
  filled.struct_size = struct_size;
  auto* const bytes = reinterpret_cast<std::byte*>(options);
  const size_t known_bytes = std::min<size_t>(struct_size, sizeof(Options));
  std::memcpy(bytes, &filled, known_bytes);
  std::memset(bytes + known_bytes, 0, struct_size - known_bytes);
}

Status CheckStructSize(uint32_t struct_size) {
  const bool whole = struct_size % sizeof(uint32_t) == 0;
  if (struct_size > 0 && struct_size <= kStructBytesMax && whole) return OkStatus();
  return InvalidArgumentError(
      StrCat("struct_size is ", struct_size,
             "; it must be a multiple of 4 up to 4096: fill the struct with its _init function"));
}

// Converts a caller's struct of any version to this version's.
template <typename Options>
StatusOr<Options> ReadStruct(const Options& defaults, const Options* options) {
  const uint32_t struct_size = options->struct_size;
  EMBANK_RETURN_IF_ERROR(CheckStructSize(struct_size));
  const auto* const bytes = reinterpret_cast<const std::byte*>(options);
  for (size_t i = sizeof(Options); i < struct_size; ++i) {
    if (bytes[i] == std::byte{0}) continue;
    return UnimplementedError(
        StrCat("struct_size is ", struct_size, " and byte ", i,
               " is not zero: the caller uses an option that this version does not know (it knows ",
               sizeof(Options), " bytes)"));
  }
  Options read = defaults;
  std::memcpy(&read, bytes, std::min<size_t>(struct_size, sizeof(Options)));
  return read;
}

// The numbers of the C API are the library's: casts between them change nothing.
template <typename Enum>
constexpr bool Same(Enum ours, int32_t theirs) {
  return static_cast<int32_t>(ours) == theirs;
}
static_assert(Same(Outcome::kFound, EMBANK_ROW_FOUND));
static_assert(Same(Outcome::kCreated, EMBANK_ROW_CREATED));
static_assert(Same(Outcome::kAbsent, EMBANK_ROW_ABSENT));
static_assert(Same(Outcome::kRefused, EMBANK_ROW_REFUSED));
static_assert(Same(Outcome::kDataLoss, EMBANK_ROW_DATA_LOSS));
static_assert(Same(Outcome::kUnavailable, EMBANK_ROW_UNAVAILABLE));
static_assert(Same(Outcome::kNotFinite, EMBANK_ROW_NOT_FINITE));
static_assert(Same(ValueType::kF32, EMBANK_F32) && Same(ValueType::kF16, EMBANK_F16));
static_assert(Same(ValueType::kBf16, EMBANK_BF16));
static_assert(Same(Optimizer::kNone, EMBANK_OPT_NONE) && Same(Optimizer::kSgd, EMBANK_OPT_SGD));
static_assert(Same(Optimizer::kAdagrad, EMBANK_OPT_ADAGRAD));
static_assert(Same(Optimizer::kRowwiseAdagrad, EMBANK_OPT_ROWWISE_ADAGRAD));
static_assert(Same(Optimizer::kAdam, EMBANK_OPT_ADAM) && Same(Optimizer::kFtrl, EMBANK_OPT_FTRL));
static_assert(Same(InitializerKind::kZero, EMBANK_INIT_ZERO));
static_assert(Same(InitializerKind::kConstant, EMBANK_INIT_CONSTANT));
static_assert(Same(InitializerKind::kUniform, EMBANK_INIT_UNIFORM));
static_assert(Same(InitializerKind::kNormal, EMBANK_INIT_NORMAL));
static_assert(Same(MissingRule::kCreate, EMBANK_MISSING_CREATE));
static_assert(Same(MissingRule::kDefault, EMBANK_MISSING_DEFAULT));
static_assert(Same(MissingRule::kZero, EMBANK_MISSING_ZERO));
static_assert(Same(MissingRule::kSkip, EMBANK_MISSING_SKIP));
static_assert(Same(EvictionPolicy::kLru, EMBANK_EVICT_LRU));
static_assert(Same(EvictionPolicy::kClock, EMBANK_EVICT_CLOCK));
static_assert(Same(EvictionPolicy::kLfu, EMBANK_EVICT_LFU));
static_assert(Same(OnFull::kRefuse, EMBANK_FULL_REFUSE));
static_assert(Same(OnFull::kForget, EMBANK_FULL_FORGET));
static_assert(Same(Rounding::kNearest, EMBANK_ROUNDING_NEAREST));
static_assert(Same(Rounding::kStochastic, EMBANK_ROUNDING_STOCHASTIC));
static_assert(Same(StatusCode::kInvalidArgument, EMBANK_INVALID_ARGUMENT));
static_assert(Same(StatusCode::kNotFound, EMBANK_NOT_FOUND));
static_assert(Same(StatusCode::kAlreadyExists, EMBANK_ALREADY_EXISTS));
static_assert(Same(StatusCode::kResourceExhausted, EMBANK_RESOURCE_EXHAUSTED));
static_assert(Same(StatusCode::kFailedPrecondition, EMBANK_FAILED_PRECONDITION));
static_assert(Same(StatusCode::kOutOfRange, EMBANK_OUT_OF_RANGE));
static_assert(Same(StatusCode::kUnimplemented, EMBANK_UNIMPLEMENTED));
static_assert(Same(StatusCode::kInternal, EMBANK_INTERNAL));
static_assert(Same(StatusCode::kPermissionDenied, EMBANK_PERMISSION_DENIED));
static_assert(Same(StatusCode::kUnavailable, EMBANK_UNAVAILABLE));
static_assert(Same(StatusCode::kDataLoss, EMBANK_DATA_LOSS));

Status NotBuilt(bool asked, const char* what) {
  if (!asked) return OkStatus();
  return UnimplementedError(StrCat(what, " is not built yet in this version"));
}

Status CheckEnum(const char* field, int32_t value, int32_t last) {
  if (value >= 0 && value <= last) return OkStatus();
  return InvalidArgumentError(StrCat(field, " is ", value, "; it must be 0 to ", last));
}

Status CheckPath(const embank_store_options& o) {
  if ((o.flags & EMBANK_OPEN_READ_ONLY) != 0 && (o.flags & EMBANK_OPEN_CREATE) != 0) {
    return InvalidArgumentError("flags: READ_ONLY makes no store; leave CREATE out");
  }
  if (o.path == nullptr) {
    if ((o.flags & EMBANK_OPEN_PREVIOUS) != 0) {
      return InvalidArgumentError("flags: PREVIOUS needs a path");
    }
    if ((o.flags & EMBANK_OPEN_READ_ONLY) != 0) {
      return InvalidArgumentError("flags: READ_ONLY needs a path");
    }
    if (o.ssd_bytes == 0) return OkStatus();
    return InvalidArgumentError(
        StrCat("ssd_bytes is ", o.ssd_bytes, " without a path; it must be 0"));
  }
  EMBANK_RETURN_IF_ERROR(ValidatePath(o.path, "path"));
  return NotBuilt(o.durability == EMBANK_DURABLE_NONE, "durability: NONE with a path");
}

Status CheckStoreParts(const embank_store_options& o) {
  constexpr uint32_t kKnownFlags =
      EMBANK_OPEN_CREATE | EMBANK_OPEN_READ_ONLY | EMBANK_OPEN_PREVIOUS;
  if ((o.flags & ~kKnownFlags) != 0) {
    return InvalidArgumentError(
        StrCat("flags is ", o.flags, "; it must be a sum of EMBANK_OPEN_* (0 to 7)"));
  }
  if (o.reserved != 0 || o.reserved_2 != 0) {
    const bool is_first = o.reserved != 0;
    return InvalidArgumentError(StrCat(is_first ? "reserved is " : "reserved_2 is ",
                                       is_first ? o.reserved : o.reserved_2, "; it must be 0"));
  }
  if (o.cuda_device < -1) {
    return InvalidArgumentError(
        StrCat("cuda_device is ", o.cuda_device, "; it must be an ordinal or -1"));
  }
  EMBANK_RETURN_IF_ERROR(CheckEnum("durability", o.durability, EMBANK_DURABLE_NONE));
  EMBANK_RETURN_IF_ERROR(CheckPath(o));
  if (o.pmem_path != nullptr) EMBANK_RETURN_IF_ERROR(ValidatePath(o.pmem_path, "pmem_path"));
  return NotBuilt(o.durability == EMBANK_DURABLE_BATCH, "durability: EMBANK_DURABLE_BATCH");
}

UpdateRule RuleOf(const embank_table_options& o) {
  return {.learning_rate = o.learning_rate,
          .beta1 = o.beta1,
          .beta2 = o.beta2,
          .epsilon = o.epsilon,
          .weight_decay = o.weight_decay,
          .initial_accumulator = o.initial_accumulator,
          .decoupled_weight_decay = o.decoupled_weight_decay,
          .ftrl_l1 = o.ftrl_l1,
          .ftrl_l2 = o.ftrl_l2,
          .max_gradient_norm = o.max_gradient_norm,
          .max_gradient_value = o.max_gradient_value,
          .rounding = static_cast<Rounding>(o.rounding)};
}

void SetRule(const UpdateRule& rule, embank_table_options* options) {
  options->learning_rate = rule.learning_rate;
  options->beta1 = rule.beta1;
  options->beta2 = rule.beta2;
  options->epsilon = rule.epsilon;
  options->weight_decay = rule.weight_decay;
  options->initial_accumulator = rule.initial_accumulator;
  options->decoupled_weight_decay = rule.decoupled_weight_decay;
  options->ftrl_l1 = rule.ftrl_l1;
  options->ftrl_l2 = rule.ftrl_l2;
  options->max_gradient_norm = rule.max_gradient_norm;
  options->max_gradient_value = rule.max_gradient_value;
  options->rounding = static_cast<int32_t>(rule.rounding);
}

// Copies a struct, but for struct_size, to the bytes that the caller's has; further ones become 0.
template <typename Struct>
Status WriteStruct(const Struct& full, Struct* out) {
  const uint32_t struct_size = out->struct_size;
  EMBANK_RETURN_IF_ERROR(CheckStructSize(struct_size));
  auto* const bytes = reinterpret_cast<std::byte*>(out);
  const size_t known_bytes = std::min<size_t>(struct_size, sizeof full);
  std::memcpy(bytes + sizeof struct_size,
              reinterpret_cast<const std::byte*>(&full) + sizeof struct_size,
              known_bytes - sizeof struct_size);
  std::memset(bytes + known_bytes, 0, struct_size - known_bytes);
  return OkStatus();
}

}  // namespace

Status CheckSizeInArray(uint32_t struct_size, uint32_t first, const char* array) {
  if (struct_size == first) return OkStatus();
  return InvalidArgumentError(StrCat("struct_size is ", struct_size, "; that of ", array, "[0] is ",
                                     first, ", and all structs of an array have one size"));
}

// The fields of the first version have no defaults. In an array, the next struct follows, which has
// pointers.
StatusOr<embank_feature> ReadFeature(const embank_feature* feature) {
  constexpr uint32_t kFirstVersionBytes = 72;  // up to row_stride
  static_assert(kFirstVersionBytes == offsetof(embank_feature, key_type));
  const uint32_t struct_size = feature->struct_size;
  if (struct_size < kFirstVersionBytes || struct_size % alignof(embank_feature) != 0) {
    return InvalidArgumentError(StrCat("struct_size is ", struct_size, "; it must be at least ",
                                       kFirstVersionBytes, ", and a multiple of ",
                                       alignof(embank_feature)));
  }
  return ReadStruct(embank_feature{}, feature);
}

Status ValidatePath(const char* path, const char* argument) {
  const size_t bytes = strnlen(path, kPathBytesMax + 1);
  if (bytes > 0 && bytes <= kPathBytesMax) return OkStatus();
  return InvalidArgumentError(StrCat(argument, " has ", bytes == 0 ? "no" : "too many",
                                     " bytes; it must have 1 to ", kPathBytesMax));
}

embank_store_options DefaultStoreOptions() {
  embank_store_options options;
  std::memset(&options, 0, sizeof options);
  options.struct_size = sizeof options;
  options.cuda_device = -1;
  return options;
}

embank_table_options DefaultTableOptions() {
  embank_table_options options;
  std::memset(&options, 0, sizeof options);
  options.struct_size = sizeof options;
  SetRule({}, &options);
  options.eviction = EMBANK_EVICT_CLOCK;
  return options;
}

void InitOptions(embank_store_options* options, uint32_t struct_size) {
  InitStruct(DefaultStoreOptions(), options, struct_size);
}

void InitOptions(embank_table_options* options, uint32_t struct_size) {
  InitStruct(DefaultTableOptions(), options, struct_size);
}

StatusOr<StoreOptions> ReadOptions(const embank_store_options* options) {
  const embank_store_options defaults = DefaultStoreOptions();
  EMBANK_ASSIGN_OR_RETURN(const embank_store_options o,
                          ReadStruct(defaults, options == nullptr ? &defaults : options));
  EMBANK_RETURN_IF_ERROR(CheckStoreParts(o));
  const StoreOptions read{.dram_bytes = o.dram_bytes,
                          .worker_threads = o.worker_threads,
                          .pin_batches = o.pin_batches,
                          .seed = o.seed,
                          .path = o.path == nullptr ? "" : o.path,
                          .ssd_bytes = o.ssd_bytes,
                          .pmem_path = o.pmem_path == nullptr ? "" : o.pmem_path,
                          .pmem_bytes = o.pmem_bytes,
                          .hbm_bytes = o.hbm_bytes,
                          .cuda_device = o.cuda_device,
                          .warmup_iters = o.warmup_iters,
                          .flush_iters = o.flush_iters,
                          .may_create = (o.flags & EMBANK_OPEN_CREATE) != 0,
                          .previous = (o.flags & EMBANK_OPEN_PREVIOUS) != 0,
                          .read_only = (o.flags & EMBANK_OPEN_READ_ONLY) != 0};
  EMBANK_RETURN_IF_ERROR(Validate(read));
  return read;
}

StatusOr<TableOptions> ReadOptions(const embank_table_options* options) {
  if (options == nullptr) return InvalidArgumentError("options is NULL; dim has no default");
  EMBANK_ASSIGN_OR_RETURN(const embank_table_options o, ReadStruct(DefaultTableOptions(), options));
  TableOptions read;
  read.dim = o.dim;
  read.value_type = static_cast<ValueType>(o.value_type);
  read.optimizer = static_cast<Optimizer>(o.optimizer);
  read.rule = RuleOf(o);
  read.initializer = {
      .kind = static_cast<InitializerKind>(o.initializer), .a = o.init_a, .b = o.init_b};
  read.eviction = static_cast<EvictionPolicy>(o.eviction);
  read.on_full = static_cast<OnFull>(o.on_full);
  read.expected_rows_log2 = o.expected_rows_log2;
  EMBANK_RETURN_IF_ERROR(Validate(read));
  EMBANK_RETURN_IF_ERROR(NotBuilt(o.admission_count > 1, "admission_count above 1"));
  return read;
}

StatusOr<UpdateRule> ReadRule(const embank_table_options* options) {
  if (options == nullptr) return InvalidArgumentError("options is NULL");
  EMBANK_ASSIGN_OR_RETURN(const embank_table_options o, ReadStruct(DefaultTableOptions(), options));
  return RuleOf(o);
}

Status WriteOptions(const TableOptions& from, embank_table_options* options) {
  embank_table_options full = DefaultTableOptions();
  full.dim = from.dim;
  full.value_type = static_cast<int32_t>(from.value_type);
  full.optimizer = static_cast<int32_t>(from.optimizer);
  SetRule(from.rule, &full);
  full.initializer = static_cast<int32_t>(from.initializer.kind);
  full.init_a = from.initializer.a;
  full.init_b = from.initializer.b;
  full.eviction = static_cast<int32_t>(from.eviction);
  full.on_full = static_cast<int32_t>(from.on_full);
  full.expected_rows_log2 = from.expected_rows_log2;
  return WriteStruct(full, options);
}

Status WriteInfo(const embank_table_info& full, embank_table_info* info) {
  return WriteStruct(full, info);
}

Status WriteInfo(const embank_checkpoint_info& full, embank_checkpoint_info* info) {
  return WriteStruct(full, info);
}

Status WriteOptions(const embank_store_options& full, embank_store_options* options) {
  return WriteStruct(full, options);
}

}  // namespace embank
