"""The examples of docstrings, docs/python.md and examples/python run as they are written."""
import contextlib
import doctest
import importlib
import io
import os
import pathlib
import pkgutil
import re
import tempfile
import unittest

import embank

ROOT = pathlib.Path(__file__).resolve().parents[2]
BLOCK = re.compile(r'^```python\n(.*?)^```[ \t]*$', re.M | re.S)
PACKAGES = ('torch', 'safetensors', 'pyarrow', 'tqdm')  # which users may have, or not


def missing_package(text):
    """The package that a text imports and that is not installed."""
    for name in PACKAGES:
        if re.search(rf'\b(import|from)\b.*\b{name}\b', text):
            try:
                importlib.import_module(name)
            except ImportError:
                return name
    return None


class Documents(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(folder.name)

    def test_docstrings(self):
        tried = 0
        for info in pkgutil.walk_packages(embank.__path__, 'embank.', onerror=lambda name: None):
            # The groups of torch.distributed may never end in a process that goes on; their tests
            # have processes of their own.
            if info.name.endswith(('__main__', '.sharded')):
                continue
            with self.subTest(module=info.name):
                try:
                    module = importlib.import_module(info.name)
                except ImportError as error:
                    self.skipTest(f'{info.name} needs {error.name}')
                told = doctest.testmod(module, verbose=False)
                self.assertEqual(told.failed, 0)
                tried += told.attempted
        self.assertGreater(tried + doctest.testmod(embank, verbose=False).attempted, 80)

    def test_the_page(self):
        blocks = BLOCK.findall((ROOT / 'docs' / 'python.md').read_text(encoding='utf-8'))
        self.assertGreater(len(blocks), 6)
        names = {}
        for at, block in enumerate(blocks):
            if 'init_process_group' in block:  # as above
                continue
            with self.subTest(block=at), contextlib.redirect_stdout(io.StringIO()):
                if missing_package(block):
                    self.skipTest(f'{missing_package(block)} is not installed')
                exec(compile(block, f'docs/python.md, block {at}', 'exec'), names)

    def test_first_programs_go_on(self):
        for name, first, second in (
                ('quickstart.py', r'^step 1: 10\d\d rows, loss 1.0000$',
                 r'^step 2: 20\d\d rows, loss (0.9|1.0)'),
                ('first_model.py', r'^step 1: loss \d.\d{4}, 204\d items$',
                 r'^step 2: loss \d.\d{4}, 40\d\d items$')):
            with self.subTest(program=name):
                program = (ROOT / 'examples' / 'python' / name).read_text(encoding='utf-8')
                if missing_package(program):
                    self.skipTest(f'{missing_package(program)} is not installed')
                os.mkdir(name)
                os.chdir(name)
                code, lines = compile(program, name, 'exec'), []
                for _ in range(2):
                    with contextlib.redirect_stdout(io.StringIO()) as told:
                        exec(code, {})
                    lines.append(told.getvalue())
                os.chdir('..')
                self.assertRegex(lines[0], first)
                self.assertRegex(lines[1], second)

    def test_pages_show_the_examples(self):
        programs = [path.read_text(encoding='utf-8')
                    for path in (ROOT / 'examples' / 'python').glob('*.py')]
        first = BLOCK.findall((ROOT / 'docs' / 'python.md').read_text(encoding='utf-8'))[0]
        shown = BLOCK.findall((ROOT / 'README.md').read_text(encoding='utf-8'))
        for block in (first, *shown):
            self.assertTrue(any(block in program for program in programs), block)


if __name__ == '__main__':
    unittest.main()
