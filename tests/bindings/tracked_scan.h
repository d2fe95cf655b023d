// A scan that stays open while the table changes, with what it may and must show.
#ifndef EMBANK_TESTS_BINDINGS_TRACKED_SCAN_H_
#define EMBANK_TESTS_BINDINGS_TRACKED_SCAN_H_

#include <cstdint>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "tests/support/c_api.h"
#include "tests/support/events.h"
#include "tests/support/oracle.h"

namespace embank::test {

class TrackedScan {
 public:
  TrackedScan(embank_table* table, const oracle::Table& oracle);

  // Must hear of each batch that may have changed the rows of `keys`, after it.
  void Note(const oracle::Table& oracle, const std::vector<uint64_t>& keys);

  // Reads up to `cap` rows and judges them: "" when each is some version of its row since the open
  // and, at the end, every row that lived all along was shown exactly once.
  std::string Next(const oracle::Table& oracle, uint64_t cap, Events* events);

  // After a drop of the table: the scan must say so.
  std::string NextAfterDrop();

  bool ended() const { return ended_; }

 private:
  using Versions = std::vector<std::vector<uint8_t>>;

  std::string Judge(const oracle::Table& oracle, uint64_t key, const uint8_t* values);

  ScanPtr scan_;
  std::unordered_map<uint64_t, Versions> versions_;
  std::unordered_set<uint64_t> living_;  // since the open, without a gap
  std::unordered_map<uint64_t, uint64_t> times_seen_;
  bool ended_ = false;
};

}  // namespace embank::test

#endif  // EMBANK_TESTS_BINDINGS_TRACKED_SCAN_H_
