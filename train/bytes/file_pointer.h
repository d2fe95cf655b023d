// A file that closes itself.
#ifndef EMBANK_TRAIN_BYTES_FILE_POINTER_H_
#define EMBANK_TRAIN_BYTES_FILE_POINTER_H_

#include <cstdio>
#include <memory>

namespace embank {

struct FileCloser {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using FilePointer = std::unique_ptr<std::FILE, FileCloser>;

}  // namespace embank

#endif  // EMBANK_TRAIN_BYTES_FILE_POINTER_H_
