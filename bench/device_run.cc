#include "bench/device_run.h"

#include <algorithm>
#include <atomic>
#include <numeric>
#include <utility>

#include "base/random.h"
#include "base/status_macros.h"
#include "base/str_cat.h"
#include "base/threads/clock.h"
#include "bench/c_store.h"
#include "bench/kv_samples.h"
#include "bench/link_model.h"
#include "bench/table_options.h"
#include "gpu/device.h"
#include "store/store.h"

namespace embank {
namespace {

constexpr uint64_t kFillKeys = 8192;
constexpr uint64_t kWarmUps = 4;     // lookups of each HBM row, so that it is hotter than others
constexpr uint64_t kBatchesMin = 8;  // different batches of a case
constexpr uint64_t kPageBytes = 64 << 10;
constexpr float kGradient = 1e-4f;

// Ids in a random order, in which they come again and again.
class IdCycle {
 public:
  IdCycle(uint64_t begin, uint64_t end, uint64_t seed) : ids_(end - begin) {
    std::iota(ids_.begin(), ids_.end(), begin);
    const CounterRandom random(seed);
    for (uint64_t i = ids_.size(); i > 1; --i) std::swap(ids_[i - 1], ids_[random.Bits(i) % i]);
  }
  void Append(uint64_t count, std::vector<uint64_t>* keys) {
    for (uint64_t i = 0; i < count; ++i) keys->push_back(ids_[next_++ % ids_.size()]);
  }

 private:
  std::vector<uint64_t> ids_;
  uint64_t next_ = 0;
};

// A clock on which only a link takes time: whoever waits for the link moves it, by reading it. The
// twin reads it once for each transfer, too.
class LinkClock final : public Clock {
 public:
  uint64_t NowNs() const override { return now_ns_.fetch_add(kTickNs); }

 private:
  static constexpr uint64_t kTickNs = 500;
  mutable std::atomic<uint64_t> now_ns_{0};
};

class DeviceBench {
 public:
  explicit DeviceBench(const DeviceOptions& options)
      : options_(options),
        vector_bytes_(uint64_t{options.dim} * sizeof(float)),
        hot_rows_(std::max<uint64_t>(
            options.batch,
            static_cast<uint64_t>(static_cast<double>(options.rows) * options.hbm_share))),
        host_rows_(options.batch * options.dim) {}
  ~DeviceBench() {
    if (rows_ != nullptr) embank_device_free(store_.store.get(), rows_);
    if (gradients_ != nullptr) embank_device_free(store_.store.get(), gradients_);
  }
  DeviceBench(const DeviceBench&) = delete;
  DeviceBench& operator=(const DeviceBench&) = delete;

  StatusOr<DeviceReport> Run(Progress* progress) {
    EMBANK_RETURN_IF_ERROR(Open());
    EMBANK_RETURN_IF_ERROR(Fill(progress));
    std::vector<std::vector<uint64_t>> keys;
    for (const double share : options_.hit_shares) keys.push_back(KeysOf(share));
    std::vector<Samples> samples(keys.size());
    for (uint32_t round = 0; round < options_.rounds; ++round) {
      for (size_t i = 0; i < keys.size(); ++i) {
        progress->Update(0.5 + 0.5 * round / options_.rounds,
                         StrCat("hits ", options_.hit_shares[i]));
        EMBANK_RETURN_IF_ERROR(Measure(keys[i], &samples[i]));
      }
    }
    DeviceReport report;
    EMBANK_ASSIGN_OR_RETURN(const std::string text, MetricsOf(store_));
    const bool is_twin = MetricIn(text, "embank_device_info{device=\"twin\"}").has_value();
    report.device = is_twin ? "twin" : "CUDA";
    report.hot_rows = hot_rows_;
    for (size_t i = 0; i < keys.size(); ++i) {
      if (HasLink()) {
        report.figures.push_back({.hit_share = options_.hit_shares[i],
                                  .batch = options_.batch,
                                  .lookup_us = Median(samples[i].lookup),
                                  .model_us = ModelUs(options_.hit_shares[i])});
        continue;
      }
      report.figures.push_back({.hit_share = options_.hit_shares[i],
                                .batch = options_.batch,
                                .lookup_us = Median(samples[i].lookup),
                                .gradients_us = Median(samples[i].gradients),
                                .host_lookup_us = Median(samples[i].host_lookup),
                                .host_gradients_us = Median(samples[i].host_gradients)});
    }
    return report;
  }

 private:
  bool HasLink() const { return options_.link_gbps > 0.0; }
  const Clock& clock() const { return HasLink() ? link_clock_ : *SteadyClock(); }

  double ModelUs(double hit_share) const {
    const LinkModel link = {.bytes_per_second = options_.link_gbps * 1e9,
                            .latency_seconds = options_.link_us * 1e-6,
                            .rows_per_batch = static_cast<double>(options_.batch),
                            .row_bytes = vector_bytes_};
    return link.BatchSeconds(hit_share) * 1e6;
  }

  // Microseconds of a call, one number for each round.
  struct Samples {
    std::vector<double> lookup;
    std::vector<double> gradients;
    std::vector<double> host_lookup;
    std::vector<double> host_gradients;
  };

  Status Open() {
    embank_store_options store;
    embank_store_options_init(&store, sizeof store);
    store.worker_threads = options_.threads;
    store.seed = options_.seed;
    // Adagrad has a state of the vector's size.
    const uint64_t row_bytes = (2 * vector_bytes_ + 15) / 16 * 16;
    const uint64_t page_rows = std::max<uint64_t>(1, kPageBytes / row_bytes);
    // A little more than the rows need, since a flush may leave the last pages empty.
    const uint64_t pages = hot_rows_ / page_rows * 102 / 100 + 2;
    store.hbm_bytes = pages * std::max(kPageBytes, row_bytes);
    store.cuda_device = options_.cuda_device;
    store.flush_iters = UINT32_MAX;
    StoreEnvironment environment;
    if (HasLink()) {
      environment.device =
          MakeTwin({.link_bytes_per_second = options_.link_gbps * 1e9,
                    .link_latency_ns = static_cast<uint64_t>(options_.link_us * 1e3),
                    .clock = &link_clock_});
    }
    EMBANK_ASSIGN_OR_RETURN(store_, OpenCStore(store, {.dim = options_.dim}, EMBANK_EVICT_CLOCK,
                                               EMBANK_FULL_REFUSE, std::move(environment)));
    EMBANK_RETURN_IF_ERROR(Allocate(&rows_));
    EMBANK_RETURN_IF_ERROR(Allocate(&gradients_));
    std::fill(host_rows_.begin(), host_rows_.end(), kGradient);
    return Copy(gradients_, host_rows_.data());
  }

  Status Allocate(float** memory) {
    void* allocated = nullptr;
    EMBANK_RETURN_IF_ERROR(ToStatus(
        embank_device_allocate(store_.store.get(), options_.batch * vector_bytes_, &allocated)));
    *memory = static_cast<float*>(allocated);
    return OkStatus();
  }

  Status Copy(void* to, const void* from) {
    return ToStatus(
        embank_device_copy(store_.store.get(), to, from, options_.batch * vector_bytes_, nullptr));
  }

  // Waits for the work that a call has enqueued.
  Status Wait() {
    return ToStatus(
        embank_device_copy(store_.store.get(), host_rows_.data(), rows_, sizeof(float), nullptr));
  }

  // Makes all rows, and brings the first ones to HBM.
  Status Fill(Progress* progress) {
    for (uint64_t first = 0; first < options_.rows; first += kFillKeys) {
      EMBANK_RETURN_IF_ERROR(LookUpRange(first, std::min(first + kFillKeys, options_.rows)));
      progress->Update(0.4 * static_cast<double>(first) / static_cast<double>(options_.rows),
                       "making rows");
    }
    for (uint64_t i = 0; i < kWarmUps; ++i) {
      for (uint64_t first = 0; first < hot_rows_; first += kFillKeys) {
        EMBANK_RETURN_IF_ERROR(LookUpRange(first, std::min(first + kFillKeys, hot_rows_)));
      }
    }
    EMBANK_RETURN_IF_ERROR(ToStatus(embank_flush_hot(store_.store.get())));
    embank_table_info info = {};
    info.struct_size = sizeof info;
    EMBANK_RETURN_IF_ERROR(ToStatus(embank_table_get_info(store_.table, &info)));
    if (info.rows_hbm >= hot_rows_) return OkStatus();
    return FailedPreconditionError(
        StrCat("HBM has ", info.rows_hbm, " rows, and ", hot_rows_, " should be there"));
  }

  Status LookUpRange(uint64_t begin, uint64_t end) {
    std::vector<uint64_t> keys(end - begin);
    std::iota(keys.begin(), keys.end(), begin);
    std::vector<float> rows(keys.size() * options_.dim);
    return ToStatus(embank_lookup(store_.table, keys.data(), keys.size(), EMBANK_MISSING_CREATE,
                                  rows.data(), 0, nullptr));
  }

  // Batches, one behind the other.
  std::vector<uint64_t> KeysOf(double hit_share) const {
    IdCycle hot(0, hot_rows_, options_.seed + 1);
    IdCycle cold(hot_rows_, options_.rows, options_.seed + 2);
    const auto hits = static_cast<uint64_t>(hit_share * static_cast<double>(options_.batch) + 0.5);
    const CounterRandom random(options_.seed + 3);
    std::vector<uint64_t> keys;
    uint64_t draw = 0;
    for (uint64_t batch = 0; batch < kBatchesMin; ++batch) {
      const size_t begin = keys.size();
      hot.Append(hits, &keys);
      cold.Append(options_.batch - hits, &keys);
      for (uint64_t i = options_.batch; i > 1; --i) {
        std::swap(keys[begin + i - 1], keys[begin + random.Bits(draw++) % i]);
      }
    }
    return keys;
  }

  Status Measure(const std::vector<uint64_t>& keys, Samples* samples) {
    const uint64_t n = options_.batch;
    embank_table* const table = store_.table;
    const auto lookup = [&](const uint64_t* batch) {
      return ToStatus(
          embank_lookup_device(table, batch, n, EMBANK_MISSING_SKIP, rows_, 0, nullptr, nullptr));
    };
    const auto gradients = [&](const uint64_t* batch) {
      return ToStatus(
          embank_apply_gradients_device(table, batch, n, gradients_, 0, nullptr, nullptr));
    };
    const auto host_lookup = [&](const uint64_t* batch) {
      EMBANK_RETURN_IF_ERROR(ToStatus(
          embank_lookup(table, batch, n, EMBANK_MISSING_SKIP, host_rows_.data(), 0, nullptr)));
      return Copy(rows_, host_rows_.data());
    };
    const auto host_gradients = [&](const uint64_t* batch) {
      EMBANK_RETURN_IF_ERROR(Copy(host_rows_.data(), gradients_));
      return ToStatus(embank_apply_gradients(table, batch, n, host_rows_.data(), 0, nullptr));
    };
    EMBANK_RETURN_IF_ERROR(Time(keys, &samples->lookup, lookup));
    if (HasLink()) return OkStatus();
    EMBANK_RETURN_IF_ERROR(Time(keys, &samples->gradients, gradients));
    EMBANK_RETURN_IF_ERROR(Time(keys, &samples->host_lookup, host_lookup));
    return Time(keys, &samples->host_gradients, host_gradients);
  }

  // Adds the mean time of calls that take options_.seconds together. The first batches warm up.
  template <typename Call>
  Status Time(const std::vector<uint64_t>& keys, std::vector<double>* samples, Call call) {
    uint64_t next = 0;
    const auto go = [&] { return call(keys.data() + next++ % kBatchesMin * options_.batch); };
    EMBANK_RETURN_IF_ERROR(go());
    EMBANK_RETURN_IF_ERROR(Wait());
    // Work of many calls does not pile up in front of the clock.
    const uint64_t calls_at_once = HasLink() ? 1 : kBatchesMin;
    const uint64_t begin_ns = clock().NowNs();
    uint64_t calls = 0;
    double seconds = 0.0;
    do {
      EMBANK_RETURN_IF_ERROR(go());
      if (++calls % calls_at_once == 0) EMBANK_RETURN_IF_ERROR(Wait());
      seconds = static_cast<double>(clock().NowNs() - begin_ns) * 1e-9;
    } while (seconds < options_.seconds || calls % kBatchesMin != 0);
    samples->push_back(seconds * 1e6 / static_cast<double>(calls));
    return OkStatus();
  }

  const DeviceOptions& options_;
  const uint64_t vector_bytes_;
  const uint64_t hot_rows_;
  std::vector<float> host_rows_;
  const LinkClock link_clock_;
  CStore store_;
  float* rows_ = nullptr;  // of the device
  float* gradients_ = nullptr;
};

}  // namespace

StatusOr<DeviceReport> RunDevice(const DeviceOptions& options, Progress* progress) {
  DeviceBench bench(options);
  return bench.Run(progress);
}

}  // namespace embank
