"""click_model.py has the AUC of torch and goes on after a kill; tutorial.py shows equal numbers."""
import contextlib
import gzip
import io
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import tokenize
import unittest

import embank

try:
    import torch
except ImportError as missing:
    raise unittest.SkipTest(f'skipped: {missing}') from missing

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / 'examples' / 'python'
LINES_MAX = 8
SMALL = ['--samples', '30000', '--batch', '512', '--dram', '16MiB', '--threads', '1']


def example(name):
    sys.path.insert(0, str(EXAMPLES))
    try:
        return __import__(name)
    finally:
        sys.path.remove(str(EXAMPLES))


def run(name, *words):
    return subprocess.run([sys.executable, '-B', str(EXAMPLES / name), *words], text=True,
                          capture_output=True, check=False)


class ClickModel(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def figures(self, *words):
        path = self.folder / f'figures-{len(list(self.folder.iterdir()))}.json'
        ended = run('click_model.py', *SMALL, *words, '--json', str(path))
        self.assertEqual(ended.returncode, 0, ended.stderr)
        return json.loads(path.read_text()), ended.stdout

    def test_it_has_at_most_eight_lines_of_embank(self):
        with tokenize.open(EXAMPLES / 'click_model.py') as file:
            tokens = list(tokenize.generate_tokens(file.readline))
        marked = {token.start[0] for token in tokens if token.string == '# Embank'}
        used = set()
        for token in tokens:
            if token.type == tokenize.NAME and token.string in ('embank', 'store'):
                used.add(token.start[0])
        self.assertEqual(marked, used)
        self.assertLessEqual(len(marked), LINES_MAX)
        self.assertGreater(len(marked), 5)

    def test_it_has_the_auc_of_torch(self):
        for optimizer, floor in (('adagrad', 0.74), ('sgd', 0.72)):
            with self.subTest(optimizer=optimizer):
                figures, _ = self.figures('--no-kill', '--peer', '--optimizer', optimizer)
                peer = figures['peer']
                self.assertEqual(len(peer['losses']), len(figures['losses']))
                self.assertAlmostEqual(figures['auc'], peer['auc'], delta=0.001)
                self.assertGreater(figures['auc'], floor)
                self.assertLess(figures['auc'], figures['best_auc'])

    def test_a_killed_run_goes_on_to_the_same_losses(self):
        whole, _ = self.figures('--no-kill')
        resumed, told = self.figures()
        self.assertIn('and killed', told)
        self.assertEqual(whole['first_step'], 0)
        self.assertGreater(resumed['first_step'], 0)
        self.assertGreater(len(resumed['losses']), 0)
        self.assertEqual(resumed['losses'], whole['losses'][resumed['first_step']:])
        self.assertEqual((resumed['auc'], resumed['rows']), (whole['auc'], whole['rows']))
        self.assertLess(resumed['rows_in_memory'], resumed['rows'])

    def test_a_file_is_read(self):
        data = example('click_data')
        line = '\t'.join(['1', *['3'] * data.INTEGERS, *['000000ff'] * data.IDS])
        path = self.folder / 'log.tsv.gz'
        path.write_bytes(gzip.compress(f'{line}\n0{line[1:-2]}fe\n'.encode()))
        log = data.read(path)
        self.assertEqual(log.labels.tolist(), [1, 0])
        self.assertEqual(log.ids[-1].tolist(), [255, 254])
        self.assertAlmostEqual(float(log.dense[1, 2]), 1.386294, places=5)

    def test_broken_input_is_named(self):
        data = example('click_data')
        for text, told in (('', 'has no line'), ('2\t3\n', "line 1: the label is b'2'"),
                           ('1\t3\n', 'line 1: it has 2 fields')):
            with self.subTest(text=text):
                (self.folder / 'log').write_text(text)
                with self.assertRaisesRegex(embank.InvalidArgumentError, told):
                    data.read(self.folder / 'log')
        options = example('click_model').parse_options
        version = tuple(map(int, torch.__version__.split('.')[:2]))
        cases = [(['--samples', '0'], '--samples is 0; it must be 1 or more')]
        if version < (2, 4):
            cases.append((['--compile'], '--compile needs torch 2.4; this is 1'))
        for words, told in cases:
            with self.subTest(words=words), contextlib.redirect_stderr(io.StringIO()) as error:
                with self.assertRaises(SystemExit):
                    options(words)
                self.assertIn(told, error.getvalue())

    def test_the_tutorial_shows_equal_numbers(self):
        ended = run('tutorial.py')
        self.assertEqual(ended.returncode, 0, ended.stderr)
        self.assertEqual(re.findall(r'same .*: (\w+)', ended.stdout), ['True'] * 3)
        on_disk = re.search(r'^ +disk +([\d,]+)', ended.stdout, re.M)
        self.assertGreater(int(on_disk[1].replace(',', '')), 10_000)


if __name__ == '__main__':
    unittest.main()
