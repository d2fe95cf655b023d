// The files of a table, of which readers find all new ones, all earlier ones, or none.
#ifndef EMBANK_TOOLS_OUTPUT_FILES_H_
#define EMBANK_TOOLS_OUTPUT_FILES_H_

#include <map>
#include <memory>
#include <span>
#include <string>

#include "base/status.h"
#include "tools/output_file.h"

namespace embank {

// One thread. Without Finish it removes what it has written.
class OutputFiles {
 public:
  // Opens a file. The statuses of OutputFile::Open, whose objects have the files' contents.
  Status Open(const std::string& path);
  OutputFile* file(const std::string& path) { return files_.at(path).get(); }

  // Puts all files in their places, durable, and removes the stale ones that no new one replaces.
  // Readers need the file `head` before all others: between earlier and new files it is missing,
  // also if the process ends. After an error, earlier files are as they were unless the message
  // says that `head` is not there, or that it is in place.
  Status Finish(const std::string& head, std::span<const std::string> stale);

 private:
  Status SyncDirectories() const;
  Status RemoveStale(std::span<const std::string> stale) const;
  Status ReplaceOthers(const std::string& head, std::span<const std::string> stale);

  std::map<std::string, std::unique_ptr<OutputFile>> files_;
};

}  // namespace embank

#endif  // EMBANK_TOOLS_OUTPUT_FILES_H_
