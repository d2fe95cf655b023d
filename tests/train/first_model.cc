// The program of docs/training.md, which has the text below. train_command_line_test runs it.
#include <cstdio>

#include "train/batch_ahead.h"
#include "train/data/click_reader.h"
#include "train/trainer.h"

embank::LayerGraph MakeSums(const embank::ModelInputs& inputs) {
  embank::LayerGraph graph(inputs);
  const auto sum = graph.Sum(graph.Features());
  graph.Linear(graph.LinearRelu(graph.Concat({graph.Dense(), sum}), 32), 1);
  return graph;
}

int main(int count, char** arguments) {
  const auto log = embank::ClickReader::OpenCriteo(count > 1 ? arguments[1] : "log.txt");
  if (!log.ok()) return 1;
  embank::TrainerOptions options;
  options.model = {.name = "sums", .make = MakeSums, .needs_dense = true, .needs_one_dim = true};
  const auto trainer = embank::Trainer::Open(options, (*log)->columns());
  if (!trainer.ok()) return 1;
  embank::BatchAhead batches(log->get(), trainer->get(), options.batch);
  std::vector<float> logits;
  auto batch = batches.Next();
  for (; batch.ok() && *batch != nullptr; batch = batches.Next()) {
    const auto loss = (*trainer)->Step(**batch, &logits);
    if (!loss.ok()) return 1;
    std::printf("loss %.4f\n", *loss);
  }
  return batch.ok() ? 0 : 1;
}
