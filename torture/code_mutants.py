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
    line: int
    before: str
    after: str
    source: str  # of the whole module


class _Change(NamedTuple):
    """Sets an attribute of a node, or an item of a list."""

    shown: ast.AST  # what is printed, before and after
    inside: Any
    key: Any
    value: Any


def mutants(source: str) -> list[Mutant]:
    """All mutants of a module, in the order of its lines."""
    tree = ast.parse(source)
    found = []
    for change in list(_changes(tree, None)):
        before = ast.unparse(change.shown)
        old = _put(change.inside, change.key, change.value)
        shown = change.value if isinstance(change.inside, list) and change.shown is old else change.shown
        found.append(Mutant(change.shown.lineno, before, ast.unparse(shown), ast.unparse(tree)))
        _put(change.inside, change.key, old)
    return sorted(found, key=lambda mutant: mutant.line)


def _put(inside: Any, key: Any, value: Any) -> Any:
    if isinstance(inside, list):
        old, inside[key] = inside[key], value
    else:
        old = getattr(inside, key)
        setattr(inside, key, value)
    return old


def _changes(node: ast.AST, statement: ast.stmt | None) -> Iterator[_Change]:
    """The changes of a node and of all that is in it. Messages, annotations and what mypy needs are left alone."""
    statement = node if isinstance(node, ast.stmt) and not hasattr(node, "body") else statement
    if isinstance(node, ast.Assert | ast.JoinedStr | ast.Raise | ast.Import | ast.ImportFrom):
        return
    if isinstance(node, ast.keyword) and node.arg == "strict":  # of zip: a check of what cannot be
        return
    yield from _own_changes(node, statement)
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list", "bases"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield from _changes(child, statement)
        if name in ("body", "orelse", "finalbody") and isinstance(value, list):
            for place, child in enumerate(value):
                if isinstance(child, REMOVED) and not (isinstance(child, ast.Expr) and _is_constant(child.value)):
                    yield _Change(child, value, place, ast.copy_location(ast.Pass(), child))


def _is_constant(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant)


def _own_changes(node: ast.AST, statement: ast.stmt | None) -> Iterator[_Change]:
    if isinstance(node, ast.Compare):
        for place, operator in enumerate(node.ops):
            yield _Change(node, node.ops, place, COMPARISONS[type(operator)]())
        for side in (node.left, *node.comparators):
            if isinstance(side, ast.Constant) and isinstance(side.value, str):
                yield _Change(node, side, "value", f"{side.value}?")
    elif isinstance(node, ast.BinOp | ast.BoolOp) and type(node.op) in OPERATORS:
        yield _Change(node, node, "op", OPERATORS[type(node.op)]())
    elif isinstance(node, ast.AugAssign) and type(node.op) in OPERATORS:
        yield _Change(node, node, "op", OPERATORS[type(node.op)]())
    elif isinstance(node, ast.UnaryOp):  # twice is not at all
        yield _Change(node, node, "operand", ast.UnaryOp(node.op, node.operand))
    elif isinstance(node, ast.If | ast.IfExp | ast.While) and not isinstance(node.test, ast.Compare | ast.UnaryOp):
        yield _Change(node.test, node, "test", ast.UnaryOp(ast.Not(), node.test))
    elif isinstance(node, ast.Constant) and isinstance(node.value, bool | int | float):
        other = (not node.value) if isinstance(node.value, bool) else node.value + 1
        yield _Change(statement or node, node, "value", other)
    elif isinstance(node, ast.Call) and len(node.args) >= 2 and not any(isinstance(a, ast.Starred) for a in node.args):
        yield _Change(node, node, "args", [node.args[1], node.args[0], *node.args[2:]])
    elif isinstance(node, ast.Attribute) and node.attr in NAMES:
        yield _Change(node, node, "attr", NAMES[node.attr])
