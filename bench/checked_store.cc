#include "bench/checked_store.h"

#include <algorithm>
#include <span>

#include "base/crc32c.h"
#include "base/hash.h"
#include "base/random.h"
#include "base/status_macros.h"
#include "base/threads/clock.h"
#include "bench/table_options.h"

namespace embank {
namespace {

// Times calls of one verb.
template <typename Call>
Status Timed(VerbTiming* timing, uint64_t positions, const Call& call) {
  const uint64_t begin_ns = SteadyClock()->NowNs();
  const embank_status status = call();
  const uint64_t nanoseconds = SteadyClock()->NowNs() - begin_ns;
  timing->positions += positions;
  timing->nanoseconds += nanoseconds;
  timing->latency.Record(nanoseconds);
  return ToStatus(status);
}

}  // namespace

double VerbTiming::PositionsPerSecond() const {
  return nanoseconds == 0 ? 0.0
                          : static_cast<double>(positions) * 1e9 / static_cast<double>(nanoseconds);
}

float ReplayGradient(uint64_t key, uint64_t position, uint32_t i) {
  return CounterRandom(Mix(key ^ Mix(position))).UnitFloat(i) - 0.5f;
}

CheckedStore::CheckedStore(const TableShape& shape, uint64_t batch, uint64_t seed, bool keeps_heat)
    : shape_(shape),
      batch_(batch),
      keeps_heat_(keeps_heat),
      check_(seed, kTableName, MakeTableOptions(shape)),
      keys_(batch),
      rows_(batch * check_.vector_bytes()),
      gradients_(batch * shape.dim),
      state_(batch * check_.state_floats()),
      heat_(batch),
      outcomes_(batch) {}

Status CheckedStore::RunBatch(KeySpan keys) {
  EMBANK_RETURN_IF_ERROR(Timed(&lookup_, keys.size(), [&] {
    return embank_lookup(store_.table, keys.data(), keys.size(), EMBANK_MISSING_CREATE,
                         rows_.data(), 0, outcomes_.data());
  }));
  digest_ = ExtendCrc32c(digest_, std::span(rows_).first(keys.size() * check_.vector_bytes()));
  EMBANK_RETURN_IF_ERROR(check_.Lookup(keys, rows_.data(), outcomes_.data()));
  if (HasGradients()) {
    MakeGradients(keys);
    EMBANK_RETURN_IF_ERROR(Timed(&gradients_timing_, keys.size(), [&] {
      return embank_apply_gradients(store_.table, keys.data(), keys.size(), gradients_.data(), 0,
                                    outcomes_.data());
    }));
    EMBANK_RETURN_IF_ERROR(check_.Gradients(keys, gradients_.data(), outcomes_.data()));
  }
  positions_ += keys.size();
  return OkStatus();
}

StatusOr<RunSlice> CheckedStore::RunTimedBatch(KeySpan keys) {
  const uint64_t lookup_ns = lookup_.nanoseconds;
  const uint64_t gradients_ns = gradients_timing_.nanoseconds;
  EMBANK_RETURN_IF_ERROR(RunBatch(keys));
  RunSlice batch;
  batch.positions = keys.size();
  batch.lookup_ns = lookup_.nanoseconds - lookup_ns;
  batch.gradients_ns = gradients_timing_.nanoseconds - gradients_ns;
  return batch;
}

Status CheckedStore::Follow(KeySpan keys) {
  EMBANK_RETURN_IF_ERROR(check_.FollowLookup(keys));
  if (HasGradients()) {
    MakeGradients(keys);
    EMBANK_RETURN_IF_ERROR(check_.FollowGradients(keys, gradients_.data()));
  }
  positions_ += keys.size();
  return OkStatus();
}

void CheckedStore::MakeGradients(KeySpan keys) {
  for (uint64_t p = 0; p < keys.size(); ++p) {
    for (uint32_t i = 0; i < shape_.dim; ++i) {
      gradients_[p * shape_.dim + i] = ReplayGradient(keys[p], positions_ + p, i);
    }
  }
}

Status CheckedStore::Scan(FunctionRef<void(double)> progress) {
  embank_scan* opened = nullptr;
  EMBANK_RETURN_IF_ERROR(ToStatus(embank_scan_open(store_.table, &opened)));
  const ScanPointer scan(opened);
  uint64_t scanned = 0;
  for (;;) {
    uint64_t n = 0;
    EMBANK_RETURN_IF_ERROR(Timed(&scan_, 0, [&] {
      return embank_scan_next(scan.get(), keys_.data(), rows_.data(), 0, batch_, &n);
    }));
    if (n == 0) break;
    scan_.positions += n;
    scanned += n;
    EMBANK_RETURN_IF_ERROR(CompareScanned(KeySpan(keys_).first(n)));
    const auto rows = static_cast<double>(std::max<uint64_t>(1, check_.rows()));
    progress(static_cast<double>(scanned) / rows);
  }
  check_.EndScan();
  return OkStatus();
}

Status CheckedStore::CompareScanned(KeySpan keys) {
  if (check_.state_floats() > 0) {
    EMBANK_RETURN_IF_ERROR(ToStatus(embank_get_state(store_.table, keys.data(), keys.size(),
                                                     state_.data(), 0, outcomes_.data())));
  }
  if (keeps_heat_) {
    EMBANK_RETURN_IF_ERROR(ToStatus(
        embank_get_heat(store_.table, keys.data(), keys.size(), heat_.data(), outcomes_.data())));
  }
  check_.Scanned(keys, rows_.data(), state_.data(), keeps_heat_ ? heat_.data() : nullptr);
  return OkStatus();
}

}  // namespace embank
