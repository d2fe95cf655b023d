// A picture of a trace: what each thread did, over time.
#ifndef EMBANK_TRAIN_PIPELINE_TRACE_PICTURE_H_
#define EMBANK_TRAIN_PIPELINE_TRACE_PICTURE_H_

#include <span>
#include <string>

#include "train/pipeline/operation_trace.h"

namespace embank {

// Returns an SVG file: a lane for each thread, a bar for each part of an operation, coloured by its
// kind, with pack and micro-batch as its title. Without intervals it says so.
std::string TracePicture(std::span<const OperationInterval> intervals);

}  // namespace embank

#endif  // EMBANK_TRAIN_PIPELINE_TRACE_PICTURE_H_
