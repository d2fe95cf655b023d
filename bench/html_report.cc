#include "bench/html_report.h"

#include <array>
#include <cerrno>
#include <cstdio>

#include "absl/strings/match.h"
#include "base/status_macros.h"
#include "base/status_or.h"
#include "base/str_cat.h"
#include "bench/escaped_text.h"
#include "bench/report.h"
#include "train/bytes/errno_status.h"
#include "train/bytes/file_pointer.h"

namespace embank {
namespace {

// The colours have a contrast of at least 4.5 to the page, in the light and in the dark; the second
// series is dashed, so that the lines differ without colours too.
constexpr const char* kHead = R"(<!DOCTYPE html>
<!-- a report of embank-bench -->
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Embank: what runs have shown</title>
<style>
:root { --page: #ffffff; --text: #1c1f23; --quiet: #59616b; --line: #d5dae0; --panel: #f5f7f9;
  --good: #176f2c; --bad: #b3201c; --series-0: #0757b8; --series-1: #b04a00; --mark: #6e7781; }
@media (prefers-color-scheme: dark) {
  :root { --page: #14171b; --text: #e4e7ea; --quiet: #a3abb5; --line: #383f47; --panel: #1d2126;
    --good: #5fce7b; --bad: #ff8a80; --series-0: #6cb2ff; --series-1: #ffa657; --mark: #98a1ab; } }
body { margin: 0 auto; padding: 1.5rem 1rem 4rem; max-width: 54rem; background: var(--page);
  color: var(--text); font: 1rem/1.5 system-ui, "DejaVu Sans", sans-serif; }
h1 { font-size: 1.7rem; margin: 0 0 .5rem; }
h2 { font-size: 1.35rem; margin: 3rem 0 .5rem; padding-top: 1rem;
  border-top: 1px solid var(--line); }
h3 { font-size: 1.05rem; margin: 2rem 0 .25rem; }
p { margin: .5rem 0; }
.verdict { font-weight: 600; color: var(--good); }
.failed { color: var(--bad); }
.caption, .legend { color: var(--quiet); font-size: .9rem; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .1rem 1rem; margin: 1rem 0;
  padding: .75rem 1rem; background: var(--panel); border-radius: .4rem; font-size: .9rem; }
dt { color: var(--quiet); }
dd { margin: 0; overflow-wrap: anywhere; }
dd.code { font-family: ui-monospace, "DejaVu Sans Mono", monospace; }
figure { margin: 0; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: .9rem; font-variant-numeric: tabular-nums; }
th, td { padding: .25rem .75rem; text-align: right; border-bottom: 1px solid var(--line);
  white-space: nowrap; }
th { color: var(--quiet); font-weight: 600; }
th:first-child, td:first-child { text-align: left; padding-left: 0; }
summary { cursor: pointer; font-size: 1.05rem; font-weight: 600; margin: 2rem 0 .5rem; }
.plot { display: block; width: 100%; height: auto; }
.plot text { font-size: 13px; fill: var(--quiet); }
.plot-grid { stroke: var(--line); }
.plot-axis { stroke: var(--quiet); }
.plot-mark { stroke: var(--mark); stroke-dasharray: 2 3; }
.plot-series-0 { --series: var(--series-0); }
.plot-series-1 { --series: var(--series-1); stroke-dasharray: 6 3; }
.plot-line { stroke: var(--series); stroke-width: 2; fill: none; stroke-linejoin: round; }
.plot-area { stroke: var(--series); stroke-width: 1.5; fill: var(--series); fill-opacity: .18; }
circle { fill: var(--series); }
</style>
</head>
<body>
<h1>Embank: what runs have shown</h1>
<p>Embank is a key-value store for embeddings. Programs have sent keys through it as a training
job does, or have trained a model with it. The list has what each run has shown. Its section says
where it was measured, and has pictures and the numbers.</p>
<ol>
<!-- the end of the summary -->
</ol>
)";
constexpr const char* kSummaryEnd = "<!-- the end of the summary -->\n";
constexpr const char* kBegin = "<!DOCTYPE html>\n<!-- a report of embank-bench -->\n";
constexpr const char* kEnd = "<!-- the end of the runs -->\n</body>\n</html>\n";

std::string Paragraph(const char* css_class, const std::string& words) {
  return StrCat("<p class=\"", css_class, "\">", EscapedText(words), "</p>\n");
}

std::string TableElement(const HtmlTable& table) {
  std::string text = table.is_folded
                         ? StrCat("<details><summary>", EscapedText(table.title), "</summary>")
                         : StrCat("<h3>", EscapedText(table.title), "</h3>");
  text += "\n<div class=\"wide\"><table>\n<tr>";
  for (const std::string& column : table.columns) {
    StrAppend(&text, "<th scope=\"col\">", EscapedText(column), "</th>");
  }
  text += "</tr>\n";
  for (const std::vector<std::string>& row : table.rows) {
    text += "<tr>";
    for (const std::string& cell : row) StrAppend(&text, "<td>", EscapedText(cell), "</td>");
    text += "</tr>\n";
  }
  text += "</table></div>\n";
  if (!table.legend.empty()) text += Paragraph("legend", table.legend);
  return table.is_folded ? text + "</details>\n" : text;
}

std::string FigureElement(const HtmlFigure& figure) {
  return StrCat("<figure>\n<h3>", EscapedText(figure.plot.title), "</h3>\n",
                Paragraph("caption", figure.caption), SvgElement(figure.plot), "</figure>\n");
}

// The contents of the file at `path`; "" where there is no file.
StatusOr<std::string> ReadPage(const std::string& path) {
  const FilePointer file(std::fopen(path.c_str(), "rb"));
  if (file == nullptr && errno == ENOENT) return "";
  std::string text;
  std::array<char, 4096> part;
  for (size_t n = 1; file != nullptr && n > 0;) {
    n = std::fread(part.data(), 1, part.size(), file.get());
    text.append(part.data(), n);
  }
  if (file == nullptr || std::ferror(file.get()) != 0) {
    return ErrnoStatus(errno, StrCat(path, ": cannot be read"));
  }
  const bool is_ours = absl::StartsWith(text, kBegin) && absl::EndsWith(text, kEnd) &&
                       absl::StrContains(text, kSummaryEnd);
  if (text.empty() || is_ours) return text;
  return InvalidArgumentError(
      StrCat(path, ": is there, and is no page of embank-bench: name another file"));
}

uint64_t SectionsOf(const std::string& page) {
  uint64_t count = 0;
  for (size_t at = 0; (at = page.find("\n<section ", at)) != std::string::npos; ++at) ++count;
  return count;
}

std::string SummaryElement(const HtmlSection& section, uint64_t number) {
  return StrCat("<li", section.is_failed ? " class=\"failed\"" : "", "><a href=\"#run-", number,
                "\">", EscapedText(section.title), "</a>. ", EscapedText(section.verdict),
                "</li>\n");
}

}  // namespace

std::string SectionElement(const HtmlSection& section, uint64_t number) {
  std::string text =
      StrCat("<section id=\"run-", number, "\">\n<h2>", EscapedText(section.title), "</h2>\n",
             Paragraph(section.is_failed ? "verdict failed" : "verdict", section.verdict));
  for (const std::string& words : section.paragraphs) text += Paragraph("text", words);
  text += "<dl>\n";
  for (const auto& [name, value] : section.facts) {
    StrAppend(&text, "<dt>", EscapedText(name), "</dt><dd",
              name == "command" || name == "commit" ? " class=\"code\">" : ">", EscapedText(value),
              "</dd>\n");
  }
  text += "</dl>\n";
  for (const HtmlFigure& figure : section.figures) text += FigureElement(figure);
  for (const HtmlTable& table : section.tables) text += TableElement(table);
  return text + "</section>\n";
}

Status CheckPage(const std::string& path) {
  EMBANK_RETURN_IF_ERROR(ReadPage(path).status());
  return CheckWritable(path);
}

Status AppendToPage(const std::string& path, const HtmlSection& section) {
  EMBANK_ASSIGN_OR_RETURN(std::string text, ReadPage(path));
  if (text.empty()) text = StrCat(kHead, kEnd);
  const uint64_t number = SectionsOf(text) + 1;
  text.insert(text.size() - std::char_traits<char>::length(kEnd), SectionElement(section, number));
  text.insert(text.find(kSummaryEnd), SummaryElement(section, number));
  return WriteFile(path, text);
}

}  // namespace embank
