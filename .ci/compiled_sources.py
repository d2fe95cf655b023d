"""compiled_sources.py BUILD ROOM...: the sources of rooms as BUILD compiles them, one a line."""
import json
import pathlib
import sys

build = pathlib.Path(sys.argv[1]).resolve()
rooms = tuple(str(top / room) + '/' for top in (pathlib.Path.cwd(), build) for room in sys.argv[2:])
commands = json.loads((build / 'compile_commands.json').read_text(encoding='utf-8'))
for source in sorted({command['file'] for command in commands}):
    if source.startswith(rooms):
        print(source)
