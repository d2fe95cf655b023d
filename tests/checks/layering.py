"""Who may include whom: rooms, foreign libraries, the C API; and files that nobody uses."""
import posixpath
import re

import tree as trees

# What each room of the library may include besides itself and the rooms of base. There are no
# circles.
BASE = {'base', 'base/memory', 'base/threads', 'base/files', 'base/pmem'}
TIERS = {'tiers/row', 'tiers/dram', 'tiers/hbm', 'tiers/segment', 'tiers/space', 'tiers/log',
         'tiers/logs'}
PLACEMENT = TIERS | {'gpu', 'store/gate', 'store/index', 'store/table', 'store/placement'}
STORE = PLACEMENT | {'store/payload', 'store/batch', 'store/device', 'store/packed', 'store/scan',
                     'store/catalog', 'store/checkpoint', 'store'}
MAY_INCLUDE = {
    'base': set(),
    'base/memory': {'base'},
    'base/threads': {'base', 'base/memory'},
    'base/files': {'base', 'base/memory', 'base/threads'},
    'base/pmem': {'base', 'base/memory', 'base/threads', 'base/files'},
    'tiers/row': set(),
    'tiers/dram': {'tiers/row'},
    'tiers/hbm': set(),
    'tiers/segment': {'tiers/row'},
    'tiers/space': {'tiers/row', 'tiers/segment'},
    'tiers/log': {'tiers/row', 'tiers/segment', 'tiers/space'},
    'tiers/logs': {'tiers/row', 'tiers/segment', 'tiers/space', 'tiers/log'},
    'gpu': {'tiers/row'},
    'store/gate': set(),
    'store/index': {'tiers/row', 'tiers/dram'},
    'store/table': TIERS | {'store/index'},
    'store/placement': PLACEMENT,
    'store/payload': PLACEMENT,
    'store/batch': PLACEMENT | {'store/payload'},
    'store/device': PLACEMENT | {'store/payload', 'store/batch'},
    'store/packed': PLACEMENT | {'store/payload', 'store/batch', 'store/device'},
    'store/scan': PLACEMENT | {'store/payload', 'store/batch'},
    'store/catalog': PLACEMENT,
    'store/checkpoint': PLACEMENT | {'store/payload', 'store/catalog'},
    'store': STORE,
    'store/inspect': STORE,
    'train/bytes': set(),
    'train/samples': set(),
    'train/data': {'train/bytes', 'train/samples'},
    'train/generator': {'train/bytes', 'train/samples', 'train/data'},
    'train/dense': {'tiers/row'},
    'train/models': {'train/dense'},
    'train/popularity': set(),
    'train/fae': {'train/samples', 'train/bytes', 'train/popularity'},
    'train/hot': STORE | {'train/samples', 'train/dense', 'train/pipeline', 'train/ranks',
                          'train/popularity'},
    'train/ranks': STORE | {'train/samples', 'train/dense', 'train/pipeline'},
    'train/pipeline': STORE | {'train/samples', 'train/dense'},
    'train': STORE | {'store/inspect', 'train/bytes', 'train/samples', 'train/data',
                      'train/generator', 'train/dense', 'train/models', 'train/ranks',
                      'train/pipeline', 'train/popularity', 'train/hot'},
    'train/roles': {'train/ranks'},
    'train/hybrid': STORE | {'train/samples', 'train/dense', 'train/models', 'train/ranks',
                             'train/pipeline', 'train/roles', 'train'},
    'bindings/c': STORE | {'store/inspect', 'train'},
    'bench': set(trees.LIBRARY_ROOMS),
    'tools': set(trees.LIBRARY_ROOMS),
    'examples': {'bindings/c'},
    'tests': set(trees.ROOMS),
}
# Single headers beyond the rooms above.
ALSO = {
    'bench': {'tests/support/algorithm1.h', 'tests/support/oracle.h', 'tools/wrong_words.h'},
}
# The oracle's rules are written again: it shares no more than words and the C header.
ORACLE = re.compile(r'tests/support/oracle\w*\.(h|cc)$')
ORACLE_MAY_INCLUDE = re.compile(r'tests/support/oracle\w*\.h|bindings/c/embank\.h')

# Foreign header -> the files that may name it; each pattern admits one file, a header or source.
FOREIGN = {
    r'liburing\.h': (r'base/files/\w*uring\w*\.cc',),
    r'libpmem\.h': (r'tests/base/pmem_library_test\.cc',),
    r'mpi\.h': (r'train/ranks/mpi_exchange\.cc', r'bench/rank_exchange\.cc', r'examples/ranks\.c'),
    r'nccl\.h': (r'train/\w*nccl\w*\.(cc|cu)',),
    r'cublas\w*\.h': (r'train/\w*cublas\w*\.(cc|cu)',),
    r'cuda\w*\.h': (r'gpu/launch\w*\.h', r'tests/gpu/cuda_\w+\.cc'),
    r'xxhash\.h': (r'base/hash\.cc', r'tests/support/oracle\w*\.(h|cc)'),
    r'cblas\.h': (r'train/dense/gemm\.cc',),
    r'zlib\.h': (r'train/bytes/gzip_source\.cc',),
    r'zstd\.h': (r'train/bytes/zstd_source\.cc',),
    r'rocksdb/.*': (r'bench/\w*_engine\.cc', r'bench/\w*_cache\.cc'),
    r'libcuckoo/.*': (r'bench/\w*\.(h|cc)',),
    r'jemalloc/.*': (r'bench/\w*\.cc',),
    r'(x|i|e|t|p|s|n)mmintrin\.h|immintrin\.h|x86intrin\.h|arm_neon\.h': (
        r'store/index/tag_match\.cc', r'bench/kernels/tagged_index\.h',),
    r'CLI/.*': (r'bench/\w*\.(h|cc)', r'tools/main\.cc', r'tools/train_command\.h'),
}
# Foreign headers of tests and benchmarks: any file there.
FOREIGN_OUTSIDE = {
    r'benchmark/benchmark\.h': r'bench/kernels/.*',
    r'nlohmann/.*': r'(bench|tests)/.*',
    r'absl/.*': r'bench/.*',
    r'g(test|mock)/.*': r'tests/.*',
}
C_API = 'bindings/c/embank.h'
C_API_INCLUDES = ['stddef.h', 'stdint.h']
INSTALLED = (C_API, 'bindings/c/embank.hpp')
CXX_IN_C_API = re.compile(r'\b(absl|std|template|class|namespace|bool|static\s+inline)\b')
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"]+)[>"]', re.M)


def includes(tree, path):
    """(line, quoted, name) of each include of a file."""
    text = trees.code_only(tree.read(path), keep_strings=True)
    return [(trees.line_of(text, m.start(2)), m.group(1) == '"', m.group(2))
            for m in INCLUDE.finditer(text)]


def resolve(tree, path, name):
    """The project file that an include names: from the root, or beside an installed header."""
    beside = posixpath.join(posixpath.dirname(path), name)
    if path in INSTALLED and tree.exists(beside):
        return beside
    return name if tree.exists(name) else None


def check_direction(path, line, target, findings):
    room, target_room = trees.room_of(path), trees.room_of(target)
    if room is None:
        return
    if ORACLE.match(path) and not ORACLE_MAY_INCLUDE.fullmatch(target):
        findings.add(path, line, 'oracle', f'includes {target}: the oracle stands on its own rules')
    allowed = MAY_INCLUDE[room] | {room}
    if room not in BASE | {'examples'}:
        allowed = allowed | BASE
    if target_room not in allowed and target not in ALSO.get(room, ()):
        findings.add(path, line, 'direction', f'{room} may not include {target}')


def check_foreign(path, line, name, users, findings):
    for pattern, place in FOREIGN_OUTSIDE.items():
        if re.fullmatch(pattern, name) and not re.fullmatch(place, path):
            findings.add(path, line, 'foreign', f'{name} belongs to {place}')
    for pattern, places in FOREIGN.items():
        if not re.fullmatch(pattern, name):
            continue
        place = next((p for p in places if re.fullmatch(p, path)), None)
        if place is None:
            findings.add(path, line, 'foreign', f'{name} belongs to {" or ".join(places)}')
            continue
        first = users.setdefault((pattern, place), path)
        if first != path:
            findings.add(path, line, 'foreign', f'{name} is already the business of {first}')


def check_c_api(tree, findings):
    for path in filter(tree.exists, INSTALLED):
        for line, quoted, name in includes(tree, path):
            if path == C_API and (quoted or name not in C_API_INCLUDES):
                findings.add(path, line, 'c api', f'includes {name}: only {C_API_INCLUDES}')
    code = trees.code_only(tree.read(C_API)) if tree.exists(C_API) else ''
    for match in CXX_IN_C_API.finditer(code):
        findings.add(C_API, trees.line_of(code, match.start()), 'c api', f'{match.group(0)} in C')


def check_dead_files(tree, included, findings):
    lists = {p: tree.read(p) for p in tree.paths if p.endswith('CMakeLists.txt')}
    lists.update({p: tree.read(p) for p in tree.with_suffix('.cmake')})
    for path in tree.with_suffix('.cc', '.cu', under=trees.ROOMS):
        folder, name = posixpath.split(path)
        stem = posixpath.splitext(name)[0]
        word = re.compile(r'(?<![\w.])(%s|%s)(?![\w.])' % (re.escape(name), re.escape(stem)))
        if not any(word.search(text) for place, text in lists.items()
                   if f'{folder}/'.startswith(posixpath.dirname(place) + '/')):
            # The consumers of the install test and the examples are built by scripts.
            if not folder.startswith(('tests/install', 'examples')):
                findings.add(path, 1, 'dead file', 'no CMakeLists.txt builds it')
    for path in tree.with_suffix(*trees.HEADERS, under=trees.ROOMS):
        if path not in included and path not in INSTALLED:
            findings.add(path, 1, 'dead file', 'nobody but its own source includes it')


def check(tree, findings):
    included, users = set(), {}
    for path in tree.with_suffix(*trees.CXX):
        if trees.room_of(path) is None:
            findings.add(path, 1, 'room', 'stands in no room (tree.py)')
        for line, quoted, name in includes(tree, path):
            target = resolve(tree, path, name) if quoted else None
            foreign = not quoted or ('/' in name and trees.room_of(name) is None)
            if foreign:
                check_foreign(path, line, name, users, findings)
                continue
            if target is None:
                findings.add(path, line, 'include', f'"{name}" is not a file from the top folder')
                continue
            # What only its own source includes has no user.
            if posixpath.splitext(target)[0] != posixpath.splitext(path)[0]:
                included.add(target)
            check_direction(path, line, target, findings)
    check_c_api(tree, findings)
    check_dead_files(tree, included, findings)


if __name__ == '__main__':
    trees.main(check)
