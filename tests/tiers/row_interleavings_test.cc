// The values that readers of rows may see while the row is written, and while its slot goes to
// another row: all interleavings of the steps. Each protocol has variants without one of its steps,
// in which the search must find a violation.
#include <gtest/gtest.h>

#include <array>
#include <cstdint>

#include "tests/support/interleavings.h"
#include "tiers/row/row_header.h"

namespace embank::test::row_interleavings_test {
namespace {

constexpr TableId kTable = 3;
constexpr uint64_t kNoAnswer = ~uint64_t{0};  // starts again, or has not ended yet

enum class Fault : uint64_t {
  kNone,
  kNoOddVersion,
  kVersionBeforeWords,
  kNoRecheckOfTheRow,
  kNoRecheckOfTheEntry,
  kNoRetire,
  kVersionStartsAgain,
};

// ---- one row is written twice: 0, then 1, then 2 in both of its words ----

struct ReaderOfWords {
  uint64_t identity = 0;
  uint64_t committed_before = 0;
  std::array<uint64_t, 2> copy{};
  uint64_t answer = kNoAnswer;
  uint64_t wrong = 0;
};

struct WrittenRow : WriterAndReaders<WrittenRow, ReaderOfWords> {
  static constexpr uint64_t kWriterSteps = 8;
  static constexpr uint64_t kReaderSteps = 4;

  Fault fault = Fault::kNone;
  RowHeader header = {.key = 1, .identity = kTable, .usage = 0};
  std::array<uint64_t, 2> words{};
  uint64_t begun = 0;
  uint64_t committed = 0;
  uint64_t identity_before = 0;

  const char* Wrong() const {
    for (const ReaderOfWords& reader : readers) {
      if (reader.wrong == 1) return "a torn row";
      if (reader.wrong == 2) return "a row of another time";
    }
    return nullptr;
  }
  bool Answered() const { return readers[1].answer != kNoAnswer; }

  void Write(uint64_t step) { WriteOnce(step % 4, step / 4 + 1); }
  void WriteOnce(uint64_t step, uint64_t value) {
    const bool version_first = fault == Fault::kVersionBeforeWords;
    if (step == 0) {
      ++begun;
      identity_before = header.identity;
      if (fault != Fault::kNoOddVersion) BeginRowWrite(&header);
    }
    if (step == (version_first ? 2 : 1)) words[0] = value;
    if (step == (version_first ? 3 : 2)) words[1] = value;
    if (step == (version_first ? 1 : 3)) {
      EndRowWrite(&header, static_cast<uint32_t>(identity_before), kTable);
    }
    if (step == 3) ++committed;
  }
  void Read(uint32_t thread, uint64_t step, ReaderOfWords* reader) {
    switch (step) {
      case 0:
        reader->committed_before = committed;
        reader->identity = LoadIdentity(&header);
        if (IsBeingWritten(static_cast<uint32_t>(reader->identity))) Leave(thread);
        return;
      case 1:
      case 2:
        reader->copy[step - 1] = words[step - 1];
        return;
      default:
        if (fault != Fault::kNoRecheckOfTheRow && LoadIdentity(&header) != reader->identity) return;
        reader->answer = reader->copy[0];
        if (reader->copy[0] != reader->copy[1]) reader->wrong = 1;
        // It must have been the row at some moment while the reader read.
        if (reader->answer < reader->committed_before || reader->answer > begun) reader->wrong = 2;
    }
  }
};

TEST(RowInterleavings, AReaderSeesAWholeRowOfItsTimeOrStartsAgain) {
  const Interleavings all = AllInterleavingsWith<WrittenRow>(Fault::kNone);
  EXPECT_EQ(all.violation, "");
  EXPECT_GT(all.count, 10'000u);
  EXPECT_GT(all.answered, 3u);
}

TEST(RowInterleavings, WithoutAnOddVersionRowsAreTorn) {
  EXPECT_NE(AllInterleavingsWith<WrittenRow>(Fault::kNoOddVersion).violation, "");
}

TEST(RowInterleavings, WithAVersionThatEndsBeforeTheWordsRowsAreTorn) {
  EXPECT_NE(AllInterleavingsWith<WrittenRow>(Fault::kVersionBeforeWords).violation, "");
}

TEST(RowInterleavings, WithoutASecondLookAtTheVersionRowsAreTorn) {
  EXPECT_NE(AllInterleavingsWith<WrittenRow>(Fault::kNoRecheckOfTheRow).violation, "");
}

// ---- a row is erased and its slot goes to another key, whose entry has the very same word ----

struct ReaderOfKey {
  uint64_t identity = 0;
  uint64_t entered_before = 0;
  uint64_t seen = 0;
  uint64_t copy = 0;
  uint64_t answer = kNoAnswer;
  uint64_t wrong = 0;
};

// The first reader looks for the old key, the second for the new one.
struct ReusedSlot : WriterAndReaders<ReusedSlot, ReaderOfKey> {
  static constexpr uint64_t kReaderSteps = 6;
  static constexpr uint64_t kWriterSteps = 8;
  static constexpr Key kOldKey = 1;  // its row holds 1
  static constexpr Key kNewKey = 2;  // its row holds 2
  static constexpr uint64_t kEntry = 77;
  static constexpr uint64_t kAbsent = 0;

  Fault fault = Fault::kNone;
  RowHeader header = {.key = kOldKey, .identity = kTable, .usage = 0};
  uint64_t word = 1;
  uint64_t entry = kEntry;
  uint64_t taken_out = 0;  // the old key's entry was
  uint64_t entered = 0;    // the new key's entry was
  uint64_t identity_before = 0;

  const char* Wrong() const {
    for (const ReaderOfKey& reader : readers) {
      if (reader.wrong == 1) return "the row of another key";
      if (reader.wrong == 2) return "a row that is there was not found";
    }
    return nullptr;
  }
  bool Answered() const { return readers[1].answer != kNoAnswer; }

  void Write(uint64_t step) {
    switch (step) {
      case 0:
        entry = 0;
        taken_out = 1;
        return;
      case 1:
        if (fault == Fault::kNoRetire) return;
        identity_before = BeginRowWrite(&header);
        return;
      case 2:
        if (fault == Fault::kNoRetire) return;
        EndRowWrite(&header, static_cast<uint32_t>(identity_before), kNoTable);
        return;
      case 3:
        header.key = kNewKey;
        return;
      case 4:
        identity_before = BeginRowWrite(&header);
        return;
      case 5:
        word = 2;
        return;
      case 6:
        EndRowWrite(&header, static_cast<uint32_t>(identity_before), kTable);
        if (fault == Fault::kVersionStartsAgain) header.identity = kTable;
        return;
      default:
        entry = kEntry;
        entered = 1;
    }
  }
  void Read(uint32_t thread, uint64_t step, ReaderOfKey* reader) {
    const Key key = thread == 1 ? kOldKey : kNewKey;
    bool goes_on = true;
    switch (step) {
      case 0:
        reader->entered_before = entered;
        reader->seen = entry;
        goes_on = entry == kEntry;
        if (!goes_on) Answer(reader, key, kAbsent);
        break;
      case 1:
        reader->identity = LoadIdentity(&header);
        goes_on = TableOf(static_cast<uint32_t>(reader->identity)) == kTable &&
                  !IsBeingWritten(static_cast<uint32_t>(reader->identity));
        break;
      case 2:
        goes_on = LoadKey(&header) == key;
        break;
      case 3:
        reader->copy = word;
        break;
      case 4:
        goes_on = fault == Fault::kNoRecheckOfTheRow || LoadIdentity(&header) == reader->identity;
        break;
      default:
        if (fault == Fault::kNoRecheckOfTheEntry || entry == reader->seen) {
          Answer(reader, key, reader->copy);
        }
    }
    if (!goes_on) Leave(thread);
  }
  void Answer(ReaderOfKey* reader, Key key, uint64_t answer) {
    reader->answer = answer;
    if (answer != kAbsent && answer != key) reader->wrong = 1;
    const bool was_there_all_along = key == kOldKey ? taken_out == 0 : reader->entered_before == 1;
    if (answer == kAbsent && was_there_all_along) reader->wrong = 2;
  }
};

TEST(RowInterleavings, AReaderNeverTakesTheNextRowOfASlotForItsOwn) {
  const Interleavings all = AllInterleavingsWith<ReusedSlot>(Fault::kNone);
  EXPECT_EQ(all.violation, "");
  EXPECT_GT(all.count, 10'000u);
  EXPECT_GT(all.answered, 3u);
}

TEST(RowInterleavings, WithAVersionThatStartsAgainTheNextRowIsTakenForTheOld) {
  EXPECT_NE(AllInterleavingsWith<ReusedSlot>(Fault::kVersionStartsAgain).violation, "");
}

TEST(RowInterleavings, WithoutASecondLookAtTheVersionTheNextRowIsTakenForTheOld) {
  EXPECT_NE(AllInterleavingsWith<ReusedSlot>(Fault::kNoRecheckOfTheRow).violation, "");
}

// The new key is written to the header before its words are; that the old row was retired keeps it
// from meeting the old words.
TEST(RowInterleavings, WithoutRetiringTheOldRowItIsTakenForTheNext) {
  EXPECT_NE(AllInterleavingsWith<ReusedSlot>(Fault::kNoRetire).violation, "");
}

// The second look at the entry matters only for rows that move; for others, versions suffice.
TEST(RowInterleavings, WithoutASecondLookAtTheEntryTheVersionStillTells) {
  EXPECT_EQ(AllInterleavingsWith<ReusedSlot>(Fault::kNoRecheckOfTheEntry).violation, "");
}

}  // namespace
}  // namespace embank::test::row_interleavings_test
