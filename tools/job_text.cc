#include "tools/job_text.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <optional>

#include "base/status_macros.h"
#include "base/str_cat.h"

namespace embank {
namespace {

constexpr std::string_view kHead = "embank-train ";
constexpr std::string_view kSteps = "steps ";
constexpr std::string_view kOtherSteps = "steps of other data ";
constexpr std::string_view kRank = "rank ";
constexpr std::string_view kOfRanks = " of ";
constexpr std::string_view kJob = "job ";
constexpr std::string_view kStart = "start ";
constexpr std::string_view kReplicated = "replicated ";
constexpr std::string_view kSlices = "slices ";
constexpr std::string_view kData = "data ";
constexpr std::string_view kLast = "id features ";  // names follow, which may be any words

// Returns the first line with its end, and takes it off the text.
std::string_view NextLine(std::string_view* text) {
  const size_t end = std::min(text->find('\n'), text->size() - 1) + 1;
  const std::string_view line = text->substr(0, end);
  text->remove_prefix(end);
  return line;
}

std::string_view WithoutNewline(std::string_view line) {
  if (line.ends_with('\n')) line.remove_suffix(1);
  return line;
}

template <typename Number>
bool ReadNumber(std::string_view digits, Number* number) {
  const char* const end = digits.data() + digits.size();
  const std::from_chars_result result = std::from_chars(digits.data(), end, *number);
  return result.ec == std::errc() && result.ptr == end;
}

Status LacksLine(std::string_view words) {
  return DataLossError(
      StrCat("the text of the checkpoint lacks the line \"", WithoutNewline(words), "\""));
}

// "1 of 4"
bool ReadRank(std::string_view words, JobText* text) {
  const size_t end = words.find(kOfRanks);
  return end != std::string_view::npos && ReadNumber(words.substr(0, end), &text->rank) &&
         ReadNumber(words.substr(end + kOfRanks.size()), &text->ranks) && text->rank < text->ranks;
}

Status CheckVersion(std::string_view head) {
  if (!head.starts_with(kHead)) {
    return FailedPreconditionError("the store is of no training: its checkpoint has another blob");
  }
  const std::string_view version = head.substr(kHead.size());
  if (version == "2") return OkStatus();
  return FailedPreconditionError(
      StrCat("the text of the checkpoint has version ", version, ", and this program knows 2",
             version == "1" ? ": let embank-train make a new checkpoint of it" : ""));
}

std::string WithoutData(const JobText& text) {
  std::string_view rest = text.text;
  std::string lines;
  bool is_before_names = true;
  while (!rest.empty()) {
    const std::string_view line = NextLine(&rest);
    if (line.starts_with(kLast)) is_before_names = false;
    if (is_before_names && line.starts_with(kData)) continue;
    lines += line;
  }
  return lines;
}

}  // namespace

StatusOr<JobText> ReadJobText(std::string_view blob) {
  std::string_view rest = blob;
  if (blob.empty()) return CheckVersion("");
  const std::string_view head = NextLine(&rest);
  EMBANK_RETURN_IF_ERROR(CheckVersion(WithoutNewline(head)));
  JobText text;
  text.text = head;
  bool has_steps = false;
  bool has_slices = false;
  bool has_job = false;
  while (!rest.empty()) {
    const std::string_view line = NextLine(&rest);
    const std::string_view words = WithoutNewline(line);
    const auto take = [&](std::string_view key, auto* number) {
      return words.starts_with(key) && ReadNumber(words.substr(key.size()), number);
    };
    if (line.starts_with(kRank)) {
      if (!ReadRank(words.substr(kRank.size()), &text)) return LacksLine("rank R of W");
      continue;
    }
    if (line.starts_with(kJob)) {
      has_job = take(kJob, &text.job);
      continue;
    }
    if (line.starts_with(kStart)) {
      if (!take(kStart, &text.start)) return LacksLine("start S");
      continue;
    }
    if (line.starts_with(kReplicated)) {
      text.replicated.emplace_back(words.substr(kReplicated.size()));
    }
    text.text += line;
    has_steps |= take(kSteps, &text.steps);
    has_slices |= take(kSlices, &text.slices);
    if (line.starts_with(kOtherSteps)) text.rank_offset = text.text.size();
    if (line.starts_with(kLast)) break;
  }
  text.text += rest;
  if (!has_steps) return LacksLine(kSteps);
  if (!has_slices || text.slices == 0) return LacksLine(kSlices);
  if (text.rank_offset == 0) return LacksLine(kOtherSteps);
  if (has_job != (text.ranks > 1)) return LacksLine(has_job ? kRank : kJob);
  return text;
}

std::string BlobOfRank(const JobText& text, uint32_t rank, uint32_t ranks, uint64_t job) {
  if (ranks == 1) return text.text;
  return StrCat(text.text.substr(0, text.rank_offset), kRank, rank, kOfRanks, ranks, "\n", kJob,
                job, "\n", kStart, job, "\n", text.text.substr(text.rank_offset));
}

Status CheckSameTraining(const JobText& one, const JobText& other) {
  const std::string one_text = WithoutData(one);
  const std::string other_text = WithoutData(other);
  std::string_view ours = one_text;
  std::string_view theirs = other_text;
  while (!ours.empty() || !theirs.empty()) {
    const std::string_view our_line = ours.empty() ? "" : WithoutNewline(NextLine(&ours));
    const std::string_view their_line = theirs.empty() ? "" : WithoutNewline(NextLine(&theirs));
    if (our_line == their_line) continue;
    return FailedPreconditionError(
        StrCat("one has \"", our_line, "\", and the other one has \"", their_line, "\""));
  }
  return OkStatus();
}

Status CheckSlices(uint32_t slices, uint32_t ranks) {
  const auto fits = [&](uint32_t number) {
    return number == 1 || (slices % number == 0 && std::has_single_bit(slices / number));
  };
  if (fits(ranks)) return OkStatus();
  std::string others;
  for (uint32_t number = 1; number <= slices; ++number) {
    if (fits(number)) StrAppend(&others, others.empty() ? "" : ", ", number);
  }
  return InvalidArgumentError(
      StrCat("the training has ", slices, " slices, and it could not go on with ", ranks,
             " ranks: slices divided by ranks must be a power of two. It can go on with ", others));
}

}  // namespace embank
