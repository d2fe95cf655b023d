// A picture of what ran beside what: lanes over time, with bars in them.
#ifndef EMBANK_TRAIN_PIPELINE_LANE_PICTURE_H_
#define EMBANK_TRAIN_PIPELINE_LANE_PICTURE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace embank {

inline constexpr size_t kBarKindsMax = 10;

struct LanePicture {
  // A kind of bars, which has a colour: its name in the legend, and a title there.
  struct Kind {
    std::string name;
    std::string title;
  };
  struct Bar {
    size_t lane = 0;
    size_t kind = 0;
    uint64_t begin_ns = 0;
    uint64_t end_ns = 0;
    std::string title;
  };

  std::vector<Kind> kinds;         // at most kBarKindsMax
  std::vector<std::string> lanes;  // their names
  std::vector<Bar> bars;
  std::string none;  // the text of a picture without bars
};

// Returns an SVG file. Its time begins with the first bar.
std::string SvgText(const LanePicture& picture);

}  // namespace embank

#endif  // EMBANK_TRAIN_PIPELINE_LANE_PICTURE_H_
