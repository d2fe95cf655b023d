"""One rank of test_torch_sharded.py: the cases run in each of the ranks, at once.

Each rank makes the batches of all ranks, and trains a collection of one process with all of them.
"""
import contextlib
import functools
import itertools
import os
import signal
import sys
import tempfile
import traceback
import unittest
from unittest import mock

import embank
import numpy as np
from torch_rows import KEYS, VERSION, Jagged, bits, close, flat, modules, rows_of, torch
from twin_tensors import CUDA, TwinMemory, plain, tensors_in

dist, sharded = torch.distributed, modules.sharded
DIM, STEPS = 4, 4
BAGS = ((5, 4, 0, 1), (0, 6, 0, 70), (3, 0, 0, 2))  # of each rank, in each step
MODES = {'one': 'sum', 'sum': 'sum', 'mean': 'mean', 'root': 'sqrtn', 'same': 'mean'}
WEIGHTED = {'sum': 'sum', 'mean': 'mean', 'same': 'sum'}
PADDING = 5
COLLECTIVES = ('all_to_all_single', 'all_reduce')  # those that rows are exchanged with
# name, features, whether there are weights, whether the batch is jagged, options
CASES = (
    ('dict', MODES, False, False, {'reduction': 'mean'}),
    ('jagged', MODES, False, True, {'reduction': 'sum'}),
    ('weights', WEIGHTED, True, False, {'reduction': 'sum'}),
    ('jagged weights', WEIGHTED, True, True, {'reduction': 'mean'}),
    ('adam', MODES, False, False, {'reduction': 'sum', 'optimizer': 'adam', 'weight_decay': 0.1}),
    ('half', MODES, False, False, {'reduction': 'mean', 'value_type': 'f16', 'optimizer': 'sgd'}),
)


class OneProcess(modules.EmbeddingBagCollection):
    """A collection of one process, which takes the arguments of a sharded one."""

    def __init__(self, store, features, reduction='sum', **options):
        super().__init__(store, features, **options)


class Case(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.rank, cls.ranks = dist.get_rank(), dist.get_world_size()

    def pair(self, features, **options):
        """A sharded collection and one of one process; feature same has the table of sum."""
        made = []
        for kind in (sharded.EmbeddingBagCollection, OneProcess):
            store = embank.Store(seed=3)
            parts = {name: (DIM, mode) for name, mode in features.items()}
            if 'same' in features:
                first = kind(store, {'sum': DIM}, **options)
                parts |= {name: (first.tables['sum'], features[name]) for name in ('sum', 'same')}
            made.append(kind(store, parts, **options))
        return made

    def bags(self, features, step, is_alone):
        """The bags of each rank. Keys of one rank are of no other, if it is alone."""
        draws = np.random.default_rng(step)
        found = []
        for rank in range(self.ranks):
            count = BAGS[rank % len(BAGS)][step]
            keys = {}
            for name in features:
                most = 2 if name == 'one' else 9
                sizes = draws.integers(name == 'one', most, count)
                keys[name] = [(draws.integers(-4, 9, size) * self.ranks + rank * is_alone).tolist()
                              for size in sizes]
            found.append(keys)
        return found

    def batch(self, bags, is_weighted=False, is_jagged=False):
        parts = {}
        for name, of_name in bags.items():
            keys, ends = flat(of_name)
            weights = (keys % 7 - 2.5).float() if is_weighted else None
            parts[name] = (keys, ends, weights)
        if name != 'one' and 'one' in parts and not is_jagged:
            parts['one'] = parts['one'][0]  # A key for each bag needs no offsets.
        if not is_jagged:
            return parts
        keys, ends = flat([bag for of_name in bags.values() for bag in of_name])
        weights = torch.cat([part[2] for part in parts.values()]) if is_weighted else None
        return Jagged(list(bags), keys, ends, weights)

    def union(self, bags):
        return {name: [bag for of_rank in bags for bag in of_rank[name]] for name in bags[0]}

    def assert_equal(self, ours, theirs, is_exact, message):
        if is_exact:
            np.testing.assert_array_equal(ours, theirs, err_msg=message)
        else:
            np.testing.assert_allclose(ours, theirs, rtol=2e-5, atol=2e-5, err_msg=message)

    def assert_same_rows(self, mine, whole, is_exact=False, message=''):
        """The rows of the ranks are those of one process, and each is at its owner alone."""
        for name, table in whole.tables.items():
            counts = [None] * self.ranks
            dist.all_gather_object(counts, len(mine.tables[name]))
            self.assertEqual(sum(counts), len(table), (name, counts))
            has_state = table.options.optimizer != 'sgd'
            for keys, rows, state, _ in mine.tables[name].scan(1 << 16, state=has_state):
                self.assertEqual(set(embank.owner_of(name, keys, self.ranks)), {self.rank})
                self.assert_equal(rows, table.lookup(keys, missing='zero'), is_exact, message)
                if has_state:
                    self.assert_equal(state, table.get_state(keys), is_exact, message)

    def train(self, mine, whole, bags, rows=None, **options):
        """One step of both, by the same gradients of bags; returns both outputs."""
        ours = mine(self.batch(bags[self.rank], **options))
        theirs = whole(self.batch(self.union(bags), **options))
        counts = [len(next(iter(of_rank.values()))) for of_rank in bags]
        here = slice(sum(counts[:self.rank]), sum(counts[:self.rank + 1]))
        outputs, gradients = [], []
        for name in theirs.keys():
            whole_gradient = torch.from_numpy(np.random.default_rng(7).normal(
                size=theirs[name].shape)).float()
            for output, gradient in ((ours[name], whole_gradient[here] * mine._divisor),
                                     (theirs[name], whole_gradient)):
                outputs.append(output)
                gradients.append(gradient)
        torch.autograd.backward(outputs[::2], gradients[::2])
        torch.autograd.backward(outputs[1::2], gradients[1::2])
        return ({name: ours[name].detach() for name in ours.keys()},
                {name: theirs[name].detach()[here] for name in theirs.keys()})


class Equal(Case):
    def test_rows_and_outputs_are_those_of_one_process(self):
        for (name, features, is_weighted, is_jagged, options), is_alone in itertools.product(
                CASES, (True, False)):
            message = f'{name}, {"alone" if is_alone else "together"}'
            # A third of a gradient is rounded.
            is_exact = is_alone and (options['reduction'] == 'sum' or self.ranks == 2)
            mine, whole = self.pair(features, padding_idx=PADDING, lr=0.1, **options)
            for step in range(STEPS):
                bags = self.bags(features, step, is_alone)
                ours, theirs = self.train(mine, whole, bags, is_weighted=is_weighted,
                                          is_jagged=is_jagged)
                for feature in features:
                    self.assert_equal(ours[feature], theirs[feature], is_exact,
                                      f'{message}, step {step}, feature {feature}')
            self.assert_same_rows(mine, whole, is_exact, message)


class Modes(Case):
    def test_evaluation_creates_nothing(self):
        mine, whole = self.pair(MODES)
        bags = self.bags(MODES, 0, False)
        for module in (mine, whole):
            module.eval()
        ours = mine(self.batch(bags[self.rank]))
        theirs = OneProcess.forward(whole, self.batch(bags[self.rank]))
        for name in MODES:
            self.assertFalse(ours[name].requires_grad)
            self.assert_equal(ours[name], theirs[name], True, name)
        self.assertEqual({len(table) for table in mine.tables.values()}, {0})
        mine.train(self.rank == 0)
        with self.assertRaisesRegex(embank.FailedPreconditionError,
                                    'all ranks must be in the same mode'):
            mine(self.batch(bags[self.rank]))
        for module in (mine, whole):
            module.train()
        self.train(mine, whole, bags)
        self.assert_same_rows(mine, whole)

    def test_weights_get_gradients(self):
        mine, whole = self.pair({'sum': 'sum'}, padding_idx=PADDING)
        bags = self.bags({'sum': 'sum'}, 0, True)[self.rank]
        keys, ends = flat(bags['sum'])
        found = []
        for module in (mine, whole):
            weights = torch.arange(1.0, len(keys) + 1, requires_grad=True)
            module({'sum': (keys, ends, weights)})['sum'].square().sum().backward()
            found.append(weights.grad)
        self.assert_equal(*found, False, 'weights')

    def test_outputs_without_gradients_step_nothing(self):
        options = {'optimizer': 'adam', 'weight_decay': 0.1, 'lr': 0.1, 'reduction': 'sum'}
        mine, whole = self.pair(MODES, **options)
        self.train(mine, whole, self.bags(MODES, 3, False))
        bags = self.bags(MODES, 0, False)
        for used in (('same',), ('one', 'root')):
            ours, theirs = mine(self.batch(bags[self.rank])), whole(self.batch(self.union(bags)))
            for outputs in (ours, theirs):
                sum(outputs[name].sum() for name in used).backward()
            self.assert_same_rows(mine, whole, message=str(used))

    def test_a_batch_that_is_refused_changes_nothing(self):
        mine, _ = self.pair({'sum': 'sum'})
        keys = torch.arange(4) + self.rank
        for value, error, text in (
                ((keys, torch.tensor([0, 3, 1, 4])), ValueError, 'offsets of sum fall'),
                ((keys, torch.tensor([0, 4]), keys * torch.nan), ValueError, 'sum have a number'),
                ((keys.float(), torch.tensor([0, 4])), TypeError, 'dtype torch.float32')):
            with self.assertRaisesRegex(error, text):
                mine({'sum': value})
        self.assertEqual(len(mine.tables['sum']), 0)
        mine({'sum': keys})['sum'].sum().backward()
        before = mine.tables['sum'].lookup(keys, missing='zero')
        last = self.ranks - 1
        for _ in range(2):
            outputs = mine({'sum': keys})['sum']
            with self.assertRaisesRegex(ValueError, f'rank {last} of {self.ranks} has a gradient'):
                (outputs * (torch.nan if self.rank == last else 1)).sum().backward()
            np.testing.assert_array_equal(mine.tables['sum'].lookup(keys, missing='zero'), before)

    def test_a_step_that_fails_on_one_rank_is_made_once_on_all(self):
        mine, _ = self.pair({'sum': 'sum'}, optimizer='sgd', lr=1.0, reduction='sum')
        keys, table = torch.arange(32), mine.tables['sum']
        loss = (mine({'sum': keys[:, None]})['sum'] * -1e38).sum()
        if self.rank == 0:
            own = np.flatnonzero(embank.owner_of('sum', keys.numpy(), self.ranks) == 0)[:1]
            table.upsert(own, np.full((1, table.dim), 3e38, np.float32))
            with self.assertRaises(embank.OutOfRangeError):
                loss.backward(retain_graph=True)
        else:
            loss.backward(retain_graph=True)
        before = rows_of(table)
        with self.assertRaisesRegex(embank.FailedPreconditionError, 'called twice'):
            loss.backward()
        np.testing.assert_array_equal(rows_of(table), before)

    def test_a_rank_that_fails_after_the_exchange_is_not_stepped_again(self):
        mine, _ = self.pair({'sum': 'sum'}, optimizer='sgd', lr=1.0, reduction='sum')
        rows = modules.RowOptimizer(mine)
        loss = mine({'sum': torch.arange(32)[:, None]})['sum'].sum()
        if self.rank == 0:
            rows.param_groups[0]['lr'] = -1.0
            with self.assertRaisesRegex(ValueError, 'learning_rate'):
                loss.backward(retain_graph=True)
        else:
            loss.backward(retain_graph=True)
        before = rows_of(mine.tables['sum'])
        # Without an exchange, in which a rank would wait for the others.
        with self.assertRaisesRegex(embank.FailedPreconditionError, 'called twice'):
            loss.backward()
        np.testing.assert_array_equal(rows_of(mine.tables['sum']), before)

    def test_a_refused_collection_leaves_learning_rates(self):
        store = embank.Store(seed=1)
        sharded.EmbeddingBagCollection(store, {'a': 2}, lr=0.5)
        with self.assertRaisesRegex(embank.FailedPreconditionError, 'must have the same'):
            sharded.EmbeddingBagCollection(store, {'a': 2}, lr=0.1, reduction=('mean', 'sum')[
                self.rank % 2])
        self.assertEqual(store.table('a').learning_rate, 0.5)
        # One rank alone fails, and the others have set the rate by then.
        features = {'a': 2} if self.rank else {'a': 3}
        with self.assertRaises(embank.FailedPreconditionError if self.rank else ValueError):
            sharded.EmbeddingBagCollection(store, features, lr=0.1)
        self.assertEqual(store.table('a').learning_rate, 0.5)

    def test_an_owner_without_space_fails_on_all_ranks(self):
        store = embank.Store(seed=1, dram_bytes='16MiB' if self.rank == 0 else None)
        mine = sharded.EmbeddingBagCollection(store, {'wide': 1024})
        error = embank.ResourceExhaustedError if self.rank == 0 else embank.UnavailableError
        for _ in range(2):
            with self.assertRaises(error) as caught:
                mine({'wide': torch.arange(8000)})
            if self.rank:
                self.assertIn('rank 0 of 2 could not look up', str(caught.exception))


class WithOthers(Case):
    def test_row_optimizers(self):
        for deferred in (False, True):
            pair = self.pair(MODES, lr=1.0, optimizer='sgd', reduction='sum')
            rows = [modules.RowOptimizer(module, deferred=deferred) for module in pair]
            for step in (0, 1):
                for optimizer in rows:
                    for group in optimizer.param_groups:
                        group['lr'] = 0.5 / (1 + step)
                for micro in (1, 3) if deferred else (1,):
                    self.train(*pair, self.bags(MODES, micro, False))
                norms = [torch.nn.utils.clip_grad_norm_(
                    [one for group in optimizer.param_groups for one in group['params']], 2.0)
                    for optimizer in rows]
                if deferred:
                    self.assertGreater(norms[1].item(), 4)
                    close(*norms)
                for optimizer in rows:
                    optimizer.step()
                    optimizer.zero_grad()
            self.assert_same_rows(*pair, message=f'deferred {deferred}')

    def test_a_grad_that_one_rank_removed_steps_no_rank(self):
        mine, _ = self.pair({'sum': 'sum'})
        other = sharded.EmbeddingBagCollection(mine._store, {'other': DIM})
        rows = modules.RowOptimizer([mine, other], deferred=True)
        keys = torch.arange(8)[:, None]
        mine({'sum': keys})['sum'].sum().backward()
        other({'other': keys})['other'].sum().backward()
        parameter = rows.param_groups[0]['params'][0]
        norm = parameter.grad.clone()
        if self.rank == 0:
            parameter.grad = None
        text = 'was removed' if self.rank == 0 else f'rank 0 of {self.ranks} cannot step'
        loss = mine({'sum': keys})['sum'].sum()
        for _ in range(2):
            with self.assertRaisesRegex(embank.FailedPreconditionError, text):
                loss.backward(retain_graph=True)
        parameter.grad = norm
        # The sums of another module are no matter of this one.
        rows.param_groups[1]['params'][0].grad = None
        loss.backward()
        close(parameter.grad, 2 * norm)

    def test_a_gradient_that_is_nan_is_in_the_norms_of_all_ranks(self):
        mine, _ = self.pair({'sum': 'sum'})
        rows = modules.RowOptimizer(mine, deferred=True)
        # The last rank alone has the key 0, and with it a NaN.
        pooled = mine({'sum': torch.arange(4)[:, None] + (self.rank < self.ranks - 1)})['sum']
        factors = torch.ones(4, 1)
        factors[0] = torch.nan if self.rank == self.ranks - 1 else 1
        (pooled * factors).sum().backward()
        self.assertTrue(rows.param_groups[0]['params'][0].grad.isnan().item())

    def test_a_gradient_that_is_refused_steps_no_rank(self):
        for number in (torch.nan, torch.inf):
            mine, _ = self.pair({'sum': 'sum'})
            pooled = mine({'sum': torch.from_numpy(KEYS)[:, None]})['sum']
            before = rows_of(mine.tables['sum'])
            factors = torch.full((len(KEYS), 1), number if self.rank == self.ranks - 1 else 1)
            with self.assertRaisesRegex(embank.InvalidArgumentError,
                                        f'rank {self.ranks - 1} of {self.ranks} has a gradient'):
                (pooled * factors).sum().backward()
            np.testing.assert_array_equal(rows_of(mine.tables['sum']), before)

    def test_a_prefetcher(self):
        mine, whole = self.pair(MODES)
        read = []
        with mock.patch.object(embank.torch._batch.Batch, 'prefetch', autospec=True,
                               side_effect=lambda batch: read.append(batch.kept)):
            all_bags = [self.bags(MODES, step, False) for step in range(STEPS)]
            loader = [{'sparse': self.batch(bags[self.rank]), 'bags': bags} for bags in all_bags]
            for batch in modules.Prefetcher(loader, mine):
                self.train(mine, whole, batch['bags'])
        self.assert_same_rows(mine, whole)
        self.assertEqual(len(read), STEPS - 1)
        keys = torch.cat([one for kept in read for one in kept[:1]]).numpy()
        self.assertEqual(set(embank.owner_of('one', keys, self.ranks)), {self.rank})
        other = sharded.EmbeddingBagCollection(embank.Store(), {'a': 2}, dist.group.WORLD)
        with self.assertRaisesRegex(embank.UnimplementedError, 'process_group=None'):
            other.prefetch({'a': torch.arange(2)})

    @unittest.skipIf(VERSION < (2, 4), 'skipped: this torch has no operators of torch.library')
    def test_torch_compile(self):
        mine, whole = self.pair(MODES)
        compiled = torch.compile(mine, backend='aot_eager', fullgraph=True)
        bags = self.bags(MODES, 1, True)
        bags[1] = bags[0]
        for _ in range(2):
            ours = compiled(self.batch(bags[self.rank]))
            theirs = whole(self.batch(self.union(bags)))
            half = len(bags[0]['one'])
            for name in MODES:
                here = theirs[name][self.rank * half:][:half]
                self.assert_equal(ours[name].detach(), here.detach(), False, name)
            for outputs, factor in ((ours, self.ranks), (theirs, 1)):
                sum(outputs[name].square().sum() * factor for name in MODES).backward()
        self.assert_same_rows(mine, whole)

    def test_dense_parts_of_distributed_data_parallel(self):
        class Model(torch.nn.Module):
            def __init__(self, rows):
                super().__init__()
                torch.manual_seed(5)
                self.rows, self.dense = rows, torch.nn.Linear(DIM, 1)

            def forward(self, keys):
                return self.dense(self.rows({'sum': keys})['sum'])

        models = [Model(rows) for rows in self.pair({'sum': 'sum'}, optimizer='sgd', lr=0.3,
                                                    reduction='mean')]
        parallel = torch.nn.parallel.DistributedDataParallel(models[0])
        dense = [torch.optim.SGD(model.parameters(), 0.1) for model in models]
        for step in range(5):
            keys = torch.from_numpy(np.random.default_rng(step).integers(0, 20, (4, 3)))
            for call, optimizer, part in ((parallel, dense[0], keys.chunk(self.ranks)[self.rank]),
                                          (models[1], dense[1], keys)):
                loss = (call(part.contiguous()) - 1).square().mean()
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        close(models[0].dense.weight.detach(), models[1].dense.weight.detach())
        self.assert_same_rows(models[0].rows, models[1].rows)


class Refused(Case):
    def assert_refused(self, text, error=embank.FailedPreconditionError, store=None, group=None,
                       features=None, **options):
        store = embank.Store(seed=1) if store is None else store
        before = store.tables()
        with self.assertRaisesRegex(error, text):
            sharded.EmbeddingBagCollection(store, features or {'a': 2, 'b': 2}, group, **options)
        self.assertEqual(store.tables(), before)

    def test_ranks_that_differ(self):
        rank = self.rank
        for text, options in (
                ('rank 1 has feature b with table b.*rank 0 has feature a with table a',
                 {'features': {'b': 2, 'a': 2} if rank else {'a': 2, 'b': 2}}),
                ('rank 1 has 1 features, and rank 0 2', {'features': {'a': 2} if rank else None}),
                ('dim=3.*dim=2', {'features': {'a': 2 + rank}}),
                ('pooling 2.*pooling 1', {'features': {'a': (2, ('sum', 'mean')[rank])}}),
                ('learning_rate=1.0.*learning_rate=0.5', {'lr': (1 + rank) / 2}),
                ('seed 1, and rank 0 has seed 0', {'store': embank.Store(seed=rank)}),
                ("reduction 'sum'", {'reduction': ('mean', 'sum')[rank]})):
            with self.subTest(text):
                self.assert_refused(text, **options)

    def test_an_argument_of_one_rank(self):
        for text, error, options in (
                ("reduction is 'max'", ValueError, {'reduction': 'max'}),
                ("mode 'max' is not there", embank.UnimplementedError,
                 {'features': {'a': 2, 'b': (2, 'max')}}),
                ("device is 'cuda'", embank.UnimplementedError, {'device': 'cuda'})):
            with self.subTest(text):
                if self.rank:
                    self.assert_refused(text, error, **options)
                else:
                    self.assert_refused(f'rank 1 of 2 has failed: {error.__name__}: {text}'.replace(
                        'ValueError', 'InvalidArgumentError'))

    def test_stores_of_others(self):
        mine = embank.Store(seed=1)
        sharded.EmbeddingBagCollection(mine, {'a': 2})
        groups = [dist.new_group([rank]) for rank in range(self.ranks)]
        self.assert_refused(f'is of rank {self.rank} of 2; this process is rank 0 of 1', store=mine,
                            group=groups[self.rank])
        plain = embank.Store(seed=1)
        plain.table('old', dim=2).lookup(np.arange(3))
        self.assert_refused('has rows of table old and is of no rank', store=plain)


class Nccl(Case):
    @contextlib.contextmanager
    def said(self):
        """Has gloo say that it is NCCL, and refuse tensors of the CPU; yields what was called."""
        def on_cuda(name, run, *arguments, group):
            tensors = [one for one in arguments if isinstance(one, torch.Tensor)]
            self.assertEqual({one.device for one in tensors}, {CUDA})
            called.add(name)
            run(*map(plain, tensors), *arguments[len(tensors):], group=group)

        called, runs = set(), {name: functools.partial(on_cuda, name, getattr(dist, name))
                               for name in COLLECTIVES}
        with tensors_in(TwinMemory(embank.Store(hbm_bytes='1MiB'))), \
                mock.patch.multiple(dist, get_backend=lambda group: 'nccl', **runs), \
                mock.patch.object(torch.cuda, 'current_device', lambda: CUDA.index):
            yield called

    def test_tensors_are_on_the_current_device_and_have_the_bits_of_gloo(self):
        found = []
        for said in (contextlib.nullcontext(), self.said()):
            with said as called:
                mine, whole = self.pair(MODES, reduction='sum')
                rows = modules.RowOptimizer(mine, deferred=True)
                outputs, _ = self.train(mine, whole, self.bags(MODES, 0, False))
                rows.step()
            found.append([*outputs.values(), *map(rows_of, mine.tables.values())])
        self.assertEqual(called, set(COLLECTIVES))
        for ours, theirs in zip(*found, strict=True):
            np.testing.assert_array_equal(bits(ours), bits(theirs))


class Saved(Case):
    def test_checkpoints_of_all_ranks(self):
        names = [tempfile.mkdtemp()]
        dist.broadcast_object_list(names)
        path = names[0]
        layer = torch.nn.Linear(2, 1)

        def opened():
            store = sharded.open_store(path, seed=1)
            self.addCleanup(store.close)
            return store, sharded.EmbeddingBagCollection(store, {'a': DIM})

        def refused(text, function, *arguments, error=embank.FailedPreconditionError, **options):
            with self.assertRaisesRegex(error, text):
                function(*arguments, **options)

        store, rows = opened()
        self.assertEqual(sharded.load(store, layer=layer), 0)
        for step in (4, 7):
            rows({'a': torch.arange(step)})['a'].sum().backward()
            sharded.save(store, step=step, layer=layer)
            saved = rows.tables['a'].lookup(np.arange(7), missing='zero')
        rows({'a': torch.arange(20)})['a'].sum().backward()
        for text, step in (('step is 7; it must be greater', 7), ('step is 1.5', 1.5)):
            refused(text, sharded.save, store, step=step, error=(ValueError, TypeError))
        refused('at the steps 8, 9', sharded.save, store, step=8 + self.rank)
        refused(r'has failed: TypeError: odd is a int|odd is a int', sharded.save, store, step=8,
                error=(embank.FailedPreconditionError, TypeError),
                **({'odd': 3} if self.rank else {}))
        # Rank 0 has saved step 8, unlike the others, which go back to step 7 with it.
        store.close()
        store, rows = opened()
        self.assertEqual(sharded.load(store, layer=layer), 7)
        np.testing.assert_array_equal(rows.tables['a'].lookup(np.arange(7), missing='zero'), saved)
        if self.rank == 0:
            store.checkpoint(b'foreign')
        refused("begins with b'foreign'", sharded.load, store,
                error=(ValueError, embank.FailedPreconditionError))
        store.close()
        refused("begins with b'foreign'", sharded.open_store, path, seed=1,
                error=(ValueError, embank.FailedPreconditionError))
        for step in (8, 9):
            if self.rank == 0:
                with embank.Store(f'{path}/rank_0', seed=1) as alone:
                    modules.save(alone, step=step)
        refused('at the steps 8, 7: their checkpoints cannot be used', sharded.open_store, path,
                seed=1)


def train(path, died_at, death):
    """Trains to step 6 with a checkpoint for each step; rank 1 dies when told to, in step died_at.
    """
    torch.manual_seed(1)
    rank = dist.get_rank()
    store = sharded.open_store(path, seed=1)
    rows = sharded.EmbeddingBagCollection(store, {'a': (DIM, 'mean')}, lr=0.1)
    dense = torch.nn.Linear(DIM, 1)
    step = sharded.load(store, dense=dense)

    def die(*_, **__):
        os.kill(os.getpid(), signal.SIGKILL)

    print('begin', step, flush=True)
    while step < 6:
        step += 1
        keys = torch.from_numpy(np.random.default_rng([rank, step]).integers(0, 30, (4, 5)))
        is_last = rank == 1 and step == died_at
        if is_last and death == 'forward':
            die()
        pooled = rows({'a': keys})['a']
        if is_last and death == 'backward':
            die()
        loss = dense(pooled).square().mean()
        loss.backward()
        print('loss', step, loss.item(), flush=True)
        with mock.patch.object(sharded.training_state, 'save', die if is_last else modules.save):
            sharded.save(store, step=step, dense=dense)


if __name__ == '__main__':
    signal.alarm(45)  # A rank that waits for another one in vain must not stay.
    torch.set_num_threads(1)
    dist.init_process_group('gloo')
    is_well = False
    try:
        if sys.argv[1:2] == ['train']:
            train(sys.argv[2], int(sys.argv[3]), sys.argv[4])
            is_well = True
        else:
            # The end of this rank ends the others.
            is_well = unittest.main(failfast=True, exit=False).result.wasSuccessful()
    except Exception:
        traceback.print_exc()
    sys.stdout.flush()
    sys.stderr.flush()
    # Threads of gloo may abort a process at its end, after all that is looked at here.
    os._exit(0 if is_well else 1)
