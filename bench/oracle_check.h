// Compares a store's answers with the oracle's answers to the same calls, bit for bit.
#ifndef EMBANK_BENCH_ORACLE_CHECK_H_
#define EMBANK_BENCH_ORACLE_CHECK_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "base/status.h"
#include "base/types.h"
#include "tests/support/oracle.h"

namespace embank {

// The figures of a comparison.
struct OracleFigures {
  uint64_t answers_compared = 0;  // rows and outcomes that lookups gave
  uint64_t rows_compared = 0;     // of scans: vector, state, and heat where it is compared
  uint64_t mismatches = 0;
  std::string first_mismatch;  // empty: none
};

// One thread. Every call brings a batch that the store has answered; differences are counted.
class OracleCheck {
 public:
  OracleCheck(uint64_t seed, const std::string& table_name, const embank_table_options& options)
      : oracle_(seed, table_name, options) {}

  // A creating lookup: packed rows and outcomes. A status is the oracle's own refusal.
  Status Lookup(KeySpan keys, const std::byte* rows, const uint8_t* outcomes);

  // A gradient batch, packed.
  Status Gradients(KeySpan keys, const float* gradients, const uint8_t* outcomes);

  // The same batches, through the oracle only.
  Status FollowLookup(KeySpan keys);
  Status FollowGradients(KeySpan keys, const float* gradients);

  // Rows of a scan, packed, with optimizer state (if there is any) and heat (or nullptr: not
  // compared).
  void Scanned(KeySpan keys, const std::byte* rows, const float* state, const uint32_t* heat);

  // The end of the scan: every row must have come. Another one may follow.
  void EndScan();

  // The number of rows that should exist.
  uint64_t rows() const { return oracle_.rows().size(); }
  uint64_t vector_bytes() const { return oracle_.row_bytes(); }
  uint64_t state_floats() const { return oracle_.state_floats(); }
  // Answers of lookups that were compared, and rows of the scan.
  uint64_t answers_compared() const { return figures_.answers_compared; }
  uint64_t rows_compared() const { return figures_.rows_compared; }
  uint64_t mismatches() const { return figures_.mismatches; }
  // "key K: what differs", or "".
  const std::string& first_mismatch() const { return figures_.first_mismatch; }
  const OracleFigures& figures() const { return figures_; }

 private:
  void CompareOutcomes(KeySpan keys, const uint8_t* outcomes, const char* what);
  void CompareRow(Key key, const std::byte* row, const float* state, const uint32_t* heat);
  void Mismatch(Key key, const std::string& what);

  oracle::Table oracle_;
  std::vector<std::byte> expected_rows_;    // of a batch
  std::vector<uint8_t> expected_outcomes_;  // of a batch
  absl::flat_hash_set<Key> scanned_;
  OracleFigures figures_;
};

}  // namespace embank

#endif  // EMBANK_BENCH_ORACLE_CHECK_H_
