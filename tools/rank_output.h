// The streams of a run. With several ranks the first one alone tells how far it is.
#ifndef EMBANK_TOOLS_RANK_OUTPUT_H_
#define EMBANK_TOOLS_RANK_OUTPUT_H_

#include <cstdio>

namespace embank {

// Standard output and standard error, or streams that drop everything on a silent thread.
// Thread-safe.
std::FILE* Out();
std::FILE* Err();

// Makes this thread silent, or lets it speak.
void SetSilent(bool is_silent);

}  // namespace embank

#endif  // EMBANK_TOOLS_RANK_OUTPUT_H_
