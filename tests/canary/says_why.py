"""The canary exits with 1 and names the failed test; with a filter of no test, the pattern."""
import subprocess
import sys


def fails_with(words, *arguments):
    run = subprocess.run([sys.argv[1], *arguments], capture_output=True, text=True, check=False)
    print(run.stdout, run.stderr)
    print('exit status', run.returncode)
    return run.returncode == 1 and words in run.stdout


sys.exit(not (fails_with('[  FAILED  ] Canary.Fails') and
              fails_with("'Canary.Absent*'", '--gtest_filter=Canary.*:Canary.Absent*')))
