// Numbers of threads, for those that want a place of their own in an array.
#ifndef EMBANK_BASE_THREADS_THREAD_NUMBER_H_
#define EMBANK_BASE_THREADS_THREAD_NUMBER_H_

#include <cstdint>

namespace embank {

// The number of the calling thread: 0 for the first thread that asks, and so on. It never changes,
// and no other thread of the process has it.
uint64_t ThreadNumber();

}  // namespace embank

#endif  // EMBANK_BASE_THREADS_THREAD_NUMBER_H_
