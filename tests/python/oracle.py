"""The arithmetic of docs/arithmetic.md in numpy: sums of gradients, steps, pooling, bit for bit."""
from __future__ import annotations

import numpy as np

F32, F64 = np.float32, np.float64
RUN = 32  # gradients of a key are added in runs of as many
LANES = 32

# The defaults of the options of a table, as float32.
EPSILON, BETA1, BETA2 = F32(1e-8), F32(0.9), F32(0.999)


def lane_sum(values):
    """The sum of float32 numbers, in 32 lanes that are folded."""
    lanes = np.zeros(LANES, F32)
    for begin in range(0, len(values), LANES):
        part = values[begin:begin + LANES]
        lanes[:len(part)] += part
    half = LANES // 2
    while half:
        lanes[:half] += lanes[half:2 * half]
        half //= 2
    return lanes[0]


def power(base, exponent):
    result = 1.0
    while exponent > 0:
        if exponent % 2:
            result *= base
        base *= base
        exponent //= 2
    return result


def in_order(arrays):
    total = arrays[0].copy()
    for array in arrays[1:]:
        total += array
    return total


def gradient_sums(keys, gradients):
    """{key: the sum of its gradients}."""
    of_key = {}
    for key, gradient in zip(keys.tolist(), gradients):
        of_key.setdefault(key, []).append(gradient)
    return {key: in_order([in_order(found[begin:begin + RUN])
                           for begin in range(0, len(found), RUN)])
            for key, found in of_key.items()}


def sgd(row, state, gradient, rate):
    return row - rate * gradient, state


def adagrad(row, state, gradient, rate):
    state = state + gradient * gradient
    return divided(row, rate * gradient, np.sqrt(state) + EPSILON), state


def rowwise_adagrad(row, state, gradient, rate):
    state = state + lane_sum(gradient * gradient) / F32(len(row))
    return divided(row, rate * gradient, np.sqrt(state) + EPSILON), state


def adam(row, state, gradient, rate):
    dim = len(row)
    m, v, step = state[:dim], state[dim:2 * dim], state[-1] + F32(1)
    c1 = 1.0 - power(float(BETA1), int(step))
    c2 = 1.0 - power(float(BETA2), int(step))
    a, h = F32(F64(rate) / c1), F32(np.sqrt(c2))
    m = BETA1 * m + (F32(1) - BETA1) * gradient
    v = BETA2 * v + ((F32(1) - BETA2) * gradient) * gradient
    row = divided(row, a * m, np.sqrt(v) / h + EPSILON)
    return row, np.concatenate([m, v, [step]]).astype(F32)


def divided(row, numerator, divisor):
    """A value whose divisor is 0 stays as it is."""
    safe = np.where(divisor == 0, F32(1), divisor)
    return np.where(divisor == 0, row, row - numerator / safe)


# {optimizer: (step, numbers of state of a row of a dim)}
RULES = {'sgd': (sgd, lambda dim: 0), 'adagrad': (adagrad, lambda dim: dim),
         'rowwise_adagrad': (rowwise_adagrad, lambda dim: 1),
         'adam': (adam, lambda dim: 2 * dim + 1)}


def pooled(rows, offsets, weights, pooling):
    """The bags of rows, float32."""
    bags = np.zeros((len(offsets) - 1, rows.shape[1]), F32)
    for bag, (begin, end) in enumerate(zip(offsets[:-1], offsets[1:])):
        total, weight_sum = F32(0), F32(0)
        for at in range(begin, end):
            if weights is None:
                bags[bag] += rows[at]
            else:
                bags[bag] += weights[at] * rows[at]
                weight_sum += weights[at]
            total += F32(1)
        if pooling == 'mean' and end > begin:
            divisor = total if weights is None else weight_sum
            bags[bag] = bags[bag] / divisor if divisor != 0 else F32(0)
        if pooling == 'sqrt_n' and end > begin:
            bags[bag] /= np.sqrt(total)
    return bags


def bag_gradients(gradients, offsets, weights, pooling):
    """The gradient of each position of the bags."""
    found = []
    for bag, (begin, end) in enumerate(zip(offsets[:-1], offsets[1:])):
        weight_sum = F32(0)
        for at in range(begin, end):
            weight_sum += F32(1) if weights is None else weights[at]
        for at in range(begin, end):
            gradient = gradients[bag]
            if pooling == 'mean':
                gradient = gradient / weight_sum if weight_sum != 0 else gradient * F32(0)
            if pooling == 'sqrt_n':
                gradient = gradient / np.sqrt(F32(end - begin))
            found.append(gradient if weights is None else gradient * weights[at])
    return np.array(found, F32).reshape(-1, gradients.shape[1])


class Oracle:
    """A table in numpy: {key: (row, state)}; `first` is the first row of every key."""

    def __init__(self, optimizer, rate, first):
        self.step, floats = RULES[optimizer]
        self.rate, self.first = F32(rate), np.asarray(first, F32)
        self.new_state = np.zeros(floats(len(self.first)), F32)
        self.rows = {}

    def lookup(self, keys, missing='create'):
        """Rows and outcomes."""
        rows, outcomes = np.zeros((len(keys), len(self.first)), F32), []
        for at, key in enumerate(keys.tolist()):
            outcomes.append(1 if key in self.rows else 2 if missing == 'create' else 3)
            if missing == 'create':
                self.rows.setdefault(key, (self.first, self.new_state))
            if key in self.rows:
                rows[at] = self.rows[key][0]
            elif missing == 'default':
                rows[at] = self.first
        return rows, np.array(outcomes, np.uint8)

    def apply_gradients(self, keys, gradients):
        for key, gradient in gradient_sums(keys, gradients).items():
            if key in self.rows:
                self.rows[key] = self.step(*self.rows[key], gradient, self.rate)
