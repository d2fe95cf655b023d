// The update rule of a table, which batches copy without a lock while a thread may replace it.
#ifndef EMBANK_STORE_TABLE_CURRENT_RULE_H_
#define EMBANK_STORE_TABLE_CURRENT_RULE_H_

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "base/threads/fence.h"
#include "base/threads/spin_wait.h"
#include "tiers/row/update_rule.h"

namespace embank {

class CurrentRule {
 public:
  explicit CurrentRule(const UpdateRule& rule) { Set(rule); }
  CurrentRule(const CurrentRule&) = delete;
  CurrentRule& operator=(const CurrentRule&) = delete;

  // Returns the rule that was set last, whole. Thread-safe.
  UpdateRule Get() const {
    for (SpinWait wait;; wait.Pause()) {
      const uint32_t before = version_.load(std::memory_order_acquire);
      Words words;
      for (size_t i = 0; i < kWords; ++i) words[i] = words_[i].load(std::memory_order_relaxed);
      AcquireFence();
      const bool is_whole = before % 2 == 0 && version_.load(std::memory_order_relaxed) == before;
      if (is_whole) return std::bit_cast<UpdateRule>(words);
    }
  }
  // Replaces the rule. One thread at a time.
  void Set(const UpdateRule& rule) {
    const auto words = std::bit_cast<Words>(rule);
    const uint32_t version = version_.load(std::memory_order_relaxed);
    version_.store(version + 1, std::memory_order_relaxed);
    ReleaseFence();
    for (size_t i = 0; i < kWords; ++i) words_[i].store(words[i], std::memory_order_relaxed);
    version_.store(version + 2, std::memory_order_release);
  }

 private:
  static constexpr size_t kWords = sizeof(UpdateRule) / sizeof(uint64_t);
  using Words = std::array<uint64_t, kWords>;
  static_assert(sizeof(Words) == sizeof(UpdateRule));

  std::atomic<uint32_t> version_{0};  // odd while the rule is replaced
  std::array<std::atomic<uint64_t>, kWords> words_ = {};
};

}  // namespace embank

#endif  // EMBANK_STORE_TABLE_CURRENT_RULE_H_
