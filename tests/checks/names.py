"""A name of namespace embank is declared once: two rooms linked together would mix two meanings."""
import re

import tree as trees

ROOMS = ('base', 'tiers', 'gpu', 'store', 'train', 'bindings', 'bench', 'tools')
# Namespaces are not indented, so what stands at the margin belongs to no class.
UNNAMED = re.compile(r'^namespace \{$.*?^\}  // namespace$', re.M | re.S)
NESTED = re.compile(r'^namespace embank::\w+ \{$.*?^\}  // namespace embank::\w+$', re.M | re.S)
TYPE = re.compile(r'^(?:template\s*<[^{;]*>\s*)?(?:class|struct|union|enum(?:\s+class)?)\s+'
                  r'(?:ABSL_\w+(?:\([^()]*\))?\s*|alignas\([^()]*\)\s*|\[\[[^\]]*\]\]\s*)*'
                  r'(\w+)\s*(?:final\s*)?(?::(?!:)[^{;]*)?\{', re.M)
ALIAS = re.compile(r'^(?:__extension__\s+)?using\s+(\w+)\s*=', re.M)
CONSTANT = re.compile(r'^(?:inline\s+)?constexpr\s+[\w:<>, ]+?\s(k[A-Z]\w*)(?:\[[^\]]*\])*\s*[={]',
                      re.M)


def blank(match):
    return re.sub(r'[^\n]', ' ', match.group(0))


def declared(text):
    """(name, line) of each type, alias and constant that a file gives to namespace embank."""
    code = trees.code_only(NESTED.sub(blank, UNNAMED.sub(blank, text)))
    for pattern in (TYPE, ALIAS, CONSTANT):
        for match in pattern.finditer(code):
            yield match.group(1), trees.line_of(code, match.start(1))


def check(tree, findings):
    first = {}
    # Users compile embank.hpp, which no room includes.
    for path in tree.with_suffix('.h', '.cc', under=ROOMS):
        text = tree.read(path)
        if not re.search(r'^namespace embank \{$', text, re.M):
            continue
        for name, line in declared(text):
            other = first.setdefault(name, f'{path}:{line}')
            if other != f'{path}:{line}':
                findings.add(path, line, 'name', f'{name} is declared at {other} already')


if __name__ == '__main__':
    trees.main(check)
