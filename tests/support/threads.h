// Threads of a test.
#ifndef EMBANK_TESTS_SUPPORT_THREADS_H_
#define EMBANK_TESTS_SUPPORT_THREADS_H_

#include <cstdint>
#include <thread>
#include <vector>

namespace embank::test {

// Runs `body(thread)` on so many threads at once and waits for all.
template <typename Body>
void OnThreads(uint64_t count, const Body& body) {
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < count; ++t) threads.emplace_back([&body, t] { body(t); });
  for (std::thread& thread : threads) thread.join();
}

}  // namespace embank::test

#endif  // EMBANK_TESTS_SUPPORT_THREADS_H_
