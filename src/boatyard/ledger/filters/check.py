"""Checks the syntax tree of a filter against a message's descriptor and types it. Called by compile.py."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from google.protobuf.descriptor import Descriptor

from boatyard.ledger.filters.fields import FieldPath, ValueKind
from boatyard.ledger.filters.literals import Literal, read_literal, read_timestamp
from boatyard.ledger.filters.nodes import (
    And,
    BoolField,
    Compare,
    Constant,
    ConstantCondition,
    Contains,
    IsSet,
    Node,
    Not,
    OneOf,
    Operand,
    Or,
    TextTest,
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
    make_filter_error,
)
from boatyard.model.errors import Refused

MAX_LIST_ITEMS = 1000
T = TypeVar("T")

_RELATIONS = {"==", "!=", "<", "<=", ">", ">=", "in"}
_FLIPPED_OPERATORS = {"==": "==", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_SCALAR_KINDS = {
    ValueKind.BOOL,
    ValueKind.INT,
    ValueKind.ENUM,
    ValueKind.DOUBLE,
    ValueKind.STRING,
    ValueKind.TIMESTAMP,
}
_TEXT_TESTS = ("startsWith", "endsWith", "contains")


class Checker:
    """Types filters over one message; `variable` is the name by which filters refer to it."""

    def __init__(self, descriptor: Descriptor, variable: str) -> None:
        self._root = FieldPath(ValueKind.MESSAGE, message=descriptor)
        self._variable = variable
        self.mentioned_fields: set[str] = set()

    def check_condition(self, tree: Expression) -> Node:
        """Types an expression that must be true or false."""
        match tree:
            case LogicalChain(operator="||"):
                return Or([self.check_condition(part) for part in tree.parts])
            case LogicalChain():
                return And([self.check_condition(part) for part in tree.parts])
            case BinaryOperation() if tree.operator in _RELATIONS:
                return self._check_relation(tree)
            case UnaryOperation(operator="!"):
                return Not(self.check_condition(tree.operand))
            case CallExpression(target=None):
                return self._check_function(tree)
            case CallExpression(target=Expression() as target):
                return self._check_text_test(tree, target)
            case Parentheses():
                return self.check_condition(tree.inner)
        operand = self._operand(tree)
        if isinstance(operand, Literal) and operand.kind is ValueKind.BOOL:
            return ConstantCondition(operand.value)
        if isinstance(operand, FieldPath) and operand.kind is ValueKind.BOOL:
            return BoolField(operand)
        raise _make_error_at(tree, "a condition is expected here")

    # --- comparing -------------------------------------------------------------------------------

    def _check_relation(self, tree: BinaryOperation) -> Node:
        if tree.operator == "in":
            return self._check_membership(tree)
        left, right = self._operand(tree.left), self._operand(tree.right)
        if tree.operator == "!=":
            return Not(self._check_comparison(tree, "==", left, right))
        return self._check_comparison(tree, tree.operator, left, right)

    def _check_comparison(
        self, tree: Expression, op: str, left: FieldPath | Literal, right: FieldPath | Literal
    ) -> Node:
        if isinstance(left, Literal):
            if isinstance(right, Literal):
                raise _make_error_at(tree, "one side of a comparison is a field")
            left, right, op = right, left, _FLIPPED_OPERATORS[op]
        if isinstance(right, Literal) and right.kind is ValueKind.NULL:
            return self._is_null(tree, op, left)
        if left.kind not in _SCALAR_KINDS:
            raise _make_error_at(tree, f"a {left.kind.value} cannot be compared")
        if left.kind is ValueKind.BOOL and op != "==":
            raise _make_error_at(tree, "a bool has no order")
        other: Operand = self._constant(tree, right, left) if isinstance(right, Literal) else right
        if other.kind is not left.kind and {other.kind, left.kind} != {
            ValueKind.INT,
            ValueKind.ENUM,
        }:
            raise _make_error_at(
                tree, f"a {left.kind.value} cannot be compared with a {other.kind.value}"
            )
        return Compare(op, left, other)

    def _is_null(self, tree: Expression, op: str, path: FieldPath) -> Node:
        if op != "==":
            raise _make_error_at(tree, "null has no order")
        if not path.presence:
            raise _make_error_at(tree, f"a {path.kind.value} is never null; use has()")
        return Not(IsSet(path))

    def _check_membership(self, tree: BinaryOperation) -> Node:
        left, right = self._operand(tree.left), tree.right
        if isinstance(right, ListExpression):
            if isinstance(left, Literal) or left.kind not in _SCALAR_KINDS:
                raise _make_error_at(tree, "a field of a single value is expected before `in`")
            literals = [self._literal(item) for item in right.items]
            if len(literals) > MAX_LIST_ITEMS:
                raise _make_error_at(tree, f"the list is longer than {MAX_LIST_ITEMS}")
            return OneOf(left, tuple(self._constant(tree, it, left).value for it in literals))
        field = self._operand(right)
        if isinstance(left, FieldPath) or isinstance(field, Literal):
            raise _make_error_at(
                tree, "`in` is written: field in [constants], or: constant in field"
            )
        if field.kind is ValueKind.MAP and left.kind is ValueKind.STRING:
            return Contains(field, Constant(ValueKind.STRING, left.value))
        if field.kind is ValueKind.LIST and field.item in _SCALAR_KINDS - {ValueKind.TIMESTAMP}:
            constant = _with_position(
                tree, lambda: left.convert_for(field.item or ValueKind.NULL, field.enum)
            )
            return Contains(field, constant)
        raise _make_error_at(
            tree, "`in` looks into maps by a text, and into lists of single values"
        )

    def _constant(self, tree: Expression, literal: Literal, path: FieldPath) -> Constant:
        return _with_position(tree, lambda: literal.convert_for(path.kind, path.enum))

    # --- functions -------------------------------------------------------------------------------

    def _check_function(self, tree: CallExpression) -> Node:
        if tree.name != "has":
            raise _make_error_at(tree, f"there is no condition {tree.name}()")
        if len(tree.arguments) != 1:
            raise _make_error_at(tree, "has() takes one field")
        path = self._operand(tree.arguments[0])
        if isinstance(path, Literal) or not isinstance(tree.arguments[0], MemberAccess):
            raise _make_error_at(
                tree, f"has() takes a field, such as has({self._variable}.metadata.labels)"
            )
        return IsSet(path)

    def _check_text_test(self, tree: CallExpression, target: Expression) -> Node:
        if tree.name not in _TEXT_TESTS:
            raise _make_error_at(
                tree, f"there is no {tree.name}(); there are {', '.join(_TEXT_TESTS)}"
            )
        path = self._operand(target)
        if isinstance(path, Literal) or path.kind is not ValueKind.STRING:
            raise _make_error_at(tree, f"{tree.name}() is asked of a string field")
        text = self._literal(tree.arguments[0]) if len(tree.arguments) == 1 else None
        if text is None or text.kind is not ValueKind.STRING:
            raise _make_error_at(tree, f"{tree.name}() takes one constant text")
        return TextTest(tree.name, path, text.value)

    # --- values ----------------------------------------------------------------------------------

    def _literal(self, tree: Expression) -> Literal:
        operand = self._operand(tree)
        if isinstance(operand, FieldPath):
            raise _make_error_at(tree, "a constant is expected here")
        return operand

    def _operand(self, tree: Expression) -> FieldPath | Literal:
        match tree:
            case LiteralText():
                return _with_position(tree, lambda: read_literal(tree.kind, tree.text))
            case CallExpression(target=None):
                return self._timestamp(tree)
            case UnaryOperation():
                return self._negative(tree)
            case Identifier() | MemberAccess() | IndexAccess():
                return self._resolve_path(tree)
            case Parentheses():
                return self._operand(tree.inner)
        raise _make_error_at(tree, "this form of CEL is not supported in filters")

    def _timestamp(self, tree: CallExpression) -> Literal:
        if tree.name != "timestamp":
            raise _make_error_at(tree, f"there is no function {tree.name}()")
        text = self._literal(tree.arguments[0]) if len(tree.arguments) == 1 else None
        if text is None or text.kind is not ValueKind.STRING:
            raise _make_error_at(tree, "timestamp() takes one constant text")
        return _with_position(tree, lambda: read_timestamp(text.value))

    def _negative(self, tree: UnaryOperation) -> Literal:
        if tree.operator != "-" or not isinstance(tree.operand, LiteralText):
            raise _make_error_at(tree, "only a number can be negative")
        number = self._literal(tree.operand)
        if number.kind not in (ValueKind.INT, ValueKind.DOUBLE):
            raise _make_error_at(tree, "only a number can be negative")
        return Literal(number.kind, -number.value)

    def _resolve_path(self, tree: Expression) -> FieldPath | Literal:
        """Resolves a path from its first step, which is the deepest node of the tree."""
        steps: list[MemberAccess | IndexAccess] = []
        while isinstance(tree, MemberAccess | IndexAccess):
            steps.append(tree)
            tree = tree.target
        if not isinstance(tree, Identifier):
            raise _make_error_at(tree, "this form of CEL is not supported in filters")
        if tree.name != self._variable:
            if steps:
                raise _make_error_at(
                    tree, f"there is no {tree.name!r}; fields begin with {self._variable}."
                )
            return Literal(None, tree.name)
        path = self._root
        for step in reversed(steps):
            path = self._resolve_step(step, path)
        self.mentioned_fields.add(path.dotted)
        return path

    def _resolve_step(self, step: MemberAccess | IndexAccess, path: FieldPath) -> FieldPath:
        if isinstance(step, IndexAccess):
            key = self._literal(step.key)
            if path.kind is not ValueKind.MAP or key.kind is not ValueKind.STRING:
                raise _make_error_at(step, "only a map has entries, by a constant text")
            return path.entry(key.value)
        if path.kind is ValueKind.MAP:
            return path.entry(step.name)
        return _with_position(step, lambda: find_field(path, step.name))


def find_field(path: FieldPath, name: str) -> FieldPath:
    """A field of the message at a path. ValueError when there is none or when it is secret."""
    if path.kind is not ValueKind.MESSAGE or path.message is None:
        raise ValueError(f"a {path.kind.value} has no field {name!r}")
    field = path.message.fields_by_name.get(name)
    if field is None:
        raise ValueError(f"{path.message.name} has no field {name!r}")
    if field.GetOptions().debug_redact:
        raise ValueError(f"{name!r} is secret and cannot be asked about")
    return path.field(field)


def _with_position(tree: Expression, read: Callable[[], T]) -> T:
    try:
        return read()
    except ValueError as error:
        raise _make_error_at(tree, str(error)) from error


def _make_error_at(tree: Expression, message: str) -> Refused:
    return make_filter_error(message, *tree.place)
