"""Parses filter text, which is CEL, to a syntax tree by operator precedence. Called by compile.py.

The whole syntax of CEL is parsed, so that unsupported expressions are refused as unsupported, not as syntax errors.
Parsing takes linear time, and the tree is never deeper than `MAX_DEPTH` brackets and signs.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto

from boatyard.model.errors import Refused

MAX_BYTES = 4096
MAX_DEPTH = 32

Place = tuple[int, int]  # line and column, from 1


def make_filter_error(message: str, line: int | None = None, column: int | None = None) -> Refused:
    """The error for a bad filter, with line and column."""
    place = f" at line {line}, column {column}" if column is not None else ""
    return Refused(f"bad filter{place}: {message}", reason="BadFilter")


def parse_filter(text: str) -> Expression:
    """Parses a filter. Refused, with line and column, when it is too long, too deep or not CEL."""
    _check_text(text)
    return _Parser(text).parse_whole()


def _check_text(text: str) -> None:
    try:
        size = len(text.encode())
    except UnicodeEncodeError as error:
        raise make_filter_error("it holds a lone surrogate", 1, error.start + 1) from error
    if size > MAX_BYTES:
        raise make_filter_error(f"it has {size} bytes, more than {MAX_BYTES}")
    if "\0" in text:
        before = text[: text.index("\0")]
        line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
        raise make_filter_error("it holds a NUL character", line, column)
    if not text.strip():
        raise make_filter_error("it is empty")


# --- the tree ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Expression:
    """A part of a filter, and where it begins. Unsupported expressions are instances of this class itself."""

    place: Place


@dataclass(frozen=True, slots=True)
class Identifier(Expression):
    name: str


@dataclass(frozen=True, slots=True)
class LiteralText(Expression):
    """A constant, as it is written."""

    kind: TokenKind
    text: str


@dataclass(frozen=True, slots=True)
class MemberAccess(Expression):
    """`target.name`"""

    target: Expression
    name: str


@dataclass(frozen=True, slots=True)
class IndexAccess(Expression):
    """`target[key]`"""

    target: Expression
    key: Expression


@dataclass(frozen=True, slots=True)
class CallExpression(Expression):
    """`name(arguments)`, or `target.name(arguments)`"""

    target: Expression | None
    name: str
    arguments: Sequence[Expression]


@dataclass(frozen=True, slots=True)
class ListExpression(Expression):
    """`[items]`"""

    items: Sequence[Expression]


@dataclass(frozen=True, slots=True)
class Parentheses(Expression):
    """`(inner)`"""

    inner: Expression


@dataclass(frozen=True, slots=True)
class UnaryOperation(Expression):
    """`!operand`, `-operand`"""

    operator: str
    operand: Expression


@dataclass(frozen=True, slots=True)
class BinaryOperation(Expression):
    """Two operands with a relation or an arithmetic operator between them."""

    operator: str
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class LogicalChain(Expression):
    """Two or more parts with `||`, or with `&&`, between them."""

    operator: str
    parts: list[Expression]


# --- tokens --------------------------------------------------------------------------------------


class TokenKind(Enum):
    NAME = auto()
    BOOL = auto()
    NULL = auto()
    INT = auto()
    DOUBLE = auto()
    STRING = auto()
    BYTES = auto()
    SYMBOL = auto()  # also the operator `in`
    END = auto()


_LITERALS = {
    TokenKind.BOOL, TokenKind.NULL, TokenKind.INT, TokenKind.DOUBLE, TokenKind.STRING, TokenKind.BYTES,
}  # fmt: skip
_WORDS = {"true": TokenKind.BOOL, "false": TokenKind.BOOL, "null": TokenKind.NULL}


@dataclass(frozen=True, slots=True)
class Token:
    kind: TokenKind
    text: str
    place: Place

    @property
    def ends_operand(self) -> bool:
        """Whether an operator follows rather than an operand: it decides what `-1` and `.5` are."""
        if self.kind is TokenKind.SYMBOL:
            return self.text in (")", "]", "}")
        return True


_SPACE = re.compile(r"(?:[\t\n\f\r ]+|//[^\n]*)*")
_EXPONENT = r"(?:[eE][+-]?[0-9]+)"
_WHOLE_DOUBLE = rf"[0-9]+\.[0-9]*{_EXPONENT}?|[0-9]+{_EXPONENT}"
_INT = r"(?:0x[0-9a-fA-F]+|[0-9]+)[uU]?"
_STRING = r"""
    [rR](?:\"{3}(?s:.*?)\"{3}|'{3}(?s:.*?)'{3}|"[^"\n]*"|'[^'\n]*')
    |\"{3}(?:[^"\\]|\\(?s:.)|"(?!""))*\"{3}
    |'{3}(?:[^'\\]|\\(?s:.)|'(?!''))*'{3}
    |"(?!"")(?:[^"\\\n]|\\[^\n])*"
    |'(?!'')(?:[^'\\\n]|\\[^\n])*'
"""
_NAME = r"(?P<NAME>[_a-zA-Z][_a-zA-Z0-9]*)"
_SYMBOL = r"(?P<SYMBOL>\|\||&&|[<>=!]=|[-+*/%!<>?:.,()\[\]{}])"
# Tokens where an operand may begin: a number may have a sign or begin with its point, a text may have a prefix.
_OPERAND = re.compile(
    rf"(?P<BYTES>[bB](?:{_STRING}))|(?P<STRING>{_STRING})"
    rf"|(?P<DOUBLE>-?(?:{_WHOLE_DOUBLE}|\.[0-9]+{_EXPONENT}?))|(?P<INT>-?{_INT})|{_NAME}|{_SYMBOL}",
    re.VERBOSE,
)
# Tokens after an operand or a point. Constants are errors there; they are read so that the error can name them.
_OPERATOR = re.compile(
    rf"{_NAME}|(?P<STRING>{_STRING})|(?P<DOUBLE>{_WHOLE_DOUBLE})|(?P<INT>{_INT})|{_SYMBOL}",
    re.VERBOSE,
)


class _Tokens:
    """Reads one token at a time, so that the first fault in the text is the one that is reported."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._position = 0
        self._line = 1
        self._line_start = 0

    def read_token(self, *, after: Token | None) -> Token:
        self._advance(_SPACE.match(self._text, self._position))
        place = (self._line, self._position - self._line_start + 1)
        if self._position == len(self._text):
            return Token(TokenKind.END, "", place)
        after_operand = after is not None and after.ends_operand
        after_point = after is not None and after.text == "." and after.kind is TokenKind.SYMBOL
        pattern = _OPERATOR if after_operand or after_point else _OPERAND
        match = pattern.match(self._text, self._position)
        if match is None:
            raise _make_token_error(self._text[self._position], place)
        self._advance(match)
        text = match[0]
        kind = TokenKind[match.lastgroup or "SYMBOL"]
        if kind is TokenKind.NAME:
            kind = _WORDS.get(text, kind)
            if text == "in" and after_operand:
                kind = TokenKind.SYMBOL
        return Token(kind, text, place)

    def _advance(self, match: re.Match[str] | None) -> None:
        if match is None:
            return
        newlines = match[0].count("\n")
        if newlines:
            self._line += newlines
            self._line_start = match.start() + match[0].rindex("\n") + 1
        self._position = match.end()


def _make_token_error(character: str, place: Place) -> Refused:
    if character in "\"'":
        return make_filter_error("the text that begins here has no end", *place)
    return make_filter_error(f"{character!r} is not expected here", *place)


# --- the parser ----------------------------------------------------------------------------------

_PRECEDENCE = {
    "||": 1, "&&": 2,
    "<": 3, "<=": 3, ">": 3, ">=": 3, "==": 3, "!=": 3, "in": 3,
    "+": 4, "-": 4,
    "*": 5, "/": 5, "%": 5,
}  # fmt: skip


class _Parser:
    """Precedence climbing, one token ahead."""

    def __init__(self, text: str) -> None:
        self._tokens = _Tokens(text)
        self._token = self._tokens.read_token(after=None)
        self._depth = 0

    def parse_whole(self) -> Expression:
        tree = self._expression()
        if self._token.kind is not TokenKind.END:
            raise self._unexpected()
        return tree

    # --- one token -------------------------------------------------------------------------------

    def _next_token(self) -> Token:
        token = self._token
        self._token = self._tokens.read_token(after=token)
        return token

    def _is_at(self, *symbols: str) -> bool:
        return self._token.kind is TokenKind.SYMBOL and self._token.text in symbols

    def _expect(self, symbol: str) -> None:
        if not self._is_at(symbol):
            raise self._unexpected()
        self._next_token()

    def _name(self) -> str:
        if self._token.kind is not TokenKind.NAME:
            raise self._unexpected()
        return self._next_token().text

    def _unexpected(self) -> Refused:
        if self._token.kind is TokenKind.END:
            return make_filter_error("it ends too early", *self._token.place)
        return make_filter_error(f"{self._token.text!r} is not expected here", *self._token.place)

    def _enter_level(self) -> None:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise make_filter_error(f"it is nested deeper than {MAX_DEPTH}", *self._token.place)

    # --- operators -------------------------------------------------------------------------------

    def _expression(self) -> Expression:
        """Anything: `a`, or `a ? b : c`, which filters have no use for."""
        self._enter_level()
        tree = self._operation(1)
        while self._is_at("?"):
            self._next_token()
            self._operation(1)
            self._expect(":")
            self._operation(1)
            tree = Expression(tree.place)
        self._depth -= 1
        return tree

    def _operation(self, precedence: int) -> Expression:
        """Operands with operators between them whose precedence is at least this."""
        left = self._unary()
        while self._token.kind is TokenKind.SYMBOL:
            strength = _PRECEDENCE.get(self._token.text, 0)
            if strength < precedence:
                break
            operator = self._next_token().text
            right = self._operation(strength + 1)
            if strength > 2:
                left = BinaryOperation(left.place, operator, left, right)
            elif isinstance(left, LogicalChain) and left.operator == operator:
                left.parts.append(right)
            else:
                left = LogicalChain(left.place, operator, [left, right])
        return left

    def _unary(self) -> Expression:
        if not self._is_at("!", "-"):
            return self._member()
        sign = self._next_token()
        self._enter_level()
        operand = self._unary()
        self._depth -= 1
        return UnaryOperation(sign.place, sign.text, operand)

    # --- operands --------------------------------------------------------------------------------

    def _member(self) -> Expression:
        """A primary, and what follows it: `.name`, `.name(…)`, `[…]`, `{…}`."""
        tree = self._primary()
        while self._is_at(".", "[", "{"):
            symbol = self._next_token().text
            if symbol == ".":
                name = self._name()
                if self._is_at("("):
                    tree = CallExpression(tree.place, tree, name, self._arguments())
                else:
                    tree = MemberAccess(tree.place, tree, name)
            elif symbol == "[":
                tree = IndexAccess(tree.place, tree, self._expression())
                self._expect("]")
            else:
                self._entries(names=True)
                tree = Expression(tree.place)
        return tree

    def _primary(self) -> Expression:
        token = self._token
        if token.kind in _LITERALS:
            self._next_token()
            return LiteralText(token.place, token.kind, token.text)
        if token.kind is TokenKind.NAME:
            self._next_token()
            if self._is_at("("):
                return CallExpression(token.place, None, token.text, self._arguments())
            return Identifier(token.place, token.text)
        if not self._is_at("(", "[", "{", "."):
            raise self._unexpected()
        return self._bracketed()

    def _bracketed(self) -> Expression:
        token = self._next_token()
        match token.text:
            case "(":
                inner = self._expression()
                self._expect(")")
                return Parentheses(token.place, inner)
            case "[":
                return ListExpression(token.place, self._expressions("]"))
            case "{":
                self._entries(names=False)
            case ".":  # a name that begins with a point
                self._name()
                if self._is_at("("):
                    self._arguments()
        return Expression(token.place)

    def _arguments(self) -> list[Expression]:
        self._expect("(")
        return self._expressions(")")

    def _expressions(self, end: str) -> list[Expression]:
        """Expressions with commas between them, and the bracket that ends them."""
        items: list[Expression] = []
        if not self._is_at(end):
            items.append(self._expression())
            while self._is_at(","):
                self._next_token()
                items.append(self._expression())
        self._expect(end)
        return items

    def _entries(self, *, names: bool) -> None:
        """Reads entries in braces up to the closing one. Filters do not support them."""
        if not self._is_at("}"):
            self._entry(names=names)
            while self._is_at(","):
                self._next_token()
                self._entry(names=names)
        self._expect("}")

    def _entry(self, *, names: bool) -> None:
        if names:
            self._name()
        else:
            self._expression()
        self._expect(":")
        self._expression()
