// The shuffle schedule: how long phases of hot and of cold batches are, by losses.
#ifndef EMBANK_TRAIN_FAE_SHUFFLE_SCHEDULE_H_
#define EMBANK_TRAIN_FAE_SHUFFLE_SCHEDULE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace embank {

// Adnan et al. 2021, section 4.3, equation 5. Its text says that more frequent swaps help a loss
// that does not fall; the equation has the cases the other way round, and this has those of the
// text:
//
//   r(i + 1) = max(r(i) / 2, 1)    where the loss did not fall at swap i
//              min(2 r(i), 100)    where it fell at four swaps in a row, counted anew then
//              r(i)                else
//
// A pure function of the losses. A value.
class ShuffleSchedule {
 public:
  static constexpr double kRateMin = 1.0;    // percent
  static constexpr double kRateMax = 100.0;  // all batches of a class in one phase
  static constexpr double kRateFirst = 50.0;
  static constexpr uint32_t kFallsToDouble = 4;

  bool operator==(const ShuffleSchedule&) const = default;

  // Changes the rate by the loss at the end of a phase. The first loss has none before it, and
  // changes nothing. A loss that is equal to the one before it did not fall. Nor did one that is
  // NaN; losses after it are compared with the last one that was a number.
  void ApplyLoss(double loss);

  // The share of the batches of a class that a phase has, in percent.
  double rate() const { return rate_; }
  // Returns the length of a phase in batches, at least 1, for a class with `batches_of_class` an
  // epoch.
  uint64_t PhaseBatches(uint64_t batches_of_class) const;

  // Returns all of it as three words, exactly.
  std::string ToText() const;
  // Reads them; nothing: they are none.
  static std::optional<ShuffleSchedule> FromText(std::string_view text);

 private:
  double rate_ = kRateFirst;
  uint32_t falls_ = 0;  // in a row
  std::optional<double> last_loss_;
};

}  // namespace embank

#endif  // EMBANK_TRAIN_FAE_SHUFFLE_SCHEDULE_H_
