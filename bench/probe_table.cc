#include "bench/probe_table.h"

#include <algorithm>
#include <bitset>
#include <span>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/random.h"
#include "base/status_macros.h"
#include "bench/table_options.h"

namespace embank {
namespace {

constexpr uint64_t kWordsPerLine = kProbeLineBytes / sizeof(uint64_t);

bool GivesOwnRows(uint32_t seed, std::span<const KeyHash> hashes) {
  const uint64_t word = MakeProbeWord(0, seed, static_cast<uint32_t>(hashes.size()));
  std::bitset<kProbeCountMax + 1> taken;
  for (const KeyHash hash : hashes) {
    const uint64_t row = ProbeRow(word, hash);
    if (taken.test(row)) return false;
    taken.set(row);
  }
  return true;
}

// The first seed that gives each hash a row of its own: for c hashes one seed of c^c / c! does, one
// of 2,755 for 10; so many share a word of 20 million rows in one run of 26. Without one, two keys
// share a row: nobody would notice.
uint32_t SeedFor(std::span<const KeyHash> hashes) {
  for (uint32_t seed = 0; seed <= kProbeSeedMax; ++seed) {
    if (GivesOwnRows(seed, hashes)) return seed;
  }
  return 0;
}

}  // namespace

uint64_t ProbeTable::IndexBytes(uint64_t rows) { return (rows * 10 / 49 + 1) * kProbeLineBytes; }

StatusOr<std::unique_ptr<ProbeTable>> ProbeTable::Create(const ProbeShape& shape) {
  EMBANK_ASSIGN_OR_RETURN(ProbeMemory index,
                          ProbeMemory::Create(IndexBytes(shape.rows), shape.pages));
  EMBANK_ASSIGN_OR_RETURN(ProbeMemory rows,
                          ProbeMemory::Create(shape.rows * shape.layout.row_bytes, shape.pages));
  std::unique_ptr<ProbeTable> table(new ProbeTable(std::move(index), std::move(rows)));
  table->Reshape(shape.rows, shape.layout);
  return table;
}

void ProbeTable::Reshape(uint64_t rows, const RowLayout& layout) {
  EMBANK_CHECK(IndexBytes(rows) <= index_.bytes() && rows * layout.row_bytes <= rows_.bytes());
  rows_count_ = rows;
  layout_ = layout;
  view_ = {reinterpret_cast<uint64_t*>(index_.data()),
           IndexBytes(rows) / kProbeLineBytes * kWordsPerLine,
           rows_.data(),
           rows * layout.row_bytes,
           layout.row_bytes,
           TableHash(kTableName)};
  next_row_.store(0, std::memory_order_relaxed);
}

void ProbeTable::Fill(KeySpan keys) {
  const uint64_t first_row = next_row_.fetch_add(keys.size(), std::memory_order_relaxed);
  EMBANK_CHECK(first_row + keys.size() <= rows_count_);
  WriteRows(view_, keys, first_row, layout_.payload_bytes());
}

void ProbeTable::FindRows(KeySpan keys) {
  EMBANK_CHECK(keys.size() == rows_count_);
  const std::span<uint64_t> words(view_.words, view_.words_count);
  std::fill(words.begin(), words.end(), 0);
  for (const Key key : keys) ++*WordOf(HashOf(key));
  uint64_t first_row = 0;
  for (uint64_t& word : words) {
    EMBANK_CHECK(word <= kProbeCountMax);
    first_row += std::exchange(word, MakeProbeWord(first_row, 0, 0));
  }
  std::vector<KeyHash> hashes(keys.size());  // by word
  for (const Key key : keys) {
    const KeyHash hash = HashOf(key);
    uint64_t* const word = WordOf(hash);
    hashes[ProbeFirstRow(*word) + ProbeCount(*word)] = hash;
    *word += MakeProbeWord(0, 0, 1);
  }
  for (uint64_t& word : words) {
    if (ProbeCount(word) < 2) continue;
    const auto shared = std::span(hashes).subspan(ProbeFirstRow(word), ProbeCount(word));
    word += MakeProbeWord(0, SeedFor(shared), 0);
  }
}

void ProbeTable::SetRandomRows(uint64_t seed) {
  const CounterRandom random(seed);
  for (uint64_t i = 0; i < view_.words_count; ++i) {
    view_.words[i] = MakeProbeWord(ProbePlace(random.Bits(i), rows_count_), 0, 1);
  }
}

uint64_t ProbeTable::RowOf(Key key) const {
  const KeyHash hash = HashOf(key);
  return ProbeRow(*WordOf(hash), hash);
}

}  // namespace embank
