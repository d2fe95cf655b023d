// A file that is whole or not there: it is written beside its place, and renamed at the end.
#ifndef EMBANK_TOOLS_OUTPUT_FILE_H_
#define EMBANK_TOOLS_OUTPUT_FILE_H_

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <span>
#include <string>
#include <string_view>

#include "base/status.h"

namespace embank {

// One thread. Without Finish it removes what it has written.
class OutputFile {
 public:
  // A file at `path`, or where a link at `path` leads. Each text stays where there is no file to
  // replace: on the standard output for "-", in a device, in a named pipe.
  explicit OutputFile(std::string path);
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  // Opens the file beside the place, with a name that no other file has. INVALID_ARGUMENT: the
  // place is a directory. Each call: UNAVAILABLE names the file and the error.
  Status Open();
  // Whether an end of the process would leave a file beside the place.
  bool has_part() const { return !part_.empty(); }
  Status Write(std::string_view text);
  // Writes at a place of a file that replaces another one. What lies before it may follow later.
  Status WriteAt(uint64_t offset, std::span<const std::byte> bytes);
  // Makes what was written durable, beside the place.
  Status Sync();
  // Closes it and puts it in its place, where it replaces another one.
  Status Rename();
  // The directory of its place, with all links followed.
  std::string directory() const;
  // Makes the names in that directory durable.
  Status SyncDirectory() const;
  // Removes the file that it is to replace, if there is one.
  Status RemoveReplaced() const;
  // Does Sync, SyncDirectory, Rename, and SyncDirectory again: a directory that cannot be opened is
  // found before the file is in its place.
  Status Finish();

 private:
  Status OpenPart();
  Status Failed(const char* what, int error) const;
  Status FailedAt(const std::string& path, const char* what, int error) const;

  const std::string path_;
  std::string place_;  // behind all links
  std::string part_;   // empty: it is written where it stays
  std::FILE* file_ = nullptr;
};

}  // namespace embank

#endif  // EMBANK_TOOLS_OUTPUT_FILE_H_
