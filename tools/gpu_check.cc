// embank_gpu_check OUT [--short] [--twin]: compares a CUDA device with the twin, bit for bit, and
// then measures it. Each part leaves a file of JSON in the folder OUT when it ends. --short: few
// cases and no rates, for tools that slow the device down. --twin: a second twin in place of the
// device, to check this program where there is none.
// Exit status: 0 all bits are equal, 1 some are not, 2 the command line is wrong, 77 no device.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <memory>
#include <string>

#include "base/str_cat.h"
#include "gpu/device.h"
#include "tools/gpu_identity.h"
#include "tools/gpu_rates.h"

namespace embank {

extern const char kGitCommit[];  // written at build time (cmake/git_commit.cmake)

namespace {

constexpr int kNoDevice = 77;

struct CheckOptions {
  std::string out;
  bool is_short = false;
  bool is_twin = false;
};

// Writes one part's file, and shows it.
bool WritePart(const CheckOptions& options, const std::string& part, const std::string& fields) {
  const std::string text = StrCat("{\"part\": \"", part, "\", ", fields, "}\n");
  std::printf("%s", text.c_str());
  std::ofstream file(StrCat(options.out, "/", part, ".json"));
  file << text;
  return file.good();
}

std::string FieldsOf(const DeviceFigures& figures) {
  const char* const cuda = CudaBuildInfo();
  return StrCat("\"device\": \"", figures.name,
                "\", \"twin\": ", figures.is_twin ? "true" : "false", ", \"cuda\": \"",
                cuda != nullptr ? cuda : "none", "\", \"total_bytes\": ", figures.total_bytes,
                ", \"free_bytes\": ", figures.free_bytes, ", \"commit\": \"",
                static_cast<const char*>(kGitCommit), "\"");
}

std::string FieldsOf(const IdentityCounts& counts) {
  return StrCat("\"steps\": ", counts.steps, ", \"copies\": ", counts.copies,
                ", \"sums\": ", counts.sums, ", \"searches\": ", counts.searches,
                ", \"bytes\": ", counts.bytes, ", \"mismatches\": ", counts.mismatches,
                ", \"first_mismatch\": \"", counts.first_mismatch, "\"");
}

// Against the faster one of two ways to bring all rows over the link.
std::string FieldsOf(const LookupRates& rates) {
  return StrCat("{\"rows\": ", rates.rows, ", \"copied_us\": ", rates.copied_us,
                ", \"all_missed_us\": ", rates.all_missed_us,
                ", \"most_hit_us\": ", rates.most_hit_us, ", \"all_hit_us\": ", rates.all_hit_us,
                ", \"speedup_at_95\": ",
                std::min(rates.copied_us, rates.all_missed_us) / rates.most_hit_us, "}");
}

std::string FieldsOf(const GpuRates& rates) {
  std::string lookups;
  for (const LookupRates& lookup : rates.lookups) {
    lookups += (lookups.empty() ? "" : ", ") + FieldsOf(lookup);
  }
  return StrCat("\"unit\": \"1e9 bytes per second, read and written\", \"rows\": ", rates.rows,
                ", \"copy\": ", rates.copy, ", \"gather\": ", rates.gather,
                ", \"adagrad_step\": ", rates.adagrad_step,
                ", \"gather_share\": ", rates.gather / rates.copy,
                ", \"adagrad_step_share\": ", rates.adagrad_step / rates.copy,
                ", \"to_device\": ", rates.to_device, ", \"to_host\": ", rates.to_host,
                ", \"lookups\": [", lookups, "]");
}

// False: there is something that is no option.
bool Parse(int argc, char** argv, CheckOptions* options) {
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--short") == 0) {
      options->is_short = true;
    } else if (std::strcmp(argv[i], "--twin") == 0) {
      options->is_twin = true;
    } else if (argv[i][0] != '-' && options->out.empty()) {
      options->out = argv[i];
    } else {
      return false;
    }
  }
  return !options->out.empty();
}

int Check(const CheckOptions& options) {
  StatusOr<std::unique_ptr<Device>> device =
      options.is_twin ? StatusOr<std::unique_ptr<Device>>(MakeTwin({.seed = 1}))
                      : OpenCudaDevice(0);
  if (!device.ok()) {
    std::fprintf(stderr, "no device: %s\n", device.status().ToString().c_str());
    return kNoDevice;
  }
  const std::unique_ptr<Device> twin = MakeTwin({});
  bool is_written = WritePart(options, "device", FieldsOf((*device)->figures()));
  const IdentityCounts counts = CompareDevices(device->get(), twin.get(), options.is_short);
  is_written &= WritePart(options, "identity", FieldsOf(counts));
  if (!options.is_short) {
    const uint32_t rows = options.is_twin ? 10'000 : 1'000'000;
    is_written &= WritePart(options, "rates", FieldsOf(MeasureRates(device->get(), rows)));
  }
  if (!is_written) std::fprintf(stderr, "cannot write into %s\n", options.out.c_str());
  return counts.mismatches == 0 && is_written ? 0 : 1;
}

}  // namespace
}  // namespace embank

int main(int argc, char** argv) {
  embank::CheckOptions options;
  if (!embank::Parse(argc, argv, &options)) {
    std::fprintf(stderr, "usage: embank_gpu_check OUT [--short] [--twin]\n");
    return 2;
  }
  return embank::Check(options);
}
