#include "bench/table_options.h"

#include <cstdint>

namespace embank {

embank_table_options MakeTableOptions(const TableShape& shape) {
  embank_table_options options;
  embank_table_options_init(&options, sizeof(options));
  options.dim = shape.dim;
  options.value_type = static_cast<int32_t>(shape.value_type);
  options.optimizer = static_cast<int32_t>(shape.optimizer);
  options.initializer = EMBANK_INIT_UNIFORM;
  options.init_a = -0.05f;
  options.init_b = 0.05f;
  options.expected_rows_log2 = ExpectedRowsLog2(shape.expected_rows);
  options.initial_accumulator = 0.1f;  // not 0: a state that was never written must show
  return options;
}

}  // namespace embank
