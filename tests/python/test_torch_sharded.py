"""embank.torch.sharded: processes with a rank each, as torchrun starts them, and as they die."""
import os
import pathlib
import re
import socket
import subprocess
import sys
import tempfile
import time
import unittest

from torch_rows import torch

WORKER = pathlib.Path(__file__).with_name('sharded_worker.py')
SECONDS_TO_END = 10  # of a rank whose peer has died
SECONDS_MAX = 60
LAST_STEP = 6
DEATHS = ((1, 'save'), (3, 'forward'), (4, 'backward'), (5, 'save'))

if not (torch.distributed.is_available() and torch.distributed.is_gloo_available()):
    raise unittest.SkipTest('skipped: this torch has no torch.distributed with gloo')


def free_port():
    with socket.socket() as one:
        one.bind(('127.0.0.1', 0))
        return str(one.getsockname()[1])


class Ranks(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.environment = {**os.environ, 'OMP_NUM_THREADS': '1', 'MASTER_ADDR': '127.0.0.1',
                            'MASTER_PORT': free_port(), 'TMPDIR': self.folder,
                            'PYTHONDONTWRITEBYTECODE': '1'}

    def start(self, ranks, *words):
        """Starts a process for each rank, and returns them."""
        self.environment['MASTER_PORT'] = free_port()
        processes = []
        for rank in range(ranks):
            environment = {**self.environment, 'RANK': str(rank), 'WORLD_SIZE': str(ranks)}
            process = subprocess.Popen(
                [sys.executable, str(WORKER), *words], env=environment, text=True,
                stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            self.addCleanup(process.communicate)
            self.addCleanup(process.kill)
            processes.append(process)
        return processes

    def test_two_ranks_of_torchrun(self):
        # Without redirects, torchrun 1.13 fails with Python 3.11.
        run = subprocess.run(
            [sys.executable, '-m', 'torch.distributed.run', '--nproc_per_node', '2',
             '--redirects', '1', '--tee', '1', '--log_dir', self.folder, '--master_port',
             self.environment['MASTER_PORT'], str(WORKER)],
            env=self.environment, capture_output=True, text=True, timeout=SECONDS_MAX)
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        # The lines of two processes are mixed.
        counts = [int(count) for count in re.findall(r'Ran (\d+) tests', run.stderr)]
        self.assertEqual(len(counts), 2, run.stderr)
        self.assertGreater(min(counts), 12, run.stderr)

    def test_three_ranks(self):
        for process in self.start(3, 'Equal'):
            _, errors = process.communicate(timeout=SECONDS_MAX)
            self.assertEqual(process.returncode, 0, errors)
            self.assertIn('Ran 1 test', errors)

    def train(self, died_at=0, death='none'):
        """The step with which the ranks begin, and the losses of each step of rank 0."""
        processes = self.start(2, 'train', f'{self.folder}/stores', str(died_at), death)
        texts = []
        if died_at:
            processes[1].wait(SECONDS_MAX)
            self.assertEqual(processes[1].returncode, -9)
            died = time.monotonic()
            texts = [processes[0].communicate(timeout=SECONDS_MAX)]
            self.assertLess(time.monotonic() - died, SECONDS_TO_END)
            self.assertEqual(processes[0].returncode, 1)
            self.assertRegex(texts[0][1], 'UnavailableError: rank 0 of 2 cannot reach the others')
        else:
            texts = [process.communicate(timeout=SECONDS_MAX) for process in processes]
            self.assertEqual([process.returncode for process in processes], [0, 0], texts)
        lines = [line.split() for line in texts[0][0].splitlines()]
        return int(lines[0][1]), {int(line[1]): line[2] for line in lines[1:]}

    def test_a_rank_that_dies(self):
        found, begins = [], []
        for died_at, death in (*DEATHS, (0, 'none')):
            begin, losses = self.train(died_at, death)
            begins.append(begin)
            found.append(losses)
        # All ranks go on from the last step that both have saved.
        self.assertEqual(begins, [0, 0, 2, 3, 4])
        self.folder += '/whole'
        os.mkdir(self.folder)
        _, whole = self.train()
        self.assertEqual(sorted(whole), list(range(1, LAST_STEP + 1)))
        for losses in found:
            self.assertEqual(losses, {step: whole[step] for step in losses})
        self.assertEqual(max(found[-1]), LAST_STEP)


if __name__ == '__main__':
    unittest.main()
