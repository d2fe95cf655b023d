// The files that a person names: by paths, directories and patterns.
#ifndef EMBANK_TRAIN_DATA_CLICK_FILES_H_
#define EMBANK_TRAIN_DATA_CLICK_FILES_H_

#include <span>
#include <string>
#include <vector>

#include "base/status_or.h"

namespace embank {

// Returns the files of each word in turn. A directory stands for its files by name, without those
// whose name begins with a point or, as the marks of a finished job do, with "_"; a pattern with *,
// ? or [] for the files and directories that it fits, by name; "-" for standard input. Numbers in
// names are ordered by their value. A path that is there is no pattern. NOT_FOUND,
// PERMISSION_DENIED and the like name the word for which there is no file. INVALID_ARGUMENT: a
// directory has others in it, or a file is named twice.
StatusOr<std::vector<std::string>> FilesOf(std::span<const std::string> words);

}  // namespace embank

#endif  // EMBANK_TRAIN_DATA_CLICK_FILES_H_
