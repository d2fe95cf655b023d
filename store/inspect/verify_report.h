// A report of the verification of a store's files (store/inspect/verify.h).
#ifndef EMBANK_STORE_INSPECT_VERIFY_REPORT_H_
#define EMBANK_STORE_INSPECT_VERIFY_REPORT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "base/types.h"

namespace embank {

enum class DamagedPart : uint32_t { kManifest, kFile, kHeader, kFooter, kRecords, kHeat };

// Rows of one table in one checkpoint that a damage costs.
struct LostRows {
  uint32_t checkpoint;
  std::string table;  // empty: the keys are unknown
  uint64_t rows = 0;
  std::vector<Key> keys = {};  // the known ones, at most kKeysOfDamageMax
};

inline constexpr uint32_t kKeysOfDamageMax = 64;
inline constexpr uint64_t kDamageToldMax = 10'000;
inline constexpr uint64_t kFilesToldMax = 1'000;

// A part of a file that is not as it was written, or does not agree with the file that names it.
struct Damage {
  std::string file;  // in the store's directory
  DamagedPart part;
  std::string what;
  // Slots of damaged records, from the first on, at most kKeysOfDamageMax.
  uint32_t first_slot = 0;
  uint32_t slots = 0;
  std::vector<LostRows> lost = {};  // empty: the damage costs no row
};

struct VerifiedTable {
  std::string name;
  uint64_t rows = 0;  // known to be the table's
  uint64_t rows_lost = 0;
};

struct VerifiedCheckpoint {
  uint32_t checkpoint;
  bool is_newest;
  bool opens;        // whether a store can be opened as this checkpoint
  bool is_readable;  // whether there is a manifest; if not, nothing below is known
  uint64_t segments = 0;
  uint64_t rows = 0;
  uint64_t rows_lost = 0;
  std::vector<VerifiedTable> tables = {};
};

struct NamedFiles {
  uint64_t count = 0;
  std::vector<std::string> names = {};  // the first kFilesToldMax of them
};

struct VerifyReport {
  std::string directory;
  std::vector<VerifiedCheckpoint> checkpoints = {};  // the newest first
  uint64_t damage_count = 0;
  std::vector<Damage> damage = {};  // the first kDamageToldMax, by file and place
  // Files that no checkpoint has; the next opening removes them. They are no damage.
  NamedFiles orphans = {};
  // Segments that an unreadable manifest may have.
  NamedFiles undecided = {};
  uint64_t segments = 0;
  uint64_t read_bytes = 0;  // of segments

  bool clean() const { return damage_count == 0; }
};

// "manifest", "file", "header", "footer", "records", "heat".
const char* PartName(DamagedPart part);

// Returns the report as JSON; docs/verify.md lists the fields.
std::string FormatVerifyReport(const VerifyReport& report);

}  // namespace embank

#endif  // EMBANK_STORE_INSPECT_VERIFY_REPORT_H_
