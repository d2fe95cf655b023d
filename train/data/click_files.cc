#include "train/data/click_files.h"

#include <glob.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <string_view>
#include <system_error>

#include "base/status_macros.h"
#include "base/str_cat.h"
#include "train/bytes/byte_source.h"
#include "train/bytes/errno_status.h"

namespace embank {
namespace {

using Paths = std::vector<std::string>;

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// Takes the digits that a text begins with, without zeros in front.
std::string_view TakeNumber(std::string_view* text) {
  const auto end = std::ranges::find_if_not(*text, IsDigit);
  std::string_view digits(text->begin(), end);
  text->remove_prefix(digits.size());
  while (digits.starts_with('0')) digits.remove_prefix(1);
  return digits;
}

// By name, but numbers by their value: day_9 comes before day_10, so that a log that gets a file
// each day goes on at its end.
bool ComesBefore(std::string_view a, std::string_view b) {
  const std::string_view whole_a = a;
  const std::string_view whole_b = b;
  while (!a.empty() && !b.empty()) {
    if (IsDigit(a[0]) && IsDigit(b[0])) {
      const std::string_view number_a = TakeNumber(&a);
      const std::string_view number_b = TakeNumber(&b);
      if (number_a == number_b) continue;
      return number_a.size() != number_b.size() ? number_a.size() < number_b.size()
                                                : number_a < number_b;
    }
    if (a[0] != b[0]) return a[0] < b[0];
    a.remove_prefix(1);
    b.remove_prefix(1);
  }
  if (a.empty() != b.empty()) return a.empty();
  return whole_a < whole_b;
}

Status AppendDirectory(const std::string& path, Paths* files) {
  Paths found;
  std::string directory;
  std::error_code error;
  for (auto entry = std::filesystem::directory_iterator(path, error);
       !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    std::error_code of_entry;
    if (name.starts_with('.') || name.starts_with('_')) continue;
    if (entry->is_regular_file(of_entry)) found.push_back(entry->path().string());
    if (entry->is_directory(of_entry)) directory = name;
  }
  if (error) return ErrnoStatus(error.value(), StrCat(path, ": cannot read"));
  // Half of the data must not be left out in silence.
  if (!directory.empty()) {
    return InvalidArgumentError(StrCat(path, ": has the directory ", directory,
                                       " in it, whose files are not read; give '", path,
                                       "/*' for all files and directories in it, or name files"));
  }
  if (found.empty()) {
    return NotFoundError(StrCat(
        path, ": is a directory without files, but for those whose names begin with . or _"));
  }
  std::ranges::sort(found, ComesBefore);
  files->insert(files->end(), found.begin(), found.end());
  return OkStatus();
}

// The paths that a pattern fits, in order.
StatusOr<Paths> Matches(const std::string& pattern) {
  glob_t found{};
  // Without ~, it shares the environment and the locale alone, which no thread changes.
  // NOLINTNEXTLINE(concurrency-mt-unsafe)
  const int result = glob(pattern.c_str(), GLOB_NOSORT, nullptr, &found);
  Paths paths(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  globfree(&found);
  std::ranges::sort(paths, ComesBefore);
  if (result == GLOB_NOMATCH) return NotFoundError(StrCat(pattern, ": no file fits the pattern"));
  if (result != 0) return UnknownError(StrCat(pattern, ": cannot look for files"));
  return paths;
}

// The lines of a file that is named twice would be trained twice.
Status CheckNamedOnce(const Paths& files) {
  std::map<std::string, const std::string*> named;
  for (const std::string& file : files) {
    std::error_code error;
    const std::filesystem::path path = std::filesystem::canonical(file, error);
    // Standard input and some pipes have no path.
    const bool has_path = !error && file != kStandardInput;
    const auto [other, is_new] = named.try_emplace(has_path ? path.string() : file, &file);
    if (is_new) continue;
    const std::string& before = *other->second;
    const std::string twice =
        before == file ? "is named twice" : StrCat("is the same file as ", before);
    return InvalidArgumentError(
        StrCat(file, ": ", twice, ", and its lines would be read twice; name it once"));
  }
  return OkStatus();
}

}  // namespace

StatusOr<std::vector<std::string>> FilesOf(std::span<const std::string> words) {
  Paths files;
  for (const std::string& word : words) {
    std::error_code error;
    Paths paths = {word};
    const bool is_pattern = word.find_first_of("*?[") != std::string::npos;
    if (is_pattern && !std::filesystem::exists(word, error)) {
      EMBANK_ASSIGN_OR_RETURN(paths, Matches(word));
    }
    for (const std::string& path : paths) {
      const bool is_input = path == kStandardInput;
      const bool is_directory = !is_input && std::filesystem::is_directory(path, error);
      if (!is_input && error) return ErrnoStatus(error.value(), StrCat(path, ": cannot open"));
      if (is_directory) {
        EMBANK_RETURN_IF_ERROR(AppendDirectory(path, &files));
      } else {
        files.push_back(path);
      }
    }
  }
  EMBANK_RETURN_IF_ERROR(CheckNamedOnce(files));
  return files;
}

}  // namespace embank
