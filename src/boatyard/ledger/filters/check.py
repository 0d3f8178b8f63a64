"""The parse tree of a filter to its typed tree, checked against a message's descriptor. Called by compile.py."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from google.protobuf.descriptor import Descriptor
from lark import Token, Tree

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
from boatyard.ledger.filters.parse import refused
from boatyard.model.errors import Refused

MAX_DEPTH = 32
MAX_LIST = 1000
T = TypeVar("T")
Branch = Tree[Token]

_CHAIN = {
    "expr", "conditionalor", "conditionaland", "relation", "addition", "multiplication",
    "unary", "member", "primary",
}  # fmt: skip
_RELATIONS = {
    "relation_eq": "==", "relation_ne": "!=", "relation_lt": "<", "relation_le": "<=",
    "relation_gt": ">", "relation_ge": ">=", "relation_in": "in",
}  # fmt: skip
_FLIPPED = {"==": "==", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_SCALARS = {Kind.BOOL, Kind.INT, Kind.ENUM, Kind.DOUBLE, Kind.STRING, Kind.TIMESTAMP}
_TEXT_TESTS = ("startsWith", "endsWith", "contains")


class Checker:
    """Knows the message and the name of the variable that stands for it."""

    def __init__(self, descriptor: Descriptor, variable: str) -> None:
        self._root = Path(Kind.MESSAGE, message=descriptor)
        self._variable = variable
        self._depth = 0
        self.mentioned: set[str] = set()

    def condition(self, tree: Branch) -> Node:
        """A tree that answers true or false."""
        self._depth += 1
        try:
            if self._depth > MAX_DEPTH:
                raise _at(tree, f"it is nested deeper than {MAX_DEPTH}")
            return self._condition(_unwrap(tree))
        finally:
            self._depth -= 1

    def _condition(self, tree: Branch) -> Node:
        match tree.data:
            case "conditionalor":
                return Or([self.condition(part) for part in _spine(tree)])
            case "conditionaland":
                return And([self.condition(part) for part in _spine(tree)])
            case "relation":
                return self._relation(tree)
            case "unary":
                if _branch(tree.children[0]).data == "unary_not":
                    return Not(self.condition(_branch(tree.children[1])))
            case "ident_arg":
                return self._function(tree)
            case "member_dot_arg":
                return self._text_test(tree)
            case "paren_expr":
                return self.condition(_branch(tree.children[0]))
        operand = self._operand(tree)
        if isinstance(operand, Literal) and operand.kind is Kind.BOOL:
            return Always(operand.value)
        if isinstance(operand, Path) and operand.kind is Kind.BOOL:
            return Truth(operand)
        raise _at(tree, "a condition is expected here")

    # --- comparing -------------------------------------------------------------------------------

    def _relation(self, tree: Branch) -> Node:
        sign, right_tree = _branch(tree.children[0]), _branch(tree.children[1])
        op, left_tree = _RELATIONS[str(sign.data)], _branch(sign.children[0])
        if op == "in":
            return self._membership(tree, left_tree, right_tree)
        left = self._operand(_unwrap(left_tree))
        right = self._operand(_unwrap(right_tree))
        if op == "!=":
            return Not(self._compare(tree, "==", left, right))
        return self._compare(tree, op, left, right)

    def _compare(self, tree: Branch, op: str, left: Path | Literal, right: Path | Literal) -> Node:
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

    def _is_null(self, tree: Branch, op: str, path: Path) -> Node:
        if op != "==":
            raise _at(tree, "null has no order")
        if not path.presence:
            raise _at(tree, f"a {path.kind.value} is never null; use has()")
        return Not(Has(path))

    def _membership(self, tree: Branch, left_tree: Branch, right_tree: Branch) -> Node:
        left, right = self._operand(_unwrap(left_tree)), _unwrap(right_tree)
        if right.data == "list_lit":
            if isinstance(left, Literal) or left.kind not in _SCALARS:
                raise _at(tree, "a field of a single value is expected before `in`")
            literals = [self._literal(item) for item in _arguments(right.children[0])]
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

    def _constant(self, tree: Branch, literal: Literal, path: Path) -> Constant:
        return _placed(tree, lambda: literal.meant_for(path.kind, path.enum))

    # --- functions -------------------------------------------------------------------------------

    def _function(self, tree: Branch) -> Node:
        name, arguments = str(tree.children[0]), _arguments(tree.children[1])
        if name != "has":
            raise _at(tree, f"there is no condition {name}()")
        if len(arguments) != 1:
            raise _at(tree, "has() takes one field")
        argument = _unwrap(arguments[0])
        path = self._operand(argument)
        if isinstance(path, Literal) or argument.data != "member_dot":
            raise _at(tree, f"has() takes a field, such as has({self._variable}.metadata.labels)")
        return Has(path)

    def _text_test(self, tree: Branch) -> Node:
        target, name = _branch(tree.children[0]), str(tree.children[1])
        arguments = _arguments(tree.children[2])
        if name not in _TEXT_TESTS:
            raise _at(tree, f"there is no {name}(); there are {', '.join(_TEXT_TESTS)}")
        path = self._operand(_unwrap(target))
        if isinstance(path, Literal) or path.kind is not Kind.STRING:
            raise _at(tree, f"{name}() is asked of a string field")
        wanted = self._literal(arguments[0]) if len(arguments) == 1 else None
        if wanted is None or wanted.kind is not Kind.STRING:
            raise _at(tree, f"{name}() takes one constant text")
        return Text(name, path, wanted.value)

    # --- values ----------------------------------------------------------------------------------

    def _literal(self, tree: Branch) -> Literal:
        found = self._operand(_unwrap(tree))
        if isinstance(found, Path):
            raise _at(tree, "a constant is expected here")
        return found

    def _operand(self, tree: Branch) -> Path | Literal:
        match tree.data:
            case "literal":
                token = tree.children[0]
                assert isinstance(token, Token)
                return _placed(tree, lambda: read_literal(token.type, str(token)))
            case "ident_arg":
                return self._timestamp(tree)
            case "unary":
                return self._negative(tree)
            case "ident" | "member_dot" | "member_index":
                return self._path(tree)
            case "paren_expr":
                return self._in_parentheses(tree)
        raise _at(tree, "this form of CEL is not supported in filters")

    def _in_parentheses(self, tree: Branch) -> Path | Literal:
        self._depth += 1
        try:
            if self._depth > MAX_DEPTH:
                raise _at(tree, f"it is nested deeper than {MAX_DEPTH}")
            return self._operand(_unwrap(_branch(tree.children[0])))
        finally:
            self._depth -= 1

    def _timestamp(self, tree: Branch) -> Literal:
        name, arguments = str(tree.children[0]), _arguments(tree.children[1])
        if name != "timestamp":
            raise _at(tree, f"there is no function {name}()")
        text = self._literal(arguments[0]) if len(arguments) == 1 else None
        if text is None or text.kind is not Kind.STRING:
            raise _at(tree, "timestamp() takes one constant text")
        return _placed(tree, lambda: read_timestamp(text.value))

    def _negative(self, tree: Branch) -> Literal:
        sign, value = _branch(tree.children[0]), _unwrap(_branch(tree.children[1]))
        if sign.data != "unary_neg" or value.data != "literal":
            raise _at(tree, "only a number can be negative")
        number = self._literal(value)
        if number.kind not in (Kind.INT, Kind.DOUBLE):
            raise _at(tree, "only a number can be negative")
        return Literal(number.kind, -number.value)

    def _path(self, tree: Branch) -> Path | Literal:
        """Follows a path from its beginning, which is the deepest of the tree."""
        steps: list[Branch] = []
        while tree.data in ("member_dot", "member_index"):
            steps.append(tree)
            tree = _unwrap(_branch(tree.children[0]))
        if tree.data != "ident":
            raise _at(tree, "this form of CEL is not supported in filters")
        name = str(tree.children[0])
        if name != self._variable:
            if steps:
                raise _at(tree, f"there is no {name!r}; fields begin with {self._variable}.")
            return Literal(None, name)
        path = self._root
        for step in reversed(steps):
            path = self._step(step, path)
        self.mentioned.add(path.dotted)
        return path

    def _step(self, step: Branch, path: Path) -> Path:
        if step.data == "member_index":
            key = self._literal(_branch(step.children[1]))
            if path.kind is not Kind.MAP or key.kind is not Kind.STRING:
                raise _at(step, "only a map has entries, by a constant text")
            return path.entry(key.value)
        name = str(step.children[1])
        if path.kind is Kind.MAP:
            return path.entry(name)
        return _placed(step, lambda: field_of(path, name))


def field_of(path: Path, name: str) -> Path:
    """A field of the message at a path. ValueError when there is none or it may not be asked about."""
    if path.kind is not Kind.MESSAGE or path.message is None:
        raise ValueError(f"a {path.kind.value} has no field {name!r}")
    field = path.message.fields_by_name.get(name)
    if field is None:
        raise ValueError(f"{path.message.name} has no field {name!r}")
    if field.GetOptions().debug_redact:
        raise ValueError(f"{name!r} is secret and cannot be asked about")
    return path.field(field)


def _spine(tree: Branch) -> list[Branch]:
    """The parts of a chain of one operator, which leans to the left as deep as it is long."""
    parts, name = [], tree.data
    while tree.data == name and tree.children[0] is not None:
        parts.append(_branch(tree.children[1]))
        tree = _branch(tree.children[0])
    return [tree, *reversed(parts)]


def _unwrap(tree: Branch) -> Branch:
    """Down the chain of rules that add nothing."""
    while tree.data in _CHAIN:
        present = list(filter(None, tree.children))  # what is optional and missing is None
        if len(present) != 1 or not isinstance(present[0], Tree):
            break
        tree = present[0]
    return tree


def _arguments(child: Branch | Token | None) -> list[Branch]:
    return [] if child is None else [_branch(item) for item in _branch(child).children]


def _branch(child: Branch | Token) -> Branch:
    assert isinstance(child, Tree)
    return child


def _placed(tree: Branch, read: Callable[[], T]) -> T:
    try:
        return read()
    except ValueError as error:
        raise _at(tree, str(error)) from error


def _at(tree: Branch, message: str) -> Refused:
    return refused(message, getattr(tree.meta, "line", None), getattr(tree.meta, "column", None))
