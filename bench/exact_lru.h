// An exact LRU cache of ids, without values: one list through arrays of links.
#ifndef EMBANK_BENCH_EXACT_LRU_H_
#define EMBANK_BENCH_EXACT_LRU_H_

#include <cstdint>
#include <vector>

namespace embank {

// Ids are below `ids`. The cache takes in every id that it misses.
class ExactLru {
 public:
  static constexpr uint32_t kNone = 0xFFFFFFFF;

  ExactLru(uint32_t ids, uint32_t capacity) : links_(ids + 1), end_(ids), capacity_(capacity) {
    links_[end_] = {end_, end_};
  }

  // Whether the id was there. From now on it is the newest one, and the oldest one leaves if that
  // makes one too many.
  bool Access(uint32_t id) {
    const bool has = links_[id].next != kNone;
    if (has) {
      Unlink(id);
    } else if (capacity_ == 0) {
      return false;
    } else if (count_ == capacity_) {
      const uint32_t oldest = links_[end_].previous;
      Unlink(oldest);
      links_[oldest].next = kNone;
    } else {
      ++count_;
    }
    LinkFirst(id);
    return has;
  }

 private:
  struct Links {
    uint32_t previous = kNone;
    uint32_t next = kNone;  // kNone: the id is not there
  };

  void Unlink(uint32_t id) {
    const Links links = links_[id];
    links_[links.previous].next = links.next;
    links_[links.next].previous = links.previous;
  }
  void LinkFirst(uint32_t id) {
    const uint32_t first = links_[end_].next;
    links_[id] = {end_, first};
    links_[first].previous = id;
    links_[end_].next = id;
  }

  std::vector<Links> links_;  // by id, and of the end of the list
  const uint32_t end_;
  const uint32_t capacity_;
  uint32_t count_ = 0;
};

}  // namespace embank

#endif  // EMBANK_BENCH_EXACT_LRU_H_
