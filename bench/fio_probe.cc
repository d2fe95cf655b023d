#include "bench/fio_probe.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "base/status_macros.h"
#include "base/str_cat.h"

namespace embank {
namespace {

constexpr int kNoProgram = 127;  // of a child that could not be

struct FioTransfers {
  double per_second = 0.0;
  double bytes_per_second = 0.0;
  double count = 0.0;
};

std::string Contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// The exit code of a program of the path, its words going to a file; kNoProgram.
int RunChild(std::vector<std::string> words, const std::string& output_path) {
  std::vector<char*> arguments;
  arguments.reserve(words.size() + 1);
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 1, output_path.c_str(), O_WRONLY | O_CREAT | O_TRUNC,
                                   0666);
  posix_spawn_file_actions_adddup2(&actions, 1, 2);
  pid_t child = 0;
  const int error =
      posix_spawnp(&child, arguments[0], &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) return kNoProgram;
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

double ChildrenCpuSeconds() {
  rusage usage{};
  getrusage(RUSAGE_CHILDREN, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// fio writes lines of its own before its JSON at times.
StatusOr<FioTransfers> Parse(const std::string& text, const char* direction) {
  const size_t begin = std::min(text.find('{'), text.size());
  const auto json = nlohmann::json::parse(text.begin() + static_cast<ptrdiff_t>(begin), text.end(),
                                          nullptr, false);
  const bool is_right = json.is_object() && json.contains("jobs") && !json["jobs"].empty() &&
                        json["jobs"][0].contains(direction);
  if (!is_right) return UnavailableError(StrCat("fio: unexpected output: ", text));
  const nlohmann::json& part = json["jobs"][0][direction];
  return FioTransfers{part.value("iops", 0.0), part.value("bw_bytes", 0.0),
                      part.value("total_ios", 0.0)};
}

}  // namespace

FioProbe::FioProbe(const std::string& directory, uint64_t bytes)
    : data_path_(directory + "/fio.data"),
      output_path_(directory + "/fio.json"),
      words_path_(directory + "/fio.words"),
      bytes_(bytes) {}

FioProbe::~FioProbe() {
  for (const std::string& path : {data_path_, output_path_, words_path_}) {
    std::remove(path.c_str());
  }
}

StatusOr<std::unique_ptr<FioProbe>> FioProbe::Create(const std::string& directory, uint64_t bytes) {
  constexpr uint64_t kMib = uint64_t{1} << 20;
  const uint64_t whole = std::max<uint64_t>(1, (bytes + kMib - 1) / kMib) * kMib;
  std::unique_ptr<FioProbe> probe(new FioProbe(directory, whole));
  EMBANK_RETURN_IF_ERROR(probe->SequentialWrite().status());
  return probe;
}

StatusOr<std::string> FioProbe::Run(std::vector<std::string> arguments) const {
  std::vector<std::string> words = {"fio",
                                    "--name=probe",
                                    "--ioengine=io_uring",
                                    "--direct=1",
                                    "--group_reporting=1",
                                    "--output-format=json",
                                    StrCat("--size=", bytes_),
                                    StrCat("--filename=", data_path_),
                                    StrCat("--output=", output_path_)};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::remove(output_path_.c_str());
  const int code = RunChild(std::move(words), words_path_);
  if (code == kNoProgram) {
    return UnimplementedError("fio is not installed: what it measures is left out");
  }
  if (code == 0) return Contents(output_path_);
  return UnavailableError(StrCat("fio failed (exit code ", code, "): ", Contents(words_path_)));
}

StatusOr<FioReads> FioProbe::RandomReads(uint32_t depth, uint32_t jobs, double seconds) {
  const double cpu_before = ChildrenCpuSeconds();
  EMBANK_ASSIGN_OR_RETURN(
      const std::string output,
      Run({"--rw=randread", "--bs=4k", "--thread=1", "--norandommap=1", "--randrepeat=0",
           "--gtod_reduce=1", "--time_based=1", StrCat("--iodepth=", depth),
           StrCat("--numjobs=", jobs), StrCat("--runtime=", std::max(1L, std::lround(seconds)))}));
  EMBANK_ASSIGN_OR_RETURN(const FioTransfers reads, Parse(output, "read"));
  const double cpu_us = (ChildrenCpuSeconds() - cpu_before) * 1e6;
  return FioReads{reads.per_second, cpu_us / std::max(1.0, reads.count)};
}

StatusOr<double> FioProbe::SequentialRead() {
  EMBANK_ASSIGN_OR_RETURN(const std::string output, Run({"--rw=read", "--bs=1M", "--iodepth=8"}));
  EMBANK_ASSIGN_OR_RETURN(const FioTransfers reads, Parse(output, "read"));
  return reads.bytes_per_second;
}

StatusOr<double> FioProbe::SequentialWrite() {
  EMBANK_ASSIGN_OR_RETURN(const std::string output,
                          Run({"--rw=write", "--bs=1M", "--iodepth=16", "--end_fsync=1"}));
  EMBANK_ASSIGN_OR_RETURN(const FioTransfers writes, Parse(output, "write"));
  return writes.bytes_per_second;
}

}  // namespace embank
