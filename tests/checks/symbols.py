"""The shared library exports what embank.h declares, embank.map lists and symbols.txt dates."""
import ctypes
import pathlib
import re
import subprocess
import sys

SONAME = 'libembank.so.0'
NEEDED = {'libc.so.6', 'libm.so.6', 'ld-linux-x86-64.so.2', 'ld-linux-aarch64.so.1'}


def output_of(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def declared(header):
    text = re.sub(r'/\*.*?\*/', '', header, flags=re.S)
    return set(re.findall(r'\bEMBANK_API\b[^;]*?\b(embank_\w+)\s*\(', text))


def mapped(version_script):
    """{symbol: node}, and whether everything else is local."""
    symbols, text = {}, re.sub(r'/\*.*?\*/|#.*', '', version_script, flags=re.S)
    for node, body in re.findall(r'(\w[\w.]*)\s*\{(.*?)\}', text, re.S):
        public = re.split(r'\blocal\s*:', body)[0]
        symbols.update({name: node for name in re.findall(r'\b(embank_\w+)\s*;', public)})
    return symbols, re.search(r'\blocal\s*:\s*\*\s*;', text) is not None


def dated(listing):
    """{symbol: version since which it exists}."""
    rows = [line.split() for line in listing.splitlines() if line.strip() and line[0] != '#']
    return {row[0]: row[1] for row in rows}


def exported(library):
    """{symbol: node} of the dynamic symbol table; the nodes themselves are absolute symbols."""
    symbols = {}
    for line in output_of('nm', '--dynamic', '--defined-only', library).splitlines():
        kind, name = line.split()[-2:]
        if kind != 'A':
            name, _, node = name.partition('@')
            symbols[name] = node.lstrip('@')
    return symbols


def difference(what, left, right):
    lines = [f'{what}: {name} is only in the first' for name in sorted(left - right)]
    return lines + [f'{what}: {name} is only in the second' for name in sorted(right - left)]


def check_lists(header, version_script, listing):
    functions, dates = declared(header), dated(listing)
    symbols, closed = mapped(version_script)
    found = [] if functions else ['embank.h: declares nothing']
    found += difference('embank.h and embank.map', functions, set(symbols))
    found += difference('embank.h and symbols.txt', functions, set(dates))
    if not closed:
        found.append('embank.map: no "local: *;"')
    for name in sorted(set(symbols) & set(dates)):
        node = 'EMBANK_' + '.'.join(dates[name].split('.')[:2])
        if symbols[name] != node:
            found.append(f'embank.map: {name} since {dates[name]} stands in {symbols[name]}')
    return found


def check_library(library, version_script):
    symbols, _ = mapped(version_script)
    exports = exported(library)
    found = difference('library and embank.map', set(exports), set(symbols))
    found += [f'{name}: exported as {exports[name]}, mapped to {symbols[name]}'
              for name in sorted(set(exports) & set(symbols)) if exports[name] != symbols[name]]
    dynamic = output_of('readelf', '--dynamic', '--wide', library)
    soname = re.findall(r'\(SONAME\).*\[(.*)\]', dynamic)
    if soname != [SONAME]:
        found.append(f'SONAME {soname}, not {SONAME}')
    for name in re.findall(r'\(NEEDED\).*\[(.*)\]', dynamic):
        if name not in NEEDED:
            found.append(f'needs {name}: everything but the C library is linked static')
    for word in ('TEXTREL', 'RPATH', 'RUNPATH'):
        if f'({word})' in dynamic:
            found.append(f'has {word}')
    return found


def check_loading(library):
    """Python loads it, the way every foreign language does."""
    c_api = ctypes.CDLL(library)
    c_api.embank_version.restype = ctypes.c_char_p
    version = c_api.embank_version().decode()
    return [] if re.fullmatch(r'\d+\.\d+\.\d+', version) else [f'embank_version() is {version!r}']


def main():
    c_api, library = pathlib.Path(sys.argv[1]), sys.argv[2]
    header, version_script, listing = (
        (c_api / name).read_text(encoding='utf-8')
        for name in ('embank.h', 'embank.map', 'symbols.txt'))
    found = check_lists(header, version_script, listing)
    found += check_library(library, version_script)
    found += check_loading(library)
    for line in found:
        print(line)
    print(f'{len(declared(header))} functions, {len(found)} findings')
    return 1 if found else 0


if __name__ == '__main__':
    sys.exit(main())
