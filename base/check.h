// EMBANK_CHECK(condition): stops the process when an invariant of our own is broken, with the
// place. For our defects only: what callers or the world do wrong is an Status.
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
