// embank get: the rows of a few keys.
#include <charconv>
#include <cstdio>
#include <optional>

#include "base/status_macros.h"
#include "base/str_cat.h"
#include "store/batch/lookup.h"
#include "store/batch/state.h"
#include "store/inspect/json_text.h"
#include "tools/opened_table.h"
#include "tools/row_text.h"
#include "tools/table_command.h"
#include "tools/text_table.h"

namespace embank {
namespace {

// The rows of the keys, whose outcomes say which of them are there.
struct FoundRows {
  RowLayout layout;
  RowBuffer buffer;
  std::vector<uint8_t> outcomes;
  std::vector<std::optional<Tier>> tiers;

  Outcome At(size_t i) const { return static_cast<Outcome>(outcomes[i]); }
};

StatusOr<Key> ParseKey(const std::string& text) {
  const bool is_hex = text.starts_with("0x") || text.starts_with("0X");
  const char* const end = text.data() + text.size();
  Key key = 0;
  const auto read = std::from_chars(text.data() + (is_hex ? 2 : 0), end, key, is_hex ? 16 : 10);
  if (read.ec == std::errc() && read.ptr == end) return key;
  return InvalidArgumentError(StrCat("KEY is ", text, "; it must be 0 to ", UINT64_MAX,
                                     ", in decimal digits, or in hexadecimal ones after 0x"));
}

// Before a lookup, which may move a row to memory.
std::optional<Tier> TierOf(const Table& table, Key key) {
  const EpochTable::Guard guard(table.store().epochs);
  const Match match = table.store().index->Find(table.IdOf(key, table.HashOf(key)));
  return match.any() ? std::optional(match.location().tier()) : std::nullopt;
}

const char* TextOf(Tier tier) {
  constexpr const char* kNames[] = {"dram", "pmem", "ssd", "hbm"};
  return kNames[static_cast<uint32_t>(tier)];
}

StatusOr<FoundRows> FindRows(const TableCommand& command) {
  std::vector<Key> keys;
  for (const std::string& text : command.keys) {
    EMBANK_ASSIGN_OR_RETURN(const Key key, ParseKey(text));
    keys.push_back(key);
  }
  EMBANK_ASSIGN_OR_RETURN(const OpenedTable opened, OpenToRead(command));
  Table* const table = opened.table;
  const RowLayout& layout = table->layout();
  const size_t count = keys.size();
  FoundRows found = {.layout = layout,
                     .buffer = RowBuffer(layout, layout.state_floats > 0, true, count),
                     .outcomes = std::vector<uint8_t>(count),
                     .tiers = {}};
  for (size_t i = 0; i < count; ++i) {
    found.buffer.keys()[i] = keys[i];
    found.tiers.push_back(TierOf(*table, keys[i]));
  }
  std::vector<uint8_t> ignored(count);
  EMBANK_RETURN_IF_ERROR(GetHeat(table, keys, found.buffer.heats(), ignored));
  if (layout.state_floats > 0) {
    EMBANK_RETURN_IF_ERROR(GetState(table, keys, found.buffer.states(), ignored));
  }
  EMBANK_RETURN_IF_ERROR(
      Lookup(table, keys, MissingRule::kSkip, found.buffer.values(), found.outcomes));
  return found;
}

std::string TextOf(const TableCommand& command, FoundRows* found) {
  std::string text;
  for (size_t i = 0; i < found->outcomes.size(); ++i) {
    StrAppend(&text, "key ", found->buffer.keys()[i], ": ");
    if (found->At(i) == Outcome::kAbsent) {
      StrAppend(&text, "no row in table ", Printable(command.table), "\n");
    } else if (found->At(i) != Outcome::kFound) {
      StrAppend(&text, "CANNOT BE READ: embank verify names the damage\n");
    } else {
      const char* const tier = found->tiers[i] ? TextOf(*found->tiers[i]) : "unknown";
      StrAppend(&text, "tier ", tier, ", heat ", found->buffer.heats()[i], "\n  values");
      AppendValues(found->layout, found->buffer.values().Row(i), " ", NumberStyle::kPlain, &text);
      if (found->layout.state_floats > 0) {
        StrAppend(&text, "\n  state");
        AppendState(found->layout, found->buffer.states().Row(i), " ", NumberStyle::kPlain, &text);
      }
      text += '\n';
    }
  }
  return text;
}

std::string JsonOf(const TableCommand& command, FoundRows* found) {
  std::string rows;
  std::vector<Key> absent;
  std::vector<Key> unreadable;
  for (size_t i = 0; i < found->outcomes.size(); ++i) {
    const Key key = found->buffer.keys()[i];
    if (found->At(i) == Outcome::kAbsent) {
      absent.push_back(key);
    } else if (found->At(i) != Outcome::kFound) {
      unreadable.push_back(key);
    } else {
      rows += rows.empty() ? "{" : ",{";
      AppendJsonFields(found->layout, &found->buffer, i, &rows);
      if (found->tiers[i]) StrAppend(&rows, ",\"tier\":\"", TextOf(*found->tiers[i]), "\"");
      rows += '}';
    }
  }
  return StrCat("{\"table\":", JsonString(command.table), ",\"rows\":[", rows, "],\"absent\":[",
                StrJoin(absent, ","), "],\"unreadable\":[", StrJoin(unreadable, ","), "]}\n");
}

}  // namespace

ExitCode RunGet(const TableCommand& command) {
  StatusOr<FoundRows> found = FindRows(command);
  if (!found.ok()) return Fail(found.status());
  const std::string text = command.json ? JsonOf(command, &*found) : TextOf(command, &*found);
  std::fputs(text.c_str(), stdout);
  ExitCode code = ExitCode::kClean;
  for (size_t i = 0; i < found->outcomes.size(); ++i) {
    if (IsUnread(found->At(i))) return ExitCode::kDamaged;
    if (found->At(i) == Outcome::kAbsent) code = ExitCode::kAbsent;
  }
  return code;
}

}  // namespace embank
