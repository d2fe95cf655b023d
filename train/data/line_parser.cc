#include "train/data/line_parser.h"

namespace embank {

const char* DefectText(LineDefect defect) {
  switch (defect) {
    case LineDefect::kNone:
      return "it is whole";
    case LineDefect::kTooFewColumns:
      return "it has too few columns";
    case LineDefect::kTooManyColumns:
      return "it has too many columns";
    case LineDefect::kBadLabel:
      return "its label is no label";
    case LineDefect::kBadNumber:
      return "a dense feature is no number";
    case LineDefect::kDecimalComma:
      return "a number has a decimal comma in place of a point";
    case LineDefect::kBadId:
      return "an id is not of its format";
    case LineDefect::kUnknownId:
      return "an id is outside of its vocabulary";
    case LineDefect::kBadBag:
      return "a bag is not of its form";
    case LineDefect::kBadWeight:
      return "the weight of an id is no number";
    case LineDefect::kUnknownField:
      return "a field is not declared";
    case LineDefect::kTooManyIds:
      return "a bag has too many ids";
    case LineDefect::kOpenQuote:
      return "a quotation mark is missing";
    case LineDefect::kFileEnds:
      return "the file ends inside it";
    case LineDefect::kTooLong:
      return "it is too long";
    case LineDefect::kBlank:
      return "it is blank";
  }
  return "";
}

}  // namespace embank
