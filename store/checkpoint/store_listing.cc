#include "store/checkpoint/store_listing.h"

#include <algorithm>
#include <charconv>
#include <string_view>

#include "base/str_cat.h"

namespace embank {
namespace {

constexpr char kManifestPrefix[] = "MANIFEST-";
constexpr char kCompletedPrefix[] = "COMPLETED-";
constexpr char kHeatPrefix[] = "HEAT-";
constexpr char kSegmentPrefix[] = "segment-";
constexpr char kDirectoryPrefix[] = "PMEM-";
constexpr char kDraftSuffix[] = ".new";

// Returns the number behind a prefix; false: the name has another form.
template <typename Number>
bool ParseName(std::string_view name, std::string_view prefix, Number* number) {
  if (!name.starts_with(prefix) || name.size() != prefix.size() + 2 * sizeof(Number)) return false;
  const char* const end = name.data() + name.size();
  const auto [parsed, error] = std::from_chars(name.data() + prefix.size(), end, *number, 16);
  return error == std::errc() && parsed == end;
}

std::string NameOf(const char* prefix, uint32_t checkpoint) {
  return StrCat(prefix, Hex(checkpoint, 8));
}

}  // namespace

std::string ManifestName(uint32_t checkpoint) { return NameOf(kManifestPrefix, checkpoint); }
std::string CompletedName(uint32_t checkpoint) { return NameOf(kCompletedPrefix, checkpoint); }
std::string HeatName(uint32_t checkpoint) { return NameOf(kHeatPrefix, checkpoint); }
std::string DirectoryMarkName(uint64_t id) { return StrCat(kDirectoryPrefix, Hex(id, 16)); }

StoreListing StoreListing::Of(std::span<const std::string> names) {
  StoreListing listing;
  for (const std::string& name : names) {
    uint32_t checkpoint = 0;
    uint64_t segment = 0;
    uint64_t directory = 0;
    if (ParseName(name, kManifestPrefix, &checkpoint)) listing.checkpoints.push_back(checkpoint);
    if (name.starts_with(kManifestPrefix) && name.ends_with(kDraftSuffix)) {
      listing.drafts.push_back(name);
    }
    if (ParseName(name, kCompletedPrefix, &checkpoint)) listing.completed.insert(checkpoint);
    if (ParseName(name, kHeatPrefix, &checkpoint)) listing.heats[checkpoint] = 0;
    if (ParseName(name, kSegmentPrefix, &segment)) listing.segments.push_back(segment);
    if (ParseName(name, kDirectoryPrefix, &directory)) listing.directory_ids.insert(directory);
  }
  for (const uint64_t segment : listing.segments) {
    uint64_t& next = listing.next_segment_ids[NumberedIn(segment)];
    next = std::max(next, segment + 1);
  }
  std::sort(listing.checkpoints.begin(), listing.checkpoints.end());
  std::sort(listing.segments.begin(), listing.segments.end());
  std::sort(listing.drafts.begin(), listing.drafts.end());
  return listing;
}

uint32_t StoreListing::next_checkpoint() const {
  uint32_t newest = checkpoints.empty() ? 0 : checkpoints.back();
  if (!completed.empty()) newest = std::max(newest, *completed.rbegin());
  return newest == UINT32_MAX ? newest : newest + 1;
}

std::vector<std::string> StoreListing::SegmentsBeside(std::span<const Manifest* const> kept,
                                                      Tier tier) const {
  std::set<uint64_t> known;
  for (const Manifest* const manifest : kept) {
    for (const SegmentRows& rows : manifest->segments) {
      if (rows.tier == tier) known.insert(rows.header.segment_id);
    }
  }
  std::vector<std::string> names;
  for (const uint64_t segment : segments) {
    if (known.count(segment) == 0) names.push_back(SegmentName(segment));
  }
  return names;
}

std::vector<std::string> StoreListing::ManifestsBeside(std::span<const uint32_t> kept) const {
  std::vector<std::string> names = drafts;
  for (const uint32_t checkpoint : checkpoints) {
    if (std::find(kept.begin(), kept.end(), checkpoint) != kept.end()) continue;
    names.push_back(ManifestName(checkpoint));
  }
  return names;
}

std::vector<std::string> StoreListing::HeatBeside(std::span<const Manifest* const> kept) const {
  std::vector<std::string> names;
  for (const auto& heat : heats) {
    const bool is_kept = std::any_of(kept.begin(), kept.end(), [&](const Manifest* manifest) {
      return manifest->checkpoint == heat.first && manifest->heat.bytes > 0;
    });
    if (!is_kept) names.push_back(HeatName(heat.first));
  }
  return names;
}

}  // namespace embank
