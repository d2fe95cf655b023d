#include "base/files/ring_pool.h"

#include <algorithm>
#include <new>
#include <system_error>
#include <utility>

#include "base/check.h"
#include "base/str_cat.h"
#include "base/threads/log.h"

namespace embank {
namespace {

// Most machines run fewer threads with lists at once. Each ring has a descriptor and 40 KiB, and
// rings of ended threads are found by no thread.
constexpr size_t kIdleRingsMax = 64;

std::string MessageOf(int error) { return std::system_category().message(error); }

}  // namespace

RingPool::RingPool(std::optional<IoCompletions> completions) : completions_(completions) {
  if (!completions.has_value()) return;
  for (uint32_t i = kRingFilesMax; i > 0; --i) free_files_.push_back(i - 1);
  idle_.reserve(kIdleRingsMax + 1);
}

void RingPool::Run(std::span<IoOperation> operations) noexcept {
  // Operations that were done must be reported, so a lack of memory for anything else ends nothing.
  try {
    Taken taken = Take(operations);
    if (taken.ring == nullptr) return;
    if (!taken.ring->Run(operations, taken.memory)) return DisableRings("a ring broke");
    Return(std::move(taken));
  } catch (const std::bad_alloc&) {
  }
}

RingPool::Taken RingPool::Take(std::span<const IoOperation> operations) {
  Taken taken = {.ring = nullptr, .ends = 0, .memory = {}};
  IoCompletions completions;
  {
    MutexLock lock(&mutex_);
    if (!completions_.has_value()) return taken;
    completions = *completions_;
    taken.ends = ends_;
    taken.memory = MemoryOf(operations.front().data);
    const auto found = std::find_if(idle_.rbegin(), idle_.rend(),
                                    [](const auto& ring) { return ring->IsForThisThread(); });
    if (found != idle_.rend()) {
      taken.ring = std::move(*found);
      idle_.erase(std::next(found).base());
      return taken;
    }
  }
  int error = 0;
  taken.ring = MakeIoRing(completions, &error);
  if (taken.ring == nullptr) DisableRings(MessageOf(error));
  return taken;
}

void RingPool::Return(Taken taken) {
  EMBANK_CHECK(taken.ring != nullptr && taken.ring->IsForThisThread());
  const IoRefusals refusals = taken.ring->refusals();
  if (refusals.files != 0 || refusals.memory != 0) LogRefusals(refusals);
  std::unique_ptr<IoRing> oldest;  // ended outside the lock, as `taken` is
  MutexLock lock(&mutex_);
  if (!completions_.has_value() || taken.ends != ends_) return;
  idle_.push_back(std::move(taken.ring));
  if (idle_.size() <= kIdleRingsMax) return;
  oldest = std::move(idle_.front());
  idle_.erase(idle_.begin());
}

void RingPool::DisableRings(const std::string& reason) {
  Rings idle;  // ended outside the lock
  {
    MutexLock lock(&mutex_);
    if (!completions_.has_value()) return;
    completions_.reset();
    idle.swap(idle_);
  }
  Log(LogLevel::kWarning,
      StrCat("io_uring: ", reason, "; reads and writes go through threads from now on"));
}

// Once for each reason.
void RingPool::LogRefusals(const IoRefusals& refusals) {
  int files = 0;
  int memory = 0;
  {
    MutexLock lock(&mutex_);
    if (said_.files == 0) files = said_.files = refusals.files;
    if (said_.memory == 0) memory = said_.memory = refusals.memory;
  }
  if (files != 0) {
    Log(LogLevel::kInfo, StrCat("io_uring: files are not registered: ", MessageOf(files)));
  }
  if (memory != 0) {
    Log(LogLevel::kInfo, StrCat("io_uring: memory is not registered: ", MessageOf(memory)));
  }
}

IoMemory RingPool::MemoryOf(const std::byte* address) const {
  for (uint32_t i = 0; i < memory_.size(); ++i) {
    const std::span<std::byte> memory = memory_[i];
    if (!memory.empty() && memory.data() <= address && address < memory.data() + memory.size()) {
      return {.number = i, .bytes = memory};
    }
  }
  return {};
}

uint32_t RingPool::AddFile() {
  MutexLock lock(&mutex_);
  if (free_files_.empty()) return kNoRingNumber;
  const uint32_t number = free_files_.back();
  free_files_.pop_back();
  return number;
}

void RingPool::EndFile(uint32_t number, bool was_run) {
  if (number == kNoRingNumber) return;
  Rings idle;  // ended outside the lock
  MutexLock lock(&mutex_);
  EMBANK_CHECK(number < kRingFilesMax && free_files_.size() < kRingFilesMax);
  free_files_.push_back(number);
  if (!was_run) return;
  ++ends_;
  idle.swap(idle_);
}

void RingPool::AddMemory(std::span<std::byte> memory) {
  MutexLock lock(&mutex_);
  for (std::span<std::byte>& place : memory_) {
    if (!place.empty()) continue;
    place = memory;
    return;
  }
}

void RingPool::EndMemory(std::span<std::byte> memory) {
  Rings idle;  // ended outside the lock
  MutexLock lock(&mutex_);
  for (std::span<std::byte>& place : memory_) {
    if (place.data() != memory.data()) continue;
    place = {};
    ++ends_;
    idle.swap(idle_);
  }
}

}  // namespace embank
