// A report of a repair: the rows that it saved, and those that it could not save
// (store/inspect/repair.h).
#ifndef EMBANK_STORE_INSPECT_REPAIR_REPORT_H_
#define EMBANK_STORE_INSPECT_REPAIR_REPORT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "base/types.h"

namespace embank {

// Rows of one table that could not be saved, of one file and for one reason.
struct RepairLoss {
  std::string file;   // in the source's directory
  std::string what;   // why
  std::string table;  // empty: the tables are unknown
  uint64_t rows = 0;
  std::vector<Key> keys = {};  // the known ones; at most kKeysOfLossMax, then another loss
};

inline constexpr uint64_t kKeysOfLossMax = 64;
inline constexpr uint64_t kLossesToldMax = 10'000;

struct RepairedTable {
  std::string name;
  uint64_t rows_saved = 0;
  uint64_t rows_lost = 0;  // known to be the table's
};

struct RepairReport {
  std::string directory;
  std::string target;
  uint32_t checkpoint = 0;  // the checkpoint that was saved
  bool is_newest = true;
  std::string newest_lost = {};  // why the newest one could not be saved; "": it could
  uint64_t rows_saved = 0;
  uint64_t rows_lost = 0;
  std::vector<RepairedTable> tables = {};
  uint64_t loss_count = 0;
  std::vector<RepairLoss> losses = {};  // the first kLossesToldMax, by segment
  std::string heat_lost = {};           // why; "": it was saved, or there was none
  uint64_t segments = 0;                // of the checkpoint
  uint64_t written_bytes = 0;

  // Whether the target has everything that the newest checkpoint had.
  bool is_whole() const { return newest_lost.empty() && rows_lost == 0 && heat_lost.empty(); }
};

// Returns the report as JSON; docs/verify.md lists the fields.
std::string FormatRepairReport(const RepairReport& report);

}  // namespace embank

#endif  // EMBANK_STORE_INSPECT_REPAIR_REPORT_H_
