"""Prefetcher: the batches and the bits of the loader alone, its exceptions and its position."""
import tempfile
import unittest

import embank
import numpy as np
from torch_rows import DIM, SGD, RowsCase, modules, torch

data = torch.utils.data
BATCHES, WIDE = 6, 1024


class Samples(data.Dataset):
    """Sample i has the keys i and 2 * i; with a module, rows of it."""

    def __init__(self, module=None):
        self.module = module

    def __len__(self):
        return 4 * BATCHES

    def __getitem__(self, at):
        keys = torch.tensor([at, 2 * at])
        if self.module is not None:
            self.module(keys[None])
        return {'sparse': keys, 'at': at}


def broken_at(batch):
    """Batches whose number `batch` is an exception."""
    for at in range(BATCHES):
        if at == batch:
            raise OSError(f'batch {at} is broken')
        yield {'sparse': torch.tensor([[at, 7]])}


def numbers(batches):
    return [batch['at'].tolist() for batch in batches]


LOADERS = {
    'in order': lambda: data.DataLoader(Samples(), 4),
    'shuffled': lambda: data.DataLoader(Samples(), 4, shuffle=True),
    'generator': lambda: data.DataLoader(Samples(), 4, shuffle=True,
                                         generator=torch.Generator().manual_seed(3)),
    'workers': lambda: data.DataLoader(Samples(), 4, shuffle=True, num_workers=2),
}


class Prefetchers(RowsCase):
    def setUp(self):
        super().setUp()
        self.bag = modules.EmbeddingBag(self.store, 't', DIM, mode='sum', **SGD)

    def test_order_and_bits_are_those_of_the_loader(self):
        for name in ('shuffled', 'workers'):
            made = LOADERS[name]
            with self.subTest(name), tempfile.TemporaryDirectory() as folder:
                results = []
                for path in ('alone', 'ahead'):
                    store = embank.Store(f'{folder}/{path}', dram_bytes='16MiB', seed=1)
                    bag = modules.EmbeddingBag(store, 't', WIDE, optimizer='adagrad', lr=0.1)
                    bag.table.lookup(np.arange(8192))
                    store.checkpoint()
                    self.assertGreater(bag.table.info.rows_ssd, 0)
                    torch.manual_seed(5)
                    loader, losses, seen = made(), [], []
                    for _ in range(2):
                        batches = loader
                        if path == 'ahead':
                            batches = modules.Prefetcher(loader, bag)
                            self.assertEqual(len(batches), BATCHES)
                        for batch in batches:
                            factor = torch.rand(4, WIDE) if name != 'workers' else 1.0
                            loss = (bag(batch['sparse']) * factor).square().sum()
                            loss.backward()
                            losses.append(loss.item())
                            seen.append(batch['at'].tolist())
                    results.append((losses, seen))
                    store.close()
                self.assertEqual(*results)
                self.assertEqual(len(results[0][0]), 2 * BATCHES)

    def test_one_batch_is_read_ahead(self):
        taken, prefetched = [], []

        def loader():
            for batch in broken_at(None):
                taken.append(batch)
                yield batch

        def inputs(batch):
            prefetched.append(batch['sparse'])
            return batch['sparse'], None

        for count, _ in enumerate(modules.Prefetcher(loader(), self.bag, inputs=inputs), 1):
            # The thread may be before or after its one batch.
            self.assertIn(len(taken) - count, (0, 1))
        self.assertEqual((len(taken), len(prefetched)), (BATCHES, BATCHES - 1))

    def test_exceptions_come_after_the_batches_before_them(self):
        for at in (0, 1, 4):
            with self.subTest(at=at):
                seen = []
                with self.assertRaisesRegex(OSError, f'batch {at} is broken'):
                    for batch in modules.Prefetcher(broken_at(at), self.bag):
                        seen.append(batch)
                self.assertEqual(len(seen), at)
        for batch, text in (([1], 'a list without sparse'), ({'sparse': 'x'}, 'is a str')):
            with self.assertRaisesRegex(TypeError, text):
                list(modules.Prefetcher([batch] * 2, self.bag))
        with self.assertRaisesRegex(TypeError, 'module is a Linear'):
            modules.Prefetcher([], torch.nn.Linear(1, 1))

    def test_a_pass_goes_on_at_its_position(self):
        for name, made in LOADERS.items():
            for at in (0, 1, 4, BATCHES):
                with self.subTest(name, at=at):
                    torch.manual_seed(5)
                    batches = modules.Prefetcher(made(), self.bag)
                    numbers(batches)
                    for _ in batches if at else ():
                        if batches.batches == at:
                            break
                    state, after = batches.state_dict(), torch.get_rng_state()
                    self.assertEqual((batches.epoch, batches.batches), (1, at))
                    resumed = modules.Prefetcher(made(), self.bag)
                    torch.manual_seed(99)
                    resumed.load_state_dict(state)
                    torch.set_rng_state(after)
                    rest = numbers(resumed)
                    torch.set_rng_state(after)
                    last = numbers(resumed)
                    # The whole pass and the one after it, without a stop.
                    torch.manual_seed(5)
                    whole = modules.Prefetcher(made(), self.bag)
                    numbers(whole)
                    self.assertEqual(rest, numbers(whole)[at:])
                    torch.set_rng_state(after)
                    self.assertEqual(last, numbers(whole))
                    self.assertEqual(resumed.epoch, 3)

    def test_a_new_pass_begins_with_the_first_batch(self):
        batches = modules.Prefetcher(data.DataLoader(Samples(), 4), self.bag)
        next(iter(batches))
        self.assertEqual(len(numbers(batches)), BATCHES)
        self.assertEqual((batches.epoch, batches.batches), (1, 0))

    def test_a_loader_that_became_shorter_is_refused(self):
        batches = modules.Prefetcher(data.DataLoader(Samples(), 4), self.bag)
        for _ in batches:
            if batches.batches == 5:
                break
        shorter = modules.Prefetcher(data.DataLoader(Samples(), 12), self.bag)
        shorter.load_state_dict(batches.state_dict())
        with self.assertRaisesRegex(RuntimeError, 'has 2 batches; the checkpoint was made after 5'):
            next(iter(shorter))

    def test_a_worker_cannot_use_rows(self):
        for workers in (0, 1):
            batches = modules.Prefetcher(
                data.DataLoader(Samples(self.bag), 4, num_workers=workers), self.bag)
            if workers == 0:
                self.assertEqual(len(list(batches)), BATCHES)
                continue
            with self.assertRaisesRegex(RuntimeError, 'process'):
                list(batches)

    def test_all_modules_have_a_prefetch(self):
        collection = modules.EmbeddingBagCollection(self.store, {'a': DIM}, **SGD)
        single = modules.Embedding(self.store, 'single', DIM, **SGD)
        weights = torch.ones(2, 2, requires_grad=True)
        keys, ends = torch.tensor([[1, 2], [3, 4]]), torch.tensor([0, 2, 4])
        for module, batch in ((collection, {'a': keys}), (single, keys), (self.bag, (keys,)),
                              (self.bag, (keys, None, weights)),
                              (collection, {'a': (keys.view(-1), ends, weights.view(-1))})):
            loader = [{'sparse': batch}] * 2
            self.assertEqual(len(list(modules.Prefetcher(loader, module))), 2)
        self.assertEqual([len(self.store.table(name)) for name in self.store.tables()], [0] * 3)


if __name__ == '__main__':
    unittest.main()
