#include "bench/device_report.h"

#include "absl/strings/str_format.h"
#include "bench/report_parts.h"

namespace embank {
namespace {

constexpr const char* kLegend =
    "hits: the share of a call's keys whose rows are in device memory, the others are in DRAM; "
    "us: the medians of the rounds' means of one call; device: embank_lookup_device and "
    "embank_apply_gradients_device; host: embank_lookup with embank_device_copy of its rows, and "
    "embank_device_copy of gradients with embank_apply_gradients";

constexpr const char* kLinkLegend =
    "hits: the share of a call's keys whose rows are in device memory, the others cross the link; "
    "lookup us: of embank_lookup_device on the clock of the link, on which the host takes no time; "
    "formula us: latency + bytes of the other rows / bytes a second; gain: the first line's time "
    "/ this one's";

std::string LinkTable(const DeviceOptions& options, const DeviceReport& report) {
  std::string text;
  absl::StrAppendFormat(&text, "  a modelled link of %g GB/s and %g us\n\n", options.link_gbps,
                        options.link_us);
  absl::StrAppendFormat(&text, "  %6s %12s %12s %10s %8s\n", "hits", "lookup us", "formula us",
                        "ratio", "gain");
  for (const DeviceFigure& figure : report.figures) {
    absl::StrAppendFormat(&text, "  %6.2f %12.1f %12.1f %10.3f %8.2f\n", figure.hit_share,
                          figure.lookup_us, figure.model_us, figure.lookup_us / figure.model_us,
                          report.figures[0].lookup_us / figure.lookup_us);
  }
  return text + "\n";
}

}  // namespace

std::string DeviceTable(const Machine& machine, const DeviceOptions& options,
                        const DeviceReport& report) {
  std::string text = "embank-bench device\n" + Heading(machine);
  absl::StrAppendFormat(
      &text, "  device   %s, %s of %s rows of dim %d in device memory, %d threads, batch %s\n\n",
      report.device, Grouped(report.hot_rows), Grouped(options.rows), options.dim, options.threads,
      Grouped(options.batch));
  if (options.link_gbps > 0.0) return text + LinkTable(options, report) + Legend(kLinkLegend);
  absl::StrAppendFormat(&text, "  %6s %12s %12s %14s %14s\n", "hits", "lookup us", "host us",
                        "gradients us", "host us");
  for (const DeviceFigure& figure : report.figures) {
    absl::StrAppendFormat(&text, "  %6.2f %12.0f %12.0f %14.0f %14.0f\n", figure.hit_share,
                          figure.lookup_us, figure.host_lookup_us, figure.gradients_us,
                          figure.host_gradients_us);
  }
  return text + "\n" + Legend(kLegend);
}

std::string DeviceJson(const Machine& machine, const DeviceOptions& options,
                       const DeviceReport& report) {
  Json json;
  json["machine"] = MachineJson(machine);
  json["commit"] = Commit();
  json["parameters"] = {{"rows", options.rows},           {"dim", options.dim},
                        {"batch", options.batch},         {"hbm_share", options.hbm_share},
                        {"threads", options.threads},     {"seconds", options.seconds},
                        {"rounds", options.rounds},       {"seed", options.seed},
                        {"link_gbps", options.link_gbps}, {"link_us", options.link_us}};
  json["device"] = report.device;
  json["hot_rows"] = report.hot_rows;
  json["cases"] = Json::array();
  for (const DeviceFigure& figure : report.figures) {
    json["cases"].push_back({{"hit_share", figure.hit_share},
                             {"batch", figure.batch},
                             {"lookup_us", figure.lookup_us},
                             {"host_lookup_us", figure.host_lookup_us},
                             {"gradients_us", figure.gradients_us},
                             {"host_gradients_us", figure.host_gradients_us},
                             {"model_us", figure.model_us}});
  }
  return JsonText(json);
}

}  // namespace embank
