#include "tests/support/oracle_rules.h"

#include <cmath>

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

void StepFtrl(float lr, const std::vector<float>& g, std::vector<float>* w,
              std::vector<float>* state) {
  size_t dim = g.size();
  for (size_t i = 0; i < dim; ++i) {
    float& z = (*state)[i];
    float& n = (*state)[dim + i];
    float n_next = n + g[i] * g[i];
    if (n_next == 0.0f) continue;
    float sigma = (std::sqrt(n_next) - std::sqrt(n)) / lr;
    z = z + (g[i] - sigma * (*w)[i]);
    n = n_next;
    (*w)[i] = ((-z) * lr) / std::sqrt(n);
  }
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

std::vector<float> InitialState(const embank_table_options& options, float learning_rate,
                                const std::vector<uint8_t>& values) {
  std::vector<float> state(StateFloats(options), 0.0f);
  if (options.optimizer == EMBANK_OPT_ADAGRAD || options.optimizer == EMBANK_OPT_ROWWISE_ADAGRAD) {
    for (float& s : state) s = options.initial_accumulator;
  }
  if (options.optimizer != EMBANK_OPT_FTRL) return state;
  float n = options.initial_accumulator;
  for (size_t i = 0; i < options.dim; ++i) {
    const uint8_t* bytes = values.data() + i * ValueBytes(options.value_type);
    float w = LoadValue(bytes, options.value_type);
    state[i] = ((-w) * std::sqrt(n)) / learning_rate;
    state[options.dim + i] = n;
  }
  return state;
}

void Step(const embank_table_options& options, float learning_rate, std::vector<float> gradient,
          std::vector<uint8_t>* values, std::vector<float>* state) {
  uint64_t value_bytes = ValueBytes(options.value_type);
  std::vector<float> w(options.dim);
  for (size_t i = 0; i < w.size(); ++i) {
    w[i] = LoadValue(values->data() + i * value_bytes, options.value_type);
  }
  if (options.weight_decay != 0.0f) {
    for (size_t i = 0; i < w.size(); ++i) gradient[i] += options.weight_decay * w[i];
  }
  switch (options.optimizer) {
    case EMBANK_OPT_SGD:
      StepSgd(learning_rate, gradient, &w);
      break;
    case EMBANK_OPT_ADAGRAD:
      StepAdagrad(options, learning_rate, gradient, &w, state);
      break;
    case EMBANK_OPT_ROWWISE_ADAGRAD:
      StepRowwise(options, learning_rate, gradient, &w, state);
      break;
    case EMBANK_OPT_ADAM:
      StepAdam(options, learning_rate, gradient, &w, state);
      break;
    default:
      StepFtrl(learning_rate, gradient, &w, state);
      break;
  }
  for (size_t i = 0; i < w.size(); ++i) {
    StoreValue(w[i], options.value_type, values->data() + i * value_bytes);
  }
}

}  // namespace embank::oracle
