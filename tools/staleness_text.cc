#include "tools/staleness_text.h"

#include "base/str_cat.h"

namespace embank {
namespace {

double MeanOf(const RowRingCounts& counts) {
  if (counts.lookups == 0) return 0.0;
  return static_cast<double>(counts.staleness_sum) / static_cast<double>(counts.lookups);
}

}  // namespace

std::string StalenessText(const Trainer& trainer, const HybridOptions& options) {
  std::string text;
  if (const uint64_t forgotten = trainer.pass()->rows().counts().forgotten; forgotten > 0) {
    StrAppend(&text, "  forgotten      ", forgotten,
              " steps of rows that their tables had forgotten\n");
  }
  if (options.drop_updates > 0.0) {
    StrAppend(&text, "  lost updates   ", trainer.pass()->lost_updates(),
              " of rows, on purpose: --drop-updates ", options.drop_updates, "\n");
  }
  if (options.staleness == 0) return text;
  const RowRingCounts counts = trainer.pass()->rows().ring_counts();
  StrAppend(&text, "  staleness      ", options.staleness, ": lookups missed the updates of ",
            MeanOf(counts), " steps on average, of ", counts.staleness_max, " at most; ",
            options.deterministic ? "deterministic\n"
                                  : "another run may have other bits (--deterministic)\n");
  return text;
}

std::string StalenessJson(const Trainer& trainer, const HybridOptions& options) {
  std::string text = StrCat(", \"forgotten_steps\": ", trainer.pass()->rows().counts().forgotten,
                            ", \"lost_updates\": ", trainer.pass()->lost_updates());
  if (options.staleness == 0) return text;
  const RowRingCounts counts = trainer.pass()->rows().ring_counts();
  StrAppend(&text, ", \"staleness\": {\"bound\": ", options.staleness,
            ", \"lookups\": ", counts.lookups, ", \"updates\": ", counts.updates,
            ", \"mean\": ", MeanOf(counts), ", \"max\": ", counts.staleness_max,
            ", \"deterministic\": ", options.deterministic ? "true" : "false", "}");
  return text;
}

}  // namespace embank
