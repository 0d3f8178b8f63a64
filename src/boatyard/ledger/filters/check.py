"""Checks the syntax tree of a filter against a message's descriptor and types it. Called by compile.py."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from google.protobuf.descriptor import Descriptor

from boatyard.ledger.filters.fields import Kind, Path
from boatyard.ledger.filters.literals import Literal, read_literal, read_timestamp
from boatyard.ledger.filters.nodes import (
    Always,
    And,
    Compare,
    Constant,
    Has,
    Holds,
    Node,
    Not,
    OneOf,
    Operand,
    Or,
    Text,
    Truth,
)
from boatyard.ledger.filters.parse import (
    BinaryOperation,
    CallExpression,
    Expression,
    Identifier,
    IndexAccess,
    ListExpression,
    LiteralText,
    LogicalChain,
    MemberAccess,
    Parentheses,
    UnaryOperation,
    refused,
)
from boatyard.model.errors import Refused

MAX_LIST = 1000
T = TypeVar("T")

_RELATIONS = {"==", "!=", "<", "<=", ">", ">=", "in"}
_FLIPPED = {"==": "==", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_SCALARS = {Kind.BOOL, Kind.INT, Kind.ENUM, Kind.DOUBLE, Kind.STRING, Kind.TIMESTAMP}
_TEXT_TESTS = ("startsWith", "endsWith", "contains")


class Checker:
    """Types filters over one message; `variable` is the name by which filters refer to it."""

    def __init__(self, descriptor: Descriptor, variable: str) -> None:
        self._root = Path(Kind.MESSAGE, message=descriptor)
        self._variable = variable
        self.mentioned: set[str] = set()

    def condition(self, tree: Expression) -> Node:
        """Types an expression that must be true or false."""
        match tree:
            case LogicalChain(operator="||"):
                return Or([self.condition(part) for part in tree.parts])
            case LogicalChain():
                return And([self.condition(part) for part in tree.parts])
            case BinaryOperation() if tree.operator in _RELATIONS:
                return self._relation(tree)
            case UnaryOperation(operator="!"):
                return Not(self.condition(tree.operand))
            case CallExpression(target=None):
                return self._function(tree)
            case CallExpression(target=Expression() as target):
                return self._text_test(tree, target)
            case Parentheses():
                return self.condition(tree.inner)
        operand = self._operand(tree)
        if isinstance(operand, Literal) and operand.kind is Kind.BOOL:
            return Always(operand.value)
        if isinstance(operand, Path) and operand.kind is Kind.BOOL:
            return Truth(operand)
        raise _at(tree, "a condition is expected here")

    # --- comparing -------------------------------------------------------------------------------

    def _relation(self, tree: BinaryOperation) -> Node:
        if tree.operator == "in":
            return self._membership(tree)
        left, right = self._operand(tree.left), self._operand(tree.right)
        if tree.operator == "!=":
            return Not(self._compare(tree, "==", left, right))
        return self._compare(tree, tree.operator, left, right)

    def _compare(
        self, tree: Expression, op: str, left: Path | Literal, right: Path | Literal
    ) -> Node:
        if isinstance(left, Literal):
            if isinstance(right, Literal):
                raise _at(tree, "one side of a comparison is a field")
            left, right, op = right, left, _FLIPPED[op]
        if isinstance(right, Literal) and right.kind is Kind.NULL:
            return self._is_null(tree, op, left)
        if left.kind not in _SCALARS:
            raise _at(tree, f"a {left.kind.value} cannot be compared")
        if left.kind is Kind.BOOL and op != "==":
            raise _at(tree, "a bool has no order")
        other: Operand = self._constant(tree, right, left) if isinstance(right, Literal) else right
        if other.kind is not left.kind and {other.kind, left.kind} != {Kind.INT, Kind.ENUM}:
            raise _at(tree, f"a {left.kind.value} cannot be compared with a {other.kind.value}")
        return Compare(op, left, other)

    def _is_null(self, tree: Expression, op: str, path: Path) -> Node:
        if op != "==":
            raise _at(tree, "null has no order")
        if not path.presence:
            raise _at(tree, f"a {path.kind.value} is never null; use has()")
        return Not(Has(path))

    def _membership(self, tree: BinaryOperation) -> Node:
        left, right = self._operand(tree.left), tree.right
        if isinstance(right, ListExpression):
            if isinstance(left, Literal) or left.kind not in _SCALARS:
                raise _at(tree, "a field of a single value is expected before `in`")
            literals = [self._literal(item) for item in right.items]
            if len(literals) > MAX_LIST:
                raise _at(tree, f"the list is longer than {MAX_LIST}")
            return OneOf(left, tuple(self._constant(tree, it, left).value for it in literals))
        field = self._operand(right)
        if isinstance(left, Path) or isinstance(field, Literal):
            raise _at(tree, "`in` is written: field in [constants], or: constant in field")
        if field.kind is Kind.MAP and left.kind is Kind.STRING:
            return Holds(field, Constant(Kind.STRING, left.value))
        if field.kind is Kind.LIST and field.item in _SCALARS - {Kind.TIMESTAMP}:
            constant = _placed(tree, lambda: left.meant_for(field.item or Kind.NULL, field.enum))
            return Holds(field, constant)
        raise _at(tree, "`in` looks into maps by a text, and into lists of single values")

    def _constant(self, tree: Expression, literal: Literal, path: Path) -> Constant:
        return _placed(tree, lambda: literal.meant_for(path.kind, path.enum))

    # --- functions -------------------------------------------------------------------------------

    def _function(self, tree: CallExpression) -> Node:
        if tree.name != "has":
            raise _at(tree, f"there is no condition {tree.name}()")
        if len(tree.arguments) != 1:
            raise _at(tree, "has() takes one field")
        path = self._operand(tree.arguments[0])
        if isinstance(path, Literal) or not isinstance(tree.arguments[0], MemberAccess):
            raise _at(tree, f"has() takes a field, such as has({self._variable}.metadata.labels)")
        return Has(path)

    def _text_test(self, tree: CallExpression, target: Expression) -> Node:
        if tree.name not in _TEXT_TESTS:
            raise _at(tree, f"there is no {tree.name}(); there are {', '.join(_TEXT_TESTS)}")
        path = self._operand(target)
        if isinstance(path, Literal) or path.kind is not Kind.STRING:
            raise _at(tree, f"{tree.name}() is asked of a string field")
        text = self._literal(tree.arguments[0]) if len(tree.arguments) == 1 else None
        if text is None or text.kind is not Kind.STRING:
            raise _at(tree, f"{tree.name}() takes one constant text")
        return Text(tree.name, path, text.value)

    # --- values ----------------------------------------------------------------------------------

    def _literal(self, tree: Expression) -> Literal:
        operand = self._operand(tree)
        if isinstance(operand, Path):
            raise _at(tree, "a constant is expected here")
        return operand

    def _operand(self, tree: Expression) -> Path | Literal:
        match tree:
            case LiteralText():
                return _placed(tree, lambda: read_literal(tree.kind, tree.text))
            case CallExpression(target=None):
                return self._timestamp(tree)
            case UnaryOperation():
                return self._negative(tree)
            case Identifier() | MemberAccess() | IndexAccess():
                return self._path(tree)
            case Parentheses():
                return self._operand(tree.inner)
        raise _at(tree, "this form of CEL is not supported in filters")

    def _timestamp(self, tree: CallExpression) -> Literal:
        if tree.name != "timestamp":
            raise _at(tree, f"there is no function {tree.name}()")
        text = self._literal(tree.arguments[0]) if len(tree.arguments) == 1 else None
        if text is None or text.kind is not Kind.STRING:
            raise _at(tree, "timestamp() takes one constant text")
        return _placed(tree, lambda: read_timestamp(text.value))

    def _negative(self, tree: UnaryOperation) -> Literal:
        if tree.operator != "-" or not isinstance(tree.operand, LiteralText):
            raise _at(tree, "only a number can be negative")
        number = self._literal(tree.operand)
        if number.kind not in (Kind.INT, Kind.DOUBLE):
            raise _at(tree, "only a number can be negative")
        return Literal(number.kind, -number.value)

    def _path(self, tree: Expression) -> Path | Literal:
        """Resolves a path from its first step, which is the deepest node of the tree."""
        steps: list[MemberAccess | IndexAccess] = []
        while isinstance(tree, MemberAccess | IndexAccess):
            steps.append(tree)
            tree = tree.target
        if not isinstance(tree, Identifier):
            raise _at(tree, "this form of CEL is not supported in filters")
        if tree.name != self._variable:
            if steps:
                raise _at(tree, f"there is no {tree.name!r}; fields begin with {self._variable}.")
            return Literal(None, tree.name)
        path = self._root
        for step in reversed(steps):
            path = self._step(step, path)
        self.mentioned.add(path.dotted)
        return path

    def _step(self, step: MemberAccess | IndexAccess, path: Path) -> Path:
        if isinstance(step, IndexAccess):
            key = self._literal(step.key)
            if path.kind is not Kind.MAP or key.kind is not Kind.STRING:
                raise _at(step, "only a map has entries, by a constant text")
            return path.entry(key.value)
        if path.kind is Kind.MAP:
            return path.entry(step.name)
        return _placed(step, lambda: field_of(path, step.name))


def field_of(path: Path, name: str) -> Path:
    """A field of the message at a path. ValueError when there is none or when it is secret."""
    if path.kind is not Kind.MESSAGE or path.message is None:
        raise ValueError(f"a {path.kind.value} has no field {name!r}")
    field = path.message.fields_by_name.get(name)
    if field is None:
        raise ValueError(f"{path.message.name} has no field {name!r}")
    if field.GetOptions().debug_redact:
        raise ValueError(f"{name!r} is secret and cannot be asked about")
    return path.field(field)


def _placed(tree: Expression, read: Callable[[], T]) -> T:
    try:
        return read()
    except ValueError as error:
        raise _at(tree, str(error)) from error


def _at(tree: Expression, message: str) -> Refused:
    return refused(message, *tree.place)
