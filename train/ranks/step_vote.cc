#include "train/ranks/step_vote.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/status_macros.h"
#include "base/str_cat.h"
#include "train/dense/slices.h"

namespace embank {
namespace {

constexpr size_t kMessageBytes = 388;  // 432 bytes of a ballot - 44 of all else

// A ballot on its way. The losses of the rank's slices and the logits of their samples follow it.
struct SentBallot {
  uint64_t step;
  uint64_t left_out;
  uint64_t lost_updates;
  uint32_t samples;
  uint32_t batch_crc32c;
  uint32_t hot_rows_crc32c;
  uint16_t code;
  uint16_t message_bytes;
  uint8_t are_sums_finite;
  uint8_t wants_end;
  std::array<char, kMessageBytes> message;
};

SentBallot Packed(const Ballot& ballot) {
  SentBallot sent = {};
  sent.step = ballot.step;
  sent.left_out = ballot.left_out;
  sent.lost_updates = ballot.lost_updates;
  sent.samples = ballot.samples;
  sent.batch_crc32c = ballot.batch_crc32c;
  sent.hot_rows_crc32c = ballot.hot_rows_crc32c;
  sent.code = static_cast<uint16_t>(ballot.status.code());
  const std::string message(ballot.status.message().substr(0, kMessageBytes));
  sent.message_bytes = static_cast<uint16_t>(message.size());
  std::ranges::copy(message, sent.message.begin());
  sent.are_sums_finite = ballot.are_sums_finite ? 1 : 0;
  sent.wants_end = ballot.wants_end ? 1 : 0;
  return sent;
}

// The results of a rank, and their bytes.
struct ResultsOfRank {
  std::span<double> losses;
  std::span<float> logits;

  uint64_t bytes() const { return losses.size_bytes() + logits.size_bytes(); }
};

ResultsOfRank ResultsOf(const BatchResults& results, uint32_t ranks, uint32_t rank) {
  const auto slices = static_cast<uint32_t>(results.losses.size());
  const SampleRange of_rank = SliceOf(slices, ranks, rank);
  const auto samples = static_cast<uint32_t>(results.logits.size());
  const uint32_t begin = SliceOf(samples, slices, of_rank.begin).begin;
  const uint32_t end = SliceOf(samples, slices, of_rank.end - 1).end;
  return {results.losses.subspan(of_rank.begin, of_rank.end - of_rank.begin),
          results.logits.subspan(begin, end - begin)};
}

// Another step or batch means that ranks do not make the same calls.
Status CheckSameBatch(const SentBallot& first, const SentBallot& other, uint32_t rank) {
  const bool is_same_step = first.step == other.step && first.samples == other.samples;
  if (is_same_step && first.batch_crc32c == other.batch_crc32c) return OkStatus();
  if (is_same_step) {
    return FailedPreconditionError(StrCat("rank ", rank, " has other samples behind step ",
                                          first.step,
                                          " than rank 0: all ranks must have the same "
                                          "data"));
  }
  return InternalError(StrCat("rank ", rank, " is at step ", other.step, " with ", other.samples,
                              " samples, and rank 0 at step ", first.step, " with ", first.samples,
                              ": all ranks must have the same data"));
}

}  // namespace

StatusOr<Verdict> StepVote::Run(const Ballot& ballot, SliceRange own, const BatchResults& results) {
  const uint32_t ranks = exchange_->ranks();
  const ResultsOfRank of_own = ResultsOf(results, ranks, exchange_->rank());
  EMBANK_CHECK(of_own.losses.size() == own.size());
  const SentBallot packed = Packed(ballot);
  const uint64_t bytes = sizeof(packed) + of_own.bytes();
  sent_.LayOne(bytes, ranks);
  std::byte* const to = sent_.data();
  std::memcpy(to, &packed, sizeof(packed));
  std::memcpy(to + sizeof(packed), of_own.losses.data(), of_own.losses.size_bytes());
  if (!of_own.logits.empty()) {
    std::memcpy(to + sizeof(packed) + of_own.losses.size_bytes(), of_own.logits.data(),
                of_own.logits.size_bytes());
  }
  sent_.ClearPadding(0, bytes);
  std::vector<uint64_t> sizes;
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    sizes.push_back(sizeof(SentBallot) + ResultsOf(results, ranks, rank).bytes());
  }
  received_.Lay(sizes);
  EMBANK_RETURN_IF_ERROR(exchange_->Run(sent_.source(), received_.target()));
  Verdict verdict;
  std::optional<SentBallot> first;
  Status hot_rows;
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    const std::byte* const from = received_.data() + received_.parts()[rank].begin;
    SentBallot of_rank;
    std::memcpy(&of_rank, from, sizeof(of_rank));
    if (!first) first = of_rank;
    EMBANK_RETURN_IF_ERROR(CheckSameBatch(*first, of_rank, rank));
    const auto code = static_cast<StatusCode>(of_rank.code);
    if (code != StatusCode::kOk) {
      return Status(code, StrCat("rank ", rank, ": ",
                                 std::string_view(of_rank.message.data(), of_rank.message_bytes)));
    }
    if (hot_rows.ok() && of_rank.hot_rows_crc32c != first->hot_rows_crc32c) {
      hot_rows = InternalError(StrCat("rank ", rank, " has other hot rows than rank 0 after step ",
                                      first->step, ": this is a defect of Embank"));
    }
    verdict.are_sums_finite &= of_rank.are_sums_finite != 0;
    verdict.wants_end |= of_rank.wants_end != 0;
    verdict.left_out += of_rank.left_out;
    verdict.lost_updates += of_rank.lost_updates;
    const ResultsOfRank to_rank = ResultsOf(results, ranks, rank);
    std::memcpy(to_rank.losses.data(), from + sizeof(of_rank), to_rank.losses.size_bytes());
    if (to_rank.logits.empty()) continue;
    std::memcpy(to_rank.logits.data(), from + sizeof(of_rank) + to_rank.losses.size_bytes(),
                to_rank.logits.size_bytes());
  }
  // A rank that failed has said why.
  EMBANK_RETURN_IF_ERROR(hot_rows);
  return verdict;
}

}  // namespace embank
