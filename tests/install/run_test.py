"""./run.sh gives each program its own options: a copy of it runs stand-ins that tell theirs."""
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

TOP = pathlib.Path(__file__).resolve().parent.parent.parent
HOUSE = '''say() { :; }
fail() { printf 'error: %s\\n' "$*" >&2; exit 1; }
install_packages() { :; }
configure() { :; }
build() { printf '%s\\n' "$*" > "$root/built"; }
'''
# It writes the files that it is told to. There is a checkpoint once a training began.
STAND_IN = '''#!/bin/sh
calls=$(dirname "$0")/calls
[ "$1" != describe ] || exec grep -q '^embank-train --' "$calls"
echo "${0##*/} $*" >> "$calls"
while [ $# -gt 0 ]; do
  case $1 in --write-log | --out | --weights | --json) printf 'label\\tfeature\\n' > "$2" ;; esac
  shift
done
'''


def name_of(line):
    """The word that names a call."""
    words = line.split()
    if words[0] != 'embank-train':
        return words[1]
    if not words[1].startswith('-'):
        return words[1]
    if '--staleness' in words:
        return '--staleness ' + words[words.index('--staleness') + 1]
    for option in ('--resume', '--write-log', '--ranks', '--weights'):
        if option in words:
            return option
    return words[0]


class RunTest(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.root = pathlib.Path(scratch.name)
        self.programs = self.root / 'build/release/bin'
        self.programs.mkdir(parents=True)
        (self.root / '.ci').mkdir()
        (self.root / '.ci/house.sh').write_text(HOUSE, encoding='utf-8')
        shutil.copy(TOP / 'run.sh', self.root)
        for name in ('embank-bench', 'embank-train'):
            (self.programs / name).write_text(STAND_IN, encoding='utf-8')
            (self.programs / name).chmod(0o755)
        for name in ('keys.txt', 'log of clicks.txt', 'columns.txt'):
            (self.root / name).write_text('', encoding='utf-8')

    def run_with(self, *options):
        """The calls of programs, by the word that names each: replay, survive, tiers, train. Those
        that ask for a checkpoint are left out: their number depends on the time."""
        done = subprocess.run([self.root / 'run.sh', *options], cwd=self.root, text=True,
                              capture_output=True, check=False, env=os.environ)
        calls = self.programs / 'calls'
        lines = calls.read_text(encoding='utf-8').splitlines() if calls.exists() else []
        calls.unlink(missing_ok=True)
        lines = [line for line in lines if name_of(line) != 'describe']
        named = {name_of(line): line for line in lines}
        self.assertEqual(len(named), len(lines))
        return done, named

    def test_without_options_all_data_are_generated(self):
        done, calls = self.run_with()
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(sorted(calls), ['--ranks', '--resume', '--staleness 0', '--staleness 4',
                                         '--weights', '--write-log', 'embank-train', 'predict',
                                         'replay', 'survive', 'tiers', 'training'])
        self.assertIn('those of one, bit for bit', done.stdout)
        self.assertIn('Rows up to 4 steps late: ', done.stdout)
        resumed, figures = calls['--resume'].split(' --json ')
        self.assertEqual(resumed, calls['embank-train'] + ' --resume')
        self.assertIn(f' --json {figures} ', calls['training'])
        self.assertIn(f' --command {resumed} ', calls['training'])
        reports = {calls[name].split(' --report ')[1].split()[0]
                   for name in ('replay', 'survive', 'tiers', 'training')}
        self.assertEqual(len(reports), 1, reports)
        self.assertIn('--out', calls['predict'])
        self.assertIn('--generate criteo-kaggle', calls['embank-train'])
        self.assertIn('--eval-samples', calls['embank-train'])
        self.assertIn('the best possible AUC is known', done.stdout)

    def test_builds_what_it_runs_and_no_more(self):
        _, calls = self.run_with()
        programs = sorted({line.split()[0] for line in calls.values()})
        built = (self.root / 'built').read_text(encoding='utf-8').split()
        self.assertEqual(built, ['release', *programs])

    def test_a_trace_is_for_replay_and_tiers(self):
        done, calls = self.run_with('--trace', 'keys.txt', '--dim', '8')
        self.assertEqual(done.returncode, 0, done.stderr)
        for name in ('replay', 'tiers'):
            self.assertTrue(calls[name].endswith(' --trace keys.txt --dim 8'), calls[name])
        self.assertNotIn('--trace', calls['survive'] + calls['embank-train'])
        self.assertIn('--generate', calls['embank-train'])

    def test_a_log_is_for_the_training(self):
        log = 'log of clicks.txt'
        for options in (('--data', log), (f'--data={log}',), ('--dim', '8', '--data', log)):
            done, calls = self.run_with(*options)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn(f' --data {log} ', calls['embank-train'])
            self.assertNotIn('--generate', calls['embank-train'])
            self.assertNotIn('--eval-samples', calls['embank-train'])
            for name in ('replay', 'survive', 'tiers'):
                self.assertNotIn('--data', calls[name])
                self.assertNotIn(log, calls[name])
            self.assertEqual('--dim 8' in calls['replay'], '--dim' in options)
            self.assertNotIn('--dim', calls['embank-train'])

    def test_a_column_file_is_for_the_training(self):
        for columns in (('--columns', 'columns.txt'), ('--columns=columns.txt',)):
            done, calls = self.run_with(*columns, '--data', 'keys.txt')
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn(' --data keys.txt --columns columns.txt ', calls['embank-train'])
            self.assertNotIn('--columns', calls['replay'] + calls['tiers'])

    def test_a_log_without_dense_features_has_another_model(self):
        for statements, has_dense in (('label a\nid b text\n', False),
                                      ('label a\n# dense b\nid dense text\n', False),
                                      ('label a\n  dense\tb log\n', True)):
            (self.root / 'columns.txt').write_text(statements, encoding='utf-8')
            done, calls = self.run_with('--columns', 'columns.txt', '--data', 'keys.txt')
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual('--model ffnn' in calls['embank-train'], not has_dense, statements)

    def test_wrong_use_is_found_before_anything_runs(self):
        for options, message in ((('--data',), '--data needs a file'),
                                 (('--data', ''), '--data needs a file'),
                                 (('--columns', 'columns.txt'), '--columns needs --data FILE'),
                                 (('--data', 'missing.txt'), 'missing.txt cannot be read')):
            done, calls = self.run_with(*options)
            self.assertEqual((done.returncode, calls), (1, {}))
            self.assertIn(message, done.stderr)

    def test_help_names_both_kinds_of_data(self):
        done, calls = self.run_with('--help')
        self.assertEqual((done.returncode, calls), (0, {}))
        for word in ('--trace FILE', '--data FILE', '--columns FILE', 'out/report.html'):
            self.assertIn(word, done.stdout)
        self.assertNotIn('set -euo', done.stdout)


if __name__ == '__main__':
    unittest.main()
