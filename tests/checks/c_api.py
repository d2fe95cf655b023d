"""The C header compiles alone, as C and C++, by each compiler, and keeps its binary layout.

The programs of tests/install make every call that is new.
"""
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import symbols

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
    'embank_store_options': (96, {
        'struct_size': 0, 'flags': 4, 'path': 8, 'dram_bytes': 16, 'ssd_bytes': 24,
        'pmem_path': 32, 'pmem_bytes': 40, 'hbm_bytes': 48, 'cuda_device': 56,
        'worker_threads': 60, 'seed': 64, 'durability': 72, 'warmup_iters': 76,
        'flush_iters': 80, 'reserved': 84, 'pin_batches': 88,
        'reserved_2': 92}),
    'embank_table_options': (92, {
        'struct_size': 0, 'dim': 4, 'value_type': 8, 'optimizer': 12, 'learning_rate': 16,
        'beta1': 20, 'beta2': 24, 'epsilon': 28, 'weight_decay': 32, 'initial_accumulator': 36,
        'initializer': 40, 'init_a': 44, 'init_b': 48, 'eviction': 52,
        'admission_count': 56, 'on_full': 60, 'max_gradient_norm': 64, 'max_gradient_value': 68,
        'rounding': 72, 'expected_rows_log2': 76, 'ftrl_l1': 80, 'ftrl_l2': 84,
        'decoupled_weight_decay': 88}),
    'embank_table_info': (72, {
        'struct_size': 0, 'dim': 4, 'value_type': 8, 'optimizer': 12, 'rows': 16, 'rows_hbm': 24,
        'rows_dram': 32, 'rows_pmem': 40, 'rows_ssd': 48, 'row_bytes': 56,
        'lookups_hbm': 64}),
    'embank_checkpoint_info': (48, {
        'struct_size': 0, 'reserved': 4, 'sequence': 8, 'unix_ns': 16, 'bytes': 24,
        'blob_bytes': 32, 'rows': 40}),
    'embank_feature': (112, {
        'struct_size': 0, 'pooling': 4, 'table': 8, 'keys': 16, 'n': 24, 'offsets': 32, 'bags': 40,
        'weights': 48, 'rows': 56, 'row_stride': 64, 'key_type': 72, 'offset_type': 76,
        'typed_keys': 80, 'typed_offsets': 88, 'padding_key': 96, 'flags': 104, 'reserved': 108}),
}
# Every enumerator of the header: prefix -> {name: number}.
ENUMERATORS = {
    '': {'OK': 0, 'CANCELLED': 1, 'UNKNOWN': 2, 'INVALID_ARGUMENT': 3, 'DEADLINE_EXCEEDED': 4,
         'NOT_FOUND': 5, 'ALREADY_EXISTS': 6, 'PERMISSION_DENIED': 7, 'RESOURCE_EXHAUSTED': 8,
         'FAILED_PRECONDITION': 9, 'ABORTED': 10, 'OUT_OF_RANGE': 11, 'UNIMPLEMENTED': 12,
         'INTERNAL': 13, 'UNAVAILABLE': 14, 'DATA_LOSS': 15, 'F32': 0, 'F16': 1, 'BF16': 2},
    'ROW_': {'FOUND': 1, 'CREATED': 2, 'ABSENT': 3, 'REFUSED': 4, 'DATA_LOSS': 5,
             'NOT_FINITE': 6, 'UNAVAILABLE': 7},
    'MISSING_': {'CREATE': 0, 'DEFAULT': 1, 'ZERO': 2, 'SKIP': 3},
    'OPT_': {'NONE': 0, 'SGD': 1, 'ADAGRAD': 2, 'ROWWISE_ADAGRAD': 3, 'ADAM': 4, 'FTRL': 5},
    'INIT_': {'ZERO': 0, 'CONSTANT': 1, 'UNIFORM': 2, 'NORMAL': 3},
    'EVICT_': {'LRU': 0, 'CLOCK': 1, 'LFU': 2},
    'POOL_': {'NONE': 0, 'SUM': 1, 'MEAN': 2, 'SQRT_N': 3},
    'INDEX_': {'U64': 0, 'I64': 1, 'U32': 2, 'I32': 3},
    'FEATURE_': {'PADDING': 1, 'ABSOLUTE': 2},
    'FULL_': {'REFUSE': 0, 'FORGET': 1},
    'ROUNDING_': {'NEAREST': 0, 'STOCHASTIC': 1},
    'SET_': {'LEARNING_RATE': 1, 'BETAS': 2, 'EPSILON': 4, 'WEIGHT_DECAY': 8, 'CLIPPING': 16,
             'ROUNDING': 32, 'FTRL': 64},
    'OPEN_': {'CREATE': 1, 'READ_ONLY': 2, 'PREVIOUS': 4},
    'DURABLE_': {'CHECKPOINT': 0, 'BATCH': 1, 'NONE': 2},
    'LOG_': {'INFO': 1, 'WARNING': 2, 'ERROR': 3},
}
# Calls that a program of tests/install does not make: these lists only shrink.
CALLS_LEFT_OUT = {
    'consumer.c': 'abi_version build_info set_log_sink table_open upsert set_state '
                  'set_learning_rate checkpoint_start checkpoint_finish '
                  'checkpoint_blob export verify flush_hot device_free lookup_device '
                  'upsert_device apply_gradients_device estimate_for_hit_ratio',
    'consumer.py': 'abi_version build_info set_log_sink table_drop table_names upsert contains '
                   'prefetch get_state set_state set_learning_rate checkpoint_start '
                   'checkpoint_finish checkpoint_blob export verify flush_hot '
                   'device_free lookup_device upsert_device '
                   'apply_gradients_device metrics estimate estimate_for_hit_ratio memory_report',
}


def calls_not_made(header, program, left_out):
    """Calls of the header that a program should make and does not, or is said not to and does."""
    made = set(re.findall(r'\bembank_(\w+)', program))
    functions = {name.removeprefix('embank_') for name in symbols.declared(header)}
    return sorted((functions - made) ^ set(left_out.split()))


def layout_program():
    """A C file that compiles only if every field stands where LAYOUT says."""
    facts = [f'EMBANK_{prefix}{name} == {number}' for prefix, names in ENUMERATORS.items()
             for name, number in names.items()]
    for struct, (size, fields) in LAYOUT.items():
        facts.append(f'sizeof({struct}) == {size}')
        facts += [f'offsetof({struct}, {field}) == {at}' for field, at in fields.items()]
    return '#include "embank.h"\n' + ''.join(
        f'typedef char fact_{number}[({fact}) ? 1 : -1]; /* {fact} */\n'
        for number, fact in enumerate(facts))


def unpinned(header):
    """Enumerators of the header whose numbers ENUMERATORS does not say."""
    pinned = {f'EMBANK_{prefix}{name}' for prefix, names in ENUMERATORS.items() for name in names}
    code = re.sub(r'/\*.*?\*/', '', header, flags=re.S)
    return sorted(set(re.findall(r'\b(EMBANK_\w+)\s*=', code)) - pinned)


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
    found += [(f'{name} has no pinned number', '') for name in
              unpinned(pathlib.Path(headers, 'embank.h').read_text(encoding='utf-8'))]
    print(f'{done} builds of the headers, {len(found)} failures')
    return found


def main():
    headers = pathlib.Path(sys.argv[1]).resolve()
    found = failures_of(headers)
    header = (headers / 'embank.h').read_text(encoding='utf-8')
    for name, left_out in CALLS_LEFT_OUT.items():
        program = (headers.parent.parent / 'tests/install' / name).read_text(encoding='utf-8')
        found += [(f'tests/install/{name}: embank_{call}: it is not called, or the list of '
                   'CALLS_LEFT_OUT has it in spite of that', '')
                  for call in calls_not_made(header, program, left_out)]
    for what, output in found:
        print(f'{what}:\n{output}')
    return 1 if found else 0


if __name__ == '__main__':
    sys.exit(main())
