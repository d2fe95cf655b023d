#include "bench/html_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "bench/escaped_text.h"
#include "tests/bench/temporary_file.h"

namespace embank::html_report_test {
namespace {

using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

HtmlSection SomeSection(const std::string& title) {
  HtmlSection section;
  section.title = title;
  section.verdict = "All is well.";
  section.paragraphs = {"Some words."};
  section.facts = {{"machine", "a <machine>"}, {"command", "run 'it' & see"}};
  HtmlFigure figure;
  figure.plot.title = "Throughput & more";
  figure.plot.series = {{"lookups", {{1, 2}, {2, 3}}}};
  figure.caption = "a < b";
  section.figures = {figure};
  HtmlTable table;
  table.title = "Numbers";
  table.columns = {"name", "value"};
  table.rows = {{"x<y", "1"}};
  table.legend = "value: \"a number\"";
  section.tables = {table};
  table.title = "More";
  table.is_folded = true;
  section.tables.push_back(table);
  return section;
}

TEST(EscapedText, HasNoMarkup) {
  EXPECT_EQ(EscapedText("a<b>&\"c\"'d'"), "a&lt;b&gt;&amp;&quot;c&quot;&#39;d&#39;");
  EXPECT_EQ(EscapedText(std::string("a\0b\x1B[1m\x7F\n", 9)), "a?b?[1m?\n");
  EXPECT_EQ(EscapedText("\xC3\xA4 &amp;"), "\xC3\xA4 &amp;amp;");
  EXPECT_EQ(EscapedText(""), "");
}

TEST(SectionElement, ShowsAllPartsEscaped) {
  const std::string text = SectionElement(SomeSection("A run <1>"), 7);
  EXPECT_THAT(text,
              AllOf(HasSubstr("<section id=\"run-7\">\n<h2>A run &lt;1&gt;</h2>"),
                    HasSubstr(">All is well.</p>"), HasSubstr("<p class=\"text\">Some words.</p>"),
                    HasSubstr("<dt>machine</dt><dd>a &lt;machine&gt;</dd>"),
                    HasSubstr("run &#39;it&#39; &amp; see"), HasSubstr("<svg "),
                    HasSubstr("<h3>Throughput &amp; more</h3>"), HasSubstr("a &lt; b")));
  EXPECT_THAT(text, AllOf(HasSubstr("<h3>Numbers</h3>"), HasSubstr("<td>x&lt;y</td><td>1</td>"),
                          HasSubstr("value: &quot;a number&quot;"),
                          HasSubstr("<details><summary>More</summary>")));
  EXPECT_THAT(text, Not(HasSubstr("verdict failed")));
  HtmlSection failed = SomeSection("");
  failed.is_failed = true;
  EXPECT_THAT(SectionElement(failed, 1), HasSubstr("verdict failed"));
}

TEST(Page, IsMadeAndThenAddedTo) {
  const TemporaryFile file(".html");
  for (const char* title : {"First", "Second"}) {
    ASSERT_TRUE(CheckPage(file.path()).ok());
    ASSERT_TRUE(AppendToPage(file.path(), SomeSection(title)).ok());
  }
  const std::string page = file.Contents();
  EXPECT_THAT(page, AllOf(StartsWith("<!DOCTYPE html>"), EndsWith("</html>\n"),
                          Not(HasSubstr("<script")), HasSubstr("prefers-color-scheme: dark")));
  EXPECT_LT(page.find("<h2>First"), page.find("<h2>Second"));
  EXPECT_NE(page.find("<h2>Second"), std::string::npos);
  EXPECT_THAT(page, HasSubstr("<ol>\n<li><a href=\"#run-1\">First</a>. All is well.</li>\n"
                              "<li><a href=\"#run-2\">Second</a>. All is well.</li>\n"));
  EXPECT_LT(page.find("<section id=\"run-1\""), page.find("<section id=\"run-2\""));
  EXPECT_EQ(page.find("<html"), page.rfind("<html"));
  EXPECT_EQ(page.find("</body>"), page.rfind("</body>"));
}

TEST(Page, APageOfOthersIsNamedAndLeftAlone) {
  const TemporaryFile other(".html", "<!DOCTYPE html><p>mine</p>");
  for (const Status& status :
       {CheckPage(other.path()), AppendToPage(other.path(), SomeSection("x"))}) {
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), HasSubstr(other.path()));
  }
  EXPECT_EQ(other.Contents(), "<!DOCTYPE html><p>mine</p>");
  // Also a page of ours of which the end is missing.
  const TemporaryFile page(".html");
  ASSERT_TRUE(AppendToPage(page.path(), SomeSection("x")).ok());
  std::filesystem::resize_file(page.path(), page.Contents().size() - 10);
  EXPECT_FALSE(CheckPage(page.path()).ok());
}

TEST(Page, ThatCannotBeWrittenIsNamed) {
  EXPECT_THAT(std::string(CheckPage("/no/such/page.html").message()),
              HasSubstr("/no/such/page.html"));
  EXPECT_THAT(std::string(CheckPage(testing::TempDir()).message()), HasSubstr(testing::TempDir()));
}

TEST(Page, ThatMayNotBeReadIsLeftAlone) {
  if (geteuid() == 0) GTEST_SKIP() << "root reads every file";
  const TemporaryFile secret(".html", "secret");
  std::filesystem::permissions(secret.path(), std::filesystem::perms::owner_write);
  EXPECT_THAT(std::string(CheckPage(secret.path()).message()), HasSubstr("cannot be read"));
}

}  // namespace
}  // namespace embank::html_report_test
