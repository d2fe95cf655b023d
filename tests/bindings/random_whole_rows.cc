// The operations of a random run on rows with their states and heats.
#include <algorithm>
#include <cstring>
#include <unordered_set>

#include "tests/bindings/differences.h"
#include "tests/bindings/random_run.h"

namespace embank::test {
namespace {

constexpr uint64_t kHeatMax = 1048575;
constexpr uint64_t kScannedElementsMax = uint64_t{1} << 20;

// The arrays of one call of a scan, and which of them it wanted.
struct Shown {
  std::vector<uint64_t> keys;
  RowBuffer rows;
  RowBuffer states;
  std::vector<uint32_t> heats;
  bool has_rows = true;
  bool has_states = true;
  bool has_heats = true;
};

std::string RowDifference(const Shown& shown, uint64_t i, const oracle::Table& oracle) {
  const oracle::Row* const row = oracle.Find(shown.keys[i]);
  const std::string key = "a full scan showed key " + std::to_string(shown.keys[i]);
  if (row == nullptr) return key + ", which has no row";
  const embank_table_options& options = oracle.options();
  if (shown.has_rows &&
      !SameValues(shown.rows.row(i), row->values.data(), options.dim, options.value_type)) {
    return key + " with other values";
  }
  const auto* const state = reinterpret_cast<const uint8_t*>(row->state.data());
  if (shown.has_states && !SameValues(shown.states.row(i), state, row->state.size(), EMBANK_F32)) {
    return key + " with another state";
  }
  return "";
}

}  // namespace

RowBuffer RandomRun::RandomRows(const LiveTable& live, uint64_t n) {
  const embank_table_options& options = live.oracle->options();
  RowBuffer rows = Buffer(n, live.oracle->row_bytes());
  bool any_bits = random_.OneIn(16);  // NaNs and infinities are values like others
  uint64_t value_bytes = oracle::ValueBytes(options.value_type);
  for (uint64_t i = 0; i < n; ++i) {
    for (uint64_t j = 0; j < options.dim; ++j) {
      uint64_t bits = random_.Bits();
      oracle::StoreValue(random_.Signed(), options.value_type, rows.row(i) + j * value_bytes);
      if (any_bits) std::memcpy(rows.row(i) + j * value_bytes, &bits, value_bytes);
    }
  }
  return rows;
}

RowBuffer RandomRun::RandomStates(const LiveTable& live, uint64_t n) {
  const uint64_t floats = live.oracle->state_floats();
  RowBuffer states = Buffer(n, floats * sizeof(float));
  for (uint64_t i = 0; i < n; ++i) {
    for (uint64_t j = 0; j < floats; ++j) states.SetFloat(i, j, random_.Unit());
    if (live.oracle->options().optimizer != EMBANK_OPT_ADAM) continue;
    // Around 2^24 the step no longer grows; elsewhere any whole number is one.
    float step = random_.OneIn(8) ? 16777214.0f : 0.0f;
    states.SetFloat(i, floats - 1, step + static_cast<float>(random_.Below(3)));
  }
  return states;
}

std::string RandomRun::UpsertFull(LiveTable* live) {
  const uint64_t floats = live->oracle->state_floats();
  std::vector<uint64_t> keys = Keys(live->oracle->options().dim + floats);
  RowBuffer rows = RandomRows(*live, keys.size());
  RowBuffer states = RandomStates(*live, keys.size());
  const float* const state = floats > 0 && !random_.OneIn(3) ? states.floats() : nullptr;
  std::vector<uint32_t> heats(keys.size());
  const uint64_t heat_max = random_.OneIn(2) ? kHeatMax : 40;
  for (uint32_t& heat : heats) heat = static_cast<uint32_t>(random_.Between(0, heat_max));
  const uint32_t* const heat = random_.OneIn(3) ? nullptr : heats.data();
  Outcomes outcomes = MakeOutcomes(keys.size(), plan_.tight);
  const embank_status status =
      embank_upsert_full(live->table, keys.data(), keys.size(), rows.data(), rows.stride(), state,
                         states.stride(), heat, outcomes.store_pointer());
  const embank_status right = live->oracle->UpsertFull(
      keys.data(), keys.size(), rows.data(), rows.stride(), state, states.stride(), heat,
      outcomes.oracle_pointer(), plan_.tight ? outcomes.store.data() : nullptr);
  CountOutcomes("upsert full", outcomes);
  if (state != nullptr) events_->Count("states upserted", keys.size());
  if (heat != nullptr) events_->Count("heats upserted", keys.size());
  if (live->scan != nullptr) live->scan->Note(*live->oracle, keys);
  return FirstOf(
      {StatusDifference(status, right), OutcomesDifference(outcomes.store, outcomes.oracle, keys)});
}

// Each call wants other arrays. Nothing else uses the table meanwhile, so that the heat
// of a row, which may be approximate on disk, is that of embank_get_heat.
std::string RandomRun::ScanFull(LiveTable* live) {
  const oracle::Table& oracle = *live->oracle;
  const uint64_t floats = oracle.state_floats();
  const uint64_t rows_max = kScannedElementsMax / (oracle.options().dim + floats);
  const uint64_t cap = std::min(random_.Between(1, oracle.rows().size() + 7), rows_max);
  const ScanPtr scan = OpenScan(live->table);
  Shown shown = {.keys = std::vector<uint64_t>(cap),
                 .rows = Buffer(cap, oracle.row_bytes()),
                 .states = Buffer(cap, floats * sizeof(float)),
                 .heats = std::vector<uint32_t>(cap)};
  std::unordered_set<uint64_t> seen;
  uint64_t rows = 0;
  for (uint64_t n = 1; n > 0; rows += n) {
    const bool has_keys = !random_.OneIn(6);
    shown.has_rows = !random_.OneIn(4);
    shown.has_states = floats > 0 && !random_.OneIn(3);
    shown.has_heats = !random_.OneIn(3);
    const embank_status status = embank_scan_next_full(
        scan.get(), has_keys ? shown.keys.data() : nullptr,
        shown.has_rows ? shown.rows.data() : nullptr, shown.rows.stride(),
        shown.has_states ? shown.states.floats() : nullptr, shown.states.stride(),
        shown.has_heats ? shown.heats.data() : nullptr, cap, &n);
    if (status != EMBANK_OK) return embank_last_error();
    events_->Count("rows of full scans", n);
    if (!has_keys || n == 0) continue;
    if (shown.has_states) events_->Count("states of full scans", n);
    std::vector<uint32_t> heats(n);
    embank_get_heat(live->table, shown.keys.data(), n, heats.data(), nullptr);
    if (shown.has_heats) events_->Count("heats of full scans", n);
    for (uint64_t i = 0; i < n; ++i) {
      if (!seen.insert(shown.keys[i]).second) {
        return "a full scan showed key " + std::to_string(shown.keys[i]) + " twice";
      }
      std::string wrong = RowDifference(shown, i, oracle);
      if (!wrong.empty()) return wrong;
      if (shown.has_heats && shown.heats[i] != heats[i]) {
        return "a full scan showed key " + std::to_string(shown.keys[i]) + " with heat " +
               std::to_string(shown.heats[i]) + " and not " + std::to_string(heats[i]);
      }
    }
  }
  if (rows == oracle.rows().size()) return "";
  return "a full scan showed " + std::to_string(rows) + " rows and not " +
         std::to_string(oracle.rows().size());
}

}  // namespace embank::test
