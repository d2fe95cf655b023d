# Writes OUT, a source that names the commit of SOURCE_DIR, marked where the tree has changes. Run
# with every build, so that a figure never names a commit that did not make it. A copy of the
# sources inside another project's repository has no commit: that repository's would be wrong.
execute_process(COMMAND git -C ${SOURCE_DIR} rev-parse --show-prefix
  OUTPUT_VARIABLE prefix OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
if(NOT failed AND prefix STREQUAL "")
  execute_process(COMMAND git -C ${SOURCE_DIR} describe --always --dirty --abbrev=12 --exclude=*
    OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
else()
  set(failed TRUE)
endif()
if(failed)
  set(commit unknown)
endif()
file(CONFIGURE OUTPUT ${OUT} CONTENT [[
namespace embank {
extern const char kGitCommit[];
const char kGitCommit[] = "@commit@";
}  // namespace embank
]] @ONLY)
