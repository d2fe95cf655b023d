// Counts how often each event happened in a randomised suite, and prints it at its end. A zero is a
// failure, because a suite that never met a case has not tested it.
#ifndef EMBANK_TESTS_SUPPORT_EVENTS_H_
#define EMBANK_TESTS_SUPPORT_EVENTS_H_

#include <cstdint>
#include <map>
#include <string>

namespace embank::test {

class Events {
 public:
  // Promises that `name` will happen.
  void Expect(const std::string& name) { counts_[name] += 0; }
  void Count(const std::string& name, uint64_t times = 1) {
    if (times > 0) counts_[name] += times;
  }
  void Add(const Events& other) {
    for (const auto& [name, times] : other.counts_) counts_[name] += times;
  }

  uint64_t Times(const std::string& name) const {
    const auto found = counts_.find(name);
    return found == counts_.end() ? 0 : found->second;
  }

  // One line per event.
  std::string Table() const {
    std::string table;
    for (const auto& [name, times] : counts_) {
      table += "  " + name + std::string(name.size() < 34 ? 34 - name.size() : 1, ' ') +
               std::to_string(times) + "\n";
    }
    return table;
  }
  // Names of the events that never happened; empty is good.
  std::string Missing() const {
    std::string missing;
    for (const auto& [name, times] : counts_) {
      if (times == 0) missing += (missing.empty() ? "" : ", ") + name;
    }
    return missing;
  }

 private:
  std::map<std::string, uint64_t> counts_;
};

}  // namespace embank::test

#endif  // EMBANK_TESTS_SUPPORT_EVENTS_H_
