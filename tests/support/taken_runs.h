// The bytes of a simulated file that take space: those that were written or preallocated.
#ifndef EMBANK_TESTS_SUPPORT_TAKEN_RUNS_H_
#define EMBANK_TESTS_SUPPORT_TAKEN_RUNS_H_

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>

namespace embank::test {

class TakenRuns {
 public:
  void Add(uint64_t begin, uint64_t end) {
    if (begin >= end) return;
    auto run = runs_.upper_bound(begin);
    if (run != runs_.begin() && std::prev(run)->second >= begin) --run;
    while (run != runs_.end() && run->first <= end) {
      begin = std::min(begin, run->first);
      end = std::max(end, run->second);
      run = runs_.erase(run);
    }
    runs_[begin] = end;
  }
  void Cut(uint64_t length) {
    runs_.erase(runs_.lower_bound(length), runs_.end());
    if (runs_.empty()) return;
    uint64_t& end = std::prev(runs_.end())->second;
    end = std::min(end, length);
  }
  uint64_t bytes() const { return BytesIn(0, UINT64_MAX); }
  uint64_t BytesIn(uint64_t begin, uint64_t end) const {
    uint64_t bytes = 0;
    for (const auto& [from, to] : runs_) {
      bytes += std::clamp(to, begin, end) - std::clamp(from, begin, end);
    }
    return bytes;
  }

 private:
  std::map<uint64_t, uint64_t> runs_;  // the end of each by its begin
};

}  // namespace embank::test

#endif  // EMBANK_TESTS_SUPPORT_TAKEN_RUNS_H_
