#include "train/pipeline/operation_trace.h"

#include <numeric>

namespace embank {

void OperationTrace::KeepIntervals(uint32_t graphs) {
  MutexLock lock(&mutex_);
  intervals_.clear();
  graphs_ = 0;
  graphs_max_ = graphs;
}

uint32_t OperationTrace::BeginGraph() {
  MutexLock lock(&mutex_);
  return ++graphs_;
}

void OperationTrace::CountOperation(OperationKind kind, uint64_t nanoseconds) {
  MutexLock lock(&mutex_);
  ++operations_[static_cast<size_t>(kind)];
  nanoseconds_[static_cast<size_t>(kind)] += nanoseconds;
}

void OperationTrace::AddInterval(OperationInterval interval) {
  MutexLock lock(&mutex_);
  if (interval.graph > graphs_max_) return;
  intervals_.push_back(interval);
}

uint64_t OperationTrace::operations(OperationKind kind) const {
  MutexLock lock(&mutex_);
  return operations_[static_cast<size_t>(kind)];
}

uint64_t OperationTrace::operations() const {
  MutexLock lock(&mutex_);
  return std::accumulate(operations_.begin(), operations_.end(), uint64_t{0});
}

double OperationTrace::seconds(OperationKind kind) const {
  MutexLock lock(&mutex_);
  return static_cast<double>(nanoseconds_[static_cast<size_t>(kind)]) * 1e-9;
}

std::vector<OperationInterval> OperationTrace::intervals() const {
  MutexLock lock(&mutex_);
  return intervals_;
}

}  // namespace embank
