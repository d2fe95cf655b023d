// A directory that appears under its name when it is whole, or not at all.
//
//   TARGET.unfinished/UNFINISHED    locked while a process works there
//   TARGET.unfinished/made/...      ─▶ TARGET, by one rename
//
// A process that is killed leaves TARGET.unfinished. The next one that makes the same TARGET
// removes what is there.
#ifndef EMBANK_TOOLS_UNFINISHED_DIRECTORY_H_
#define EMBANK_TOOLS_UNFINISHED_DIRECTORY_H_

#include <memory>
#include <string>

#include "base/files/file_system.h"
#include "base/status.h"
#include "base/status_or.h"

namespace embank {

// One thread.
class UnfinishedDirectory {
 public:
  // Makes the directory beside the target, which does not exist or is empty. `files` outlives the
  // result.
  // kAlreadyExists: the target is not empty, or TARGET.unfinished is something else.
  // kUnavailable: another process makes the target.
  // The statuses of files.
  static StatusOr<std::unique_ptr<UnfinishedDirectory>> Make(FileSystem* files,
                                                             const std::string& target);
  // Removes what is left.
  ~UnfinishedDirectory();
  UnfinishedDirectory(const UnfinishedDirectory&) = delete;
  UnfinishedDirectory& operator=(const UnfinishedDirectory&) = delete;

  // The directory that becomes the target; it does not exist yet.
  const std::string& path() const { return made_; }
  // Gives it the target's name, durably. What is in it is durable. kAlreadyExists: the target is
  // not empty any more. The statuses of files; kUnavailable: the name was not changed, or may not
  // be durable.
  Status Finish();

 private:
  UnfinishedDirectory(FileSystem* files, std::string target);
  Status Begin();

  FileSystem* const files_;
  const std::string target_;
  const std::string around_;
  const std::string made_;
  std::unique_ptr<Directory> directory_;
  std::unique_ptr<FileLock> lock_;  // nullptr: it is not this object's
};

}  // namespace embank

#endif  // EMBANK_TOOLS_UNFINISHED_DIRECTORY_H_
