"""Filter text to a parse tree, by cel-python's grammar. Called by compile.py; loads the parser on first use."""

from __future__ import annotations

import importlib.util
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from boatyard.model.errors import Refused

if TYPE_CHECKING:
    import lark

MAX_BYTES = 4096


def refused(message: str, line: int | None = None, column: int | None = None) -> Refused:
    """A filter's fault, with its place."""
    place = f" at line {line}, column {column}" if column is not None else ""
    return Refused(f"bad filter{place}: {message}", reason="BadFilter")


def parse(text: str) -> lark.Tree[lark.Token]:
    """The tree of a filter within the bounds. Refused with the place where it is not CEL."""
    _check_text(text)
    from lark.exceptions import (
        UnexpectedCharacters,
        UnexpectedEOF,
        UnexpectedInput,
        UnexpectedToken,
    )

    try:
        return _parser().parse(text)
    except (UnexpectedEOF, UnexpectedToken) as error:
        token = getattr(error, "token", None)
        if token is None or token.type == "$END":
            raise refused("it ends too early") from error
        raise refused(f"{str(token)!r} is not expected here", token.line, token.column) from error
    except UnexpectedCharacters as error:
        raise refused(f"{error.char!r} is not expected here", error.line, error.column) from error
    except UnexpectedInput as error:
        raise refused("it is not CEL", error.line, error.column) from error


def _check_text(text: str) -> None:
    try:
        size = len(text.encode())
    except UnicodeEncodeError as error:
        raise refused("it holds a lone surrogate", 1, error.start + 1) from error
    if size > MAX_BYTES:
        raise refused(f"it has {size} bytes, more than {MAX_BYTES}")
    if "\0" in text:
        raise refused("it holds a NUL character", *_place(text, text.index("\0")))
    if not text.strip():
        raise refused("it is empty")


def _place(text: str, index: int) -> tuple[int, int]:
    before = text[:index]
    return before.count("\n") + 1, index - (before.rfind("\n") + 1) + 1


@cache
def _parser() -> lark.Lark:
    # Only the grammar is wanted: importing celpy itself takes a second.
    from lark import Lark

    found = importlib.util.find_spec("celpy")
    if found is None or found.origin is None:
        raise ModuleNotFoundError("cel-python is not installed")
    grammar = (Path(found.origin).parent / "cel.lark").read_text()
    return Lark(
        grammar,
        parser="lalr",
        start="expr",
        propagate_positions=True,
        lexer_callbacks={"IDENT": _no_names},
    )


def _no_names(token: lark.Token) -> lark.Token:
    """The grammar takes these three for names."""
    kind = {"true": "BOOL_LIT", "false": "BOOL_LIT", "null": "NULL_LIT"}.get(str(token))
    return token if kind is None else token.update(type=kind)
