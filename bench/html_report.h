// A page of HTML that shows runs in pictures and tables. It is one file without scripts; each run
// adds a section.
#ifndef EMBANK_BENCH_HTML_REPORT_H_
#define EMBANK_BENCH_HTML_REPORT_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "bench/svg_plot.h"

namespace embank {

struct HtmlFigure {
  SvgPlot plot;         // its title is the figure's
  std::string caption;  // what there is to see
};

struct HtmlTable {
  std::string title;
  std::vector<std::string> columns;  // the first is aligned to the left, the others to the right
  std::vector<std::vector<std::string>> rows;
  std::string legend = {};  // what the columns mean
  bool is_folded = false;   // shown when its title is clicked
};

struct HtmlSection {
  std::string title;
  std::string verdict;     // one sentence: what the run has shown
  bool is_failed = false;  // the verdict is a failure
  std::vector<std::string> paragraphs;
  std::vector<std::pair<std::string, std::string>> facts;  // name and value: machine, commit, ...
  std::vector<HtmlFigure> figures;
  std::vector<HtmlTable> tables;
};

// The section as HTML, with the anchor run-`number`. All texts are escaped.
std::string SectionElement(const HtmlSection& section, uint64_t number);

// Checks that AppendToPage can work, before a long run is wasted. Changes nothing.
// INVALID_ARGUMENT: the file was not made here; else the reason why it cannot be written.
Status CheckPage(const std::string& path);

// Adds a section at the end of the page `path`, which is made if it is missing or empty, and its
// title and verdict to the list at the top. Statuses of CheckPage.
Status AppendToPage(const std::string& path, const HtmlSection& section);

}  // namespace embank

#endif  // EMBANK_BENCH_HTML_REPORT_H_
