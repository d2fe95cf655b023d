"""The text by which a checkpoint of embank-train describes its model."""
from __future__ import annotations

import re
from typing import NamedTuple

from .errors import DataLossError, FailedPreconditionError

HEAD, VERSIONS = 'embank-train ', ('1', '2')
NODE = re.compile(r'node (\d+) (dense|feature (\d+)|linear( relu)?|concat|sum|dot interaction|fm|'
                  r'gate) width (\d+)((?: \d+)*)')
INPUT_COUNTS = {'dense': 0, 'feature': 0, 'linear': 1}
ID_FEATURE = re.compile(r'id feature (.*) dim (\d+)')
ID_TABLE = re.compile(r'id table (\d+) (.*)')


class Node(NamedTuple):
    """A matrix of a model's graph, with a row for each sample."""

    kind: str
    width: int
    inputs: list[int]
    feature: int = 0
    has_relu: bool = False


class Description(NamedTuple):
    """A model as its checkpoint describes it."""

    model: str
    steps: int
    dense: list[str]
    """The names of the dense features."""
    ids: list[str]
    """The names of the id features."""
    tables: list[tuple[str, str, int]]
    """Of each feature of the graph: its table, its id feature, and its dim."""
    nodes: list[Node]


def _node(line: str, before: list[Node]) -> Node:
    match = NODE.fullmatch(line)
    if match is None or int(match.group(1)) != len(before):
        raise DataLossError(f'the checkpoint has the line {line!r}; it must be that of node '
                            f'{len(before)}')
    kind, inputs = match.group(2).split()[0], [int(word) for word in match.group(6).split()]
    count = INPUT_COUNTS.get(kind, max(len(inputs), 1))
    if len(inputs) != count or any(number >= len(before) for number in inputs):
        raise DataLossError(f'the checkpoint has the line {line!r}; its inputs must be {count} '
                            'nodes before it')
    return Node(kind, int(match.group(5)), inputs, int(match.group(3) or 0), bool(match.group(4)))


def describe(blob: bytes) -> Description:
    """Returns the model of a checkpoint's blob, which is a text of lines.

    FailedPreconditionError: the blob is not of embank-train, or of one of several ranks, or of a
    newer version. DataLossError: a line is not understood.
    """
    lines = blob.decode('utf-8', 'replace').split('\n')
    if not lines[0].startswith(HEAD) or lines[0].removeprefix(HEAD) not in VERSIONS:
        raise FailedPreconditionError(f'the checkpoint begins with {lines[0][:80]!r}; it must be '
                                      f'of embank-train, version {" or ".join(VERSIONS)}')
    values: dict[str, str] = {}
    dense: list[str] = []
    ids: list[tuple[str, str]] = []
    nodes: list[Node] = []
    tables: dict[int, str] = {}
    for line in lines:
        if match := ID_FEATURE.fullmatch(line):
            ids.append((match.group(1), match.group(2)))
        elif line.startswith('dense feature '):
            dense.append(line.removeprefix('dense feature '))
        elif match := ID_TABLE.fullmatch(line):
            tables[int(match.group(1))] = match.group(2)
        elif line.startswith('node '):
            nodes.append(_node(line, nodes))
        elif nodes:
            break  # The lines after the graph are about the data.
        else:
            word, _, value = line.partition(' ')
            values.setdefault(word, value)
    if 'rank' in values:
        raise FailedPreconditionError(f'the checkpoint has the rows of rank {values["rank"]}: join '
                                      'the directories of all ranks with embank reshard --to 1')
    if not (nodes and nodes[-1].width == 1 and ids and 'model' in values
            and values.get('steps', '').isdecimal()):
        raise DataLossError('the checkpoint has no model, no steps, no id feature, or no graph '
                            'that ends in one logit')
    of = [(tables.get(number, name), name, int(dim)) for number, (name, dim) in enumerate(ids)]
    features = [('id ' + table, name, dim) for table, name, dim in of]
    if any(node.feature >= len(ids) for node in nodes):  # a linear part, with a weight of each id
        features += [('wide ' + table, name, 1) for table, name, _ in of]
    for node in nodes:
        if node.kind == 'feature' and (node.feature >= len(features)
                                       or features[node.feature][2] != node.width):
            raise DataLossError(f'the checkpoint has a node of feature {node.feature} with width '
                                f'{node.width}, which no id feature has')
    return Description(values['model'], int(values['steps']), dense,
                       [name for name, _ in ids], features, nodes)
