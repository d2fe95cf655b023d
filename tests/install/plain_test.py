"""Configures Embank as a packager does, without a preset and without a build type."""
import argparse
import os
import pathlib
import shutil
import subprocess
import sys

TOP = pathlib.Path(__file__).resolve().parent.parent.parent
# These variables are defaults of CMake: the caller's own settings must not decide the test.
SETTINGS = ('CMAKE_BUILD_TYPE', 'CFLAGS', 'CXXFLAGS')


def main():
    parser = argparse.ArgumentParser()
    for name in ('scratch', 'cmake', 'cc', 'cxx'):
        parser.add_argument(f'--{name}', required=True, type=pathlib.Path)
    options = parser.parse_args()
    shutil.rmtree(options.scratch, ignore_errors=True)
    environment = {name: value for name, value in os.environ.items() if name not in SETTINGS}
    subprocess.run([options.cmake, '-S', TOP, '-B', options.scratch, '-G', 'Ninja',
                    f'-DCMAKE_C_COMPILER={options.cc}', f'-DCMAKE_CXX_COMPILER={options.cxx}'],
                   check=True, env=environment)
    cache = (options.scratch / 'CMakeCache.txt').read_text(encoding='utf-8')
    if 'CMAKE_BUILD_TYPE:STRING=Release\n' not in cache:
        sys.exit('the build type is not Release')
    commands = (options.scratch / 'compile_commands.json').read_text(encoding='utf-8')
    if '-Werror' in commands:
        sys.exit('a warning of another compiler would be an error')
    if ' -O3 ' not in commands:
        sys.exit('the build is not optimised')
    print('without a preset a build is Release, and warnings are no errors')


if __name__ == '__main__':
    main()
