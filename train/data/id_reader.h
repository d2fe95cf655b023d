// The ids of a field: one, or those of a bag.
#ifndef EMBANK_TRAIN_DATA_ID_READER_H_
#define EMBANK_TRAIN_DATA_ID_READER_H_

#include <cstdint>
#include <string_view>

#include "train/data/column_file.h"
#include "train/data/line_parser.h"

namespace embank {

// More ids in a bag break its line. 2^20 samples * 4,095 ids < 2^32, the range of an offset.
inline constexpr size_t kBagIdsMax = 4095;

// Reads the fields of one column. Where a field is none of its form, *wrong becomes the part that
// was not understood.
class IdReader {
 public:
  // The column outlives it.
  IdReader(const IdColumn& column, LogRules rules) : column_(column), rules_(rules) {}

  // Reads an id; kMissingId where the field has none.
  LineDefect ReadId(std::string_view field, uint64_t* id) const;
  // Replaces the ids and weights of a bag, which is empty where the field has none.
  LineDefect ReadBag(std::string_view field, RowBag* bag, std::string_view* wrong) const;

 private:
  bool IsMissing(std::string_view field) const;
  LineDefect Convert(std::string_view text, uint64_t* id) const;
  LineDefect ReadList(std::string_view field, RowBag* bag, std::string_view* wrong) const;
  LineDefect AddItem(std::string_view item, RowBag* bag) const;

  const IdColumn& column_;
  const LogRules rules_;
};

}  // namespace embank

#endif  // EMBANK_TRAIN_DATA_ID_READER_H_
