"""Each check finds each kind of violation, and finds nothing in a clean tree."""
import contextlib
import io
import pathlib
import subprocess
import sys
import tempfile
import unittest

import c_api
import documents
import format as format_check
import functions
import classes
import layering
import names
import style
import symbols
import tree as trees

GUARD = '#ifndef {0}\n#define {0}\n{1}#endif  // {0}\n'
CLEAN = {
    'base/README.md': '# base\n',
    'base/CMakeLists.txt': 'add_library(embank_base STATIC row.cc)\n',
    'base/row.h': GUARD.format('EMBANK_BASE_ROW_H_', '// Says so.\nint Row(int key);\n'),
    'base/row.cc': '#include "base/row.h"\n\nint Row(int key) { return key; }\n',
    'store/README.md': '# store\n\nAbove [base](../base/README.md#base).\n',
    'store/CMakeLists.txt': 'add_library(embank_store STATIC table.cc)\n',
    'store/table.cc': '#include "base/row.h"\n\nint Table() { return Row(1); }\n',
}


def findings_of(check, files):
    """What `check` says about the clean tree with these files changed or added."""
    with tempfile.TemporaryDirectory() as folder:
        for path, text in {**CLEAN, **files}.items():
            place = pathlib.Path(folder, path)
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(text, encoding='utf-8')
        findings = trees.Findings()
        check(trees.Tree(folder), findings)
        return findings.lines


class CheckTest(unittest.TestCase):
    def assert_finds(self, check, rule, files):
        """One finding at least, and all of this rule: a fixture shows one kind of violation."""
        lines = findings_of(check, files)
        self.assertTrue(lines, f'{rule}: nothing found in {files}')
        for line in lines:
            self.assertIn(f': {rule}: ', line)

    def assert_clean(self, check, files):
        self.assertEqual(findings_of(check, files), [])

    def test_clean_tree_has_no_findings(self):
        for check in (layering.check, names.check, style.check, documents.check, classes.check):
            self.assert_clean(check, {})


class LayeringTest(CheckTest):
    def use(self, path, include, **more):
        """A source (named in a list) that includes something."""
        folder, name = path.rsplit('/', 1)
        return {path: f'#include {include}\n', f'{folder}/CMakeLists.txt': f'x(row.cc {name})\n',
                **{place.replace('__', '/'): text for place, text in more.items()}}

    def test_upward_include(self):
        lower = {'base/row.cc': '#include "base/row.h"\n#include "store/table.h"\n',
                 'store/table.h': 'int Table();\n'}
        self.assert_finds(layering.check, 'direction', lower)

    def test_file_in_no_room(self):
        self.assert_finds(layering.check, 'room', {'tiers/slab.cc': 'int x;\n',
                                                   'tiers/CMakeLists.txt': 'x(slab.cc)\n'})

    def test_room_that_gpu_may_not_see(self):
        files = self.use('gpu/hot.cc', '"tiers/dram/slab.h"')
        files['tiers/dram/slab.h'] = ''
        self.assert_finds(layering.check, 'direction', files)
        files = self.use('gpu/hot.cc', '"tiers/row/row_layout.h"')
        files['tiers/row/row_layout.h'] = ''
        self.assert_clean(layering.check, files)

    def test_bench_sees_only_the_oracle_of_the_tests(self):
        files = self.use('bench/kv.cc', '"tests/support/c_api.h"')
        files['tests/support/c_api.h'] = ''
        self.assert_finds(layering.check, 'direction', files)

    def test_oracle_stands_alone(self):
        files = self.use('tests/support/oracle_rules.cc', '"tiers/row/update_rule.h"')
        files['tiers/row/update_rule.h'] = ''
        self.assert_finds(layering.check, 'oracle', files)
        files = self.use('tests/support/oracle_rules.cc', '"base/row.h"')
        self.assert_finds(layering.check, 'oracle', files)
        files = self.use('tests/support/oracle_rules.cc', '"bindings/c/embank.h"')
        files['bindings/c/embank.h'] = ''
        self.assert_clean(layering.check, files)

    def test_foreign_header_in_the_wrong_file(self):
        for header in ('<liburing.h>', '<libpmem.h>', '<mpi.h>', '<nccl.h>', '<cublas_v2.h>',
                       '<xxhash.h>', '<zstd.h>', '<libcuckoo/cuckoohash_map.hh>', '<immintrin.h>',
                       '<jemalloc/jemalloc.h>', '"CLI/CLI.hpp"', '<cuda_runtime.h>',
                       '"gtest/gtest.h"',
                       '<benchmark/benchmark.h>', '"nlohmann/json.hpp"',
                       '"absl/status/status.h"'):
            text = f'#include "base/row.h"\n#include {header}\n'
            self.assert_finds(layering.check, 'foreign', {'store/table.cc': text})

    def test_foreign_header_in_two_files(self):
        files = {'bench/CMakeLists.txt': 'x(a.cc b.cc)\n', 'bench/a.cc': '#include <zstd.h>\n',
                 'bench/b.cc': '#include <zstd.h>\n'}
        self.assert_finds(layering.check, 'foreign', files)

    def test_c_api_of_c_only(self):
        for text in ('#include <stdbool.h>\n', '#include <string>\n', 'namespace n {}\n',
                     'std::string s();\n'):
            self.assert_finds(layering.check, 'c api', {'bindings/c/embank.h': text})
        self.assert_finds(layering.check, 'foreign',
                          {'bindings/c/embank.hpp': '#include <absl/status/status.h>\n'})

    def test_include_of_nothing(self):
        self.assert_finds(layering.check, 'include', {'base/row.cc': '#include "base/row.h"\n'
                                                                     '#include "base/gone.h"\n'})
        self.assert_finds(layering.check, 'include', {'store/table.cc': '#include "base/row.h"\n'
                                                                        '#include "near.h"\n'})

    def test_dead_files(self):
        self.assert_finds(layering.check, 'dead file', {'base/lonely.cc': 'int x;\n'})
        self.assert_finds(layering.check, 'dead file', {'base/lonely.h': ''})
        own = self.use('base/lonely.cc', '"base/lonely.h"')
        own['base/lonely.h'] = ''
        self.assert_finds(layering.check, 'dead file', own)

    def test_commented_include_is_none(self):
        self.assert_clean(layering.check, {
            'base/row.cc': '#include "base/row.h"\n// #include "store/table.h"\n'})


class ClassesTest(CheckTest):
    def header(self, text):
        return {'base/row.h': GUARD.format('EMBANK_BASE_ROW_H_', f'class Row {{\n{text}}};\n')}

    def functions(self, count):
        return self.header(''.join(f'  void F{i}(int key) const;\n' for i in range(count)))

    def members(self, count):
        return self.header(''.join(f'  std::atomic<int> m{i}_{{0}};\n' for i in range(count)))

    def test_number_of_functions(self):
        self.assert_clean(classes.check, self.functions(30))
        self.assert_finds(classes.check, 'class size', self.functions(31))

    def test_number_of_members(self):
        self.assert_clean(classes.check, self.members(20))
        self.assert_finds(classes.check, 'class size', self.members(21))

    def test_what_is_no_member(self):
        self.assert_clean(classes.check, self.header(
            '  static constexpr int kMax = 3;\n  using Key = int;\n  enum E { kA, kB };\n' * 21))

    def test_ratchet(self):
        ratchet = classes.RATCHET
        self.assert_clean(classes.check, {**self.functions(40), ratchet: 'base/row.h Row 40 0\n'})
        self.assert_finds(classes.check, 'class size', {**self.functions(41),
                                                        ratchet: 'base/row.h Row 40 0\n'})
        self.assert_finds(classes.check, 'ratchet', {**self.functions(30),
                                                     ratchet: 'base/row.h Row 40 0\n'})

    def test_number_of_files(self):
        self.assert_clean(classes.check, {f'base/f{i}.cc': '' for i in range(28)})
        self.assert_finds(classes.check, 'room size', {f'base/f{i}.cc': '' for i in range(29)})

    def test_number_of_run_time_checks(self):
        def source(checks):
            lines = ['  EMBANK_CHECK(key > 0);'] * checks + ['  mutex.AssertHeld();']
            lines += ['  // EMBANK_CHECK(key > 0);'] * (200 - checks)
            return {'store/table.cc': '\n'.join(lines)}
        self.assert_clean(classes.check, source(3))
        self.assert_finds(classes.check, 'run-time checks', source(2))


class StyleTest(CheckTest):
    def source(self, text):
        return {'store/table.cc': text}

    def test_sizes(self):
        self.assert_finds(style.check, 'columns', self.source('int ' + 'x' * 97 + ';\n'))
        self.assert_clean(style.check, self.source('int ' + 'x' * 95 + ';\n'))
        self.assert_finds(style.check, 'file size', self.source('\n' * 601))
        self.assert_clean(style.check, self.source('\n' * 600))
        long_header = GUARD.format('EMBANK_BASE_ROW_H_', '\n' * 298)
        self.assert_finds(style.check, 'file size', {'base/row.h': long_header})

    def test_size_of_a_model(self):
        def model(blank_lines, declaration):
            text = f'// Makes it.\n{declaration}\n' + '\n' * blank_lines
            return {'train/README.md': '# train\n', 'train/models/README.md': '# models\n',
                    'train/models/sum.h': GUARD.format('EMBANK_TRAIN_MODELS_SUM_H_', text)}
        make = 'inline LayerGraph MakeSum(int inputs) { return LayerGraph(inputs); }'
        self.assert_clean(style.check, model(75, make))
        self.assert_finds(style.check, 'file size', model(76, make))
        self.assert_clean(style.check, model(76, 'class LayerGraph;'))

    def test_long_function(self):
        long_one = 'int F() {\n' + '  G();\n' * 69 + '}\n'
        self.assert_finds(style.check, 'function size', self.source(long_one))
        self.assert_clean(style.check, self.source('int F() {\n' + '  G();\n' * 68 + '}\n'))
        self.assert_finds(style.check, 'function size', {
            'run.py': 'def f():\n' + '    g()\n' * 70})

    def test_ratchet_lets_stay_and_shrinks(self):
        ratchet = 'tests/checks/long_functions.txt'
        long_one = self.source('int F() {\n' + '  G();\n' * 69 + '}\n')
        self.assert_clean(style.check, {**long_one, ratchet: 'store/table.cc F 71\n'})
        self.assert_finds(style.check, 'function size', {**long_one,
                                                         ratchet: 'store/table.cc F 70\n'})
        self.assert_finds(style.check, 'ratchet', {ratchet: 'store/table.cc F 71\n'})

    def test_each_banned_word(self):
        words = ('printf("x");', 'std::cout << 1;', 'int r = rand();', 'std::mt19937 g;',
                 'std::mutex m;', 'std::lock_guard<M> l(m);', 'std::thread t;', 'std::async(f);',
                 'auto t = std::chrono::steady_clock::now();', 'clock_gettime(CLOCK_REALTIME, &t);',
                 'getenv("X");', 'throw 1;', 'abort();', 'assert(x);', 'usleep(1);',
                 'using namespace std;', 'absl::flat_hash_map<int, int> m;',
                 'absl::StrFormat("x");', 'absl::Status s;', 'volatile int x;')
        for word in words:
            for path in ('store/table.cc', 'base/row.cc', 'base/checksum.cc'):
                self.assert_finds(style.check, 'banned', {path: word + '\n'})
            self.assert_clean(style.check, self.source(f'// {word}\n'))
        allowed = (('base/check.cc', 'std::fprintf(stderr, "x"); abort();'),
                   ('base/executor.cc', 'std::thread t;'),
                   ('base/clock.cc', 'auto t = std::chrono::steady_clock::now();'))
        for path, word in allowed:
            self.assert_clean(style.check, {path: f'{word}\n'})
            self.assert_finds(style.check, 'banned', {path: f'{word} getenv("X");\n'})

    def test_banned_words_of_tests_and_build_files(self):
        readme = {'tests/README.md': '# tests\n'}
        for word in ('TEST(A, DISABLED_B)', 'GTEST_SKIP();', 'SUCCEED();', 'EXPECT_TRUE(true);',
                     'absl::SleepFor(x);'):
            self.assert_finds(style.check, 'banned', {**readme, 'tests/a_test.cc': word + '\n'})
        self.assert_clean(style.check, {**readme, 'tests/a_test.cc': 'GTEST_SKIP() << "why";\n'})
        for flag in ('-march=native', '-ffast-math'):
            self.assert_finds(style.check, 'banned', {'CMakeLists.txt': flag})

    def test_guard(self):
        self.assert_finds(style.check, 'include guard', {
            'base/row.h': GUARD.format('ROW_H', '')})

    def test_each_old_word(self):
        old = ('gate.Flip();', '// Waits for the flip.', '// The sweep ends.', 'EndSweep();',
               '// The row is owed.', 'if (IsOwed(1)) return;', '// It has a ticket.', 'Ticket t;',
               'LogRoom r;', '// There is no room.', 'MakeRoom();', 'WorkOff();', 'AskHome();',
               'PrintOf(hash);', '// Rows come up.', 'BringUp(rows);', '// As the C door does it.',
               'int verify_door;', 'ForgetMemory();', 'GiveBack();', 'StatusWithRoom s;',
               '// Room comes with checkpoints.', '// Asked for ahead.', 'const int ask_for = 1;',
               'uint32_t print;', 'Location home;', 'StatusOr<Location> home;', 'HotRow row;')
        for word in old:
            self.assert_finds(style.check, 'old word', self.source(word + '\n'))
        self.assert_finds(style.check, 'old word', {'README.md': '# x\n\nThe sweep ends.\n'})
        self.assert_finds(style.check, 'old word', {'store/README.md': '# x\n\nThe hot set.\n'})
        self.assert_clean(style.check, {'base/README.md': '# x\n\nThe folder is a room.\n'})
        for line in ('// Flips bits of a file.', 'index.Find(home);',
                     'Say("embank_checkpoint_flip_seconds");', '// The stamp is up to date.'):
            self.assert_clean(style.check, self.source(line + '\n'))

    def test_beginnings_of_comments(self):
        for begin in ('Of', 'What', 'Who', 'Whoever'):
            for comment in (f'// {begin} a row.', f'/* {begin} a row. */', f'int x;  // {begin} a',
                            f'\n// {begin} a row\n// that lives.'):
                self.assert_finds(style.check, 'comment', self.source(comment + '\n'))
        for comment in ('// A row of\n// What.', '// Offsets.', '// Whole rows.', '// of a row'):
            self.assert_clean(style.check, self.source(comment + '\n'))

    def test_names_of_tests(self):
        for name in ('OfARow', 'WhatStays', 'WhoWaits', 'WhoeverWaits'):
            for test in (f'TEST(Row, {name}) {{}}', f'TEST_F(Row,\n       {name}) {{}}'):
                self.assert_finds(style.check, 'test name', self.source(test + '\n'))
        for name in ('OffersARow', 'WholeRows', 'ARowOfATable'):
            self.assert_clean(style.check, self.source(f'TEST(Row, {name}) {{}}\n'))

    def test_leftovers_and_paths(self):
        for word in style.MARKERS.split('|'):
            self.assert_finds(style.check, 'leftover', self.source(f'// {word}: later\n'))
            self.assert_finds(style.check, 'leftover', {'README.md': f'# x\n\n{word}\n'})
        for path in ('home', 'tmp', 'work', 'root'):
            self.assert_finds(style.check, 'machine path', {'README.md': f'# x\n\n/{path}/x\n'})

    def test_file_names(self):
        for name in ('utils.py', 'row_helper.py', 'manager.py'):
            self.assert_finds(style.check, 'file name', {name: ''})

    def test_undocumented(self):
        def header(text):
            return {'base/row.h': GUARD.format('EMBANK_BASE_ROW_H_', text)}
        bare = ('int Row(int key);\n', 'class A {\n public:\n  int F();\n};\n',
                'namespace embank {\nstruct A {\n  Status F(int a,\n    int b);\n};\n}\n',
                '// Said.\nint F();\n\nint G();\n',
                'inline int F() {\n' + '  G();\n' * 5 + '}\n')
        for text in bare:
            self.assert_finds(style.check, 'undocumented', header(text))
        fine = ('class A {\n public:\n  A();\n  int F() const { return 1; }\n\n'
                ' private:\n  int G();\n};\n', '// Said.\nint F();\nint G();\n',
                'struct A {\n  std::function<int(int)> f;\n  int x ABSL_GUARDED_BY(m) = 0;\n};\n',
                'class A : public B {\n public:\n  int F() override;\n};\n')
        for text in fine:
            self.assert_clean(style.check, header(text))

    def test_room_without_readme(self):
        self.assert_finds(style.check, 'readme', {'tiers/dram/slab.cc': 'int x;\n'})


class NamesTest(CheckTest):
    def test_a_name_with_two_meanings(self):
        def inside(text, space='embank'):
            return f'namespace {space} {{\n{text}}}  // namespace {space}\n'
        pairs = (('class A {};\n', 'struct A {\n};\n'), ('enum class A { kX };\n', 'class A;\n'
                 'class alignas(64) A final : public B {\n};\n'),
                 ('template <typename T>\nclass A {};\n', 'using A = int;\n'),
                 ('inline constexpr int kA = 1;\n', 'constexpr uint64_t kA = 2;\n'))
        for here, there in pairs:
            self.assert_finds(names.check, 'name', {
                'base/a.h': inside(here), 'bench/a.h': inside(there)})
        unnamed = inside('namespace {\nclass A {};\n}  // namespace\n')
        others = (unnamed, inside('class A;\n'), inside('class B {\n  class A {};\n};\n'),
                  inside('// class A {\n'), inside('class A {};\n', 'embank::test'))
        for other in others:
            self.assert_clean(names.check, {
                'base/a.h': inside('class A {};\n'), 'bench/a.cc': other})


class FunctionsTest(unittest.TestCase):
    def test_extents(self):
        text = ('namespace embank {\n'
                'A::A(int x)\n    : x_{x}, y_(1) {\n  F("}{");\n}\n'
                'template <typename T>\nauto G(T t) -> int {\n  return [&] { return 1; }();\n}\n'
                'int H() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(m_) { return 1; }\n'
                'struct S {\n  int I(int x = {}) {\n    // }\n    return 1\'000;\n  }\n};\n'
                'constexpr int kTable[] = {\n  1,\n  2};\n'
                'TEST(Store, Opens) {\n}\n}\n')
        self.assertEqual(functions.functions_of(text), [
            ('A::A', 2, 4), ('G', 6, 4), ('H', 10, 1), ('I', 12, 4), ('Store.Opens', 20, 2)])


class DocumentsTest(CheckTest):
    def test_titles(self):
        for text in ('no title\n', '# a\n\n# b\n', 'x\n\n# late\n'):
            self.assert_finds(documents.check, 'title', {'docs/a.md': text})
        self.assert_clean(documents.check, {'docs/a.md': '# a\n\n```sh\n# comment\n```\n'})

    def test_links(self):
        for target in ('gone.md', 'a.md#gone', '../../outside.md', '#gone'):
            self.assert_finds(documents.check, 'link', {'docs/a.md': f'# a\n\n[x]({target})\n'})
        self.assert_clean(documents.check, {
            'docs/a.md': '# a\n\n## The rule\n\n[x](#the-rule) [y](https://example.org/)\n'})

    def test_cpp_examples_are_the_compiled_ones(self):
        code = 'int main() {\n}\n'
        page = {'docs/first.md': f'# First\n\n```cpp\n{code}```\n'}
        program = {'tests/README.md': '# tests\n', 'tests/first.cc': '// First.\n' + code}
        self.assert_clean(documents.check, {**page, **program})
        self.assert_finds(documents.check, 'example', page)
        long_one = 'int x;\n' * 31
        self.assert_finds(documents.check, 'example', {
            'docs/first.md': f'# First\n\n```cpp\n{long_one}```\n', 'tests/first.cc': long_one})

    def test_examples_are_the_compiled_ones(self):
        readme = {'README.md': '# x\n\n```c\nint x;\n```\n'}
        self.assert_finds(documents.check, 'example', readme)
        self.assert_clean(documents.check, {**readme, 'examples/x.c': 'int x;\nint y;\n'})


class FormatTest(unittest.TestCase):
    def test_finds_what_it_would_change(self):
        with tempfile.TemporaryDirectory() as folder:
            place = pathlib.Path(folder, 'base')
            place.mkdir()
            pathlib.Path(folder, '.clang-format').write_text('BasedOnStyle: Google\n')
            for text, expected in (('int  x ;\n', 1), ('int x;\n', 0)):
                (place / 'row.cc').write_text(text, encoding='utf-8')
                status = subprocess.run([sys.executable, format_check.__file__, folder],
                                        capture_output=True, check=False).returncode
                if status == format_check.SKIPPED:
                    self.skipTest('clang-format is not installed')
                self.assertEqual(status != 0, expected != 0)


class CDoorTest(unittest.TestCase):
    def failures(self, header, wrapper='#include "embank.h"\n'):
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, 'embank.h').write_text(header, encoding='utf-8')
            pathlib.Path(folder, 'embank.hpp').write_text(wrapper, encoding='utf-8')
            with contextlib.redirect_stdout(io.StringIO()):
                return [what for what, _ in c_api.failures_of(folder)]

    def test_what_is_not_c99_or_moved(self):
        found = self.failures('struct s { int x; };\n')
        self.assertTrue(any('-std=c99' in what for what in found), 'no guard')
        self.assertIn('layout', found)
        found = self.failures('#ifndef E\n#define E\n#include <stdint.h>\nint f(bool b);\n#endif\n')
        self.assertTrue(any('gcc -std=c99' in what for what in found))
        self.assertFalse(any('embank.h by g++' in what for what in found))
        codes = 'enum { EMBANK_OK = 0, EMBANK_NEW = 16 };\n'
        found = self.failures(f'#ifndef E\n#define E\n{codes}#endif\n')
        self.assertIn('EMBANK_NEW has no pinned number', found)
        self.assertNotIn('EMBANK_OK has no pinned number', found)
        found = self.failures('', 'int f(')
        self.assertTrue(any('embank.hpp by g++' in what for what in found))

    def test_call_that_no_program_makes(self):
        header = 'EMBANK_API int embank_old(void);\nEMBANK_API int embank_new(void);\n'
        self.assertEqual(c_api.calls_not_made(header, 'embank_new();', 'old'), [])
        self.assertEqual(c_api.calls_not_made(header, '', 'old'), ['new'])
        self.assertEqual(c_api.calls_not_made(header, 'embank_new(); embank_old();', 'old'),
                         ['old'])


class SymbolsTest(unittest.TestCase):
    HEADER = 'EMBANK_API int embank_a(int x);\nEMBANK_API const char\n    *embank_b(void);\n'
    MAP = 'EMBANK_0.1 {\n  global:\n    embank_a;\n    embank_b;\n  local:\n    *;\n};\n'
    LIST = '# name since\nembank_a 0.1.0\nembank_b 0.1.3\n'

    def test_lists(self):
        self.assertEqual(symbols.check_lists(self.HEADER, self.MAP, self.LIST), [])
        changes = ((self.HEADER + 'EMBANK_API int embank_c(void);', self.MAP, self.LIST),
                   ('', self.MAP, self.LIST),
                   (self.HEADER, self.MAP.replace('    embank_b;\n', ''), self.LIST),
                   (self.HEADER, self.MAP.replace('*;', ''), self.LIST),
                   (self.HEADER, self.MAP.replace('0.1', '0.2'), self.LIST),
                   (self.HEADER, self.MAP, 'embank_a 0.1.0\n'),
                   (self.HEADER, self.MAP, self.LIST + 'embank_d 0.1.0\n'))
        for change in changes:
            self.assertTrue(symbols.check_lists(*change), change)

    def library(self, folder, source, *flags):
        place = pathlib.Path(folder)
        (place / 'x.c').write_text(source, encoding='utf-8')
        (place / 'x.map').write_text(self.MAP, encoding='utf-8')
        library = str(place / 'x.so')
        subprocess.run(['gcc', '-shared', '-fPIC', '-o', library, str(place / 'x.c'), *flags],
                       check=True)
        return library

    def test_library(self):
        source = 'int embank_a;int embank_b;int hidden;\n'
        with tempfile.TemporaryDirectory() as folder:
            script, name = f'-Wl,--version-script={folder}/x.map', '-Wl,-soname,libembank.so.0'
            good = self.library(folder, source, script, name)
            self.assertEqual(symbols.check_library(good, self.MAP), [])
            for flags in ((name,), (script,), (script, name, '-Wl,--no-as-needed', '-lstdc++'),
                          (script, name, '-Wl,-rpath,x')):
                bad = self.library(folder, source, *flags)
                self.assertTrue(symbols.check_library(bad, self.MAP), flags)
            fewer = self.library(folder, 'int embank_a;', script, name)
            self.assertTrue(symbols.check_library(fewer, self.MAP))


if __name__ == '__main__':
    unittest.main(verbosity=2)
