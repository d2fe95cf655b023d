"""The canary exits with 1 and names the failed test."""
import subprocess
import sys

run = subprocess.run([sys.argv[1]], capture_output=True, text=True, check=False)
print(run.stdout, run.stderr)
print('exit status', run.returncode)
sys.exit(0 if run.returncode == 1 and '[  FAILED  ] Canary.Fails' in run.stdout else 1)
