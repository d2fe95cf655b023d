// embank_verify through the C API, on the machine's own files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "bindings/c/embank.h"
#include "bindings/c/embank.hpp"
#include "tests/support/c_api.h"
#include "tests/support/scratch_directory.h"

namespace embank::test::verify_c_api_test {
namespace {

using testing::HasSubstr;

class VerifyCApi : public testing::Test {
 protected:
  VerifyCApi() : directory_(scratch_.path() + "/store") {
    options_.path = directory_.c_str();
    options_.flags = EMBANK_OPEN_CREATE;
    options_.dram_bytes = uint64_t{16} << 20;
    store_ = OpenStore(options_);
    embank_table* const table = CreateTable(store_.get(), "t", TableOptions(3));
    const std::vector<uint64_t> keys = KeyRange(0, 100);
    const std::vector<float> rows(300, 1.5f);
    EXPECT_EQ(embank_upsert(table, keys.data(), 100, rows.data(), 0, nullptr), EMBANK_OK);
    EXPECT_EQ(embank_checkpoint(store_.get(), nullptr, 0, nullptr), EMBANK_OK);
  }
  void DamageManifest() { std::ofstream(directory_ + "/MANIFEST-00000001") << "nonsense"; }
  embank_status Verify(embank_progress progress = nullptr, void* user = nullptr) {
    return embank_verify(directory_.c_str(), progress, user, text_, sizeof text_, &needed_);
  }

  ScratchDirectory scratch_;
  const std::string directory_;
  embank_store_options options_ = StoreOptions();
  StorePtr store_;
  char text_[4096] = "as it was";
  uint64_t needed_ = 77;
};

TEST_F(VerifyCApi, ReportsAWholeStoreAndADamagedOne) {
  EXPECT_EQ(Verify(), EMBANK_UNAVAILABLE) << "it is open";
  EXPECT_STREQ(text_, "as it was");
  EXPECT_EQ(needed_, 77u);
  store_.reset();
  EXPECT_EQ(Verify(), EMBANK_OK) << embank_last_error();
  EXPECT_THAT(text_, HasSubstr("\"clean\":true"));
  EXPECT_EQ(needed_, std::string(text_).size() + 1);
  EXPECT_EQ(JsonNumber(text_, "rows"), 100);
  DamageManifest();
  EXPECT_EQ(Verify(), EMBANK_DATA_LOSS);
  EXPECT_THAT(text_, HasSubstr("\"clean\":false"));
  EXPECT_EQ(needed_, std::string(text_).size() + 1);
  EXPECT_THAT(embank_last_error(), HasSubstr(directory_));
}

TEST_F(VerifyCApi, AReportThatDoesNotFitIsToldByItsSize) {
  store_.reset();
  for (const bool damaged : {false, true}) {
    if (damaged) DamageManifest();
    const embank_status whole = damaged ? EMBANK_DATA_LOSS : EMBANK_OK;
    uint64_t needed = 0;
    EXPECT_EQ(embank_verify(directory_.c_str(), nullptr, nullptr, nullptr, 0, &needed), whole);
    std::vector<char> text(needed, '#');
    needed_ = 0;
    EXPECT_EQ(
        embank_verify(directory_.c_str(), nullptr, nullptr, text.data(), needed - 1, &needed_),
        EMBANK_RESOURCE_EXHAUSTED);
    EXPECT_EQ(needed_, needed);
    EXPECT_EQ(text[0], '#');
    EXPECT_EQ(embank_verify(directory_.c_str(), nullptr, nullptr, text.data(), needed, &needed_),
              whole);
    const auto report = api::Verify(directory_.c_str());
    EXPECT_TRUE(report.ok());
  }
  EXPECT_EQ(api::Verify((directory_ + "/none").c_str()).status().code, EMBANK_NOT_FOUND);
}

TEST_F(VerifyCApi, ProgressIsToldAndCancels) {
  store_.reset();
  struct Told {
    std::vector<uint64_t> done;
    uint64_t total = 0;
    uint64_t stop_at = ~uint64_t{0};
  } told;
  const embank_progress progress = [](uint64_t done, uint64_t total, void* user) -> int32_t {
    auto* const into = static_cast<Told*>(user);
    into->done.push_back(done);
    into->total = total;
    return done == into->stop_at ? 1 : 0;
  };
  EXPECT_EQ(Verify(progress, &told), EMBANK_OK);
  EXPECT_EQ(told.total, 1u);
  EXPECT_EQ(told.done, (std::vector<uint64_t>{0, 1}));
  EXPECT_THAT(text_, HasSubstr("clean"));
  text_[0] = '#';
  told.stop_at = 1;
  EXPECT_EQ(Verify(progress, &told), EMBANK_CANCELLED);
  EXPECT_EQ(text_[0], '#');
}

TEST_F(VerifyCApi, APathWithoutAStoreIsNotFound) {
  const std::string file = scratch_.path() + "/file";
  std::ofstream(file) << "text";
  for (const std::string& path : {file, scratch_.path(), scratch_.path() + "/nowhere"}) {
    const embank_status status =
        embank_verify(path.c_str(), nullptr, nullptr, text_, sizeof text_, &needed_);
    EXPECT_EQ(status, EMBANK_NOT_FOUND) << path << ": " << embank_last_error();
    EXPECT_EQ(std::string(embank_last_error()).rfind("directory: ", 0), 0u) << embank_last_error();
    EXPECT_THAT(embank_last_error(), HasSubstr(path));
  }
}

}  // namespace
}  // namespace embank::test::verify_c_api_test
