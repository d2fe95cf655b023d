"""Times lookups and updates of embedding tables in PyTorch, with the ids of embank-bench packed."""
import argparse
import statistics
import time

from needs import import_torch, threads_text, write_figures

torch, np = import_torch()

OPTIMIZERS = {'adagrad': torch.optim.Adagrad, 'sparse-adam': torch.optim.SparseAdam,
              'sgd': torch.optim.SGD}


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--ids', required=True, help='a file of embank-bench packed --save-ids')
    parser.add_argument('--tables', type=int, default=26)
    parser.add_argument('--rows', type=int, default=400_000, help='of each table')
    parser.add_argument('--dim', type=int, default=16)
    parser.add_argument('--batch', type=int, default=1024, help='samples of a step')
    parser.add_argument('--bag', type=int, default=1, help='ids of a sample in each table')
    parser.add_argument('--optimizer', choices=OPTIMIZERS, default='adagrad')
    parser.add_argument('--one-table', action='store_true',
                        help='one module with the rows of all tables')
    parser.add_argument('--seconds', type=float, default=1.0, help='of a round')
    parser.add_argument('--rounds', type=int, default=5)
    parser.add_argument('--json', help='file for the figures')
    return parser.parse_args()


class Peer:
    def __init__(self, options: argparse.Namespace):
        self.batch = options.batch
        ids = np.fromfile(options.ids, '<u4').astype(np.int64).reshape(options.tables, -1)
        modules, rows = options.tables, options.rows
        if options.one_table:
            ids += np.arange(options.tables)[:, None] * rows
            modules, rows = 1, rows * options.tables
        keys = options.batch * options.bag
        # The ids of a step, for each module.
        self.steps = [torch.from_numpy(np.ascontiguousarray(ids[:, begin:begin + keys]).reshape(
            modules, -1)) for begin in range(0, ids.shape[1] - keys + 1, keys)]
        self.bags = torch.nn.ModuleList(
            torch.nn.EmbeddingBag(rows, options.dim, mode='sum', sparse=True,
                                  _weight=torch.empty(rows, options.dim).uniform_(-0.05, 0.05))
            for _ in range(modules))
        self.offsets = torch.arange(0, self.steps[0].shape[1], options.bag)
        gradient = 1e-4 * (torch.arange(len(self.offsets) * options.dim) % 17 - 8).float()
        self.gradients = [gradient.view(-1, options.dim) for _ in range(modules)]
        self.optimizer = OPTIMIZERS[options.optimizer](list(self.bags.parameters()), lr=0.01)

    def step(self, number: int) -> tuple[float, float, float]:
        """Returns the seconds of forward, backward and update."""
        ids = self.steps[number % len(self.steps)]
        begin = time.perf_counter()
        outputs = [bag(ids[i], self.offsets) for i, bag in enumerate(self.bags)]
        forward = time.perf_counter()
        self.optimizer.zero_grad(set_to_none=True)
        torch.autograd.backward(outputs, self.gradients)
        backward = time.perf_counter()
        self.optimizer.step()
        return forward - begin, backward - forward, time.perf_counter() - backward


def main():
    options = parse_options()
    peer = Peer(options)
    step = len(peer.steps)
    for warm in range(step):
        peer.step(warm)
    rounds = []
    for _ in range(options.rounds):
        sums, steps = np.zeros(3), 0
        while sums.sum() < options.seconds:
            sums += peer.step(step)
            step, steps = step + 1, steps + 1
        rounds.append(sums / steps * 1e6)
    forward, backward, update = (statistics.median(part) for part in zip(*rounds))
    figures = {'peer': threads_text(torch), 'optimizer': options.optimizer,
               'one_table': options.one_table, 'dim': options.dim, 'batch': options.batch,
               'forward_us': forward, 'backward_us': backward, 'update_us': update}
    write_figures(figures, options.json)


if __name__ == '__main__':
    main()
