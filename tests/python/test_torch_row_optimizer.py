"""RowOptimizer: schedulers, accumulation, clipping, GradScaler and autocast reach the rows."""
import unittest
import warnings

import embank
import numpy as np
from torch_rows import (DIM, KEYS, RATE, ROWS, SGD, VERSION, RowsCase, close, modules, rows_of,
                        torch)

nn = torch.nn
SCALE = 1024.0
SCHEDULERS = {
    'StepLR': lambda one: torch.optim.lr_scheduler.StepLR(one, 2, gamma=0.5),
    'LambdaLR': lambda one: torch.optim.lr_scheduler.LambdaLR(one, lambda at: 1 / (1 + at)),
    'CosineAnnealingLR': lambda one: torch.optim.lr_scheduler.CosineAnnealingLR(one, 4),
    'OneCycleLR': lambda one: torch.optim.lr_scheduler.OneCycleLR(
        one, 0.2, total_steps=9, cycle_momentum=False),
}


class SmallScaler:
    """Does what GradScaler does, on the CPU of every torch."""

    def __init__(self):
        self.scale_now, self.is_found = SCALE, False

    def scale(self, loss):
        return loss * self.scale_now

    def unscale_(self, optimizer):
        for group in optimizer.param_groups:
            for parameter in group['params']:
                if parameter.grad is not None:
                    parameter.grad.mul_(1 / self.scale_now)
                    self.is_found |= not bool(parameter.grad.isfinite().all())

    def step(self, optimizer):
        if getattr(optimizer, '_step_supports_amp_scaling', False):
            optimizer.step(grad_scaler=self)
        elif not self.is_found:
            optimizer.step()

    def update(self):
        self.scale_now, self.is_found = self.scale_now / (2 if self.is_found else 1), False

    def get_scale(self):
        return self.scale_now


def scalers():
    """SmallScaler, and that of torch, if it works on the CPU."""
    yield SmallScaler()
    if VERSION >= (2, 3):
        yield torch.amp.GradScaler('cpu', init_scale=SCALE)


class Model(nn.Module):
    """Two bags and a dense layer."""

    def __init__(self, users, items):
        super().__init__()
        self.users, self.items = users, items
        torch.manual_seed(7)
        self.dense = nn.Linear(2 * DIM, 1)

    def forward(self, keys):
        return self.dense(torch.cat([self.users(keys), self.items(keys + 2)], dim=1))


class RowOptimizers(RowsCase):
    def pair(self, name, deferred=True, **options):
        """A model with rows of the store, one with those of torch, and their optimizers."""
        options = {**SGD, **options}
        ours = Model(*(modules.EmbeddingBag(self.store, f'{name} {part}', DIM, mode=mode, **options)
                       for part, mode in (('users', 'sum'), ('items', 'mean'))))
        theirs = Model(*(nn.EmbeddingBag(ROWS, DIM, mode=bag.mode, _weight=self.fill(bag.table)
                                         .detach()) for bag in (ours.users, ours.items)))
        optimizers = [torch.optim.SGD(ours.dense.parameters(), RATE)]
        optimizers.append(modules.RowOptimizer(ours, deferred=deferred))
        return ours, theirs, optimizers, [torch.optim.SGD(theirs.parameters(), RATE)]

    def assert_equal_models(self, ours, theirs):
        close(ours.dense.weight.detach(), theirs.dense.weight.detach())
        for bag, other in ((ours.users, theirs.users), (ours.items, theirs.items)):
            close(rows_of(bag.table), other.weight.detach())

    def batch(self, at, samples=8):
        return torch.from_numpy(np.random.default_rng(at).integers(0, ROWS - 2, (samples, 3)))

    def test_schedulers_set_the_rates_of_rows(self):
        for name, schedule in SCHEDULERS.items():
            for deferred in (False, True):
                with self.subTest(name, deferred=deferred):
                    ours, theirs, both, other = self.pair(f'{name} {deferred}', deferred)
                    schedules = [schedule(one) for one in both + other]
                    for at in range(6):
                        for model, optimizers in ((ours, both), (theirs, other)):
                            for optimizer in optimizers:
                                optimizer.zero_grad()
                            model(self.batch(at)).square().mean().backward()
                            for optimizer in optimizers:
                                optimizer.step()
                        for one in schedules:
                            one.step()
                    self.assert_equal_models(ours, theirs)
                    self.assertNotEqual(ours.users.table.learning_rate, RATE)

    def test_small_batches_add_up_to_a_large_one(self):
        ours, theirs, both, other = self.pair('small')
        keys = self.batch(1)
        for part in keys.split(2):
            (ours(part).square().mean() / 4).backward()
            close(rows_of(ours.users.table), self.weight, 'a step before step()')
        theirs(keys).square().mean().backward()
        for optimizer in both + other:
            optimizer.step()
        self.assert_equal_models(ours, theirs)
        both[1].zero_grad()
        before = rows_of(ours.users.table)
        both[1].step()
        close(rows_of(ours.users.table), before)

    def test_a_step_uses_sums_again_until_zero_grad(self):
        ours, theirs, both, other = self.pair('again')
        for model, optimizers in ((ours, both), (theirs, other)):
            for at in range(2):
                model(self.batch(at)).square().mean().backward()
                for optimizer in optimizers:
                    optimizer.step()
        self.assert_equal_models(ours, theirs)

    def test_gradients_of_all_are_clipped_by_their_common_norm(self):
        for limit in (0.01, 1e6):
            with self.subTest(limit=limit):
                ours, theirs, both, other = self.pair(f'limit {limit}')
                norms = []
                for model, optimizers in ((ours, both), (theirs, other)):
                    model(self.batch(1)).square().sum().backward()
                    norms.append(nn.utils.clip_grad_norm_(
                        [parameter for optimizer in optimizers
                         for group in optimizer.param_groups for parameter in group['params']],
                        limit))
                    for optimizer in optimizers:
                        optimizer.step()
                close(*norms)
                self.assert_equal_models(ours, theirs)

    def test_a_scaler_unscales_and_skips(self):
        for number, scaler in enumerate(scalers()):
            with self.subTest(scaler=type(scaler).__name__):
                ours, theirs, both, other = self.pair(f'scaler {number}')
                for at, is_broken in enumerate((False, True, False)):
                    loss = ours(self.batch(at)).square().mean()
                    scaler.scale(loss * (np.inf if is_broken else 1)).backward()
                    for optimizer in both:
                        scaler.unscale_(optimizer)
                    parameters = [*ours.dense.parameters(),
                                  *(group['params'][0] for group in both[1].param_groups)]
                    nn.utils.clip_grad_norm_(parameters, 1.0)
                    for optimizer in both:
                        scaler.step(optimizer)
                        optimizer.zero_grad()
                    scaler.update()
                    if not is_broken:
                        other[0].zero_grad()
                        theirs(self.batch(at)).square().mean().backward()
                        nn.utils.clip_grad_norm_(theirs.parameters(), 1.0)
                        other[0].step()
                    self.assert_equal_models(ours, theirs)
                self.assertEqual(scaler.get_scale(), SCALE / 2)

    def test_a_scaler_without_deferred_is_refused(self):
        for number, scaler in enumerate(scalers()):
            _, _, (_, rows), _ = self.pair(f'scaler {number}', deferred=False)
            scaler.scale(torch.ones(1))
            with warnings.catch_warnings():  # One of torch, which will do it in another way.
                warnings.simplefilter('ignore')
                self.assert_refused(embank.FailedPreconditionError,
                                    'needs RowOptimizer.*deferred=True', scaler.step, rows)
        rows.found_inf = torch.zeros(1)
        self.assert_refused(embank.FailedPreconditionError, 'needs RowOptimizer', rows.step)

    def test_autocast(self):
        ours, theirs, both, other = self.pair('autocast', deferred=False)
        for model, optimizers in ((ours, both), (theirs, other)):
            for at in range(3):
                with torch.autocast('cpu', dtype=torch.bfloat16):
                    outputs = model(self.batch(at))
                    self.assertEqual(outputs.dtype, torch.bfloat16)
                    loss = outputs.float().square().mean()
                for optimizer in optimizers:
                    optimizer.zero_grad()
                loss.backward()
                for optimizer in optimizers:
                    optimizer.step()
        self.assert_equal_models(ours, theirs)

    def test_deferred_sums_of_all_poolings_and_weights(self):
        table = self.store.table('shared', dim=DIM, optimizer='sgd', learning_rate=RATE)
        weights = torch.tensor([0.5, 2.0, -1.0, 3.0])
        batch = {'plain': (torch.tensor([4, 2, 2, 9]), torch.tensor([0, 3, 4])),
                 'mean': (torch.tensor([4, 2, 7, 9]), torch.tensor([1, 1, 3]), weights),
                 'root': (torch.tensor([1, 2, 2, 9]).int(), torch.tensor([0, 3, 4])),
                 'one': torch.tensor([2, 5])}
        features = {'plain': table, 'mean': (table, 'mean'), 'root': (table, 'sqrtn'),
                    'one': table}
        steps = []
        for is_deferred in (False, True):
            self.fill(table)
            collection = modules.EmbeddingBagCollection(self.store, features, padding_idx=9)
            rows = modules.RowOptimizer([collection], deferred=is_deferred)
            pooled = collection(batch)
            sum(value.square().sum() for value in pooled.values()).backward()
            rows.step()
            steps.append(rows_of(table))
        close(*steps)
        self.assertGreater(np.abs(steps[0] - self.weight).max(), 1)

    def test_a_closure_and_keys_of_64_bits(self):
        module = modules.Embedding(self.store, 't', DIM, padding_idx=(1 << 64) - 1, **SGD)
        rows = modules.RowOptimizer(module, deferred=True)
        keys = torch.tensor([-1, -2, -2, 1 << 62])
        start = module(keys).detach()

        def closure():
            loss = module(keys).sum()
            loss.backward()
            return loss

        self.assertEqual(rows.step(closure), start.sum())
        steps = (start - module(keys).detach()) / RATE
        self.assertEqual(steps[:, 0].round().tolist(), [0, 2, 2, 1])
        self.assertEqual(len(module.table), 2)

    def test_rows_that_were_forgotten_are_left_out(self):
        for deferred in (None, False, True):
            with self.subTest(deferred=deferred):
                module = modules.Embedding(self.store, f't {deferred}', DIM, on_full='forget',
                                           **SGD)
                rows = None
                if deferred is not None:
                    rows = modules.RowOptimizer(module, deferred=deferred)
                loss = module(torch.tensor([1, 2, 3])).sum()
                module.table.erase(np.array([2]))
                start = rows_of(module.table)
                loss.backward()
                if rows is not None:
                    rows.step()
                moved = np.flatnonzero((start - rows_of(module.table))[:, 0])
                self.assertEqual(moved.tolist(), [1, 3])

    def test_what_is_refused(self):
        bag = modules.EmbeddingBag(self.store, 't', DIM, **SGD)
        rows = modules.RowOptimizer(bag, deferred=True)
        other = modules.EmbeddingBag(embank.Store(), 't', DIM, **SGD)
        third = modules.EmbeddingBag(self.store, 'u', DIM, **SGD)
        for given, error, text in ((bag, RuntimeError, 'has a RowOptimizer already'),
                                   ([third, other], ValueError, 'rows of two stores'),
                                   (nn.Linear(1, 1), ValueError, 'no module with rows'),
                                   ([3], TypeError, 'modules has a int'),
                                   ([], ValueError, 'no module with rows')):
            with self.subTest(text):
                self.assert_refused(error, text, modules.RowOptimizer, given)
        self.assertTrue(rows.is_deferred)
        fourth = modules.EmbeddingBagCollection(self.store, {'v': DIM})
        loss = fourth({'v': torch.tensor([[1, 2]])})['v'].sum()
        modules.RowOptimizer(fourth, deferred=True)
        for _ in range(2):
            self.assert_refused(RuntimeError, 'made between forward and backward', loss.backward)
        self.fill(bag.table)
        bag(torch.tensor([[1, 2]])).sum().backward()
        rows.param_groups[0]['params'][0].grad = None
        self.assert_refused(RuntimeError, 'the grad of table t was removed', rows.step)
        rows.zero_grad()
        pair = modules.EmbeddingBagCollection(self.store, {'x': 1, 'y': 1}, optimizer='sgd', lr=1.0)
        of_pair = modules.RowOptimizer(pair, deferred=True)
        batch = dict.fromkeys('xy', torch.tensor([1]))
        before = pair(batch)['x'].detach()
        sum(pair(batch).values()).sum().backward()
        parameter = of_pair.param_groups[1]['params'][0]
        grad, parameter.grad = parameter.grad, None
        loss = sum(pair(batch).values()).sum()
        self.assert_refused(RuntimeError, 'the grad of table y was removed', loss.backward)
        parameter.grad = grad
        loss.backward()
        of_pair.step()
        close(pair(batch)['x'].detach(), before - 2)
        (bag(torch.tensor([[1, 2]])) * np.nan).sum().backward()
        self.assert_refused(ValueError, 'NaN', rows.step)
        rows.zero_grad()
        rows.param_groups[0]['lr'] = -1.0
        self.assert_refused(ValueError, 'learning_rate', rows.step)

    def test_two_models_on_one_store(self):
        keys, weight = self.batch(3), torch.tensor(self.weight, requires_grad=True)
        models = [self.pair('same', deferred)[:3:2] for deferred in (False, True)]
        for model, (_, rows) in models:
            before = weight.grad
            model.users(keys).square().sum().backward()
            rows.step()
            bags = nn.functional.embedding_bag(keys, weight, mode='sum')
            weight.grad = None
            bags.square().sum().backward()
            with torch.no_grad():
                weight -= RATE * weight.grad
            self.assertFalse(before is not None and torch.equal(weight.grad, before))
            for other, _ in models:
                close(rows_of(other.users.table), weight.detach())


if __name__ == '__main__':
    unittest.main()
