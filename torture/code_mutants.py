"""Mutants of a module's source: small mistakes, one at a time, each of which some test should notice."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any, NamedTuple

COMPARISONS = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
OPERATORS = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult, ast.Mod: ast.Mult,
    ast.Pow: ast.Mult, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd, ast.And: ast.Or, ast.Or: ast.And,
    ast.LShift: ast.RShift,
}  # fmt: skip
NAMES = {
    "argmax": "argmin", "amax": "amin", "max": "min", "min": "max", "maximum": "minimum", "minimum": "maximum",
    "any": "all", "all": "any", "zeros": "ones", "new_zeros": "new_ones", "zeros_like": "ones_like",
    "ones_like": "zeros_like", "index_add": "index_copy", "index_copy": "index_add", "logsumexp": "amax",
    "log_softmax": "softmax", "exp": "log", "log": "exp", "ceil": "floor", "sum": "mean", "mean": "sum",
    "logsigmoid": "sigmoid", "mul_": "div_", "sub_": "add_", "sqrt_": "square_",
}  # fmt: skip
REMOVED = ast.Expr, ast.AugAssign, ast.Raise, ast.Continue, ast.Break


class Mutant(NamedTuple):
    lines: range  # of the statement
    in_function: bool  # else it is run when the module is loaded
    before: str
    after: str
    source: str  # of the whole module


class _Place(NamedTuple):
    """The statement that a change is in."""

    lines: range = range(0)
    in_function: bool = False


class _Change(NamedTuple):
    """Sets an attribute of a node, or an item of a list."""

    place: _Place
    shown: ast.AST  # what is printed, before and after
    inside: Any
    key: Any
    value: Any


def mutants(source: str) -> list[Mutant]:
    """All mutants of a module, in the order of its lines."""
    tree = ast.parse(source)
    found = []
    for change in list(_changes(tree, _Place())):
        before = ast.unparse(change.shown)
        old = _put(change.inside, change.key, change.value)
        after = ast.unparse(change.value if change.shown is old else change.shown)
        found.append(Mutant(*change.place, before, after, ast.unparse(tree)))
        _put(change.inside, change.key, old)
    return sorted(found, key=lambda mutant: mutant.lines.start)


def _put(inside: Any, key: Any, value: Any) -> Any:
    if isinstance(inside, list):
        old, inside[key] = inside[key], value
    else:
        old = getattr(inside, key)
        setattr(inside, key, value)
    return old


def _changes(node: ast.AST, place: _Place) -> Iterator[_Change]:
    """The changes of a node and of all that is in it. Messages, annotations and what mypy needs are left alone."""
    if isinstance(node, ast.Assert | ast.JoinedStr | ast.Raise | ast.Import | ast.ImportFrom):
        return
    if isinstance(node, ast.keyword) and node.arg == "strict":  # of zip: a check of what cannot be
        return
    if isinstance(node, ast.stmt):
        place = place._replace(lines=_own_lines(node))
    yield from _own_changes(node, place)
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list", "bases"):
            continue
        is_body = name == "body" and isinstance(node, ast.FunctionDef | ast.Lambda)
        inner = place._replace(in_function=True) if is_body else place
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield from _changes(child, inner)
        if name in ("body", "orelse", "finalbody") and isinstance(value, list):
            for number, child in enumerate(value):
                if isinstance(child, REMOVED) and not (isinstance(child, ast.Expr) and _is_constant(child.value)):
                    here = inner._replace(lines=_own_lines(child))
                    yield _Change(here, child, value, number, ast.copy_location(ast.Pass(), child))


def _own_lines(node: ast.stmt) -> range:
    """The lines of a statement; of one with a body, those above that."""
    body = getattr(node, "body", None)
    return range(node.lineno, max(node.lineno + 1, body[0].lineno if body else (node.end_lineno or node.lineno) + 1))


def _is_constant(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant)


def _own_changes(node: ast.AST, place: _Place) -> Iterator[_Change]:
    if isinstance(node, ast.Compare):
        for number, operator in enumerate(node.ops):
            yield _Change(place, node, node.ops, number, COMPARISONS[type(operator)]())
        for side in (node.left, *node.comparators):
            if isinstance(side, ast.Constant) and isinstance(side.value, str):
                yield _Change(place, node, side, "value", f"{side.value}?")
    elif isinstance(node, ast.BinOp | ast.BoolOp | ast.AugAssign) and type(node.op) in OPERATORS:
        yield _Change(place, node, node, "op", OPERATORS[type(node.op)]())
    elif isinstance(node, ast.UnaryOp):  # twice is not at all
        yield _Change(place, node, node, "operand", ast.UnaryOp(node.op, node.operand))
    elif isinstance(node, ast.If | ast.IfExp | ast.While) and not isinstance(node.test, ast.Compare | ast.UnaryOp):
        yield _Change(place, node.test, node, "test", ast.UnaryOp(ast.Not(), node.test))
    elif isinstance(
        node, ast.Subscript | ast.Call | ast.keyword | ast.Tuple | ast.Assign | ast.AnnAssign | ast.arguments
    ):
        yield from _other_constants(node, place)
    if isinstance(node, ast.BinOp | ast.Compare | ast.Slice | ast.IfExp | ast.Return):
        yield from _other_constants(node, place)
    if isinstance(node, ast.Call) and _has_an_order(node):
        yield _Change(place, node, node, "args", [node.args[1], node.args[0], *node.args[2:]])
    if isinstance(node, ast.Attribute) and node.attr in NAMES:
        yield _Change(place, node, node, "attr", NAMES[node.attr])


def _has_an_order(node: ast.Call) -> bool:
    """True if a call with its first two arguments swapped is another one."""
    if len(node.args) < 2 or any(isinstance(argument, ast.Starred) for argument in node.args):
        return False
    if isinstance(node.func, ast.Name):
        is_symmetric = node.func.id in ("max", "min", "maximum", "minimum")
    else:
        is_symmetric = isinstance(node.func, ast.Attribute) and node.func.attr in ("maximum", "minimum")
    return not is_symmetric and ast.dump(node.args[0]) != ast.dump(node.args[1])


def _other_constants(node: ast.AST, place: _Place) -> Iterator[_Change]:
    """Numbers larger by one, True for False."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Constant) and isinstance(child.value, bool | int | float):
            other = (not child.value) if isinstance(child.value, bool) else child.value + 1
            shown = node if hasattr(node, "lineno") else child
            yield _Change(place, shown, child, "value", other)
