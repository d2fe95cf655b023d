#include "tests/support/oracle_rules.h"

#include <cmath>
#include <cstring>

#include "tests/support/oracle_numbers.h"

namespace embank::oracle {
namespace {

constexpr uint64_t kGolden = 0x9E3779B97F4A7C15u;
constexpr float kStepMax = 16777216.0f;  // 2^24: adding 1 in float32 ends here

float UniformValue(const embank_table_options& options, uint64_t bits) {
  float u = std::ldexp(static_cast<float>(bits >> 40), -24);
  float width = options.init_b - options.init_a;
  float x = options.init_a + u * width;
  return x >= options.init_b ? std::nextafterf(options.init_b, -INFINITY) : x;
}

float NormalValue(const embank_table_options& options, uint64_t bits) {
  double p = std::ldexp(static_cast<double>(bits >> 12) + 0.5, -52);
  double mean = options.init_a;
  double deviation = options.init_b;
  return static_cast<float>(mean + deviation * Quantile(p));
}

float FirstValue(const embank_table_options& options, uint64_t bits) {
  switch (options.initializer) {
    case EMBANK_INIT_CONSTANT:
      return options.init_a;
    case EMBANK_INIT_UNIFORM:
      return UniformValue(options, bits);
    case EMBANK_INIT_NORMAL:
      return NormalValue(options, bits);
    default:
      return 0.0f;
  }
}

void StepSgd(float lr, const std::vector<float>& g, std::vector<float>* w) {
  for (size_t i = 0; i < g.size(); ++i) (*w)[i] = (*w)[i] - lr * g[i];
}

void StepAdagrad(const embank_table_options& options, float lr, const std::vector<float>& g,
                 std::vector<float>* w, std::vector<float>* state) {
  for (size_t i = 0; i < g.size(); ++i) {
    float s = (*state)[i] + g[i] * g[i];
    (*state)[i] = s;
    float d = std::sqrt(s) + options.epsilon;
    if (d != 0.0f) (*w)[i] = (*w)[i] - (lr * g[i]) / d;
  }
}

void StepRowwise(const embank_table_options& options, float lr, const std::vector<float>& g,
                 std::vector<float>* w, std::vector<float>* state) {
  std::vector<float> squares;
  for (float x : g) squares.push_back(x * x);
  float s = (*state)[0] + LaneSum(squares) / static_cast<float>(g.size());
  (*state)[0] = s;
  float d = std::sqrt(s) + options.epsilon;
  if (d == 0.0f) return;
  for (size_t i = 0; i < g.size(); ++i) (*w)[i] = (*w)[i] - (lr * g[i]) / d;
}

void StepAdam(const embank_table_options& options, float lr, const std::vector<float>& g,
              std::vector<float>* w, std::vector<float>* state) {
  size_t dim = g.size();
  float step = (*state)[2 * dim] + 1.0f;
  (*state)[2 * dim] = step;
  auto t = static_cast<uint64_t>(std::fmin(std::fmax(step, 0.0f), kStepMax));
  double c1 = 1.0 - Pow(options.beta1, t);
  double c2 = 1.0 - Pow(options.beta2, t);
  auto a = static_cast<float>(static_cast<double>(lr) / c1);
  auto h = static_cast<float>(std::sqrt(c2));
  for (size_t i = 0; i < dim; ++i) {
    float m = options.beta1 * (*state)[i] + (1.0f - options.beta1) * g[i];
    float v = options.beta2 * (*state)[dim + i] + ((1.0f - options.beta2) * g[i]) * g[i];
    (*state)[i] = m;
    (*state)[dim + i] = v;
    float d = std::sqrt(v) / h + options.epsilon;
    if (d != 0.0f) (*w)[i] = (*w)[i] - (a * m) / d;
  }
}

void StepFtrl(const embank_table_options& options, float lr, const std::vector<float>& g,
              std::vector<float>* w, std::vector<float>* state) {
  size_t dim = g.size();
  for (size_t i = 0; i < dim; ++i) {
    float& z = (*state)[i];
    float& n = (*state)[dim + i];
    float n_next = n + g[i] * g[i];
    if (n_next == 0.0f) continue;
    float sigma = (std::sqrt(n_next) - std::sqrt(n)) / lr;
    z = z + (g[i] - sigma * (*w)[i]);
    n = n_next;
    float t = std::fabs(z) - options.ftrl_l1;
    if (t <= 0.0f) t = 0.0f;
    float against = std::signbit(z) ? t : -t;
    (*w)[i] = (against * lr) / (std::sqrt(n) + options.ftrl_l2 * lr);
  }
}

// The norm of max_gradient_norm, in float64.
double Norm(const std::vector<float>& g) {
  std::vector<double> lanes(32, 0.0);
  for (size_t i = 0; i < g.size(); ++i) {
    double x = g[i];
    lanes[i % 32] = lanes[i % 32] + x * x;
  }
  for (size_t width = 16; width >= 1; width /= 2) {
    for (size_t j = 0; j < width; ++j) lanes[j] = lanes[j] + lanes[j + width];
  }
  return std::sqrt(lanes[0]);
}

void ScaleToNorm(const embank_table_options& options, std::vector<float>* g) {
  if (options.max_gradient_norm == 0.0f) return;
  double norm = Norm(*g);
  if (!(norm > static_cast<double>(options.max_gradient_norm))) return;
  double scale = static_cast<double>(options.max_gradient_norm) / norm;
  for (float& x : *g) x = static_cast<float>(static_cast<double>(x) * scale);
}

// The neighbours of a number in a 16-bit type are `low`, towards zero, and the next one. Behind the
// largest finite number of the type, infinity stands for the next power of two.
uint16_t RoundedByDraw(float value, int32_t type, uint64_t bits) {
  bool is_half = type == EMBANK_F16;
  uint16_t nearest = is_half ? HalfFromFloat(value) : Bfloat16FromFloat(value);
  if (!std::isfinite(value)) return nearest;
  auto widened = [is_half](uint32_t half) {
    auto narrow = static_cast<uint16_t>(half & 0x7FFF);
    double x = is_half ? FloatFromHalf(narrow) : FloatFromBfloat16(narrow);
    return std::isinf(x) ? std::ldexp(1.0, is_half ? 16 : 128) : x;
  };
  double x = std::fabs(static_cast<double>(value));
  uint32_t low = widened(nearest) > x ? nearest - 1u : nearest;
  double part = (x - widened(low)) / (widened(low + 1) - widened(low));
  double drawn = std::ldexp(static_cast<double>(bits >> 40), -24);
  return static_cast<uint16_t>(drawn < part ? low + 1 : low);
}

void StoreRounded(const embank_table_options& options, uint64_t step_seed, size_t i, float value,
                  uint8_t* bytes) {
  if (options.rounding == EMBANK_ROUNDING_NEAREST) {
    return StoreValue(value, options.value_type, bytes);
  }
  uint16_t half = RoundedByDraw(value, options.value_type, Mix(step_seed + (i + 1) * kGolden));
  std::memcpy(bytes, &half, sizeof half);
}

}  // namespace

uint64_t StateFloats(const embank_table_options& options) {
  uint64_t dim = options.dim;
  switch (options.optimizer) {
    case EMBANK_OPT_ADAGRAD:
      return dim;
    case EMBANK_OPT_ROWWISE_ADAGRAD:
      return 1;
    case EMBANK_OPT_ADAM:
      return 2 * dim + 1;
    case EMBANK_OPT_FTRL:
      return 2 * dim;
    default:
      return 0;
  }
}

uint64_t RowSeed(uint64_t store_seed, uint64_t table_hash, uint64_t key) {
  return Mix(Mix(Mix(store_seed + kGolden) ^ table_hash) ^ key);
}

std::vector<uint8_t> InitialValues(const embank_table_options& options, uint64_t row_seed) {
  uint64_t value_bytes = ValueBytes(options.value_type);
  std::vector<uint8_t> values(options.dim * value_bytes);
  for (uint64_t i = 0; i < options.dim; ++i) {
    float value = FirstValue(options, Mix(row_seed + (i + 1) * kGolden));
    StoreValue(value, options.value_type, values.data() + i * value_bytes);
  }
  return values;
}

std::vector<float> InitialState(const embank_table_options& options,
                                const std::vector<uint8_t>& values) {
  std::vector<float> state(StateFloats(options), 0.0f);
  if (options.optimizer == EMBANK_OPT_ADAGRAD || options.optimizer == EMBANK_OPT_ROWWISE_ADAGRAD) {
    for (float& s : state) s = options.initial_accumulator;
  }
  if (options.optimizer != EMBANK_OPT_FTRL) return state;
  float n = options.initial_accumulator;
  float lr = options.learning_rate;
  for (size_t i = 0; i < options.dim; ++i) {
    const uint8_t* bytes = values.data() + i * ValueBytes(options.value_type);
    float w = LoadValue(bytes, options.value_type);
    state[i] = ((-w) * (std::sqrt(n) + options.ftrl_l2 * lr)) / lr;
    if (w != 0.0f) state[i] = state[i] - std::copysign(options.ftrl_l1, w);
    state[options.dim + i] = n;
  }
  return state;
}

std::vector<float> Clipped(const embank_table_options& options, std::vector<float> gradient) {
  float limit = options.max_gradient_value;
  if (limit == 0.0f) return gradient;
  for (float& g : gradient) g = std::fmax(std::fmin(g, limit), -limit);
  return gradient;
}

bool Step(const embank_table_options& options, uint64_t row_seed, uint64_t call,
          std::vector<float> gradient, std::vector<uint8_t>* values, std::vector<float>* state) {
  uint64_t value_bytes = ValueBytes(options.value_type);
  float learning_rate = options.learning_rate;
  std::vector<float> w(options.dim);
  for (size_t i = 0; i < w.size(); ++i) {
    w[i] = LoadValue(values->data() + i * value_bytes, options.value_type);
  }
  ScaleToNorm(options, &gradient);
  if (options.weight_decay != 0.0f) {
    for (size_t i = 0; i < w.size(); ++i) gradient[i] += options.weight_decay * w[i];
  }
  if (options.decoupled_weight_decay != 0.0f) {
    double rate = learning_rate;
    auto factor = static_cast<float>(1.0 - rate * options.decoupled_weight_decay);
    for (float& x : w) x = factor * x;
  }
  std::vector<float> next_state = *state;
  switch (options.optimizer) {
    case EMBANK_OPT_SGD:
      StepSgd(learning_rate, gradient, &w);
      break;
    case EMBANK_OPT_ADAGRAD:
      StepAdagrad(options, learning_rate, gradient, &w, &next_state);
      break;
    case EMBANK_OPT_ROWWISE_ADAGRAD:
      StepRowwise(options, learning_rate, gradient, &w, &next_state);
      break;
    case EMBANK_OPT_ADAM:
      StepAdam(options, learning_rate, gradient, &w, &next_state);
      break;
    default:
      StepFtrl(options, learning_rate, gradient, &w, &next_state);
      break;
  }
  uint64_t step_seed = Mix(Mix(~row_seed) + call * kGolden);
  std::vector<uint8_t> next_values = *values;
  bool is_finite = true;
  for (size_t i = 0; i < w.size(); ++i) {
    uint8_t* bytes = next_values.data() + i * value_bytes;
    StoreRounded(options, step_seed, i, w[i], bytes);
    is_finite = is_finite && std::isfinite(LoadValue(bytes, options.value_type));
  }
  for (float x : next_state) is_finite = is_finite && std::isfinite(x);
  if (!is_finite) return false;
  *values = next_values;
  *state = next_state;
  return true;
}

}  // namespace embank::oracle
