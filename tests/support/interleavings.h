// Every interleaving of a few threads of a few steps: a protocol is written down as a world, small
// enough to be copied, whose threads take one step at a time.
//
// The model is sequential consistency: all threads see a step at once. It does not show errors that
// only a missing fence causes.
#ifndef EMBANK_TESTS_SUPPORT_INTERLEAVINGS_H_
#define EMBANK_TESTS_SUPPORT_INTERLEAVINGS_H_

#include <array>
#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>
#include <unordered_map>

namespace embank::test {

struct Interleavings {
  uint64_t count = 0;     // complete ones, while nothing was wrong
  uint64_t states = 0;    // different ones
  uint64_t answered = 0;  // final states in which a reader had an answer
  std::string violation;  // "": none; else what was wrong, and the threads of the steps in order
};

// A world has kThreads, Done(thread), Step(thread), Wrong() (nullptr: nothing) and Answered().
template <typename World>
class InterleavingSearch {
  static_assert(std::has_unique_object_representations_v<World>);

 public:
  // Stops at the first violation.
  Interleavings Run(const World& begin) {
    result_.count = Visit(begin);
    result_.states = counts_.size();
    return result_;
  }

 private:
  // How many ways there are to the end. Equal worlds have equal futures.
  uint64_t Visit(const World& world) {
    if (!result_.violation.empty()) return 0;
    if (const char* const wrong = world.Wrong(); wrong != nullptr) {
      result_.violation = wrong + (" by the steps " + trace_);
      return 0;
    }
    const std::string bytes(reinterpret_cast<const char*>(&world), sizeof world);
    const auto known = counts_.find(bytes);
    if (known != counts_.end()) return known->second;
    uint64_t count = 0;
    bool ended = true;
    for (uint32_t thread = 0; thread < World::kThreads; ++thread) {
      if (world.Done(thread)) continue;
      ended = false;
      World next = world;
      next.Step(thread);
      trace_ += static_cast<char>('0' + thread);
      count += Visit(next);
      trace_.pop_back();
    }
    if (ended) result_.answered += world.Answered() ? 1 : 0;
    return counts_[bytes] = ended ? 1 : count;
  }

  Interleavings result_;
  std::string trace_;
  std::unordered_map<std::string, uint64_t> counts_;
};

// All interleavings of the threads of a world that begins like this.
template <typename World>
Interleavings AllInterleavings(const World& begin) {
  return InterleavingSearch<World>().Run(begin);
}

// The same, in the variant of the protocol that `fault` names.
template <typename World, typename Fault>
Interleavings AllInterleavingsWith(Fault fault) {
  World world;
  world.fault = fault;
  return AllInterleavings(world);
}

// A world whose thread 0 writes and whose other threads read. World has kWriterSteps, kReaderSteps,
// Write(step) and Read(thread, step, Reader*); a reader that is done early leaves.
template <typename World, typename Reader>
struct WriterAndReaders {
  static constexpr uint32_t kThreads = 3;

  std::array<uint64_t, kThreads> steps{};
  std::array<Reader, kThreads> readers{};  // that of the writer is not used

  bool Done(uint32_t thread) const {
    return steps[thread] >= (thread == 0 ? World::kWriterSteps : World::kReaderSteps);
  }
  void Step(uint32_t thread) {
    const uint64_t step = steps[thread]++;
    World* const world = static_cast<World*>(this);
    thread == 0 ? world->Write(step) : world->Read(thread, step, &readers[thread]);
  }
  void Leave(uint32_t reader) { steps[reader] = World::kReaderSteps; }
};

}  // namespace embank::test

#endif  // EMBANK_TESTS_SUPPORT_INTERLEAVINGS_H_
