"""The parser of filters: the tree of a text, the place where it is refused, and that nothing is slow or deep."""

from __future__ import annotations

import dataclasses
import re
from time import process_time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from boatyard.ledger.filters.compile import compile_filter
from boatyard.ledger.filters.parse import MAX_DEPTH, Expression, LiteralText, parse_filter
from boatyard.model import wire
from boatyard.model.errors import Refused

CLUSTER = wire.message("osac.private.v1.Cluster").DESCRIPTOR


def shape(tree: Any) -> Any:
    """A tree in brief: literals and names as they are written, everything else with its class."""
    if isinstance(tree, list):
        return [shape(part) for part in tree]
    if not isinstance(tree, Expression):
        return tree
    if isinstance(tree, LiteralText):
        return (tree.kind.name, tree.text)
    fields = [getattr(tree, each.name) for each in dataclasses.fields(tree) if each.name != "place"]
    return (type(tree).__name__, *(shape(field) for field in fields))


A, B, C = ("Identifier", "a"), ("Identifier", "b"), ("Identifier", "c")
UNSUPPORTED = ("Expression",)


@pytest.mark.parametrize(
    "text, expected",
    [
        # what binds how tightly
        ("a || b && c", ("LogicalChain", "||", [A, ("LogicalChain", "&&", [B, C])])),
        ("a && b || c", ("LogicalChain", "||", [("LogicalChain", "&&", [A, B]), C])),
        ("a || b || c", ("LogicalChain", "||", [A, B, C])),
        ("(a || b) || c", ("LogicalChain", "||", [("Parentheses", ("LogicalChain", "||", [A, B])), C])),
        ("a && b == c", ("LogicalChain", "&&", [A, ("BinaryOperation", "==", B, C)])),
        ("a == b == c", ("BinaryOperation", "==", ("BinaryOperation", "==", A, B), C)),
        ("a < b + c", ("BinaryOperation", "<", A, ("BinaryOperation", "+", B, C))),
        ("a - b - c", ("BinaryOperation", "-", ("BinaryOperation", "-", A, B), C)),
        ("a + b * c", ("BinaryOperation", "+", A, ("BinaryOperation", "*", B, C))),
        ("!a == b", ("BinaryOperation", "==", ("UnaryOperation", "!", A), B)),
        ("!!a.b", ("UnaryOperation", "!", ("UnaryOperation", "!", ("MemberAccess", A, "b")))),
        ("(a)", ("Parentheses", A)),
        # signs belong to numbers where an operand begins
        ("-1", ("INT", "-1")),
        ("- 1", ("UnaryOperation", "-", ("INT", "1"))),
        ("--1", ("UnaryOperation", "-", ("INT", "-1"))),
        ("a -1", ("BinaryOperation", "-", A, ("INT", "1"))),
        ("a - -1", ("BinaryOperation", "-", A, ("INT", "-1"))),
        ("a<-1", ("BinaryOperation", "<", A, ("INT", "-1"))),
        ("-a", ("UnaryOperation", "-", A)),
        # numbers
        ("0x1F", ("INT", "0x1F")),
        ("5u", ("INT", "5u")),
        ("1.5e-3", ("DOUBLE", "1.5e-3")),
        ("1.", ("DOUBLE", "1.")),
        (".5", ("DOUBLE", ".5")),
        ("-.5", ("DOUBLE", "-.5")),
        ("1e3", ("DOUBLE", "1e3")),
        # texts
        ("'it\\'s'", ("STRING", "'it\\'s'")),
        ('""', ("STRING", '""')),
        ('"""a "b"\nc"""', ("STRING", '"""a "b"\nc"""')),
        ("'''a'b'''", ("STRING", "'''a'b'''")),
        ("r'\\d'", ("STRING", "r'\\d'")),
        ('R"\\"', ("STRING", 'R"\\"')),
        ('b"a"', ("BYTES", 'b"a"')),
        ("br'a'", ("BYTES", "br'a'")),
        # words
        ("true", ("BOOL", "true")),
        ("null", ("NULL", "null")),
        ("trueish", ("Identifier", "trueish")),
        ("in", ("Identifier", "in")),
        ("a.in", ("MemberAccess", A, "in")),
        ("a in b", ("BinaryOperation", "in", A, B)),
        ("a in[b]", ("BinaryOperation", "in", A, ("ListExpression", [B]))),
        ("for", ("Identifier", "for")),
        # paths and calls
        ("a.b.c", ("MemberAccess", ("MemberAccess", A, "b"), "c")),
        ("a['x'].b", ("MemberAccess", ("IndexAccess", A, ("STRING", "'x'")), "b")),
        ("a.r", ("MemberAccess", A, "r")),
        ("f()", ("CallExpression", None, "f", [])),
        ("f(a, b)", ("CallExpression", None, "f", [A, B])),
        ("a.f(b)", ("CallExpression", A, "f", [B])),
        ("[]", ("ListExpression", [])),
        ("[a, b]", ("ListExpression", [A, B])),
        # remarks
        ("a // || b\n && c", ("LogicalChain", "&&", [A, C])),
        ("a//b", A),
        # CEL, but nothing for filters
        ("a ? b : c", UNSUPPORTED),
        ("a ? b : c ? a : b", UNSUPPORTED),
        ("{}", UNSUPPORTED),
        ("{a: b, 'c': 1}", UNSUPPORTED),
        ("a{b: c}", UNSUPPORTED),
        (".a", UNSUPPORTED),
        (".a(b)", UNSUPPORTED),
    ],
)  # fmt: skip
def test_the_tree_of_a_text(text: str, expected: Any) -> None:
    assert shape(parse_filter(text)) == expected


@pytest.mark.parametrize(
    "text, place, message",
    [
        ("a ==", (1, 5), "ends too early"),
        ("a ==\n", (2, 1), "ends too early"),
        ("// a", (1, 5), "ends too early"),
        ("(a", (1, 3), "ends too early"),
        ("a b", (1, 3), "'b' is not"),
        ("a inb", (1, 3), "'inb' is not"),
        ("a = b", (1, 3), "'=' is not"),
        ("a | b", (1, 3), "'|' is not"),
        ("a ! b", (1, 3), "'!' is not"),
        ("!= a", (1, 1), "'!=' is not"),
        ("a)", (1, 2), "')' is not"),
        ("(a]", (1, 3), "']' is not"),
        ("f(a,)", (1, 5), "')' is not"),
        ("[a,]", (1, 4), "']' is not"),
        ("a.5", (1, 3), "'5' is not"),
        ("a.true", (1, 3), "'true' is not"),
        ("a.'b'", (1, 3), "\"'b'\" is not"),
        ("1.a", (1, 3), "'a' is not"),
        ("0x", (1, 2), "'x' is not"),
        ("a ? b", (1, 6), "ends too early"),
        ("a{1: b}", (1, 3), "'1' is not"),
        ("{a}", (1, 3), "'}' is not"),
        ("a ==\n\t@", (2, 2), "'@' is not"),
        ("a == 'é' é", (1, 10), "'é' is not"),
        ("'''a\nb''' c", (2, 6), "'c' is not"),
        ("a\u00a0== b", (1, 2), "'\\xa0' is not"),
        ("a == 'b", (1, 6), "has no end"),
        ("a == 'b\n'", (1, 6), "has no end"),
        ("a == 'b\\'", (1, 6), "has no end"),
        ('a == """b"', (1, 6), "has no end"),
        ('r"a\\"b"', (1, 6), "'b' is not"),
        # the first fault is the one that is reported
        ("a b @", (1, 3), "'b' is not"),
        ("a ) 'b", (1, 3), "')' is not"),
    ],
)  # fmt: skip
def test_where_a_text_is_refused(text: str, place: tuple[int, int], message: str) -> None:
    line, column = place
    expected = f"at line {line}, column {column}: .*{re.escape(message)}"
    with pytest.raises(Refused, match=expected):
        parse_filter(text)


@pytest.mark.parametrize(
    "text, place",
    [
        ("a ==\n  b", (1, 1)),
        ("\n  (a)", (2, 3)),
        ("  !a", (1, 3)),
        ("'''x\n''' == a", (1, 1)),
    ],
)
def test_a_tree_begins_where_its_first_token_is(text: str, place: tuple[int, int]) -> None:
    assert parse_filter(text).place == place


@pytest.mark.parametrize(
    "opening, closing", [("(", ")"), ("[", "]"), ("f(", ")"), ("!", ""), ("- ", "")]
)
def test_nesting_is_bounded(opening: str, closing: str) -> None:
    def nested(levels: int) -> str:
        return opening * levels + "a" + closing * levels

    parse_filter(nested(MAX_DEPTH - 1))
    column = len(opening) * MAX_DEPTH + 1
    with pytest.raises(Refused, match=f"column {column}: it is nested deeper than {MAX_DEPTH}"):
        parse_filter(nested(MAX_DEPTH))


def test_brackets_beside_each_other_are_not_deep() -> None:
    parse_filter(" || ".join(["(!f(a[b]))"] * 100))


HOSTILE = {
    "open parentheses": "(" * 4096,
    "calls in calls": "timestamp(" * 400,
    "indexes in indexes": "this[" * 800 + "0" + "]" * 80,
    "braces": "a{b:" * 1000,
    "conditionals": "a?b:" * 1000 + "c",
    "a long path": "this" + ".a" * 2000,
    "a long sum": "1+" * 2000 + "1",
    "a chain of relations": "1==" * 1300 + "1",
    "a long chain": "a||" * 1300 + "a",
    "quotes": '"' * 4096,
    "backslashes": '"' + "\\" * 4000,
    "escaped quotes": '"""' + '\\"' * 2000,
    "half closed texts": 'r"""' + '"" ' * 1300,
    "remarks": "//\n" * 1300,
    "digits": "1" * 4096,
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
def test_a_hostile_text_is_refused_in_no_time(text: str) -> None:
    started = process_time()
    with pytest.raises(Refused):
        compile_filter(text, CLUSTER)

    assert process_time() - started < 2  # about 0.02; what backtracks takes years


@given(st.text(alphabet="this.id\"'\\ =!<>()[]{}&|-+0x1e5u,:?rb\n/*%_@é", max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        line, column = parse_filter(text).place
    except Refused:
        return
    assert text.split("\n")[line - 1][column - 1 :].strip() != ""
