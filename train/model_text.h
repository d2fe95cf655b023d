// The text by which a checkpoint of a trainer describes its model: the blob of the store.
//
//   embank-train 2
//   steps 1000                        the moment
//   position 1024000
//   order batch 64 cold 3 hot 2 ...   how its source goes on, if that chooses an order of samples
//   open line 120                     the bytes of the line before it, if that has no end
//   window begin 1000000              of shuffled samples, if it is in one
//   window samples 50000
//   steps of other data 0
//   rank 2 of 4                       whose rows these are, if there are several ranks
//   job 7218530114                    the training, by a number that all of its ranks have
//   start 163311037218                the start of it that made this, by such a number
//   batch 1024                        settings: a run that goes on may have others
//   data a log
//   shuffle 250                       the order of its samples, if they are in another one
//   replicated C3                     each table of which all ranks have all rows
//   pooled C7                         each table of which the owners of rows sum bags
//   wire type f16                     of rows between ranks, if it is not f32
//   staleness 4                       of rows, if it is above 0
//   deterministic 1                   if it is the same for each lookup
//   drop updates 0.001                the share of updates that is lost, if it is not 0
//   rates cosine                      their schedule
//   row learning rate 0.02
//   dense learning rate 0.01
//   ...
//   model dlrm                        the model, to the end: a run that goes on has the same lines
//   slices 8
//   ...
//   id feature C1 dim 16
//   node 0 dense width 13
//   ...
//   file head 65536 17 1048576        the beginning of each file of the data: its bytes, their
//                                     CRC-32C, and the size of the file, if it is known
//   ...
//   rules 2                           how the lines of the data are read (log_rules.h)
//   Criteo's format                   or the statements of their column file, or nothing
//
// Version 1 had all lines but the first three in another order, not all numbers of a rule, and the
// begin of a log in the words of its line "data".
#ifndef EMBANK_TRAIN_MODEL_TEXT_H_
#define EMBANK_TRAIN_MODEL_TEXT_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/status_or.h"
#include "train/data/log_rules.h"
#include "train/models/layer_graph.h"
#include "train/samples/click_batch.h"
#include "train/samples/data_position.h"
#include "train/trainer_options.h"

namespace embank {

// The last line of ClickColumns::format where lines have Criteo's format.
inline constexpr std::string_view kCriteoFormat = "Criteo's format";
// Returns the lines of Criteo's format by these rules.
std::string CriteoFormat(LogRules rules);

// A rank of a training.
struct RankOfJob {
  uint32_t rank = 0;
  uint32_t ranks = 1;
  uint64_t job = 0;    // 0: there is one rank
  uint64_t start = 0;  // of the job, which has another one each time

  bool operator==(const RankOfJob&) const = default;
};

// A model at the moment of a checkpoint, as that describes it.
struct ModelText {
  uint64_t steps = 0;
  DataPosition position = {};  // of the data
  uint64_t other_steps = 0;    // the steps before those of the data
  RankOfJob rank = {};
  // Without what a text does not have: the store, how a step is done, and the functions of the
  // model, which has a name alone.
  TrainerOptions options;
  ClickColumns columns;
  std::string graph;  // TextOf(LayerGraph)
};

// Returns the rules of reading of a format. The first ones are older than their name, and have no
// line. Without a format they are the newest.
LogRules RulesOf(std::string_view format);

// Describes the model of a trainer before its first step. MakeModel has returned `graph`.
ModelText DescribeModel(const TrainerOptions& options, const ClickColumns& columns,
                        const LayerGraph& graph);

// Returns the blob.
std::string WriteModelText(const ModelText& text);
// Reads a blob of this version or of version 1.
// FAILED_PRECONDITION: it is of no trainer, or of a newer one.
// DATA_LOSS: it lacks a line, which the message names.
StatusOr<ModelText> ParseModelText(std::string_view blob);

// FAILED_PRECONDITION: the models differ, or the rates of rows with FTRL, or the formats of their
// data where both have one; the message has the first line that does.
Status CheckSameModel(const ModelText& of_checkpoint, const ModelText& of_trainer);
// Returns a phrase for each setting that differs: "learning rate of rows 0.02 -> 0.01".
std::vector<std::string> ChangedSettings(const ModelText& from, const ModelText& to);

}  // namespace embank

#endif  // EMBANK_TRAIN_MODEL_TEXT_H_
