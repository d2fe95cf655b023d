// Notes of a process about its store's checkpoints, in a file that outlives the process.
#ifndef EMBANK_TESTS_CRASH_CHECKPOINT_NOTES_H_
#define EMBANK_TESTS_CRASH_CHECKPOINT_NOTES_H_

#include <fcntl.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace embank::test {

struct CheckpointNote {
  char what = 'm';        // 'm': it was made; 'f': it was found, and its rows were as they must be
  uint64_t sequence = 0;  // 0: none yet
  uint64_t step = 0;
  uint64_t rows_in_log = 0;  // that memory did not have then
};

// Adds a line, durably.
inline void AddNote(const std::string& path, const CheckpointNote& note) {
  std::ostringstream line;
  line << note.what << ' ' << note.sequence << ' ' << note.step << ' ' << note.rows_in_log
       << " .\n";
  const std::string text = line.str();
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  const bool done = fd >= 0 && write(fd, text.data(), text.size()) == ssize_t(text.size()) &&
                    fsync(fd) == 0 && close(fd) == 0;
  if (!done) std::_Exit(EXIT_FAILURE);
}

// All lines that are whole.
inline std::vector<CheckpointNote> ReadNotes(const std::string& path) {
  std::vector<CheckpointNote> notes;
  std::ifstream file(path);
  CheckpointNote note;
  std::string end;
  while (file >> note.what >> note.sequence >> note.step >> note.rows_in_log >> end && end == ".") {
    notes.push_back(note);
  }
  return notes;
}

}  // namespace embank::test

#endif  // EMBANK_TESTS_CRASH_CHECKPOINT_NOTES_H_
