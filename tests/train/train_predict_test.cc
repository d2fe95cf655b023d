// embank-train predict, evaluate and describe: a trained model is used, and nothing of it changes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <array>
#include <cmath>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "base/exact_text.h"
#include "store/batch/lookup.h"
#include "tests/support/scratch_directory.h"
#include "tests/train/train_program.h"
#include "train/data/click_reader.h"
#include "train/dense/activation.h"
#include "train/models/model_table.h"
#include "train/trainer.h"

namespace embank::test::train_predict_test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kModel = " --dim 4 --batch 100 --slices 4 --seed 9 --dram-mib 48";

// Lines of a CSV file with a bag. Each user of `first_user` and later ones is new.
std::string Views(int lines, int first_user = 0) {
  std::ostringstream text;
  text << "user,tags,price,click\n";
  for (int i = 0; i < lines; ++i) {
    text << first_user + i % 40 << ',';
    for (int tag = 0; tag < i % 4; ++tag) text << (tag > 0 ? "|" : "") << "t" << (i * 3 + tag) % 11;
    text << ',' << i % 90 << ',' << (i % 7 < 2 ? 1 : 0) << '\n';
  }
  return text.str();
}
constexpr const char* kViewColumns =
    "label click\ndense price log\nid user decimal\nbag tags text\n";

std::string Repeated(const std::string& text, int times) {
  std::string all;
  for (int i = 0; i < times; ++i) all += text;
  return all;
}

std::vector<std::string> LinesOf(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

// A directory with a trained model, and logs.
class Predicting : public testing::Test {
 protected:
  std::string At(const std::string& name) const { return directory_.path() + "/" + name; }

  void TrainOnViews(const std::string& model) {
    WriteFile(At("columns"), kViewColumns);
    WriteFile(At("log"), Views(1000));
    const Ended ended = Train("--model " + model + kModel + " --path " + At("run") + " --data " +
                              At("log") + " --columns " + At("columns"));
    ASSERT_EQ(ended.exit_code, 0) << ended.output;
  }

  // Predicts a log with the model, and returns the lines of the scores.
  std::vector<std::string> Scores(const std::string& log, const std::string& more = "") {
    const Ended ended = Train("predict --path " + At("run") + " --data " + At(log) + " --out " +
                              At("scores.csv") + more);
    EXPECT_EQ(ended.exit_code, 0) << ended.output;
    return LinesOf(TextIn(At("scores.csv")));
  }

  // Those of a trainer that could go on.
  std::vector<std::string> ScoresOfTrainer(const std::string& model, const std::string& log) {
    std::vector<std::string> scores = {"score"};
    const auto reader = ClickReader::OpenCsv(At(log), *ParseColumnFile(kViewColumns), 1.0);
    EXPECT_TRUE(reader.ok()) << reader.status();
    TrainerOptions options;
    options.model = *FindModel(model);
    options.dim = 4;
    options.batch = 100;
    options.slices = 4;
    options.seed = options.store.seed = 9;
    options.store.path = At("run");
    const auto trainer = Trainer::Open(options, (*reader)->columns());
    EXPECT_TRUE(trainer.ok()) << trainer.status();
    ClickBatch batch;
    std::vector<float> logits;
    while (*(*reader)->Next(100, &batch) > 0) {
      EXPECT_TRUE((*trainer)->Predict(batch, &logits).ok());
      for (const float logit : logits) {
        scores.push_back(ExactText(static_cast<float>(Sigmoid(static_cast<double>(logit)))));
      }
    }
    return scores;
  }

  const ScratchDirectory directory_;
};

TEST_F(Predicting, ScoresAreTheBitsOfTheTrainer) {
  for (const char* const model : {"dlrm", "deep-fm"}) {
    TrainOnViews(model);
    WriteFile(At("next"), Views(730, 20));
    const std::vector<std::string> scores = Scores("next");
    EXPECT_EQ(scores.size(), 731u);
    EXPECT_EQ(scores, ScoresOfTrainer(model, "next"));
    EXPECT_EQ(Scores("next", " --threads 1 --dram-mib 40"), scores);
    std::filesystem::remove_all(At("run"));
  }
}

TEST_F(Predicting, NothingOfTheModelChanges) {
  TrainOnViews("ffnn");
  WriteFile(At("next"), Views(500, 1000));
  const auto files = FilesIn(At("run"));
  Scores("next");
  EXPECT_EQ(Train("evaluate --path " + At("run") + " --data " + At("next")).exit_code, 0);
  EXPECT_EQ(Train("describe --path " + At("run")).exit_code, 0);
  EXPECT_TRUE(FilesIn(At("run")) == files) << "something was written";
}

// Readers of CSV skip empty lines, so that a broken line has a number that is none. All others have
// the scores of a log without broken lines, whose batches are the same.
TEST_F(Predicting, EachLineOfTheLogHasALineOfTheScores) {
  TrainOnViews("ffnn");
  std::vector<std::string> lines = LinesOf(Views(1000));
  const std::vector<std::string> clean = Scores("log");
  std::string text = lines[0] + "\n";
  std::vector<std::string> expected = {"score"};
  for (size_t i = 1; i < lines.size(); ++i) {
    const int broken = i == 1 ? 1 : i == 100 ? 2 : i == 537 ? 1 : 0;
    for (int k = 0; k < broken; ++k) text += "1,t1,nothing,0\n";
    expected.insert(expected.end(), broken, "NaN");
    text += lines[i] + "\n";
    expected.push_back(clean[i]);
  }
  WriteFile(At("broken"), text + "neither\n");
  expected.emplace_back("NaN");
  EXPECT_EQ(Scores("broken"), expected);
  Train("predict --path " + At("run") + " --data " + At("broken") + " --out - | cat > " +
        At("printed"));
  EXPECT_EQ(LinesOf(TextIn(At("printed"))), expected);
  const Ended told = Train("predict --path " + At("run") + " --data " + At("broken") + " --out " +
                           At("scores.csv"));
  EXPECT_THAT(told.output, HasSubstr("5 broken lines were left out"));
  EXPECT_THAT(told.output, HasSubstr("line 2: "));
  EXPECT_THAT(told.output, HasSubstr("the model is in " + At("run") + ", at step 10"));
  EXPECT_THAT(told.output, HasSubstr("1000 samples predicted"));
}

// Some of them have other labels or none, in another format, or in several files.
TEST_F(Predicting, LabelsAreNotNeeded) {
  TrainOnViews("ffnn");
  const std::vector<std::string> scores = Scores("log");
  std::string unlabelled;
  std::string first;
  std::string second;
  const std::vector<std::string> lines = LinesOf(Views(1000));
  for (size_t i = 0; i < lines.size(); ++i) {
    unlabelled += lines[i].substr(0, lines[i].rfind(',')) + "\n";
    const std::string line =
        i == 0 ? lines[0] : lines[i].substr(0, lines[i].rfind(',')) + ",no label";
    if (i == 0 || i <= 300) first += line + "\n";
    if (i == 0 || i > 300) second += line + "\n";
  }
  WriteFile(At("unlabelled"), unlabelled);
  EXPECT_EQ(Scores("unlabelled"), scores);
  WriteFile(At("first"), first);
  WriteFile(At("second"), second);
  EXPECT_EQ(Scores("first", " --data " + At("second")), scores);
  const Ended refused = Train("evaluate --path " + At("run") + " --data " + At("unlabelled"));
  EXPECT_EQ(refused.exit_code, 1) << refused.output;
  EXPECT_THAT(refused.output, HasSubstr("the file has no column 'click'"));
}

TEST_F(Predicting, UnlabelledLinesOfCriteoHaveScores) {
  WriteFile(At("log"), CriteoLog(500));
  ASSERT_EQ(
      Train("--model dlrm" + std::string(kModel) + " --path " + At("run") + " --data " + At("log"))
          .exit_code,
      0);
  const std::vector<std::string> scores = Scores("log");
  std::string unlabelled;
  for (const std::string& line : LinesOf(CriteoLog(500))) {
    unlabelled += line.substr(line.find('\t') + 1) + "\n";
  }
  WriteFile(At("unlabelled"), unlabelled);
  EXPECT_EQ(Scores("unlabelled"), scores);
}

TEST_F(Predicting, AnEvaluationIsThatOfTheTraining) {
  WriteFile(At("log"), CriteoLog(1000));
  WriteFile(At("next"), CriteoLog(730, 5));
  const Ended trained =
      Train("--model ffnn" + std::string(kModel) + " --path " + At("run") + " --data " + At("log") +
            " --eval " + At("next") + " --json " + At("json"));
  ASSERT_EQ(trained.exit_code, 0) << trained.output;
  const Ended ended = Train("evaluate --path " + At("run") + " --data " + At("next"));
  EXPECT_EQ(ended.exit_code, 0) << ended.output;
  const auto number = [&](const std::string& name) {
    const size_t at = ended.output.find(name);
    return at == std::string::npos ? -1.0 : std::stod(ended.output.substr(at + name.size()));
  };
  EXPECT_EQ(number("logloss"), NumberOf(TextIn(At("json")), "eval_logloss")) << ended.output;
  EXPECT_EQ(number("auc"), NumberOf(TextIn(At("json")), "eval_auc"));
  EXPECT_EQ(number("samples"), 729.0);
  EXPECT_THAT(ended.output, HasSubstr("line 5: "));
  WriteFile(At("empty"), "");
  const Ended nothing = Train("predict --out - --path " + At("run") + " --data " + At("empty"));
  EXPECT_EQ(nothing.exit_code, 1) << nothing.output;
  EXPECT_THAT(nothing.output, HasSubstr(At("empty") + ": is empty"));
  const Ended none = Train("evaluate --path " + At("run") + " --data " + At("empty"));
  EXPECT_EQ(none.exit_code, 1);
  EXPECT_THAT(none.output, HasSubstr("the data of the evaluation have no sample"));
}

TEST_F(Predicting, AFailureLeavesNoPartOfTheScores) {
  TrainOnViews("ffnn");
  WriteFile(At("scores.csv"), "those of yesterday\n");
  WriteFile(At("broken"), Views(3000) + Repeated("x\n", 500));
  const Ended failed = Train("predict --path " + At("run") + " --data " + At("broken") + " --out " +
                             At("scores.csv"));
  EXPECT_EQ(failed.exit_code, 1) << failed.output;
  EXPECT_THAT(failed.output, HasSubstr("lines are broken"));
  EXPECT_EQ(TextIn(At("scores.csv")), "those of yesterday\n");
  EXPECT_FALSE(std::filesystem::exists(At("scores.csv.part")));
  const Ended occupied =
      Train("predict --path " + At("run") + " --data " + At("broken") + " --out " + At("run"));
  EXPECT_EQ(occupied.exit_code, 2) << occupied.output;
  EXPECT_THAT(occupied.output, HasSubstr("--out: " + At("run") + " is a directory; give a file"));
  EXPECT_FALSE(std::filesystem::exists(At("run.part")));
}

TEST_F(Predicting, AFileBesideThePlaceStays) {
  TrainOnViews("ffnn");
  WriteFile(At("scores.csv.part"), "the user's own\n");
  EXPECT_EQ(Scores("log").size(), 1001u);
  EXPECT_EQ(TextIn(At("scores.csv.part")), "the user's own\n");
  EXPECT_FALSE(std::filesystem::exists(At("scores.csv.part2")));
}

// They are written through, and no file takes their place.
TEST_F(Predicting, ScoresGoIntoPipesAndBehindLinks) {
  TrainOnViews("ffnn");
  const std::vector<std::string> scores = Scores("log");
  const std::string predict = "predict --path " + At("run") + " --data " + At("log") + " --out ";
  ASSERT_EQ(mkfifo(At("pipe").c_str(), 0600), 0);
  const Ended piped =
      Train(predict + At("pipe") + " & cat " + At("pipe") + " > " + At("piped") + "; wait $!");
  EXPECT_EQ(piped.exit_code, 0) << piped.output;
  EXPECT_EQ(LinesOf(TextIn(At("piped"))), scores);
  EXPECT_TRUE(std::filesystem::is_fifo(At("pipe")));
  EXPECT_EQ(Train(predict + "/dev/stdout > " + At("printed") + " && true").exit_code, 0);
  EXPECT_EQ(LinesOf(TextIn(At("printed"))), scores);
  std::filesystem::create_directory(At("deeper"));
  std::filesystem::create_symlink("deeper/link", At("link"));
  std::filesystem::create_symlink("scores.csv", At("deeper/link"));
  for (const char* const state : {"new", "replaced"}) {
    EXPECT_EQ(Train(predict + At("link")).exit_code, 0) << state;
    EXPECT_TRUE(std::filesystem::is_symlink(At("link"))) << state;
    EXPECT_TRUE(std::filesystem::is_symlink(At("deeper/link"))) << state;
    EXPECT_EQ(LinesOf(TextIn(At("deeper/scores.csv"))), scores) << state;
    WriteFile(At("deeper/scores.csv"), "those of yesterday\n");
  }
}

TEST_F(Predicting, TheColumnsOfAnotherFileAreThoseOfTheModel) {
  TrainOnViews("ffnn");
  const std::vector<std::string> scores = Scores("log");
  std::string text;
  for (const std::string& line : LinesOf(Views(1000))) {
    const size_t at = line.rfind(',');
    text += line.substr(at + 1) + ";x;" + line.substr(0, at) + "\n";
    for (char& letter : text) letter = letter == ',' ? ';' : letter;
  }
  WriteFile(At("turned"), text);
  WriteFile(At("turned.columns"), std::string("separator semicolon\n") + kViewColumns);
  EXPECT_EQ(Scores("turned", " --columns " + At("turned.columns")), scores);
  const auto refusal = [&](const std::string& columns) {
    WriteFile(At("wrong.columns"), columns);
    const Ended ended = Train("predict --path " + At("run") + " --data " + At("log") + " --out " +
                              At("none") + " --columns " + At("wrong.columns"));
    EXPECT_EQ(ended.exit_code, 2) << ended.output;
    EXPECT_FALSE(std::filesystem::exists(At("none")));
    return ended.output;
  };
  EXPECT_THAT(refusal("label click\nid user decimal\nbag tags text\n"),
              HasSubstr("have 0 dense features, and the model 1"));
  EXPECT_THAT(refusal("label click\ndense price log\nbag tags text\nid user decimal\n"),
              HasSubstr("have the id feature \"tags\" where the model has \"user\""));
  const std::string columns = kViewColumns;
  for (const auto& [theirs, ours] : std::vector<std::array<std::string, 2>>{
           {"dense price log", "dense price"},
           {"id user decimal", "id user text"},
           {"id user decimal", "id user decimal below 90"},
           {"bag tags text", "bag tags hex"},
           {"bag tags text", "bag tags text separator semicolon"},
           {"bag tags text", "bag tags text weights :"},
           {"bag tags text", "id tags text"}}) {
    std::string other = columns;
    other.replace(other.find(theirs), theirs.size(), ours);
    EXPECT_THAT(refusal(other), HasSubstr("have '" + ours + "' where the model has '" + theirs +
                                          "'; give --columns FILE"));
  }
}

// They say how the same values are written.
TEST_F(Predicting, NumbersMayBeWrittenInAnotherForm) {
  TrainOnViews("ffnn");
  const std::vector<std::string> scores = Scores("log");
  std::string text = LinesOf(Views(1))[0] + "\n";
  for (const std::string& line : LinesOf(Views(1000))) {
    if (line.starts_with("user")) continue;
    const size_t end = line.find(',');
    std::ostringstream user;
    user << std::hex << std::stoi(line.substr(0, end));
    text += user.str() + line.substr(end) + "\n";
  }
  WriteFile(At("hex"), text);
  WriteFile(At("hex.columns"),
            "label click\ndense price log\nid user hex missing none\nbag tags text\n");
  EXPECT_EQ(Scores("hex", " --columns " + At("hex.columns")), scores);
}

TEST_F(Predicting, TheColumnsOfCriteosFormatAreCompared) {
  WriteFile(At("log"), CriteoLog(200));
  ASSERT_EQ(
      Train("--model ffnn" + std::string(kModel) + " --path " + At("run") + " --data " + At("log"))
          .exit_code,
      0);
  std::string header = "click";
  for (int i = 1; i <= 13; ++i) header += "\tI" + std::to_string(i);
  for (int i = 1; i <= 26; ++i) header += "\tC" + std::to_string(i);
  WriteFile(At("headed"), header + "\n" + CriteoLog(200));
  const auto write = [&](const std::string& id) {
    std::string statements = "separator tab\nlabel click\n";
    for (int i = 1; i <= 13; ++i) statements += "dense I" + std::to_string(i) + " log\n";
    for (int i = 1; i <= 26; ++i) statements += "id C" + std::to_string(i) + " " + id + "\n";
    WriteFile(At("columns"), statements);
  };
  const std::vector<std::string> scores = Scores("log");
  write("hex");
  EXPECT_EQ(Scores("headed", " --columns " + At("columns")), scores);
  write("text");
  const Ended refused = Train("evaluate --path " + At("run") + " --data " + At("headed") +
                              " --columns " + At("columns"));
  EXPECT_EQ(refused.exit_code, 2) << refused.output;
  EXPECT_THAT(refused.output, HasSubstr("have 'id C1 text' where the model has 'id C1 hex'"));
}

TEST_F(Predicting, AModelThatIsTrainedIsNotUsed) {
  TrainOnViews("ffnn");
  const std::vector<std::string> scores = Scores("log");
  StoreOptions options;
  options.path = At("run");
  options.seed = 9;
  const auto store = Store::Open(options, {});
  ASSERT_TRUE(store.ok()) << store.status();
  const Ended refused = Train("evaluate --path " + At("run") + " --data " + At("log"));
  EXPECT_EQ(refused.exit_code, 1) << refused.output;
  EXPECT_THAT(refused.output, HasSubstr("--path: " + At("run") + " is open already to be changed"));
  EXPECT_THAT(refused.output, HasSubstr("or use an export"));
  EXPECT_EQ(Train("describe --path " + At("run")).exit_code, 0) << "it reads the manifest alone";
  ASSERT_TRUE(
      (*store)->checkpoints()->Export(At("export"), [](uint64_t, uint64_t) { return true; }).ok());
  const Ended ended = Train("predict --path " + At("export") + " --data " + At("log") + " --out " +
                            At("of_export"));
  EXPECT_EQ(ended.exit_code, 0) << ended.output;
  EXPECT_EQ(LinesOf(TextIn(At("of_export"))), scores);
}

TEST_F(Predicting, WrongUseIsNamed) {
  TrainOnViews("ffnn");
  struct Case {
    std::string arguments;
    int exit_code;
    std::string message;
  };
  const std::string run = " --path " + At("run");
  const std::string log = " --data " + At("log");
  const Case cases[] = {
      {"predcit" + run, 2, "no command 'predcit'. Did you mean 'predict'?"},
      {"predict" + run + log, 2, "--out is required"},
      {"predict" + run + " --out x", 2, "--data is required"},
      {"evaluate" + log, 2, "--path is required"},
      {"evaluate" + run + log + " --outt x", 2, "no option '--outt'"},
      {"evaluate" + log + " --path " + At("nowhere"), 1, "there is no model in " + At("nowhere")},
      {"describe --path " + directory_.path(), 1, "there is no model in " + directory_.path()},
      {"evaluate" + run + " --data " + At("nothing"), 1, At("nothing") + ": cannot open"},
      {"evaluate" + run + log + " --columns " + At("none"), 2,
       "--columns: " + At("none") + ": cannot"},
      {"predict" + run + log + " --out " + At("log"), 2, "is a file of --data"},
      {"predict" + run + log + " --out /no/such/file", 1, "--out: cannot write /no/such/file.part"},
      {"evaluate" + run + log + " --dram-mib 17592186044416", 2, "--dram-mib is 17592186044416"},
  };
  for (const Case& one : cases) {
    const Ended ended = Train(one.arguments);
    EXPECT_EQ(ended.exit_code, one.exit_code) << one.arguments << ": " << ended.output;
    EXPECT_THAT(ended.output, HasSubstr(one.message)) << one.arguments;
  }
}

// ---- a model that is computed elsewhere ----

using Json = nlohmann::json;

std::vector<float> RowOf(Store* store, const std::string& table, Key key, uint32_t dim) {
  std::vector<float> row(dim);
  const auto opened = store->catalog().Open(table);
  EXPECT_TRUE(opened.ok()) << table;
  EXPECT_TRUE(Lookup(*opened, {&key, 1}, MissingRule::kZero,
                     {reinterpret_cast<std::byte*>(row.data()), dim * sizeof(float)}, {})
                  .ok());
  return row;
}

// A network of linear layers, from its description and the rows alone.
class Rewritten {
 public:
  Rewritten(const Json& model, Store* store) : model_(model), store_(store) {
    const Json& dense = model.at("dense_parameters");
    const auto row_floats = dense.at("floats_of_row").get<uint32_t>();
    for (Key key = 0; weights_.size() < dense.at("parameters").get<size_t>(); ++key) {
      const std::vector<float> row = RowOf(store, dense.at("table"), key, row_floats);
      weights_.insert(weights_.end(), row.begin(), row.end());
    }
  }

  double Logit(const std::vector<double>& dense, const std::vector<Key>& ids) const {
    std::vector<std::vector<double>> values;
    for (const Json& node : model_.at("nodes")) values.push_back(ValueOf(node, dense, ids, values));
    return values.back().at(0);
  }

 private:
  std::vector<double> ValueOf(const Json& node, const std::vector<double>& dense,
                              const std::vector<Key>& ids,
                              const std::vector<std::vector<double>>& values) const {
    const std::string kind = node.at("kind");
    if (kind == "dense") return dense;
    if (kind == "feature") {
      const Json& feature = model_.at("features").at(node.at("feature").get<size_t>());
      size_t id = 0;
      while (model_.at("id_features").at(id) != feature.at("id_feature")) ++id;
      const std::vector<float> row =
          RowOf(store_, feature.at("table"), ids[id], feature.at("dim").get<uint32_t>());
      return {row.begin(), row.end()};
    }
    std::vector<double> value;
    if (kind == "concat") {
      for (const Json& input : node.at("inputs")) {
        const std::vector<double>& part = values[input.get<size_t>()];
        value.insert(value.end(), part.begin(), part.end());
      }
      return value;
    }
    EXPECT_EQ(kind, "linear");
    const std::vector<double>& input = values[node.at("inputs").at(0).get<size_t>()];
    const auto width = node.at("width").get<size_t>();
    const float* const matrix = weights_.data() + node.at("first_parameter").get<size_t>();
    EXPECT_EQ(node.at("parameters"), width * (input.size() + 1));
    for (size_t output = 0; output < width; ++output) {
      double sum = static_cast<double>(matrix[width * input.size() + output]);
      for (size_t i = 0; i < input.size(); ++i) {
        sum += static_cast<double>(matrix[output * input.size() + i]) * input[i];
      }
      value.push_back(node.at("relu") ? std::max(sum, 0.0) : sum);
    }
    return value;
  }

  const Json& model_;
  Store* const store_;
  std::vector<float> weights_;
};

TEST_F(Predicting, ADescriptionIsEnoughToComputeTheModelElsewhere) {
  WriteFile(At("log"), CriteoLog(1000));
  const Ended trained =
      Train("--model ffnn" + std::string(kModel) + " --path " + At("run") + " --data " + At("log") +
            " --row-decay 0.25 --dense-clip 2 --schedule step --schedule-steps 5 "
            "--schedule-factor 0.5 --rate-warmup 3");
  ASSERT_EQ(trained.exit_code, 0) << trained.output;
  const std::vector<std::string> scores = Scores("log");
  const Ended described = Train("describe --path " + At("run"));
  ASSERT_EQ(described.exit_code, 0) << described.output;
  const Json model = Json::parse(described.output);
  EXPECT_EQ(model.at("model"), "ffnn");
  EXPECT_EQ(model.at("steps"), 10);
  EXPECT_EQ(model.at("format"), "rules 2\nCriteo's format");
  EXPECT_EQ(model.at("dense_features").size(), 13u);
  EXPECT_EQ(model.at("rows").at("optimizer"), "adagrad");
  EXPECT_EQ(model.at("rows").at("weight_decay"), 0.25);
  EXPECT_EQ(model.at("dense_parameters").at("max_gradient_norm"), 2.0);
  EXPECT_EQ(model.at("schedule"),
            Json::parse(R"({"curve": "step", "warmup_steps": 3, "steps": 5, "factor": 0.5})"));
  StoreOptions options;
  options.path = At("run");
  options.read_only = true;
  const auto store = Store::Open(options, {});
  ASSERT_TRUE(store.ok()) << store.status();
  const Rewritten rewritten(model, store->get());
  const auto reader = *ClickReader::OpenCriteo(At("log"));
  ClickBatch batch;
  ASSERT_TRUE(reader->Next(1000, &batch).ok());
  for (size_t i = 0; i < 1000; i += 111) {
    const auto begin = batch.dense.begin() + static_cast<ptrdiff_t>(i * 13);
    std::vector<Key> ids;
    for (const FeatureIds& feature : batch.features) ids.push_back(feature.ids[i]);
    const double logit = rewritten.Logit({begin, begin + 13}, ids);
    EXPECT_NEAR(1.0 / (1.0 + std::exp(-logit)), std::stod(scores[i + 1]), 1e-5) << i;
  }
}

}  // namespace
}  // namespace embank::test::train_predict_test
