"""Trains a click model of embank-train in PyTorch: same samples, layers, weights and formulas."""
import argparse
import time

import click_log
from first_rows import FirstRows
from needs import threads_text, write_figures
from torch_models import MODELS, Tables, import_torch, load_weights

torch, np = import_torch()


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--model', choices=MODELS, default='dlrm')
    parser.add_argument('--data', required=True, help="a plain log in Criteo's format")
    parser.add_argument('--eval', help='a log for the evaluation')
    parser.add_argument('--dim', type=int, default=16)
    parser.add_argument('--batch', type=int, default=1024)
    parser.add_argument('--row-rate', type=float, default=0.02)
    parser.add_argument('--dense-rate', type=float, default=0.01)
    parser.add_argument('--row-range', type=float, default=0.05)
    parser.add_argument('--epsilon', type=float, default=1e-8, help='of Adagrad')
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--weights', help='the first ones: embank-train --steps 0 --weights')
    parser.add_argument('--library', help='libembank.so, for the first rows; without: zeros')
    parser.add_argument('--steps', type=int, help='the last one')
    parser.add_argument('--eval-every', type=int, help='steps between evaluations')
    parser.add_argument('--untimed-steps', type=int, default=0, help='left out of the times')
    parser.add_argument('--float64', action='store_true', help='parameters and arithmetic')
    parser.add_argument('--json', help='file for the figures')
    return parser.parse_args()


def floats(values):
    return torch.from_numpy(values).to(torch.get_default_dtype())


class Peer:
    PARTS = ('embedding', 'dense', 'backward', 'update')

    def __init__(self, options: argparse.Namespace, distinct: list):
        sizes = [len(ids) for ids in distinct]
        self.options = options
        self.model = MODELS[options.model](click_log.INTEGERS, click_log.IDS, options.dim)
        if options.weights:
            load_weights(self.model, options.weights)
        self.tables = Tables(sizes, options.dim)
        has_weights = options.model in ('wide-deep', 'deep-fm')
        self.wide = Tables(sizes, 1) if has_weights else None
        if options.library:
            self._set_first_rows(FirstRows(options.library, options.seed), distinct)
        rows = list(self.tables.parameters())
        rows += self.wide.parameters() if self.wide else []
        self.optimizer = torch.optim.Adagrad(
            [{'params': rows, 'lr': options.row_rate},
             {'params': self.model.parameters(), 'lr': options.dense_rate}], eps=options.epsilon)
        self.seconds = dict.fromkeys(self.PARTS, 0.0)

    def _set_first_rows(self, rows: FirstRows, distinct: list):
        with torch.no_grad():
            for i, ids in enumerate(distinct):
                first = rows.of(f'id C{i + 1}', self.options.dim, self.options.row_range, ids)
                self.tables.bags[i].weight.copy_(torch.from_numpy(first))

    def logits(self, dense, ids):
        begin = time.perf_counter()
        offsets = torch.arange(len(dense))
        vectors = self.tables(ids, offsets)
        wide = self.wide(ids, offsets) if self.wide else None
        middle = time.perf_counter()
        logits = self.model(dense, vectors, wide)
        self.seconds['embedding'] += middle - begin
        self.seconds['dense'] += time.perf_counter() - middle
        return logits

    def step(self, dense, ids, labels):
        logits = self.logits(dense, ids)
        begin = time.perf_counter()
        loss = torch.nn.functional.binary_cross_entropy_with_logits(logits, labels)
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        middle = time.perf_counter()
        self.optimizer.step()
        self.seconds['backward'] += middle - begin
        self.seconds['update'] += time.perf_counter() - middle
        return logits.detach()


def train(peer: Peer, log: click_log.ClickLog, ids, figures: dict, evaluate_at=None):
    """Calls evaluate_at(step) every few steps, if it is there: times are of no use then."""
    batch, samples = peer.options.batch, len(log.labels)
    dense, labels = floats(log.dense), floats(log.labels)
    # The ids of a batch are in memory beside each other.
    batches = [torch.from_numpy(np.ascontiguousarray(ids[:, begin:begin + batch]))
               for begin in range(0, samples, batch)]
    logits, timed_samples, start = [], 0, time.perf_counter()
    for i, indices in enumerate(batches[:peer.options.steps]):
        if i == peer.options.untimed_steps:
            peer.seconds = dict.fromkeys(peer.PARTS, 0.0)
            timed_samples, start = 0, time.perf_counter()
        here = slice(i * batch, (i + 1) * batch)
        logits.append(peer.step(dense[here], indices, labels[here]))
        timed_samples += indices.shape[1]
        if evaluate_at and (i + 1) % peer.options.eval_every == 0:
            evaluate_at(i + 1)
    seconds = time.perf_counter() - start
    scores = torch.cat(logits).numpy()
    seen = log.labels[:len(scores)]
    figures.update(samples=len(seen), steps=len(logits), seconds={**peer.seconds, 'all': seconds},
                   samples_per_second=timed_samples / seconds,
                   logloss=click_log.log_loss(scores, seen), auc=click_log.auc(scores, seen))


def evaluate(peer: Peer, log: click_log.ClickLog, ids, figures: dict):
    batch, logits = peer.options.batch, []
    with torch.no_grad():
        for begin in range(0, len(log.labels), batch):
            here = slice(begin, begin + batch)
            indices = torch.from_numpy(np.ascontiguousarray(ids[:, here]))
            logits.append(peer.logits(floats(log.dense[here]), indices))
    scores = torch.cat(logits).numpy()
    figures.update(eval_logloss=click_log.log_loss(scores, log.labels),
                   eval_auc=click_log.auc(scores, log.labels))


def main():
    options = parse_options()
    if options.float64:
        torch.set_default_dtype(torch.float64)
    begin = time.perf_counter()
    logs = [click_log.read(path) for path in (options.data, options.eval) if path]
    distinct, indices = click_log.number_ids(logs)
    read_seconds = time.perf_counter() - begin
    peer = Peer(options, distinct)
    figures = {'model': options.model, 'peer': threads_text(torch),
               'rows': sum(len(ids) for ids in distinct), 'read_seconds': read_seconds,
               'read_samples': sum(len(log.labels) for log in logs), 'evaluations': []}

    def evaluate_at(step: int):
        evaluate(peer, logs[1], indices[1], figures)
        figures['evaluations'].append([step, figures['eval_auc']])

    train(peer, logs[0], indices[0], figures, evaluate_at if options.eval_every else None)
    if options.eval:
        evaluate(peer, logs[1], indices[1], figures)
    write_figures(figures, options.json)


if __name__ == '__main__':
    main()
