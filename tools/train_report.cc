// The part of a training's run that reports it.
#include <cstdio>
#include <string>

#include "base/str_cat.h"
#include "store/store.h"
#include "tools/next_commands.h"
#include "tools/rank_output.h"
#include "tools/staleness_text.h"
#include "tools/text_file.h"
#include "tools/train_run.h"

namespace embank {

void TrainRun::Print() const {
  const StepSeconds& split = figures_.split;
  const StoreOptions& store = trainer_->store().options();
  std::fprintf(Out(), "embank-train %s\n", command_.model.c_str());
  std::fprintf(Out(), "  steps          %llu, %llu samples in this run\n",
               static_cast<unsigned long long>(trainer_->steps()),
               static_cast<unsigned long long>(scores_.samples()));
  std::fprintf(Out(), "  samples/s      %.0f\n", figures_.samples_per_second);
  std::fprintf(Out(), "  logloss, auc   %.5f, %.4f of the samples before their steps\n",
               scores_.loss(), scores_.auc());
  PrintEvaluations();
  if (role_report_) {
    std::fputs(TextOf(*role_report_, *command_.role_plan).c_str(), Out());
  } else {
    std::fprintf(Out(), "  seconds        lookup %.2f, dense %.2f, gradients %.2f, all %.2f\n",
                 split.lookup, split.dense, split.gradients, figures_.seconds);
    std::fprintf(Out(), "  operations     %.1f per step, %zu packs, %zu micro-batches\n",
                 figures_.operations_per_step, trainer_->pass()->plan().packs().size(),
                 trainer_->pass()->plan().micro_batches().size());
  }
  std::fprintf(Out(), "  rows           %s\n", TextOf(figures_.rows, store).c_str());
  if (!trainer_->store().logs()->empty()) {
    std::fprintf(Out(), "  rows read      %.1f per step from logs\n", figures_.rows_read_per_step);
  }
  if (const Trainer::LeftOut left = LeftOut(); left.rows + left.dense_steps > 0) {
    std::fprintf(Out(),
                 "  not finite     %llu steps of rows and %llu of dense parameters left out\n",
                 static_cast<unsigned long long>(left.rows),
                 static_cast<unsigned long long>(left.dense_steps));
  }
  std::fputs(StalenessText(*trainer_, command_.trainer.hybrid).c_str(), Out());
  PrintHot();
  const TierAnswers& answers = figures_.answers;
  std::fprintf(Out(), "  hit ratio      %s of %llu lookups; %.3f new\n",
               TextOf(answers, store).c_str(), static_cast<unsigned long long>(answers.lookups),
               answers.RatioOf(answers.created));
  if (!trainer_->store().logs()->empty()) {
    const std::string of_pmem =
        store.pmem_path.empty() ? "" : StrCat(answers.prefetched_pmem, " rows of PMem and ");
    std::fprintf(Out(), "  prefetched     %s%llu rows of SSD, found in DRAM\n", of_pmem.c_str(),
                 static_cast<unsigned long long>(answers.prefetched_ssd));
  }
  if (exchange_ != nullptr) return PrintRanks();
  const std::string best_directory = evaluations_.best() ? evaluations_.best_directory() : "";
  const uint64_t best_step = evaluations_.best() ? evaluations_.best()->step : 0;
  std::fputs(
      NextCommands(command_, trainer_->steps(), stopped_by_, best_directory, best_step).c_str(),
      Out());
}

// A run with a file of hot and cold batches, or an emulated link, tells what crossed it.
void TrainRun::PrintHot() const {
  const LinkBytes bytes = trainer_->pass()->device_link().bytes();
  if (hot_cold_ != nullptr) {
    std::fprintf(Out(), "  hot batches    %llu of %llu, %.3f of the samples; rate %.4g %%\n",
                 static_cast<unsigned long long>(hot_steps_),
                 static_cast<unsigned long long>(steps_),
                 scores_.samples() == 0
                     ? 0.0
                     : static_cast<double>(hot_samples_) / static_cast<double>(scores_.samples()),
                 hot_cold_->schedule().rate());
  }
  if (const HotBag* const bag = trainer_->pass()->rows().bag(); bag != nullptr) {
    const SwapCounts& swaps = bag->swaps();
    std::fprintf(
        Out(),
        "  bag            %llu rows, %.1f MB; %llu swaps to hot and %llu to cold moved %.1f "
        "MB, and %.1f MB if all rows went\n",
        static_cast<unsigned long long>(bag->rows()), static_cast<double>(bag->bytes()) * 1e-6,
        static_cast<unsigned long long>(swaps.to_hot),
        static_cast<unsigned long long>(swaps.to_cold), static_cast<double>(swaps.bytes) * 1e-6,
        static_cast<double>(swaps.bytes_of_all_rows) * 1e-6);
  }
  if (hot_cold_ == nullptr && command_.emulate_link.empty()) return;
  std::fprintf(Out(), "  device link    %.1f MB to it and %.1f MB back, %.2f s%s\n",
               static_cast<double>(bytes.to_device) * 1e-6,
               static_cast<double>(bytes.to_host) * 1e-6, figures_.split.device_link,
               command_.emulate_link.empty() ? "" : ", emulated");
}

std::string TrainRun::HotJson() const {
  if (hot_cold_ == nullptr && command_.emulate_link.empty()) return "";
  const LinkBytes bytes = trainer_->pass()->device_link().bytes();
  std::string text = StrCat(", \"device_link\": {\"bytes_to_device\": ", bytes.to_device,
                            ", \"bytes_to_host\": ", bytes.to_host,
                            ", \"seconds\": ", figures_.split.device_link, "}");
  if (hot_cold_ == nullptr) return text;
  StrAppend(&text, ", \"hot\": {\"steps\": ", hot_steps_, ", \"samples\": ", hot_samples_,
            ", \"rate\": ", hot_cold_->schedule().rate());
  if (const HotBag* const bag = trainer_->pass()->rows().bag(); bag != nullptr) {
    const SwapCounts& swaps = bag->swaps();
    StrAppend(&text, ", \"rows\": ", bag->rows(), ", \"bytes\": ", bag->bytes(),
              ", \"swaps_to_hot\": ", swaps.to_hot, ", \"swaps_to_cold\": ", swaps.to_cold,
              ", \"rows_to_hot\": ", swaps.rows_to_hot, ", \"rows_to_cold\": ", swaps.rows_to_cold,
              ", \"swapped_bytes\": ", swaps.bytes,
              ", \"swapped_bytes_of_all_rows\": ", swaps.bytes_of_all_rows);
  }
  return text + "}";
}

void TrainRun::PrintRanks() const {
  const RankTeam::DenseBytes bytes = trainer_->team()->dense_bytes();
  std::fprintf(Out(),
               "  ranks          %u: rows, hits, hot rows, bytes, staleness and seconds are those "
               "of rank 0; link "
               "%.2f s; dense "
               "sums %.1f MB, %.1f of them beside the backward pass\n",
               exchange_->ranks(), figures_.split.link, static_cast<double>(bytes.all) * 1e-6,
               static_cast<double>(bytes.early) * 1e-6);
  std::fputs(
      NextCommandsOfRanks(command_, exchange_->ranks(), trainer_->steps(), stopped_by_).c_str(),
      Out());
}

void TrainRun::PrintEvaluations() const {
  const Scores& last = evaluations_.last();
  if (last.samples() == 0) return;
  std::fprintf(Out(), "  evaluation     %.5f, %.4f of %llu samples behind step %llu", last.loss(),
               last.auc(), static_cast<unsigned long long>(last.samples()),
               static_cast<unsigned long long>(evaluations_.last_step()));
  if (evaluations_.best_auc() > 0.0) {
    std::fprintf(Out(), "; the best AUC is %.4f", evaluations_.best_auc());
  }
  std::fprintf(Out(), "\n");
  if (command_.eval_every == 0) return;
  std::fprintf(Out(), "  best of them   %.5f behind step %llu\n", evaluations_.best()->loss,
               static_cast<unsigned long long>(evaluations_.best()->step));
  if (!evaluations_.IsOver()) return;
  std::fprintf(Out(),
               "  stopped        %llu evaluations were no better; --patience has their number\n",
               static_cast<unsigned long long>(command_.patience));
}

Status TrainRun::WriteJson() const {
  if (command_.json.empty()) return OkStatus();
  const StepSeconds& split = figures_.split;
  const TierRows& rows = figures_.rows;
  std::string text = StrCat("{\"model\": \"", command_.model, "\", \"steps\": ", trainer_->steps(),
                            ", \"samples\": ", scores_.samples(),
                            ", \"samples_per_second\": ", figures_.samples_per_second,
                            ", \"logloss\": ", scores_.loss(), ", \"auc\": ", scores_.auc());
  if (const Scores& last = evaluations_.last(); last.samples() > 0) {
    StrAppend(&text, ", \"eval_logloss\": ", last.loss(), ", \"eval_auc\": ", last.auc(),
              ", \"eval_step\": ", evaluations_.last_step());
  }
  if (command_.eval_every > 0 && evaluations_.best()) {
    StrAppend(&text, ", \"best_logloss\": ", evaluations_.best()->loss,
              ", \"best_step\": ", evaluations_.best()->step);
  }
  if (evaluations_.best_auc() > 0.0) StrAppend(&text, ", \"best_auc\": ", evaluations_.best_auc());
  // Where roles are ranks, that of a loader tells the broken lines.
  if (log_ != nullptr && role_exchange_ == nullptr) {
    StrAppend(&text, ", \"broken_lines\": ", Broken().count);
  }
  StrAppend(&text, ", \"seconds\": {\"lookup\": ", split.lookup, ", \"dense\": ", split.dense,
            ", \"gradients\": ", split.gradients, ", \"all\": ", figures_.seconds, "}");
  StrAppend(&text, ", \"rows\": {\"hbm\": ", rows.hbm, ", \"dram\": ", rows.dram,
            ", \"pmem\": ", rows.pmem, ", \"ssd\": ", rows.ssd, "}");
  StrAppend(&text, ", \"operations_per_step\": ", figures_.operations_per_step,
            ", \"rows_read_per_step\": ", figures_.rows_read_per_step, ", \"packs\": ", packs(),
            ", \"micro_batches\": ", trainer_->pass()->plan().micro_batches().size());
  StrAppend(&text, ", \"weights_crc32c\": ", WeightsCrc32c());
  if (exchange_ != nullptr) {
    const RankTeam::DenseBytes bytes = trainer_->team()->dense_bytes();
    StrAppend(&text, ", \"ranks\": ", exchange_->ranks(), ", \"link_seconds\": ", split.link,
              ", \"dense_sum_bytes\": ", bytes.all, ", \"early_dense_sum_bytes\": ", bytes.early);
  }
  text += StalenessJson(*trainer_, command_.trainer.hybrid);
  if (role_report_) {
    StrAppend(&text, ", \"roles\": ", JsonOf(*role_report_, *command_.role_plan));
  }
  text += HotJson();
  if (!stopped_by_.empty()) StrAppend(&text, ", \"stopped_by\": \"", stopped_by_, "\"");
  const Trainer::LeftOut left_out = LeftOut();
  StrAppend(&text, ", \"not_finite\": {\"rows\": ", left_out.rows,
            ", \"dense_steps\": ", left_out.dense_steps, "}");
  const TierAnswers& answers = figures_.answers;
  StrAppend(&text, ", \"lookups\": ", answers.lookups,
            ", \"hit_ratio\": {\"hbm\": ", answers.RatioOf(answers.hbm),
            ", \"dram\": ", answers.RatioOf(answers.dram),
            ", \"pmem\": ", answers.RatioOf(answers.pmem),
            ", \"ssd\": ", answers.RatioOf(answers.ssd),
            ", \"created\": ", answers.RatioOf(answers.created),
            "}, \"prefetched_rows\": {\"pmem\": ", answers.prefetched_pmem,
            ", \"ssd\": ", answers.prefetched_ssd, "}}\n");
  return WriteText(text, command_.json);
}

}  // namespace embank
