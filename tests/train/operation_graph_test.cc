#include "train/pipeline/operation_graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <new>
#include <string>
#include <vector>

#include "base/threads/mutex.h"
#include "train/pipeline/capacity.h"
#include "train/pipeline/trace_picture.h"

namespace embank::test::operation_graph_test {
namespace {

using ::testing::HasSubstr;

constexpr OperationLabel kMemory = {.kind = OperationKind::kUniquePartition};
constexpr OperationLabel kIo = {.kind = OperationKind::kGather};
constexpr OperationLabel kCompute = {.kind = OperationKind::kDense};

OperationLabel InGroup(OperationLabel label, uint32_t group) {
  label.group = group;
  return label;
}

// Threads wait here for each other; a wait that nobody ends fails after a while.
class Meeting {
 public:
  explicit Meeting(uint32_t threads) : missing_(threads) {}
  bool Arrive() {
    MutexLock lock(&mutex_);
    if (--missing_ == 0) changed_.NotifyAll();
    for (int i = 0; missing_ > 0 && i < 100; ++i) changed_.WaitFor(&mutex_, 100'000'000);
    return missing_ <= 0;
  }

 private:
  Mutex mutex_;
  ConditionVariable changed_;
  int64_t missing_ EMBANK_GUARDED_BY(mutex_);
};

// Whether two operations meet, each on a thread. False: one waited for the end of the other.
bool RunAtOnce(const OperationLabel& a, const OperationLabel& b) {
  const auto executor = MakeThreadPool(2);
  OperationGraph graph;
  Meeting meeting(2);
  std::atomic<bool> met{true};
  const auto meet = [&](uint32_t, uint32_t) {
    if (!meeting.Arrive()) met = false;
    return OkStatus();
  };
  graph.Add(a, 1, {}, meet);
  graph.Add(b, 1, {}, meet);
  EXPECT_TRUE(graph.Run(executor.get()).ok());
  return met;
}

TEST(Operations, AreFusedWithinOneResource) {
  for (size_t i = 0; i < kOperationKinds; ++i) {
    const auto kind = static_cast<OperationKind>(i);
    ASSERT_FALSE(PrimitivesOf(kind).empty());
    for (const Primitive primitive : PrimitivesOf(kind)) {
      EXPECT_EQ(ClassOf(primitive), ClassOf(kind)) << NameOf(kind);
    }
  }
}

TEST(OperationGraph, OperationsBeginBehindThoseBeforeThem) {
  for (const uint32_t threads : {1u, 2u, 4u}) {
    const auto executor = MakeThreadPool(threads);
    OperationGraph graph;
    std::atomic<int> first{0};
    std::atomic<int> wrong{0};
    std::atomic<int> last{0};
    const auto a = graph.Add(kMemory, 7, {}, [&](uint32_t, uint32_t) {
      ++first;
      return OkStatus();
    });
    const auto b = graph.Add(kIo, 1, {{a}}, [&](uint32_t, uint32_t) {
      if (first != 7) ++wrong;
      return OkStatus();
    });
    graph.Add(kCompute, 3, {{a, b}}, [&](uint32_t, uint32_t thread) {
      if (thread >= threads) ++wrong;
      ++last;
      return OkStatus();
    });
    OperationTrace trace;
    ASSERT_TRUE(graph.Run(executor.get(), {.trace = &trace}).ok());
    EXPECT_EQ(wrong, 0);
    EXPECT_EQ(last, 3);
    EXPECT_EQ(trace.operations(), 3u);
    EXPECT_EQ(trace.operations(OperationKind::kGather), 1u);
  }
}

TEST(OperationGraph, OperationsOfDifferentResourcesRunAtOnce) {
  EXPECT_TRUE(RunAtOnce(InGroup(kMemory, 0), InGroup(kIo, 1)));
}

// Begins operations of the link in the order of their addition, though the last one is ready first.
TEST(OperationGraph, OperationsOfTheLinkHaveOneOrderAndAThread) {
  constexpr OperationLabel kLink = {.kind = OperationKind::kShuffleRows};
  for (const uint32_t threads : {1u, 2u, 4u}) {
    const auto executor = MakeThreadPool(threads);
    OperationGraph graph;
    std::vector<int> order;
    std::atomic<bool> is_awaited{false};
    std::atomic<bool> has_begun{false};
    const auto note = [&](int number) {
      return [&order, &has_begun, number](uint32_t, uint32_t) {
        has_begun = true;
        order.push_back(number);
        return OkStatus();
      };
    };
    // The last one has time to begin, and must not.
    const auto first = graph.Add(kMemory, 1, {}, [&](uint32_t, uint32_t) {
      Mutex mutex;
      ConditionVariable never;
      MutexLock lock(&mutex);
      for (int i = 0; i < 50 && !has_begun; ++i) never.WaitFor(&mutex, 1'000'000);
      return OkStatus();
    });
    graph.Add(kLink, 1, {{first}}, note(0));
    const auto awaiting = graph.AddAwaiting(kLink, 2, [&](uint32_t, uint32_t) {
      is_awaited = true;
      order.push_back(1);
      return OkStatus();
    });
    graph.Add(kLink, 1, {}, note(2));
    // The bodies of the other threads go on while the link waits for them.
    graph.Add(kCompute, 2, {{first}}, [&](uint32_t, uint32_t) {
      EXPECT_FALSE(is_awaited);
      graph.Arrive(awaiting);
      return OkStatus();
    });
    ASSERT_TRUE(graph.Run(executor.get()).ok());
    EXPECT_EQ(order, (std::vector<int>{0, 1, 2})) << threads << " threads";
  }
}

TEST(OperationGraph, AFailureEndsTheWaitForArrivals) {
  const auto executor = MakeThreadPool(2);
  OperationGraph graph;
  bool has_run = false;
  graph.AddAwaiting({.kind = OperationKind::kAllReduce}, 1, [&](uint32_t, uint32_t) {
    has_run = true;
    return OkStatus();
  });
  graph.Add(kIo, 1, {}, [](uint32_t, uint32_t) { return UnavailableError("no rows"); });
  EXPECT_EQ(graph.Run(executor.get()), UnavailableError("no rows"));
  EXPECT_FALSE(has_run);
}

TEST(OperationGraph, GroupsDoNotShareAResource) {
  const auto executor = MakeThreadPool(4);
  OperationGraph graph;
  constexpr uint32_t kGroups = 5;
  std::array<std::array<std::atomic<int>, kGroups>, kResourceClasses> running{};
  std::atomic<int> wrong{0};
  for (uint32_t i = 0; i < 60; ++i) {
    const OperationLabel label = InGroup(i % 2 == 0 ? kMemory : kIo, i / 2 % kGroups);
    auto& groups = running[static_cast<size_t>(ClassOf(label.kind))];
    graph.Add(label, 2, {}, [&, label](uint32_t, uint32_t) {
      ++groups[label.group];
      for (int spin = 0; spin < 50'000; ++spin) {
        const uint32_t other = (label.group + 1 + spin % (kGroups - 1)) % kGroups;
        if (groups[other] > 0) ++wrong;
      }
      --groups[label.group];
      return OkStatus();
    });
  }
  ASSERT_TRUE(graph.Run(executor.get()).ok());
  EXPECT_EQ(wrong, 0);
}

TEST(OperationGraph, AnExcludedPackWaitsForNoGroup) {
  EXPECT_TRUE(RunAtOnce(InGroup(kIo, 0), InGroup(kIo, kNoGroup)));
}

TEST(OperationGraph, BehindAFailureNoOperationBegins) {
  const auto executor = MakeThreadPool(2);
  OperationGraph graph;
  std::atomic<int> ran{0};
  const auto a = graph.Add(kMemory, 2, {}, [&](uint32_t part, uint32_t) {
    return part == 1 ? UnavailableError("the second part") : OkStatus();
  });
  graph.Add(kIo, 5, {{a}}, [&](uint32_t, uint32_t) {
    ++ran;
    return OkStatus();
  });
  const Status status = graph.Run(executor.get());
  EXPECT_EQ(status.code(), StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()), HasSubstr("the second part"));
  EXPECT_EQ(ran, 0);
}

TEST(OperationGraph, ABodyWithoutMemoryFailsTheGraph) {
  const auto executor = MakeThreadPool(2);
  OperationGraph graph;
  std::atomic<int> ran{0};
  const auto a = graph.Add(kIo, 3, {}, [](uint32_t part, uint32_t) -> Status {
    if (part == 1) throw std::bad_alloc();
    return OkStatus();
  });
  graph.Add(kCompute, 1, {{a}}, [&](uint32_t, uint32_t) {
    ++ran;
    return OkStatus();
  });
  const Status status = graph.Run(executor.get());
  EXPECT_TRUE(IsResourceExhausted(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("no memory for the operation Gather"));
  EXPECT_EQ(ran, 0);
}

constexpr uint64_t kOperationNs = 10'000'000;

// The rows of a micro-batch are fetched, and then it is computed. Each has a group of its own.
void AddMicroBatches(uint32_t count, const OperationBody& body, OperationGraph* graph) {
  for (uint32_t i = 0; i < count; ++i) {
    const OperationGraph::Id fetched = graph->Add(InGroup(kIo, i), 1, {}, body);
    graph->Add(InGroup(kCompute, i), 1, {{fetched}}, body);
  }
}

// PICASSO, section III-C and figure 8b: m micro-batches take m + 1 times an operation, not 2 m.
TEST(OperationGraph, MicroBatchesOverlapExactly) {
  const auto no_body = [](uint32_t, uint32_t) { return OkStatus(); };
  const auto ten_ms = [](const OperationLabel&) { return kOperationNs; };
  for (uint64_t m = 1; m <= 4; ++m) {
    for (const uint32_t threads : {1u, 2u, 3u}) {
      OperationGraph graph;
      AddMicroBatches(static_cast<uint32_t>(m), no_body, &graph);
      const uint64_t operations = threads == 1 ? 2 * m : m + 1;
      EXPECT_EQ(graph.Schedule(threads, ten_ms), operations * kOperationNs)
          << m << " micro-batches, " << threads << " threads";
    }
  }
}

// The best of five on the clock of the machine, with operations that wait.
TEST(OperationGraph, MicroBatchesOverlapOnThreads) {
  constexpr uint64_t kMicroBatches = 4;
  const auto executor = MakeThreadPool(2);
  const auto wait = [](uint32_t, uint32_t) {
    Mutex mutex;
    ConditionVariable nobody_notifies;
    MutexLock lock(&mutex);
    const uint64_t begin_ns = SteadyClock()->NowNs();
    for (uint64_t ns = 0; ns < kOperationNs; ns = SteadyClock()->NowNs() - begin_ns) {
      nobody_notifies.WaitFor(&mutex, kOperationNs - ns);
    }
    return OkStatus();
  };
  uint64_t best_ns = UINT64_MAX;
  for (int round = 0; round < 5; ++round) {
    OperationGraph graph;
    AddMicroBatches(kMicroBatches, wait, &graph);
    const uint64_t begin_ns = SteadyClock()->NowNs();
    ASSERT_TRUE(graph.Run(executor.get()).ok());
    best_ns = std::min(best_ns, SteadyClock()->NowNs() - begin_ns);
  }
  EXPECT_GE(best_ns, (kMicroBatches + 1) * kOperationNs);
  EXPECT_LT(best_ns, 2 * kMicroBatches * kOperationNs * 9 / 10) << "without overlap 80 ms";
}

TEST(OperationTrace, KeepsSoManyGraphs) {
  const auto executor = MakeThreadPool(1);
  OperationTrace trace;
  trace.KeepIntervals(2);
  for (int i = 0; i < 4; ++i) {
    OperationGraph graph;
    graph.Add(kMemory, 3, {}, [](uint32_t, uint32_t) { return OkStatus(); });
    ASSERT_TRUE(graph.Run(executor.get(), {.trace = &trace}).ok());
  }
  EXPECT_EQ(trace.operations(), 4u);
  ASSERT_EQ(trace.intervals().size(), 6u);
  EXPECT_EQ(trace.intervals().back().graph, 2u);
  const std::string picture = TracePicture(trace.intervals());
  EXPECT_THAT(picture, HasSubstr("Unique&amp;Partition, batch 0, pack 0, micro-batch 0"));
  EXPECT_THAT(picture, HasSubstr("</svg>"));
  EXPECT_THAT(TracePicture({}), HasSubstr("no operation ran"));
}

}  // namespace
}  // namespace embank::test::operation_graph_test
