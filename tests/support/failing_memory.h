// The system's memory, with calls that fail on demand and a record of taken memory. So a test can
// try every failure and see that nothing stays behind.
#ifndef EMBANK_TESTS_SUPPORT_FAILING_MEMORY_H_
#define EMBANK_TESTS_SUPPORT_FAILING_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>

#include "base/memory/memory.h"
#include "base/status_or.h"
#include "base/threads/mutex.h"
#include "tests/support/unfaulted.h"

namespace embank::test {

// Thread-safe. Must outlive all memory that is taken from it.
class FailingMemory final : public MemorySource {
 public:
  // The n-th call of Map, Reserve or Commit from now on (the first is 1) fails; 0: none does.
  void FailCall(uint64_t n) {
    MutexLock lock(&mutex_);
    fails_at_ = n == 0 ? 0 : calls_ + n;
  }
  // Every call calls it, and fails if it returns true; nullptr: none does. Before the first call.
  void AskFirst(bool (*must_fail)()) { must_fail_ = must_fail; }
  // Makes every call fail from now on, or none.
  void FailEveryCall(bool fails) {
    MutexLock lock(&mutex_);
    every_call_fails_ = fails;
  }

  StatusOr<std::byte*> Map(uint64_t bytes) override {
    if (!Admit()) return NoMemory();
    return Record(SystemMemorySource()->Map(bytes), bytes);
  }
  StatusOr<std::byte*> Reserve(uint64_t bytes) override {
    if (!Admit()) return NoMemory();
    return Record(SystemMemorySource()->Reserve(bytes), bytes);
  }
  Status Commit(std::byte* address, uint64_t bytes) override {
    if (!Admit()) return NoMemory();
    const Unfaulted bookkeeping;
    MutexLock lock(&mutex_);
    for (uint64_t i = 0; i < bytes; i += kHugePageBytes) {
      misuses_ += committed_.insert(address + i).second ? 0 : 1;
    }
    return SystemMemorySource()->Commit(address, bytes);
  }
  void Decommit(std::byte* address, uint64_t bytes) override {
    MutexLock lock(&mutex_);
    for (uint64_t i = 0; i < bytes; i += kHugePageBytes) {
      misuses_ += committed_.erase(address + i) == 1 ? 0 : 1;
    }
    SystemMemorySource()->Decommit(address, bytes);
  }
  void Unmap(std::byte* address, uint64_t bytes) override {
    MutexLock lock(&mutex_);
    const auto mapping = mapped_.find(address);
    misuses_ += mapping != mapped_.end() && mapping->second == bytes ? 0 : 1;
    if (mapping != mapped_.end()) mapped_.erase(mapping);
    committed_.erase(committed_.lower_bound(address), committed_.lower_bound(address + bytes));
    SystemMemorySource()->Unmap(address, bytes);
  }

  // Calls that could fail, failed ones included.
  uint64_t calls() const {
    MutexLock lock(&mutex_);
    return calls_;
  }
  uint64_t failures() const {
    MutexLock lock(&mutex_);
    return failures_;
  }
  // Mappings and reservations that were not given back.
  uint64_t outstanding() const {
    MutexLock lock(&mutex_);
    return mapped_.size();
  }
  uint64_t committed_bytes() const {
    MutexLock lock(&mutex_);
    return committed_.size() * kHugePageBytes;
  }
  // Memory that was returned but not taken like that, or committed twice.
  uint64_t misuses() const {
    MutexLock lock(&mutex_);
    return misuses_;
  }

 private:
  bool Admit() {
    const bool asked_fails = must_fail_ != nullptr && must_fail_();
    MutexLock lock(&mutex_);
    ++calls_;
    if (!asked_fails && !every_call_fails_ && calls_ != fails_at_) return true;
    ++failures_;
    return false;
  }
  StatusOr<std::byte*> Record(StatusOr<std::byte*> address, uint64_t bytes) {
    const Unfaulted bookkeeping;
    MutexLock lock(&mutex_);
    if (address.ok()) mapped_[*address] = bytes;
    return address;
  }

  bool (*must_fail_)() = nullptr;
  mutable Mutex mutex_;
  uint64_t calls_ EMBANK_GUARDED_BY(mutex_) = 0;
  uint64_t failures_ EMBANK_GUARDED_BY(mutex_) = 0;
  uint64_t fails_at_ EMBANK_GUARDED_BY(mutex_) = 0;
  bool every_call_fails_ EMBANK_GUARDED_BY(mutex_) = false;
  uint64_t misuses_ EMBANK_GUARDED_BY(mutex_) = 0;
  std::map<std::byte*, uint64_t> mapped_ EMBANK_GUARDED_BY(mutex_);
  std::set<std::byte*> committed_ EMBANK_GUARDED_BY(mutex_);  // huge pages
};

}  // namespace embank::test

#endif  // EMBANK_TESTS_SUPPORT_FAILING_MEMORY_H_
