// Says which word of a command line is wrong, and which one was probably meant.
#ifndef EMBANK_TOOLS_WRONG_WORDS_H_
#define EMBANK_TOOLS_WRONG_WORDS_H_

#include <string>
#include <utility>
#include <vector>

namespace embank {

// The words of a command line behind the name of the program.
using CommandLineWords = std::vector<std::string>;

// Says why the first word is no command, and lists the commands, which are names and descriptions.
// Empty if the word is a command, or an option of the program.
std::string CommandProblem(const std::string& program, const CommandLineWords& words,
                           const std::vector<std::pair<std::string, std::string>>& commands);

// Names the first word that looks like an option and is none of `options`, which begin with "--".
// Empty if there is none.
std::string OptionProblem(const std::string& program, const CommandLineWords& words,
                          const std::vector<std::string>& options);

}  // namespace embank

#endif  // EMBANK_TOOLS_WRONG_WORDS_H_
