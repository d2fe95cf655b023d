#include "tests/support/oracle.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "tests/support/oracle_numbers.h"
#include "tests/support/oracle_rules.h"

namespace embank::oracle {
namespace {

constexpr uint32_t kHeatMax = 1048575;
constexpr uint64_t kHeatEpochPositionsMin = uint64_t{1} << 20;
constexpr uint64_t kHeatPositionsPerRow = 8;
constexpr uint64_t kRunLength = 32;

uint64_t StrideOr(uint64_t row_stride, uint64_t packed) {
  return row_stride == 0 ? packed : row_stride;
}

void Tell(uint8_t* outcomes, uint64_t i, uint8_t outcome) {
  if (outcomes != nullptr) outcomes[i] = outcome;
}

// Without outcomes the status must still report it.
embank_status Untold(const uint8_t* outcomes, bool happened, embank_status status) {
  return outcomes == nullptr && happened ? status : EMBANK_OK;
}

bool Refused(const uint8_t* store_outcomes, uint64_t i) {
  return store_outcomes != nullptr && store_outcomes[i] == EMBANK_ROW_REFUSED;
}

std::vector<float> FloatsAt(const uint8_t* bytes, uint64_t count) {
  std::vector<float> floats(count);
  if (count > 0) std::memcpy(floats.data(), bytes, count * sizeof(float));
  return floats;
}

void Add(const std::vector<float>& term, std::vector<float>* sum) {
  for (size_t j = 0; j < term.size(); ++j) (*sum)[j] = (*sum)[j] + term[j];
}

}  // namespace

Table::Table(uint64_t store_seed, const std::string& name, const embank_table_options& options,
             HeatClock* store_clock)
    : store_seed_(store_seed),
      name_(name),
      table_hash_(TableHash(name)),
      options_(options),
      row_bytes_(options.dim * ValueBytes(options.value_type)),
      state_floats_(StateFloats(options)),
      store_clock_(store_clock) {}

embank_status Table::Lookup(const uint64_t* keys, uint64_t n, int32_t missing, void* rows,
                            uint64_t row_stride, uint8_t* outcomes, const uint8_t* store_outcomes) {
  bool refused = false;
  for (uint64_t i = 0; i < n; ++i) {
    uint8_t* out = static_cast<uint8_t*>(rows) + i * StrideOr(row_stride, row_bytes_);
    Row* row = Mutable(keys[i]);
    uint8_t outcome = EMBANK_ROW_FOUND;
    if (row == nullptr && missing == EMBANK_MISSING_CREATE && !Refused(store_outcomes, i)) {
      row = AddRow(keys[i], NewRow(keys[i]));
      outcome = EMBANK_ROW_CREATED;
    }
    if (row != nullptr) {
      std::memcpy(out, row->values.data(), row_bytes_);
      CountHeat(row);
    } else {
      outcome = missing == EMBANK_MISSING_CREATE ? EMBANK_ROW_REFUSED : EMBANK_ROW_ABSENT;
      refused = refused || missing == EMBANK_MISSING_CREATE;
      if (missing == EMBANK_MISSING_ZERO) std::memset(out, 0, row_bytes_);
      if (missing == EMBANK_MISSING_DEFAULT || missing == EMBANK_MISSING_CREATE) {
        std::memcpy(out, NewRow(keys[i]).values.data(), row_bytes_);
      }
    }
    Tell(outcomes, i, outcome);
  }
  AgeHeat();
  return Untold(outcomes, refused, EMBANK_RESOURCE_EXHAUSTED);
}

embank_status Table::Upsert(const uint64_t* keys, uint64_t n, const void* rows, uint64_t row_stride,
                            uint8_t* outcomes, const uint8_t* store_outcomes) {
  bool refused = false;
  for (uint64_t i = 0; i < n; ++i) {
    const uint8_t* in = static_cast<const uint8_t*>(rows) + i * StrideOr(row_stride, row_bytes_);
    bool exists = Mutable(keys[i]) != nullptr;
    if (!exists && Refused(store_outcomes, i)) {
      refused = true;
      Tell(outcomes, i, EMBANK_ROW_REFUSED);
      continue;
    }
    Row& row = exists ? *Mutable(keys[i]) : *AddRow(keys[i], NewRow(keys[i]));
    row.values.assign(in, in + row_bytes_);
    row.state = InitialState(options_, row.values);
    Tell(outcomes, i, exists ? EMBANK_ROW_FOUND : EMBANK_ROW_CREATED);
  }
  return Untold(outcomes, refused, EMBANK_RESOURCE_EXHAUSTED);
}

embank_status Table::UpsertFull(const uint64_t* keys, uint64_t n, const void* rows,
                                uint64_t row_stride, const float* state, uint64_t state_stride,
                                const uint32_t* heat, uint8_t* outcomes,
                                const uint8_t* store_outcomes) {
  if (state != nullptr && state_floats_ == 0) return EMBANK_FAILED_PRECONDITION;
  const embank_status status = Upsert(keys, n, rows, row_stride, outcomes, store_outcomes);
  const auto* states = reinterpret_cast<const uint8_t*>(state);
  for (uint64_t i = 0; i < n; ++i) {
    Row* row = Mutable(keys[i]);
    if (row == nullptr) continue;  // refused
    if (state != nullptr) {
      row->state = FloatsAt(states + i * StrideOr(state_stride, state_floats_ * sizeof(float)),
                            state_floats_);
    }
    if (heat == nullptr) continue;
    row->heat = heat[i];
    row->heat_epoch = HeatEpoch();
  }
  return status;
}

embank_status Table::ApplyGradients(const uint64_t* keys, uint64_t n, const float* gradients,
                                    uint64_t row_stride, uint8_t* outcomes) {
  if (options_.optimizer == EMBANK_OPT_NONE) return EMBANK_FAILED_PRECONDITION;
  uint64_t stride = StrideOr(row_stride, options_.dim * sizeof(float));
  const auto* bytes = reinterpret_cast<const uint8_t*>(gradients);
  std::unordered_map<uint64_t, Positions> positions_of_key;
  for (uint64_t i = 0; i < n; ++i) {
    for (float g : FloatsAt(bytes + i * stride, options_.dim)) {
      if (!std::isfinite(g)) return EMBANK_INVALID_ARGUMENT;
    }
    positions_of_key[keys[i]].push_back(i);
  }
  if (n > 0) ++gradient_calls_;
  long_sums_ = 0;
  bool absent = false;
  bool not_finite = false;
  for (const auto& [key, positions] : positions_of_key) {
    Row* row = Mutable(key);
    absent = absent || row == nullptr;
    uint8_t outcome = EMBANK_ROW_ABSENT;
    if (row != nullptr) {
      if (positions.size() > kRunLength) ++long_sums_;
      bool steps = Step(options_, RowSeed(store_seed_, table_hash_, key), gradient_calls_,
                        SumOf(positions, bytes, stride), &row->values, &row->state);
      not_finite = not_finite || !steps;
      outcome = steps ? EMBANK_ROW_FOUND : EMBANK_ROW_NOT_FINITE;
    }
    for (uint64_t i : positions) Tell(outcomes, i, outcome);
  }
  if (outcomes == nullptr && not_finite) return EMBANK_OUT_OF_RANGE;
  return Untold(outcomes, absent, EMBANK_NOT_FOUND);
}

void Table::SetOptions(const embank_table_options& options, uint32_t fields) {
  embank_table_options& now = options_;
  if ((fields & EMBANK_SET_LEARNING_RATE) != 0) now.learning_rate = options.learning_rate;
  if ((fields & EMBANK_SET_BETAS) != 0) now.beta1 = options.beta1;
  if ((fields & EMBANK_SET_BETAS) != 0) now.beta2 = options.beta2;
  if ((fields & EMBANK_SET_EPSILON) != 0) now.epsilon = options.epsilon;
  if ((fields & EMBANK_SET_WEIGHT_DECAY) != 0) {
    now.weight_decay = options.weight_decay;
    now.decoupled_weight_decay = options.decoupled_weight_decay;
  }
  if ((fields & EMBANK_SET_CLIPPING) != 0) now.max_gradient_norm = options.max_gradient_norm;
  if ((fields & EMBANK_SET_CLIPPING) != 0) now.max_gradient_value = options.max_gradient_value;
  if ((fields & EMBANK_SET_ROUNDING) != 0) now.rounding = options.rounding;
  if ((fields & EMBANK_SET_FTRL) != 0) now.ftrl_l1 = options.ftrl_l1;
  if ((fields & EMBANK_SET_FTRL) != 0) now.ftrl_l2 = options.ftrl_l2;
}

embank_status Table::Erase(const uint64_t* keys, uint64_t n, uint8_t* outcomes) {
  for (uint64_t i = 0; i < n; ++i) {
    bool erased = rows_.erase(keys[i]) == 1;
    if (erased) --clock()->rows;
    Tell(outcomes, i, erased ? EMBANK_ROW_FOUND : EMBANK_ROW_ABSENT);
  }
  return EMBANK_OK;
}

embank_status Table::Contains(const uint64_t* keys, uint64_t n, uint8_t* outcomes) const {
  for (uint64_t i = 0; i < n; ++i) {
    Tell(outcomes, i, Find(keys[i]) != nullptr ? EMBANK_ROW_FOUND : EMBANK_ROW_ABSENT);
  }
  return EMBANK_OK;
}

embank_status Table::GetState(const uint64_t* keys, uint64_t n, float* state, uint64_t row_stride,
                              uint8_t* outcomes) const {
  if (state_floats_ == 0) return EMBANK_FAILED_PRECONDITION;
  uint64_t state_bytes = state_floats_ * sizeof(float);
  bool absent = false;
  for (uint64_t i = 0; i < n; ++i) {
    uint8_t* out = reinterpret_cast<uint8_t*>(state) + i * StrideOr(row_stride, state_bytes);
    const Row* row = Find(keys[i]);
    absent = absent || row == nullptr;
    if (row != nullptr) std::memcpy(out, row->state.data(), state_bytes);
    Tell(outcomes, i, row != nullptr ? EMBANK_ROW_FOUND : EMBANK_ROW_ABSENT);
  }
  return Untold(outcomes, absent, EMBANK_NOT_FOUND);
}

embank_status Table::SetState(const uint64_t* keys, uint64_t n, const float* state,
                              uint64_t row_stride, uint8_t* outcomes) {
  if (state_floats_ == 0) return EMBANK_FAILED_PRECONDITION;
  uint64_t stride = StrideOr(row_stride, state_floats_ * sizeof(float));
  bool absent = false;
  for (uint64_t i = 0; i < n; ++i) {
    const uint8_t* in = reinterpret_cast<const uint8_t*>(state) + i * stride;
    Row* row = Mutable(keys[i]);
    absent = absent || row == nullptr;
    if (row != nullptr) row->state = FloatsAt(in, state_floats_);
    Tell(outcomes, i, row != nullptr ? EMBANK_ROW_FOUND : EMBANK_ROW_ABSENT);
  }
  return Untold(outcomes, absent, EMBANK_NOT_FOUND);
}

embank_status Table::GetHeat(const uint64_t* keys, uint64_t n, uint32_t* heat,
                             uint8_t* outcomes) const {
  for (uint64_t i = 0; i < n; ++i) {
    const Row* row = Find(keys[i]);
    heat[i] = row != nullptr ? Heat(*row) : 0;
    Tell(outcomes, i, row != nullptr ? EMBANK_ROW_FOUND : EMBANK_ROW_ABSENT);
  }
  return EMBANK_OK;
}

void Table::Drop() {
  clock()->rows -= rows_.size();
  rows_.clear();
}

const Row* Table::Find(uint64_t key) const {
  auto found = rows_.find(key);
  return found == rows_.end() ? nullptr : &found->second;
}

Row* Table::Mutable(uint64_t key) {
  auto found = rows_.find(key);
  return found == rows_.end() ? nullptr : &found->second;
}

uint64_t Table::HeatEpoch() const {
  return store_clock_ != nullptr ? store_clock_->epoch : own_clock_.epoch;
}

Row* Table::AddRow(uint64_t key, const Row& row) {
  ++clock()->rows;
  return &(rows_[key] = row);
}

uint32_t Table::Heat(const Row& row) const {
  uint64_t age = HeatEpoch() - row.heat_epoch;
  return age >= 20 ? 0 : row.heat >> age;
}

Row Table::NewRow(uint64_t key) const {
  Row row;
  row.values = InitialValues(options_, RowSeed(store_seed_, table_hash_, key));
  row.state = InitialState(options_, row.values);
  row.heat_epoch = HeatEpoch();
  return row;
}

void Table::CountHeat(Row* row) {
  row->heat = std::min(Heat(*row) + 1, kHeatMax);
  row->heat_epoch = HeatEpoch();
  ++clock()->positions;
}

void Table::AgeHeat() {
  if (clock()->positions < std::max(kHeatEpochPositionsMin, kHeatPositionsPerRow * clock()->rows)) {
    return;
  }
  ++clock()->epoch;
  clock()->positions = 0;
}

std::vector<float> Table::SumOf(const Positions& positions, const uint8_t* gradients,
                                uint64_t stride) const {
  std::vector<float> sum;
  for (size_t begin = 0; begin < positions.size(); begin += kRunLength) {
    size_t end = std::min<size_t>(begin + kRunLength, positions.size());
    const auto term = [&](size_t i) {
      return Clipped(options_, FloatsAt(gradients + positions[i] * stride, options_.dim));
    };
    std::vector<float> run = term(begin);
    for (size_t i = begin + 1; i < end; ++i) Add(term(i), &run);
    if (begin == 0) {
      sum = run;
    } else {
      Add(run, &sum);
    }
  }
  return sum;
}

}  // namespace embank::oracle
