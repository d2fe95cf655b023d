#include "train/pipeline/operation_graph.h"

#include <algorithm>
#include <new>
#include <utility>

#include "base/check.h"
#include "base/no_throw_status.h"
#include "base/seeded_bug.h"
#include "base/str_cat.h"
#include "train/pipeline/capacity.h"

namespace embank {
namespace {

// Rows of the next micro-batch are fetched while other threads compute.
bool IsBefore(const OperationLabel& a, const OperationLabel& b) {
  return ClassOf(a.kind) != ResourceClass::kCompute && ClassOf(b.kind) == ResourceClass::kCompute;
}

}  // namespace

OperationGraph::Id OperationGraph::Add(const OperationLabel& label, uint32_t parts,
                                       std::span<const Id> before, OperationBody body) {
  EMBANK_CHECK(parts > 0);
  const auto id = static_cast<Id>(operations_.size());
  operations_.push_back(
      {.label = label, .resource = ClassOf(label.kind), .parts = parts, .body = std::move(body)});
  for (const Id other : before) {
    EMBANK_CHECK(other < id);
    operations_[other].after.push_back(id);
    ++operations_[id].waits_for;
  }
  if (operations_[id].resource == ResourceClass::kLink) link_.push_back(id);
  return id;
}

OperationGraph::Id OperationGraph::AddAwaiting(const OperationLabel& label, uint32_t arrivals,
                                               OperationBody body) {
  const Id id = Add(label, 1, {}, std::move(body));
  operations_[id].waits_for = operations_[id].arrivals = arrivals;
  return id;
}

void OperationGraph::Arrive(Id id) {
  MutexLock lock(&mutex_);
  if (has_failed_) return;
  EMBANK_CHECK(operations_[id].arrivals > 0);
  --operations_[id].arrivals;
  if (--operations_[id].waits_for == 0) MakeReady(id);
}

// The operations whose bodies would arrive do not begin.
void OperationGraph::Fail() {
  if (std::exchange(has_failed_, true)) return;
  for (Id id = 0; id < operations_.size(); ++id) {
    Operation& operation = operations_[id];
    if (operation.arrivals == 0) continue;
    operation.waits_for -= std::exchange(operation.arrivals, 0);
    if (operation.waits_for == 0) MakeReady(id);
  }
}

// In the order of addition.
void OperationGraph::MakeReady(Id id) {
  ready_.insert(std::ranges::upper_bound(ready_, id), id);
  changed_.NotifyAll();
}

Status OperationGraph::Run(Executor* executor, const GraphWatch& watch) {
  watch_ = watch;
  if (watch_.trace != nullptr) number_ = watch_.trace->BeginGraph();
  Begin();
  {
    std::unique_ptr<JoinedThread> link;
    const uint32_t threads = executor->concurrency();
    if (!link_.empty()) {
      link = executor->MakeThread([this, threads] { RunThread(threads, OperationsOf::kLink); });
    }
    // Without a thread for it, the others run the link's operations.
    const OperationsOf of_others = link == nullptr ? OperationsOf::kAll : OperationsOf::kOthers;
    executor->ParallelFor(threads, [&](uint32_t thread) { RunThread(thread, of_others); });
  }
  MutexLock lock(&mutex_);
  EMBANK_CHECK(ended_ == operations_.size());
  for (Operation& operation : operations_) {
    if (!operation.status.ok()) return std::move(operation.status);
  }
  return OkStatus();
}

void OperationGraph::Begin() {
  MutexLock lock(&mutex_);
  EMBANK_CHECK(ended_ == 0);
  ready_.reserve(operations_.size());  // threads add to it, and must not throw
  for (Id id = 0; id < operations_.size(); ++id) {
    if (operations_[id].waits_for == 0) ready_.push_back(id);
  }
}

uint64_t OperationGraph::Schedule(uint32_t threads,
                                  FunctionRef<uint64_t(const OperationLabel&)> part_ns) {
  struct Part {
    Operation* operation;
    uint64_t end_ns;
  };
  Begin();
  MutexLock lock(&mutex_);
  std::vector<Part> running;
  uint64_t now_ns = 0;
  while (ended_ < operations_.size()) {
    uint32_t part = 0;
    Operation* const next = running.size() < threads ? Claim(OperationsOf::kAll, &part) : nullptr;
    if (next != nullptr) {
      running.push_back({next, now_ns + part_ns(next->label)});
      continue;
    }
    const auto first = std::ranges::min_element(running, {}, &Part::end_ns);
    EMBANK_CHECK(first != running.end());
    now_ns = first->end_ns;
    Finish(first->operation, OkStatus());
    running.erase(first);
  }
  return now_ns;
}

// A thread that finds no part waits for the others, which run some; the last one leaves nothing.
void OperationGraph::RunThread(uint32_t thread, OperationsOf of) {
  mutex_.Lock();
  while (ended_ < operations_.size()) {
    uint32_t part = 0;
    Operation* const operation = Claim(of, &part);
    if (operation == nullptr) {
      changed_.Wait(&mutex_);
      continue;
    }
    const bool runs = !has_failed_;
    mutex_.Unlock();
    const Status status = runs ? RunPart(*operation, part, thread) : OkStatus();
    mutex_.Lock();
    Finish(operation, status);
  }
  mutex_.Unlock();
}

// An exception would end the process: the other threads wait for this part.
Status OperationGraph::RunPart(const Operation& operation, uint32_t part, uint32_t thread) {
  try {
    const uint64_t begin_ns = clock_->NowNs();
    if (watch_.hook != nullptr && *watch_.hook) (*watch_.hook)(operation.label, part);
    Status status = operation.body(part, thread);
    if (watch_.trace != nullptr) {
      watch_.trace->AddInterval({.label = operation.label,
                                 .operation = static_cast<Id>(&operation - operations_.data()),
                                 .graph = number_,
                                 .thread = watch_.first_thread + thread,
                                 .begin_ns = begin_ns,
                                 .end_ns = clock_->NowNs()});
    }
    return status;
  } catch (const std::bad_alloc&) {
    return NoThrowStatus(StatusCode::kResourceExhausted, [&] {
      return StrCat("no memory for the operation ", NameOf(operation.label.kind), " of a step");
    });
  }
}

OperationGraph::Operation* OperationGraph::Claim(OperationsOf of, uint32_t* part) {
  auto best = ready_.end();
  for (auto it = ready_.begin(); it != ready_.end(); ++it) {
    const bool is_link = operations_[*it].resource == ResourceClass::kLink;
    if (of != OperationsOf::kAll && is_link != (of == OperationsOf::kLink)) continue;
    const bool is_next = !is_link || link_[link_ended_] == *it;
    if (!is_next && !Seeded(SeededBug::kExchangesInAnotherOrder)) continue;
    if (!MayBegin(operations_[*it])) continue;
    if (best == ready_.end() || IsBefore(operations_[*it].label, operations_[*best].label)) {
      best = it;
    }
  }
  if (best == ready_.end()) return nullptr;
  Operation& operation = operations_[*best];
  if (operation.begun == 0) {
    operation.begin_ns = clock_->NowNs();
    if (operation.label.group != kNoGroup) {
      Running& running = running_[static_cast<size_t>(operation.resource)];
      ++running.operations;
      running.group = operation.label.group;
    }
  }
  *part = operation.begun++;
  if (operation.begun == operation.parts) ready_.erase(best);
  return &operation;
}

bool OperationGraph::MayBegin(const Operation& operation) const {
  if (operation.begun > 0 || operation.label.group == kNoGroup) return true;
  const Running& running = running_[static_cast<size_t>(operation.resource)];
  return running.operations == 0 || running.group == operation.label.group;
}

void OperationGraph::Finish(Operation* operation, const Status& status) {
  if (!status.ok()) {
    Fail();
    operation->status.Update(status);
  }
  if (++operation->done < operation->parts) return;
  End(operation);
}

void OperationGraph::End(Operation* operation) {
  ++ended_;
  if (operation->resource == ResourceClass::kLink) ++link_ended_;
  if (operation->label.group != kNoGroup) {
    --running_[static_cast<size_t>(operation->resource)].operations;
  }
  for (const Id id : operation->after) {
    EMBANK_CHECK(operations_[id].waits_for > 0);
    if (--operations_[id].waits_for == 0) MakeReady(id);
  }
  if (watch_.trace != nullptr && !has_failed_) {
    watch_.trace->CountOperation(operation->label.kind, clock_->NowNs() - operation->begin_ns);
  }
  changed_.NotifyAll();
}

}  // namespace embank
