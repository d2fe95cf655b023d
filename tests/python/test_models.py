"""Predictions by numpy are those of embank-train for each model, and logs are read as it does."""
import gzip
import os
import pathlib
import subprocess
import tempfile
import unittest

import numpy as np

import embank
from embank.click_log import criteo_samples, log_of_counts, parquet_samples
from embank.model_text import describe
from embank.models import Samples, load

TRAIN = os.environ.get('EMBANK_TRAIN', '')
TOLERANCE = 1e-6
MODELS = ['dlrm', 'rmc2', 'rmc3', 'rmc4', 'syn-m1', 'syn-m2', 'syn-m3', 'syn-m4', 'wide-deep',
          'deep-fm', 'ffnn', 'mmoe'] + ['ffnn-persia'] * bool(os.environ.get('EMBANK_TEST_FULL'))
LOG = ('--generate', 'criteo-kaggle', '--divisor', 2000, '--samples', 1000)
COLUMNS = '''label click
dense price
dense clicks log
id item decimal
bag tags decimal separator ; weights :
bag seen decimal table item
'''
TEXT = b'''embank-train 2
steps 7
model ffnn
dense feature a
id feature x dim 2
id feature the dim 3 dim 2
id table 1 x
node 0 dense width 1
node 1 feature 0 width 2
node 2 feature 1 width 2
node 3 concat width 5 0 1 2
node 4 linear width 1 3
file head 1 2
node of the data
'''


def run(*words):
    ended = subprocess.run([TRAIN, *map(str, words)], capture_output=True, text=True, check=False)
    if ended.returncode:
        raise AssertionError(f'{words} failed: {ended.stderr}')
    return ended.stdout


def scores_of(path, log, folder):
    run('predict', '--path', path, '--data', log, '--out', folder / 'scores')
    return np.loadtxt(folder / 'scores', skiprows=1)


@unittest.skipUnless(TRAIN, 'EMBANK_TRAIN is not the path of embank-train')
class PredictionTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        cls.log = cls.folder / 'log.tsv'
        run(*LOG, '--write-log', cls.log)

    def train(self, model, *words):
        path = self.folder / f'{model} {len(list(self.folder.iterdir()))}'
        run('--model', model, '--data', self.log, '--path', path, '--batch', 256, *words)
        return path

    def test_every_model(self):
        for name in MODELS:
            with self.subTest(model=name):
                path = self.train(name, *(() if 'persia' in name else ('--epochs', 2)))
                expected = scores_of(path, self.log, self.folder)
                self.assertGreater(expected.std(), 0.001)
                with load(path) as model:
                    self.assertEqual(model.description.model, name)
                    found = np.concatenate([model.predict(samples)
                                            for samples in criteo_samples(self.log, 700)])
                self.assertEqual(found.dtype, np.float32)
                self.assertEqual(found.shape, (1000,))
                self.assertLess(np.abs(found - expected).max(), TOLERANCE)

    def test_ids_that_were_not_trained(self):
        path = self.train('ffnn', '--dim', 4, '--steps', 2)
        expected = scores_of(path, self.log, self.folder)
        with load(path, dram_bytes='64MiB') as model:
            found = np.concatenate([*map(model.predict, criteo_samples(self.log))])
        self.assertLess(np.abs(found - expected).max(), TOLERANCE)

    def csv(self, name, seed):
        """Writes a log with bags, weights, missing values and a table that two features share."""
        random = np.random.default_rng(seed)
        lines = ['click,price,clicks,item,tags,seen']
        for _ in range(400):
            item, tags = random.integers(0, 30), random.integers(0, 20, random.integers(0, 4))
            lines.append(f'{item % 2},{random.random():.3f},{random.integers(-2, 99)},'
                         f'{item if random.random() < .9 else ""},'
                         + ';'.join(f'{tag}:{random.random():.2f}' for tag in tags) + ','
                         + '|'.join(map(str, random.integers(0, 30, random.integers(0, 3)))))
        file = self.folder / name
        file.write_text('\n'.join(lines) + '\n')
        return file

    @staticmethod
    def arrays(file):
        """Returns the samples of such a log."""
        fields = [line.split(',') for line in file.read_text().splitlines()[1:]]

        def bags(column, separator):
            parts = [[part for part in line[column].split(separator) if part] for line in fields]
            offsets = np.cumsum([0] + [len(part) for part in parts])
            return offsets, [number for part in parts for number in part]
        tag_offsets, tags = bags(4, ';')
        seen_offsets, seen = bags(5, '|')
        dense = np.array([[float(line[1]) for line in fields],
                          log_of_counts(np.array([int(line[2]) for line in fields]))], np.float32).T
        return Samples(np.ascontiguousarray(dense), {
            'item': np.array([int(line[3] or -1) for line in fields]),
            'tags': (np.array([int(tag.split(':')[0]) for tag in tags], np.int32),
                     tag_offsets.astype(np.int32),
                     np.array([float(tag.split(':')[1]) for tag in tags], np.float32)),
            'seen': (np.array(seen, np.uint64), seen_offsets)})

    def test_bags_with_weights_and_a_shared_table(self):
        columns = self.folder / 'columns'
        columns.write_text(COLUMNS)
        log = self.csv('train.csv', 1)
        for model in ('deep-fm', 'dlrm'):
            with self.subTest(model=model):
                path = self.folder / f'bags {model}'
                run('--model', model, '--dim', 8, '--data', log, '--columns', columns, '--path',
                    path, '--epochs', 20, '--batch', 64)
                file = self.csv('test.csv', 2)
                expected = scores_of(path, file, self.folder)
                self.assertGreater(expected.std(), 0.1)
                with load(path) as trained:
                    found = trained.predict(self.arrays(file))
                    self.assertLess(np.abs(found - expected).max(), TOLERANCE)
                    self.assertIn(('id item', 'seen', 8), trained.description.tables)

    def test_wrong_samples(self):
        path = self.train('dlrm', '--dim', 4)
        first = next(criteo_samples(self.log, 3))
        ids = first.ids
        cases = (
            (embank.InvalidArgumentError, 'dense has dtype float64', first.dense.astype(float),
             ids),
            (embank.InvalidArgumentError, r'shape \(3, 12\); it must .* 13 columns',
             first.dense[:, 1:], ids),
            (embank.InvalidArgumentError, r'shape \(\)', np.array(1, np.float32), ids),
            (embank.InvalidArgumentError, "ids has no 'C5'", first.dense,
             {name: ids[name] for name in ids if name != 'C5'}),
            (embank.InvalidArgumentError, "ids has 'C27'", first.dense, {**ids, 'C27': ids['C1']}),
            (embank.InvalidArgumentError, r"ids\['C2'\] has 2 samples, and dense 3", first.dense,
             {**ids, 'C2': ids['C2'][:2]}),
            (TypeError, r"ids\['C2'\] has dtype float64", first.dense,
             {**ids, 'C2': ids['C2'].astype(float)}),
            (TypeError, r"ids\['C2'\] is a list", first.dense, {**ids, 'C2': [1, 2, 3]}),
            (embank.InvalidArgumentError, 'has 4 arrays', first.dense, {**ids, 'C2': (1, 2, 3, 4)}),
            (embank.InvalidArgumentError, 'offsets', first.dense,
             {**ids, 'C2': (ids['C2'], np.array([0, 3, 1, 4]))}),
            (embank.InvalidArgumentError, 'fall', first.dense,
             {**ids, 'C2': (ids['C2'], np.array([0, 3, 1, 3]))}),
            (TypeError, 'ids is a list', first.dense, [1]))
        with load(path) as model:
            for error, message, dense, given in cases:
                with self.subTest(message=message):
                    with self.assertRaisesRegex(error, message):
                        model.predict(Samples(dense, given))
            self.assertEqual(model.predict(Samples(first.dense[:0], {
                name: one[:0] for name, one in ids.items()})).shape, (0,))

    def test_stores_without_a_model(self):
        cases = {'no checkpoint': None, 'another blob': b'mine',
                 'a newer one': b'embank-train 3\n'}
        for name, blob in cases.items():
            with self.subTest(name):
                path = self.folder / name
                with embank.Store(path) as store:
                    store.checkpoint() if blob is None else store.checkpoint(blob)
                with self.assertRaises(embank.FailedPreconditionError):
                    load(path)
                embank.Store(path).close()  # load has closed the store
        path = self.train('mmoe')
        with embank.Store(path, seed=1) as store:
            dense = store.table('dense parameters')
            dense.erase(np.array([1], np.uint64))
            store.checkpoint(store.checkpoint_blob())
        with self.assertRaisesRegex(embank.DataLossError, '1 of .* rows of dense'):
            load(path)


class DescriptionTest(unittest.TestCase):
    def test_text(self):
        found = describe(TEXT)
        self.assertEqual((found.model, found.steps, found.dense), ('ffnn', 7, ['a']))
        self.assertEqual(found.ids, ['x', 'the dim 3'])
        self.assertEqual(found.tables, [('id x', 'x', 2), ('id x', 'the dim 3', 2)])
        self.assertEqual(found.nodes[3:], [('concat', 5, [0, 1, 2], 0, False),
                                           ('linear', 1, [3], 0, False)])

    def test_broken_texts(self):
        cases = ((b'train 2', b'train 9', embank.FailedPreconditionError, 'version 1 or 2'),
                 (b'steps 7', b'rank 1 of 2', embank.FailedPreconditionError, 'reshard'),
                 (b'steps 7', b'steps x', embank.DataLossError, 'no steps'),
                 (b'model ffnn\n', b'', embank.DataLossError, 'no model'),
                 (b'4 linear width 1 3', b'4 linear width 2 3', embank.DataLossError, 'one logit'),
                 (b'4 linear width 1 3', b'4 linear width 1 4', embank.DataLossError, 'before it'),
                 (b'4 linear width 1 3', b'4 linear width 1', embank.DataLossError, '1 nodes'),
                 (b'4 linear', b'5 linear', embank.DataLossError, 'node 4'),
                 (b'3 concat', b'3 conv', embank.DataLossError, 'node 3'),
                 (b'feature 1 width 2', b'feature 1 width 3', embank.DataLossError, 'width 3'),
                 (b'feature 1 width 2', b'feature 9 width 2', embank.DataLossError, 'feature 9'))
        for old, new, error, message in cases:
            with self.subTest(new=new):
                self.assertIn(old, TEXT)
                with self.assertRaisesRegex(error, message):
                    describe(TEXT.replace(old, new))


class ClickLogTest(unittest.TestCase):
    def setUp(self):
        self.file = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory())) / 'log'

    def test_fields(self):
        lines = '5\t\t0000000a\tFFFFFFFF', '-3\t12.0\t\tNA', '1e3\tnull\t00000001\tdeadBEEF'
        for opener, label in ((open, ''), (gzip.open, 'x\t'), (open, '\t')):
            with opener(self.file, 'wb') as file:
                file.write('\r\n'.join(label + line for line in lines).encode())
            first, second = criteo_samples(self.file, 2, integers=2, ids=2)
            self.assertEqual(first.ids['C1'].tolist(), [10, 2 ** 64 - 1])
            self.assertEqual(first.ids['C2'].tolist(), [0xffffffff, 2 ** 64 - 1])
            self.assertEqual(second.ids['C2'].tolist(), [0xdeadbeef])
            np.testing.assert_array_equal(first.dense, np.log(np.array(
                [[6, 1], [1, 13]])).astype(np.float32))
            np.testing.assert_array_equal(second.dense, [[np.float32(np.log(1001)), 0]])

    def test_broken_lines(self):
        for line, message in (('1\t2\t', '3 fields; .* 4'), ('1\t2\t3\tx', 'hexadecimal'),
                              ('0\t1\t2\t0x00000a', 'hexadecimal'), ('0\t1_0\t2\t', '1_0'),
                              ('0\t1.5\t2\t', 'whole number'), ('0\tinf\t2\t', 'infinity'),
                              ('0\t12345678901234567890\t2\t', '18 digits'), ('', '1 fields')):
            with self.subTest(line=line):
                self.file.write_text(f'0\t1\t2\t\n{line}\n')
                with self.assertRaisesRegex(embank.InvalidArgumentError, f'line 2: .*{message}'):
                    list(criteo_samples(self.file, integers=2, ids=1))

    def test_parquet(self):
        try:
            import pyarrow as pa
            import pyarrow.parquet as pq
        except ImportError as error:
            with self.assertRaisesRegex(embank.UnimplementedError, 'needs pyarrow'):
                next(parquet_samples(self.file, ['a'], ['x']))
            self.skipTest(f'pyarrow is not there: {error}')
        pq.write_table(pa.table({
            'a': pa.array([1, None, 3]), 'b': pa.array([.5, 1., 2.], pa.float32()),
            'x': pa.array([7, None, -2]), 'y': pa.array([1, 2, 2 ** 64 - 1], pa.uint64()),
            'bag': pa.array([[1, 2], [], None], pa.list_(pa.int32())), 't': ['a', 'b', 'c']}),
            self.file)
        first, second = parquet_samples(self.file, ['a', 'b'], ['x', 'y', 'bag'], 2)
        self.assertEqual(first.dense.tolist(), [[1, .5], [0, 1]])
        self.assertEqual(first.ids['x'].tolist(), [7, 2 ** 64 - 1])
        self.assertEqual([array.tolist() for array in first.ids['bag']], [[1, 2], [0, 2, 2]])
        self.assertEqual([array.tolist() for array in second.ids['bag']], [[], [0, 0]])
        self.assertEqual(second.ids['y'].tolist(), [2 ** 64 - 1])
        for dense, ids, message in ((['c'], ['x'], "no column 'c'"), (['t'], ['x'], 'numbers'),
                                    (['a'], ['t'], 'integers')):
            with self.assertRaisesRegex(embank.InvalidArgumentError, message):
                next(parquet_samples(self.file, dense, ids))


if __name__ == '__main__':
    unittest.main()
