// A small array of zeroed words from the heap, charged to a budget.
#ifndef EMBANK_BASE_MEMORY_CHARGED_WORDS_H_
#define EMBANK_BASE_MEMORY_CHARGED_WORDS_H_

#include <cstdint>
#include <memory>
#include <new>
#include <utility>

#include "base/check.h"
#include "base/memory/memory.h"

namespace embank {

// Releases its memory and its charge on destruction. Move-only.
class ChargedWords {
 public:
  ChargedWords() = default;
  ChargedWords(ChargedWords&& other) noexcept { *this = std::move(other); }
  ChargedWords& operator=(ChargedWords&& other) noexcept {
    std::swap(budget_, other.budget_);
    std::swap(words_, other.words_);
    std::swap(charged_bytes_, other.charged_bytes_);
    return *this;
  }
  ~ChargedWords() {
    if (budget_ != nullptr) budget_->Release(charged_bytes_);
  }

  // Takes over a charge of `charged_bytes` that was made to the budget. False: the machine has no
  // memory; the charge stays the caller's.
  bool Allocate(MemoryBudget* budget, uint64_t charged_bytes, uint64_t words) {
    EMBANK_CHECK(budget_ == nullptr && words_ == nullptr);
    words_.reset(new (std::nothrow) uint64_t[words]());
    if (words_ == nullptr) return false;
    budget_ = budget;
    charged_bytes_ = charged_bytes;
    return true;
  }

  uint64_t* data() const { return words_.get(); }

 private:
  MemoryBudget* budget_ = nullptr;
  std::unique_ptr<uint64_t[]> words_;
  uint64_t charged_bytes_ = 0;
};

}  // namespace embank

#endif  // EMBANK_BASE_MEMORY_CHARGED_WORDS_H_
