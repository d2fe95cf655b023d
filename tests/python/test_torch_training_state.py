"""save and load: a training that was killed at any moment goes on with the same losses."""
import contextlib
import multiprocessing
import os
import pathlib
import random
import signal
import tempfile
import unittest
from unittest import mock

import embank
import numpy as np
from torch_rows import DIM, SGD, RowsCase, modules, torch
from embank.torch import training_state
from embank.torch._state_tree import from_bytes, to_bytes

nn, data = torch.nn, torch.utils.data
SAMPLES, BATCH, PASSES, SAVED_EVERY = 96, 8, 4, 4
STEPS = PASSES * SAMPLES // BATCH
# What a process is about to do when it dies, and whether its state is then in a file.
DEATHS = (
    ('os.fsync', True), ('os.replace', True), ('store.Store.checkpoint', True),
    ('store.Store.checkpoint', False), ('pathlib.Path.unlink', True), ('hashlib.sha256', False),
)
KILLS, KILLS_OF_A_PATH = 20, 4
SCHEDULERS = {
    'StepLR': (3,), 'MultiStepLR': ([2, 5],), 'LambdaLR': (lambda step: 1 / (1 + step),),
    'ExponentialLR': (0.9,), 'OneCycleLR': (0.1, 90), 'CosineAnnealingWarmRestarts': (4,),
    'ReduceLROnPlateau': (), 'CyclicLR': (0.01, 0.1),
}
OPTIMIZERS = {
    'SGD': {'momentum': 0.9}, 'Adam': {'amsgrad': True}, 'AdamW': {}, 'Adagrad': {}, 'RMSprop': {},
    'LBFGS': {},
}


class Samples(data.Dataset):
    def __len__(self):
        return SAMPLES

    def __getitem__(self, at):
        keys = np.random.default_rng(at).zipf(1.2, 5).clip(max=10**6)
        return {'sparse': {'a': torch.from_numpy(keys)}, 'label': torch.tensor(float(at % 2))}


class Model(nn.Module):
    """Rows, dropout and a dense layer."""

    def __init__(self, store):
        super().__init__()
        self.rows = modules.EmbeddingBagCollection(store, {'a': (DIM, 'mean')}, lr=0.2)
        self.dense = nn.Sequential(nn.Dropout(0.3), nn.Linear(DIM, 1))

    def forward(self, batch):
        return self.dense(self.rows(batch)['a'])[:, 0]


def train(path, pipe, death=None, is_in_file=False):
    """Trains from the last checkpoint on, sends losses, and may kill itself in its third save."""
    torch.set_num_threads(1)
    torch.manual_seed(11)
    store = embank.Store(path, dram_bytes='16MiB', seed=1)
    model = Model(store)
    rows = modules.RowOptimizer(model.rows)
    dense = torch.optim.Adam(model.dense.parameters(), 0.05)
    schedulers = {f'schedule{at}': torch.optim.lr_scheduler.StepLR(one, 10, 0.7)
                  for at, one in enumerate((rows, dense))}
    batches = modules.Prefetcher(data.DataLoader(Samples(), BATCH, shuffle=True), model.rows)
    parts = {'model': model, 'rows': rows, 'dense': dense, 'loader': batches, **schedulers}
    step, saves = modules.load(store, **parts), 0
    while batches.epoch < PASSES:
        for batch in batches:
            loss = nn.functional.binary_cross_entropy_with_logits(model(batch['sparse']),
                                                                  batch['label'])
            dense.zero_grad()
            loss.backward()
            for one in (rows, dense, *schedulers.values()):
                one.step()
            step += 1
            pipe.send((step, loss.item()))
            if step % SAVED_EVERY == 0:
                saves += 1
                pipe.send('saving')
                with dying(death if saves == 3 else None, is_in_file):
                    modules.save(store, step=step, **parts)
                pipe.send('saved')
    pipe.close()


@contextlib.contextmanager
def dying(death, is_in_file):
    """Kills the process where it calls `death`, and keeps states in files if wanted."""
    with contextlib.ExitStack() as stack:
        if is_in_file:
            stack.enter_context(mock.patch.object(training_state, 'INLINE_BYTES_MAX', 0))
        if death is not None:
            where = death if death.startswith('pathlib') else f'embank.torch.training_state.{death}'
            if death.startswith('store'):
                where = f'embank.{death}'
            stack.enter_context(
                mock.patch(where, lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL)))
        yield


class Killed(unittest.TestCase):
    def run_once(self, path, messages=None, death=None, is_in_file=False):
        """The losses of a process that is killed after some messages, or lives to its end."""
        receiver, sender = self.processes.Pipe(duplex=False)
        process = self.processes.Process(target=train, args=(path, sender, death, is_in_file))
        process.start()
        sender.close()
        losses, seen = {}, 0
        with contextlib.suppress(EOFError, OSError):
            while True:
                message = receiver.recv()
                seen += 1
                if isinstance(message, tuple):
                    losses[message[0]] = message[1]
                if seen == messages:
                    process.kill()
        process.join()
        self.assertEqual(process.exitcode, 0 if messages is None and death is None else -9)
        return losses

    def test_a_killed_training_has_the_losses_of_a_whole_one(self):
        self.processes = multiprocessing.get_context('forkserver')
        self.processes.set_forkserver_preload(['embank.torch'])
        with tempfile.TemporaryDirectory() as folder:
            whole = self.run_once(f'{folder}/whole')
            self.assertEqual(sorted(whole), list(range(1, STEPS + 1)))
            for at in range(KILLS):
                death, is_in_file = DEATHS[at // 3] if at % 3 == 2 else (None, at % 2 == 0)
                path = f'{folder}/{at // KILLS_OF_A_PATH}'
                found = self.run_once(path, None if death else at % 7 + 1, death, is_in_file)
                self.assertEqual(found, {step: whole[step] for step in found}, (at, death))
            first = []
            for at in range(KILLS // KILLS_OF_A_PATH):
                found = self.run_once(f'{folder}/{at}')
                self.assertEqual(found, {step: whole[step] for step in found})
                self.assertEqual(max(found), STEPS)
                first.append(min(found))
            self.assertGreater(min(first), SAVED_EVERY, 'training began again')


class States(RowsCase):
    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = pathlib.Path(folder.name) / 'store'
        self.store = embank.Store(self.path, seed=1)
        self.addCleanup(self.store.close)
        self.layer = nn.Linear(3, 2)

    def test_random_states(self):
        def draws():
            return random.random(), np.random.normal(), torch.rand(2).tolist()

        np.random.normal()  # The next number of numpy is waiting.
        modules.save(self.store)
        expected = draws()
        self.assertNotEqual(draws(), expected)
        modules.load(self.store)
        self.assertEqual(draws(), expected)
        modules.load(self.store, random=False)
        self.assertNotEqual(draws(), expected)

    def test_parts_of_torch(self):
        schedule = torch.optim.lr_scheduler
        cases = [(name, options, 'StepLR', (3,)) for name, options in OPTIMIZERS.items()]
        cases += [('SGD', {'momentum': 0.9}, name, words) for name, words in SCHEDULERS.items()]
        inputs, versions = torch.rand(4, 3), self.layer.state_dict()._metadata
        state = from_bytes(to_bytes({'layer': self.layer.state_dict()}))
        self.assertEqual(state['layer']._metadata, versions)
        for name, options, scheduler, words in cases:
            with self.subTest(name, scheduler=scheduler):
                def made():
                    torch.manual_seed(5)
                    layer = nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2))
                    optimizer = getattr(torch.optim, name)(layer.parameters(), lr=0.05, **options)
                    return {'layer': layer, 'optimizer': optimizer,
                            'scheduler': getattr(schedule, scheduler)(optimizer, *words)}

                def steps(layer, optimizer, scheduler):
                    def closure():
                        optimizer.zero_grad()
                        loss = layer(inputs).exp().mean()
                        loss.backward()
                        return loss
                    losses = []
                    for _ in range(4):
                        losses.append(optimizer.step(closure).item())
                        is_plateau = isinstance(scheduler, schedule.ReduceLROnPlateau)
                        scheduler.step(*losses[-1:] * is_plateau)
                    return losses

                parts, others = made(), made()
                steps(**parts)
                modules.save(self.store, **parts)
                modules.load(self.store, **others)
                self.assertEqual(steps(**others), steps(**parts))

    def test_a_large_state_is_a_file(self):
        large = nn.Linear(3000, 3000)
        for number in range(1, 4):
            with torch.no_grad():
                large.weight[0] = number
            self.assertEqual(modules.save(self.store, step=number, large=large), number)
            files = list(self.path.glob('training-*'))
            # That of the checkpoint before stays.
            self.assertEqual(len(files), min(number, 2), files)
        self.assertGreater(max(file.stat().st_size for file in files), 32 << 20)
        self.store.close()
        self.store = embank.Store(self.path, seed=1)
        other = nn.Linear(3000, 3000)
        self.assertEqual(modules.load(self.store, large=other), 3)
        self.assertTrue(torch.equal(other.weight, large.weight))
        last = max(files, key=lambda file: file.stat().st_mtime_ns)
        whole = last.read_bytes()
        for broken in (whole[:-1], whole[:5000] + b'x' + whole[5001:], b''):
            last.write_bytes(broken)
            self.assert_load_is_refused(embank.DataLossError, 'is damaged', large=other)
        last.unlink()
        self.assert_load_is_refused(embank.DataLossError, f'{last.name} cannot be read',
                                    large=other)
        modules.save(self.store, step=4)
        modules.save(self.store, step=5)
        self.assertEqual(list(self.path.glob('training-*')), [])

    def assert_load_is_refused(self, error, text, **parts):
        before, state = {name: part.state_dict() for name, part in parts.items()}, random.getstate()
        with self.assertRaisesRegex(error, text):
            modules.load(self.store, **parts)
        self.assertEqual(random.getstate(), state)
        for name, part in parts.items():
            for key, value in part.state_dict().items():
                self.assertTrue(torch.equal(value, before[name][key]))

    def test_states_that_are_refused(self):
        self.assertEqual(modules.load(self.store, layer=self.layer), 0)
        odd = mock.Mock(state_dict=lambda: {'text': 'x', 'inner': [{1, 2}]})
        for options, error, text in (
                ({'step': 1.5}, TypeError, 'step is 1.5'), ({'step': True}, TypeError, 'is True'),
                ({'layer': 3}, TypeError, r'layer is a int, which has no state_dict\(\)'),
                ({'random': self.layer}, ValueError, "a part is called 'random'"),
                ({'odd': odd}, TypeError, r'odd.inner\[0\] is a set; a state must be')):
            with self.subTest(text):
                self.assert_refused(error, text, modules.save, self.store, **options)
                self.assertIsNone(self.store.checkpoint_blob())
        for call in (modules.save, modules.load):
            with self.assertRaisesRegex(RuntimeError, 'the store has no path'):
                call(embank.Store())

    def test_blobs_that_are_refused(self):
        modules.save(self.store, layer=self.layer)
        head, body = self.store.checkpoint_blob().split(b'\n', 1)
        other = nn.Linear(3, 2)
        self.assert_load_is_refused(LookupError, 'other was not saved; the checkpoint has random, '
                                    'layer', layer=other, other=nn.Linear(1, 1))
        with self.assertRaisesRegex(TypeError, r'layer is a int, which has no load_state_dict'):
            modules.load(self.store, layer=3)
        for blob, error, text in (
                (b'step 7', ValueError, "begins with b'step 7'"), (b'', ValueError, "with b''"),
                (b'7\n', ValueError, "b'7"), (b'{"format": 1}\n', ValueError, 'is not of embank'),
                (head.replace(b'"version": 1', b'"version": 2') + b'\n' + body,
                 embank.FailedPreconditionError, 'has version 2 of the state'),
                (head + b'\n' + body[:-1], embank.DataLossError, 'is damaged'),
                (head + b'\n' + body[:90] + b'?' + body[91:], embank.DataLossError, 'checksum')):
            with self.subTest(text):
                self.store.checkpoint(blob)
                self.assert_load_is_refused(error, text, layer=other)

    def test_tables_of_the_module_must_be_those_of_the_state(self):
        module = modules.Embedding(self.store, 't', DIM, **SGD)
        modules.save(self.store, module=module)
        other = modules.Embedding(self.store, 'u', DIM, **SGD)
        self.assert_refused(embank.FailedPreconditionError, 'the state is of the tables',
                            modules.load, self.store, module=other)
        self.assertEqual(modules.load(self.store, module=module), 0)


if __name__ == '__main__':
    unittest.main()
