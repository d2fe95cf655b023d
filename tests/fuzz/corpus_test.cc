// A target on its kept inputs, and on mutations of them, in any build: no fuzzer is needed.
// EMBANK_FUZZ_CORPUS names the folder.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "tests/fuzz/fuzz_input.h"
#include "tests/support/environment.h"
#include "tests/support/random.h"

namespace embank::test::corpus_test {
namespace {

using Bytes = std::vector<std::byte>;

Bytes ReadFile(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  const std::span<const std::byte> bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

std::vector<Bytes> Corpus() {
  const char* const folder = std::getenv("EMBANK_FUZZ_CORPUS");
  EXPECT_NE(folder, nullptr) << "EMBANK_FUZZ_CORPUS must name the inputs (ctest sets it)";
  std::vector<std::filesystem::path> paths;
  if (folder != nullptr) {
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      paths.push_back(entry.path());
    }
  }
  std::sort(paths.begin(), paths.end());
  std::vector<Bytes> corpus;
  for (const std::filesystem::path& path : paths) corpus.push_back(ReadFile(path));
  return corpus;
}

void Mutate(Random* random, Bytes* bytes) {
  for (uint64_t change = random->Between(1, 4); change > 0; --change) {
    const auto at = static_cast<ptrdiff_t>(random->Below(bytes->size() + 1));
    const bool is_inside = at < static_cast<ptrdiff_t>(bytes->size());
    switch (random->Below(4)) {
      case 0:
        if (is_inside) bytes->at(static_cast<size_t>(at)) ^= std::byte{1} << random->Below(8);
        break;
      case 1:
        if (is_inside) bytes->at(static_cast<size_t>(at)) = static_cast<std::byte>(random->Bits());
        break;
      case 2:
        bytes->insert(bytes->begin() + at, static_cast<std::byte>(random->Bits()));
        break;
      default:
        bytes->resize(static_cast<size_t>(at));
    }
  }
}

TEST(Corpus, HasNothingThatATargetMustNotDo) {
  const std::vector<Bytes> corpus = Corpus();
  ASSERT_FALSE(corpus.empty());
  for (const Bytes& bytes : corpus) FuzzOne(bytes);
  FuzzOne({});
  Random random(4 + FirstSeed());
  const uint64_t mutations = EMBANK_FUZZ_MUTATIONS * TestScale();
  for (uint64_t i = 0; i < mutations; ++i) {
    Bytes bytes = corpus[random.Below(corpus.size())];
    Mutate(&random, &bytes);
    FuzzOne(bytes);
  }
  std::printf("%zu kept inputs, %llu mutations\n", corpus.size(),
              static_cast<unsigned long long>(mutations));
}

}  // namespace
}  // namespace embank::test::corpus_test
