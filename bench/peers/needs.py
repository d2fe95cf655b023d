"""The packages that the peers need, and the report that they write."""
import json
import sys

MESSAGE = 'needs PyTorch and NumPy: apt-get install python3-torch libopenblas0-pthread, and run ' \
          'it with /usr/bin/python3'


def import_numpy():
    """Returns the module numpy, or ends the program."""
    try:
        import numpy
    except ImportError as error:
        sys.exit(f'{sys.argv[0]} {MESSAGE} ({error})')
    return numpy


def import_torch():
    """Returns the modules torch and numpy, or ends the program."""
    try:
        import numpy
        import torch
    except ImportError as error:
        sys.exit(f'{sys.argv[0]} {MESSAGE} ({error})')
    return torch, numpy


def threads_text(torch) -> str:
    """The version, the BLAS library and the threads of PyTorch, for a report."""
    torch.mm(torch.ones(2, 2), torch.ones(2, 2))  # loads the library
    with open('/proc/self/maps', encoding='utf-8') as maps:
        has_openblas = 'libopenblas' in maps.read()
    blas = 'OpenBLAS' if has_openblas else 'NOT OpenBLAS: install libopenblas0-pthread'
    return f'PyTorch {torch.__version__}, {blas}, {torch.get_num_threads()} OpenMP threads'


def write_figures(figures: dict, path: str) -> None:
    """Prints figures as JSON, and writes them to a file, if it has a name."""
    text = json.dumps(figures, indent=1)
    print(text)
    if path:
        with open(path, 'w', encoding='utf-8') as file:
            file.write(text + '\n')
