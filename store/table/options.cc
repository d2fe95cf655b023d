#include "store/table/options.h"

#include <algorithm>
#include <cmath>
#include <thread>

#include "base/status_macros.h"
#include "base/str_cat.h"
#include "base/utf8.h"
#include "store/table/pins.h"
#include "tiers/dram/dram_tier.h"
#include "tiers/row/row_layout.h"

namespace embank {

const char* NameOf(Optimizer optimizer) {
  static constexpr const char* kNames[] = {"none", "sgd", "adagrad", "rowwise_adagrad",
                                           "adam", "ftrl"};
  return kNames[static_cast<int32_t>(optimizer)];
}

uint32_t WorkerThreads(const StoreOptions& options) {
  if (options.worker_threads != 0) return options.worker_threads;
  return std::clamp(std::thread::hardware_concurrency(), 1u, kWorkerThreadsMax);
}
namespace {

template <typename Value>
Status Invalid(const char* option, Value value, const char* limit) {
  return InvalidArgumentError(StrCat(option, " is ", value, "; it must be ", limit));
}

// Whether an enumerator is one of 0 .. last.
template <typename Enum>
Status ValidateEnum(const char* option, Enum value, Enum last, const char* limit) {
  const auto number = static_cast<int32_t>(value);
  if (number >= 0 && number <= static_cast<int32_t>(last)) return OkStatus();
  return Invalid(option, number, limit);
}

Status ValidateNonNegative(const char* option, float value) {
  if (std::isfinite(value) && value >= 0.0f) return OkStatus();
  return Invalid(option, value, "finite and at least 0");
}

// Options of one optimizer, or of all but one.
Status ValidatePenalties(Optimizer optimizer, const UpdateRule& rule) {
  EMBANK_RETURN_IF_ERROR(
      ValidateNonNegative("decoupled_weight_decay", rule.decoupled_weight_decay));
  EMBANK_RETURN_IF_ERROR(ValidateNonNegative("ftrl_l1", rule.ftrl_l1));
  EMBANK_RETURN_IF_ERROR(ValidateNonNegative("ftrl_l2", rule.ftrl_l2));
  const bool is_ftrl = optimizer == Optimizer::kFtrl;
  if (is_ftrl && rule.decoupled_weight_decay != 0.0f) {
    return Invalid("decoupled_weight_decay", rule.decoupled_weight_decay,
                   "0 for FTRL, which has ftrl_l2");
  }
  if (!is_ftrl && rule.ftrl_l1 != 0.0f) return Invalid("ftrl_l1", rule.ftrl_l1, "0 but for FTRL");
  if (!is_ftrl && rule.ftrl_l2 != 0.0f) return Invalid("ftrl_l2", rule.ftrl_l2, "0 but for FTRL");
  return OkStatus();
}

Status ValidateRule(const TableOptions& options) {
  const UpdateRule& rule = options.rule;
  EMBANK_RETURN_IF_ERROR(ValidateLearningRate(options.optimizer, rule.learning_rate));
  // The negations catch NaN as well.
  if (!(rule.beta1 >= 0.0f && rule.beta1 < 1.0f)) {
    return Invalid("beta1", rule.beta1, "at least 0 and below 1");
  }
  if (!(rule.beta2 >= 0.0f && rule.beta2 < 1.0f)) {
    return Invalid("beta2", rule.beta2, "at least 0 and below 1");
  }
  EMBANK_RETURN_IF_ERROR(ValidateNonNegative("epsilon", rule.epsilon));
  EMBANK_RETURN_IF_ERROR(ValidateNonNegative("weight_decay", rule.weight_decay));
  EMBANK_RETURN_IF_ERROR(ValidateNonNegative("initial_accumulator", rule.initial_accumulator));
  EMBANK_RETURN_IF_ERROR(ValidateNonNegative("max_gradient_norm", rule.max_gradient_norm));
  EMBANK_RETURN_IF_ERROR(ValidateNonNegative("max_gradient_value", rule.max_gradient_value));
  EMBANK_RETURN_IF_ERROR(ValidatePenalties(options.optimizer, rule));
  EMBANK_RETURN_IF_ERROR(ValidateEnum("rounding", rule.rounding, Rounding::kStochastic,
                                      "an EMBANK_ROUNDING_* (0 to 1)"));
  if (options.value_type == ValueType::kF32 && rule.rounding != Rounding::kNearest) {
    return Invalid("rounding", static_cast<int32_t>(rule.rounding),
                   "NEAREST (0) for EMBANK_F32, whose values are not rounded");
  }
  return OkStatus();
}

Status ValidateInitializer(const Initializer& initializer) {
  const float a = initializer.a;
  const float b = initializer.b;
  EMBANK_RETURN_IF_ERROR(ValidateEnum("initializer", initializer.kind, InitializerKind::kNormal,
                                      "an EMBANK_INIT_* (0 to 3)"));
  if (!std::isfinite(a)) return Invalid("init_a", a, "finite");
  if (!std::isfinite(b)) return Invalid("init_b", b, "finite");
  if (initializer.kind == InitializerKind::kUniform) {
    if (!(a < b)) return Invalid("init_b", b, "above init_a for a uniform initializer");
    if (!std::isfinite(b - a)) return Invalid("init_b", b, "at a finite distance from init_a");
  }
  if (initializer.kind == InitializerKind::kNormal && b < 0.0f) {
    return Invalid("init_b", b, "at least 0 for a normal initializer");
  }
  return OkStatus();
}

}  // namespace

Status Validate(const StoreOptions& options) {
  if (options.dram_bytes != 0 && options.dram_bytes < kDramBytesMin) {
    return Invalid("dram_bytes", options.dram_bytes, "0 (no limit) or at least 16777216 (16 MiB)");
  }
  if (options.dram_bytes > DramTier::kAddressBytesMax) {
    return Invalid("dram_bytes", options.dram_bytes, "at most 4398046511104 (4 TiB)");
  }
  if (options.worker_threads > kWorkerThreadsMax) {
    return Invalid("worker_threads", options.worker_threads, "at most 1024");
  }
  if (options.hbm_bytes != 0 && options.hbm_bytes < kHbmBytesMin) {
    return Invalid("hbm_bytes", options.hbm_bytes,
                   "0, or at least 65536 (64 KiB), which hold one row of any size");
  }
  if (options.warmup_iters != 0 && options.hbm_bytes == 0) {
    return Invalid("warmup_iters", options.warmup_iters, "0 without hbm_bytes");
  }
  if (options.flush_iters != 0 && options.hbm_bytes == 0) {
    return Invalid("flush_iters", options.flush_iters, "0 without hbm_bytes");
  }
  if (options.pin_batches > Pins::kBatchesMax) {
    return Invalid("pin_batches", options.pin_batches,
                   StrCat("0 (", Pins::kBatches, ") or at most ", Pins::kBatchesMax).c_str());
  }
  if (options.cuda_device >= 0 && options.hbm_bytes == 0) {
    return Invalid("cuda_device", options.cuda_device, "-1 without hbm_bytes");
  }
  if (options.pmem_path.empty() && options.pmem_bytes != 0) {
    return Invalid("pmem_bytes", options.pmem_bytes, "0 without a pmem_path");
  }
  if (options.pmem_path.empty()) return OkStatus();
  if (options.path.empty()) {
    return InvalidArgumentError(
        "pmem_path: a store in PMem needs a path, for what PMem cannot hold");
  }
  if (options.pmem_bytes < kPmemBytesMin && !options.read_only) {
    return Invalid("pmem_bytes", options.pmem_bytes, "at least 4194304 (4 MiB) with a pmem_path");
  }
  return OkStatus();
}

Status Validate(const TableOptions& options) {
  if (options.dim < 1 || options.dim > kDimMax) return Invalid("dim", options.dim, "1 to 4096");
  EMBANK_RETURN_IF_ERROR(ValidateEnum("value_type", options.value_type, ValueType::kBf16,
                                      "EMBANK_F32, EMBANK_F16 or EMBANK_BF16 (0 to 2)"));
  EMBANK_RETURN_IF_ERROR(
      ValidateEnum("optimizer", options.optimizer, Optimizer::kFtrl, "an EMBANK_OPT_* (0 to 5)"));
  EMBANK_RETURN_IF_ERROR(ValidateRule(options));
  EMBANK_RETURN_IF_ERROR(ValidateEnum("eviction", options.eviction, EvictionPolicy::kLfu,
                                      "an EMBANK_EVICT_* (0 to 2)"));
  EMBANK_RETURN_IF_ERROR(
      ValidateEnum("on_full", options.on_full, OnFull::kForget, "an EMBANK_FULL_* (0 to 1)"));
  if (options.expected_rows_log2 > kExpectedRowsLog2Max) {
    return Invalid("expected_rows_log2", options.expected_rows_log2, "0 (unknown) to 40");
  }
  return ValidateInitializer(options.initializer);
}

RowClass RowClassOf(const TableOptions& options) {
  return {.slot_bytes = MakeRowLayout(options.dim, options.value_type, options.optimizer).row_bytes,
          .eviction = options.eviction,
          .on_full = options.on_full};
}

Status ValidateTableName(std::string_view name) {
  if (name.empty() || name.size() > kTableNameBytesMax) {
    return InvalidArgumentError(StrCat("name has ", name.size(), " bytes; it must have 1 to 255"));
  }
  if (name.find_first_of("/\n") != std::string_view::npos) {
    return InvalidArgumentError("name contains '/' or a newline; it must not");
  }
  return OkStatus();
}

Status ValidateNewTableName(std::string_view name) {
  EMBANK_RETURN_IF_ERROR(ValidateTableName(name));
  const size_t wrong = FirstNotUtf8(name);
  if (wrong == name.size()) return OkStatus();
  return InvalidArgumentError(StrCat("name: byte 0x", Hex(static_cast<uint8_t>(name[wrong])),
                                     " at position ", wrong, " is no UTF-8; it must be"));
}

Status ValidateLearningRate(Optimizer optimizer, float learning_rate) {
  EMBANK_RETURN_IF_ERROR(ValidateNonNegative("learning_rate", learning_rate));
  if (optimizer == Optimizer::kFtrl && learning_rate == 0.0f) {
    return Invalid("learning_rate", learning_rate, "above 0 for FTRL, which divides by it");
  }
  return OkStatus();
}

}  // namespace embank
