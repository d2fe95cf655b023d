// EMBANK_CHECK(condition) stops the process, with the place, when an invariant of our own is
// broken. It is for our defects only: errors of callers or of the system are a Status.
#ifndef EMBANK_BASE_CHECK_H_
#define EMBANK_BASE_CHECK_H_

#include <cstdio>
#include <cstdlib>

#define EMBANK_CHECK(condition)                                                            \
  do {                                                                                     \
    if (!(condition)) [[unlikely]] {                                                       \
      std::fprintf(stderr, "embank: %s:%d: broken: %s\n", __FILE__, __LINE__, #condition); \
      std::abort();                                                                        \
    }                                                                                      \
  } while (false)

#endif  // EMBANK_BASE_CHECK_H_
