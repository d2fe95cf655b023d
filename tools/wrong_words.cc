#include "tools/wrong_words.h"

#include <algorithm>

#include "base/nearest_word.h"
#include "base/str_cat.h"
#include "tools/text_table.h"

namespace embank {
namespace {

std::string NoSuchWord(const char* kind, const std::string& typed,
                       const std::vector<std::string>& words) {
  const std::string nearest = NearestWord(typed, words);
  return StrCat("there is no ", kind, " '", Printable(typed), "'.",
                nearest.empty() ? "" : StrCat(" Did you mean '", nearest, "'?"));
}

}  // namespace

std::string CommandProblem(const std::string& program, const CommandLineWords& words,
                           const std::vector<std::pair<std::string, std::string>>& commands) {
  const std::string word = words.empty() ? "" : words[0];
  if (!word.empty() && word[0] == '-') return "";
  std::vector<std::string> names;
  size_t width = 0;
  for (const auto& [name, description] : commands) {
    if (word == name) return "";
    names.push_back(name);
    width = std::max(width, name.size());
  }
  std::string list;
  for (const auto& [name, description] : commands) {
    StrAppend(&list, "  ", name, std::string(width + 2 - name.size(), ' '), description, "\n");
  }
  return StrCat(
      program, ": ", words.empty() ? "name a command." : NoSuchWord("command", word, names),
      "\nCommands:\n", list, "Run '", program, " COMMAND --help' for the options of a command.\n");
}

std::string OptionProblem(const std::string& program, const CommandLineWords& words,
                          const std::vector<std::string>& options) {
  for (const std::string& word : words) {
    const std::string option = word.substr(0, word.find('='));
    if (!option.starts_with("--") || option == "--") continue;
    if (std::find(options.begin(), options.end(), option) != options.end()) continue;
    return StrCat(program, ": ", NoSuchWord("option", option, options), "\nRun '", program,
                  " --help' for the options.\n");
  }
  return "";
}

}  // namespace embank
