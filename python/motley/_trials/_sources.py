"""The source of a function in a normal form, by hash: equal for equal code under another path, another version of Python, with other
comments, docstrings, annotations and formatting. And what that code writes, which no two machines need have alike."""

import ast
import functools
import hashlib
import linecache
import sys
import types
from collections.abc import Container, Iterator
from dataclasses import dataclass
from typing import Any

LEFT_OUT = frozenset({"kind", "type_comment", "ctx", "annotation", "returns", "type_params", "type_ignores"})
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
CHANGERS = frozenset({"add", "append", "appendleft", "clear", "discard", "extend", "insert", "pop", "popleft", "popitem", "remove",
                      "setdefault", "update"})


@dataclass(frozen=True)
class Source:
    """hash: of the normal form. writes: variables and (".NAME") attributes that the code writes. exact: of the source; else of what was
    compiled of it, which is equal under one version of Python alone. waits: names that say for how long it waits, and nothing else."""

    hash: str
    writes: frozenset[str]
    exact: bool = True
    waits: frozenset[str] = frozenset()


@functools.lru_cache(maxsize=4096)
def of_code(code: types.CodeType) -> Source:
    """Of a function. Its file may be away, or have been edited since it was read: then its names and constants count."""
    node = _file(code.co_filename).find(code)
    if node is None:
        return Source(_hash(_of_compiled(code)), frozenset(), exact=False)
    return Source(_hash(_normal(node)), frozenset(_writes(node)) - _locals(code), waits=_waits(node))


def of_loop(frame: types.FrameType) -> tuple[Source, frozenset[str]] | None:
    """Of the `for` whose iterator the frame makes now, and the names in it; None where it is not to be found."""
    if not _file(frame.f_code.co_filename).is_of(frame.f_code):
        return None
    found = [node for node in ast.walk(_file(frame.f_code.co_filename).tree) if isinstance(node, (ast.For, ast.AsyncFor))
             and node.iter.lineno <= frame.f_lineno <= (node.iter.end_lineno or 0)]
    if len(found) != 1:
        return None
    return Source(_hash(_normal(found[0])), frozenset(_writes(found[0]))), frozenset(_names(found[0])) - _waits(found[0])


def _hash(words: Iterator[str]) -> str:
    return hashlib.blake2b("\0".join(words).encode(errors="surrogatepass"), digest_size=8).hexdigest()


# --- the file --------------------------------------------------------------------------------------------------------------------


class _File:
    """Its text, as it is now. Errors while it is read or compiled: it has none."""

    def __init__(self, name: str):
        self.tree, self._codes = ast.Module([], []), dict[tuple[str, int], list[types.CodeType]]()
        try:
            self.tree = ast.parse("".join(linecache.getlines(name)))
            for code in _nested(compile(self.tree, name, "exec", dont_inherit=True)):
                self._codes.setdefault((code.co_name, code.co_firstlineno), []).append(code)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return

    def find(self, code: types.CodeType) -> Any:
        """The node that the code was compiled from. Of several lambdas in a line: by their columns, which Python 3.10 does not tell."""
        if not any(_same(code, each) for each in self._codes.get((code.co_name, code.co_firstlineno), ())):
            return None
        for statement in self.tree.body:
            if _first_line(statement) <= code.co_firstlineno <= (statement.end_lineno or 0):
                found = [node for node in ast.walk(statement) if isinstance(node, FUNCTIONS) and _first_line(node) == code.co_firstlineno
                         and getattr(node, "name", "<lambda>") == code.co_name]
                if found:
                    return found[0] if len(found) == 1 else _by_columns(found, code)
        return None

    def is_of(self, code: types.CodeType) -> bool:
        return self.find(code) is not None if code.co_name != "<module>" else bool(self.tree.body)


@functools.lru_cache(maxsize=1024)
def _file(name: str) -> _File:
    return _File(name)


def _first_line(node: Any) -> int:
    return min([node.lineno, *(each.lineno for each in getattr(node, "decorator_list", []))])


def _nested(code: types.CodeType) -> Iterator[types.CodeType]:
    for each in code.co_consts:
        if isinstance(each, types.CodeType):
            yield each
            yield from _nested(each)


def _same(a: types.CodeType, b: types.CodeType) -> bool:
    if a.co_code != b.co_code or a.co_names != b.co_names:
        return False
    return a.co_varnames == b.co_varnames and a.co_freevars == b.co_freevars and list(_constants(a)) == list(_constants(b))


def _constants(code: types.CodeType) -> Iterator[str]:
    for each in code.co_consts:
        if not isinstance(each, types.CodeType):
            yield repr(sorted(map(repr, each)) if isinstance(each, frozenset) else each)


def _by_columns(nodes: list[Any], code: types.CodeType) -> Any:
    if sys.version_info < (3, 11):
        return None
    places = [(line, column) for line, _, column, _ in code.co_positions() if line is not None and column]
    inside = [node for node in nodes if isinstance(node, ast.Lambda) and places
              and (node.body.lineno, node.body.col_offset) <= min(places)
              and max(places) < (node.body.end_lineno or 0, node.body.end_col_offset or 0)]
    return max(inside, key=lambda node: (node.body.lineno, node.body.col_offset), default=None)


def _locals(code: types.CodeType) -> frozenset[str]:
    return frozenset({*code.co_varnames, *code.co_cellvars}).union(*(_locals(each) for each in _nested(code)))


# --- the normal form -------------------------------------------------------------------------------------------------------------


def _normal(node: Any) -> Iterator[str]:
    if isinstance(node, ast.AST):
        if isinstance(node, ast.AnnAssign):
            node = ast.Assign([node.target], node.value)
        yield type(node).__name__
        for field in node._fields:
            value = getattr(node, field, None)
            if field in LEFT_OUT or value is None or value == []:
                continue
            yield field
            if field in ("body", "orelse", "finalbody") and isinstance(value, list):
                value = [each for each in value if not _does_nothing(each)]
            elif field == "targets" and isinstance(node, ast.Delete):
                value = [part for each in value for part in (each.elts if isinstance(each, ast.Tuple) else [each])]
            elif field == "values" and isinstance(node, ast.JoinedStr):
                value = _joined(value)
            yield from _normal(value)
        yield ")"
    elif isinstance(node, list):
        yield "["
        for each in node:
            yield from _normal(each)
        yield "]"
    else:
        yield f"{type(node).__name__} {node!r}"


def _does_nothing(statement: Any) -> bool:
    if isinstance(statement, ast.Expr):
        return isinstance(statement.value, ast.Constant) or _is_wait(statement)
    return isinstance(statement, ast.Pass) or isinstance(statement, ast.AnnAssign) and statement.value is None


def _is_wait(statement: Any) -> bool:
    """A time.sleep() of a number that nobody computes for it."""
    call = statement.value if isinstance(statement, ast.Expr) else None
    if not isinstance(call, ast.Call) or ast.unparse(call.func) != "time.sleep":
        return False
    return not any(isinstance(each, (ast.Call, ast.NamedExpr, ast.Await)) for part in call.args for each in ast.walk(part))


def _waits(node: Any) -> frozenset[str]:
    waits = [each for each in ast.walk(node) if _is_wait(each)]
    inside = {name for each in waits for name in _names(each)}
    return frozenset(inside - set(_names(node, set(map(id, waits))))) if waits else frozenset()


def _names(node: Any, apart: Container[int] = ()) -> Iterator[str]:
    """Of variables and attributes. apart: nodes that are left out."""
    if isinstance(node, ast.Name):
        yield node.id
    elif isinstance(node, ast.Attribute):
        yield node.attr
    for each in ast.iter_child_nodes(node):
        if id(each) not in apart:
            yield from _names(each, apart)


def _joined(parts: list[Any]) -> list[Any]:
    """Of an f-string: texts that lie side by side as one."""
    found: list[Any] = []
    for part in parts:
        if isinstance(part, ast.Constant) and found and isinstance(found[-1], ast.Constant):
            found[-1] = ast.Constant(str(found[-1].value) + str(part.value))
        else:
            found.append(part)
    return found


def _of_compiled(code: types.CodeType) -> Iterator[str]:
    yield from (code.co_name, *code.co_names, *code.co_varnames, *code.co_freevars, *_constants(code))
    for each in code.co_consts:
        if isinstance(each, types.CodeType):
            yield from _of_compiled(each)


def _writes(node: Any) -> Iterator[str]:
    for each in ast.walk(node):
        if isinstance(each, (ast.Global, ast.Nonlocal)):
            yield from each.names
        elif isinstance(each, ast.Attribute) and not isinstance(each.ctx, ast.Load):
            yield f".{each.attr}"
        elif isinstance(each, ast.Subscript) and not isinstance(each.ctx, ast.Load):
            yield from _name_of(each.value)
        elif isinstance(each, ast.Call) and isinstance(each.func, ast.Attribute) and each.func.attr in CHANGERS:
            yield from _name_of(each.func.value)
        elif isinstance(each, ast.Call) and isinstance(each.func, ast.Name) and each.func.id == "setattr" and len(each.args) == 3:
            yield from [f".{each.args[1].value}"] if isinstance(each.args[1], ast.Constant) else []


def _name_of(node: Any) -> list[str]:
    if isinstance(node, ast.Subscript):
        return _name_of(node.value)
    return [node.id] if isinstance(node, ast.Name) else [f".{node.attr}"] if isinstance(node, ast.Attribute) else []
