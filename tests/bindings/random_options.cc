// Steps that change the options of a table.
#include "tests/bindings/differences.h"
#include "tests/bindings/random_run.h"

namespace embank::test {

std::string RandomRun::LearningRate(LiveTable* live) {
  float rate = RandomLearningRate(live->oracle->options().optimizer, &random_);
  live->oracle->SetLearningRate(rate);
  events_->Count("learning rates set");
  return StatusDifference(embank_set_learning_rate(live->table, rate), EMBANK_OK);
}

std::string RandomRun::SetOptions(LiveTable* live) {
  embank_table_options options = live->oracle->options();
  options.learning_rate = RandomLearningRate(options.optimizer, &random_);
  options.beta1 = random_.Unit();
  options.beta2 = random_.Unit();
  options.epsilon = random_.Unit();
  options.weight_decay = 0.01f * random_.Unit();
  RandomRule(&random_, &options);
  const auto fields = static_cast<uint32_t>(random_.Below(128));
  live->oracle->SetOptions(options, fields);
  events_->Count("options changed");
  return StatusDifference(embank_table_set_options(live->table, &options, fields), EMBANK_OK);
}

}  // namespace embank::test
