// A model of the link between host and device: each batch reads its cold rows over it. There is no
// device in it, and nothing is measured.
#ifndef EMBANK_BENCH_LINK_MODEL_H_
#define EMBANK_BENCH_LINK_MODEL_H_

#include <cstdint>

namespace embank {

struct LinkModel {
  double bytes_per_second = 12e9;
  double latency_seconds = 10e-6;  // of each batch
  double rows_per_batch = 0.0;     // distinct rows
  uint64_t row_bytes = 0;

  // Time of a batch of which a share of the distinct rows is hot.
  double BatchSeconds(double hit_share) const {
    const double bytes = (1.0 - hit_share) * rows_per_batch * static_cast<double>(row_bytes);
    return latency_seconds + bytes / bytes_per_second;
  }
  // Rate with that share of HBM rows / rate without HBM rows.
  double Gain(double hit_share) const { return BatchSeconds(0.0) / BatchSeconds(hit_share); }

  // Distinct rows that a batch has at least where Gain(h) is `part` / (1 - h), 0 < part < 1:
  // otherwise the latency is too large a share.
  double RowsForGain(double hit_share, double part) const {
    const double cold = 1.0 - hit_share;
    if (part <= cold) return 0.0;
    const double seconds = latency_seconds * (part - cold) / ((1.0 - part) * cold);
    return seconds * bytes_per_second / static_cast<double>(row_bytes);
  }
};

}  // namespace embank

#endif  // EMBANK_BENCH_LINK_MODEL_H_
