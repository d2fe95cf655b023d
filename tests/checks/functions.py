"""The declarations of a C++ file and where their bodies end, by matching braces."""
import collections
import re

import tree as trees

# kind: 'function' (with its body) or 'declaration'; owner: the class around it, or ''.
Item = collections.namedtuple('Item', 'kind head first last visible owner')

_CONTAINER = re.compile(r'(\btemplate\b.*>\s*)?\b(inline\s+)?(namespace|class|struct|union|enum)\b'
                        r'|extern\s*"\s*"', re.S)
_QUALIFIERS = re.compile(
    r'\)\s*(\b(const|volatile|noexcept|override|final|mutable|try|constexpr)\b\s*'
    r'|&&?\s*|->[^;{}()]+|ABSL_\w+\s*(\([^()]*\))?\s*'
    r'|noexcept\s*\([^()]*\)\s*|requires\b[^{};]*)*$', re.S)
_INITIALIZERS = re.compile(r'\)\s*(noexcept\s*)?:[^:].*$', re.S)
_NAME = re.compile(r'([~\w:]+(?:operator\S{1,3})?)\s*\(')


def _kind(head):
    """What the brace after `head` (text since the last ; { or }) opens."""
    text = head.strip()
    if _INITIALIZERS.search(text) and re.search(r'[\w>]$', text) and not _QUALIFIERS.search(text):
        return 'initializer'
    if _QUALIFIERS.search(text) or _INITIALIZERS.search(text):
        return 'function'
    return 'container' if _CONTAINER.match(text) else 'other'


def _name(head):
    macro = re.match(r'\s*((?:TYPED_)?TEST(?:_[FP])?)\s*\(\s*(\w+)\s*,\s*(\w+)', head)
    if macro:
        return f'{macro.group(2)}.{macro.group(3)}'
    match = _NAME.search(head)
    return match.group(1) if match else '?'


def _closing(code, opening):
    depth = 0
    for offset in range(opening, len(code)):
        if code[offset] == '{':
            depth += 1
        elif code[offset] == '}':
            depth -= 1
            if depth == 0:
                return offset
    return len(code) - 1


def _enter(head, around):
    """The scope that a container opens: (whether others see what is in it, name of the class)."""
    head = head.strip()
    named = re.search(r'\b(namespace|class|struct|union|enum)\b\s*'
                      r'(?:ABSL_\w+\s*|alignas\([^()]*\)\s*)*([\w:]*)', head)
    if named is None:
        return around[0], ''
    word, name = named.groups()
    if word == 'namespace':
        return around[0] and name not in ('', 'internal', 'detail'), ''
    return around[0] and word != 'class', name


def scan(text):
    """Items of a file in order; those inside function bodies are part of the function."""
    code = re.sub(r'^[ \t]*#(?:\\\n|[^\n])*', lambda m: re.sub(r'[^\n]', ' ', m.group(0)),
                  trees.code_only(text), flags=re.M)
    scopes, begin, offset = [(True, '')], 0, 0

    def item(kind, head, end):
        start = begin + len(head) - len(head.lstrip())
        return Item(kind, head.strip(), trees.line_of(code, start), trees.line_of(code, end),
                    *scopes[-1])

    while offset < len(code):
        character, head = code[offset], code[begin:offset]
        if character == ';':
            if head.strip():
                yield item('declaration', head, offset)
            begin = offset + 1
        elif character == '}':
            scopes = scopes[:-1] or scopes
            begin = offset + 1
        elif character == '{' and _kind(head) == 'container':
            scopes.append(_enter(head, scopes[-1]))
            begin = offset + 1
        elif character == '{':
            # The braces of an initializer belong to a declaration that goes on behind them.
            end = _closing(code, offset)
            if _kind(head) == 'function':
                yield item('function', head, end)
                begin = end + 1
            offset = end
        elif character == ':' and head.strip() in ('public', 'private', 'protected'):
            scopes[-1] = (head.strip() == 'public', scopes[-1][1])
            begin = offset + 1
        offset += 1


def functions_of(text):
    """(name, first line, number of lines) of each function body, lambdas inside included."""
    return [(_name(i.head), i.first, i.last - i.first + 1) for i in scan(text)
            if i.kind == 'function']
