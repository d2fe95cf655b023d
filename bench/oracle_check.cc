#include "bench/oracle_check.h"

#include <cstring>

#include "base/status_macros.h"
#include "base/str_cat.h"
#include "bench/c_store.h"

namespace embank {

Status OracleCheck::Lookup(KeySpan keys, const std::byte* rows, const uint8_t* outcomes) {
  EMBANK_RETURN_IF_ERROR(FollowLookup(keys));
  CompareOutcomes(keys, outcomes, "outcome of its lookup");
  for (uint64_t i = 0; i < keys.size(); ++i) {
    const uint64_t offset = i * vector_bytes();
    if (std::memcmp(rows + offset, expected_rows_.data() + offset, vector_bytes()) != 0) {
      Mismatch(keys[i], "looked-up row");
    }
  }
  figures_.answers_compared += keys.size();
  return OkStatus();
}

Status OracleCheck::Gradients(KeySpan keys, const float* gradients, const uint8_t* outcomes) {
  EMBANK_RETURN_IF_ERROR(FollowGradients(keys, gradients));
  CompareOutcomes(keys, outcomes, "outcome of its gradient");
  return OkStatus();
}

Status OracleCheck::FollowLookup(KeySpan keys) {
  expected_rows_.resize(keys.size() * vector_bytes());
  expected_outcomes_.resize(keys.size());
  return ToStatus(oracle_.Lookup(keys.data(), keys.size(), EMBANK_MISSING_CREATE,
                                 expected_rows_.data(), 0, expected_outcomes_.data()));
}

Status OracleCheck::FollowGradients(KeySpan keys, const float* gradients) {
  expected_outcomes_.resize(keys.size());
  return ToStatus(
      oracle_.ApplyGradients(keys.data(), keys.size(), gradients, 0, expected_outcomes_.data()));
}

void OracleCheck::Scanned(KeySpan keys, const std::byte* rows, const float* state,
                          const uint32_t* heat) {
  for (uint64_t i = 0; i < keys.size(); ++i) {
    CompareRow(keys[i], rows + i * vector_bytes(), state + i * state_floats(),
               heat == nullptr ? nullptr : heat + i);
  }
  figures_.rows_compared += keys.size();
}

void OracleCheck::EndScan() {
  for (const auto& [key, row] : oracle_.rows()) {
    if (!scanned_.contains(key)) Mismatch(key, "scan: it did not come");
  }
  scanned_.clear();
}

void OracleCheck::CompareOutcomes(KeySpan keys, const uint8_t* outcomes, const char* what) {
  for (uint64_t i = 0; i < keys.size(); ++i) {
    if (outcomes[i] != expected_outcomes_[i]) Mismatch(keys[i], what);
  }
}

void OracleCheck::CompareRow(Key key, const std::byte* row, const float* state,
                             const uint32_t* heat) {
  const oracle::Row* expected = oracle_.Find(key);
  if (expected == nullptr) return Mismatch(key, "scan: it should not exist");
  if (!scanned_.insert(key).second) return Mismatch(key, "scan: it came twice");
  if (std::memcmp(row, expected->values.data(), vector_bytes()) != 0) Mismatch(key, "scanned row");
  if (state_floats() > 0 &&
      std::memcmp(state, expected->state.data(), state_floats() * sizeof(float)) != 0) {
    Mismatch(key, "optimizer state");
  }
  if (heat != nullptr && *heat != oracle_.Heat(*expected)) Mismatch(key, "heat");
}

void OracleCheck::Mismatch(Key key, const std::string& what) {
  if (figures_.mismatches++ == 0) figures_.first_mismatch = StrCat("key ", key, ": ", what);
}

}  // namespace embank
