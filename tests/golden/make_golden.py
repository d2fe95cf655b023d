#!/usr/bin/env python3
"""Makes golden.json: numbers that the store and the oracle must agree with.

Three kinds of witness, none of which shares a line with the store:
- torch.optim on float32 tensors (SGD, Adagrad, Adam): agreement within a tolerance, because PyTorch
  fuses some multiply-adds and uses libm powers;
- float64 scripts of the published rules (row-wise Adagrad, FTRL-proximal, AdamW): within a
  tolerance;
- docs/arithmetic.md written in Python with each operation rounded to float32: bit for bit. A
  float64 operation on float32 operands, rounded once more, is the float32 operation
  (53 >= 2 * 24 + 2).

Needs Python 3.11, xxhash and torch (pip install torch xxhash); the tests read the JSON only.
Without torch, its numbers are those of the golden.json beside this script.
Usage: make_golden.py > golden.json
"""

import fractions
import json
import math
import pathlib
import random
import statistics
import struct
import sys

import xxhash

try:
    import torch
except ImportError:
    torch = None

MASK = (1 << 64) - 1
GOLDEN = 0x9E3779B97F4A7C15


def f32(x):
    """The nearest float32 of a float64, overflow to infinity."""
    try:
        return struct.unpack("<f", struct.pack("<f", x))[0]
    except OverflowError:
        return math.copysign(math.inf, x)


def bits32(x):
    return struct.unpack("<I", struct.pack("<f", x))[0]


def from_bits32(bits):
    return struct.unpack("<f", struct.pack("<I", bits))[0]


def bits64(x):
    return struct.unpack("<Q", struct.pack("<d", x))[0]


def half_bits(x):
    """Python's own rounding to binary16; what it calls an overflow is an infinity."""
    try:
        return struct.unpack("<H", struct.pack("<e", x))[0]
    except OverflowError:
        return 0x7C00 if x > 0 else 0xFC00


def half_value(bits):
    return struct.unpack("<e", struct.pack("<H", bits))[0]


def bfloat16_value(bits):
    return from_bits32(bits << 16)


def bfloat16_bits(x):
    """The nearest of two neighbours in exact rational arithmetic; a tie goes to the even one."""
    below = bits32(x) >> 16
    if math.isinf(x):
        return below
    above = below + 1
    low = fractions.Fraction(abs(bfloat16_value(below)))
    # One step past the largest finite number stands for infinity.
    top = abs(bfloat16_value(above))
    high = fractions.Fraction(2) ** 128 if math.isinf(top) else fractions.Fraction(top)
    exact = fractions.Fraction(abs(x))
    if exact - low != high - exact:
        return below if exact - low < high - exact else above
    return below if below % 2 == 0 else above


ROUNDERS = {"f32": f32, "f16": lambda x: half_value(half_bits(f32(x))),
            "bf16": lambda x: bfloat16_value(bfloat16_bits(f32(x)))}


# ---- mixing, hashing, first values ----


def mix(x):
    x ^= x >> 30
    x = x * 0xBF58476D1CE4E5B9 & MASK
    x ^= x >> 27
    x = x * 0x94D049BB133111EB & MASK
    return x ^ x >> 31


def draws(store_seed, name, key, count):
    table = xxhash.xxh3_64_intdigest(name.encode())
    row_seed = mix(mix(mix((store_seed + GOLDEN) & MASK) ^ table) ^ key)
    return [mix((row_seed + (i + 1) * GOLDEN) & MASK) for i in range(count)]


def uniform(bits, a, b):
    u = (bits >> 40) * 2.0**-24
    x = f32(a + f32(u * f32(b - a)))
    if x < b:
        return x
    below = bits32(b)  # the neighbour towards minus infinity
    return from_bits32(below - 1 if b > 0 else below + 1 if b < 0 else 0x80000001)


def normal(bits, a, b):
    p = ((bits >> 12) + 0.5) * 2.0**-52
    return f32(a + b * statistics.NormalDist().inv_cdf(p))


# ---- the rules in float32, as docs/arithmetic.md states them ----


def add(x, y):
    return f32(x + y)


def sub(x, y):
    return f32(x - y)


def mul(x, y):
    return f32(x * y)


def div(x, y):
    return f32(x / y)


def root(x):
    return f32(math.sqrt(x))


def lane_sum(x):
    lanes = [0.0] * 32
    for i, value in enumerate(x):
        lanes[i % 32] = add(lanes[i % 32], value)
    half = 16
    while half:
        for j in range(half):
            lanes[j] = add(lanes[j], lanes[j + half])
        half //= 2
    return lanes[0]


def power(base, exponent):
    result = 1.0
    while exponent:
        if exponent & 1:
            result *= base
        base *= base
        exponent >>= 1
    return result


def first_state(case, w):
    dim, acc, lr = case["dim"], case["initial_accumulator"], case["learning_rate"]
    divisor = add(root(acc), mul(case["ftrl_l2"], lr))
    z = [div(mul(-x, divisor), lr) for x in w]
    z = [sub(y, math.copysign(case["ftrl_l1"], x)) if x else y for x, y in zip(w, z)]
    return {"sgd": [], "adagrad": [acc] * dim, "rowwise_adagrad": [acc],
            "adam": [0.0] * (2 * dim + 1), "ftrl": z + [acc] * dim}[case["rule"]]


def adam_step(case, w, state, g):
    dim, b1, b2 = case["dim"], case["beta1"], case["beta2"]
    state[2 * dim] = add(state[2 * dim], 1.0)
    t = int(state[2 * dim])
    a = f32(case["learning_rate"] / (1.0 - power(b1, t)))
    h = f32(math.sqrt(1.0 - power(b2, t)))
    for i in range(dim):
        m = add(mul(b1, state[i]), mul(sub(1.0, b1), g[i]))
        v = add(mul(b2, state[dim + i]), mul(mul(sub(1.0, b2), g[i]), g[i]))
        state[i], state[dim + i] = m, v
        d = add(div(root(v), h), case["epsilon"])
        if d:
            w[i] = sub(w[i], div(mul(a, m), d))


def ftrl_step(case, w, state, g):
    dim, lr = case["dim"], case["learning_rate"]
    for i in range(dim):
        z, n = state[i], state[dim + i]
        after = add(n, mul(g[i], g[i]))
        if after == 0.0:
            continue
        sigma = div(sub(root(after), root(n)), lr)
        z = add(z, sub(g[i], mul(sigma, w[i])))
        state[i], state[dim + i] = z, after
        beyond = sub(abs(z), case["ftrl_l1"])
        toward = math.copysign(beyond if beyond > 0.0 else 0.0, -z)
        w[i] = div(mul(toward, lr), add(root(after), mul(case["ftrl_l2"], lr)))


def exact_step(case, w, state, g):
    if case["weight_decay"]:
        g = [add(x, mul(case["weight_decay"], y)) for x, y in zip(g, w)]
    lr, rule = case["learning_rate"], case["rule"]
    if case["decoupled_weight_decay"]:
        factor = f32(1.0 - lr * case["decoupled_weight_decay"])
        w[:] = [mul(factor, x) for x in w]
    if rule == "sgd":
        w[:] = [sub(x, mul(lr, y)) for x, y in zip(w, g)]
    elif rule == "adam":
        adam_step(case, w, state, g)
    elif rule == "ftrl":
        ftrl_step(case, w, state, g)
    else:
        if rule == "adagrad":
            state[:] = [add(s, mul(x, x)) for s, x in zip(state, g)]
        else:
            state[0] = add(state[0], div(lane_sum([mul(x, x) for x in g]), float(case["dim"])))
        for i, x in enumerate(g):
            d = add(root(state[i % len(state)]), case["epsilon"])
            if d:
                w[i] = sub(w[i], div(mul(lr, x), d))
    w[:] = [ROUNDERS[case["value_type"]](x) for x in w]


def run_sum(rows):
    """Rows of one key, in runs of 32, then the run sums in order."""
    runs = [rows[i:i + 32] for i in range(0, len(rows), 32)]
    sums = []
    for run in runs:
        total = run[0]
        for row in run[1:]:
            total = [add(x, y) for x, y in zip(total, row)]
        sums.append(total)
    total = sums[0]
    for row in sums[1:]:
        total = [add(x, y) for x, y in zip(total, row)]
    return total


# ---- the other witnesses ----


def torch_optimizer(case, w):
    parameter = torch.nn.Parameter(torch.tensor(w, dtype=torch.float32))
    common = {"lr": case["learning_rate"], "weight_decay": case["weight_decay"], "foreach": False}
    if case["rule"] == "sgd":
        return parameter, torch.optim.SGD([parameter], **common)
    if case["rule"] == "adagrad":
        return parameter, torch.optim.Adagrad([parameter], eps=case["epsilon"],
                                              initial_accumulator_value=case["initial_accumulator"],
                                              **common)
    return parameter, torch.optim.Adam([parameter], betas=(case["beta1"], case["beta2"]),
                                       eps=case["epsilon"], **common)


def kept_witness(number):
    """The witness of the vector with this number in the golden.json beside this script."""
    kept = json.loads((pathlib.Path(__file__).parent / "golden.json").read_text())
    witness = kept["optimizers"][number]["witness"]
    return (witness["source"], [from_bits32(x) for x in witness["values"]],
            [from_bits32(x) for x in witness["state"]])


def torch_witness(case, w, gradients):
    if torch is None:
        return kept_witness(case["number"])
    parameter, optimizer = torch_optimizer(case, w)
    for g in gradients:
        parameter.grad = torch.tensor(g, dtype=torch.float32)
        optimizer.step()
    state = optimizer.state[parameter]
    flat = {"sgd": lambda: [], "adagrad": lambda: state["sum"].tolist(),
            "adam": lambda: state["exp_avg"].tolist() + state["exp_avg_sq"].tolist() +
                            [float(state["step"])]}[case["rule"]]()
    return "torch.optim, float32", parameter.detach().tolist(), flat


def float64_witness(case, w, gradients):
    """Row-wise Adagrad, FTRL-proximal and AdamW of the papers, in float64."""
    lr, dim, acc = case["learning_rate"], case["dim"], case["initial_accumulator"]
    l1, l2 = case["ftrl_l1"], case["ftrl_l2"]
    w, s = list(w), acc
    z = [-x * (math.sqrt(acc) + l2 * lr) / lr - math.copysign(l1, x) for x in w]
    n = [acc] * dim
    if case["rule"] == "adam":
        return adamw_witness(case, w, gradients)
    for g in gradients:
        g = [x + case["weight_decay"] * y for x, y in zip(g, w)]
        if case["rule"] == "rowwise_adagrad":
            s += sum(x * x for x in g) / dim
            w = [x - lr * y / (math.sqrt(s) + case["epsilon"]) for x, y in zip(w, g)]
            continue
        for i in range(dim):
            sigma = (math.sqrt(n[i] + g[i] ** 2) - math.sqrt(n[i])) / lr
            z[i] += g[i] - sigma * w[i]
            n[i] += g[i] ** 2
            if n[i] != 0:
                w[i] = -math.copysign(max(abs(z[i]) - l1, 0.0), z[i]) * lr
                w[i] /= math.sqrt(n[i]) + l2 * lr
    return "float64 script", w, [s] if case["rule"] == "rowwise_adagrad" else z + n


def adamw_witness(case, w, gradients):
    """Loshchilov and Hutter 2019, algorithm 2, with the schedule 1 and the decay times the rate."""
    lr, b1, b2 = case["learning_rate"], case["beta1"], case["beta2"]
    w, m, v = list(w), [0.0] * len(w), [0.0] * len(w)
    for t, g in enumerate(gradients, 1):
        m = [b1 * x + (1 - b1) * y for x, y in zip(m, g)]
        v = [b2 * x + (1 - b2) * y * y for x, y in zip(v, g)]
        for i, x in enumerate(w):
            ratio = m[i] / (1 - b1**t) / (math.sqrt(v[i] / (1 - b2**t)) + case["epsilon"])
            w[i] = x - lr * case["decoupled_weight_decay"] * x - lr * ratio
    return "float64 script", w, m + v + [float(len(gradients))]


# ---- cases ----


def case_of(rule, dim, value_type="f32", lr=0.05, beta1=0.9, beta2=0.999, eps=1e-8, decay=0.0,
            acc=0.0, l1=0.0, l2=0.0, decoupled=0.0):
    return {"rule": rule, "dim": dim, "value_type": value_type, "learning_rate": f32(lr),
            "beta1": f32(beta1), "beta2": f32(beta2), "epsilon": f32(eps),
            "weight_decay": f32(decay), "initial_accumulator": f32(acc), "ftrl_l1": f32(l1),
            "ftrl_l2": f32(l2), "decoupled_weight_decay": f32(decoupled)}


def cases():
    for rule in ("sgd", "adagrad", "rowwise_adagrad", "adam", "ftrl"):
        yield case_of(rule, 5)
        yield case_of(rule, 37, lr=0.3, decay=0.01, acc=0.1, eps=1e-6, beta1=0.8, beta2=0.95)
        yield case_of(rule, 1, lr=1.0, eps=0.0)
        yield case_of(rule, 3, "f16", acc=0.5)
        yield case_of(rule, 3, "bf16", acc=0.5, decay=0.1)
    for dim in (33, 70, 100, 257):  # more than the 32 lanes of a row's sum
        yield case_of("rowwise_adagrad", dim, eps=1e-4)
    yield case_of("ftrl", 37, lr=0.1, l1=0.125)
    yield case_of("ftrl", 37, lr=0.1, acc=0.5, l1=0.0625, l2=0.5, decay=0.01)
    yield case_of("ftrl", 5, "f16", lr=0.3, acc=0.1, l1=0.25, l2=0.5)
    yield case_of("adam", 37, lr=0.3, beta1=0.8, beta2=0.95, decoupled=0.1)
    yield case_of("adam", 5, "bf16", decoupled=0.5)
    yield case_of("sgd", 5, "f16", lr=0.3, decoupled=0.25)


def optimizer_vector(number, case, rng):
    case = {"number": number, **case}
    steps = 12 if case["dim"] < 40 else 4
    round_value = ROUNDERS[case["value_type"]]
    w = [round_value(rng.uniform(-1, 1)) for _ in range(case["dim"])]
    gradients = [[f32(rng.uniform(-2, 2) * 4.0 ** rng.randint(-3, 1)) for _ in w]
                 for _ in range(steps)]
    gradients[3][0] = 0.0
    vector = {**case, "first_values": w}
    del vector["number"]
    witness = None
    if case["value_type"] == "f32":
        torch_has_it = (case["rule"] in ("sgd", "adagrad", "adam") and
                        not case["decoupled_weight_decay"])
        witness = (torch_witness if torch_has_it else float64_witness)(case, w, gradients)
    w, state = list(w), first_state(case, w)
    for g in gradients:
        exact_step(case, w, state, g)
    vector.update(gradients=gradients, values=w, state=state)
    if witness:
        vector["witness"] = dict(zip(("source", "values", "state"), witness))
    return vector


def rounding_inputs(rng):
    inputs = {0x00000000, 0x80000000, 0x00000001, 0x7F7FFFFF, 0xFF7FFFFF, 0x33000000, 0x33000001,
              0x32FFFFFF, 0x33800000, 0x387FE000, 0x387FF000, 0x38800000, 0x477FE000, 0x477FEFFF,
              0x477FF000, 0x47800000, 0x3F800000, 0x3F801000, 0x3F803000, 0x3F808000, 0x3F818000,
              0x3F807FFF, 0x3F808001, 0x7F7F7FFF, 0x7F7F8000, 0x00007FFF, 0x00008000, 0x00018000}
    for _ in range(60):  # around halves, ties included
        exponent = rng.randint(90, 145)
        fraction = rng.getrandbits(10) << 13 | rng.choice([0, 0x1000, 0x0FFF, 0x1001, 0x1FFF])
        inputs.add(rng.getrandbits(1) << 31 | exponent << 23 | fraction)
    for _ in range(60):  # around bfloat16s, ties included
        inputs.add(rng.getrandbits(1) << 31 | rng.randint(1, 253) << 23 |
                   rng.getrandbits(7) << 16 | rng.choice([0, 0x8000, 0x7FFF, 0x8001, 0xFFFF]))
    return sorted(inputs)


def rounding_vectors(rng):
    return [{"f32": b, "f16": half_bits(from_bits32(b)), "bf16": bfloat16_bits(from_bits32(b))}
            for b in rounding_inputs(rng)]


def first_value_vectors():
    vectors = []
    for seed, name, key in ((0, "t", 0), (7, "users", MASK), (MASK, "Zürich \U0001F600", 1 << 63),
                            (42, "x" * 255, 12345)):
        drawn = draws(seed, name, key, 9)
        for a, b in ((0.0, 1.0), (-0.05, 0.05), (-3.0, 0.0), (1.0, 1.0000001)):
            a, b = f32(a), f32(b)
            vectors.append({"store_seed": seed, "name": name, "key": key, "initializer": "uniform",
                            "a": a, "b": b, "values": [bits32(uniform(x, a, b)) for x in drawn]})
        for a, b in ((0.0, 1.0), (0.5, 0.01)):
            a, b = f32(a), f32(b)
            vectors.append({"store_seed": seed, "name": name, "key": key, "initializer": "normal",
                            "a": a, "b": b, "values": [bits32(normal(x, a, b)) for x in drawn]})
    return vectors


def sum_vectors(rng):
    vectors = []
    for count in (1, 2, 31, 32, 33, 64, 65, 100, 1056):
        rows = [[f32(rng.uniform(-1, 1) * 10.0 ** rng.randint(-4, 4))] for _ in range(count)]
        vectors.append({"gradients": [bits32(r[0]) for r in rows], "sum": bits32(run_sum(rows)[0])})
    return vectors


def as_bits(vector):
    """Floats as the bits of float32: exact in any JSON reader."""
    if isinstance(vector, dict):
        return {k: as_bits(v) for k, v in vector.items()}
    if isinstance(vector, list):
        return [as_bits(v) for v in vector]
    return bits32(vector) if isinstance(vector, float) else vector


def torch_version():
    if torch is not None:
        return torch.__version__.split("+")[0]
    about = json.loads((pathlib.Path(__file__).parent / "golden.json").read_text())["about"]
    return about.split("torch ")[1].split(";")[0]


def main():
    rng = random.Random(20240607)
    mixed = [0, 1, MASK, GOLDEN, 1 << 63] + [rng.getrandbits(64) for _ in range(8)]
    names = ["", "t", "users", "x" * 16, "y" * 17, "z" * 128, "w" * 129, "v" * 240, "u" * 241,
             "x" * 255, "Zürich \U0001F600"]
    probabilities = [0.5, 0.075, 0.925, 0.0749999, 0.9250001, 1e-5, 1e-10, 1e-16, 2.0**-54,
                     1 - 2.0**-53, 1e-300] + [rng.random() for _ in range(20)]
    inv_cdf = statistics.NormalDist().inv_cdf
    golden = {
        "about": "made by make_golden.py, torch " + torch_version() +
                 "; all floats are the bits of float32, those of quantile of float64",
        "mix": [{"x": x, "mix": mix(x)} for x in mixed],
        "table_hash": [{"name": n, "hash": xxhash.xxh3_64_intdigest(n.encode())} for n in names],
        "quantile": [{"p": bits64(p), "value": bits64(inv_cdf(p))} for p in probabilities],
        "rounding": rounding_vectors(rng),
        "first_values": [as_bits(v) for v in first_value_vectors()],
        "sums": sum_vectors(rng),
        "optimizers": [as_bits(optimizer_vector(i, c, rng)) for i, c in enumerate(cases())],
    }
    lines = []
    for name, content in golden.items():
        if isinstance(content, list):
            rows = ",\n".join(json.dumps(x, separators=(",", ":")) for x in content)
            lines.append(f'"{name}": [\n{rows}]')
        else:
            lines.append(f'"{name}": {json.dumps(content)}')
    sys.stdout.write("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
