"""The prototypes of _c.py are those of embank.h, and its structs those of a C compiler."""
import ctypes
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

from embank import _c

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / 'bindings' / 'python'))  # after an installed package
import generate_c  # noqa: E402  pylint: disable=wrong-import-position

STRUCTS = {name: struct for name, struct in vars(_c).items()
           if isinstance(struct, type) and issubclass(struct, ctypes.Structure)
           and struct is not ctypes.Structure}


def layout_program():
    """A program in C that prints the name, the size and the offset of each field."""
    lines = ['#include <stdio.h>', '#include <stddef.h>', '#include "embank.h"', 'int main(void) {']
    for name, struct in STRUCTS.items():
        lines.append(f'  printf("{name} %zu\\n", sizeof({name}));')
        lines += [f'  printf("{name}.{field} %zu %zu\\n", offsetof({name}, {field}), '
                  f'sizeof((({name}*)0)->{field}));' for field, _ in struct._fields_]
    lines += [f'  printf("{name} %d\\n", (int){name});' for name in constants()]
    return '\n'.join([*lines, '  return 0;', '}', ''])


def constants():
    return {name: number for name, number in vars(_c).items() if name.startswith('EMBANK_')}


def layout():
    """The same, of _c.py."""
    lines = []
    for name, struct in STRUCTS.items():
        lines.append(f'{name} {ctypes.sizeof(struct)}')
        lines += [f'{name}.{field} {getattr(struct, field).offset} {getattr(struct, field).size}'
                  for field, _ in struct._fields_]
    return lines + [f'{name} {number}' for name, number in constants().items()]


class Header(unittest.TestCase):
    def test_file_is_what_the_header_generates(self):
        text = generate_c.generate(generate_c.HEADER.read_text(encoding='utf-8'),
                                   generate_c.SOURCE.read_text(encoding='utf-8'))
        self.assertEqual(generate_c.TARGET.read_text(encoding='utf-8'), text,
                         'run bindings/python/generate_c.py --write')

    def test_another_header_generates_another_file(self):
        header = generate_c.HEADER.read_text(encoding='utf-8')
        source = generate_c.SOURCE.read_text(encoding='utf-8')
        text = generate_c.generate(header, source)
        for old, new in (('uint64_t n,\n', 'uint32_t n,\n'),
                         ('uint64_t bags;', 'uint32_t bags;'),
                         ('EMBANK_OPT_SGD = 1', 'EMBANK_OPT_SGD = 7'),
                         ('embank_lookup(', 'embank_lookup_2(')):
            with self.subTest(old=old):
                self.assertIn(old, header)
                self.assertNotEqual(generate_c.generate(header.replace(old, new), source), text)

    def test_a_declaration_that_is_not_understood_is_an_error(self):
        header = generate_c.HEADER.read_text(encoding='utf-8')
        source = generate_c.SOURCE.read_text(encoding='utf-8')
        for old, new in (('EMBANK_API uint32_t embank_abi_version(void);',
                          'EMBANK_API long embank_abi_version(void);'),
                         ('uint64_t bags;', 'short bags;'),
                         ('EMBANK_API void embank_scan_close(',
                          'EMBANK_API void embank_scan_close[')):
            self.assertIn(old, header)
            with self.subTest(new=new), self.assertRaises(generate_c.HeaderError):
                generate_c.generate(header.replace(old, new), source)

    def test_all_symbols_have_a_prototype(self):
        symbols = (ROOT / 'bindings' / 'c' / 'symbols.txt').read_text(encoding='utf-8')
        names = {line.split()[0] for line in symbols.splitlines()
                 if line.strip() and not line.startswith('#')}
        self.assertEqual(set(_c.PROTOTYPES), names)

    def test_structs_and_constants_are_those_of_a_c_compiler(self):
        compiler = shutil.which('cc') or shutil.which('gcc') or shutil.which('clang')
        if compiler is None:
            self.skipTest('no C compiler')
        with tempfile.TemporaryDirectory() as folder:
            source, program = pathlib.Path(folder, 'layout.c'), pathlib.Path(folder, 'layout')
            source.write_text(layout_program(), encoding='utf-8')
            subprocess.run([compiler, f'-I{ROOT / "bindings" / "c"}', str(source), '-o',
                            str(program)], check=True)
            told = subprocess.run([str(program)], check=True, stdout=subprocess.PIPE, text=True)
        self.assertEqual(told.stdout.splitlines(), layout())
        self.assertGreater(len(constants()), 60)
        self.assertEqual(len(STRUCTS), 5)


if __name__ == '__main__':
    unittest.main()
