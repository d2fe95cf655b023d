// A thread that runs one piece of work and ends.
#ifndef EMBANK_BASE_THREADS_JOINED_THREAD_H_
#define EMBANK_BASE_THREADS_JOINED_THREAD_H_

namespace embank {

class JoinedThread {
 public:
  // The destructor waits until the work is done.
  virtual ~JoinedThread() = default;
};

}  // namespace embank

#endif  // EMBANK_BASE_THREADS_JOINED_THREAD_H_
