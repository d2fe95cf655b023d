// The images that a crash of the simulated disk leaves.
#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "base/check.h"
#include "tests/support/simulated_disk.h"

namespace embank::test {

size_t SimulatedDisk::changes() const {
  MutexLock lock(&mutex_);
  return changes_.size();
}

void SimulatedDisk::ClearHistory() {
  MutexLock lock(&mutex_);
  begin_ = now_;
  changes_.clear();
}

// The remains of a write that was under way: pieces of it, in sectors or cut at any byte. If it
// made the file longer, the new length may stay without the bytes.
std::vector<SimulatedDisk::Change> SimulatedDisk::PiecesOf(const Change& write, Random* random) {
  if (write.is_mapped) return LinesOf(write, random);
  constexpr uint64_t kSectorBytes = 512;
  const uint64_t end = write.offset + write.bytes.size();
  std::vector<Change> pieces;
  const auto keep = [&](uint64_t from, uint64_t to) {
    Change piece = write;
    piece.offset = from;
    piece.bytes.assign(write.bytes.begin() + static_cast<ptrdiff_t>(from - write.offset),
                       write.bytes.begin() + static_cast<ptrdiff_t>(to - write.offset));
    if (from < to) pieces.push_back(std::move(piece));
  };
  if (random->OneIn(2)) {
    Change length = write;
    length.kind = Change::Kind::kGrow;
    length.offset = length.begin = end;
    pieces.push_back(std::move(length));
  }
  const uint64_t cut = write.offset + random->Below(write.bytes.size() + 1);
  switch (random->Below(4)) {
    case 0:
      keep(write.offset, cut);
      break;
    case 1:
      keep(cut, end);
      break;
    case 2: {  // all but one sector
      const uint64_t hole = cut / kSectorBytes * kSectorBytes;
      keep(write.offset, std::clamp(hole, write.offset, end));
      keep(std::clamp(hole + kSectorBytes, write.offset, end), end);
      break;
    }
    default:  // each sector drawn
      for (uint64_t from = write.offset; from < end;) {
        const uint64_t to = std::min(end, (from / kSectorBytes + 1) * kSectorBytes);
        if (random->OneIn(2)) keep(from, to);
        from = to;
      }
  }
  return pieces;
}

// Draws the part of stores to mapped memory that a crash leaves. Cache lines leave the processor in
// any order, a word at a time. The last shapes lack one line, and one word.
std::vector<SimulatedDisk::Change> SimulatedDisk::LinesOf(const Change& write, Random* random) {
  constexpr uint64_t kLineBytes = 64;
  constexpr uint64_t kWordBytes = 8;
  const uint64_t end = write.offset + write.bytes.size();
  const uint64_t shape = random->Below(4);
  const uint64_t hole = write.offset + random->Below(write.bytes.size() + 1);
  uint64_t fate = 0;         // of a line: lost, whole, or each word drawn
  std::vector<Change> runs;  // of words
  for (uint64_t from = write.offset; from < end;) {
    const uint64_t to = std::min(end, (from / kWordBytes + 1) * kWordBytes);
    if (from == write.offset || from % kLineBytes == 0) fate = random->Below(shape == 0 ? 2 : 3);
    const bool is_drawn = fate == 1 || (fate == 2 && random->OneIn(2));
    const bool is_kept = shape < 2    ? is_drawn
                         : shape == 2 ? from / kLineBytes != hole / kLineBytes
                                      : from / kWordBytes != hole / kWordBytes;
    const bool goes_on = !runs.empty() && runs.back().offset + runs.back().bytes.size() == from;
    if (is_kept && !goes_on) {
      runs.push_back(
          {.kind = write.kind, .inode = write.inode, .offset = from, .path = write.path});
    }
    if (is_kept) {
      const auto begin = write.bytes.begin() + static_cast<ptrdiff_t>(from - write.offset);
      Bytes& bytes = runs.back().bytes;
      bytes.insert(bytes.end(), begin, begin + static_cast<ptrdiff_t>(to - from));
    }
    from = to;
  }
  return runs;
}

// Which changes something later among them has made durable; or that are so by themselves.
std::vector<bool> SimulatedDisk::DurableOf(std::span<const Change> changes) {
  using Kind = Change::Kind;
  std::vector<bool> durable(changes.size(), true);
  std::set<InodeNumber> synced;
  std::set<std::string> synced_directories;
  for (size_t i = changes.size(); i-- > 0;) {
    const Change& change = changes[i];
    switch (change.kind) {
      case Kind::kSync:
        synced.insert(change.inode);
        break;
      case Kind::kSyncFailed:
        synced.erase(change.inode);
        break;
      case Kind::kSyncDirectory:
        synced_directories.insert(change.path);
        break;
      case Kind::kSyncDirectoryFailed:
        synced_directories.erase(change.path);
        break;
      case Kind::kWrite:
      case Kind::kGrow:
        durable[i] = synced.count(change.inode) == 1;
        break;
      case Kind::kName:
      case Kind::kUnname:
      case Kind::kRename:
        durable[i] = synced_directories.count(DirectoryOf(change.path)) == 1;
        break;
      case Kind::kRot:
      case Kind::kCut:
        break;
    }
  }
  return durable;
}

std::string SimulatedDisk::ChangeName(size_t change) const {
  static constexpr const char* kNames[] = {"write",
                                           "growth",
                                           "sync",
                                           "failed sync",
                                           "name",
                                           "removal",
                                           "rename",
                                           "sync of a directory",
                                           "failed sync of a directory",
                                           "rot",
                                           "cut"};
  MutexLock lock(&mutex_);
  return kNames[static_cast<size_t>(changes_.at(change).kind)];
}

std::unique_ptr<SimulatedDisk> SimulatedDisk::AfterCrash(size_t change, Persistence persistence,
                                                         uint64_t seed) const {
  auto left = std::make_unique<SimulatedDisk>(medium_);
  MutexLock lock(&mutex_);
  EMBANK_CHECK(change <= changes_.size());
  const std::vector<bool> durable = DurableOf(std::span(changes_).first(change));
  const auto in_doubt = static_cast<uint64_t>(std::count(durable.begin(), durable.end(), false));
  uint64_t until_lost_one = in_doubt == 0 ? 0 : Random(seed).Below(in_doubt);
  State state = begin_;
  for (size_t i = 0; i < change; ++i) {
    if (durable[i]) {
      state.Apply(changes_[i]);
      continue;
    }
    // Each change has a random stream of its own, so that its fate does not depend on the other
    // changes.
    Random random(Random(seed).Bits() + i);
    const bool drawn = random.OneIn(2);
    const bool is_lost_one = until_lost_one-- == 0;  // wraps below zero
    const bool lost = persistence == Persistence::kNone ||
                      (persistence == Persistence::kAllButOne && is_lost_one) ||
                      (persistence >= Persistence::kSome && drawn);
    const bool torn = persistence == Persistence::kTorn && !lost && random.OneIn(2) &&
                      changes_[i].kind == Change::Kind::kWrite;
    if (torn) {
      for (const Change& piece : PiecesOf(changes_[i], &random)) state.Apply(piece);
    } else if (!lost) {
      state.Apply(changes_[i]);
    }
  }
  // Parents come before their contents.
  for (auto name = state.names.begin(); name != state.names.end();) {
    name = state.HasDirectory(DirectoryOf(name->first)) ? std::next(name) : state.names.erase(name);
  }
  for (auto& [number, inode] : state.inodes) {
    inode.open_files = 0;
    inode.is_mapped = false;
    inode.locks = {};
  }
  MutexLock left_lock(&left->mutex_);
  left->now_ = state;
  left->begin_ = std::move(state);
  left->next_inode_ = next_inode_;
  left->capacity_bytes_ = capacity_bytes_;
  return left;
}

}  // namespace embank::test
