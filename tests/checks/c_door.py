"""The C header compiles alone, as C and C++, by each compiler, and keeps its binary layout."""
import pathlib
import shutil
import subprocess
import sys
import tempfile

WARNINGS = ['-Wall', '-Wextra', '-pedantic', '-Werror', '-fsyntax-only']
# (compiler, standard, header)
BUILDS = [(compiler, f'-std={standard}', 'embank.h')
          for compiler, standards in (('gcc', ('c99', 'c11', 'c17')), ('clang', ('c99', 'c17')),
                                      ('g++', ('c++17', 'c++20')), ('clang++', ('c++20',)))
          for standard in standards]
BUILDS += [(compiler, f'-std={standard}', 'embank.hpp')
           for compiler in ('g++', 'clang++') for standard in ('c++17', 'c++20')]
# Programs are compiled against these numbers: fields are appended, never moved. 64-bit machines.
LAYOUT = {
    'embank_store_options': (88, {
        'struct_size': 0, 'flags': 4, 'path': 8, 'dram_bytes': 16, 'ssd_bytes': 24,
        'pmem_path': 32, 'pmem_bytes': 40, 'hbm_bytes': 48, 'cuda_device': 56,
        'worker_threads': 60, 'seed': 64, 'durability': 72, 'warmup_iters': 76,
        'flush_iters': 80, 'reserved': 84}),
    'embank_table_options': (64, {
        'struct_size': 0, 'dim': 4, 'value_type': 8, 'optimizer': 12, 'learning_rate': 16,
        'beta1': 20, 'beta2': 24, 'epsilon': 28, 'weight_decay': 32, 'initial_accumulator': 36,
        'initializer': 40, 'init_a': 44, 'init_b': 48, 'eviction': 52,
        'admission_count': 56, 'on_full': 60}),
    'embank_table_info': (64, {
        'struct_size': 0, 'dim': 4, 'value_type': 8, 'optimizer': 12, 'rows': 16, 'rows_hbm': 24,
        'rows_dram': 32, 'rows_pmem': 40, 'rows_ssd': 48, 'row_bytes': 56}),
}
CODES = ('OK CANCELLED UNKNOWN INVALID_ARGUMENT DEADLINE_EXCEEDED NOT_FOUND ALREADY_EXISTS '
         'PERMISSION_DENIED RESOURCE_EXHAUSTED FAILED_PRECONDITION ABORTED OUT_OF_RANGE '
         'UNIMPLEMENTED INTERNAL UNAVAILABLE DATA_LOSS').split()


def layout_program():
    """A C file that compiles only if every field stands where LAYOUT says."""
    facts = [f'EMBANK_{name} == {number}' for number, name in enumerate(CODES)]
    for struct, (size, fields) in LAYOUT.items():
        facts.append(f'sizeof({struct}) == {size}')
        facts += [f'offsetof({struct}, {field}) == {at}' for field, at in fields.items()]
    return '#include "embank.h"\n' + ''.join(
        f'typedef char fact_{number}[({fact}) ? 1 : -1]; /* {fact} */\n'
        for number, fact in enumerate(facts))


def compiles(command, text, folder, name):
    source = pathlib.Path(folder, name)
    source.write_text(text, encoding='utf-8')
    run = subprocess.run([*command, str(source)], capture_output=True, text=True, check=False)
    return run.returncode == 0, run.stderr


def failures_of(headers):
    """What does not compile, as (what, compiler output); headers: the folder of embank.h."""
    found, done = [], 0
    with tempfile.TemporaryDirectory() as folder:
        for compiler, standard, header in BUILDS:
            if shutil.which(compiler) is None:
                print(f'not checked with {compiler}: it is not installed')
                continue
            suffix = '.cc' if '++' in compiler else '.c'
            # Twice: the guard works.
            text = f'#include "{header}"\n#include "{header}"\nint main(void) {{ return 0; }}\n'
            command = [compiler, standard, *WARNINGS, f'-I{headers}']
            good, output = compiles(command, text, folder, f'alone{suffix}')
            done += 1
            if not good:
                found.append((f'{header} by {compiler} {standard}', output))
        good, output = compiles(['gcc', '-std=c99', *WARNINGS, f'-I{headers}'], layout_program(),
                                folder, 'layout.c')
        if not good:
            found.append(('layout', output))
    print(f'{done} builds of the headers, {len(found)} failures')
    return found


def main():
    found = failures_of(pathlib.Path(sys.argv[1]).resolve())
    for what, output in found:
        print(f'{what}:\n{output}')
    return 1 if found else 0


if __name__ == '__main__':
    sys.exit(main())
