// How a process tells another how far it has come: bytes in a pipe, written before each thing that
// it does, so that a kill can be aimed at any of them.
#ifndef EMBANK_TESTS_CRASH_PROGRESS_H_
#define EMBANK_TESTS_CRASH_PROGRESS_H_

#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/files/file_system.h"

namespace embank::test {

// The step that is about to begin. File calls of any thread belong to the step of the main thread.
enum class Mark : char {
  kOpeningCall = 'o',     // of files, while the store opens
  kOpened = 'v',          // its rows are compared from here on
  kCompared = 'b',        // what was found has been noted
  kStep = 's',            // of the operations
  kStepCall = 'w',        // of files, in a step
  kCheckpoint = 'c',      // begins
  kCheckpointCall = 'k',  // of files, in it
  kRenaming = 'r',        // in it, the manifest is about to get its name
  kRenamed = 'd',         // in it, the directory is about to be synced behind that
  kNoted = 'n',           // it was made, and has been noted
};

// Thread-safe.
class Progress {
 public:
  // At the stop_count-th mark `stop` the thread that makes it waits for the kill; 0: none does.
  Progress(int fd, Mark stop, uint64_t stop_count)
      : fd_(fd), stop_(stop), stop_count_(stop_count) {}

  void Tell(Mark mark) {
    const bool stops = mark == stop_ && seen_.fetch_add(1) + 1 == stop_count_;
    // Nobody reads any more: nobody waits for this process.
    if (write(fd_, &mark, 1) != 1) std::_Exit(EXIT_FAILURE);
    while (stops) pause();
  }
  // Makes a mark, and says what file calls are from now on.
  void Enter(Mark mark, Mark call) {
    call_ = call;
    Tell(mark);
  }
  Mark call() const { return call_; }

 private:
  const int fd_;
  const Mark stop_;
  const uint64_t stop_count_;
  std::atomic<uint64_t> seen_{0};
  std::atomic<Mark> call_{Mark::kOpeningCall};
};

// The system's files; each call that names one makes a mark first.
class ProgressDirectory final : public Directory {
 public:
  ProgressDirectory(std::unique_ptr<Directory> directory, Progress* progress)
      : directory_(std::move(directory)), progress_(progress) {}

  const std::string& path() const override { return directory_->path(); }
  StatusOr<std::unique_ptr<File>> Open(const std::string& name, FileAccess access,
                                       FileCaching caching) override {
    Tell();
    return directory_->Open(name, access, caching);
  }
  Status Rename(const std::string& from, const std::string& to) override {
    // A draft of a manifest; other files are renamed behind it.
    const bool is_manifest = from.ends_with(".new") && to.starts_with("MANIFEST-");
    const bool is_checkpoint = is_manifest && progress_->call() == Mark::kCheckpointCall;
    progress_->Tell(is_checkpoint ? Mark::kRenaming : progress_->call());
    const Status renamed = directory_->Rename(from, to);
    if (is_checkpoint) renamed_ = true;
    return renamed;
  }
  Status Link(const std::string& from, Directory* directory, const std::string& to) override {
    Tell();
    return directory_->Link(from, static_cast<ProgressDirectory*>(directory)->directory_.get(), to);
  }
  Status Remove(const std::string& name) override {
    Tell();
    return directory_->Remove(name);
  }
  StatusOr<std::vector<std::string>> List() override {
    Tell();
    return directory_->List();
  }
  Status Sync() override {
    progress_->Tell(renamed_.exchange(false) ? Mark::kRenamed : progress_->call());
    return directory_->Sync();
  }
  Status SyncName() override {
    Tell();
    return directory_->SyncName();
  }
  Status RemoveItself() override {
    Tell();
    return directory_->RemoveItself();
  }
  StatusOr<std::unique_ptr<FileLock>> Lock(const std::string& name, bool shared) override {
    Tell();
    return directory_->Lock(name, shared);
  }
  StatusOr<std::unique_ptr<FileLock>> LockItself(bool shared) override {
    Tell();
    return directory_->LockItself(shared);
  }

 private:
  void Tell() { progress_->Tell(progress_->call()); }

  const std::unique_ptr<Directory> directory_;
  Progress* const progress_;
  std::atomic<bool> renamed_{false};
};

class ProgressFileSystem final : public FileSystem {
 public:
  ProgressFileSystem(std::unique_ptr<FileSystem> files, Progress* progress)
      : files_(std::move(files)), progress_(progress) {}

  Status CreateDirectory(const std::string& path) override {
    progress_->Tell(progress_->call());
    return files_->CreateDirectory(path);
  }
  StatusOr<std::unique_ptr<Directory>> OpenDirectory(const std::string& path) override {
    progress_->Tell(progress_->call());
    StatusOr<std::unique_ptr<Directory>> directory = files_->OpenDirectory(path);
    if (!directory.ok()) return directory.status();
    return std::make_unique<ProgressDirectory>(*std::move(directory), progress_);
  }
  void TransferAll(std::span<Transfer> transfers) override { files_->TransferAll(transfers); }
  uint32_t OpenFilesMax() const override { return files_->OpenFilesMax(); }

 private:
  const std::unique_ptr<FileSystem> files_;
  Progress* const progress_;
};

}  // namespace embank::test

#endif  // EMBANK_TESTS_CRASH_PROGRESS_H_
