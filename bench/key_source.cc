#include "bench/key_source.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "bench/id_mode.h"
#include "train/generator/zipf.h"

namespace embank {
namespace {

constexpr uint64_t kGeneratedPositions = uint64_t{1} << 21;
constexpr uint64_t kGeneratedIds = 1'000'000;
constexpr double kGeneratedExponent = 1.05;

class TraceSource final : public KeySource {
 public:
  TraceSource(std::string path, std::unique_ptr<TraceReader> reader)
      : path_(std::move(path)), reader_(std::move(reader)) {}

  StatusOr<size_t> Read(std::span<Key> keys) override { return reader_->Read(keys); }
  double FractionRead() const override { return reader_->FractionRead(); }
  std::string Description() const override { return path_.substr(path_.rfind('/') + 1); }

 private:
  const std::string path_;
  const std::unique_ptr<TraceReader> reader_;
};

class GeneratedSource final : public KeySource {
 public:
  GeneratedSource(const ZipfSampler& sampler, IdMapper mapper)
      : sampler_(sampler), mapper_(std::move(mapper)) {}

  StatusOr<size_t> Read(std::span<Key> keys) override {
    keys = keys.first(std::min<uint64_t>(keys.size(), kGeneratedPositions - position_));
    sampler_.Ranks(position_, keys);
    mapper_.Map(keys);
    position_ += keys.size();
    return keys.size();
  }
  double FractionRead() const override {
    return static_cast<double>(position_) / static_cast<double>(kGeneratedPositions);
  }
  std::string Description() const override {
    return absl::StrFormat("generated: zipf %.2f over %d ids, hashed to 64 bits",
                           kGeneratedExponent, kGeneratedIds);
  }

 private:
  const ZipfSampler sampler_;
  IdMapper mapper_;
  uint64_t position_ = 0;
};

}  // namespace

StatusOr<std::unique_ptr<KeySource>> OpenTraceSource(const std::string& path,
                                                     std::optional<TraceFormat> format) {
  EMBANK_ASSIGN_OR_RETURN(std::unique_ptr<TraceReader> reader, TraceReader::Open(path, format));
  return std::make_unique<TraceSource>(path, std::move(reader));
}

StatusOr<std::unique_ptr<KeySource>> MakeGeneratedSource(uint64_t seed) {
  EMBANK_ASSIGN_OR_RETURN(const ZipfSampler sampler,
                          ZipfSampler::Create(kGeneratedIds, kGeneratedExponent, seed));
  EMBANK_ASSIGN_OR_RETURN(IdMapper mapper, IdMapper::Create(IdMode::kHashed, kGeneratedIds, seed));
  return std::make_unique<GeneratedSource>(sampler, std::move(mapper));
}

StatusOr<std::vector<Key>> ReadKeys(KeySource* source, uint64_t keys_at_once, uint64_t keys_max) {
  std::vector<Key> keys;
  for (size_t read = 1; read > 0 && keys.size() < keys_max;) {
    const size_t begin = keys.size();
    keys.resize(begin + std::min(keys_at_once, keys_max - begin));
    EMBANK_ASSIGN_OR_RETURN(read, source->Read(std::span(keys).subspan(begin)));
    keys.resize(begin + read);
  }
  return keys;
}

}  // namespace embank
