// The flat oracle: a plain model of a table. It is a map of rows, and applies the rules of
// docs/arithmetic.md and embank.h one position after the other. The store, with any tiers, threads
// and moves, must give the same bits.
#ifndef EMBANK_TESTS_SUPPORT_ORACLE_H_
#define EMBANK_TESTS_SUPPORT_ORACLE_H_

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "bindings/c/embank.h"

namespace embank::oracle {

struct Row {
  std::vector<uint8_t> values;  // dim values of the table's value type
  std::vector<float> state;
  uint32_t heat = 0;  // as of heat_epoch
  uint64_t heat_epoch = 0;
};

// The ageing of heat in one store: an epoch and the count towards the next.
struct HeatClock {
  uint64_t epoch = 0;
  uint64_t positions = 0;  // since the epoch began
  uint64_t rows = 0;       // of all tables
};

// One table. The verbs take what the C calls take and return the status that the C call should
// return for well-shaped arguments. `store_outcomes`, where it is given, is the store's answer to
// the same batch: an oracle has no budget, so where the store refused to create, it does too
// (an existing row stays FOUND, so a wrong refusal still shows). Not thread-safe.
class Table {
 public:
  // `store_clock` is shared by the tables of one store, and outlives them; nullptr: it is the only
  // table.
  Table(uint64_t store_seed, const std::string& name, const embank_table_options& options,
        HeatClock* store_clock = nullptr);

  embank_status Lookup(const uint64_t* keys, uint64_t n, int32_t missing, void* rows,
                       uint64_t row_stride, uint8_t* outcomes,
                       const uint8_t* store_outcomes = nullptr);
  embank_status Upsert(const uint64_t* keys, uint64_t n, const void* rows, uint64_t row_stride,
                       uint8_t* outcomes, const uint8_t* store_outcomes = nullptr);
  // `state`, `heat`: nullptr: that of a new row; kept, 0 for a new row.
  embank_status UpsertFull(const uint64_t* keys, uint64_t n, const void* rows, uint64_t row_stride,
                           const float* state, uint64_t state_stride, const uint32_t* heat,
                           uint8_t* outcomes, const uint8_t* store_outcomes = nullptr);
  embank_status ApplyGradients(const uint64_t* keys, uint64_t n, const float* gradients,
                               uint64_t row_stride, uint8_t* outcomes);
  embank_status Erase(const uint64_t* keys, uint64_t n, uint8_t* outcomes);
  embank_status Contains(const uint64_t* keys, uint64_t n, uint8_t* outcomes) const;
  embank_status GetState(const uint64_t* keys, uint64_t n, float* state, uint64_t row_stride,
                         uint8_t* outcomes) const;
  embank_status SetState(const uint64_t* keys, uint64_t n, const float* state, uint64_t row_stride,
                         uint8_t* outcomes);
  embank_status GetHeat(const uint64_t* keys, uint64_t n, uint32_t* heat, uint8_t* outcomes) const;
  // Erases everything, as a drop does.
  void Drop();
  // Takes the fields that `fields`, a sum of EMBANK_SET_*, names.
  void SetOptions(const embank_table_options& options, uint32_t fields);
  void SetLearningRate(float learning_rate) { options_.learning_rate = learning_rate; }

  // The row of a key as it is, or nullptr: a scan must return it.
  const Row* Find(uint64_t key) const;
  uint32_t Heat(const Row& row) const;
  const std::unordered_map<uint64_t, Row>& rows() const { return rows_; }

  // With all changes so far.
  const embank_table_options& options() const { return options_; }
  const std::string& name() const { return name_; }
  uint64_t row_bytes() const { return row_bytes_; }  // of the values of one row, packed
  uint64_t state_floats() const { return state_floats_; }
  // Keys of the last gradient batch that occurred more than 32 times.
  uint64_t long_sums() const { return long_sums_; }

 private:
  // Gradient positions of one key in a batch.
  using Positions = std::vector<uint64_t>;

  Row NewRow(uint64_t key) const;
  Row* Mutable(uint64_t key);
  HeatClock* clock() { return store_clock_ != nullptr ? store_clock_ : &own_clock_; }
  uint64_t HeatEpoch() const;
  Row* AddRow(uint64_t key, const Row& row);
  void CountHeat(Row* row);
  void AgeHeat();
  std::vector<float> SumOf(const Positions& positions, const uint8_t* gradients,
                           uint64_t stride) const;

  const uint64_t store_seed_;
  const std::string name_;
  const uint64_t table_hash_;
  embank_table_options options_;
  const uint64_t row_bytes_;
  const uint64_t state_floats_;

  std::unordered_map<uint64_t, Row> rows_;
  uint64_t gradient_calls_ = 0;
  HeatClock* store_clock_;
  HeatClock own_clock_;
  uint64_t long_sums_ = 0;
};

}  // namespace embank::oracle

#endif  // EMBANK_TESTS_SUPPORT_ORACLE_H_
