#include "tests/bindings/tracked_scan.h"

#include <algorithm>

#include "tests/support/row_buffer.h"

namespace embank::test {

TrackedScan::TrackedScan(embank_table* table, const oracle::Table& oracle)
    : scan_(OpenScan(table)) {
  for (const auto& [key, row] : oracle.rows()) {
    versions_[key].push_back(row.values);
    living_.insert(key);
  }
}

void TrackedScan::Note(const oracle::Table& oracle, const std::vector<uint64_t>& keys) {
  for (uint64_t key : keys) {
    const oracle::Row* row = oracle.Find(key);
    if (row == nullptr) {
      living_.erase(key);
      continue;
    }
    Versions& versions = versions_[key];
    if (versions.empty() || versions.back() != row->values) versions.push_back(row->values);
  }
}

std::string TrackedScan::Next(const oracle::Table& oracle, uint64_t cap, Events* events) {
  std::vector<uint64_t> keys(cap);
  RowBuffer rows(cap, oracle.row_bytes());
  uint64_t n = 0;
  embank_status status = embank_scan_next(scan_.get(), keys.data(), rows.data(), 0, cap, &n);
  if (status != EMBANK_OK) return std::string("scan_next: ") + embank_last_error();
  if (n > cap) return "scan_next gave more rows than asked for";
  events->Count("scan rows while the table changes", n);
  for (uint64_t i = 0; i < n; ++i) {
    std::string wrong = Judge(oracle, keys[i], rows.row(i));
    if (!wrong.empty()) return wrong;
  }
  if (n > 0) return "";
  ended_ = true;
  for (uint64_t key : living_) {
    if (times_seen_[key] != 1) {
      return "key " + std::to_string(key) + " lived through a scan and was seen " +
             std::to_string(times_seen_[key]) + " times";
    }
  }
  return "";
}

std::string TrackedScan::NextAfterDrop() {
  uint64_t key = 1;
  uint64_t n = 99;
  uint8_t row[4096 * 4];
  ended_ = true;
  embank_status status = embank_scan_next(scan_.get(), &key, row, 0, 1, &n);
  if (status == EMBANK_FAILED_PRECONDITION && n == 99) return "";
  return "a scan of a dropped table answered " + std::string(embank_status_name(status));
}

std::string TrackedScan::Judge(const oracle::Table& oracle, uint64_t key, const uint8_t* values) {
  ++times_seen_[key];
  auto same = [&](const std::vector<uint8_t>& version) {
    return SameValues(version.data(), values, oracle.options().dim, oracle.options().value_type);
  };
  const Versions& versions = versions_[key];
  if (std::any_of(versions.begin(), versions.end(), same)) return "";
  return "a scan showed key " + std::to_string(key) + " with values that it never had";
}

}  // namespace embank::test
