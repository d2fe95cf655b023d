// How far a run is, in words.
#ifndef EMBANK_TOOLS_PROGRESS_TEXT_H_
#define EMBANK_TOOLS_PROGRESS_TEXT_H_

#include <string>

namespace embank {

// Returns the share of a run that is done, and the time that is left at its rate so far:
// "12.5 %, 1:02:03 left  ". `before` was done before these seconds. Empty: nothing is known, as of
// a pipe.
std::string ProgressText(double fraction, double before, double seconds);

}  // namespace embank

#endif  // EMBANK_TOOLS_PROGRESS_TEXT_H_
