"""A click model in PyTorch whose rows are in a store on disk, killed and resumed.

A DLRM learns 13 integers and the rows of 26 features. The rows and the state of their optimizer
take more memory than the store may use. By default a first process trains until its first
checkpoint and is killed; then this process goes on with that checkpoint, and evaluates.

The log is drawn from a hidden model, so that the best possible AUC is known; or it is a file in
Criteo's format, plain or .gz. Lines that would not be there with nn.EmbeddingBag end with # Embank.
"""
from __future__ import annotations

import argparse
import contextlib
import json
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
from typing import Any

import embank.torch  # Embank
import torch
from click_data import INTEGERS, IDS, NAMES, Log, auc, drawn, read, sizes
from click_peer import OPTIMIZERS, PeerBags
from torch import nn

SEED = 1
RATES = {'adagrad': 0.05, 'sgd': 20.0}
INIT = ('uniform', -0.05, 0.05)
DENSE_RATE = 0.02
EVALUATED = 0.1  # the last part of the log
CHECKPOINTS = 4
COMPILE_VERSION = (2, 4)


def parse_options(words: list[str] | None = None) -> argparse.Namespace:
    """Returns the options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--data', help="a log in Criteo's format [a generated one]")
    parser.add_argument('--samples', type=int, default=300_000, help='of the generated log')
    parser.add_argument('--path', type=pathlib.Path, help='directory of the store [temporary]')
    parser.add_argument('--dram', default='32MiB', help='memory of the store')
    parser.add_argument('--optimizer', choices=list(RATES), default='adagrad', help='of rows')
    parser.add_argument('--dim', type=int, default=16)
    parser.add_argument('--batch', type=int, default=1024)
    parser.add_argument('--threads', type=int, help="PyTorch's")
    parser.add_argument('--compile', action='store_true', help='use torch.compile')
    parser.add_argument('--peer', action='store_true', help='train nn.EmbeddingBag, too')
    parser.add_argument('--no-kill', action='store_true', help='train in this process alone')
    parser.add_argument('--json', type=pathlib.Path, help='file for the figures')
    parser.add_argument('--train-only', action='store_true', help=argparse.SUPPRESS)
    options = parser.parse_args(words)
    version = tuple(int(part) for part in torch.__version__.split('.')[:2])
    if options.compile and version < COMPILE_VERSION:
        parser.error(f'--compile needs torch 2.4; this is {torch.__version__}')
    for name in ('samples', 'batch', 'dim'):
        if getattr(options, name) < 1:
            parser.error(f'--{name} is {getattr(options, name)}; it must be 1 or more')
    return options


def layers(*sizes: int) -> nn.Sequential:
    """Returns linear layers of these sizes, with a ReLU between two of them."""
    found: list[nn.Module] = []
    for inputs, outputs in zip(sizes, sizes[1:]):
        found += [nn.Linear(inputs, outputs), nn.ReLU()]
    return nn.Sequential(*found[:-1])


class ClickModel(nn.Module):
    """A DLRM: the products of each two vectors, which are rows or come from the integers."""

    def __init__(self, bags: nn.Module, dim: int) -> None:
        super().__init__()
        pairs = torch.triu_indices(IDS + 1, IDS + 1, offset=1)
        self.bags, self.bottom = bags, layers(INTEGERS, 64, dim)
        self.top = layers(dim + pairs.shape[1], 64, 1)
        self.register_buffer('pairs', pairs[0] * (IDS + 1) + pairs[1], persistent=False)

    def forward(self, dense: torch.Tensor, ids: dict[str, torch.Tensor]) -> torch.Tensor:
        """Returns the logit of each sample."""
        first = self.bottom(dense)
        vectors = torch.stack([first, *self.bags(ids).values()], dim=1)
        products = torch.bmm(vectors, vectors.transpose(1, 2)).flatten(1)
        chosen = products.index_select(1, self.pairs)
        return self.top(torch.cat([first, chosen], dim=1)).squeeze(1)


def train_step(run: Any, optimizers: list[torch.optim.Optimizer], batch: dict[str, Any]) -> float:
    """Makes one step and returns the loss."""
    loss = nn.functional.binary_cross_entropy_with_logits(run(batch['dense'], batch['sparse']),
                                                          batch['labels'])
    for optimizer in optimizers:
        optimizer.zero_grad(set_to_none=True)
    loss.backward()
    for optimizer in optimizers:
        optimizer.step()
    return loss.item()


def evaluate(model: nn.Module, log: Log, batch: int) -> float:
    """Returns the AUC of a log."""
    model.eval()
    with torch.no_grad():
        scores = [model(part['dense'], part['sparse']) for part in log.batches(batch)]
    return auc(torch.cat(scores), log.labels)


def split(log: Log) -> tuple[Log, Log]:
    """Returns the samples for the training and those for the evaluation."""
    end = int(len(log.labels) * (1 - EVALUATED))
    return log.part(0, end), log.part(end, len(log.labels))


def train(options: argparse.Namespace, log: Log) -> dict[str, Any]:
    """Trains the model, from its last checkpoint on, and returns figures."""
    training, held_out = split(log)
    torch.manual_seed(SEED)
    store = embank.Store(options.path / 'store', dram_bytes=options.dram, seed=SEED)  # Embank
    features = dict.fromkeys(NAMES, options.dim)
    rows = {'optimizer': options.optimizer, 'lr': RATES[options.optimizer], 'init': INIT}
    bags = embank.torch.EmbeddingBagCollection(store, features, **rows)  # Embank
    model = ClickModel(bags, options.dim)
    optimizer = torch.optim.Adagrad(model.parameters(), lr=DENSE_RATE)
    run = torch.compile(model) if options.compile else model
    step = first = embank.torch.load(store, model=model, optimizer=optimizer)  # Embank
    steps = -(-len(training.labels) // options.batch)
    begin, losses = time.perf_counter(), []
    batches = training.batches(options.batch, step)
    for batch in embank.torch.Prefetcher(batches, bags):  # Embank
        losses.append(train_step(run, [optimizer], batch))
        step += 1
        if step % max(1, steps // CHECKPOINTS) == 0:
            embank.torch.save(store, model=model, optimizer=optimizer, step=step)  # Embank
            print(f'step {step} of {steps}: loss {losses[-1]:.4f}, checkpoint', flush=True)
    seconds = time.perf_counter() - begin
    figures = {'first_step': first, 'steps': steps, 'losses': losses,
               'samples_per_second': (step - first) * options.batch / seconds,
               'auc': evaluate(model, held_out, options.batch)}
    return {**figures, **sizes(store)}  # Embank


def train_peer(options: argparse.Namespace, log: Log) -> dict[str, Any]:
    """Trains the same model with nn.EmbeddingBag, from the same first values."""
    bags = PeerBags(log.ids, options.dim, SEED, init=INIT)
    training, held_out = split(bags.numbered_log(log))
    torch.manual_seed(SEED)
    model = ClickModel(bags, options.dim)
    rows = list(bags.parameters())
    dense = [*model.bottom.parameters(), *model.top.parameters()]
    optimizers = [torch.optim.Adagrad(dense, lr=DENSE_RATE),
                  OPTIMIZERS[options.optimizer](rows, lr=RATES[options.optimizer])]
    run = torch.compile(model) if options.compile else model
    begin = time.perf_counter()
    losses = [train_step(run, optimizers, batch) for batch in training.batches(options.batch)]
    seconds = time.perf_counter() - begin
    return {'losses': losses, 'samples_per_second': len(training.labels) / seconds,
            'auc': evaluate(model, held_out, options.batch)}


def train_and_kill(options: argparse.Namespace) -> None:
    """Trains in another process, which is killed after its first checkpoint."""
    words = [sys.executable, __file__, *sys.argv[1:], '--train-only', '--path', str(options.path)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        if not line:
            sys.exit(f'the first process has made no checkpoint; {options.path} may have a store '
                     'that was trained to its end')
        print(f'first process: {line.rstrip()}, and killed', flush=True)
        process.send_signal(signal.SIGKILL)


def show(figures: dict[str, Any], peer: dict[str, Any] | None) -> None:
    """Prints what a training has reached."""
    best = figures['best_auc']
    print(f'AUC {figures["auc"]:.4f}'
          + (f', best possible AUC {best:.4f}' if best is not None else ''))
    print(f'{figures["samples_per_second"]:,.0f} samples/s, checkpoints included')
    mib = 1 << 20
    print(f'{figures["rows"]:,} rows of {figures["row_bytes"] / mib:.0f} MiB, '
          f'{figures["rows_in_memory"]:,} of them in memory')
    print(f'memory of the store {figures["memory_bytes"] / mib:.0f} of '
          f'{figures["memory_limit"] / mib:.0f} MiB, on disk {figures["disk_bytes"] / mib:.0f} MiB')
    if peer is not None:
        print(f'nn.EmbeddingBag, all rows in memory: AUC {peer["auc"]:.4f}, '
              f'{peer["samples_per_second"]:,.0f} samples/s')


def main() -> None:
    """Runs the program."""
    options = parse_options()
    if options.threads is not None:
        torch.set_num_threads(options.threads)
    with contextlib.ExitStack() as stack:
        if options.path is None:
            options.path = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory()))
        options.path.mkdir(exist_ok=True)
        if not (options.no_kill or options.train_only):
            train_and_kill(options)
        log = drawn(options.samples, SEED) if options.data is None else read(options.data)
        figures = train(options, log)
        if options.train_only:
            return
        held_out = split(log)[1]
        known = held_out.probabilities
        figures['best_auc'] = None if known is None else auc(known, held_out.labels)
        peer = train_peer(options, log) if options.peer else None
        show(figures, peer)
        if options.json is not None:
            options.json.write_text(json.dumps({**figures, 'peer': peer}), encoding='utf-8')


if __name__ == '__main__':
    main()
